/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 against the examples of FIPS 180-4 and its companion test vectors,
 * and against sha256sum(1) for lengths around every block.
 */
#include "base/sha256.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "test_base_suite.h"

static const char *hex(const void *p, size_t n)
{
	static char text[2 * SHA256_BYTES + 1];
	unsigned char digest[SHA256_BYTES];

	sha256(p, n, digest);
	for (size_t i = 0; i < SHA256_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", digest[i]);
	return text;
}

START_TEST(known)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
		{"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopq"
		 "klmnopqrlmnopqrsmnopqrstnopqrstu",
		 "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		ck_assert_str_eq(hex(rows[i].text, strlen(rows[i].text)), rows[i].want);
}
END_TEST

START_TEST(million)
{
	char *text = malloc(1000000);

	ck_assert_ptr_nonnull(text);
	memset(text, 'a', 1000000);
	ck_assert_str_eq(hex(text, 1000000),
			 "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	free(text);
}
END_TEST

START_TEST(nothing_at_all)
{
	ck_assert_str_eq(hex(NULL, 0),
			 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}
END_TEST

#define FILES 300

static size_t length_of(int i)
{
	return i < 260 ? (size_t)i : (size_t)random() % 100000;
}

/* Lines of sha256sum for the files in the working directory, in the order of their names. */
static FILE *ask_sha256sum(void)
{
	char *argv[FILES + 3] = {(char *)"sha256sum"};
	static char names[FILES][8];
	posix_spawn_file_actions_t acts;
	pid_t pid = 0;
	int status = 0;

	for (int i = 0; i < FILES; i++) {
		snprintf(names[i], sizeof(names[i]), "f%03d", i);
		argv[i + 1] = names[i];
	}
	ck_assert_int_eq(posix_spawn_file_actions_init(&acts), 0);
	ck_assert_int_eq(posix_spawn_file_actions_addopen(&acts, STDOUT_FILENO, "sums",
							  O_WRONLY | O_CREAT | O_TRUNC, 0600),
			 0);
	ck_assert_int_eq(posix_spawnp(&pid, argv[0], &acts, NULL, argv, environ), 0);
	ck_assert_int_eq(posix_spawn_file_actions_destroy(&acts), 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	return fopen("sums", "r");
}

START_TEST(as_sha256sum)
{
	static unsigned char data[FILES][100000];
	static size_t lengths[FILES];
	char dir[] = "/tmp/sandglass-sha.XXXXXX";
	char line[200];

	suite_seed();
	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(chdir(dir), 0);
	for (int i = 0; i < FILES; i++) {
		char name[16];
		lengths[i] = length_of(i);
		for (size_t k = 0; k < lengths[i]; k++)
			data[i][k] = (unsigned char)random();
		snprintf(name, sizeof(name), "f%03d", i);
		FILE *f = fopen(name, "w");
		ck_assert_ptr_nonnull(f);
		ck_assert_uint_eq(fwrite(data[i], 1, lengths[i], f), lengths[i]);
		ck_assert_int_eq(fclose(f), 0);
	}
	FILE *sums = ask_sha256sum();
	ck_assert_ptr_nonnull(sums);
	for (int i = 0; i < FILES; i++) {
		ck_assert_ptr_nonnull(fgets(line, sizeof(line), sums));
		line[2 * SHA256_BYTES] = '\0';
		ck_assert_msg(strcmp(hex(data[i], lengths[i]), line) == 0, "%zu bytes", lengths[i]);
	}
	ck_assert_int_eq(fclose(sums), 0);
	for (int i = 0; i < FILES; i++) {
		char name[16];
		snprintf(name, sizeof(name), "f%03d", i);
		ck_assert_int_eq(unlink(name), 0);
	}
	ck_assert_int_eq(unlink("sums"), 0);
	ck_assert_int_eq(chdir("/"), 0);
	ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("base sha256");
	TCase *c = tcase_create("all");

	tcase_set_timeout(c, 60);
	tcase_add_test(c, known);
	tcase_add_test(c, million);
	tcase_add_test(c, nothing_at_all);
	tcase_add_test(c, as_sha256sum);
	suite_add_tcase(s, c);
	return suite_run(s);
}

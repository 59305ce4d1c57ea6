/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appends to the log: one chain, whatever was left behind, whoever writes.
 */
#include "audit/audit.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "audit/line.h"
#include "audit/place.h"
#include "audit/settings.h"
#include "base/clock.h"
#include "test_policy_place.h"

static char *env[4];
static char home_text[PATH_TEXT + 32];

static struct caller somebody(void)
{
	(void)snprintf(home_text, sizeof(home_text), "SANDGLASS_HOME=%s", at("state"));
	env[0] = home_text;
	return caller_of("/home/somebody", env);
}

/* What has an old name stays all the same. */
static void keep_all(void)
{
	struct caller who = somebody();
	const struct audit_settings s = {.kept_ms = LIMIT_NONE};
	struct err e = {0};

	CK_WORKS(audit_settings_put(&who, &s, &e), e);
}

static int append(const char *name)
{
	struct caller who = somebody();
	const struct audit_event v = {.event = name};
	struct err e = {0};

	return audit_append(&who, &v, 1, 0, &e);
}

static const char *day(void)
{
	static char name[64];
	char file[AUDIT_FILE_TEXT];

	audit_day(clock_wall_ms(), file);
	(void)snprintf(name, sizeof(name), "state/audit/%s", file);
	return name;
}

/* All of a file; static memory. */
static char *read_file(const char *name)
{
	static char text[8 << 20];
	FILE *f = fopen(at("%s", name), "r");

	ck_assert_ptr_nonnull(f);
	size_t n = fread(text, 1, sizeof(text) - 1, f);
	ck_assert_int_eq(fclose(f), 0);
	text[n] = '\0';
	return text;
}

/* The text is whole lines that make a chain from that one on; how many. */
static size_t chain(char *text, uint64_t seq, char hash[AUDIT_HASH_TEXT])
{
	unsigned char digest[SHA256_BYTES];
	char hex[AUDIT_HASH_TEXT];
	char prev[AUDIT_HASH_TEXT + 16];
	size_t lines = 0;

	for (char *end = strchr(text, '\n'); end; end = strchr(text, '\n')) {
		uint64_t got = 0;
		size_t n = (size_t)(end - text);
		size_t hashed = audit_line_hashed(text, n);

		(void)snprintf(prev, sizeof(prev), ",\"prev\":\"%s\"", hash);
		ck_assert_uint_gt(hashed, 0);
		ck_assert(memcmp(text + hashed - strlen(prev), prev, strlen(prev)) == 0);
		sha256(text, hashed, digest);
		audit_hex(digest, sizeof(digest), hex);
		ck_assert(audit_line_tip(text, n, &got, hash));
		ck_assert_str_eq(hash, hex);
		ck_assert_uint_eq(got, ++seq);
		lines++;
		text = end + 1;
	}
	ck_assert_str_eq(text, "");
	return lines;
}

static size_t whole_chain(void)
{
	char hash[AUDIT_HASH_TEXT];

	memcpy(hash, audit_no_hash, sizeof(hash));
	return chain(read_file(day()), 0, hash);
}

START_TEST(first_and_next)
{
	ck_assert_int_eq(append("a.b"), 0);
	ck_assert_int_eq(append("c.d"), 0);
	ck_assert_uint_eq(whole_chain(), 2);
	ck_assert_uint_eq(stat_of("state/audit").st_mode & 07777, 0700);
	ck_assert_uint_eq(stat_of(day()).st_mode & 07777, 0600);
	ck_assert_ptr_nonnull(strstr(read_file(day()), "\"event\":\"c.d\",\"session\":null,"));
}
END_TEST

START_TEST(several_are_one_append)
{
	struct caller who = somebody();
	const struct audit_event v[] = {{.event = "one"}, {.event = "two"}, {.event = "three"}};
	struct audit_head head;
	struct err e = {0};

	CK_WORKS(audit_append(&who, v, 3, AUDIT_SYNC, &e), e);
	ck_assert_uint_eq(whole_chain(), 3);
	CK_WORKS(audit_head_get(&who, &head, &e), e);
	ck_assert_uint_eq(head.seq, 3);
}
END_TEST

/* The numbers and hashes go on over files. */
START_TEST(next_day)
{
	char hash[AUDIT_HASH_TEXT];
	char old[PATH_TEXT];

	keep_all();
	ck_assert_int_eq(append("a"), 0);
	(void)snprintf(old, sizeof(old), "%s", at("%s", day()));
	ck_assert_int_eq(rename(old, at("state/audit/2001-02-03.jsonl")), 0);
	ck_assert_int_eq(append("b"), 0);
	memcpy(hash, audit_no_hash, sizeof(hash));
	ck_assert_uint_eq(chain(read_file("state/audit/2001-02-03.jsonl"), 0, hash), 1);
	ck_assert_uint_eq(chain(read_file(day()), 1, hash), 1);
}
END_TEST

/* A clock that went back: what is newest stays newest. */
START_TEST(day_before)
{
	ck_assert_int_eq(append("a"), 0);
	ck_assert_int_eq(rename(at("%s", day()), at("state/audit/2999-01-01.jsonl")), 0);
	ck_assert_int_eq(append("b"), 0);
	ck_assert_int_eq(append("c"), 0);
	ck_assert_int_eq(unlink(at("state/audit/head")), 0);
	ck_assert_int_eq(append("d"), 0);
	ck_assert_int_eq(access(at("%s", day()), F_OK), -1);
	char hash[AUDIT_HASH_TEXT];
	memcpy(hash, audit_no_hash, sizeof(hash));
	ck_assert_uint_eq(chain(read_file("state/audit/2999-01-01.jsonl"), 0, hash), 4);
}
END_TEST

START_TEST(torn_line_is_cut_and_told)
{
	ck_assert_int_eq(append("a"), 0);
	ck_assert_int_eq(append("b"), 0);
	off_t size = stat_of(day()).st_size;
	ck_assert_int_eq(truncate(at("%s", day()), size - 20), 0);
	ck_assert_int_eq(append("c"), 0);
	ck_assert_uint_eq(whole_chain(), 3);
	ck_assert_ptr_nonnull(strstr(read_file(day()), "\"event\":\"audit.torn\""));
	ck_assert_ptr_nonnull(strstr(read_file(day()), "\"event\":\"c\""));
	ck_assert_ptr_null(strstr(read_file(day()), "\"event\":\"b\""));
}
END_TEST

/* Nothing but a torn line: the chain goes on from the day before. */
START_TEST(torn_first_line)
{
	char hash[AUDIT_HASH_TEXT];

	keep_all();
	ck_assert_int_eq(append("a"), 0);
	ck_assert_int_eq(rename(at("%s", day()), at("state/audit/2001-02-03.jsonl")), 0);
	put_file(day(), "{\"seq\":2,\"ti");
	ck_assert_int_eq(append("b"), 0);
	memcpy(hash, audit_no_hash, sizeof(hash));
	ck_assert_uint_eq(chain(read_file("state/audit/2001-02-03.jsonl"), 0, hash), 1);
	ck_assert_uint_eq(chain(read_file(day()), 1, hash), 2);
}
END_TEST

/* The log counts, whatever the head says. */
START_TEST(head_that_lies)
{
	static const char *const heads[] = {
		"",
		"nonsense\n",
		"00000000000000000099 "
		"1111111111111111111111111111111111111111111111111111111111111111 "
		"2001-01-01.jsonl\n",
		"00000000000000000099 "
		"1111111111111111111111111111111111111111111111111111111111111111 "
		"2999-01-01.jsonl\n",
	};

	ck_assert_int_eq(append("first"), 0);
	for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
		put_file("state/audit/head", heads[i]);
		ck_assert_int_eq(append("more"), 0);
	}
	ck_assert_uint_eq(whole_chain(), 1 + ARRAY_LEN(heads));
}
END_TEST

START_TEST(a_long_line_before)
{
	struct caller who = somebody();
	char *long_text = malloc(300000);
	struct err e = {0};

	ck_assert_ptr_nonnull(long_text);
	memset(long_text, '\1', 299999);
	long_text[299999] = '\0';
	struct audit_field f[MAX_AUDIT_FIELDS];
	for (size_t i = 0; i < ARRAY_LEN(f); i++)
		f[i] = (struct audit_field){.key = "k", .kind = AUDIT_TEXT, .text = long_text};
	const struct audit_event v = {.event = "big", .data = f, .data_count = ARRAY_LEN(f)};
	CK_WORKS(audit_append(&who, &v, 1, 0, &e), e);
	CK_WORKS(audit_append(&who, &v, 1, 0, &e), e);
	free(long_text);
	ck_assert_int_eq(append("b"), 0);
	(void)whole_chain();
}
END_TEST

START_TEST(not_ours_alone)
{
	struct caller who = somebody();
	const struct audit_event v = {.event = "a"};
	struct err e = {0};

	ck_assert_int_eq(append("a"), 0);
	ck_assert_int_eq(chmod(at("state/audit"), 0777), 0);
	CK_FAILS(audit_append(&who, &v, 1, 0, &e), e, ERR_POLICY_DENIED, "not yours alone");
	ck_assert_int_eq(chmod(at("state/audit"), 0700), 0);
	ck_assert_int_eq(chmod(at("%s", day()), 0666), 0);
	CK_FAILS(audit_append(&who, &v, 1, 0, &e), e, ERR_POLICY_DENIED, "not yours alone");
	ck_assert_int_eq(chmod(at("%s", day()), 0600), 0);
	ck_assert_int_eq(append("a"), 0); /* the control */
	ck_assert_uint_eq(whole_chain(), 2);
}
END_TEST

START_TEST(no_link_is_followed)
{
	ck_assert_int_eq(append("a"), 0);
	ck_assert_int_eq(rename(at("%s", day()), at("elsewhere")), 0);
	put_link(day(), "+elsewhere");
	off_t size = stat_of("elsewhere").st_size;
	ck_assert_int_eq(append("b"), -1);
	ck_assert_int_eq(unlink(at("%s", day())), 0);
	ck_assert_int_eq(link(at("elsewhere"), at("%s", day())), 0);
	ck_assert_int_eq(append("b"), -1);
	ck_assert_int_eq(stat_of("elsewhere").st_size, size);
	ck_assert_int_eq(rename(at("state/audit"), at("state/real")), 0);
	put_link("state/audit", "real");
	ck_assert_int_eq(append("b"), -1);
}
END_TEST

START_TEST(last_line_of_somebody_else)
{
	struct caller who = somebody();
	const struct audit_event v = {.event = "a"};
	struct err e = {0};

	put_dir("state");
	ck_assert_int_eq(mkdir(at("state/audit"), 0700), 0);
	put_file(day(), "{\"seq\":1,\"event\":\"x\"}\n");
	ck_assert_int_eq(chmod(at("%s", day()), 0600), 0);
	CK_FAILS(audit_append(&who, &v, 1, 0, &e), e, ERR_INTERNAL, "is not one of ours");
}
END_TEST

START_TEST(many_writers)
{
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();
		ck_assert_int_ge(pid, 0);
		if (pid == 0) {
			int bad = 0;
			for (int k = 0; k < 20; k++)
				bad |= append("many") < 0;
			_exit(bad);
		}
	}
	int status = 0;
	while (wait(&status) > 0)
		ck_assert_int_eq(status, 0);
	ck_assert_uint_eq(whole_chain(), 400);
}
END_TEST

/*
 * Writers that are killed in the middle of appends, with lines so long that a write takes
 * its time: whatever they leave, the next one goes on with one chain. That some were met
 * after their first append is the control. How many left a torn line is the kernel's choice.
 */
#define KILLS 200
START_TEST(killed_writers)
{
	static char text[MAX_AUDIT_TEXT + 1];
	struct caller who = somebody();
	struct audit_field f[MAX_AUDIT_FIELDS];
	const struct audit_event v[] = {{.event = "big", .data = f, .data_count = ARRAY_LEN(f)},
					{.event = "big", .data = f, .data_count = ARRAY_LEN(f)}};
	unsigned int torn = 0;
	unsigned int met = 0;
	long span = 20000000;

	(void)suite_seed();
	memset(text, 'x', MAX_AUDIT_TEXT);
	for (size_t i = 0; i < ARRAY_LEN(f); i++)
		f[i] = (struct audit_field){.key = "k", .kind = AUDIT_WORD, .text = text};
	for (int i = 0; i < KILLS; i++) {
		struct err e = {0};
		pid_t pid = fork();
		ck_assert_int_ge(pid, 0);
		while (pid == 0)
			(void)!audit_append(&who, v, ARRAY_LEN(v), 0, &e);
		/* Longer where a writer needs longer to come to it. */
		if (met == 0 && i % 10 == 9 && span < 400000000)
			span *= 2;
		struct timespec a_while = {.tv_nsec = random() % span};
		(void)nanosleep(&a_while, NULL);
		ck_assert_int_eq(kill(pid, SIGKILL), 0);
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
		uint64_t end = 0;
		struct audit_head last;
		AUTO_FD int fd = open(at("%s", day()), O_RDONLY | O_CLOEXEC);
		if (fd >= 0 &&
		    audit_last(fd, "x", (uint64_t)stat_of(day()).st_size, &last, &end, &e) == 0)
			torn += end < (uint64_t)stat_of(day()).st_size;
		met += fd >= 0 && stat_of(day()).st_size > 0;
		ck_assert_int_eq(append("next"), 0);
		(void)whole_chain();
		ck_assert_int_eq(rename(at("%s", day()), at("state/audit/kept")), 0);
	}
	fprintf(stderr, "# %u of %d had written, %u left a torn line\n", met, KILLS, torn);
	ck_assert_uint_gt(met, 0);
}
END_TEST

START_TEST(tip_of_strange_lines)
{
	char hash[AUDIT_HASH_TEXT];
	char line[256];
	uint64_t seq = 0;
	static const char *const begins[] = {"{\"seq\":0,",
					     "{\"seq\":01,",
					     "{\"seq\":-1,",
					     "{\"seq\":1}",
					     "{\"seq\":18446744073709551616,",
					     "{\"sek\":1,",
					     " {\"seq\":1,"};

	(void)snprintf(line, sizeof(line), "{\"seq\":18446744073709551615,\"hash\":\"%s\"}",
		       audit_no_hash);
	ck_assert(!audit_line_tip(line, strlen(line), &seq, hash));
	(void)snprintf(line, sizeof(line), "{\"seq\":18446744073709551615,\"x\":1,\"hash\":\"%s\"}",
		       audit_no_hash);
	ck_assert(audit_line_tip(line, strlen(line), &seq, hash));
	ck_assert_uint_eq(seq, UINT64_MAX);
	for (size_t i = 0; i < ARRAY_LEN(begins); i++) {
		(void)snprintf(line, sizeof(line), "%s\"x\":1,\"hash\":\"%s\"}", begins[i],
			       audit_no_hash);
		ck_assert_msg(!audit_line_tip(line, strlen(line), &seq, hash), "%s", line);
	}
	(void)snprintf(line, sizeof(line), "{\"seq\":1,\"x\":1,\"hash\":\"%s\"}", audit_no_hash);
	line[strlen(line) - 5] = 'A';
	ck_assert(!audit_line_tip(line, strlen(line), &seq, hash));
}
END_TEST

START_TEST(settings_kept)
{
	struct caller who = somebody();
	struct audit_settings s = {.pseudonyms = true, .kept_ms = 5 * AUDIT_DAY_MS};
	struct audit_settings got;
	struct err e = {0};

	CK_WORKS(audit_settings_put(&who, &s, &e), e);
	ino_t ino = stat_of("state/audit/settings").st_ino;
	CK_WORKS(audit_settings_put(&who, &s, &e), e);
	ck_assert_uint_eq(stat_of("state/audit/settings").st_ino, ino);
	AUTO_FD int dir = open(at("state/audit"), O_RDONLY | O_DIRECTORY);
	CK_WORKS(audit_settings_read(dir, &got, &e), e);
	ck_assert(got.pseudonyms && got.kept_ms == s.kept_ms);
	put_file("state/audit/settings", "identity plain\nkept 5d\nmore\n");
	CK_FAILS(audit_settings_read(dir, &got, &e), e, ERR_CONFIG_INVALID, "damaged");
	ck_assert_int_eq(append("a"), -1); /* rather nothing than a name too many */
	ck_assert_int_eq(unlink(at("state/audit/settings")), 0);
	CK_WORKS(audit_settings_read(dir, &got, &e), e);
	ck_assert(!got.pseudonyms && got.kept_ms == AUDIT_KEPT_MS);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("audit-append");
	TCase *tc = tcase_create("append");

	tcase_add_checked_fixture(tc, place_setup, place_close);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, first_and_next);
	tcase_add_test(tc, several_are_one_append);
	tcase_add_test(tc, next_day);
	tcase_add_test(tc, day_before);
	tcase_add_test(tc, torn_line_is_cut_and_told);
	tcase_add_test(tc, torn_first_line);
	tcase_add_test(tc, head_that_lies);
	tcase_add_test(tc, a_long_line_before);
	tcase_add_test(tc, not_ours_alone);
	tcase_add_test(tc, no_link_is_followed);
	tcase_add_test(tc, last_line_of_somebody_else);
	tcase_add_test(tc, many_writers);
	tcase_add_test(tc, killed_writers);
	tcase_add_test(tc, tip_of_strange_lines);
	tcase_add_test(tc, settings_kept);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of what was applied, and paths beneath a directory.
 */
#include "review/applied.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/base.h"
#include "review/beneath.h"
#include "test_policy_place.h"

static int made(void)
{
	int fd = open(place_top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	return fd;
}

START_TEST(adds_and_replaces)
{
	struct err e = {0};
	struct applied a;
	AUTO_FD int dir = made();
	const struct applied_entry first[] = {{"a", 1, 2, 3},
					      {"b c\n\xff", 4, 5, 6},
					      {"d", 0, 0, 0}};
	const struct applied_entry then[] = {{"a/x", 7, 8, 9}, {"d", 1, 1, 1}};

	ck_assert_int_eq(applied_read(dir, &a, &e), 0);
	ck_assert_uint_eq(a.n, 0);
	ck_assert_ptr_null(applied_find(&a, "a"));
	ck_assert_int_eq(applied_add(dir, first, 3, &e), 0);
	ck_assert_int_eq(applied_add(dir, then, 2, &e), 0);
	ck_assert_int_eq(applied_read(dir, &a, &e), 0);
	ck_assert_uint_eq(a.n, 4);
	ck_assert_uint_eq(applied_find(&a, "a")->ino, 2);
	ck_assert_uint_eq(applied_find(&a, "d")->ino, 1);
	ck_assert_int_eq(applied_find(&a, "b c\n\xff")->ctime_ns, 6);
	ck_assert_ptr_null(applied_find(&a, "b"));
	applied_release(&a);
}
END_TEST

START_TEST(refuses_what_is_spoilt)
{
	static const char *const texts[] = {"", "x", "sandglass-applied 1\n",
					    ("sandglass-applied 1\0"
					     "1 2 a")};
	struct err e = {0};
	struct applied a;
	AUTO_FD int dir = made();

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		int fd = openat(dir, APPLIED_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		size_t n = i == 3 ? sizeof("sandglass-applied 1\0"
					   "1 2 a")
				  : strlen(texts[i]);
		ck_assert_int_eq(write(fd, texts[i], n), (ssize_t)n);
		(void)close(fd);
		ck_assert_int_eq(applied_read(dir, &a, &e), -1);
		ck_assert_int_eq(e.code, ERR_INTERNAL);
	}
}
END_TEST

START_TEST(clean_paths)
{
	ck_assert(beneath_is_clean("a"));
	ck_assert(beneath_is_clean("a/.b/..c"));
	ck_assert(!beneath_is_clean(""));
	ck_assert(!beneath_is_clean("/a"));
	ck_assert(!beneath_is_clean("a/"));
	ck_assert(!beneath_is_clean("a//b"));
	ck_assert(!beneath_is_clean("a/../b"));
	ck_assert(!beneath_is_clean("./a"));
}
END_TEST

START_TEST(beneath_is_long_and_follows_nothing)
{
	char path[20000] = "";
	AUTO_FD int dir = made();
	int at = fcntl(dir, F_DUPFD_CLOEXEC, 3);
	struct node n;

	for (int i = 0; i < 60; i++) {
		char name[202];
		memset(name, 'a' + i % 26, 200);
		name[200] = '\0';
		ck_assert_int_eq(mkdirat(at, name, 0700), 0);
		int next = openat(at, name, O_PATH | O_CLOEXEC);
		(void)close(at);
		at = next;
		(void)strncat(path, "/", 2);
		(void)strncat(path, name, 201);
	}
	ck_assert_int_eq(symlinkat("/etc", at, "link"), 0);
	(void)strncat(path, "/link", 6);
	ck_assert(node_at(dir, path + 1, &n));
	ck_assert(S_ISLNK(n.mode));
	(void)strncat(path, "/passwd", 8);
	ck_assert_int_lt(beneath_open(dir, path + 1, O_RDONLY), 0);
	ck_assert_int_eq(errno, ELOOP);
	ck_assert_int_eq(unlinkat(at, "link", 0), 0);
	(void)close(at);
	path[strlen(path) - strlen("/passwd")] = '\0';
	for (char *slash = strrchr(path, '/'); slash; slash = strrchr(path, '/')) {
		const char *name = NULL;
		*slash = '\0';
		if (!*path)
			break;
		AUTO_FD int parent = beneath_parent(dir, path + 1, &name);
		ck_assert_int_eq(unlinkat(parent, name, AT_REMOVEDIR), 0);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("review applied");
	TCase *c = tcase_create("all");

	tcase_add_checked_fixture(c, place_setup, place_close);
	tcase_add_test(c, adds_and_replaces);
	tcase_add_test(c, refuses_what_is_spoilt);
	tcase_add_test(c, clean_paths);
	tcase_add_test(c, beneath_is_long_and_follows_nothing);
	suite_add_tcase(s, c);
	return suite_run(s);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The accounts of passwd(5), as the C library reads them.
 */
#include "policy/accounts.h"

#include <pwd.h>

#include "base/base.h"
#include "test_base_suite.h"

#define MOST 16

struct list {
	struct {
		char name[64], home[64];
		uint32_t uid;
	} a[MOST];
	size_t n, stop_at;
};

static bool take(void *self, const struct account *a)
{
	struct list *l = self;

	ck_assert_uint_lt(l->n, MOST);
	snprintf(l->a[l->n].name, sizeof(l->a[0].name), "%s", a->name);
	snprintf(l->a[l->n].home, sizeof(l->a[0].home), "%s", a->home);
	l->a[l->n++].uid = a->uid;
	return l->n != l->stop_at;
}

static struct list parse(const char *text, size_t stop_at)
{
	struct list l = {.stop_at = stop_at};
	char *copy = strdup(text);

	ck_assert_ptr_nonnull(copy);
	accounts_parse(copy, take, &l);
	free(copy);
	return l;
}

START_TEST(lines)
{
	struct list l = parse("root:x:0:0:root:/root:/bin/sh\n"
			      "# comment\n"
			      "\n"
			      "short:x:1:1\n"
			      "me::1000:1000:Me, room 1:/home/me:/bin/zsh\n"
			      "no:x:-1:0::/a:\n"
			      "no:x:4294967296:0::/a:\n"
			      "no:x:5x:0::/a:\n"
			      "no:x::0::/a:\n"
			      "+::::::\n"
			      "last:x:4294967295:0::/b",
			      0);

	ck_assert_uint_eq(l.n, 3);
	ck_assert_str_eq(l.a[0].name, "root");
	ck_assert_str_eq(l.a[0].home, "/root");
	ck_assert_uint_eq(l.a[0].uid, 0);
	ck_assert_str_eq(l.a[1].name, "me");
	ck_assert_str_eq(l.a[1].home, "/home/me");
	ck_assert_uint_eq(l.a[1].uid, 1000);
	ck_assert_str_eq(l.a[2].name, "last");
	ck_assert_str_eq(l.a[2].home, "/b");
	ck_assert_uint_eq(l.a[2].uid, UINT32_MAX);
}
END_TEST

START_TEST(odd_texts)
{
	static const char *const none[] =
		{"", "\n", "\n\n\n", ":", "::::::", "a", "a:b:c:d:e:f:g:h\n", "\xff\xff\n"};

	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		ck_assert_uint_eq(parse(none[i], 0).n, 0);
	/* More fields than there are: the shell has colons, the rest is as it should be. */
	struct list l = parse("a:x:7:7:c:/h:/s:/t:u\nb:x:8:8:::\n", 0);
	ck_assert_uint_eq(l.n, 2);
	ck_assert_str_eq(l.a[0].home, "/h");
	ck_assert_str_eq(l.a[1].home, "");
}
END_TEST

START_TEST(stops_when_told)
{
	static const char text[] = "a:x:1:1::/a:\nb:x:2:2::/b:\nc:x:3:3::/c:\n";

	for (size_t n = 1; n <= 3; n++)
		ck_assert_uint_eq(parse(text, n).n, n);
}
END_TEST

struct check {
	FILE *file;
	size_t n;
};

static bool same(void *self, const struct account *a)
{
	struct check *c = self;
	struct passwd *pw = fgetpwent(c->file);

	ck_assert_ptr_nonnull(pw);
	ck_assert_str_eq(a->name, pw->pw_name);
	ck_assert_str_eq(a->home, pw->pw_dir);
	ck_assert_uint_eq(a->uid, pw->pw_uid);
	c->n++;
	return true;
}

/* The accounts of this machine, one by one as libc's parser has them. */
START_TEST(as_libc)
{
	struct check c = {.file = fopen("/etc/passwd", "re")};

	ck_assert_ptr_nonnull(c.file);
	accounts_each(same, &c);
	ck_assert_uint_gt(c.n, 0);
	ck_assert_ptr_null(fgetpwent(c.file));
	ck_assert_int_eq(fclose(c.file), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("policy accounts");
	TCase *c = tcase_create("all");

	tcase_add_test(c, lines);
	tcase_add_test(c, odd_texts);
	tcase_add_test(c, stops_when_told);
	tcase_add_test(c, as_libc);
	suite_add_tcase(s, c);
	return suite_run(s);
}

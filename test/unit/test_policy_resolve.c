/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a name to a file: links by hand, none of them where a sandbox may write.
 */
#include "policy/resolve.h"

#include <limits.h>

#include "test_policy_place.h"

static struct places nowhere = {.n = 0};

static void leads(const char *path, const char *cwd, const char *want)
{
	struct resolved r;
	struct err e;

	CK_WORKS(resolve_path(path, cwd, &nowhere, &r, &e), e);
	ck_assert_str_eq(r.path, want);
	ck_assert(!r.inside);
}

static void tree(void)
{
	put_dir("a/b/c");
	put_file("a/b/file", "x");
	put_link("a/down", "b/c");
	put_link("a/up", "..");
	put_link("a/abs", "+a/b");
	put_link("a/chain", "abs/../down");
	put_link("a/slashes", ".//b/.//c/");
	put_link("a/loop", "loop2");
	put_link("a/loop2", "loop");
	put_link("a/dangling", "nothing/there");
}

START_TEST(plain_names)
{
	const char *top = place_top;
	char want[PATH_TEXT];

	tree();
	snprintf(want, sizeof(want), "%s/a/b/c", top);
	leads(at("a/b/c"), NULL, want);
	leads(at("a/b/c/"), NULL, want);
	leads(at("a//b/./c/."), NULL, want);
	leads(at("a/b/../b/c"), NULL, want);
	leads("a/b/c", top, want);
	leads("./a/b/../../a/b/c", top, want);
	leads("c", at("a/b"), want);
	leads(".", at("a/b/c"), want);
	leads("../c", at("a/b/c"), want);
	leads("/", NULL, "/");
	leads("/..", NULL, "/");
	leads("/../../.", NULL, "/");
	leads("/usr/..", NULL, "/");
}
END_TEST

START_TEST(links)
{
	char want[PATH_TEXT];
	struct resolved r;
	struct err e;

	tree();
	snprintf(want, sizeof(want), "%s/a/b/c", place_top);
	leads(at("a/down"), NULL, want);
	leads(at("a/chain"), NULL, want);
	leads(at("a/slashes"), NULL, want);
	leads(at("a/abs/c"), NULL, want);
	leads(at("a/up/a/down"), NULL, want);
	/* As the kernel: `..` behind a link is the parent of what it leads to. */
	snprintf(want, sizeof(want), "%s/a/b", place_top);
	leads(at("a/down/.."), NULL, want);
	leads(at("a/abs"), NULL, want);
	CK_WORKS(resolve_path(at("a/abs/file"), NULL, &nowhere, &r, &e), e);
	struct stat st = stat_of("a/b/file");
	ck_assert(S_ISREG(r.st.st_mode));
	ck_assert(r.st.st_ino == st.st_ino && r.st.st_dev == st.st_dev);
}
END_TEST

/* The same file as the kernel finds, for all names of a few parts. */
START_TEST(agrees_with_kernel)
{
	static const char *const parts[] = {"a", "b",    "c",  "..",  ".",
					    "",  "down", "up", "abs", "chain"};
	unsigned int found = 0;
	unsigned int missing = 0;

	tree();
	for (unsigned int i = 0; i < 10000; i++) {
		struct resolved r;
		struct err e = {0};
		struct stat st;
		char name[PATH_TEXT];
		snprintf(name, sizeof(name), "%s/%s/%s/%s/%s", place_top, parts[i % 10],
			 parts[i / 10 % 10], parts[i / 100 % 10], parts[i / 1000]);
		bool there = stat(name, &st) == 0;
		int rc = resolve_path(name, NULL, &nowhere, &r, &e);
		ck_assert_msg((rc == 0) == there, "%s: %s", name, e.msg);
		if (!there) {
			missing++;
			continue;
		}
		found++;
		ck_assert_msg(r.st.st_ino == st.st_ino && r.st.st_dev == st.st_dev, "%s", name);
		char *real = realpath(name, NULL);
		ck_assert_ptr_nonnull(real);
		ck_assert_str_eq(r.path, real);
		free(real);
	}
	ck_assert_uint_gt(found, 300);
	ck_assert_uint_gt(missing, 500);
}
END_TEST

START_TEST(refusals)
{
	struct resolved r;
	struct err e;

	tree();
	CK_FAILS(resolve_path("", "/", &nowhere, &r, &e), e, ERR_CONFIG_INVALID, "empty");
	CK_FAILS(resolve_path("x", NULL, &nowhere, &r, &e), e, ERR_CONFIG_INVALID, "vanished");
	CK_FAILS(resolve_path(at("a/none"), NULL, &nowhere, &r, &e), e, ERR_CONFIG_INVALID,
		 "No such file");
	CK_FAILS(resolve_path(at("a/none/../b"), NULL, &nowhere, &r, &e), e, ERR_CONFIG_INVALID,
		 "No such file");
	CK_FAILS(resolve_path(at("a/b/file/x"), NULL, &nowhere, &r, &e), e, ERR_CONFIG_INVALID,
		 "Not a directory");
	CK_FAILS(resolve_path(at("a/dangling"), NULL, &nowhere, &r, &e), e, ERR_CONFIG_INVALID,
		 "No such file");
	CK_FAILS(resolve_path(at("a/loop"), NULL, &nowhere, &r, &e), e, ERR_CONFIG_INVALID,
		 "too many links");
}
END_TEST

START_TEST(limit_of_links)
{
	char name[32], text[32];
	struct resolved r;
	struct err e;

	put_dir("end");
	put_link("l1", "end");
	for (int i = 2; i <= MAX_LINKS + 1; i++) {
		snprintf(name, sizeof(name), "l%d", i);
		snprintf(text, sizeof(text), "l%d", i - 1);
		put_link(name, text);
	}
	CK_WORKS(resolve_path(at("l%d", MAX_LINKS), NULL, &nowhere, &r, &e), e);
	ck_assert_str_eq(r.path, at("end"));
	CK_FAILS(resolve_path(at("l%d", MAX_LINKS + 1), NULL, &nowhere, &r, &e), e,
		 ERR_CONFIG_INVALID, "too many links");
}
END_TEST

START_TEST(limit_of_lengths)
{
	char name[NAME_MAX + 2];
	static char path[3 * PATH_TEXT];
	struct resolved r;
	struct err e;

	memset(name, 'n', sizeof(name));
	name[NAME_MAX] = '\0';
	put_dir(name);
	CK_WORKS(resolve_path(at("%s", name), NULL, &nowhere, &r, &e), e);
	name[NAME_MAX] = 'n';
	name[NAME_MAX + 1] = '\0';
	CK_FAILS(resolve_path(at("%s", name), NULL, &nowhere, &r, &e), e, ERR_CONFIG_INVALID,
		 "a name in it is too long");
	memset(path, '/', sizeof(path));
	path[2 * PATH_TEXT - 1] = '\0';
	CK_WORKS(resolve_path(path, NULL, &nowhere, &r, &e), e);
	path[2 * PATH_TEXT - 1] = '/';
	path[2 * PATH_TEXT] = '\0';
	CK_FAILS(resolve_path(path, NULL, &nowhere, &r, &e), e, ERR_CONFIG_INVALID, "too long");
}
END_TEST

/* A canonical path of PATH_TEXT - 1 bytes is the longest, however it is reached. */
START_TEST(limit_of_result)
{
	char name[NAME_MAX + 1];
	char path[2 * PATH_TEXT];
	struct resolved r;
	struct err e;
	int dir = open(place_top, O_RDONLY | O_DIRECTORY);
	size_t n = (size_t)snprintf(path, sizeof(path), "%s", place_top);

	while (n < PATH_TEXT - 1) {
		size_t more = PATH_TEXT - 1 - n - 1;
		if (more > 200)
			more = 100;
		memset(name, 'd', more);
		name[more] = '\0';
		ck_assert_int_eq(mkdirat(dir, name, 0755), 0);
		int next = openat(dir, name, O_RDONLY | O_DIRECTORY);
		ck_assert_int_ge(next, 0);
		(void)close(dir);
		dir = next;
		n += (size_t)snprintf(path + n, sizeof(path) - n, "/%s", name);
	}
	ck_assert_uint_eq(n, PATH_TEXT - 1);
	CK_WORKS(resolve_path(path, NULL, &nowhere, &r, &e), e);
	ck_assert_str_eq(r.path, path);
	snprintf(path + n, sizeof(path) - n, "/x");
	CK_FAILS(resolve_path(path, NULL, &nowhere, &r, &e), e, ERR_CONFIG_INVALID, "too long");
	(void)close(dir);
}
END_TEST

static struct places one_place(const char *name)
{
	struct places p = {.n = 0};
	struct stat st = stat_of(name);

	ck_assert(places_add(&p, &st));
	return p;
}

START_TEST(inside)
{
	static const struct {
		const char *path;
		bool inside;
	} rows[] = {
		{"w", true},          {"w/d", true},        {"w/d/f", true},
		{"w/../o", false},    {"w/d/../..", false}, {"w/d/../d/f", true},
		{"o", false},         {"o/in", true},       {"o/in/d", true},
		{"o/in/../o", false}, {"", false},          {"w/d/../../w/d", true},
	};
	struct resolved r;
	struct err e;

	put_dir("w/d");
	put_dir("o");
	put_file("w/d/f", "x");
	put_link("o/in", "../w");
	struct places w = one_place("w");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CK_WORKS(resolve_path(at("%s", rows[i].path), NULL, &w, &r, &e), e);
		ck_assert_msg(r.inside == rows[i].inside, "%s", rows[i].path);
	}
}
END_TEST

/* What lies in a writable place may have been put there by an earlier command. */
START_TEST(no_link_inside)
{
	static const char *const bad[] = {"w/l",          "w/d/l",    "w/d/l/x", "w/abs",
					  "w/self",       "o/in/l",   "o/two",   "w/d/../l",
					  "o/../w/l",     "w/l/../o", "w/gone",  "o/deep/l",
					  "w/d/../../w/l"};
	struct resolved r;
	struct err e;

	put_dir("w/d");
	put_dir("o/x");
	put_link("w/l", "../o");
	put_link("w/d/l", "../../o");
	put_link("w/abs", "+o");
	put_link("w/self", "d");
	put_link("w/gone", "nothing");
	put_link("o/in", "../w");
	put_link("o/two", "in/l");
	put_link("o/deep", "+w/d");
	struct places w = one_place("w");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err ignored = {0};
		if (strcmp(bad[i], "w/gone") != 0) /* the same name leads somewhere elsewhere */
			CK_WORKS(resolve_path(at("%s", bad[i]), NULL, &nowhere, &r, &ignored),
				 ignored);
		CK_FAILS(resolve_path(at("%s", bad[i]), NULL, &w, &r, &e), e, ERR_POLICY_DENIED,
			 "a link in a directory that a sandbox may write");
		ck_assert(e.hint[0]);
	}
	/* The links of others are followed as ever. */
	CK_WORKS(resolve_path(at("o/in/d"), NULL, &w, &r, &e), e);
}
END_TEST

START_TEST(odd_names_are_shown_safely)
{
	struct resolved r;
	struct err e;

	put_dir("w");
	put_link("w/\x1b[2J\n\xff", "x");
	struct places w = one_place("w");
	CK_FAILS(resolve_path(at("w/\x1b[2J\n\xff"), NULL, &w, &r, &e), e, ERR_POLICY_DENIED,
		 "\\x1b[2J\\x0a\\xff");
	CK_FAILS(resolve_path(at("w/no\nway"), NULL, &w, &r, &e), e, ERR_CONFIG_INVALID,
		 "no\\x0away");
}
END_TEST

START_TEST(places)
{
	struct places p = {.n = 0};
	struct stat st = {.st_dev = 7};

	for (ino_t i = 0; i < MAX_PLACES; i++) {
		st.st_ino = i;
		ck_assert(!places_have(&p, &st));
		ck_assert(places_add(&p, &st));
		ck_assert(places_add(&p, &st)); /* once is enough */
		ck_assert_uint_eq(p.n, i + 1);
	}
	st.st_ino = MAX_PLACES;
	ck_assert(!places_add(&p, &st));
	ck_assert(!places_have(&p, &st));
	st.st_ino = 5;
	ck_assert(places_add(&p, &st));
	st.st_dev = 8; /* the same number on another device is another file */
	ck_assert(!places_have(&p, &st));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("policy resolve");
	TCase *c = tcase_create("all");

	tcase_add_checked_fixture(c, place_setup, place_close);
	tcase_set_timeout(c, 60);
	tcase_add_test(c, plain_names);
	tcase_add_test(c, links);
	tcase_add_test(c, agrees_with_kernel);
	tcase_add_test(c, refusals);
	tcase_add_test(c, limit_of_links);
	tcase_add_test(c, limit_of_lengths);
	tcase_add_test(c, limit_of_result);
	tcase_add_test(c, inside);
	tcase_add_test(c, no_link_inside);
	tcase_add_test(c, odd_names_are_shown_safely);
	tcase_add_test(c, places);
	suite_add_tcase(s, c);
	return suite_run(s);
}

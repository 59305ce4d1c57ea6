/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of the caller's git configuration.
 */
#include <string.h>

#include "policy/gitconfig.h"
#include "policy/gitid.h"
#include "test_base_suite.h"

static char included[MAX_GIT_VALUE];

static void remember(void *self, const char *path)
{
	(void)self;
	memcpy(included, path, strlen(path) + 1);
}

static struct git_identity parse(const char *text)
{
	struct git_identity id = {.name = ""};

	included[0] = '\0';
	gitid_parse(text, strlen(text), &id, remember, NULL);
	return id;
}

START_TEST(reads_identity)
{
	struct git_identity id = parse("[user]\n\tname = Ada Lovelace  # a comment\n"
				       "\temail=\"ada@example.com\"\n[init] defaultBranch = main\n"
				       "[include]\n\tpath = ~/more\n");

	ck_assert_str_eq(id.name, "Ada Lovelace");
	ck_assert_str_eq(id.email, "ada@example.com");
	ck_assert_str_eq(id.branch, "main");
	ck_assert_str_eq(included, "~/more");
}
END_TEST

START_TEST(takes_nothing_else)
{
	struct git_identity id =
		parse("[user \"work\"]\n\tname = Other\n[alias]\n\tname = !sh\n"
		      "[includeIf \"gitdir:x\"]\n\tpath = /x\n[user]\n\tsigningkey = K\n");

	ck_assert_str_eq(id.name, "");
	ck_assert_str_eq(included, "");
}
END_TEST

START_TEST(quotes_escapes_and_lines)
{
	ck_assert_str_eq(parse("[user]\nname = \"a # b\" ; c\n").name, "a # b");
	ck_assert_str_eq(parse("[user]\nname = a\\\"b\\\\c\n").name, "a\"b\\c");
	ck_assert_str_eq(parse("[user]\nname = one \\\n two\n").name, "one  two");
	ck_assert_str_eq(parse("[user]\r\nname = cr\r\n").name, "cr");
	ck_assert_str_eq(parse("[user]\nname = first\nname = last\n").name, "last");
	ck_assert_str_eq(parse("[user]\nname = \"open\nemail = x\n").name, "");
	ck_assert_str_eq(parse("[user]\nname = bad\\q\n").name, "");
	ck_assert_str_eq(parse("[USER]\nNAME = case\n").name, "case");
}
END_TEST

START_TEST(odd_files)
{
	/* A long alias with tabs, as people write it, does not end the reading. */
	ck_assert_str_eq(parse("[alias]\n\tlg = !git log \\\n\t\t--graph\n[user]\nname = Ada\n")
				 .name,
			 "Ada");
	/* Alone it is no name, and the one before stays. */
	ck_assert_str_eq(parse("[user]\nname = Ada\nname\n").name, "Ada");
	/* git refuses such a file; what came before is known all the same. */
	ck_assert_str_eq(parse("[user]\nname = Ada\n???\n[user]\nname = Bob\n").name, "Ada");
}
END_TEST

START_TEST(limit_of_a_value)
{
	char text[MAX_GIT_IDENTITY + 64];

	for (size_t extra = 0; extra < 2; extra++) {
		size_t n = MAX_GIT_IDENTITY - 1 + extra;
		size_t at = (size_t)snprintf(text, sizeof(text), "[user]\nname = ");
		memset(text + at, 'x', n);
		text[at + n] = '\0';
		ck_assert_uint_eq(strlen(parse(text).name), extra ? 0 : n);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("policy/gitid");
	TCase *tests = tcase_create("gitid");

	tcase_add_test(tests, reads_identity);
	tcase_add_test(tests, takes_nothing_else);
	tcase_add_test(tests, quotes_escapes_and_lines);
	tcase_add_test(tests, odd_files);
	tcase_add_test(tests, limit_of_a_value);
	suite_add_tcase(suite, tests);
	return suite_run(suite);
}

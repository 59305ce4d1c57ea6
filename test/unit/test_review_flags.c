/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each kind of secret finds its example, and no kind finds what its own says
 * it must not; what else is flagged.
 */
#include "review/flags.h"
#include "review/secrets.h"

#include "base/base.h"
#include "test_base_suite.h"

static struct secrets *all;

static void setup(void)
{
	struct err e = {0};

	ck_assert_msg(secrets_new(&all, &e) == 0, "%s", e.msg);
}

static void teardown(void)
{
	secrets_free(all);
}

/* The name of the kind that is found first, or "". */
static const char *first(const char *text, const char *before)
{
	static struct secret_found found[MAX_SECRETS];
	bool given_up = false;
	size_t n = secrets_find(all, text, strlen(text), before, before ? strlen(before) : 0, found,
				&given_up);

	ck_assert(!given_up);
	return n ? found[0].kind->name : "";
}

START_TEST(examples)
{
	char text[2048];

	ck_assert_uint_ge(secret_kind_count, 40);
	for (size_t i = 0; i < secret_kind_count; i++) {
		const struct secret_kind *k = &secret_kinds[i];
		static const char *const around[][2] = {{"", ""},
							{"x = ", "\n"},
							{"\n", "\r\nmore"}};
		for (size_t a = 0; a < ARRAY_LEN(around); a++) {
			if (strchr(k->pattern, '^') && strncmp(k->pattern, "(?m)^", 5) == 0 &&
			    a == 1)
				continue;
			snprintf(text, sizeof(text), "%s%s%s", around[a][0], k->hit, around[a][1]);
			ck_assert_msg(strcmp(first(text, NULL), k->name) == 0, "%s: `%s` is \"%s\"",
				      k->name, text, first(text, NULL));
			ck_assert_msg(strcmp(first(text, text), "") == 0, "%s: was there", k->name);
		}
		ck_assert_msg(strcmp(first(k->miss, NULL), k->name) != 0, "%s: `%s`", k->name,
			      k->miss);
		for (size_t j = 0; j < i; j++)
			ck_assert_str_ne(secret_kinds[j].name, k->name);
	}
}
END_TEST

START_TEST(shown)
{
	struct secret_found found[MAX_SECRETS];
	char text[128];
	bool given_up = false;

	snprintf(text, sizeof(text),
		 "one\ntwo\nkey: gh"
		 "p_%s\n",
		 "abcdefghijklmnopqrstuvwxyz0123456789");
	ck_assert_uint_eq(secrets_find(all, text, strlen(text), NULL, 0, found, &given_up), 1);
	ck_assert_uint_eq(found[0].line, 3);
	ck_assert_str_eq(found[0].shown, "ghp_…");
}
END_TEST

/* Made to be slow: the limit ends it, or there is nothing to be slow about. */
START_TEST(limits)
{
	struct secret_found found[MAX_SECRETS];
	size_t n = (size_t)2 << 20;
	char *text = malloc(n);
	bool given_up = false;
	static const char *const fills[] = {"aws", "password",    "a://", "A",
					    "eyJ", "secret_key:", "-",    "x:"};

	ck_assert_ptr_nonnull(text);
	for (size_t i = 0; i < ARRAY_LEN(fills); i++) {
		size_t len = strlen(fills[i]);
		for (size_t at = 0; at < n; at++)
			text[at] = fills[i][at % len];
		(void)secrets_find(all, text, n, NULL, 0, found, &given_up);
	}
	for (size_t at = 0; at < n; at++)
		text[at] = (char)(at * 2654435761u >> 13);
	(void)secrets_find(all, text, n, NULL, 0, found, &given_up);
	free(text);
}
END_TEST

START_TEST(links)
{
	static const struct {
		const char *path, *target;
		bool leaves;
	} cases[] = {
		{"a", "/etc/passwd", true},
		{"a", "..", true},
		{"a", "b", false},
		{"d/a", "../b", false},
		{"d/a", "../../b", true},
		{"d/a", "x/../../b", false},
		{"d/a", "x/../../../b", true},
		{"a", "./b/.", false},
		{"a", "", false},
		{"a", "b/../../c", true},
		{"a", "...", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		ck_assert_msg(flags_link_leaves(cases[i].path, cases[i].target) == cases[i].leaves,
			      "%s -> %s", cases[i].path, cases[i].target);
}
END_TEST

START_TEST(members)
{
	static const struct {
		const char *text, *want; /* NULL: none */
	} cases[] = {
		{"{\"scripts\": {\"a\" : \"b c\"}, \"x\": 1}", "{\"a\":\"b c\"}"},
		{"{\"x\": {\"scripts\": 1}, \"scripts\" : [1, 2]}", "[1,2]"},
		{"{\"x\": \"scripts\", \"y\": 2}", NULL},
		{"{\"a\\\"\": 1, \"scripts\": \"\\\"}\"}", "\"\\\"}\""},
		{"", NULL},
		{"{\"scripts\"", NULL},
		{"{\"scripts\":", ""},
		{"{\"scripts\": {\"a\": \"", "{\"a\":\""},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_BUF out = BUF_INIT(4096);
		bool found =
			flags_json_member(cases[i].text, strlen(cases[i].text), "scripts", &out);
		ck_assert_msg(found == (cases[i].want != NULL), "%s", cases[i].text);
		if (found)
			ck_assert_str_eq(buf_cstr(&out), cases[i].want);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("review flags");
	TCase *t = tcase_create("secrets");
	TCase *u = tcase_create("flags");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_test(t, examples);
	tcase_add_test(t, shown);
	tcase_add_test(t, limits);
	suite_add_tcase(s, t);
	tcase_add_test(u, links);
	tcase_add_test(u, members);
	suite_add_tcase(s, u);
	return suite_run(s);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which failures a profile would mend.
 */
#include "run/missed.h"

#include "test_policy_place.h"

static struct view view;

static const char *missed(const char *const *argv, bool absent)
{
	static struct missed m;
	size_t n = 0;

	while (argv[n])
		n++;
	missed_find((char *const *)(uintptr_t)argv, n, absent, at("home"), &view, &m);
	return m.profile;
}

static const char *one(const char *program, bool absent)
{
	return missed((const char *const[]){program, "x", NULL}, absent);
}

static const char *script(const char *text, bool absent)
{
	return missed((const char *const[]){"/bin/bash", "--norc", "-c", text, NULL}, absent);
}

static void is(const char *got, const char *want)
{
	ck_assert_msg(want ? got && strcmp(got, want) == 0 : !got, "%s, not %s", got ? got : "none",
		      want ? want : "none");
}

START_TEST(choice)
{
	struct err e;

	put_dir("home/.cargo/registry");
	is(one("npm", false), NULL); /* nothing of it is there */
	is(one("cargo", false), "rust");
	is(one("/usr/bin/cargo", false), "rust");
	is(one("cargo-x", false), NULL);
	is(one("rustc", false), NULL); /* its failures are about the code */
	is(one("rustc", true), "rust");
	is(script("cd sub && cargo build", false), "rust");
	is(script("./bin/cargo", false), "rust");
	is(script("ls cargo/x; echo cargoes", false), NULL);
	is(script("", false), NULL);
	put_dir("home/.npm/_cacache");
	is(script("true; npm ci", false), "node");
	is(one("node", false), NULL);
	is(one("node", true), "node");
	/* Shown already: no profile would change it. */
	CK_WORKS(view_bind(&view, at("home/.cargo"), NULL, 0, NULL, &e), e);
	is(one("cargo", false), NULL);
	view_release(&view);
}
END_TEST

START_TEST(odd)
{
	struct missed m;
	char *none[] = {NULL};
	char long_word[300];
	char hint[MISSED_TEXT];

	missed_find(none, 0, true, at("home"), &view, &m);
	ck_assert_ptr_null(m.profile);
	memset(long_word, 'a', sizeof(long_word) - 1);
	long_word[sizeof(long_word) - 1] = '\0';
	is(one(long_word, true), NULL);
	is(script(long_word, true), NULL);
	put_dir("home/go/pkg/mod");
	char *argv[] = {(char *)(uintptr_t) "go", NULL};
	missed_find(argv, 1, false, NULL, &view, &m);
	ck_assert_ptr_null(m.profile);
	missed_find(argv, 1, false, at("home"), &view, &m);
	ck_assert_ptr_nonnull(strstr(missed_hint(&m, hint), "--profile go shows go "));
	ck_assert_ptr_nonnull(strstr(hint, "/home/go/pkg/mod"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("missed");
	TCase *c = tcase_create("missed");

	tcase_add_checked_fixture(c, place_setup, place_close);
	tcase_add_test(c, choice);
	tcase_add_test(c, odd);
	suite_add_tcase(s, c);
	return suite_run(s);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sudo and its like are found where a command stands, and nowhere else.
 */
#include "run/privilege.h"

#include <string.h>

#include "base/base.h"
#include "test_base_suite.h"

START_TEST(scripts)
{
	static const struct {
		const char *script, *want;
	} rows[] = {
		{"sudo x", "sudo"},
		{"  sudo", "sudo"},
		{"/usr/bin/sudo -n true", "sudo"},
		{"true; sudo x", "sudo"},
		{"true && su -c y", "su"},
		{"x | sudo tee /etc/f", "sudo"},
		{"a\nb\nsudo c\n", "sudo"},
		{"(doas x)", "doas"},
		{"echo $(pkexec x)", "pkexec"},
		{"echo `sudo x`", "sudo"},
		{"if ! sudo true; then y; fi", "sudo"},
		{"A=1 B='2 3' sudo x", "sudo"},
		{"env FOO=1 sudo x", "sudo"},
		{"for i in 1 2; do run0 x; done", "run0"},
		{"x # a word\nsudo y", "sudo"},
		{"echo 'a;b' && sudo x", "sudo"},
		{"", NULL},
		{"echo sudo", NULL},
		{"man sudo", NULL},
		{"echo 'x; sudo y'", NULL},
		{"echo \"x\nsudo y\"", NULL},
		{"echo x\\; sudo", NULL},
		{"# sudo x", NULL},
		{"sudoku", NULL},
		{"./sudo.sh", NULL},
		{"/opt/sudo/x", NULL},
		{"command -v sudo", NULL},
		{"ls /usr/bin/sudo", NULL},
		{"'unfinished", NULL},
		{"x \\", NULL},
		{"\\", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *got = privilege_in_script(rows[i].script);
		ck_assert_msg((!got && !rows[i].want) ||
				      (got && rows[i].want && strcmp(got, rows[i].want) == 0),
			      "%s: %s", rows[i].script, got ? got : "nothing");
	}
}
END_TEST

START_TEST(commands)
{
	static const struct {
		const char *argv[5], *want;
	} rows[] = {
		{{"sudo", "true"}, "sudo"},
		{{"/bin/su"}, "su"},
		{{"sh", "-c", "x; sudo y"}, "sudo"},
		{{"/bin/bash", "--noprofile", "--norc", "-c", "sudo y"}, "sudo"},
		{{"bash", "-c"}, NULL},
		{{"sh", "sudo"}, NULL},
		{{"echo", "sudo"}, NULL},
		{{"python3", "-c", "sudo x"}, NULL},
		{{""}, NULL},
		{{NULL}, NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t n = 0;
		while (n < 5 && rows[i].argv[n])
			n++;
		const char *got = privilege_named((char *const *)(uintptr_t)rows[i].argv, n);
		ck_assert_msg((!got && !rows[i].want) ||
				      (got && rows[i].want && strcmp(got, rows[i].want) == 0),
			      "row %zu: %s", i, got ? got : "nothing");
	}
}
END_TEST

START_TEST(output)
{
	static const char said[] = "make: x\nsudo: The \"no new privileges\" flag is set, which …";

	ck_assert_str_eq(privilege_in_output(said, sizeof(said) - 1), "sudo");
	ck_assert_ptr_null(privilege_in_output(said, 20));
	ck_assert_ptr_null(privilege_in_output(NULL, 0));
	ck_assert_ptr_null(privilege_in_output("sudo: no", 8));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("run privilege");
	TCase *c = tcase_create("all");

	tcase_add_test(c, scripts);
	tcase_add_test(c, commands);
	tcase_add_test(c, output);
	suite_add_tcase(s, c);
	return suite_run(s);
}

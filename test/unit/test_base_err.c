/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests of base/err.
 */
#include "base/err.h"

#include <errno.h>
#include <signal.h>

#include "base/utf8.h"
#include "test_base_suite.h"

START_TEST(codes_have_distinct_names)
{
	for (int a = 0; a < ERR_CODES; a++) {
		const char *name = err_code_name((enum err_code)a);

		ck_assert_uint_eq(strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"), strlen(name));
		ck_assert_uint_gt(strlen(name), 3);
		for (int b = 0; b < a; b++)
			ck_assert_str_ne(name, err_code_name((enum err_code)b));
	}
	ck_assert_str_eq(err_code_name(ERR_TOOL_TIMEOUT), "TOOL_TIMEOUT");
	ck_assert_str_eq(err_code_name(ERR_SANDBOX_UNAVAILABLE), "SANDBOX_UNAVAILABLE");
	ck_assert_str_eq(err_code_name(ERR_INTERNAL), "INTERNAL");
}
END_TEST

START_TEST(codes_have_the_status_of_the_contract)
{
	for (int c = 0; c < ERR_CODES; c++) {
		int want = 125;

		if (c == ERR_TOOL_TIMEOUT || c == ERR_IDLE_TIMEOUT)
			want = 124;
		if (c == ERR_NOT_EXECUTABLE)
			want = 126;
		if (c == ERR_NOT_FOUND)
			want = 127;
		ck_assert_msg(err_code_status((enum err_code)c) == want, "%s",
			      err_code_name((enum err_code)c));
	}
}
END_TEST

START_TEST(only_busy_is_retryable)
{
	for (int c = 0; c < ERR_CODES; c++)
		ck_assert_str_eq(err_kind_name(err_code_kind((enum err_code)c)),
				 c == ERR_BUSY ? "retryable" : "terminal");
	ck_assert_str_eq(err_kind_name(ERR_KIND_PENDING), "pending");
}
END_TEST

START_TEST(unknown_code_aborts)
{
	suite_expect_abort();
	err_code_name(ERR_CODES);
}
END_TEST

START_TEST(set_fills_everything)
{
	struct err e = {.code = ERR_BUSY, .sys = 7, .msg = "old", .hint = "old"};

	ck_assert_int_eq(err_set(&e, ERR_POLICY_DENIED, "%s of %d", "rule", 3), -1);
	ck_assert_int_eq(e.code, ERR_POLICY_DENIED);
	ck_assert_int_eq(e.sys, 0);
	ck_assert_str_eq(e.msg, "rule of 3");
	ck_assert_str_eq(e.hint, "");
}
END_TEST

START_TEST(set_may_quote_its_own_message)
{
	struct err e;

	(void)err_set(&e, ERR_BUSY, "first");
	(void)err_set(&e, ERR_INTERNAL, "second after %s", e.msg);
	ck_assert_str_eq(e.msg, "second after first");
}
END_TEST

START_TEST(sys_tells_and_keeps_errno)
{
	struct err e;

	errno = ENOENT;
	ck_assert_int_eq(err_sys(&e, "open %s", "/x"), -1);
	ck_assert_int_eq(e.code, ERR_INTERNAL);
	ck_assert_int_eq(e.sys, ENOENT);
	ck_assert_str_eq(e.msg, "open /x: No such file or directory");
	ck_assert_int_eq(errno, ENOENT);
}
END_TEST

START_TEST(sys_keeps_the_reason_behind_a_long_text)
{
	char path[5000];
	struct err e;

	memset(path, 'p', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	errno = EACCES;
	(void)err_sys(&e, "open %s", path);
	ck_assert_uint_le(strlen(e.msg), ERR_MSG_MAX - 1);
	ck_assert_ptr_nonnull(strstr(e.msg, "p\xe2\x80\xa6: Permission denied"));
}
END_TEST

START_TEST(wrap_puts_context_first)
{
	struct err e;

	(void)err_set(&e, ERR_BUSY, "taken");
	(void)err_hint(&e, "wait");
	ck_assert_int_eq(err_wrap(&e, "session %d", 4), -1);
	ck_assert_int_eq(e.code, ERR_BUSY);
	ck_assert_str_eq(e.msg, "session 4: taken");
	ck_assert_str_eq(e.hint, "wait");
}
END_TEST

START_TEST(wrap_keeps_the_cause_behind_a_long_context)
{
	char context[3000];
	struct err e;

	memset(context, 'c', sizeof(context) - 1);
	context[sizeof(context) - 1] = '\0';
	(void)err_set(&e, ERR_BUSY, "the cause");
	(void)err_wrap(&e, "%s", context);
	ck_assert_ptr_nonnull(strstr(e.msg, "c\xe2\x80\xa6: the cause"));
	for (int i = 0; i < 10; i++)
		(void)err_wrap(&e, "%s", context);
	ck_assert_uint_lt(strlen(e.msg), ERR_MSG_MAX);
	ck_assert(utf8_valid(e.msg, strlen(e.msg)));
}
END_TEST

START_TEST(message_limit)
{
	char text[ERR_MSG_MAX + 2];
	struct err e;

	memset(text, 'x', sizeof(text));
	text[ERR_MSG_MAX - 1] = '\0'; /* at the limit */
	(void)err_set(&e, ERR_BUSY, "%s", text);
	ck_assert_str_eq(e.msg, text);
	text[ERR_MSG_MAX - 1] = 'x';
	text[ERR_MSG_MAX] = '\0'; /* one more */
	(void)err_set(&e, ERR_BUSY, "%s", text);
	ck_assert_uint_eq(strlen(e.msg), ERR_MSG_MAX - 1);
	ck_assert_str_eq(e.msg + ERR_MSG_MAX - 1 - 4, "x\xe2\x80\xa6");
}
END_TEST

START_TEST(hint_limit)
{
	char text[ERR_HINT_MAX + 2];
	struct err e;

	(void)err_set(&e, ERR_BUSY, "m");
	memset(text, 'x', sizeof(text));
	text[ERR_HINT_MAX - 1] = '\0';
	ck_assert_int_eq(err_hint(&e, "%s", text), -1);
	ck_assert_str_eq(e.hint, text);
	text[ERR_HINT_MAX - 1] = 'x';
	text[ERR_HINT_MAX] = '\0';
	(void)err_hint(&e, "%s", text);
	ck_assert_str_eq(e.hint + ERR_HINT_MAX - 1 - 4, "x\xe2\x80\xa6");
	ck_assert_str_eq(e.msg, "m");
}
END_TEST

START_TEST(foreign_text_is_made_safe)
{
	struct err e;

	(void)err_set(&e, ERR_BUSY, "%s", "a\nb\x1b[31m\xff \xc2\x9b \xe2\x80\xae \xc3\xa9");
	ck_assert_str_eq(e.msg, "a\\x0ab\\x1b[31m\\xff \\u{9b} \\u{202e} \xc3\xa9");
	(void)err_wrap(&e, "in\r%s", "d");
	ck_assert_str_eq(e.msg, "in\\x0dd: a\\x0ab\\x1b[31m\\xff \\u{9b} \\u{202e} \xc3\xa9");
	(void)err_hint(&e, "tab\there");
	ck_assert_str_eq(e.hint, "tab\\x09here");
	errno = EPERM;
	(void)err_sys(&e, "open %s", "x\n");
	ck_assert_str_eq(e.msg, "open x\\x0a: Operation not permitted");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base_err");
	TCase *tests = tcase_create("err");

	tcase_add_test(tests, codes_have_distinct_names);
	tcase_add_test(tests, codes_have_the_status_of_the_contract);
	tcase_add_test(tests, only_busy_is_retryable);
	tcase_add_test_raise_signal(tests, unknown_code_aborts, SIGABRT);
	tcase_add_test(tests, set_fills_everything);
	tcase_add_test(tests, set_may_quote_its_own_message);
	tcase_add_test(tests, sys_tells_and_keeps_errno);
	tcase_add_test(tests, sys_keeps_the_reason_behind_a_long_text);
	tcase_add_test(tests, wrap_puts_context_first);
	tcase_add_test(tests, wrap_keeps_the_cause_behind_a_long_context);
	tcase_add_test(tests, message_limit);
	tcase_add_test(tests, hint_limit);
	tcase_add_test(tests, foreign_text_is_made_safe);
	suite_add_tcase(suite, tests);
	return suite_run(suite);
}

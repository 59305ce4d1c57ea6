/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests of base/json.
 */
#include "base/json.h"

#include <signal.h>

#include "base/base.h"
#include "base/utf8.h"
#include "test_base_suite.h"

START_TEST(document_of_everything)
{
	AUTO_BUF b = BUF_INIT(1000);
	struct json j = JSON_INIT(&b);
	struct err e;

	json_obj_begin(&j);
	json_kv_uint(&j, "version", 1);
	json_kv_str(&j, "name", "a");
	json_kv_str(&j, "none", NULL);
	json_kv_bool(&j, "yes", true);
	json_kv_bool(&j, "no", false);
	json_kv_int(&j, "min", INT64_MIN);
	json_kv_uint(&j, "max", UINT64_MAX);
	json_kv_null(&j, "null");
	json_key(&j, "list");
	json_arr_begin(&j);
	json_int(&j, -1);
	json_str(&j, "x");
	json_arr_begin(&j);
	json_arr_end(&j);
	json_obj_begin(&j);
	json_obj_end(&j);
	json_bool(&j, true);
	json_nil(&j);
	json_arr_end(&j);
	json_key(&j, "data");
	json_base64(&j, "\xff\x00z", 3);
	json_obj_end(&j);
	CK_WORKS(json_finish(&j, ERR_INTERNAL, &e), e);
	ck_assert_str_eq(buf_cstr(&b),
			 "{\"version\":1,\"name\":\"a\",\"none\":null,\"yes\":true,\"no\":false,"
			 "\"min\":-9223372036854775808,\"max\":18446744073709551615,\"null\":null,"
			 "\"list\":[-1,\"x\",[],{},true,null],\"data\":\"/wB6\"}");
}
END_TEST

START_TEST(a_scalar_is_a_document)
{
	AUTO_BUF b = BUF_INIT(100);
	struct json j = JSON_INIT(&b);
	struct err e;

	json_str(&j, "only");
	CK_WORKS(json_finish(&j, ERR_INTERNAL, &e), e);
	ck_assert_str_eq(buf_cstr(&b), "\"only\"");
}
END_TEST

START_TEST(strings_are_escaped)
{
	static const struct {
		const char *in;
		const char *out;
	} rows[] = {
		{"", "\"\""},
		{"plain /text/", "\"plain /text/\""},
		{"\"\\", "\"\\\"\\\\\""},
		{"\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\""},
		{"\x01\x1b[0m", "\"\\u0001\\u001b[0m\""},
		{"\x7f", "\"\\u007f\""},
		{"\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0", "\"\\u0080\\u009b\\u009f\xc2\xa0\""},
		{"\xe2\x80\xa8\xe2\x80\xa9", "\"\\u2028\\u2029\""},
		{"\xe2\x80\xae\xe2\x81\xa6\xd8\x9c", "\"\\u202e\\u2066\\u061c\""},
		{"\xef\xbb\xbf", "\"\\ufeff\""},
		{"\xf3\xa0\x80\x81", "\"\\udb40\\udc01\""},
		{"gr\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80!",
		 "\"gr\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80!\""},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_BUF b = BUF_INIT(100);
		struct json j = JSON_INIT(&b);
		struct err e;

		json_str(&j, rows[i].in);
		CK_WORKS(json_finish(&j, ERR_INTERNAL, &e), e);
		ck_assert_str_eq(buf_cstr(&b), rows[i].out);
	}
}
END_TEST

START_TEST(strings_with_length)
{
	AUTO_BUF b = BUF_INIT(100);
	struct json j = JSON_INIT(&b);
	struct err e;

	json_strn(&j, "a\0bcd", 4);
	CK_WORKS(json_finish(&j, ERR_INTERNAL, &e), e);
	ck_assert_str_eq(buf_cstr(&b), "\"a\\u0000bc\"");
}
END_TEST

START_TEST(invalid_text_fails)
{
	static const char *const rows[] = {"\xff", "ok \xc3", "\xed\xa0\x80", "\xc0\x80"};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_BUF b = BUF_INIT(100);
		struct json j = JSON_INIT(&b);
		struct err e;

		json_arr_begin(&j);
		json_str(&j, rows[i]);
		json_arr_end(&j);
		CK_FAILS(json_finish(&j, ERR_BUSY, &e), e, ERR_BUSY, "holds invalid text");
	}
}
END_TEST

START_TEST(text_shows_invalid_bytes)
{
	AUTO_BUF b = BUF_INIT(100);
	struct json j = JSON_INIT(&b);
	struct err e;

	json_text(&j, "/a\xff/\xc3\xbc\n\xe2\x80", 9);
	CK_WORKS(json_finish(&j, ERR_INTERNAL, &e), e);
	ck_assert_str_eq(buf_cstr(&b), "\"/a\\\\xff/\xc3\xbc\\n\\\\xe2\\\\x80\"");
}
END_TEST

START_TEST(cap_is_kept)
{
	AUTO_BUF b = BUF_INIT(8);
	struct json at = JSON_INIT(&b);
	struct err e;

	json_str(&at, "123456");
	CK_WORKS(json_finish(&at, ERR_INTERNAL, &e), e);
	buf_clear(&b);
	struct json past = JSON_INIT(&b);
	json_str(&past, "1234567");
	CK_FAILS(json_finish(&past, ERR_OUTPUT_LIMIT, &e), e, ERR_OUTPUT_LIMIT,
		 "does not fit into 8 bytes");
	buf_clear(&b);
	struct json bytes = JSON_INIT(&b);
	json_base64(&bytes, "123456", 6);
	CK_FAILS(json_finish(&bytes, ERR_OUTPUT_LIMIT, &e), e, ERR_OUTPUT_LIMIT, "does not fit");
}
END_TEST

START_TEST(escapes_do_not_pass_the_cap)
{
	AUTO_BUF b = BUF_INIT(7);
	struct json j = JSON_INIT(&b);
	struct err e;

	json_str(&j, "\x1b");
	CK_FAILS(json_finish(&j, ERR_INTERNAL, &e), e, ERR_INTERNAL, "does not fit");
	ck_assert_uint_le(b.n, 7);
}
END_TEST

START_TEST(depth_at_the_limit)
{
	AUTO_BUF b = BUF_INIT(100);
	struct json j = JSON_INIT(&b);
	struct err e;

	for (int i = 0; i < JSON_DEPTH_MAX; i++)
		json_arr_begin(&j);
	json_int(&j, 0);
	for (int i = 0; i < JSON_DEPTH_MAX; i++)
		json_arr_end(&j);
	CK_WORKS(json_finish(&j, ERR_INTERNAL, &e), e);
	ck_assert_str_eq(buf_cstr(&b), "[[[[[[[[[[[[[[[[0]]]]]]]]]]]]]]]]");
}
END_TEST

START_TEST(output_is_always_safe)
{
	suite_seed();
	for (int round = 0; round < 5000; round++) {
		AUTO_BUF b = BUF_INIT(1000);
		struct json j = JSON_INIT(&b);
		char in[60];
		size_t n = (size_t)random() % sizeof(in);
		struct err e;
		uint32_t cp;

		for (size_t i = 0; i < n; i++)
			in[i] = (char)(random() % 3 ? random()
						    : "\xe2\x80\xae\x9b\"\\"[random() % 6]);
		json_text(&j, in, n);
		CK_WORKS(json_finish(&j, ERR_INTERNAL, &e), e);
		for (size_t i = 0; i < b.n;) {
			size_t used = utf8_decode(b.p + i, b.n - i, &cp);

			ck_assert_uint_gt(used, 0);
			ck_assert(!utf8_is_unsafe(cp));
			if (cp == '\\') { /* only known escapes, each whole */
				ck_assert_ptr_nonnull(memchr("\"\\bfnrtu", b.p[i + 1], 8));
				used = b.p[i + 1] == 'u' ? 6 : 2;
			} else if (cp == '"') {
				ck_assert(i == 0 || i == b.n - 1);
			}
			i += used;
		}
	}
}
END_TEST

/* Wrong nesting: each is our bug and must not get as far as a document. */

static void misuse_key_in_array(struct json *j)
{
	json_arr_begin(j);
	json_key(j, "k");
}

static void misuse_value_without_key(struct json *j)
{
	json_obj_begin(j);
	json_int(j, 1);
}

static void misuse_two_keys(struct json *j)
{
	json_obj_begin(j);
	json_key(j, "a");
	json_key(j, "b");
}

static void misuse_key_without_value(struct json *j)
{
	json_obj_begin(j);
	json_key(j, "a");
	json_obj_end(j);
}

static void misuse_wrong_end(struct json *j)
{
	json_obj_begin(j);
	json_arr_end(j);
}

static void misuse_end_too_often(struct json *j)
{
	json_arr_begin(j);
	json_arr_end(j);
	json_arr_end(j);
}

static void misuse_two_documents(struct json *j)
{
	json_int(j, 1);
	json_int(j, 2);
}

static void misuse_open_end(struct json *j)
{
	struct err e;

	json_arr_begin(j);
	(void)!json_finish(j, ERR_INTERNAL, &e);
}

static void misuse_nothing(struct json *j)
{
	struct err e;

	(void)!json_finish(j, ERR_INTERNAL, &e);
}

static void misuse_invalid_key(struct json *j)
{
	json_obj_begin(j);
	json_key(j, "\xff");
}

static void misuse_depth(struct json *j)
{
	for (int i = 0; i <= JSON_DEPTH_MAX; i++)
		json_arr_begin(j);
}

static void (*const misuses[])(struct json *) = {
	misuse_key_in_array,  misuse_value_without_key,
	misuse_two_keys,      misuse_key_without_value,
	misuse_wrong_end,     misuse_end_too_often,
	misuse_two_documents, misuse_open_end,
	misuse_nothing,       misuse_invalid_key,
	misuse_depth,
};

START_TEST(wrong_nesting_aborts)
{
	AUTO_BUF b = BUF_INIT(1000);
	struct json j = JSON_INIT(&b);

	suite_expect_abort();
	misuses[_i](&j);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base_json");
	TCase *tests = tcase_create("json");

	tcase_add_test(tests, document_of_everything);
	tcase_add_test(tests, a_scalar_is_a_document);
	tcase_add_test(tests, strings_are_escaped);
	tcase_add_test(tests, strings_with_length);
	tcase_add_test(tests, invalid_text_fails);
	tcase_add_test(tests, text_shows_invalid_bytes);
	tcase_add_test(tests, cap_is_kept);
	tcase_add_test(tests, escapes_do_not_pass_the_cap);
	tcase_add_test(tests, depth_at_the_limit);
	tcase_add_test(tests, output_is_always_safe);
	tcase_add_loop_test_raise_signal(tests, wrong_nesting_aborts, SIGABRT, 0,
					 (int)ARRAY_LEN(misuses));
	suite_add_tcase(suite, tests);
	return suite_run(suite);
}

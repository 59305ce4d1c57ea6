/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests of base/buf and base/base64.
 */
#include "base/buf.h"

#include <signal.h>
#include <stdint.h>

#include "base/base.h"
#include "base/base64.h"
#include "test_base_suite.h"

/* The out-of-memory test asks for more than the sanitizer likes to give. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

START_TEST(starts_empty)
{
	AUTO_BUF b = BUF_INIT(10);
	struct err e;

	ck_assert_str_eq(buf_cstr(&b), "");
	ck_assert_uint_eq(b.n, 0);
	CK_WORKS(buf_check(&b, "it", ERR_INTERNAL, &e), e);
}
END_TEST

START_TEST(add_at_the_limit)
{
	AUTO_BUF b = BUF_INIT(8);

	ck_assert_int_eq(buf_add(&b, "12345", 5), 0);
	ck_assert_int_eq(buf_str(&b, "678"), 0);
	ck_assert_str_eq(buf_cstr(&b), "12345678");
	ck_assert_int_eq(buf_add(&b, NULL, 0), 0);
	ck_assert(!b.failed);
	ck_assert_int_eq(buf_char(&b, '9'), -1);
	ck_assert(b.failed);
	ck_assert_str_eq(buf_cstr(&b), "12345678");
}
END_TEST

START_TEST(add_past_the_limit_adds_nothing)
{
	AUTO_BUF b = BUF_INIT(8);
	struct err e;

	ck_assert_int_eq(buf_str(&b, "1234"), 0);
	ck_assert_int_eq(buf_str(&b, "56789"), -1);
	ck_assert_str_eq(buf_cstr(&b), "1234");
	CK_FAILS(buf_check(&b, "the list", ERR_ARG_LIMIT, &e), e, ERR_ARG_LIMIT,
		 "the list does not fit into 8 bytes");
}
END_TEST

START_TEST(failure_sticks_until_cleared)
{
	AUTO_BUF b = BUF_INIT(4);

	ck_assert_int_eq(buf_str(&b, "12345"), -1);
	ck_assert_int_eq(buf_str(&b, "1"), -1);
	ck_assert_int_eq(buf_printf(&b, "%d", 1), -1);
	ck_assert_int_eq(buf_add(&b, NULL, 0), -1);
	ck_assert_ptr_null(buf_take(&b));
	ck_assert_uint_eq(b.n, 0);
	buf_clear(&b);
	ck_assert_int_eq(buf_str(&b, "1234"), 0);
	ck_assert_str_eq(buf_cstr(&b), "1234");
}
END_TEST

START_TEST(zero_cap)
{
	AUTO_BUF b = BUF_INIT(0);

	ck_assert_int_eq(buf_str(&b, ""), 0);
	ck_assert_int_eq(buf_printf(&b, "%s", ""), 0);
	ck_assert_int_eq(buf_char(&b, 'x'), -1);
}
END_TEST

START_TEST(printf_at_the_limit)
{
	AUTO_BUF b = BUF_INIT(8);

	ck_assert_int_eq(buf_printf(&b, "%s-%d", "abc", 1234), 0);
	ck_assert_str_eq(buf_cstr(&b), "abc-1234");
	ck_assert_uint_eq(b.n, 8);
	buf_clear(&b);
	ck_assert_str_eq(buf_cstr(&b), "");
	ck_assert_int_eq(buf_printf(&b, "%s-%d", "abc", 12345), -1);
	ck_assert_uint_eq(b.n, 0);
	ck_assert(b.failed);
}
END_TEST

START_TEST(printf_appends)
{
	AUTO_BUF b = BUF_INIT(1000);

	for (int i = 0; i < 100; i++)
		ck_assert_int_eq(buf_printf(&b, "%03d", i), 0);
	ck_assert_uint_eq(b.n, 300);
	ck_assert_mem_eq(b.p, "000001002", 9);
	ck_assert_str_eq(b.p + 297, "099");
}
END_TEST

START_TEST(holds_nul_bytes)
{
	AUTO_BUF b = BUF_INIT(100);

	ck_assert_int_eq(buf_add(&b, "a\0b", 3), 0);
	ck_assert_int_eq(buf_char(&b, '\0'), 0);
	ck_assert_uint_eq(b.n, 4);
	ck_assert_mem_eq(b.p, "a\0b\0", 5);
}
END_TEST

START_TEST(take_hands_over)
{
	AUTO_BUF b = BUF_INIT(100);

	ck_assert_int_eq(buf_str(&b, "mine"), 0);
	AUTO_FREE char *p = buf_take(&b);
	ck_assert_str_eq(p, "mine");
	ck_assert_ptr_null(b.p);
	AUTO_FREE char *empty = buf_take(&b);
	ck_assert_str_eq(empty, "");
	ck_assert_int_eq(buf_str(&b, "again"), 0);
	ck_assert_str_eq(buf_cstr(&b), "again");
}
END_TEST

START_TEST(release_allows_reuse)
{
	struct buf b = BUF_INIT(4);

	ck_assert_int_eq(buf_str(&b, "12345"), -1);
	buf_release(&b);
	ck_assert(!b.failed);
	ck_assert_uint_eq(b.max, 4);
	ck_assert_int_eq(buf_str(&b, "1234"), 0);
	buf_release(&b);
	buf_release(&b);
}
END_TEST

START_TEST(out_of_memory_is_a_failure)
{
	AUTO_BUF b = BUF_INIT(SIZE_MAX - 1);
	volatile size_t much = PTRDIFF_MAX - 16;

	ck_assert_int_eq(buf_str(&b, "kept"), 0);
	ck_assert_int_eq(buf_add(&b, "", much), -1); /* refused before the source is read */
	ck_assert(b.failed);
	ck_assert_str_eq(buf_cstr(&b), "kept");
}
END_TEST

START_TEST(random_additions)
{
	enum { MAX = 3000 };
	char want[MAX];
	size_t n = 0, refused = 0;

	suite_seed();
	AUTO_BUF b = BUF_INIT(MAX);
	for (int round = 0; round < 2000; round++) {
		char piece[200];
		size_t len = (size_t)random() % sizeof(piece);

		for (size_t i = 0; i < len; i++)
			piece[i] = (char)random();
		if (buf_add(&b, piece, len) == 0) {
			memcpy(want + n, piece, len);
			n += len;
		} else {
			ck_assert_uint_gt(n + len, MAX);
			ck_assert_uint_eq(b.n, n);
			ck_assert_mem_eq(b.p, want, n);
			buf_clear(&b);
			n = 0;
			refused++;
		}
		ck_assert_uint_eq(b.n, n);
		ck_assert_uint_le(b.cap, MAX + 1);
	}
	ck_assert_uint_gt(refused, 10);
}
END_TEST

START_TEST(base64_vectors)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{"", ""},
		{"f", "Zg=="},
		{"fo", "Zm8="},
		{"foo", "Zm9v"},
		{"foob", "Zm9vYg=="},
		{"fooba", "Zm9vYmE="},
		{"foobar", "Zm9vYmFy"},
		{"\xfb\xff\xbf", "+/+/"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_BUF b = BUF_INIT(16);

		ck_assert_int_eq(base64_encode(&b, rows[i].in, strlen(rows[i].in)), 0);
		ck_assert_str_eq(buf_cstr(&b), rows[i].out);
	}
}
END_TEST

/* Value of a base64 digit, by its place in the alphabet of RFC 4648. */
static unsigned int digit_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (unsigned int)(c - 'A');
	if (c >= 'a' && c <= 'z')
		return (unsigned int)(c - 'a') + 26;
	if (c >= '0' && c <= '9')
		return (unsigned int)(c - '0') + 52;
	return c == '+' ? 62 : 63;
}

START_TEST(base64_decodes_to_the_same)
{
	suite_seed();
	for (int round = 0; round < 500; round++) {
		unsigned char in[300], out[303];
		size_t n = (size_t)random() % sizeof(in), at = 0;
		AUTO_BUF b = BUF_INIT(400);

		for (size_t i = 0; i < n; i++)
			in[i] = (unsigned char)random();
		ck_assert_int_eq(base64_encode(&b, in, n), 0);
		ck_assert_uint_eq(b.n % 4, 0);
		for (size_t i = 0; i < b.n; i += 4) {
			unsigned int v = 0;

			for (size_t k = 0; k < 4; k++)
				v = v << 6 | (b.p[i + k] == '=' ? 0 : digit_value(b.p[i + k]));
			out[at++] = (unsigned char)(v >> 16);
			out[at++] = (unsigned char)(v >> 8);
			out[at++] = (unsigned char)v;
		}
		ck_assert_uint_eq(b.n, (n + 2) / 3 * 4);
		ck_assert_mem_eq(out, in, n);
	}
}
END_TEST

START_TEST(base64_limit)
{
	AUTO_BUF b = BUF_INIT(8);

	ck_assert_int_eq(base64_encode(&b, "123456", 6), 0);
	ck_assert_uint_eq(b.n, 8);
	buf_clear(&b);
	ck_assert_int_eq(base64_encode(&b, "1234567", 7), -1);
	ck_assert_uint_eq(b.n, 0);
	ck_assert(b.failed);
	buf_clear(&b);
	ck_assert_int_eq(base64_encode(&b, "", SIZE_MAX), -1); /* refused before it is read */
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base_buf");
	TCase *tests = tcase_create("buf");

	tcase_add_test(tests, starts_empty);
	tcase_add_test(tests, add_at_the_limit);
	tcase_add_test(tests, add_past_the_limit_adds_nothing);
	tcase_add_test(tests, failure_sticks_until_cleared);
	tcase_add_test(tests, zero_cap);
	tcase_add_test(tests, printf_at_the_limit);
	tcase_add_test(tests, printf_appends);
	tcase_add_test(tests, holds_nul_bytes);
	tcase_add_test(tests, take_hands_over);
	tcase_add_test(tests, release_allows_reuse);
	tcase_add_test(tests, out_of_memory_is_a_failure);
	tcase_add_test(tests, random_additions);
	tcase_add_test(tests, base64_vectors);
	tcase_add_test(tests, base64_decodes_to_the_same);
	tcase_add_test(tests, base64_limit);
	suite_add_tcase(suite, tests);
	return suite_run(suite);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values taken out of what passes, in whatever pieces it comes.
 */
#include "run/censor.h"

#include "base/base.h"
#include "base/base64.h"
#include "run/secrets.h"
#include "test_base_suite.h"

#define VALUE "k?Zx+/~aBc 9w\"q"

static struct censor *make(const char *const *values, size_t n)
{
	struct secret_values v = {.n = n};
	struct censor *c = NULL;
	struct err e = {0};

	for (size_t i = 0; i < n; i++)
		v.raw[i] = (char *)(uintptr_t)values[i];
	CK_WORKS(censor_new(&v, &c, &e), e);
	return c;
}

static void take(void *self, const char *p, size_t n)
{
	(void)buf_add(self, p, n);
}

/* Raw, in base64 at three places, percent-encoded, twice in a row, and half of one at the end. */
static void all_forms(struct buf *ret)
{
	(void)buf_str(ret, "a " VALUE " b ");
	for (int shift = 0; shift < 3; shift++) {
		AUTO_BUF text = BUF_INIT(256);
		(void)buf_printf(&text, "%.*s" VALUE "yz", shift, "xxx");
		ck_assert_int_eq(base64_encode(ret, text.p, text.n), 0);
		(void)buf_char(ret, ' ');
	}
	(void)buf_str(ret, "k%3FZx%2B%2F~aBc%209w%22q k%3fZx%2b%2f~aBc%209w%22q ");
	(void)buf_str(ret, VALUE VALUE "k?Zx");
}

static void through(const struct censor *c, const struct buf *in, size_t (*next)(void),
		    struct buf *ret)
{
	struct censor_stream s = {.c = c};

	for (size_t at = 0; at < in->n;) {
		size_t n = next();
		n = n < in->n - at ? n : in->n - at;
		censor_feed(&s, in->p + at, n, take, ret);
		at += n;
	}
	censor_end(&s, take, ret);
	ck_assert_ptr_null(s.held);
}

static size_t one(void)
{
	return 1;
}

static size_t some(void)
{
	return 1 + (size_t)(rand() % 40);
}

static size_t whole(void)
{
	return SIZE_MAX;
}

START_TEST(in_pieces)
{
	static const char *const values[] = {VALUE, "k?Zx+/~another"};
	struct censor *c = make(values, ARRAY_LEN(values));
	AUTO_BUF in = BUF_INIT(4096);
	AUTO_BUF at_once = BUF_INIT(4096);

	all_forms(&in);
	through(c, &in, whole, &at_once);
	ck_assert_uint_eq(at_once.n, in.n);
	ck_assert_ptr_null(memmem(at_once.p, at_once.n, "aBc", 3));
	ck_assert_ptr_nonnull(memmem(in.p, in.n, "aBc", 3));
	for (int i = 0; i < 200; i++) {
		AUTO_BUF out = BUF_INIT(4096);
		through(c, &in, i ? some : one, &out);
		ck_assert_uint_eq(out.n, at_once.n);
		ck_assert_mem_eq(out.p, at_once.p, out.n);
	}
	censor_free(c);
}
END_TEST

/* An end in the middle of a value: as it is below eight bytes, else not. */
START_TEST(cut_off)
{
	static const char *const values[] = {VALUE};
	struct censor *c = make(values, 1);

	for (size_t n = 1; n < sizeof(VALUE); n++) {
		AUTO_BUF in = BUF_INIT(64);
		AUTO_BUF out = BUF_INIT(64);
		(void)buf_add(&in, VALUE, n);
		through(c, &in, one, &out);
		ck_assert_uint_eq(out.n, n);
		ck_assert_int_eq(out.p[0], n < MIN_CENSORED ? 'k' : '*');
	}
	censor_free(c);
}
END_TEST

/* Nothing else is touched, nor kept waiting; short values stay. */
START_TEST(others_pass)
{
	static const char *const values[] = {VALUE, "1234567", "12345678"};
	struct censor *c = make(values, ARRAY_LEN(values));
	struct censor_stream s = {.c = c};
	struct censor_stream none = {.c = NULL};
	AUTO_BUF out = BUF_INIT(64);

	censor_feed(&s, "1234567 k", 9, take, &out);
	ck_assert_str_eq(buf_cstr(&out), "1234567 ");
	censor_feed(&s, "?Zx-", 4, take, &out);
	ck_assert_str_eq(buf_cstr(&out), "1234567 k?Zx-");
	censor_end(&s, take, &out);
	censor_feed(&none, VALUE, strlen(VALUE), take, &out);
	ck_assert_str_eq(buf_cstr(&out), "1234567 k?Zx-" VALUE);
	censor_free(c);
	ck_assert_ptr_null(make(&values[1], 1));
}
END_TEST

/* A value that another one begins with is not all that is taken out of that one. */
START_TEST(beginnings)
{
	static const char *const values[] = {"abcdefgh", "abcdefgh-and-more", "bcdefghi"};
	static const char text[] = "x abcdefgh-and-more abcdefgh abcdefgh-and-mor abcdefghi y";
	static const char seen[] = "x ***************** ******** ********-and-mor *********";
	struct censor *c = make(values, ARRAY_LEN(values));

	for (size_t at = 0; at < strlen(text); at++) {
		struct censor_stream s = {.c = c};
		AUTO_BUF out = BUF_INIT(128);
		censor_feed(&s, text, at, take, &out);
		censor_feed(&s, text + at, strlen(text) - at, take, &out);
		censor_end(&s, take, &out);
		ck_assert_mem_eq(buf_cstr(&out), seen, 46);
		ck_assert_ptr_null(strstr(buf_cstr(&out), "-and-more"));
		ck_assert_uint_eq(out.n, strlen(text));
	}
	censor_free(c);
}
END_TEST

/* One byte again and again is held back no longer than anything else. */
START_TEST(repeated)
{
	static const char *const values[] = {"aaaaaaaaaaaa"};
	struct censor *c = make(values, 1);
	struct censor_stream s = {.c = c};
	AUTO_BUF out = BUF_INIT(1 << 20);
	char block[1000];

	memset(block, 'a', sizeof(block));
	for (int i = 0; i < 100; i++) {
		censor_feed(&s, block, sizeof(block), take, &out);
		ck_assert_uint_lt(s.n, 100);
	}
	censor_end(&s, take, &out);
	ck_assert_uint_eq(out.n, 100000);
	ck_assert_uint_lt(strspn(buf_cstr(&out) + strcspn(buf_cstr(&out), "a"), "a"), 12);
	censor_free(c);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("run censor");
	TCase *c = tcase_create("all");

	tcase_add_test(c, in_pieces);
	tcase_add_test(c, cut_off);
	tcase_add_test(c, others_pass);
	tcase_add_test(c, beginnings);
	tcase_add_test(c, repeated);
	suite_add_tcase(s, c);
	return suite_run(s);
}

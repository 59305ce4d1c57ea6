/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output kept for a result: head and tail, whole characters, nothing that a
 * terminal obeys.
 */
#include "run/capture.h"

#include "base/base.h"
#include "base/utf8.h"
#include "test_base_suite.h"

/* What the result says, for this input in pieces of at most `piece` bytes. */
static const char *result(const char *p, size_t n, uint64_t keep, size_t piece)
{
	static struct buf out = {.max = 1 << 24};
	struct capture c;
	struct err e;

	buf_clear(&out);
	capture_init(&c, keep);
	for (size_t i = 0; i < n; i += piece)
		capture_add(&c, p + i, n - i < piece ? n - i : piece);
	struct json j = JSON_INIT(&out);
	capture_json(&c, NULL, NULL, &j);
	CK_WORKS(json_finish(&j, ERR_OUTPUT_LIMIT, &e), e);
	capture_release(&c);
	ck_assert_ptr_null(c.head);
	ck_assert_ptr_null(c.tail);
	return buf_cstr(&out);
}

static void is(const char *p, size_t n, uint64_t keep, const char *text, const char *encoding,
	       bool truncated)
{
	char want[4096];

	snprintf(
		want, sizeof(want),
		"{\"text\":\"%s\",\"encoding\":\"%s\",\"bytes\":%zu,\"truncated\":%s,\"file\":null}",
		text, encoding, n, truncated ? "true" : "false");
	for (size_t piece = 1; piece <= n + 1; piece++)
		ck_assert_str_eq(result(p, n, keep, piece), want);
}

#define IS(text_in, keep, text_out, truncated) \
	is(text_in, sizeof(text_in) - 1, keep, text_out, "utf-8", truncated)

START_TEST(whole)
{
	IS("", 10, "", false);
	IS("x", 10, "x", false);
	IS("123456789", 10, "123456789", false);
	IS("1234567890", 10, "1234567890", false);
	IS("1", 1, "1", false);
	IS("123", 3, "123", false);
	IS("", 0, "", false);
}
END_TEST

/* One byte over the limit, and more. */
START_TEST(cut)
{
	IS("12345678901", 10, "12345\\n[… 1 bytes left out …]\\n78901", true);
	IS("123456789012", 10, "12345\\n[… 2 bytes left out …]\\n89012", true);
	IS("1234567890123", 11, "123456\\n[… 2 bytes left out …]\\n90123", true);
	IS("aaaaabbbbbcccccdddddeeeee", 10, "aaaaa\\n[… 15 bytes left out …]\\neeeee", true);
	IS("12", 1, "1\\n[… 1 bytes left out …]\\n", true);
	IS("123", 2, "1\\n[… 1 bytes left out …]\\n3", true);
	IS("x", 0, "\\n[… 1 bytes left out …]\\n", true);
}
END_TEST

/* é is two bytes, € three, 𝄞 four: a cut goes before or after one, never through it. */
START_TEST(cut_between_characters)
{
	IS("1234é67890é2345", 10, "1234\\n[… 9 bytes left out …]\\n2345", true);
	IS("123€67890x2345678", 8, "123\\n[… 12 bytes left out …]\\n5678", true);
	IS("12𝄞abcdef34€", 8, "12\\n[… 11 bytes left out …]\\n4€", true);
	IS("12𝄞abcdef34€", 6, "12\\n[… 12 bytes left out …]\\n€", true);
	IS("12𝄞abcdef34€", 4, "12\\n[… 15 bytes left out …]\\n", true);
	IS("ééééé", 5, "é\\n[… 6 bytes left out …]\\né", true);
	IS("ééééé", 4, "é\\n[… 6 bytes left out …]\\né", true);
	IS("𝄞𝄞𝄞", 4, "\\n[… 12 bytes left out …]\\n", true);
}
END_TEST

START_TEST(not_text)
{
	is("\xff", 1, 10, "/w==", "base64", false);
	is("a\xc3", 2, 10, "YcM=", "base64", false);
	is("\xed\xa0\x80", 3, 10, "7aCA", "base64", false);
	is("\xc0\xaf", 2, 10, "wK8=", "base64", false);
	/* What is left out may have been wrong: the rest is text. */
	is("abcde\xff\xffpqrst", 12, 10, "abcde\\n[… 2 bytes left out …]\\npqrst", "utf-8", true);
}
END_TEST

START_TEST(escapes)
{
	IS("a\tb\r\nc", 100, "a\\tb\\r\\nc", false);
	IS("\x1b[31mred\x1b]0;t\x07", 100, "\\\\x1b[31mred\\\\x1b]0;t\\\\x07", false);
	IS("a\0b", 100, "a\\\\x00b", false);
	IS("\x08\x7f\x0b\x0c", 100, "\\\\x08\\\\x7f\\\\x0b\\\\x0c", false);
	IS("\xc2\x9b"
	   "31m",
	   100, "\\\\x9b31m", false);
	IS("\xe2\x80\xae"
	   "txt",
	   100, "\\\\u{202e}txt", false);
	IS("\xe2\x80\xa8", 100, "\\\\u{2028}", false);
	IS("\"\\/é€𝄞", 100, "\\\"\\\\/é€𝄞", false);
}
END_TEST

/* The most expensive text still fits. */
START_TEST(escapes_grow)
{
	static const char *const worst[] = {"\x1b", "\xe2\x80\xae", "\xf3\xa0\x80\x81", "\"", "\0"};

	for (size_t i = 0; i < ARRAY_LEN(worst); i++) {
		size_t n = worst[i][0] ? strlen(worst[i]) : 1;
		char *text = malloc(n * 5000);
		ck_assert_ptr_nonnull(text);
		for (size_t k = 0; k < 5000; k++)
			memcpy(text + k * n, worst[i], n);
		const char *got = result(text, n * 5000, UINT64_MAX, 4096);
		ck_assert_ptr_nonnull(strstr(got, "\"encoding\":\"utf-8\""));
		ck_assert_ptr_nonnull(strstr(got, "\"truncated\":false"));
		ck_assert_ptr_null(strstr(got, "null,\"encoding\""));
		free(text);
	}
}
END_TEST

static size_t random_text(char *p, size_t max)
{
	static const char *const chars[] = {"a", "b", "\n", "é", "ß", "€", "한", "𝄞", "😀"};
	size_t n = 0;

	for (;;) {
		const char *c = chars[(size_t)random() % ARRAY_LEN(chars)];
		if (n + strlen(c) > max)
			return n;
		memcpy(p + n, c, strlen(c));
		n += strlen(c);
		if (random() % 60 == 0)
			return n;
	}
}

/* head + marker + tail, where both ends are the text's own and the number is right. */
static void check_cut(const char *text, size_t n, const struct buf *got, size_t keep)
{
	static const char begin[] = "\n[… ", end[] = " bytes left out …]\n";
	unsigned long long out = 0;
	char *mark = memmem(got->p, got->n, begin, sizeof(begin) - 1);

	ck_assert_ptr_nonnull(mark);
	size_t head = (size_t)(mark - got->p);
	ck_assert_int_eq(sscanf(mark + sizeof(begin) - 1, "%llu", &out), 1);
	char *after = memmem(mark, got->n - head, end, sizeof(end) - 1);
	ck_assert_ptr_nonnull(after);
	after += sizeof(end) - 1;
	size_t tail = got->n - (size_t)(after - got->p);
	ck_assert_uint_eq(head + out + tail, n);
	ck_assert_uint_le(head + tail, keep);
	ck_assert_uint_gt(head + tail + 8, keep); /* no more is lost than the cut characters */
	ck_assert_mem_eq(got->p, text, head);
	ck_assert_mem_eq(after, text + n - tail, tail);
}

/* Undoes the two escapes that occur here. */
static void unescape(struct buf *out, const char *json)
{
	const char *p = strstr(json, "\"text\":\"") + 8;

	for (; *p != '"'; p++) {
		if (*p == '\\') {
			ck_assert_int_eq(p[1], 'n');
			(void)buf_char(out, '\n');
			p++;
		} else {
			(void)buf_char(out, *p);
		}
	}
}

START_TEST(random_texts)
{
	char text[400];
	unsigned int cuts = 0;

	suite_seed();
	for (int i = 0; i < 4000; i++) {
		AUTO_BUF got = BUF_INIT(4096);
		size_t n = random_text(text, sizeof(text));
		size_t keep = (size_t)random() % 180;
		const char *json = result(text, n, keep, 1 + (size_t)random() % 64);
		ck_assert_ptr_nonnull(strstr(json, "\"encoding\":\"utf-8\""));
		unescape(&got, json);
		ck_assert(utf8_valid(buf_cstr(&got), got.n));
		if (n > keep) {
			cuts++;
			check_cut(text, n, &got, keep);
			ck_assert_ptr_nonnull(strstr(json, "\"truncated\":true"));
		} else {
			ck_assert_uint_eq(got.n, n);
			ck_assert(!n || memcmp(got.p, text, n) == 0);
			ck_assert_ptr_nonnull(strstr(json, "\"truncated\":false"));
		}
	}
	ck_assert_uint_gt(cuts, 1200);
	ck_assert_uint_lt(cuts, 2800);
}
END_TEST

/* Memory is bounded by what is kept, not by what comes. */
START_TEST(bounded)
{
	static char block[1 << 16];
	struct capture c;

	capture_init(&c, 100000);
	memset(block, 'x', sizeof(block));
	for (int i = 0; i < 2000; i++)
		capture_add(&c, block, sizeof(block));
	ck_assert_uint_eq(c.bytes, UINT64_C(2000) * sizeof(block));
	ck_assert_uint_le(c.head_cap, 50000);
	ck_assert_uint_eq(c.head_n, 50000);
	ck_assert_uint_eq(c.tail_n, 50000);
	ck_assert(!c.failed);
	capture_release(&c);
	/* `none` is bounded too, and costs nothing before something comes. */
	capture_init(&c, UINT64_MAX);
	ck_assert_uint_le(c.keep, UINT64_C(256) << 20);
	capture_add(&c, "x", 1);
	ck_assert_uint_le(c.head_cap, 4096);
	ck_assert_ptr_null(c.tail);
	capture_release(&c);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("run capture");
	TCase *c = tcase_create("all");

	tcase_set_timeout(c, 120);
	tcase_add_test(c, whole);
	tcase_add_test(c, cut);
	tcase_add_test(c, cut_between_characters);
	tcase_add_test(c, not_text);
	tcase_add_test(c, escapes);
	tcase_add_test(c, escapes_grow);
	tcase_add_test(c, random_texts);
	tcase_add_test(c, bounded);
	suite_add_tcase(s, c);
	return suite_run(s);
}

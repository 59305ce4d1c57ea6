/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests of base/utf8, base/term and base/nearest.
 */
#include "base/utf8.h"

#include <signal.h>

#include "base/base.h"
#include "base/nearest.h"
#include "base/term.h"
#include "test_base_suite.h"

/* Encoder by the table of RFC 3629; surrogates and too large values included. */
static size_t encode(uint32_t cp, char out[4])
{
	if (cp < 0x80) {
		out[0] = (char)cp;
		return 1;
	}
	if (cp < 0x800) {
		out[0] = (char)(0xc0 | cp / 64);
		out[1] = (char)(0x80 | cp % 64);
		return 2;
	}
	if (cp < 0x10000) {
		out[0] = (char)(0xe0 | cp / 4096);
		out[1] = (char)(0x80 | cp / 64 % 64);
		out[2] = (char)(0x80 | cp % 64);
		return 3;
	}
	out[0] = (char)(0xf0 | cp / 262144);
	out[1] = (char)(0x80 | cp / 4096 % 64);
	out[2] = (char)(0x80 | cp / 64 % 64);
	out[3] = (char)(0x80 | cp % 64);
	return 4;
}

START_TEST(utf8_every_code_point)
{
	for (uint32_t cp = 0; cp < 0x200000; cp++) {
		char p[4];
		uint32_t got = 0xffffffff;
		size_t n = encode(cp, p);
		bool good = cp <= 0x10ffff && (cp < 0xd800 || cp > 0xdfff);
		size_t used = utf8_decode(p, n, &got);

		if (used != (good ? n : 0) || (good && got != cp) || utf8_valid(p, n) != good)
			ck_abort_msg("U+%04X: length %zu, value %x", cp, used, got);
		if (utf8_decode(p, n - 1, &got) != 0)
			ck_abort_msg("U+%04X is taken although its end is missing", cp);
	}
}
END_TEST

START_TEST(utf8_bad_bytes)
{
	static const char *const rows[] = {
		"\x80",             /* continuation alone */
		"\xbf",             /* the same */
		"\xc0\x80",         /* overlong NUL */
		"\xc1\xbf",         /* overlong DEL */
		"\xe0\x9f\xbf",     /* overlong U+07FF */
		"\xf0\x8f\xbf\xbf", /* overlong U+FFFF */
		"\xed\xa0\x80",     /* surrogate */
		"\xf4\x90\x80\x80", /* U+110000 */
		"\xf5\x80\x80\x80",
		"\xf8\x88\x80\x80\x80",
		"\xff",
		"\xc3",         /* cut */
		"\xe2\x80",     /* cut */
		"\xf0\x9f\x98", /* cut */
		"\xc3(",        /* no continuation */
		"\xe2(\xa1",
		"\xf0\x9f(\x80",
		"ok\xff",
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		ck_assert_msg(!utf8_valid(rows[i], strlen(rows[i])), "row %zu", i);
	ck_assert(utf8_valid("", 0));
	ck_assert(utf8_valid("a\0b", 3));
	ck_assert(utf8_valid("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80", 15));
}
END_TEST

/* Reads from the start, which is slow and plain. */
static size_t cut_by_walking(const char *p, size_t len, size_t max)
{
	size_t at = 0;

	for (;;) {
		uint32_t cp;
		size_t n = at < len ? utf8_decode(p + at, len - at, &cp) : 0;

		if (at == len)
			return at;
		if (n == 0)
			n = 1;
		if (at + n > max)
			return at;
		at += n;
	}
}

START_TEST(utf8_cut_at_boundaries)
{
	const char *text = "a\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80z"; /* 1 2 3 4 1 */
	static const size_t want[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};

	for (size_t max = 0; max < ARRAY_LEN(want); max++)
		ck_assert_uint_eq(utf8_cut(text, 11, max), want[max]);
	ck_assert_uint_eq(utf8_cut("\x80\x80\x80\x80\x80\x80", 6, 4), 4);
	ck_assert_uint_eq(utf8_cut("\xf0\x9f\x98", 3, 2), 2); /* already broken: bytes count */
}
END_TEST

START_TEST(utf8_cut_of_anything)
{
	static const char *const pieces[] = {"a",    "\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
					     "\x80", "\xff",     "\xe2\x82",     "\xf0\x9f"};

	suite_seed();
	for (int round = 0; round < 20000; round++) {
		char text[64];
		size_t len = 0;

		while (len < 40) {
			const char *piece = pieces[(size_t)random() % ARRAY_LEN(pieces)];

			memcpy(text + len, piece, strlen(piece));
			len += strlen(piece);
		}
		size_t max = (size_t)random() % 50;
		ck_assert_uint_eq(utf8_cut(text, len, max), cut_by_walking(text, len, max));
	}
}
END_TEST

START_TEST(unsafe_characters)
{
	static const uint32_t bad[] = {0,      0x1b,   0x1f,   0x7f,    0x80,    0x9b,   0x9f,
				       0xad,   0x61c,  0x180e, 0x200b,  0x200e,  0x200f, 0x2028,
				       0x2029, 0x202a, 0x202e, 0x2060,  0x2064,  0x2066, 0x2069,
				       0x206f, 0xfeff, 0xfff9, 0xe0001, 0xe0020, 0xe007f};
	static const uint32_t good[] = {0x20,   0x7e,   0xa0,   0xa1,   0xac,    0xae,    0xe9,
					0x61b,  0x61d,  0x200a, 0x200c, 0x200d,  0x2010,  0x2027,
					0x202f, 0x205f, 0x2070, 0xfffd, 0x1f600, 0xe0080, 0x10ffff};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ck_assert_msg(utf8_is_unsafe(bad[i]), "U+%04X", bad[i]);
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		ck_assert_msg(!utf8_is_unsafe(good[i]), "U+%04X", good[i]);
}
END_TEST

static const struct {
	const char *in;
	const char *out;
} escapes[] = {
	{"", ""},
	{"/plain/path with blank", "/plain/path with blank"},
	{"back\\slash", "back\\slash"},
	{"a\nb\tc\rd", "a\\x0ab\\x09c\\x0dd"},
	{"\x1b]0;title\x07", "\\x1b]0;title\\x07"},
	{"\x7f", "\\x7f"},
	{"\xc2\x9b", "\\u{9b}"},
	{"\xe2\x80\xae"
	 "txt",
	 "\\u{202e}txt"},
	{"\xf3\xa0\x81\x81", "\\u{e0041}"},
	{"\xff\xc3", "\\xff\\xc3"},
	{"\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80"},
	{"\xe2\x82", "\\xe2\\x82"},
};

START_TEST(term_escapes)
{
	for (size_t i = 0; i < ARRAY_LEN(escapes); i++) {
		AUTO_BUF b = BUF_INIT(100);
		char fixed[100];

		ck_assert_int_eq(term_escape(&b, escapes[i].in, strlen(escapes[i].in)), 0);
		ck_assert_str_eq(buf_cstr(&b), escapes[i].out);
		ck_assert_ptr_eq(term_escape_cut(fixed, sizeof(fixed), escapes[i].in,
						 strlen(escapes[i].in)),
				 fixed);
		ck_assert_str_eq(fixed, escapes[i].out);
		/* Twice is as good as once. */
		buf_clear(&b);
		ck_assert_int_eq(term_escape(&b, fixed, strlen(fixed)), 0);
		ck_assert_str_eq(buf_cstr(&b), escapes[i].out);
	}
}
END_TEST

START_TEST(term_escapes_nul)
{
	AUTO_BUF b = BUF_INIT(100);

	ck_assert_int_eq(term_escape(&b, "a\0b", 3), 0);
	ck_assert_str_eq(buf_cstr(&b), "a\\x00b");
}
END_TEST

START_TEST(term_escape_has_a_cap)
{
	AUTO_BUF b = BUF_INIT(8);

	ck_assert_int_eq(term_escape(&b, "\n\n", 2), 0);
	buf_clear(&b);
	ck_assert_int_eq(term_escape(&b, "\n\nx", 3), -1);
	ck_assert(b.failed);
}
END_TEST

START_TEST(term_cut_at_the_limit)
{
	char t[16];

	term_escape_cut(t, sizeof(t), "123456789012345", 15);
	ck_assert_str_eq(t, "123456789012345");
	term_escape_cut(t, sizeof(t), "1234567890123456", 16);
	ck_assert_str_eq(t, "123456789012\xe2\x80\xa6");
	term_escape_cut(t, sizeof(t), "12345678901\n\n", 13);
	ck_assert_str_eq(t, "12345678901\xe2\x80\xa6");
	term_escape_cut(t, sizeof(t), "12345678901\n", 12);
	ck_assert_str_eq(t, "12345678901\\x0a");
	term_escape_cut(t, sizeof(t), "12345678901\xe2\x82\xac\xe2\x82\xac", 17);
	ck_assert_str_eq(t, "12345678901\xe2\x80\xa6");
}
END_TEST

START_TEST(term_output_is_always_safe)
{
	suite_seed();
	for (int round = 0; round < 20000; round++) {
		char in[40], t[48];
		size_t n = (size_t)random() % sizeof(in);
		size_t cap = TERM_CAP_MIN + (size_t)random() % (sizeof(t) - TERM_CAP_MIN + 1);
		uint32_t cp;

		for (size_t i = 0; i < n; i++)
			in[i] = (char)(random() % 3 ? random()
						    : "\xe2\x80\xae\x9b\xc2"[random() % 5]);
		term_escape_cut(t, cap, in, n);
		size_t len = strlen(t);
		ck_assert_uint_lt(len, cap);
		for (size_t i = 0; i < len;) {
			size_t used = utf8_decode(t + i, len - i, &cp);

			ck_assert_uint_gt(used, 0);
			ck_assert(!utf8_is_unsafe(cp));
			i += used;
		}
	}
}
END_TEST

START_TEST(term_cut_needs_room)
{
	char t[TERM_CAP_MIN];

	suite_expect_abort();
	term_escape_cut(t, TERM_CAP_MIN - 1, "x", 1);
}
END_TEST

static const char *const words[] = {"timeout", "memory",    "read",  "write",      NULL,
				    "source",  "no-tty",    "tty",   "allow-host", "cpus",
				    "disk",    "no-source", "grace", "output",     "deny-host"};

START_TEST(nearest_spelling)
{
	static const struct {
		const char *word;
		const char *want;
	} rows[] = {
		{"timeout", "timeout"},
		{"TimeOut", "timeout"},
		{"timout", "timeout"},
		{"tiemout", "timeout"},
		{"timeoutt", "timeout"},
		{"memroy", "memory"},
		{"raed", "read"},
		{"reed", "read"},
		{"red", "read"},
		{"wirte", "write"},
		{"no_tty", "no-tty"},
		{"notty", "no-tty"},
		{"tyt", "tty"},
		{"mem", "memory"},
		{"time", "timeout"},
		{"allow", "allow-host"},
		{"allow_hosts", "allow-host"},
		{"ou", "output"},
		{"nosource", "no-source"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *got = nearest(rows[i].word, words, ARRAY_LEN(words));

		ck_assert_msg(got && strcmp(got, rows[i].want) == 0, "%s is near %s", rows[i].word,
			      got ? got : "nothing");
	}
}
END_TEST

START_TEST(nothing_near)
{
	static const char *const rows[] = {"",   "x",   "zzzzzz", "quiet", "t",
					   "no", "no-", "xyzzy",  "tom",   "dosk-usage-of-all"};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *got = nearest(rows[i], words, ARRAY_LEN(words));

		ck_assert_msg(got == NULL, "%s is near %s", rows[i], got);
	}
	ck_assert_ptr_null(nearest("timeout", NULL, 0));
}
END_TEST

START_TEST(nearest_word_limit)
{
	char word[NEAREST_WORD_MAX + 2], known[NEAREST_WORD_MAX + 2];
	const char *list[] = {known};

	memset(word, 'w', sizeof(word));
	memset(known, 'w', sizeof(known));
	word[NEAREST_WORD_MAX] = '\0';
	known[NEAREST_WORD_MAX] = '\0';
	word[0] = 'v';
	ck_assert_ptr_eq(nearest(word, list, 1), known);
	word[NEAREST_WORD_MAX] = 'w';
	word[NEAREST_WORD_MAX + 1] = '\0';
	ck_assert_ptr_null(nearest(word, list, 1));
	known[NEAREST_WORD_MAX] = 'w';
	known[NEAREST_WORD_MAX + 1] = '\0';
	ck_assert_ptr_null(nearest(word, list, 1));
	ck_assert_ptr_eq(nearest("www", list, 1), known); /* as the only one that begins so */
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base_text");
	TCase *tests = tcase_create("text");

	tcase_add_test(tests, utf8_every_code_point);
	tcase_add_test(tests, utf8_bad_bytes);
	tcase_add_test(tests, utf8_cut_at_boundaries);
	tcase_add_test(tests, utf8_cut_of_anything);
	tcase_add_test(tests, unsafe_characters);
	tcase_add_test(tests, term_escapes);
	tcase_add_test(tests, term_escapes_nul);
	tcase_add_test(tests, term_escape_has_a_cap);
	tcase_add_test(tests, term_cut_at_the_limit);
	tcase_add_test(tests, term_output_is_always_safe);
	tcase_add_test_raise_signal(tests, term_cut_needs_room, SIGABRT);
	tcase_add_test(tests, nearest_spelling);
	tcase_add_test(tests, nothing_near);
	tcase_add_test(tests, nearest_word_limit);
	suite_add_tcase(suite, tests);
	return suite_run(suite);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-1 against the examples of FIPS 180-4 and its companion test vectors, and
 * against the names that git gives to well-known objects.
 */
#include "base/sha1.h"

#include "base/base.h"
#include "test_base_suite.h"

static const char *finish(struct sha1 *s)
{
	static char text[2 * SHA1_BYTES + 1];
	unsigned char digest[SHA1_BYTES];

	sha1_end(s, digest);
	for (size_t i = 0; i < SHA1_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", digest[i]);
	return text;
}

/* Fed in pieces of that size. */
static const char *hex(const char *p, size_t n, size_t piece)
{
	struct sha1 s;

	sha1_init(&s);
	for (size_t at = 0; at < n; at += piece)
		sha1_add(&s, p + at, n - at < piece ? n - at : piece);
	return finish(&s);
}

START_TEST(known)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{"", "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
		{"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"},
		{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		 "84983e441c3bd26ebaae4aa1f95129e5e54670f1"},
		{"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopq"
		 "klmnopqrlmnopqrsmnopqrstnopqrstu",
		 "a49b2446a02c645bf419f995b67091253a04a259"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		ck_assert_str_eq(hex(rows[i].text, strlen(rows[i].text), 1000), rows[i].want);
}
END_TEST

START_TEST(million)
{
	char *text = malloc(1000000);

	ck_assert_ptr_nonnull(text);
	memset(text, 'a', 1000000);
	ck_assert_str_eq(hex(text, 1000000, 1000000), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
	ck_assert_str_eq(hex(text, 1000000, 997), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
	free(text);
}
END_TEST

/* However it is cut into pieces, for every length around the ends of two blocks. */
START_TEST(pieces)
{
	char text[200];
	char whole[2 * SHA1_BYTES + 1];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)(i * 7);
	for (size_t n = 0; n <= sizeof(text); n++) {
		snprintf(whole, sizeof(whole), "%s", hex(text, n, 1000));
		for (size_t piece = 1; piece <= 130; piece++)
			ck_assert_str_eq(hex(text, n, piece), whole);
	}
}
END_TEST

START_TEST(nothing_added)
{
	struct sha1 s;

	sha1_init(&s);
	sha1_add(&s, NULL, 0);
	sha1_add(&s, "a", 1);
	sha1_add(&s, NULL, 0);
	sha1_add(&s, "bc", 2);
	ck_assert_str_eq(finish(&s), "a9993e364706816aba3e25717850c26c9cd0d89d");
}
END_TEST

/* git hash-object, git hash-object -t tree. */
START_TEST(objects)
{
	ck_assert_str_eq(hex("blob 0", 7, 3), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
	ck_assert_str_eq(hex("tree 0", 7, 3), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
	ck_assert_str_eq(hex("blob 6\0hello\n", 13, 5), "ce013625030ba8dba906f756967f9e9ca394464a");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base/sha1");
	TCase *tests = tcase_create("sha1");

	tcase_add_test(tests, known);
	tcase_add_test(tests, million);
	tcase_add_test(tests, pieces);
	tcase_add_test(tests, nothing_added);
	tcase_add_test(tests, objects);
	suite_add_tcase(suite, tests);
	return suite_run(suite);
}

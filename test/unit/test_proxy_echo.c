/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values in what a server sends back: each spelling, at each seam.
 */
#include <string.h>

#include "base/base.h"
#include "base/base64.h"
#include "proxy/echo.h"
#include "test_base_suite.h"

#define VALUE "t0ken/with+marks=="

/* Fed in two pieces, at each place; true: found each time, and nothing of it went on. */
static bool found(const char *text)
{
	size_t n = strlen(text);
	size_t times = 0;

	for (size_t cut = 0; cut <= n; cut++) {
		AUTO_BUF out = BUF_INIT(4096);
		struct echo *e = echo_new();
		ck_assert(echo_add(e, "Bearer " VALUE));
		bool good = echo_feed(e, text, cut, false, &out) &&
			    echo_feed(e, text + cut, n - cut, true, &out);
		times += !good;
		if (good)
			ck_assert_str_eq(buf_cstr(&out), text);
		else
			ck_assert(!strstr(buf_cstr(&out), "t0ken"));
		echo_free(e);
	}
	ck_assert(times == 0 || times == n + 1);
	return times != 0;
}

START_TEST(spellings)
{
	struct echo *e = echo_new();
	AUTO_BUF b = BUF_INIT(4096);

	ck_assert(echo_add(e, "Bearer " VALUE));
	ck_assert(!echo_finds(e, "", 0) && echo_finds(e, "x" VALUE, 1 + strlen(VALUE)));
	echo_free(e);
	for (int offset = 0; offset < 7; offset++) {
		static const char *const before[] = {"",     "a",     "ab",    "abc",
						     "abcd", "abcde", "abcdef"};
		e = echo_new();
		ck_assert(echo_add(e, "Bearer " VALUE));
		AUTO_BUF raw = BUF_INIT(4096);
		AUTO_BUF text = BUF_INIT(4096);
		(void)buf_printf(&raw, "%s%s and more", before[offset], VALUE);
		(void)base64_encode(&text, raw.p, raw.n);
		ck_assert(echo_finds(e, text.p, text.n));
		echo_free(e);
	}
	ck_assert(found("{\"seen\": \"Bearer " VALUE "\"}"));
	ck_assert(found("q=t0ken%2Fwith%2Bmarks%3D%3D"));
	ck_assert(found("q=t0ken%2fwith%2bmarks%3d%3d"));
	/* Controls: the placeholder, a part, the scheme. */
	ck_assert(!found("Bearer PLACEHOLDER t0ken/with+mark t0ken/with+mark"));
	/* Inside of Basic: the word, and what is behind the colon. */
	(void)buf_str(&b, "Basic ");
	(void)base64_encode(&b, "me:" VALUE, strlen("me:" VALUE));
	e = echo_new();
	ck_assert(echo_add(e, buf_cstr(&b)));
	ck_assert(echo_finds(e, b.p, b.n) && echo_finds(e, VALUE, strlen(VALUE)));
	echo_free(e);
}
END_TEST

/* Whatever the header's text has around it, and as JSON writes a slash. */
START_TEST(values)
{
	struct echo *e = echo_new();

	ck_assert(echo_add(e, "sid=" VALUE "; path=x"));
	ck_assert(!echo_finds(e, VALUE "\"", strlen(VALUE) + 1)); /* the control */
	ck_assert(echo_add_value(e, VALUE) && echo_add_value(e, "with blank/and slash"));
	ck_assert(echo_finds(e, VALUE "\"", strlen(VALUE) + 1));
	ck_assert(echo_finds(e, "with blank\\/and slash", 21));
	ck_assert(!echo_finds(e, "with blank\\and slash", 20));
	echo_free(e);
}
END_TEST

START_TEST(bounds)
{
	struct echo *e = echo_new();
	char text[64];
	unsigned int added = 0;

	/* What is too short is not looked for. */
	ck_assert(echo_add(e, "Bear"));
	ck_assert(!echo_finds(e, "Bear", 4));
	do {
		(void)snprintf(text, sizeof(text), "%s%u", VALUE, added);
	} while (added++ < MAX_ECHO_SPELLINGS && echo_add(e, text) && echo_add(e, text));
	ck_assert(added >= 8 && added < MAX_ECHO_SPELLINGS);
	echo_free(e);
	echo_free(NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("proxy_echo");
	TCase *tc = tcase_create("all");

	suite_add_tcase(suite, tc);
	tcase_add_test(tc, spellings);
	tcase_add_test(tc, values);
	tcase_add_test(tc, bounds);
	return suite_run(suite);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Request and response heads and chunked bodies. Each malformed request differs in
 * one thing from one that is taken; test/t/proxy.t sends a longer list over sockets.
 */
#include "proxy/http.h"
#include "test_base_suite.h"

#define GET "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n"
#define POST "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\n"
#define LINE(text) text, sizeof(text) - 1

static struct http_head head;
static struct http_bad bad;

static enum http_verdict parse(const char *p, size_t n)
{
	/* A copy of just that size: a look past its end is seen by the sanitizer. */
	static char *copy;

	free(copy);
	copy = malloc(n ? n : 1);
	ck_assert_ptr_nonnull(copy);
	memcpy(copy, p, n);
	bad = (struct http_bad){0};
	return http_request_parse(copy, n, &head, &bad);
}

static const struct {
	const char *text;
	size_t n;
} good[] = {
	{LINE(GET "\r\n")},
	{LINE("GET http://a.test HTTP/1.1\r\nHost: a.test\r\n\r\n")},
	{LINE("GET http://a.test?x=1 HTTP/1.1\r\nHost: a.test:80\r\n\r\n")},
	{LINE("GET http://A.Test:8080/ HTTP/1.1\r\nHost: a.TEST:8080\r\n\r\n")},
	{LINE("GET http://a.test./ HTTP/1.1\r\nHost: a.test\r\n\r\n")},
	{LINE("GET HTTP://a.test/ HTTP/1.1\r\nHOST:a.test\r\n\r\n")},
	{LINE("GET http://[2001:db8::1]/ HTTP/1.1\r\nHost: [2001:db8::1]\r\n\r\n")},
	{LINE("GET http://a.test/ HTTP/1.0\r\n\r\n")},
	{LINE("CONNECT a.test:443 HTTP/1.0\r\n\r\n")},
	{LINE("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n")},
	{LINE("CONNECT a.test:22 HTTP/1.1\r\nHost: a.test:22\r\n\r\n")},
	{LINE("CONNECT [::1]:22 HTTP/1.1\r\nHost: [::1]:22\r\n\r\n")},
	{LINE("OPTIONS http://a.test HTTP/1.1\r\nHost: a.test\r\n\r\n")},
	{LINE(POST "Content-Length: 0\r\n\r\n")},
	{LINE(POST "Content-Length: 17\r\nExpect: 100-Continue\r\n\r\n")},
	{LINE(POST "Transfer-Encoding: Chunked\r\n\r\n")},
	{LINE(GET "X: \t v \xff \t\r\nY:\r\n\r\n")},
	{LINE(GET "Connection: keep-alive, X-A\r\nX-A: 1\r\n\r\n")},
	{LINE(GET "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n")},
	{LINE(GET "Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic eA==\r\n\r\n")},
};

START_TEST(takes_what_is_well_formed)
{
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		enum http_verdict v = parse(good[i].text, good[i].n);
		ck_assert_msg(v == HTTP_DONE, "%s: %s", good[i].text, bad.why);
		ck_assert_uint_eq(head.bytes, good[i].n);
		/* Every beginning of it wants more, and is never wrong. */
		for (size_t n = 0; n < good[i].n; n++)
			ck_assert_int_eq(parse(good[i].text, n), HTTP_MORE);
	}
}
END_TEST

static const struct {
	const char *text;
	size_t n;
	unsigned int status;
} malformed[] = {
	/* lengths */
	{LINE(POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"), 400},
	{LINE(POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\n"), 400},
	{LINE(POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n"), 400},
	{LINE(POST "Content-Length: 5, 5\r\n\r\n"), 400},
	{LINE(POST "Content-Length: +5\r\n\r\n"), 400},
	{LINE(POST "Content-Length: -5\r\n\r\n"), 400},
	{LINE(POST "Content-Length: 05\r\n\r\n"), 400},
	{LINE(POST "Content-Length: 0x5\r\n\r\n"), 400},
	{LINE(POST "Content-Length: 5 5\r\n\r\n"), 400},
	{LINE(POST "Content-Length: \r\n\r\n"), 400},
	{LINE(POST "Content-Length: 1234567890123456789\r\n\r\n"), 400},
	{LINE(POST "Content_Length: 5\r\n\r\n"), 400},
	{LINE(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"), 400},
	{LINE(POST "Transfer-Encoding: xchunked\r\n\r\n"), 501},
	{LINE(POST "Transfer-Encoding: gzip, chunked\r\n\r\n"), 501},
	{LINE(POST "Transfer-Encoding: chunked, identity\r\n\r\n"), 501},
	{LINE(POST "Transfer-Encoding: \"chunked\"\r\n\r\n"), 501},
	{LINE(POST "Transfer-Encoding: \x0b"
		   "chunked\r\n\r\n"),
	 400},
	{LINE(POST "Transfer_Encoding: chunked\r\n\r\n"), 400},
	{LINE("POST http://a.test/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400},
	/* lines */
	{LINE("GET http://a.test/ HTTP/1.1\nHost: a.test\r\n\r\n"), 400},
	{LINE(GET "X: 1\n\r\n"), 400},
	{LINE(GET "X: 1\rY: 2\r\n\r\n"), 400},
	{LINE(GET "X: 1\r\r\n\r\n"), 400},
	{LINE(GET "\n"), 400},
	{LINE("\r\n" GET "\r\n"), 400},
	{LINE(GET " folded\r\n\r\n"), 400},
	{LINE(GET "X: 1\r\n\tfolded\r\n\r\n"), 400},
	{LINE(GET "X : 1\r\n\r\n"), 400},
	{LINE(GET ": 1\r\n\r\n"), 400},
	{LINE(GET "X\r\n\r\n"), 400},
	{LINE(GET "X\xe9: 1\r\n\r\n"), 400},
	{LINE(GET "X(: 1\r\n\r\n"), 400},
	{LINE(GET "X: \x00\r\n\r\n"), 400},
	{LINE(GET "X\x00Y: 1\r\n\r\n"), 400},
	{LINE(GET "X: \x7f\r\n\r\n"), 400},
	{LINE(GET "X: \x01\r\n\r\n"), 400},
	/* the first line */
	{LINE("GET  http://a.test/ HTTP/1.1\r\n"), 400},
	{LINE("GET http://a.test/ HTTP/1.1 \r\n"), 400},
	{LINE("GET\thttp://a.test/ HTTP/1.1\r\n"), 400},
	{LINE("GET http://a.test/\r\n"), 400},
	{LINE("GET http://a.test/ HTTP/1.2\r\n"), 505},
	{LINE("GET http://a.test/ HTTP/2.0\r\n"), 505},
	{LINE("GET http://a.test/ http/1.1\r\n"), 400},
	{LINE("GET http://a.test/ HTTP/1.10\r\n"), 400},
	{LINE("PRI * HTTP/2.0\r\n"), 505},
	{LINE("get http://a.test/ HTTP/1.1\r\n"), 501},
	{LINE("TRACE http://a.test/ HTTP/1.1\r\n"), 501},
	{LINE("G\xe9T http://a.test/ HTTP/1.1\r\n"), 400},
	/* targets */
	{LINE("GET / HTTP/1.1\r\n"), 403},
	{LINE("GET a.test HTTP/1.1\r\n"), 400},
	{LINE("GET https://a.test/ HTTP/1.1\r\n"), 400},
	{LINE("GET ftp://a.test/ HTTP/1.1\r\n"), 400},
	{LINE("GET http:///x HTTP/1.1\r\n"), 400},
	{LINE("GET http://u@a.test/ HTTP/1.1\r\n"), 400},
	{LINE("GET http://a.test\\@b.test/ HTTP/1.1\r\n"), 400},
	{LINE("GET http://a.test#b HTTP/1.1\r\n"), 400},
	{LINE("GET http://a%2etest/ HTTP/1.1\r\n"), 400},
	{LINE("GET http://a.test:/ HTTP/1.1\r\n"), 400},
	{LINE("GET http://a.test:0/ HTTP/1.1\r\n"), 400},
	{LINE("GET http://a.test:080/ HTTP/1.1\r\n"), 400},
	{LINE("GET http://a.test:65536/ HTTP/1.1\r\n"), 400},
	{LINE("GET http://[::1/ HTTP/1.1\r\n"), 400},
	{LINE("GET http://[fe80::1%25eth0]/ HTTP/1.1\r\n"), 400},
	{LINE("GET http://a.test/\xc3\xa9 HTTP/1.1\r\n"), 400},
	{LINE("CONNECT a.test HTTP/1.1\r\n"), 400},
	{LINE("CONNECT a.test: HTTP/1.1\r\n"), 400},
	{LINE("CONNECT http://a.test:443 HTTP/1.1\r\n"), 400},
	{LINE("CONNECT a.test:443/ HTTP/1.1\r\n"), 400},
	{LINE("CONNECT u@a.test:443 HTTP/1.1\r\n"), 400},
	{LINE("CONNECT a.test:443:443 HTTP/1.1\r\n"), 400},
	{LINE("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\nContent-Length: 0\r\n\r\n"), 400},
	{LINE("CONNECT a.test:443 HTTP/1.1\r\nHost: b.test:443\r\n\r\n"), 400},
	/* Host */
	{LINE("GET http://a.test/ HTTP/1.1\r\n\r\n"), 400},
	{LINE(GET "Host: a.test\r\n\r\n"), 400},
	{LINE("GET http://a.test/ HTTP/1.1\r\nHost: b.test\r\n\r\n"), 400},
	{LINE("GET http://a.test/ HTTP/1.1\r\nHost: a.test:8080\r\n\r\n"), 400},
	{LINE("GET http://a.test:8080/ HTTP/1.1\r\nHost: a.test\r\n\r\n"), 400},
	{LINE("GET http://a.test/ HTTP/1.1\r\nHost: a.test, b.test\r\n\r\n"), 400},
	{LINE("GET http://a.test/ HTTP/1.1\r\nHost:\r\n\r\n"), 400},
	{LINE("GET http://a.test/ HTTP/1.1\r\nHost: u@a.test\r\n\r\n"), 400},
	{LINE("GET http://a.test/ HTTP/1.0\r\nHost: b.test\r\n\r\n"), 400},
	/* connections */
	{LINE(GET "Connection: content-length\r\n\r\n"), 400},
	{LINE(GET "Connection: close, host\r\n\r\n"), 400},
	{LINE(GET "Connection: a b\r\n\r\n"), 400},
	{LINE(GET "Upgrade: websocket\r\n\r\n"), 400},
	{LINE(GET "Connection: upgrade\r\n\r\n"), 400},
	{LINE(GET "Connection: upgrade\r\nUpgrade: a,,b\r\n\r\n"), 400},
	{LINE(POST "Connection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 3\r\n\r\n"), 400},
	{LINE(POST "Expect: 200-ok\r\nContent-Length: 3\r\n\r\n"), 417},
};

START_TEST(refuses_what_is_not)
{
	size_t n = sizeof(malformed) / sizeof(malformed[0]);

	ck_assert_uint_ge(n, 75);
	for (size_t i = 0; i < n; i++) {
		enum http_verdict v = parse(malformed[i].text, malformed[i].n);
		ck_assert_msg(v == HTTP_BAD, "taken: %s", malformed[i].text);
		ck_assert_msg(bad.status == malformed[i].status, "%u (%s): %s", bad.status, bad.why,
			      malformed[i].text);
		ck_assert_ptr_nonnull(bad.why);
	}
}
END_TEST

START_TEST(limits_are_where_they_are_said_to_be)
{
	static char text[MAX_HEAD_BYTES + 64];
	size_t n = 0;

	/* fields */
	for (int extra = 0; extra < 2; extra++) {
		n = (size_t)sprintf(text, GET);
		for (int i = 1; i < MAX_HEAD_FIELDS + extra; i++)
			n += (size_t)sprintf(text + n, "X%d: y\r\n", i);
		n += (size_t)sprintf(text + n, "\r\n");
		ck_assert_int_eq(parse(text, n), extra ? HTTP_BAD : HTTP_DONE);
	}
	ck_assert_uint_eq(bad.status, 431);
	/* bytes */
	for (size_t extra = 0; extra < 2; extra++) {
		n = (size_t)sprintf(text, GET "X: ");
		memset(text + n, 'y', MAX_HEAD_BYTES);
		n = MAX_HEAD_BYTES + extra;
		memcpy(text + n - 4, "\r\n\r\n", 4);
		ck_assert_int_eq(parse(text, n), extra ? HTTP_BAD : HTTP_DONE);
	}
	ck_assert_uint_eq(bad.status, 431);
	/* one line without an end */
	memset(text, 'y', MAX_HEAD_BYTES);
	ck_assert_int_eq(parse(text, MAX_HEAD_BYTES - 1), HTTP_MORE);
	ck_assert_int_eq(parse(text, MAX_HEAD_BYTES), HTTP_BAD);
	/* the target */
	for (size_t extra = 0; extra < 2; extra++) {
		n = (size_t)sprintf(text, "GET http://a.test/");
		memset(text + n, 'y', MAX_TARGET_BYTES);
		n = 4 + MAX_TARGET_BYTES + extra;
		n += (size_t)sprintf(text + n, " HTTP/1.1\r\nHost: a.test\r\n\r\n");
		ck_assert_int_eq(parse(text, n), extra ? HTTP_BAD : HTTP_DONE);
	}
	ck_assert_uint_eq(bad.status, 414);
}
END_TEST

static const char *written(const char *text, const char *authority)
{
	static struct buf out;

	buf_release(&out);
	out = BUF_INIT(MAX_HEAD_BYTES);
	ck_assert_int_eq(parse(text, strlen(text)), HTTP_DONE);
	http_request_write(&head, authority, &out);
	ck_assert(!out.failed);
	return buf_cstr(&out);
}

START_TEST(writes_what_the_server_gets)
{
	ck_assert_str_eq(written(GET
				 "A:  b \r\nConnection: close, x-y\r\nX-Y: 1\r\nTE: trailers\r\n"
				 "Proxy-Authorization: Basic eA==\r\nKeep-Alive: 1\r\n\r\n",
				 "a.test"),
			 "GET / HTTP/1.1\r\nHost: a.test\r\nA: b\r\nConnection: close\r\n\r\n");
	ck_assert_str_eq(written("OPTIONS http://a.test HTTP/1.1\r\nHost: a.test\r\n\r\n",
				 "a.test"),
			 "OPTIONS * HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
	ck_assert_str_eq(written("GET http://a.test?q HTTP/1.0\r\n\r\n", "a.test"),
			 "GET /?q HTTP/1.0\r\nHost: a.test\r\nConnection: close\r\n\r\n");
	ck_assert_str_eq(written(POST "Transfer-Encoding: CHUNKED\r\n\r\n", "a.test"),
			 "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n"
			 "Connection: close\r\n\r\n");
	ck_assert_str_eq(written(GET "Connection: upgrade, http2-settings\r\nUpgrade: h2c\r\n"
				     "HTTP2-Settings: AA\r\n\r\n",
				 "a.test"),
			 "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
}
END_TEST

static enum http_verdict chunks(const char *text, size_t step, bool response, size_t *ret_used)
{
	struct http_chunks c = {.response = response};
	enum http_verdict v = HTTP_MORE;
	size_t n = strlen(text);

	*ret_used = 0;
	while (*ret_used < n && v == HTTP_MORE) {
		size_t used = 0;
		size_t some = n - *ret_used < step ? n - *ret_used : step;
		v = http_chunks_feed(&c, text + *ret_used, some, &used, &bad);
		*ret_used += used;
	}
	return v;
}

START_TEST(reads_chunks)
{
	static const char body[] =
		"5\r\nhello\r\n1A\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\nnext";
	size_t used;

	for (size_t step = 1; step < sizeof(body); step++) {
		ck_assert_int_eq(chunks(body, step, false, &used), HTTP_DONE);
		ck_assert_uint_eq(used, sizeof(body) - 5);
	}
	ck_assert_int_eq(chunks("0\r\n\r\n", 9, false, &used), HTTP_DONE);
	ck_assert_int_eq(chunks("000000000000005\r\nhello\r\n0\r\n\r\n", 99, false, &used),
			 HTTP_DONE);
	ck_assert_int_eq(chunks("5;a=b\r\nhello\r\n0;x\r\nA: b\r\nC:\r\n\r\n", 99, true, &used),
			 HTTP_DONE);
}
END_TEST

static const char *const bad_chunks[] = {
	"\r\n",
	"x\r\n",
	"0x5\r\nhello",
	"+5\r\nhello",
	"-1\r\n",
	" 5\r\nhello",
	"5 \r\nhello",
	"5;a=b\r\nhello",
	"5\nhello",
	"5\r\rhello",
	"5\rhello",
	"5\r\nhelloX",
	"5\r\nhello\n",
	"5\r\nhello\r\r",
	"5\r\nhello\r\n\r\n",
	"0\r\nX: 1\r\n",
	"0\r\n\n",
	"0\r\n\r\r",
	"0\n\r\n",
	"1234567890123456\r\n",
	"5\r\nhello5\r\n",
	"5_0\r\n",
	"5h\r\n",
	"5\x0b\r\n",
	"\xef\xbc\x95\r\n",
	"5,5\r\nhello",
};

START_TEST(refuses_other_chunks)
{
	size_t used;

	for (size_t i = 0; i < sizeof(bad_chunks) / sizeof(bad_chunks[0]); i++)
		for (size_t step = 1; step < 8; step++)
			ck_assert_msg(chunks(bad_chunks[i], step, false, &used) == HTTP_BAD, "%s",
				      bad_chunks[i]);
	ck_assert_int_eq(chunks("5;\x01\r\n", 9, true, &used), HTTP_BAD);
	ck_assert_int_eq(chunks("0\r\n folded\r\n", 9, true, &used), HTTP_BAD);
}
END_TEST

static enum http_verdict answered(const char *text, bool to_head)
{
	return http_response_parse(text, strlen(text), to_head, &head, &bad);
}

START_TEST(reads_responses)
{
	ck_assert_int_eq(answered("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", false),
			 HTTP_DONE);
	ck_assert_int_eq(head.body, HTTP_BODY_LENGTH);
	ck_assert_int_eq(answered("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", true), HTTP_DONE);
	ck_assert_int_eq(head.body, HTTP_BODY_NONE);
	ck_assert_int_eq(answered("HTTP/1.1 204\r\n\r\n", false), HTTP_DONE);
	ck_assert_int_eq(head.body, HTTP_BODY_NONE);
	ck_assert_int_eq(answered("HTTP/1.0 200 \r\n\r\n", false), HTTP_DONE);
	ck_assert_int_eq(head.body, HTTP_BODY_CLOSE);
	ck_assert(!head.keep_alive);
	ck_assert_int_eq(answered("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false),
			 HTTP_DONE);
	ck_assert_int_eq(head.body, HTTP_BODY_CHUNKED);
	ck_assert_int_eq(answered("HTTP/1.1 2000 OK\r\n\r\n", false), HTTP_BAD);
	ck_assert_int_eq(answered("HTTP/1.1 20 OK\r\n\r\n", false), HTTP_BAD);
	ck_assert_int_eq(answered("ICY 200 OK\r\n\r\n", false), HTTP_BAD);
	ck_assert_int_eq(answered("HTTP/1.1 200 OK\n\n", false), HTTP_BAD);
	ck_assert_int_eq(answered("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n"
				  "Transfer-Encoding: chunked\r\n\r\n",
				  false),
			 HTTP_BAD);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("proxy_http");
	TCase *tc = tcase_create("all");

	suite_add_tcase(suite, tc);
	tcase_add_test(tc, takes_what_is_well_formed);
	tcase_add_test(tc, refuses_what_is_not);
	tcase_add_test(tc, limits_are_where_they_are_said_to_be);
	tcase_add_test(tc, writes_what_the_server_gets);
	tcase_add_test(tc, reads_chunks);
	tcase_add_test(tc, refuses_other_chunks);
	tcase_add_test(tc, reads_responses);
	return suite_run(suite);
}

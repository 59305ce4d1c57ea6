/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SOCKS5, DNS, ClientHello and the pool of synthetic addresses.
 */
#include "base/base.h"
#include "proxy/clienthello.h"
#include "proxy/dns.h"
#include "proxy/names.h"
#include "proxy/socks5.h"
#include "test_base_suite.h"

#define BYTES(text) (const unsigned char *)(text), sizeof(text) - 1

/* A copy of just that size, so that a look past its end is seen by the sanitizer. */
static const unsigned char *exactly(const void *p, size_t n)
{
	static unsigned char *copy;

	free(copy);
	copy = malloc(n ? n : 1);
	ck_assert_ptr_nonnull(copy);
	memcpy(copy, p, n);
	return copy;
}

START_TEST(socks_messages)
{
	struct socks_request r;
	enum socks_reply reply;
	unsigned char method = 9;
	size_t bytes = 0;
	static const char name[] = "\5\1\0\3\6a.test\1\273";
	static const char four[] = "\5\1\0\1\177\0\0\1\0\120";

	ck_assert_int_eq(socks_greeting_parse(BYTES("\5\1\0"), &bytes, &method), SOCKS_DONE);
	ck_assert_uint_eq(method, 0);
	ck_assert_int_eq(socks_greeting_parse(BYTES("\5\2\2\0x"), &bytes, &method), SOCKS_DONE);
	ck_assert_uint_eq(bytes, 4);
	ck_assert_int_eq(socks_greeting_parse(BYTES("\5\1\2"), &bytes, &method), SOCKS_DONE);
	ck_assert_uint_eq(method, 0xff);
	ck_assert_int_eq(socks_greeting_parse(BYTES("\5\0"), &bytes, &method), SOCKS_BAD);
	ck_assert_int_eq(socks_greeting_parse(BYTES("\4\1"), &bytes, &method), SOCKS_BAD);
	ck_assert_int_eq(socks_greeting_parse(BYTES("GET"), &bytes, &method), SOCKS_BAD);
	for (size_t n = 0; n < sizeof(name) - 1; n++)
		ck_assert_int_eq(socks_request_parse(exactly(name, n), n, &r, &reply), SOCKS_MORE);
	ck_assert_int_eq(socks_request_parse(BYTES(name), &r, &reply), SOCKS_DONE);
	ck_assert_uint_eq(r.port, 443);
	ck_assert_uint_eq(r.host_len, 6);
	ck_assert_int_eq(socks_request_parse(BYTES(four), &r, &reply), SOCKS_DONE);
	ck_assert_uint_eq(r.port, 80);
	ck_assert_int_eq(socks_request_parse(BYTES("\5\2\0\1\177\0\0\1\0\120"), &r, &reply),
			 SOCKS_DONE);
	ck_assert_uint_eq(r.command, 2);
}
END_TEST

START_TEST(socks_refuses)
{
	struct socks_request r;
	enum socks_reply reply;
	static const struct {
		const char *p;
		size_t n;
		enum socks_reply reply;
	} rows[] = {
		{"\4\1", 2, SOCKS_FAILURE},
		{"\5\0", 2, SOCKS_FAILURE},
		{"\5\4", 2, SOCKS_FAILURE},
		{"\5\1\1", 3, SOCKS_FAILURE},
		{"\5\1\0\2\0", 5, SOCKS_NO_TYPE},
		{"\5\1\0\0\0", 5, SOCKS_NO_TYPE},
		{"\5\1\0\5\0", 5, SOCKS_NO_TYPE},
		{"\5\1\0\3\0\0\120", 7, SOCKS_FAILURE},
		{"\5\1\0\3\1a\0\0", 8, SOCKS_FAILURE},
		{"\5\1\0\1\1\2\3\4\0\0", 10, SOCKS_FAILURE},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		ck_assert_int_eq(socks_request_parse(exactly(rows[i].p, rows[i].n), rows[i].n, &r,
						     &reply),
				 SOCKS_BAD);
		ck_assert_int_eq(reply, rows[i].reply);
	}
}
END_TEST

#define DNS_HEAD "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
#define DNS_HEAD_OPT "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01"
#define DNS_ASK "\1a\4test\0\0\1\0\1"
#define DNS_OPT "\0\0\x29\4\xd0\0\0\0\0\0\0"

START_TEST(dns_queries)
{
	struct dns_query q;
	struct dns_answer a = {.extended = -1,
			       .ttl = 30,
			       .address_len = 4,
			       .address = {198, 18, 0, 1}};
	unsigned char out[MAX_DNS_ANSWER];

	ck_assert(dns_query_parse(BYTES(DNS_HEAD DNS_ASK), &q));
	ck_assert_int_eq(q.rcode, DNS_NOERROR);
	ck_assert_str_eq(q.name, "a.test");
	ck_assert_uint_eq(q.type, DNS_A);
	ck_assert(!q.edns);
	ck_assert_uint_eq(dns_answer_write(&q, &a, out), 12 + 12 + 16);
	ck_assert_mem_eq(out,
			 "\x12\x34\x81\x80\0\1\0\1\0\0\0\0" DNS_ASK
			 "\xc0\x0c\0\1\0\1\0\0\0\x1e\0\4\xc6\x12\0\1",
			 40);
	ck_assert(dns_query_parse(BYTES(DNS_HEAD_OPT DNS_ASK DNS_OPT), &q));
	ck_assert(q.edns);
	ck_assert_int_eq(q.rcode, DNS_NOERROR);
	a = (struct dns_answer){.rcode = DNS_REFUSED, .extended = DNS_BLOCKED, .text = "why"};
	ck_assert_uint_eq(dns_answer_write(&q, &a, out), 12 + 12 + 11 + 9);
	ck_assert_mem_eq(out + 24,
			 "\0\0\x29\4\xd0\0\0\0\0\0\x9\0\xf\0\5\0\xf"
			 "why",
			 20);
	/* the root, and names of every length */
	ck_assert(dns_query_parse(BYTES(DNS_HEAD "\0\0\2\0\1"), &q));
	ck_assert_str_eq(q.name, "");
}
END_TEST

START_TEST(dns_name_lengths)
{
	struct dns_query q;

	/* three labels of 63, and a last one that makes 255 or 256 on the wire */
	for (int last = 61; last <= 62; last++) {
		unsigned char p[512] = DNS_HEAD;
		size_t n = 12;
		for (int i = 0; i < 4; i++) {
			int len = i < 3 ? 63 : last;
			p[n++] = (unsigned char)len;
			memset(p + n, 'a', (size_t)len);
			n += (size_t)len;
		}
		memcpy(p + n, "\0\0\1\0\1", 5);
		ck_assert(dns_query_parse(exactly(p, n + 5), n + 5, &q));
		ck_assert_int_eq(q.rcode, last == 61 ? DNS_NOERROR : DNS_FORMERR);
	}
}
END_TEST

START_TEST(dns_refuses)
{
	struct dns_query q;
	static const struct {
		const char *p;
		size_t n;
		enum dns_rcode rcode;
	} rows[] = {
#define ROW(text, code) {text, sizeof(text) - 1, code}
		/* pointers */
		ROW(DNS_HEAD "\xc0\x0c\0\1\0\1", DNS_FORMERR),
		ROW(DNS_HEAD "\1a\xc0\x0c\0\1\0\1", DNS_FORMERR),
		ROW(DNS_HEAD "\1a\xc0\xff\0\1\0\1", DNS_FORMERR),
		ROW(DNS_HEAD "\xff\xff\0\1\0\1", DNS_FORMERR),
		ROW(DNS_HEAD "\x40"
			     "a\0\0\1\0\1",
		    DNS_FORMERR),
		ROW(DNS_HEAD "\x80"
			     "a\0\0\1\0\1",
		    DNS_FORMERR),
		/* counts, ends */
		ROW("\x12\x34\1\0\0\0\0\0\0\0\0\0", DNS_FORMERR),
		ROW("\x12\x34\1\0\0\2\0\0\0\0\0\0" DNS_ASK DNS_ASK, DNS_FORMERR),
		ROW("\x12\x34\1\0\0\1\0\1\0\0\0\0" DNS_ASK, DNS_FORMERR),
		ROW("\x12\x34\1\0\0\1\0\0\0\1\0\0" DNS_ASK, DNS_FORMERR),
		ROW("\x12\x34\1\0\0\1\0\0\0\0\0\2" DNS_ASK DNS_OPT DNS_OPT, DNS_FORMERR),
		ROW(DNS_HEAD DNS_ASK "x", DNS_FORMERR),
		ROW(DNS_HEAD "\1a\4test\0\0\1\0", DNS_FORMERR),
		ROW(DNS_HEAD "\1a\4tes", DNS_FORMERR),
		ROW(DNS_HEAD "\1a\4test", DNS_FORMERR),
		ROW(DNS_HEAD, DNS_FORMERR),
		ROW(DNS_HEAD_OPT DNS_ASK, DNS_FORMERR),
		ROW(DNS_HEAD_OPT DNS_ASK DNS_OPT "x", DNS_FORMERR),
		ROW(DNS_HEAD_OPT DNS_ASK "\0\0\x29\4\xd0\0\0\0\0\0\3\0\1\0", DNS_FORMERR),
		ROW(DNS_HEAD_OPT DNS_ASK "\0\0\x29\4\xd0\0\0\0\0\0\4\0\1\0\1", DNS_FORMERR),
		ROW(DNS_HEAD_OPT DNS_ASK "\0\0\1\4\xd0\0\0\0\0\0\0", DNS_FORMERR),
		/* kinds of message */
		ROW("\x12\x34\x09\0\0\1\0\0\0\0\0\0" DNS_ASK, DNS_NOTIMP),
		ROW("\x12\x34\x28\0\0\1\0\0\0\0\0\0" DNS_ASK, DNS_NOTIMP),
		ROW("\x12\x34\x03\0\0\1\0\0\0\0\0\0" DNS_ASK, DNS_FORMERR),
		ROW("\x12\x34\1\3\0\1\0\0\0\0\0\0" DNS_ASK, DNS_FORMERR),
		ROW(DNS_HEAD_OPT DNS_ASK "\0\0\x29\4\xd0\0\1\0\0\0\0", DNS_BADVERS),
		/* classes and names */
		ROW(DNS_HEAD "\1a\4test\0\0\1\0\3", DNS_REFUSED),
		ROW(DNS_HEAD "\1a\4test\0\0\1\0\xff", DNS_REFUSED),
		ROW(DNS_HEAD "\6a.test\0\0\1\0\1", DNS_REFUSED),
		ROW(DNS_HEAD "\2a\0\4test\0\0\1\0\1", DNS_REFUSED),
		ROW(DNS_HEAD "\2a \4test\0\0\1\0\1", DNS_REFUSED),
		ROW(DNS_HEAD "\2\xc3\xa9\4test\0\0\1\0\1", DNS_REFUSED),
		ROW(DNS_HEAD "\2a\\\4test\0\0\1\0\1", DNS_REFUSED),
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		ck_assert_msg(dns_query_parse(exactly(rows[i].p, rows[i].n), rows[i].n, &q),
			      "row %zu", i);
		ck_assert_msg(q.rcode == rows[i].rcode, "row %zu: %d", i, (int)q.rcode);
	}
	ck_assert(!dns_query_parse(BYTES("\x12\x34\1\0\0\1\0\0\0\0\0"), &q));
	ck_assert(!dns_query_parse(BYTES("\x12\x34\x81\0\0\1\0\0\0\0\0\0" DNS_ASK), &q));
}
END_TEST

/* A ClientHello with those extensions, in records of at most `record` bytes. */
static size_t hello_make(const char *extensions, size_t len, size_t record, unsigned char *ret)
{
	unsigned char m[4096] = {1, 0};
	size_t n = 4;

	m[n++] = 3;
	m[n++] = 3;
	n += 32;
	m[n++] = 0;
	memcpy(m + n, "\0\2\x13\1\1\0", 6);
	n += 6;
	m[n++] = (unsigned char)(len >> 8);
	m[n++] = (unsigned char)len;
	memcpy(m + n, extensions, len);
	n += len;
	m[2] = (unsigned char)((n - 4) >> 8);
	m[3] = (unsigned char)(n - 4);
	size_t out = 0;
	for (size_t at = 0; at < n; at += record) {
		size_t some = n - at < record ? n - at : record;
		memcpy(ret + out, "\x16\3\1", 3);
		ret[out + 3] = (unsigned char)(some >> 8);
		ret[out + 4] = (unsigned char)some;
		memcpy(ret + out + 5, m + at, some);
		out += 5 + some;
	}
	return out;
}

#define SNI "\0\0\0\xb\0\x9\0\0\6a.test"
#define ALPN "\0\x10\0\xe\0\xc\2h2\x8http/1.1"
#define ECH "\xfe\x0d\0\1\0"

START_TEST(hellos)
{
	static unsigned char p[65536];
	struct hello h;
	static const char all[] = ECH SNI ALPN;

	for (size_t record = 1; record < 200; record++) {
		size_t n = hello_make(all, sizeof(all) - 1, record, p);
		ck_assert_int_eq(hello_parse(exactly(p, n), n, &h), HELLO_DONE);
		ck_assert(h.has_sni && h.has_ech);
		ck_assert_uint_eq(h.sni_len, 6);
		ck_assert_mem_eq(h.sni, "a.test", 6);
		ck_assert_str_eq(h.alpn, "h2,http/1.1");
	}
	size_t n = hello_make(all, sizeof(all) - 1, 50, p);
	for (size_t i = 0; i < n; i++)
		ck_assert_int_eq(hello_parse(exactly(p, i), i, &h), HELLO_MORE);
	n = hello_make("", 0, 4096, p);
	ck_assert_int_eq(hello_parse(exactly(p, n), n, &h), HELLO_DONE);
	ck_assert(!h.has_sni && !h.has_ech);
	ck_assert_int_eq(hello_parse(BYTES("GET / HTTP/1.1"), &h), HELLO_NOT_TLS);
	ck_assert_int_eq(hello_parse(BYTES("\x16\x10"), &h), HELLO_NOT_TLS);
	ck_assert_int_eq(hello_parse(BYTES("\x15\3\1\0\3"), &h), HELLO_NOT_TLS);
	ck_assert_int_eq(hello_parse(BYTES("\x14\3\1\0\2"), &h), HELLO_NOT_TLS);
	ck_assert_int_eq(hello_parse(BYTES("\x17\3\3\0\1"), &h), HELLO_NOT_TLS);
	ck_assert_int_eq(hello_parse(BYTES("\x16\3\x9"), &h), HELLO_MORE);
	ck_assert_int_eq(hello_parse(BYTES("\x15\3\1\0"), &h), HELLO_MORE);
	/* An SSLRequest of PostgreSQL, a message of MongoDB of 277 bytes. */
	ck_assert_int_eq(hello_parse(BYTES("\0\0\0\x8\4\xd2\x16\x2f"), &h), HELLO_NOT_TLS);
	ck_assert_int_eq(hello_parse(BYTES("\x15\1\0\0\7\0\0\0"), &h), HELLO_NOT_TLS);
}
END_TEST

START_TEST(hellos_in_the_middle)
{
	unsigned char p[8192];
	size_t n = hello_make(SNI, sizeof(SNI) - 1, 4096, p);

	ck_assert(hello_begins(exactly(p, n), n, false) && hello_begins(exactly(p, n), n, true));
	for (size_t i = 1; i < 11; i++) {
		ck_assert(hello_begins(exactly(p, i), i, false));
		ck_assert(!hello_begins(exactly(p, i), i, true));
	}
	ck_assert(!hello_begins(BYTES(""), false));
	ck_assert(!hello_begins(BYTES("QUIT\r\n"), false));
	ck_assert(!hello_begins(BYTES("\x16\3\5"), false));
	ck_assert(!hello_begins(BYTES("\x16\3\1\2\0\2\0\1\xfc\3\3"), true));
	ck_assert(!hello_begins(BYTES("\x16\3\1\2\0\1\0\1\xfc\4\3"), true));
}
END_TEST

START_TEST(hellos_refused)
{
	static unsigned char p[65536];
	struct hello h;
	static const struct {
		const char *p;
		size_t n;
	} rows[] = {
#define BAD_HELLO(text) {text, sizeof(text) - 1}
		BAD_HELLO(SNI SNI),                                    /* twice */
		BAD_HELLO("\0\0\0\x14\0\x12\0\0\6a.test\0\0\6b.test"), /* two names */
		BAD_HELLO("\0\0\0\xb\0\x9\0\0\6a.\0est"),              /* NUL */
		BAD_HELLO("\0\0\0\xb\0\x9\1\0\6a.test"),               /* another type */
		BAD_HELLO("\0\0\0\5\0\3\0\0\0"),                       /* empty */
		BAD_HELLO("\0\0\0\xb\0\x8\0\0\6a.test"),               /* lengths that differ */
		BAD_HELLO("\0\0\0\xc\0\x9\0\0\6a.testx"),
		BAD_HELLO("\0\0\0\xb\0\xa\0\0\6a.test"),
		BAD_HELLO("\0\0\0\0"),
		BAD_HELLO("\0\0"),
		BAD_HELLO("\0\x2b\0\x9\3\4"),
		BAD_HELLO("\0\x10\0\3\0\1\0"),
		BAD_HELLO("\0\x10\0\4\0\2\5h"),
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t n = hello_make(rows[i].p, rows[i].n, 4096, p);
		ck_assert_msg(hello_parse(exactly(p, n), n, &h) == HELLO_BAD, "row %zu", i);
	}
	size_t n = hello_make(SNI, sizeof(SNI) - 1, 20, p);
	p[25] = 23; /* another record in between */
	ck_assert_int_eq(hello_parse(exactly(p, n), n, &h), HELLO_BAD);
	ck_assert_int_eq(hello_parse(BYTES("\x16\3\1\0\0"), &h), HELLO_BAD);
	/* Servers take these, and a hello behind them. */
	ck_assert_int_eq(hello_parse(BYTES("\x16\3\5\0\x40"), &h), HELLO_BAD);
	ck_assert_int_eq(hello_parse(BYTES("\x16\3\xff\0\x40"), &h), HELLO_BAD);
	ck_assert_int_eq(hello_parse(BYTES("\x16\xa\1\0\x40"), &h), HELLO_BAD);
	ck_assert_int_eq(hello_parse(BYTES("\x15\3\1\0\2\1\x64"), &h), HELLO_BAD);
	ck_assert_int_eq(hello_parse(BYTES("\x14\3\3\0\1\1"), &h), HELLO_BAD);
	ck_assert_int_eq(hello_parse(BYTES("\x16\3\1\xff\xff"), &h), HELLO_BAD);
	ck_assert_int_eq(hello_parse(BYTES("\x16\3\1\0\4\2\0\0\0"), &h), HELLO_BAD);
	/* one that never ends: MAX_HELLO_BYTES of it are enough */
	memset(p, 0, sizeof(p));
	memcpy(p, "\x16\3\1\x40\0\1\0\x40\0", 9);
	memcpy(p + 43, "\0\x3f\xc0", 3);
	memcpy(p + 16367, "\0\x18\0\1\0\x14", 6);
	ck_assert_int_eq(hello_parse(p, MAX_HELLO_BYTES - 1, &h), HELLO_MORE);
	ck_assert_int_eq(hello_parse(p, MAX_HELLO_BYTES, &h), HELLO_BAD);
}
END_TEST

static struct host named(const char *text)
{
	struct host h;

	ck_assert_int_eq(host_read(text, strlen(text), &h), HOST_GOOD);
	return h;
}

START_TEST(pool_of_names)
{
	struct names s;
	struct err e;
	struct address a;
	struct address six;
	struct host first = named("first.test");
	char text[64];

	CK_WORKS(names_init(&s, 42, &e), e);
	struct name *n = names_take(&s, &first, 1);
	ck_assert_ptr_nonnull(n);
	ck_assert_ptr_eq(names_take(&s, &first, 2), n);
	names_address4(n, &a);
	names_address6(n, &six);
	ck_assert_str_eq(address_format(&a, text), "198.18.0.1");
	ck_assert_ptr_eq(names_find(&s, &a), n);
	ck_assert_ptr_eq(names_find(&s, &six), n);
	a.b[3]++;
	ck_assert_ptr_null(names_find(&s, &a));
	a = (struct address){4, {198, 18, 0, 0}};
	ck_assert_ptr_null(names_find(&s, &a));
	a = (struct address){4, {198, 17, 255, 255}};
	ck_assert_ptr_null(names_find(&s, &a));
	six.b[0] ^= 1;
	ck_assert_ptr_null(names_find(&s, &six));

	/* full: nothing while all are young, then the oldest without a connection */
	names_hold(&s, n, 3);
	for (unsigned int i = 1; i < MAX_SYNTHETIC_NAMES; i++) {
		(void)snprintf(text, sizeof(text), "n%u.test", i);
		struct host h = named(text);
		ck_assert_ptr_nonnull(names_take(&s, &h, 3));
	}
	struct host late = named("late.test");
	ck_assert_ptr_null(names_take(&s, &late, 4));
	uint64_t later = 3 + 2000 * NAME_TTL_S;
	struct name *taken = names_take(&s, &late, later);
	ck_assert_ptr_nonnull(taken);
	ck_assert_uint_eq(taken->index, 1); /* n1.test; first.test is connected to */
	ck_assert_str_eq(names_take(&s, &first, later)->host.text, "first.test");
	ck_assert_ptr_eq(names_take(&s, &first, later), n);
	names_drop(&s, n, later);
	names_release(&s);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("proxy_small");
	TCase *tc = tcase_create("all");

	suite_add_tcase(suite, tc);
	tcase_add_test(tc, socks_messages);
	tcase_add_test(tc, socks_refuses);
	tcase_add_test(tc, dns_queries);
	tcase_add_test(tc, dns_name_lengths);
	tcase_add_test(tc, dns_refuses);
	tcase_add_test(tc, hellos);
	tcase_add_test(tc, hellos_in_the_middle);
	tcase_add_test(tc, hellos_refused);
	tcase_add_test(tc, pool_of_names);
	return suite_run(suite);
}

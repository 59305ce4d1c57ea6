/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The authority and both kinds of legs, in memory: a client leg of ours is led against
 * a plain OpenSSL client that believes the authority, and the other way round.
 */
#include <string.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/base.h"
#include "egress/event.h"
#include "proxy/ca.h"
#include "proxy/tls.h"
#include "test_base_suite.h"

#define ROUNDS 50

static struct ca *ca;
static struct tls_ways *ways;

static void begin(void)
{
	struct err e;

	ck_assert_int_eq(ca_new(&ca, &e), 0);
	ck_assert_msg(tls_ways_new(ca, &ways, &e) == 0, "%s", e.msg);
}

static X509 *authority(void)
{
	char pem[MAX_EGRESS_CA_BYTES];
	size_t n = ca_pem(ca, pem, sizeof(pem));

	ck_assert_uint_gt(n, 100);
	ck_assert_uint_eq(strlen(pem), n);
	ck_assert_ptr_nonnull(strstr(pem, "-----BEGIN CERTIFICATE-----"));
	ck_assert_ptr_null(strstr(pem, "PRIVATE"));
	BIO *b = BIO_new_mem_buf(pem, (int)n);
	X509 *cert = PEM_read_bio_X509(b, NULL, NULL, NULL);
	BIO_free(b);
	ck_assert_ptr_nonnull(cert);
	return cert;
}

START_TEST(authority_and_leaves)
{
	struct leaf one, two, again;
	X509 *cert = NULL;
	char small[64];

	begin();
	cert = authority();
	ck_assert_uint_eq(ca_pem(ca, small, sizeof(small)), 0);
	ck_assert_int_eq(X509_check_ca(cert), 1);
	ck_assert(ca_leaf(ca, "one.test", false, &one));
	ck_assert(ca_leaf(ca, "192.0.2.1", true, &two));
	ck_assert(ca_leaf(ca, "one.test", false, &again));
	ck_assert_ptr_eq(one.cert, again.cert);
	ck_assert_int_eq(X509_check_host(one.cert, "one.test", 0, 0, NULL), 1);
	ck_assert_int_eq(X509_check_host(one.cert, "two.test", 0, 0, NULL), 0);
	ck_assert_int_eq(X509_check_host(one.cert, "a.one.test", 0, 0, NULL), 0);
	ck_assert_int_eq(X509_check_ip_asc(two.cert, "192.0.2.1", 0), 1);
	ck_assert_int_eq(X509_check_ca(one.cert), 0);
	ck_assert_int_eq(X509_verify(one.cert, X509_get0_pubkey(cert)), 1);
	/* The leaf's key is not the authority's. */
	ck_assert_int_eq(EVP_PKEY_eq(one.key, X509_get0_pubkey(cert)), 0);
	X509_free(cert);
	tls_ways_free(ways);
	ca_free(ca);
}
END_TEST

/* At the limit a new leaf takes the place of the one that was used longest ago. */
START_TEST(leaves_are_bounded)
{
	struct leaf first, leaf;
	char host[300];

	begin();
	ck_assert(ca_leaf(ca, "first.test", false, &first));
	ck_assert(X509_up_ref(first.cert));
	for (unsigned int i = 0; i < MAX_LEAVES - 1; i++) {
		(void)snprintf(host, sizeof(host), "h%u.test", i);
		ck_assert(ca_leaf(ca, host, false, &leaf));
	}
	ck_assert(ca_leaf(ca, "first.test", false, &leaf));
	ck_assert_ptr_eq(leaf.cert, first.cert);
	ck_assert(ca_leaf(ca, "more.test", false, &leaf)); /* instead of h0 */
	ck_assert(ca_leaf(ca, "first.test", false, &leaf));
	ck_assert_ptr_eq(leaf.cert, first.cert);
	/* A name longer than a common name can be, and one that no host has. */
	memset(host, 'a', 253);
	for (size_t i = 60; i < 253; i += 61)
		host[i] = '.';
	host[253] = '\0';
	ck_assert(ca_leaf(ca, host, false, &leaf));
	ck_assert_int_eq(X509_check_host(leaf.cert, host, 0, 0, NULL), 1);
	memset(host, 'a', sizeof(host));
	host[sizeof(host) - 1] = '\0';
	ck_assert(!ca_leaf(ca, host, false, &leaf));
	X509_free(first.cert);
	tls_ways_free(ways);
	ca_free(ca);
}
END_TEST

/* The other end: OpenSSL as anybody uses it. */
struct other {
	SSL_CTX *ctx;
	SSL *ssl;
	BIO *in, *out;
};

static struct other other_client(const char *host)
{
	struct other o = {.ctx = SSL_CTX_new(TLS_client_method())};
	X509 *cert = authority();

	ck_assert_int_eq(X509_STORE_add_cert(SSL_CTX_get_cert_store(o.ctx), cert), 1);
	X509_free(cert);
	SSL_CTX_set_verify(o.ctx, SSL_VERIFY_PEER, NULL);
	o.ssl = SSL_new(o.ctx);
	o.in = BIO_new(BIO_s_mem());
	o.out = BIO_new(BIO_s_mem());
	SSL_set_bio(o.ssl, o.in, o.out);
	SSL_set_connect_state(o.ssl);
	if (host) {
		ck_assert_int_eq(SSL_set1_host(o.ssl, host), 1);
		ck_assert_int_eq(SSL_set_tlsext_host_name(o.ssl, host), 1);
	}
	return o;
}

static void other_free(struct other *o)
{
	SSL_free(o->ssl);
	SSL_CTX_free(o->ctx);
}

/* What ours has for the other. */
static void to_other(struct tls *t, struct other *o)
{
	const char *p;
	size_t n = tls_out(t, &p);

	if (n)
		ck_assert_int_eq(BIO_write(o->in, p, (int)n), (int)n);
	tls_out_clear(t);
}

/* What the other has for ours, in pieces of at most `piece` bytes. */
static void from_other(struct tls *t, struct other *o, int piece)
{
	char p[4096];
	int n = BIO_read(o->out, p, piece < (int)sizeof(p) ? piece : (int)sizeof(p));

	if (n > 0)
		ck_assert(tls_feed(t, p, (size_t)n));
}

/* Both shake hands. Returns ours last step that was not TLS_MORE. */
static enum tls_step shake(struct tls *t, struct other *o, int piece)
{
	char p[100];
	size_t n;
	enum tls_step step = TLS_MORE;

	for (int i = 0; i < 20000 && step == TLS_MORE; i++) {
		(void)SSL_do_handshake(o->ssl);
		ERR_clear_error();
		from_other(t, o, piece);
		step = tls_step(t, p, sizeof(p), &n);
		to_other(t, o);
	}
	return step;
}

START_TEST(client_leg)
{
	static const int pieces[] = {1, 7, 100, 4096};
	char got[32768];
	char sent[20000];
	size_t n;

	begin();
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		struct other o = other_client("one.test");
		struct tls *t = tls_for_client(ways, "one.test", false);
		size_t all = 0;
		ck_assert(!tls_is_secured(t) && !tls_has_more(t) && !tls_write(t, "x", 1));
		ck_assert_int_eq(shake(t, &o, pieces[i]), TLS_SECURED);
		ck_assert(tls_is_secured(t));
		ck_assert_int_eq(SSL_do_handshake(o.ssl), 1);
		memset(sent, 's', sizeof(sent));
		ck_assert_int_eq(SSL_write(o.ssl, sent, sizeof(sent)), (int)sizeof(sent));
		for (int k = 0; k < 100000 && all < sizeof(sent); k++) {
			if (!tls_has_more(t))
				from_other(t, &o, pieces[i]);
			if (tls_step(t, got + all, 1000, &n) == TLS_BYTES)
				all += n;
		}
		ck_assert_uint_eq(all, sizeof(sent));
		ck_assert_mem_eq(got, sent, sizeof(sent));
		ck_assert(tls_write(t, sent, sizeof(sent)));
		tls_end(t);
		to_other(t, &o);
		all = 0;
		while (SSL_read_ex(o.ssl, got, sizeof(got), &n) == 1)
			all += n;
		ck_assert_uint_eq(all, sizeof(sent));
		ck_assert_int_eq(SSL_get_error(o.ssl, 0), SSL_ERROR_ZERO_RETURN);
		(void)SSL_shutdown(o.ssl);
		enum tls_step step = TLS_MORE;
		for (int k = 0; k < 100 && step == TLS_MORE; k++) {
			from_other(t, &o, 4096);
			step = tls_step(t, got, sizeof(got), &n);
		}
		ck_assert_int_eq(step, TLS_ENDED);
		ck_assert_int_eq(tls_step(t, got, sizeof(got), &n), TLS_ENDED);
		tls_free(t);
		other_free(&o);
	}
	tls_ways_free(ways);
	ca_free(ca);
}
END_TEST

START_TEST(client_leg_refuses)
{
	struct other o;
	struct tls *t;

	begin();
	/* One that does not believe us says so with an alert. */
	o = other_client("two.test");
	t = tls_for_client(ways, "one.test", false);
	ck_assert_int_eq(shake(t, &o, 4096), TLS_FAILED);
	ck_assert_int_eq(tls_failure(t), TLS_FAILURE_REFUSED);
	tls_free(t);
	other_free(&o);
	/* TLS 1.1. */
	o = other_client("one.test");
	SSL_set_security_level(o.ssl, 0);
	ck_assert_int_eq(SSL_set_min_proto_version(o.ssl, TLS1_VERSION), 1);
	ck_assert_int_eq(SSL_set_max_proto_version(o.ssl, TLS1_1_VERSION), 1);
	t = tls_for_client(ways, "one.test", false);
	ck_assert_int_eq(shake(t, &o, 4096), TLS_FAILED);
	ck_assert_int_eq(tls_failure(t), TLS_FAILURE_VERSION);
	tls_free(t);
	other_free(&o);
	/* HTTP/2 alone; the control offers both. */
	o = other_client("one.test");
	ck_assert_int_eq(SSL_set_alpn_protos(o.ssl, (const unsigned char *)"\2h2", 3), 0);
	t = tls_for_client(ways, "one.test", false);
	ck_assert_int_eq(shake(t, &o, 4096), TLS_FAILED);
	ck_assert_int_eq(tls_failure(t), TLS_FAILURE_VERSION);
	tls_free(t);
	other_free(&o);
	o = other_client("one.test");
	ck_assert_int_eq(SSL_set_alpn_protos(o.ssl, (const unsigned char *)"\2h2\10http/1.1", 12),
			 0);
	t = tls_for_client(ways, "one.test", false);
	ck_assert_int_eq(shake(t, &o, 4096), TLS_SECURED);
	const unsigned char *chosen = NULL;
	unsigned int chosen_n = 0;
	(void)SSL_do_handshake(o.ssl);
	SSL_get0_alpn_selected(o.ssl, &chosen, &chosen_n);
	ck_assert_uint_eq(chosen_n, 8);
	ck_assert_mem_eq(chosen, "http/1.1", 8);
	tls_free(t);
	other_free(&o);
	/* No TLS at all. */
	t = tls_for_client(ways, "one.test", false);
	char p[100];
	size_t n;
	ck_assert(tls_feed(t, "GET / HTTP/1.1\r\n\r\n", 18));
	ck_assert_int_eq(tls_step(t, p, sizeof(p), &n), TLS_FAILED);
	ck_assert_int_eq(tls_step(t, p, sizeof(p), &n), TLS_FAILED);
	tls_free(t);
	tls_ways_free(ways);
	ca_free(ca);
}
END_TEST

/* A server that shows a leaf of an authority the host does not know. */
START_TEST(server_leg_refuses_strangers)
{
	struct leaf leaf;
	struct other o = {.ctx = NULL};
	struct tls *t;

	begin();
	ck_assert(ca_leaf(ca, "one.test", false, &leaf));
	o.ctx = SSL_CTX_new(TLS_server_method());
	ck_assert_int_eq(SSL_CTX_use_cert_and_key(o.ctx, leaf.cert, leaf.key, NULL, 1), 1);
	o.ssl = SSL_new(o.ctx);
	o.in = BIO_new(BIO_s_mem());
	o.out = BIO_new(BIO_s_mem());
	SSL_set_bio(o.ssl, o.in, o.out);
	SSL_set_accept_state(o.ssl);
	t = tls_for_server(ways, "one.test", false);
	ck_assert(tls_has_more(t)); /* it speaks first */
	ck_assert_int_eq(shake(t, &o, 4096), TLS_FAILED);
	ck_assert_int_eq(tls_failure(t), TLS_FAILURE_CERTIFICATE);
	ck_assert_ptr_nonnull(strstr(tls_failure_text(t), "issuer"));
	ck_assert(!tls_write(t, "x", 1));
	tls_free(t);
	other_free(&o);
	tls_ways_free(ways);
	ca_free(ca);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("proxy_tls");
	TCase *tc = tcase_create("all");

	suite_add_tcase(suite, tc);
	tcase_add_test(tc, authority_and_leaves);
	tcase_add_test(tc, leaves_are_bounded);
	tcase_add_test(tc, client_leg);
	tcase_add_test(tc, client_leg_refuses);
	tcase_add_test(tc, server_leg_refuses_strangers);
	return suite_run(suite);
}

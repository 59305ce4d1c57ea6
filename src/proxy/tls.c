/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS over memory. OpenSSL does the protocol; what is decided here is what is offered,
 * what is believed, and that it never reaches for a file, a socket or a thread.
 */
#include "proxy/tls.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/base.h"
#include "base/buf.h"
#include "proxy/ca.h"

/* What a leg may hold: one read, or all that one write makes of MAX_RELAY_BYTES. */
#define MAX_LEG_BYTES ((size_t)1 << 20)
#define SECURITY_LEVEL 2 /* 112 bits: Debian's own default; no SHA-1, no RSA below 2,048 */
#define FAILURE_TEXT 160

static const unsigned char protocols[] = "\x08http/1.1"; /* RFC 7301 */
#define PROTOCOLS_BYTES (sizeof(protocols) - 1)

struct tls_ways {
	struct ca *ca;
	SSL_CTX *client, *server; /* the leg to a client, to a server */
	BIO_METHOD *method;
};

struct tls {
	SSL *ssl;
	struct buf in, out; /* of the peer's, for the peer */
	size_t in_at;
	bool secured, dry, ended, failed;
	enum tls_failure failure;
	char text[FAILURE_TEXT];
};

static int bio_read(BIO *b, char *p, int room)
{
	struct tls *t = BIO_get_data(b);
	size_t n = t->in.n - t->in_at;

	BIO_clear_retry_flags(b);
	if (n == 0) {
		BIO_set_retry_read(b);
		return -1;
	}
	if (n > (size_t)room)
		n = (size_t)room;
	memcpy(p, t->in.p + t->in_at, n);
	t->in_at += n;
	if (t->in_at == t->in.n) {
		buf_release(&t->in);
		t->in_at = 0;
	}
	return (int)n;
}

static int bio_write(BIO *b, const char *p, int n)
{
	struct tls *t = BIO_get_data(b);

	BIO_clear_retry_flags(b);
	return n >= 0 && buf_add(&t->out, p, (size_t)n) == 0 ? n : -1;
}

static long bio_ctrl(BIO *b, int cmd, long num, void *p)
{
	(void)b;
	(void)num;
	(void)p;
	return cmd == BIO_CTRL_FLUSH;
}

static int bio_create(BIO *b)
{
	BIO_set_init(b, 1);
	return 1;
}

/* A client that offers protocols, and HTTP/1.1 is none of them, cannot be served. */
static int choose_protocol(SSL *ssl, const unsigned char **ret, unsigned char *ret_n,
			   const unsigned char *offered, unsigned int n, void *arg)
{
	(void)ssl;
	(void)arg;
	for (unsigned int at = 0; at < n; at += 1u + offered[at]) {
		if (offered[at] != protocols[0] || n - at < PROTOCOLS_BYTES ||
		    memcmp(offered + at, protocols, PROTOCOLS_BYTES) != 0)
			continue;
		*ret = offered + at + 1;
		*ret_n = offered[at];
		return SSL_TLSEXT_ERR_OK;
	}
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static bool set_common(SSL_CTX *ctx)
{
	if (!ctx)
		return false;
	SSL_CTX_set_security_level(ctx, SECURITY_LEVEL);
	(void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	(void)SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION |
					       SSL_OP_NO_COMPRESSION);
	(void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	return SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1;
}

static int set_up(struct tls_ways *w, struct err *e)
{
	static const char nothing[] = "TLS could not be set up";

	w->client = SSL_CTX_new(TLS_server_method());
	w->server = SSL_CTX_new(TLS_client_method());
	w->method = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "memory");
	if (!set_common(w->client) || !set_common(w->server) || !w->method ||
	    BIO_meth_set_read(w->method, bio_read) != 1 ||
	    BIO_meth_set_write(w->method, bio_write) != 1 ||
	    BIO_meth_set_ctrl(w->method, bio_ctrl) != 1 ||
	    BIO_meth_set_create(w->method, bio_create) != 1 ||
	    SSL_CTX_set_num_tickets(w->client, 0) != 1 ||
	    SSL_CTX_set_alpn_protos(w->server, protocols, PROTOCOLS_BYTES) != 0)
		return err_set(e, ERR_INTERNAL, nothing);
	SSL_CTX_set_alpn_select_cb(w->client, choose_protocol, NULL);
	SSL_CTX_set_verify(w->server, SSL_VERIFY_PEER, NULL);
	X509_STORE *store = ca_host_store(e);
	if (!store)
		return -1;
	SSL_CTX_set_cert_store(w->server, store); /* which owns it */
	return 0;
}

int tls_ways_new(struct ca *ca, struct tls_ways **ret, struct err *e)
{
	struct tls_ways *w = NULL;

	if (OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_LOAD_SSL_STRINGS, NULL) !=
	    1)
		return err_set(e, ERR_INTERNAL, "OpenSSL could not be set up");
	w = calloc(1, sizeof(*w));
	if (!w)
		return err_sys(e, "TLS");
	w->ca = ca;
	if (set_up(w, e) < 0) {
		tls_ways_free(w);
		return -1;
	}
	*ret = w;
	return 0;
}

void tls_ways_free(struct tls_ways *w)
{
	if (!w)
		return;
	SSL_CTX_free(w->client);
	SSL_CTX_free(w->server);
	BIO_meth_free(w->method);
	free(w);
}

static struct tls *leg(struct tls_ways *w, SSL_CTX *ctx)
{
	struct tls *t = calloc(1, sizeof(*t));
	BIO *b = NULL;

	if (!t)
		return NULL;
	t->in = t->out = BUF_INIT(MAX_LEG_BYTES);
	t->dry = true;
	t->ssl = SSL_new(ctx);
	b = BIO_new(w->method);
	if (!t->ssl || !b) {
		BIO_free(b);
		tls_free(t);
		return NULL;
	}
	BIO_set_data(b, t);
	SSL_set_bio(t->ssl, b, b); /* which owns it */
	return t;
}

void tls_free(struct tls *t)
{
	if (!t)
		return;
	SSL_free(t->ssl);
	buf_release(&t->in);
	buf_release(&t->out);
	free(t);
}

struct tls *tls_for_client(struct tls_ways *w, const char *host, bool is_address)
{
	struct leaf leaf;
	struct tls *t = NULL;

	if (!ca_leaf(w->ca, host, is_address, &leaf))
		return NULL;
	t = leg(w, w->client);
	if (!t)
		return NULL;
	if (SSL_use_cert_and_key(t->ssl, leaf.cert, leaf.key, NULL, 1) != 1) {
		tls_free(t);
		return NULL;
	}
	SSL_set_accept_state(t->ssl);
	return t;
}

struct tls *tls_for_server(struct tls_ways *w, const char *host, bool is_address)
{
	struct tls *t = leg(w, w->server);

	if (!t)
		return NULL;
	X509_VERIFY_PARAM *param = SSL_get0_param(t->ssl);
	X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
						       X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	bool good = is_address ? X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1
			       : X509_VERIFY_PARAM_set1_host(param, host, 0) == 1 &&
					 SSL_set_tlsext_host_name(t->ssl, host) == 1;
	if (!good) {
		tls_free(t);
		return NULL;
	}
	SSL_set_connect_state(t->ssl);
	t->dry = false; /* we speak first */
	return t;
}

bool tls_feed(struct tls *t, const char *p, size_t n)
{
	t->dry = false;
	return buf_add(&t->in, p, n) == 0;
}

static void set_text(struct tls *t, const char *text)
{
	(void)snprintf(t->text, sizeof(t->text), "%s", text ? text : "no reason given");
}

/* Why the last call of OpenSSL failed. */
static void fail(struct tls *t, int how)
{
	unsigned long code = ERR_peek_error();
	int reason = ERR_GET_REASON(code);

	t->failed = true;
	t->failure = TLS_FAILURE_PROTOCOL;
	if (code == 0) {
		set_text(t, how == SSL_ERROR_SYSCALL ? "the connection ended" : NULL);
	} else if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
		t->failure = TLS_FAILURE_CERTIFICATE;
		set_text(t, X509_verify_cert_error_string(SSL_get_verify_result(t->ssl)));
	} else if (reason > SSL_AD_REASON_OFFSET) {
		t->failure = TLS_FAILURE_REFUSED;
		set_text(t, SSL_alert_desc_string_long(reason - SSL_AD_REASON_OFFSET));
	} else {
		if (reason == SSL_R_UNSUPPORTED_PROTOCOL || reason == SSL_R_NO_SHARED_CIPHER ||
		    reason == SSL_R_VERSION_TOO_LOW || reason == SSL_R_NO_APPLICATION_PROTOCOL ||
		    reason == SSL_R_UNSUPPORTED_SSL_VERSION || reason == SSL_R_WRONG_VERSION_NUMBER)
			t->failure = TLS_FAILURE_VERSION;
		set_text(t, ERR_reason_error_string(code));
	}
	ERR_clear_error();
}

/* What a failed call means. */
static enum tls_step outcome(struct tls *t, int rc)
{
	int how = SSL_get_error(t->ssl, rc);

	if (how == SSL_ERROR_WANT_READ && !t->out.failed) {
		t->dry = t->in.n == t->in_at;
		return TLS_MORE;
	}
	if (how == SSL_ERROR_ZERO_RETURN) {
		t->ended = true;
		return TLS_ENDED;
	}
	fail(t, how);
	return TLS_FAILED;
}

enum tls_step tls_step(struct tls *t, char *p, size_t room, size_t *ret_n)
{
	*ret_n = 0;
	if (t->failed)
		return TLS_FAILED;
	if (t->ended)
		return TLS_ENDED;
	ERR_clear_error();
	if (!t->secured) {
		int rc = SSL_do_handshake(t->ssl);
		if (rc != 1)
			return outcome(t, rc);
		t->secured = true;
		return TLS_SECURED;
	}
	int rc = SSL_read_ex(t->ssl, p, room, ret_n);
	return rc == 1 ? TLS_BYTES : outcome(t, rc);
}

bool tls_has_more(const struct tls *t)
{
	return !t->dry && !t->ended && !t->failed;
}

bool tls_is_secured(const struct tls *t)
{
	return t->secured;
}

bool tls_write(struct tls *t, const char *p, size_t n)
{
	size_t done = 0;

	if (t->failed || !t->secured)
		return false;
	ERR_clear_error();
	if (n == 0 || (SSL_write_ex(t->ssl, p, n, &done) == 1 && done == n && !t->out.failed))
		return true;
	fail(t, SSL_ERROR_SSL);
	return false;
}

void tls_end(struct tls *t)
{
	ERR_clear_error();
	if (!t->failed && t->secured)
		(void)SSL_shutdown(t->ssl); /* one way: the peer's end is its own affair */
	ERR_clear_error();
}

size_t tls_out(const struct tls *t, const char **ret)
{
	*ret = t->out.p;
	return t->out.n;
}

void tls_out_clear(struct tls *t)
{
	buf_release(&t->out);
}

enum tls_failure tls_failure(const struct tls *t)
{
	return t->failure;
}

const char *tls_failure_text(const struct tls *t)
{
	return t->text;
}

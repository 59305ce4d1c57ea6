/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One leg of TLS, over bytes in memory: what came from the peer goes in, what is for
 * it comes out, and nothing here reads or writes a descriptor. TLS 1.2 and 1.3,
 * HTTP/1.1 by ALPN, no session of one connection used by another, no renegotiation.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct ca;

/* What all legs have in common; one a process. */
struct tls_ways;

/*
 * Reads the host's authorities (ca.h) and sets OpenSSL up so that no file is read
 * later. `ca` must live as long. SANDBOX_UNAVAILABLE: no authority is to be found.
 */
NODISCARD int tls_ways_new(struct ca *ca, struct tls_ways **ret, struct err *e);
void tls_ways_free(struct tls_ways *w);

struct tls;

/*
 * The leg to a client that asked for `host` (canonical text, host.h): we show a leaf
 * of our authority. NULL: no memory, or no leaf.
 */
struct tls *tls_for_client(struct tls_ways *w, const char *host, bool is_address);

/*
 * The leg to the server `host`: it has to show a certificate for that very name or
 * address that ends at one of the host's authorities. NULL: no memory.
 */
struct tls *tls_for_server(struct tls_ways *w, const char *host, bool is_address);
void tls_free(struct tls *t);

/* Bytes from the peer. False: no memory. */
NODISCARD bool tls_feed(struct tls *t, const char *p, size_t n);

enum tls_step {
	TLS_MORE,    /* nothing more before the next tls_feed() */
	TLS_SECURED, /* once: the handshake is over, the peer is who it should be */
	TLS_BYTES,   /* *ret_n bytes for us */
	TLS_ENDED,   /* the peer has said that it ends */
	TLS_FAILED,  /* see tls_failure(); an alert may be for it to be sent */
};

/* One step: the handshake, then at most `room` bytes of what the peer has said. */
enum tls_step tls_step(struct tls *t, char *p, size_t room, size_t *ret_n);
/* A step without a feed may still have something. */
bool tls_has_more(const struct tls *t);
/* The handshake is over. */
bool tls_is_secured(const struct tls *t);

/* Encrypts all of it; after TLS_SECURED. False: no memory, or the leg has failed. */
NODISCARD bool tls_write(struct tls *t, const char *p, size_t n);
/* Says that we end. */
void tls_end(struct tls *t);
/* What is for the peer; valid until tls_out_clear(), which is to follow. Returns its bytes. */
size_t tls_out(const struct tls *t, const char **ret);
void tls_out_clear(struct tls *t);

enum tls_failure {
	TLS_FAILURE_NONE,
	TLS_FAILURE_CERTIFICATE, /* the server's is not valid for the host */
	TLS_FAILURE_VERSION,     /* no version, cipher or protocol that both have */
	TLS_FAILURE_REFUSED,     /* the peer has ended it with an alert */
	TLS_FAILURE_PROTOCOL,    /* all else */
};
enum tls_failure tls_failure(const struct tls *t);
/* For people: "certificate has expired", "alert unknown ca". */
const char *tls_failure_text(const struct tls *t);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first message of a TLS client: which name it asks for (RFC 6066, 3),
 * whether that is encrypted (ECH, RFC 9849), and which protocols it offers (RFC 7301).
 * Pure: nothing is allocated, over one or more records.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Records and all. Today's clients send 0.5 to 2 KiB; large key shares some more. */
#define MAX_HELLO_BYTES 16384
/* A name on the wire; what is longer is no name. */
#define MAX_SNI_BYTES 255
#define MAX_ALPN_BYTES 255

enum hello_verdict {
	HELLO_MORE, /* what is there begins a ClientHello */
	HELLO_DONE,
	HELLO_NOT_TLS, /* the first bytes are no record that a TLS server would take */
	HELLO_BAD, /* TLS, but not well-formed, too long, with more than one name, or begun oddly */
};

struct hello {
	bool has_sni, has_ech;
	size_t sni_len;
	unsigned char sni[MAX_SNI_BYTES]; /* as sent: any bytes but NUL */
	char alpn[MAX_ALPN_BYTES + 1];    /* "h2,http/1.1"; "" if none or if it does not fit */
};

/* The ClientHello at the beginning of n bytes. */
enum hello_verdict hello_parse(const unsigned char *p, size_t n, struct hello *ret);
/*
 * May n bytes begin a ClientHello in the middle of a protocol (STARTTLS, SSLRequest)? By the head of
 * a record alone; `strict`: by that of the handshake too, which other bytes have by chance once in
 * 2^50 or rarer, but which a client can split.
 */
bool hello_begins(const unsigned char *p, size_t n, bool strict);

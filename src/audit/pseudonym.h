/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pseudonyms: the same name always gives the same one, and who has not the key cannot
 * tell which name it was. HMAC-SHA-256 by a key of the log's own (`key` beside it, 0600);
 * `p-` and the first 16 hexadecimal digits are written.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"

#define PSEUDONYM_TEXT 19 /* p-0123456789abcdef and the NUL */

struct pseudonyms {
	unsigned char key[SHA256_BYTES];
	const char *home;  /* the caller's home directory; NULL: none */
	const char *actor; /* the caller's name */
};

/* The key in the open directory of the log, made if it is not there and `make` says so. */
NODISCARD int pseudonym_key(int dir, bool make, unsigned char ret[SHA256_BYTES], struct err *e);

const char *pseudonym(const struct pseudonyms *p, const char *name, size_t n,
		      char ret[PSEUDONYM_TEXT]);

/*
 * Text with pseudonyms for what is a name in it: home directories, hosts and owners of
 * URLs, user@host, addresses, names of hosts, the caller's name as a word.
 */
void pseudonym_text(const struct pseudonyms *p, const char *text, size_t n, struct buf *out);
/* host, host:port, [address]:port. */
void pseudonym_host(const struct pseudonyms *p, const char *text, size_t n, struct buf *out);

/* HMAC-SHA-256 (RFC 2104) of at most 8192 bytes; what is longer is hashed first. */
void hmac_sha256(const unsigned char key[SHA256_BYTES], const void *p, size_t n,
		 unsigned char ret[SHA256_BYTES]);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The authority of one sandbox: a key and a certificate that live as long as this
 * process and in its memory alone, and the leaves it has signed. Nobody outside of
 * the sandbox believes it, and inside only what was asked for by the rules is shown it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openssl/types.h>

#include "base/err.h"

/* Leaves that are kept; above that the one that was used longest ago is forgotten. 2 KiB each. */
#define MAX_LEAVES 256u
/* The authority's and the leaves' time: a session's longest life, and clocks that differ. */
#define CA_DAYS 366
#define CA_BACKDATE_S 86400

struct ca;

/* A new authority, P-256. INTERNAL: OpenSSL has no randomness or no memory. */
NODISCARD int ca_new(struct ca **ret, struct err *e);
void ca_free(struct ca *ca);

/* Its certificate as text (PEM). Returns its bytes, 0: it does not fit into room with a NUL. */
size_t ca_pem(const struct ca *ca, char *ret, size_t room);

/* A certificate and its key; of the authority's as long as it is not asked for another one. */
struct leaf {
	X509 *cert;
	EVP_PKEY *key;
};

/*
 * The leaf of a host, made when it is asked for first. host: canonical text (host.h) of
 * a name or an address. False: no memory.
 */
NODISCARD bool ca_leaf(struct ca *ca, const char *host, bool is_address, struct leaf *ret);

/*
 * The host's authorities: the first of the usual files that is there, as the host's own
 * programs use them. NULL and SANDBOX_UNAVAILABLE: none is there, or none can be read.
 */
X509_STORE *ca_host_store(struct err *e);

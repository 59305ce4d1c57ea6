/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets that the sandbox has only placeholders of: which header of which hosts gets
 * what instead. The values go to sandglass-proxy in a sealed file of their own and are
 * wiped when they are released; they are never in rules, results or a cache.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "egress/set.h"

#define EGRESS_FD_SECRETS 5 /* of the proxy: a sealed file, or /dev/null: none */

#define MAX_EGRESS_SECRETS 32u
#define MAX_SECRET_NAME 64u         /* bytes */
#define MAX_SECRET_PLACEHOLDER 128u /* bytes */
#define MAX_SECRET_FIELD 64u        /* bytes of a header's name */
#define MAX_SECRET_VALUE 16384u /* bytes of a header's whole value: below what a head may have */
#define MAX_SECRET_HOSTS 32u
#define MAX_SECRETS_BYTES (2u << 20) /* of the encoded form */

struct egress_secret {
	char *name;
	char *placeholder;
	char *field;             /* the header's name */
	char *value;             /* what the whole header becomes */
	char *raw;               /* the secret itself, to know it again; NULL: not told */
	bool plain;              /* also over a connection that is not TLS */
	struct egress_set hosts; /* EGRESS_LIST_INSPECT */
};

/* Owns its texts. {0} is none. */
struct egress_secrets {
	struct egress_secret v[MAX_EGRESS_SECRETS];
	size_t n;
};

#define AUTO_EGRESS_SECRETS __attribute__((cleanup(egress_secrets_release))) struct egress_secrets

/*
 * Appends one without hosts; copies. CONFIG_INVALID: an empty or too long text, one more
 * than MAX_EGRESS_SECRETS, a second one of that name or placeholder, a header's name that
 * is none or that frames a request (Host, Content-Length, Connection, …), a value with a
 * byte that no header can have. The message never holds the value.
 */
NODISCARD int egress_secrets_add(struct egress_secrets *s, const char *name,
				 const char *placeholder, const char *field, const char *value,
				 bool plain, struct err *e);
/* What the last one's header was made of: no answer may say it back. Copies. */
NODISCARD int egress_secrets_raw(struct egress_secrets *s, const char *raw, struct err *e);
/* Appends a host, as network.inspect reads it, to the last one. */
NODISCARD int egress_secrets_host(struct egress_secrets *s, const char *text, struct err *e);
/* Wipes the values. */
void egress_secrets_release(struct egress_secrets *s);

/* "a header's name that …"; NULL: it may be set. */
const char *egress_secret_field_bad(const char *field, size_t n);

/*
 * Appends the encoded form to `out`, which the caller wipes; it has to have room for all
 * of it from the start (MAX_SECRETS_BYTES), so that no copy stays behind.
 */
NODISCARD int egress_secrets_encode(const struct egress_secrets *s, struct buf *out, struct err *e);
/* Reads exactly what egress_secrets_encode() writes; anything else is INTERNAL. */
NODISCARD int egress_secrets_decode(const void *bytes, size_t len, struct egress_secrets *ret,
				    struct err *e);

/* Where a request goes. */
struct egress_leg {
	const struct host *host;
	uint16_t port;
	bool tls; /* and the server has shown who it is */
};

/*
 * The secret whose ->value is to be the whole value of this header: of that name, with its
 * placeholder in it (as it stands, or inside of `Basic base64`), towards one of its hosts,
 * over TLS unless it is `plain`. NULL: none, the header stays as it is.
 */
const struct egress_secret *egress_secret_replace(const struct egress_secrets *s,
						  const struct egress_leg *to, const char *field,
						  size_t field_len, const char *value,
						  size_t value_len);

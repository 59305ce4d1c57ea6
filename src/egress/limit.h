/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much may go over the way out of a run, or of a session with all its calls.
 * Each limit that some layer names holds, so that the smallest decides.
 */
#pragma once

#include "egress/set.h"

#define MAX_EGRESS_CONNECTIONS 16384u /* the proxy's own bound */
#define MIN_EGRESS_RATE 1024u         /* bytes a second: a TLS handshake takes seconds at that */

enum egress_limit {
	EGRESS_LIMIT_UP,   /* bytes from the sandbox, heads and TLS of what is allowed included */
	EGRESS_LIMIT_DOWN, /* bytes from servers */
	EGRESS_LIMIT_RATE, /* bytes a second, of all connections and both directions together */
	EGRESS_LIMIT_CONNECTIONS, /* at the same time */
	EGRESS_LIMITS,
};
extern const char *const egress_limit_names[EGRESS_LIMITS]; /* "bytes_up", … */

/*
 * Reads `NAME AMOUNT` into ret, as a rule of EGRESS_LIST_LIMIT. CONFIG_INVALID: another name,
 * no amount, or one out of range: bytes 1 to MAX_SIZE_BYTES, the rate from MIN_EGRESS_RATE,
 * connections 1 to MAX_EGRESS_CONNECTIONS.
 */
NODISCARD int egress_limit_read(const char *text, struct egress_rule *ret, struct err *e);

/* The entry with the smallest amount of that limit; -1: there is none. */
int egress_limit_find(const struct egress_set *s, enum egress_limit what);

/* What helps whom it stops, for a hint, with who set it behind: "it is used up: network.bytes_up is set". */
const char *egress_limit_help(enum egress_limit what);

/*
 * What is used up of the first two, in a file of a session's: it outlives the proxy, which
 * has it as this descriptor. /dev/null: the proxy counts for itself.
 */
#define EGRESS_FD_SPENT 6
struct egress_spent {
	uint64_t up, down;
};

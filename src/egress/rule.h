/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rule about the network, from its text:
 *
 *   example.com            that host            *.example.com   below it, any depth, not itself
 *   **.example.com         both                 region*.x.com   `*` within a label: not over a dot
 *   HOST:PORT  HOST:*      a port, every port   http://HOST     port 80; https://HOST 443
 *   10.1.2.0/24:5432       addresses            [2001:db8::]/32:443
 *   localhost:8080, 127.0.0.1:8080, [::1]:8080  a port of the host's loopback
 *   *:22                   deny: everything there; allow: every name there, no address
 *
 *   NAME METHOD,METHOD /path/a /path/b      those requests only, which takes inspection
 *   NAME /path        NAME METHOD           (one blank between; patterns as in path.h)
 *
 * A limit: its name and the amount, `bytes_up 64MiB`.
 * To inspect: a name as above. To push: git.example.com/team/app, one repository of a name;
 * `*` within a part of it. Of a mirror: `npm http://HOST:PORT/PATH` (mirror.h).
 *
 * Without a port: 443 to allow, every port to deny. Names with `*` never match an address.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "egress/address.h"
#include "egress/host.h"

#define MAX_EGRESS_RULE_TEXT 1000u /* bytes of one rule as written */
#define MAX_EGRESS_HOST_TEXT 300u  /* of these, its host */
#define MAX_EGRESS_PATHS 640u      /* of these, its paths */
#define EGRESS_PORT_ALLOW 443u     /* of an allow rule without a port */

enum egress_list {
	EGRESS_LIST_DENY,
	EGRESS_LIST_ALLOW,
	EGRESS_LIST_LOCAL,
	EGRESS_LIST_INSPECT, /* opens nothing */
	EGRESS_LIST_PUSH,    /* opens nothing: what is open, git may write to */
	EGRESS_LIST_MIRROR,  /* opens its one place, and closes public registries (mirror.h) */
	EGRESS_LIST_LIMIT,   /* opens nothing: how much may go (limit.h) */
	EGRESS_LISTS
};
extern const char *const egress_list_names[EGRESS_LISTS]; /* "deny", "allow", … */

/* What rules can name; other methods match only rules without any. NULL at the end. */
#define EGRESS_METHODS 19
extern const char *const egress_methods[EGRESS_METHODS + 1];

enum egress_rule_kind {
	EGRESS_NAME,     /* `host`, which may have `*` in labels */
	EGRESS_BELOW,    /* any name below `host` */
	EGRESS_BOTH,     /* `host` and any name below it */
	EGRESS_EVERY,    /* `*`: every name; to deny, every address too */
	EGRESS_PREFIX,   /* addresses: `addr` and `bits` */
	EGRESS_LOOPBACK, /* the host's loopback at `port`, however it is asked for */
	EGRESS_AMOUNT,   /* EGRESS_LIST_LIMIT: no place at all */
};

struct egress_rule {
	uint8_t list;    /* enum egress_list */
	uint8_t kind;    /* enum egress_rule_kind */
	uint8_t bits;    /* EGRESS_PREFIX */
	uint8_t limit;   /* EGRESS_AMOUNT: enum egress_limit */
	uint8_t manager; /* EGRESS_LIST_MIRROR: enum egress_manager */
	uint16_t port;   /* 0: every port */
	uint64_t amount; /* EGRESS_AMOUNT: bytes, bytes a second, or connections */
	struct address addr;
	char host
		[HOST_TEXT]; /* canonical, without the leading `*.` or `**.`; "" if there is none */
	uint32_t methods;    /* bits 1 << index in egress_methods; 0: every one */
	char paths[MAX_EGRESS_PATHS]; /* patterns with a blank between; "": every one */
};

/*
 * Reads one rule. A text for EGRESS_LIST_LOCAL is a port, for EGRESS_LIST_LIMIT a limit. CONFIG_INVALID says what
 * is wrong at which byte (from 1), the hint the nearest right spelling.
 */
NODISCARD int egress_rule_read(enum egress_list list, const char *text, struct egress_rule *ret,
			       struct err *e);

/* The name matches, whatever the port. Never true of an address, nor of EGRESS_PREFIX. */
bool egress_rule_has_name(const struct egress_rule *r, const struct host *h);
/* The address is in EGRESS_PREFIX, whatever the port. */
bool egress_rule_has_address(const struct egress_rule *r, const struct address *a);
/* About some requests only. */
static inline bool egress_rule_is_partial(const struct egress_rule *r)
{
	return r->methods || r->paths[0];
}
/* It opens something: a name, or addresses. Loopback is opened by those of `local`, too. */
static inline bool egress_rule_opens(const struct egress_rule *r)
{
	return r->list == EGRESS_LIST_ALLOW || r->list == EGRESS_LIST_MIRROR;
}
static inline bool egress_rule_has_port(const struct egress_rule *r, uint16_t port)
{
	return r->port == 0 || r->port == port;
}

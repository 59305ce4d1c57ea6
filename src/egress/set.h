/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All rules that hold for a sandbox, and the one matcher that decides by them.
 * A set is made by the front from policies and options, goes to sandglass-proxy
 * as bytes, and is decoded there strictly: by the very parser of rules.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "egress/event.h"
#include "egress/rule.h"

#define MAX_EGRESS_RULES 1024u
#define MAX_EGRESS_LOCALS 64u       /* different ports of the host's loopback */
#define MAX_EGRESS_ORIGIN 4200u     /* bytes: a path and a line */
#define MAX_EGRESS_BYTES (6u << 20) /* of an encoded set */

struct egress_entry {
	struct egress_rule rule;
	uint32_t number; /* in its list, from 0: network.deny[2] */
	char *text;      /* as written */
	char *origin;    /* "user /home/u/.config/sandglass/policy.yaml:7", "option --allow-host" */
};

/* Owns its texts. {0} is the empty set, which allows nothing. */
struct egress_set {
	struct egress_entry *v;
	size_t n, room;
	uint32_t counts[EGRESS_LISTS];
};

#define AUTO_EGRESS_SET __attribute__((cleanup(egress_set_release))) struct egress_set

/* Appends a rule. CONFIG_INVALID: it is wrong (the message does not name the origin), or one too many. */
NODISCARD int egress_set_add(struct egress_set *s, enum egress_list list, const char *text,
			     const char *origin, struct err *e);
void egress_set_release(struct egress_set *s);

/* Appends all rules of `from`, in their order. */
NODISCARD int egress_set_join(struct egress_set *s, const struct egress_set *from, struct err *e);
/* Takes away what was appended to a set that had n rules. */
void egress_set_cut(struct egress_set *s, size_t n);
/* All that `s` holds, by what encoding and decoding keep of it. */
NODISCARD int egress_set_copy(const struct egress_set *s, struct egress_set *ret, struct err *e);

/* Some rule allows something: without one there is no proxy. */
bool egress_set_opens(const struct egress_set *s);
/* The ports of the host's loopback that are open, ascending, each once. Returns how many. */
size_t egress_set_locals(const struct egress_set *s, uint16_t ret[MAX_EGRESS_LOCALS]);

/* Appends the encoded set to `out`. */
NODISCARD int egress_set_encode(const struct egress_set *s, struct buf *out, struct err *e);
/* Reads exactly what egress_set_encode() writes; anything else is INTERNAL. */
NODISCARD int egress_set_decode(const void *bytes, size_t len, struct egress_set *ret,
				struct err *e);

struct egress_verdict {
	bool allow;
	bool local; /* allowed: dial 127.0.0.1:port of the host, nothing is resolved */
	bool push;  /* of a request: git would write by it */
	enum egress_reason reason;
	enum address_class class; /* of EGRESS_WHY_CLASS */
	int rule;                 /* the entry that decided; -1: none */
};

/*
 * May the sandbox connect to this host and port (1 to 65535)? Deny beats allow. An
 * address is decided by egress_match_address(s, &host->addr, port, NULL), loopback
 * by the ports of `local`. A name that is allowed is not reached before each address
 * it resolves to has passed egress_match_address() too.
 */
struct egress_verdict egress_match_name(const struct egress_set *s, const struct host *host,
					uint16_t port);

/*
 * May this address be dialled? `asked`: the name it was resolved from, which
 * egress_match_name() has allowed at this port: then a public address that no rule
 * denies is allowed, and another one if an address rule opens it. NULL: the sandbox
 * named the address itself; then it takes an address rule in any case.
 *
 * An address rule opens a class that is not public only if all of its prefix is of
 * that class: 0.0.0.0/0 opens no private network, 169.254.0.0/16 no metadata.
 */
struct egress_verdict egress_match_address(const struct egress_set *s, const struct address *addr,
					   uint16_t port, const struct host *asked);

/*
 * May the name be resolved at all: is it allowed at some port? `host` is a name.
 * Loopback names: allowed with `local` if any port of it is open.
 */
struct egress_verdict egress_match_dns(const struct egress_set *s, const struct host *host);

/*
 * Connections to this name and port are inspected: `inspect` names it, or a rule about
 * methods or paths, or a push grant. Then egress_match_request() decides about each
 * request, and what is neither TLS nor HTTP is refused.
 */
bool egress_inspects(const struct egress_set *s, const struct host *host, uint16_t port);
/* Some name is. */
bool egress_set_inspects(const struct egress_set *s);

/*
 * May this request be sent to a name that egress_match_name() has allowed at this port?
 * The target in origin form with its query, as it came, or `*`; methods are compared as
 * they stand (RFC 9110 9.1). Deny beats allow; what git writes takes a push grant.
 * EGRESS_WHY_AMBIGUOUS: a rule is about paths, and what servers make of this one differs.
 */
struct egress_verdict egress_match_request(const struct egress_set *s, const struct host *host,
					   uint16_t port, const char *method, size_t method_len,
					   const char *target, size_t target_len);

/* What a decision is called, for results, answers and the log. */
#define EGRESS_RULE_SAID (MAX_EGRESS_RULE_TEXT + 64)
struct egress_said {
	char target[HOST_PORT_TEXT]; /* "example.com:443"; without a port "example.com" */
	char rule[EGRESS_RULE_SAID]; /* "network.default", "network.deny[2] *.example.com" */
	char hint[ERR_HINT_MAX];     /* "--allow-host example.com"; "" if nothing helps */
};

/*
 * host is canonical text (event.host); port 0: none; address: "" or what was refused.
 * Values out of range are said to be "network.unknown".
 */
void egress_say(const struct egress_set *s, enum egress_reason reason, int rule, const char *host,
		uint32_t port, const char *address, struct egress_said *ret);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What supervisor and sandglass-proxy say to each other. Both are of one build, so
 * these are plain structures in the machine's byte order; each side still refuses
 * a message of another size or with values out of range.
 *
 * The proxy has the rules in descriptor 3 (set.h) and a SOCK_SEQPACKET in
 * descriptor 4. There the supervisor sends tables of struct egress_listener, each
 * with that many descriptors (SCM_RIGHTS, same order), then an empty message (one
 * byte 0, no descriptor). The proxy answers EGRESS_READY (before it, where rules ask
 * for inspection, struct egress_ca), then sends events, and takes orders (struct
 * egress_order). It ends when descriptor 4 is closed.
 */
#pragma once

#include <stdint.h>

#include "egress/address.h"
#include "egress/host.h"

/* Where ours listens inside the sandbox. */
#define EGRESS_ADDRESS4 "127.0.0.53"
#define EGRESS_PORT_DNS 53u
#define EGRESS_PORT_HTTP 3128u
#define EGRESS_PORT_SOCKS 1080u
#define EGRESS_PORT_REDIRECT 15001u /* 127.0.0.53 and [::1] */

#define EGRESS_FD_SET 3
#define EGRESS_FD_CONTROL 4
#define MAX_EGRESS_FDS 200u /* descriptors in one message: below SCM_MAX_FD (253) */

enum egress_listener_kind {
	EGRESS_DNS_UDP,
	EGRESS_DNS_TCP,
	EGRESS_HTTP,
	EGRESS_SOCKS,
	EGRESS_REDIRECT4,
	EGRESS_REDIRECT6,
	EGRESS_LOCAL, /* to 127.0.0.1:port of the host; the only kind there can be many of */
	EGRESS_LISTENER_KINDS,
};

struct egress_listener {
	uint32_t kind;
	uint32_t port;
};

enum egress_event_kind {
	EGRESS_READY, /* nothing else in it counts */
	EGRESS_ALLOW, /* connected; `host` and `address` say to what */
	EGRESS_DENY,
	EGRESS_FAIL,    /* allowed, but not resolved or not reached */
	EGRESS_CLOSE,   /* of an allowed connection, with its bytes */
	EGRESS_REQUEST, /* under inspection: a request that was answered by its server */
	EGRESS_SECRET,  /* the value of a secret, whose name is `path`, went up in one */
	EGRESS_BYTES,   /* of connections that are open, since they were told last */
	EGRESS_MORE,    /* `times` events of others were lost: nobody read them */
	EGRESS_DONE,    /* an order is carried out: `id` is its number */
	EGRESS_DIED,    /* never from a proxy: said by who has seen its end */
	EGRESS_EVENT_KINDS,
};

/*
 * What a proxy that listens is told to do; it answers each with EGRESS_DONE. What is
 * not well-formed ends it.
 */
enum egress_order_kind {
	/*
	 * Other rules from now on, all of them, and what else to listen at. 1 + count
	 * descriptors come along: the rules as descriptor 3 was, then the sockets of the
	 * table. What is said after DONE is said by the new rules.
	 */
	EGRESS_ORDER_RULES,
	EGRESS_ORDER_TALLY, /* the bytes of open connections are said first */
	EGRESS_ORDER_RESET, /* all connections end, with a reset */
	EGRESS_ORDER_STILL, /* nothing is read from anybody until EGRESS_ORDER_GO */
	EGRESS_ORDER_GO,
	EGRESS_ORDERS,
};
#define MAX_EGRESS_ORDER 128u /* sockets in one: two for each port of `local` */
struct egress_order {
	uint32_t kind;   /* enum egress_order_kind */
	uint32_t number; /* said again by EGRESS_DONE */
	uint32_t count;  /* of v; 0 but for rules */
	struct egress_listener v[MAX_EGRESS_ORDER];
};

/* How the sandbox asked. */
enum egress_how {
	EGRESS_BY_DNS,
	EGRESS_BY_REDIRECT,
	EGRESS_BY_HTTP,
	EGRESS_BY_CONNECT,
	EGRESS_BY_SOCKS,
	EGRESS_BY_LOCAL,
	EGRESS_HOWS
};

/* Why. The first part comes from the matcher (set.h), the second from the proxy itself. */
enum egress_reason {
	EGRESS_WHY_RULE,       /* allowed by a rule */
	EGRESS_WHY_DEFAULT,    /* no rule allows the host */
	EGRESS_WHY_PORT,       /* rules allow the host at other ports only */
	EGRESS_WHY_DENIED,     /* a rule denies it */
	EGRESS_WHY_CLASS,      /* the address is not public and no address rule names it */
	EGRESS_WHY_LOOPBACK,   /* the host's loopback, and the port is not one of `local` */
	EGRESS_WHY_HOST,       /* what was asked for is no host (host.h) */
	EGRESS_WHY_SYNTHETIC,  /* a synthetic address that stands for no name */
	EGRESS_WHY_SNI,        /* TLS asks for another name than was allowed */
	EGRESS_WHY_ECH,        /* the name is encrypted where it has to be seen */
	EGRESS_WHY_AUTHORITY,  /* Host header and target differ */
	EGRESS_WHY_MALFORMED,  /* not the protocol of that port, or broken */
	EGRESS_WHY_PROTOCOL,   /* UDP ASSOCIATE, BIND, another DNS type: not offered */
	EGRESS_WHY_LIMIT,      /* too many connections, bytes, or too slow */
	EGRESS_WHY_UNRESOLVED, /* FAIL: the name has no address */
	EGRESS_WHY_UNREACHED,  /* FAIL: connect failed */
	EGRESS_WHY_METHOD,     /* inspection: no rule of the host allows the method */
	EGRESS_WHY_PATH,       /* inspection: no rule of the host allows the path */
	EGRESS_WHY_PUSH,       /* inspection: git's write service, without a grant */
	EGRESS_WHY_CERTIFICATE, /* inspection: the server has not shown that it is who was asked for */
	EGRESS_WHY_TLS,       /* inspection: the client's TLS failed, or it does not take our CA */
	EGRESS_WHY_SECRET,    /* a placeholder where its secret may not go */
	EGRESS_WHY_AMBIGUOUS, /* inspection: a rule is about paths, and servers differ on this one */
	EGRESS_WHY_UNSEEN,    /* rules ask for inspection by now, and it was begun without */
	EGRESS_WHYS,
};

/* "not listed", "other port", …; stable words for JSON (`reason`): "default", "port", … */
const char *egress_reason_name(enum egress_reason reason);
const char *egress_how_name(enum egress_how how);

#define EGRESS_METHOD_TEXT 16
#define EGRESS_PATH_TEXT 256
struct egress_event {
	uint32_t kind;              /* enum egress_event_kind */
	uint32_t how;               /* enum egress_how */
	uint32_t reason;            /* enum egress_reason */
	int32_t rule;               /* index in the set; -1: none */
	uint32_t port;              /* 0: none (DNS) */
	uint32_t id;                /* of the connection: ALLOW and CLOSE have the same one */
	uint64_t up, down;          /* CLOSE: bytes from and to the sandbox */
	char host[HOST_TEXT];       /* canonical; NUL-terminated; "" if it was no host */
	char address[ADDRESS_TEXT]; /* the address dialled or refused; "" if none */
	/* Of REQUEST, and of a DENY of one: what was asked, the path without its query. */
	char method[EGRESS_METHOD_TEXT];
	char path[EGRESS_PATH_TEXT]; /* "…" at its end: longer */
	uint32_t status;             /* REQUEST: of the answer */
	uint32_t times;              /* how often the same was said; 0 is 1 */
	uint32_t generation;         /* a session's keeper: of the rules that it speaks of */
};

static inline uint32_t egress_times(const struct egress_event *v)
{
	return v->times ? v->times : 1;
}

/* The certificate of a session's own authority, before READY, if the rules ask for inspection. */
#define EGRESS_CA_MAGIC 0x41434753u /* "SGCA" */
#define MAX_EGRESS_CA_BYTES 2048u
struct egress_ca {
	uint32_t magic;
	uint32_t n;                    /* bytes of pem, without its NUL */
	char pem[MAX_EGRESS_CA_BYTES]; /* NUL-terminated */
};

/*
 * Where Debian, Fedora, openSUSE and Alpine keep the authorities that the host trusts: the proxy
 * verifies servers by them, and a sandbox under inspection has the first one's beside ours.
 */
#define EGRESS_STORES 4u
extern const char *const egress_stores[EGRESS_STORES];

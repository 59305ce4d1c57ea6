/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of sandglass-proxy share: the process, its connections, and what
 * one of the protocols does with bytes. One loop, no thread; nothing here blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "egress/event.h"
#include "egress/limit.h"
#include "egress/secret.h"
#include "egress/set.h"
#include "proxy/control.h"
#include "proxy/echo.h"
#include "proxy/http.h"
#include "proxy/names.h"
#include "proxy/resolve.h"
#include "proxy/tls.h"

/* Connections at once, of all kinds; each has two descriptors. */
#define MAX_CONNECTIONS MAX_EGRESS_CONNECTIONS
/* Of these with inspected TLS, at 30 KiB and more on each leg. */
#define MAX_INSPECTED 2048u
/* Read in one call, and at most kept for a peer that does not take it. */
#define MAX_RELAY_BYTES ((size_t)256 * 1024)
/* Kept for all slow peers together; above it reads become small. */
#define MAX_KEPT_BYTES_SOFT ((size_t)64 << 20)
/* Room for beginnings (heads, first messages) of all connections together. */
#define MAX_HELD_BYTES ((size_t)64 << 20)
/* So many connections have the kernel's own windows (tcp(7), tcp_rmem), the others small ones. */
#define MAX_WIDE_CONNECTIONS 64u
#define NARROW_WINDOW_BYTES (128 * 1024)

/* How long what may take. */
#define HEAD_MS 30000u           /* a request's head, a SOCKS message, TLS's first message */
#define HELLO_WAIT_MS 1000u      /* port 443: for the client to speak first, before dialling */
#define KEEP_ALIVE_MS 60000u     /* between two requests */
#define TUNNEL_IDLE_MS 3600000u  /* a tunnel without a byte in any direction */
#define HALF_IDLE_MS 600000u     /* the same after one side has ended */
#define EXCHANGE_IDLE_MS 600000u /* between two bytes of a request or its response */
#define LINGER_MS 2000u          /* for a client to take the last answer */
#define DNS_IDLE_MS 10000u       /* DNS over TCP, between two queries */

/* The rules' limits, and what is used of them: limit.c. */
struct limits {
	int rule[EGRESS_LIMITS]; /* in the set; -1: none */
	uint64_t amount[EGRESS_LIMITS];
	struct egress_spent own, *spent; /* the latter may be the keeper's */
	size_t counted;                  /* connections that are allowed */
	uint64_t tokens;                 /* bytes that may be read now */
	uint64_t since_ms;               /* and since when none were added */
	uint64_t owed;                   /* thousandths of a byte, of the last addition */
	uint32_t turn;                   /* the connection that has read last */
	uv_timer_t more;
};

struct proxy {
	uv_loop_t loop;
	struct egress_set set;
	struct control control;
	struct names names;
	struct resolver *resolver;
	struct conn *first; /* all connections */
	size_t connections, most;
	size_t secure;              /* of them with inspected TLS */
	bool still;                 /* EGRESS_ORDER_STILL */
	bool redirects, redirects6; /* there is a transparent path, for IPv6 too */
	size_t kept;                /* bytes in all struct side.out */
	size_t held;                /* room in all struct conn.in, and in exchanges */
	uint32_t last_id;
	char *scratch; /* MAX_RELAY_BYTES; valid within one callback */
	struct ca *ca; /* NULL: no rule asks for inspection */
	struct tls_ways *ways;
	struct egress_secrets secrets;
	struct limits limits;
};

enum end { CLIENT, SERVER };

static inline enum end other_end(enum end s)
{
	return s == CLIENT ? SERVER : CLIENT;
}

struct poller; /* a poll handle of the loop; conn.c */

/* One of the two sockets of a connection. */
struct side {
	struct poller *poller;
	int fd;         /* -1: none */
	int mask;       /* events the loop waits for */
	bool ended;     /* its end of file was read */
	bool broken;    /* a reset was read, or sending failed */
	bool deaf;      /* takes nothing any more, but there may be something to read */
	bool hung;      /* the loop has nothing more to tell but what reading tells */
	bool shut;      /* we have sent our end of file */
	bool shut_wish; /* to be sent when out is empty */
	bool cut;       /* ended, but TLS has not said so: something may be missing */
	char *out;      /* what it has not taken yet */
	size_t out_len, out_at;
	struct tls *tls;   /* NULL: bytes are as they come */
	uv_timer_t *again; /* of tls: what it has already is looked at from the loop */
};

struct conn;

/* A protocol, or a part of one. Each callback may end the connection. */
struct ops {
	/* Most bytes to read from that side now; 0: none. */
	size_t (*want)(struct conn *c, enum end from);
	void (*data)(struct conn *c, enum end from, const char *p, size_t n);
	void (*eof)(struct conn *c, enum end from);
	/* A reset from that side, or it takes nothing any more; nothing is left to read. */
	void (*broken)(struct conn *c, enum end from);
	void (*late)(struct conn *c);               /* the deadline has passed */
	void (*taken)(struct conn *c, enum end by); /* all of out was sent; NULL: of no interest */
	void (*secured)(struct conn *c, enum end which); /* conn_secure(); NULL: of no interest */
	bool waits; /* for something else while the client must stay: its end is ours */
};

struct dial;
struct dial_end;
struct exchange;

struct conn {
	struct proxy *px;
	struct conn *prev, *next;
	const struct ops *ops;
	struct side side[2];
	uv_timer_t timer;
	uint64_t deadline_ms; /* 0: none */
	uint64_t idle_ms;     /* 0, or the deadline moves with each byte */
	bool gone;            /* ended: nothing may be done with it */
	bool local;           /* the host's loopback, by verdict */
	bool opened;          /* EGRESS_ALLOW was said */
	bool guarded;         /* the next bytes of the client may be TLS: see tunnel.c */
	bool watched,
		turned;     /* it was none so far; the server has answered since the client spoke */
	unsigned int turns; /* how often it has, up to a bound */
	bool inspected;     /* requests to c->host alone, each judged: see inspect.c */
	bool secure;        /* and over TLS, on both legs */
	uint32_t how;       /* enum egress_how */
	bool ruled;         /* the rules allow host and port: looked at again when they change */
	uint32_t id;
	int rule;
	uint16_t port;
	struct host host;       /* what was asked for */
	struct address address; /* what was dialled */
	struct name *name;      /* held, if asked for by a synthetic address */
	struct dial *dial;
	struct exchange *exchange; /* HTTP */
	char *in;                  /* what was read and not dealt with */
	size_t in_len, in_room;
	size_t judged; /* of it, no head ended in these bytes: httpserve.c */
	uint64_t up, down;
	uint64_t told_up, told_down;       /* of these, in events */
	uint64_t charged_up, charged_down; /* of these, to the limits */
	bool counted;                      /* one of limits.counted */
	uint64_t left;                /* conn_reset_after(): what was not taken at the last look */
	unsigned int looks;           /* and how many saw the same */
	void (*then)(struct conn *c); /* tunnel_peek() */
	void (*dialled)(struct conn *c, const struct dial_end *end);
};

/* A connection around an accepted socket, which it owns from now on. NULL: no memory; closed. */
struct conn *conn_new(struct proxy *px, int fd, uint32_t how, const struct ops *ops);
/* Gives it its second socket. False: no memory, and the connection is at its end. */
bool conn_attach(struct conn *c, int fd);
/*
 * Speaks TLS on that side from now on, as `tls` says, which it owns; what is in c->in is
 * taken as the beginning for the client's side. Later `secured` is called, or `broken`,
 * with the reason in side[which].tls. False: the connection has ended.
 */
bool conn_secure(struct conn *c, enum end which, struct tls *tls);
/* Closes the second socket: with a reset, or as it is. */
void conn_detach(struct conn *c, bool reset);
/* After anything changed that `want` looks at. */
void conn_update(struct conn *c);
/* Both sockets are closed: in order, or with a reset to whoever is there. */
void conn_end(struct conn *c, bool reset);
/* The same with a reset, once `to` has taken what was sent to it, or takes nothing for LINGER_MS. */
void conn_reset_after(struct conn *c, enum end to);
/* What goes to a side: at once as far as it takes it, the rest later. False: the connection has ended. */
bool conn_send(struct conn *c, enum end to, const void *p, size_t n);
/* End of file for a side, after what is still to be sent. */
void conn_shut(struct conn *c, enum end to);
/* Sends what is there, then end of file; for LINGER_MS what the client still sends is thrown away. */
void conn_finish(struct conn *c);
/* Deadline of a step; idle: it moves with each byte. 0: none. */
void conn_deadline(struct conn *c, uint64_t ms, bool idle);
/* Appends to c->in, at most `most` in all. False: too much, for all together too, or no memory. */
bool conn_keep(struct conn *c, const char *p, size_t n, size_t most);
void conn_drop_kept(struct conn *c, size_t n);

/* Events about this connection. */
void conn_say(struct conn *c, enum egress_event_kind kind, enum egress_reason reason, int rule,
	      const struct address *address);
/* About a request under inspection; target: as it was sent, the query is left out. */
struct request_said {
	enum egress_event_kind kind;
	enum egress_reason reason;
	int rule;
	struct http_text method, target;
	unsigned int status;
};
void conn_say_request(struct conn *c, const struct request_said *what);
/* EGRESS_ALLOW, and later EGRESS_CLOSE with the bytes. */
void conn_opened(struct conn *c);
void conn_closed(struct conn *c);
/* Bytes that no event has told yet, counted as told. */
void conn_tally(struct conn *c, uint64_t *ret_up, uint64_t *ret_down);
/* EGRESS_CLOSE of all that are open: the process ends. */
void conn_close_all(struct proxy *px);

/* An allowed connection's way to its server: dial.c. */
enum dialled { DIAL_GOOD, DIAL_DENIED, DIAL_UNRESOLVED, DIAL_UNREACHED };
struct dial_end {
	enum dialled what;
	enum egress_reason reason; /* DIAL_DENIED */
	int rule;
	int err; /* DIAL_UNREACHED: errno of the last attempt */
};
/*
 * Resolves c->host unless it is an address or c->local, checks each address, dials
 * those that may be, one after the other; `done` is called once, later, not if the
 * connection ends before. With DIAL_GOOD the second socket is attached. Denials and
 * failures have been said as events.
 */
void dial_start(struct conn *c, void (*done)(struct conn *c, const struct dial_end *end));
void dial_cancel(struct conn *c);
/* With other rules: those that are still to be dialled may all be, by these. */
bool dial_judge(const struct conn *c);

/*
 * Is c->host at c->port allowed? A synthetic address becomes its name before. Sets
 * rule and local, or says EGRESS_DENY and returns the verdict's reason in *ret_reason.
 */
bool conn_allowed(struct conn *c, enum egress_reason *ret_reason);
/* Its synthetic address may be given to another name again. */
void conn_forget_name(struct conn *c);

/* Bytes both ways from now on; what is in c->in goes first. */
void tunnel_start(struct conn *c);
/* Waits for the client's first bytes, at most HELLO_WAIT_MS, before `go`. */
void tunnel_peek(struct conn *c, void (*go)(struct conn *c));

/* Requests to its host are looked into: instead of a tunnel to it. */
bool inspect_wanted(const struct conn *c);
/*
 * The client speaks to the host itself: in TLS, which ends here, or plain HTTP. After
 * conn_allowed(); nothing has been dialled, which comes with each request.
 */
void inspect_start(struct conn *c);
/* May this request to c->host go up? If not, it was said, and answered. */
bool inspect_request(struct conn *c, const struct http_head *h);
/* Has fields by which frameworks let a client say another method or path than its first line. */
bool inspect_overrides(const struct http_head *h);
/* Other rules hold: may a request that is under way go on? If not, it was said. */
bool inspect_again(struct conn *c, struct http_text method, struct http_text target,
		   bool overrides);
/*
 * Values where their placeholders are, as far as they may go to c->host; each is added to
 * *ret, which begins as NULL, and gets its bit in *ret_used. False: no memory.
 */
bool inspect_secrets(struct conn *c, struct http_head *h, struct echo **ret, uint32_t *ret_used);
/* They go up: EGRESS_SECRET for each of those bits. */
void inspect_say_used(struct conn *c, uint32_t used);

/*
 * Limits of the rules. limits_take(): `fd` is the file with what was spent before, or none;
 * INTERNAL: it is another one. limits_begin(): when there is a loop. limits_set(): the set
 * has changed.
 */
NODISCARD int limits_take(struct proxy *px, int fd, struct err *e);
void limits_begin(struct proxy *px);
void limits_set(struct proxy *px);
/* The rules allow it; so do the limits, and it counts from now on. False: *v says which does not. */
bool limit_admit(struct conn *c, struct egress_verdict *v);
/* It counts no longer as one of many. */
void limit_leave(struct conn *c);
/* At most that many bytes of n may be read now; 0: later, by itself. */
size_t limit_room(struct conn *c, size_t n);
/* n bytes came from that side. False: too many; it was said, and the connection has ended. */
bool limit_took(struct conn *c, enum end from, size_t n);

/* One for each kind of listener: takes what was accepted. */
void http_accepted(struct proxy *px, int fd);
void socks_accepted(struct proxy *px, int fd);
void redirect_accepted(struct proxy *px, int fd);
void local_accepted(struct proxy *px, int fd, uint16_t port);
void dns_accepted(struct proxy *px, int fd);
/* A datagram socket that becomes readable. */
void dns_datagrams(struct proxy *px, int fd);

/*
 * HTTP: a request that was read from c->in, with its head. It is checked, dialled,
 * carried and answered; then the connection waits for the next one or ends.
 */
void exchange_start(struct conn *c, struct http_head *h);
void exchange_free(struct exchange *x);
/*
 * Other rules hold: the request that is under way, if there is one, may go on by them. One
 * that nobody has looked into may not where they ask for inspection; if not, it was said.
 */
bool exchange_judge(struct conn *c);
/* The next request on this connection. */
void http_next(struct conn *c);
/* The first one, on a connection that is inspected. */
void http_begin(struct conn *c);

/* Answers and then the end of the connection: answer.c. `why` is for people. */
void answer_bad(struct conn *c, unsigned int status, const char *why);
/* 403, with reason, rule and hint. */
void answer_denied(struct conn *c, enum egress_reason reason, int rule);
/* The same of a request; `what`: "the method", … */
void answer_refused(struct conn *c, enum egress_reason reason, int rule, const char *what);
/* 502 or 504: the way to the server. */
void answer_failed(struct conn *c, const struct dial_end *end);
/* 502: TLS with the server has failed; `denied`: by us, because of its certificate. */
void answer_insecure(struct conn *c, bool denied, const char *why);

/* Neither side is read; for the time of dialling. The client's end is the end. */
extern const struct ops ops_waiting;

/* Opens the listeners of the table. */
NODISCARD int listen_start(struct proxy *px, const struct egress_listener *v, const int *fds,
			   size_t n, struct err *e);

/* The buffer's content, for an AUTO_BUF; the buffer itself is empty then. */
static inline struct buf take_buf(struct buf *b)
{
	struct buf taken = *b;

	*b = BUF_INIT(taken.max);
	return taken;
}

/* Now, of the loop: CLOCK_MONOTONIC, ms. */
static inline uint64_t proxy_now(struct proxy *px)
{
	return uv_now(&px->loop);
}

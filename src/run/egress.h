/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way out of one call, from outside: starts sandglass-proxy with the rules, hands
 * it the sockets that core has made inside, and keeps what it says about them. Without
 * a proxy that listens nothing runs; when it is gone nothing leaves any more.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "egress/set.h"
#include "plan/report.h"
#include "run/asked.h"

/*
 * Different rows that are kept of what was allowed, and of what was denied; more are
 * counted. Of names at most half, so that they leave room for connections.
 */
#define MAX_EGRESS_TOLD 256u
/* How long the proxy may take to listen, from its start. */
#define EGRESS_READY_MS 10000u

enum egress_op { EGRESS_CONNECT, EGRESS_RESOLVE };

/* What happened, as often as it did. */
struct egress_row {
	struct egress_said said;
	enum egress_op op;
	enum egress_how how; /* the first time */
	enum egress_reason reason;
	uint64_t count;
};

struct egress_rows {
	struct egress_row *v;
	size_t n, room;
	size_t names;  /* of n: EGRESS_RESOLVE */
	uint64_t more; /* that found no room */
};

struct egress {
	const struct egress_set *set;
	pid_t pid;          /* of the proxy; 0: none */
	int ctl;            /* -1: it is gone */
	uint64_t ready_ms;  /* when it should listen; LIMIT_NONE: it does */
	bool over;          /* the call has ended: its end is none too early */
	bool died;          /* it ended before the call */
	bool closed;        /* no rule, and something was looked for all the same */
	struct err failure; /* ERR_NONE: none */
	uint64_t up, down;  /* bytes out of and into the sandbox */
	struct egress_rows denied, allowed;
	struct egress_rows failed;   /* allowed, but the name or the address was not reached */
	struct asked requests, used; /* what was asked for, and which secrets went where */
	char *authority; /* under inspection: the certificate of the proxy's own, PEM; NULL: not yet */
	/* Gets each event instead of the two lists; NULL: they are kept. */
	void (*tell)(void *self, const struct egress_event *v);
	void *self;
};

/*
 * What the plan says of a set: ports, and the addresses that rules name, each once.
 * ret->prefixes are the caller's to free.
 */
NODISCARD int egress_plan(const struct egress_set *set, struct plan_egress *ret, struct err *e);
/* The rules as a sealed file, from its beginning. -1: `e` says why. */
NODISCARD int egress_file(const struct egress_set *set, struct err *e);
/* One report of core's, with what comes along (at most MAX_REPORT_SOCKETS). False: the end, or no report. */
bool egress_receive(int fd, struct report *ret, int *ret_fds, size_t *ret_n);

/* What the proxy gets beside the rules; -1: none. They stay the caller's. */
struct egress_files {
	int secrets; /* of secrets_file() */
	int spent;   /* of session_net_spent(): for a proxy that has others after it */
};

/*
 * Starts the proxy; it gets ready while the sandbox is built. `set` must live as long.
 * SANDBOX_UNAVAILABLE: it is not there or does not start.
 */
NODISCARD int egress_begin(struct egress *g, const struct egress_set *set,
			   const struct egress_files *files, struct err *e);
/* Waits for g->authority, where rules ask for inspection. SANDBOX_UNAVAILABLE: it does not come. */
NODISCARD int egress_await_authority(struct egress *g, struct err *e);

/* Of a report with sockets: hands them on, and closes them. The last one has none. */
void egress_hand_on(struct egress *g, const struct report *r, const int *fds, size_t n);

/*
 * An order to a proxy that listens; `set` and `fds` (o->count of them) for other rules.
 * EGRESS_DONE says that it is carried out.
 */
NODISCARD int egress_order(struct egress *g, const struct egress_order *o,
			   const struct egress_set *set, const int *fds, struct err *e);

/* Something can be read from g->ctl. True: the proxy listens from now on. */
bool egress_step(struct egress *g);
/* An event of a proxy that is not the call's own. */
void egress_note(struct egress *g, const struct egress_event *v);
/* It has not listened in time, or has failed: g->failure says why. `now` as clock_mono_ms(). */
bool egress_has_failed(struct egress *g, uint64_t now_ms);

/* The call has ended. The proxy says what is still to be said, and ends. Nothing, if it was not begun. */
void egress_stop(struct egress *g);
void egress_finish(struct egress *g);
void egress_release(struct egress *g);

#define EGRESS_DIED_HINT                                                                  \
	"sandglass-proxy ended while the command ran: nothing was reached from then on; " \
	"the next call has a new one"
#define EGRESS_CLOSED_HINT                                                                  \
	"the network is closed: --allow-host NAME opens a host, --allow-local PORT a port " \
	"of this machine's loopback"
#define EGRESS_MORE_HINT "other targets, of which no list is kept"

/* "connect" and "dns". */
const char *egress_op_name(enum egress_op op);

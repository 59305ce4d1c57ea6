/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way out of a session: one proxy for all its calls, started for the first of them
 * that has rules, and again if it has ended. Its keeper's, which tells each call what
 * the proxy says.
 */
#pragma once

#include <stdbool.h>

#include "run/egress.h"
#include "session/layers.h"

struct session_egress {
	int dir;                /* the session's; not ours */
	struct egress_set base; /* what the session was made with */
	struct egress_set
		set; /* the rules in force: those, then what was added (store/sessionnet.h) */
	struct egress_set next; /* handed to the proxy, which has not said yet that they hold */
	struct egress out;
	bool known; /* base and set are there */
	bool began;
	bool no_redirect;    /* this kernel has no nftables */
	uint32_t number;     /* of the order that is not carried out yet; 0: none */
	uint32_t generation; /* of the rules in force */
	bool changes;        /* the order brings `next` */
	int secrets, values; /* sealed files (run/secretkeep.h); -1: none */
	int authority; /* of the proxy that runs: its certificate, a sealed file; -1: it does not inspect */
	uint16_t ports[MAX_EGRESS_LOCALS]; /* of the host's loopback, for which sockets are open */
	size_t port_count;
	void (*tell)(void *self, const struct egress_event *v);
	void *self;
};

/*
 * The rules that the session was made with, in a sealed file of a call's: those of the
 * first one hold for all. -1: none. What was added since is read from its directory.
 */
NODISCARD int session_egress_take(struct session_egress *s, int fd, struct err *e);

/*
 * Two sealed files of the session's secrets, taken over (-1) if it has none and no proxy
 * was started without: each proxy of the session gets the first one.
 */
NODISCARD int session_egress_secrets(struct session_egress *s, int *secrets, int *values,
				     struct err *e);

/*
 * Before a call: the proxy listens in the session's network; nothing, where no rule opens
 * anything. What it says goes to `tell` from then on. SANDBOX_UNAVAILABLE: it cannot be.
 */
NODISCARD int session_egress_ready(struct session_egress *s, const struct layers *l, struct err *e);

/*
 * Other rules for the session, with all that runs in it: `more`, a sealed file of rules,
 * is added to what was added before, or with `anew` replaces it. When it returns they
 * hold: new connections are judged by them, and those that they do not allow are reset.
 * On failure what held before holds, but if SANDBOX_UNAVAILABLE says that the proxy did
 * not take them: then it was ended, and the next call has one with the new rules.
 */
NODISCARD int session_egress_change(struct session_egress *s, const struct layers *l, int more,
				    bool anew, struct err *e);

/* Takes what it has said, and that it has ended: `tell` gets EGRESS_DIED. */
void session_egress_step(struct session_egress *s);

/*
 * Tells the proxy, if there is one: the bytes of open connections are said; all of them
 * end; nothing is read from them any more, or it is again. Waits a moment until it is
 * carried out, RESET only before the next call begins.
 */
void session_egress_tell(struct session_egress *s, enum egress_order_kind what);

/* The network goes: so does the proxy. */
void session_egress_end(struct session_egress *s);

/* To be polled for input; -1: none. */
static inline int session_egress_fd(const struct session_egress *s)
{
	return s->began ? s->out.ctl : -1;
}

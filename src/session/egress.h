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
	struct egress_set set; /* {0}: no call has brought rules yet */
	struct egress out;
	bool began;
	bool no_redirect; /* this kernel has no nftables */
};

/*
 * The rules of the session, in a sealed file of a call's: those of the first one hold
 * for all, since what a session was made with does not change.
 */
NODISCARD int session_egress_take(struct session_egress *s, int fd, struct err *e);

/*
 * Before a call: the proxy listens in the session's network; nothing, where no rule opens
 * anything. What it says goes to `tell` from then on. SANDBOX_UNAVAILABLE: it cannot be.
 */
NODISCARD int session_egress_ready(struct session_egress *s, const struct layers *l,
				   void (*tell)(void *, const struct egress_event *), void *self,
				   struct err *e);

/* Takes what it has said. False: it has ended. */
bool session_egress_step(struct session_egress *s);

/* The network goes: so does the proxy. */
void session_egress_end(struct session_egress *s);

/* To be polled for input; -1: none. */
static inline int session_egress_fd(const struct session_egress *s)
{
	return s->began ? s->out.ctl : -1;
}

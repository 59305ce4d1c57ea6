/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps a session still while it is reviewed: no two of apply and discard at a time, no diff
 * or export while one of them is at work, and no call that changes what is read.
 */
#pragma once

#include "base/err.h"
#include "store/session.h"

enum hold_kind {
	HOLD_READ, /* with others that read; calls that run stand still where there is a freezer */
	HOLD_CHANGE, /* alone; no call may run */
};

struct hold {
	int lock;     /* on the session's directory; -1: not held */
	int ctl;      /* to its keeper; -1: nobody keeps it */
	int kept;     /* the keeper's lock, so that none begins */
	bool unclean; /* the machine stopped meanwhile: what was not on the disk is lost */
};

#define UNCLEAN_TEXT \
	"the machine stopped while the session was there: what was not on the disk by then is lost"

#define HOLD_NONE ((struct hold){.lock = -1, .ctl = -1, .kept = -1})

/* BUSY if another review, or a call, is in the way. `session` is its directory. */
NODISCARD int hold_session(int session, const struct session_record *rec, enum hold_kind kind,
			   struct hold *ret, struct err *e);
/* The same without a word to the keeper, for what that one has started. */
NODISCARD int hold_from_keeper(int session, const struct session_record *rec, struct hold *ret,
			       struct err *e);
/* Any number of times. */
void hold_end(struct hold *h);

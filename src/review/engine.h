/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carries a journal out: all of it, or, if the source turns out to be another one
 * than the plan was made for, nothing. Each name has at each moment either the old
 * file or the new one, complete. What belongs to somebody else is never lost: a
 * name is exchanged, what came out is looked at, and put back if it is not what
 * was expected.
 */
#pragma once

#include "base/err.h"
#include "review/applied.h"
#include "review/journal.h"
#include "review/owner.h"

struct engine {
	int session; /* its directory, where what was applied is noted; -1: it is not */
	int source;  /* the directory that is changed */
	int upper; /* where renamed directories lead back to the source (overlay as root); -1: none */
	struct journal *j;             /* locked */
	const struct owner *owner;     /* who changes it */
	const struct owner *reader;    /* who reads the source, if new files come from there */
	int64_t base_ns;               /* of the session */
	const struct applied *applied; /* as before; NULL: nothing is noted */
	bool patient;                  /* waits for a directory whose place a link has taken */
	bool last;                     /* what cannot be put back now is left */
	size_t kept;   /* directories that were to go and have something new in them */
	char *kept_at; /* the first of them; heap */
};

/* The journal is ready: exchanges the names. CONFLICT, or whatever failed: then all is as before. */
NODISCARD int engine_forward(struct engine *en, struct err *e);

/* Removes what is old, notes what was applied, and ends the journal. */
NODISCARD int engine_finish(struct engine *en, struct err *e);

/* Puts back what was, removes what was made, and ends the journal. */
NODISCARD int engine_back(struct engine *en, struct err *e);

enum recovered { RECOVERED_NOTHING, RECOVERED_FORWARD, RECOVERED_BACK };

/* Reads the journal, and does what is left to do of an apply that was killed. */
NODISCARD int engine_recover(struct engine *en, enum recovered *ret, struct err *e);

/* Makes names and contents durable: everything of the source's file system, or the few that there are. */
NODISCARD int engine_sync(struct engine *en, struct err *e);

/* Whether engine_sync() writes names alone, so that who makes a file writes that one himself. */
bool engine_is_few(const struct engine *en);

/* Lets the owner at the directories that are to change. They get their modes in the end. */
NODISCARD int engine_open_up(struct engine *en, struct err *e);

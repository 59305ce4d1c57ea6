/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper of a session: one process that holds its namespaces, its lock, as
 * root its uid, and its lease. It needs no daemon, and nothing needs it but the
 * session: with its end every call of it ends.
 */
#pragma once

#include "base/err.h"
#include "policy/request.h"
#include "store/session.h"

/*
 * Starts the keeper of a session whose directories are there, in a process of its own
 * that outlives the caller, and waits until it answers. `held` stays open in it. With
 * `fresh` the record is written: it is the first keeper. What fails is told as of the
 * caller's own doing.
 */
struct keeper_fds {
	int lock;            /* of keeper_lock() */
	int uid;             /* holds the session's uid; -1: none */
	int secrets, values; /* its secrets' files (run/secretkeep.h); -1: none, or not yet */
};
NODISCARD int keeper_start(const struct caller *who, int dir, struct session_record *rec,
			   const struct keeper_fds *held, bool fresh, struct err *e);

/* By the clock of file systems, which is coarser than its events. */
int64_t keeper_now_ns(void);

/* The session's lock, as its keeper holds it: BUSY if somebody has it. */
NODISCARD int keeper_lock(int dir, int *ret, struct err *e);

/* Empties upper/, work/ and the places of root/: as at the beginning. Nothing of it may be mounted. */
NODISCARD int keeper_make_places(int dir, const struct session_record *rec, struct err *e);

/*
 * Before a call: what a command has put in the place of a directory of root/ goes, and the
 * directory is there again.
 */
NODISCARD int keeper_mend_places(int dir, const struct session_record *rec, struct err *e);

/*
 * What a process left that was killed while it made or removed a session: directories without
 * a record, entries of state.db without a directory, both older than a minute.
 */
void keeper_reconcile(const struct caller *who);
/* The lock over all sessions of a user: who makes one holds it until that has its own. */
NODISCARD int keeper_lock_all(const struct caller *who, int *ret, struct err *e);

/* All of a session goes: its directory, cgroups, its entry in state.db. Its lock is held or nobody keeps it. */
void keeper_remove(const struct caller *who, int dir, const struct session_record *rec);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts what a session changed into its source: all that was asked for, or nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "review/choice.h"
#include "review/commits.h"
#include "review/engine.h"
#include "store/session.h"

#define APPLY_CONFLICTS_SHOWN 20

struct apply;

/* A part of the caller, when the changes are known. */
typedef int apply_part(void *self, struct apply *a, struct err *e);

struct apply {
	/* from the caller */
	int session; /* its directory */
	const struct session_record *rec;
	const char *const *paths; /* below the source, clean; "" is all */
	size_t path_count;
	bool merge;
	apply_part *name; /* sets paths and path_count; NULL: they are set */
	apply_part
		*pick; /* takes from what was named, or says what else to write; NULL: all of it */
	void *self;

	/* for what it calls */
	struct owner owner;
	struct journal journal;
	struct engine engine;
	struct review review;
	struct changes changes;
	struct choice *choices;
	struct applied *applied;
	struct commits commits; /* with all paths: the branches that the session moved */

	/* what came of it; valid until apply_release() */
	enum recovered recovered; /* of an apply before, that was killed */
	size_t recovered_refs;    /* branches that it had not come to */
	bool files_done;          /* the source has them, also if the branches could not be moved */
	size_t added, modified, deleted;
	size_t markers;   /* files that were merged and have markers: choices say which */
	size_t conflicts; /* with CONFLICT: how many, the changes say which */
	struct left_out left;
};

NODISCARD int apply_session(struct apply *a, struct err *e);
void apply_release(struct apply *a);

/* Whether this change keeps it from being applied. */
bool apply_is_conflict(const struct apply *a, size_t i);

/* Ends what a killed apply of a session left; for gc. The source may be gone: then nothing is done. */
NODISCARD int apply_recover(int session, const struct session_record *rec, enum recovered *ret,
			    struct err *e);

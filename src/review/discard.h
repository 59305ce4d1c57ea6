/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lets a session see its source's content again. Nothing of the source is changed,
 * and no call of the session may run.
 */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "review/change.h"
#include "review/engine.h"
#include "store/session.h"

struct discarded {
	size_t paths;             /* changes that are gone */
	size_t masked;            /* a copy's: they stay, since what is masked is not copied */
	enum recovered recovered; /* of a discard before, that was killed */
};

/* Gives the paths when the changes are known: below the source, clean, "" for all; see apply.h. */
typedef int discard_name(void *self, const struct changes *c, const char *const **ret_paths,
			 size_t *ret_n, struct err *e);

/*
 * NOT_FOUND for a path without a change; UNSUPPORTED, naming it, for one in a directory that the
 * session replaced, renamed or removed as a whole.
 */
NODISCARD int discard_session(int session, const struct session_record *rec, discard_name *name,
			      void *self, struct discarded *ret, struct err *e);

/* Ends what a killed discard of a session left; for gc. */
NODISCARD int discard_recover(int session, const struct session_record *rec, enum recovered *ret,
			      struct err *e);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Branches that a session moved, and the objects that they need, brought into the
 * source's repository: a bundle made in a sandbox, taken in by git with everything off
 * that a configuration could have run, as the owner of the source. Only refs/heads/, only
 * forward of what the session knew; a deleted branch stays.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "review/applied.h"
#include "review/change.h"
#include "review/journal.h"
#include "review/owner.h"

#define MAX_MOVED_REFS 1024u
#define MAX_BUNDLE_BYTES ((uint64_t)1 << 30)
#define COMMITS_OID 65 /* hex with the NUL */

struct moved_ref {
	char *name;                                   /* refs/heads/… */
	char before[COMMITS_OID], after[COMMITS_OID]; /* before: zeros for a new one */
	bool conflict; /* somebody else moved it in the source since */
};

struct commits {
	struct moved_ref *v; /* sorted by name */
	size_t n;
	size_t odd;    /* refs whose names or values are none: left out */
	bool has_head; /* HEAD of the source names one of them: head */
	size_t head;
	bool moved;       /* they are in the source by now */
	bool index_stays; /* the index has other changes and was left as it is */
	int bundle;       /* made in the sandbox; -1: none yet */
};

/* None without a git directory (a real one) in the source. Reads only. */
NODISCARD int commits_find(const struct review *r, const struct changes *c,
			   const struct applied *applied, struct commits *ret, struct err *e);
void commits_release(struct commits *m);

/* m->bundle of the branches, against what the source has; empty: that has all of them. */
NODISCARD int commits_bundle(const struct review *r, const struct changes *c, int scratch,
			     struct commits *m, struct err *e);
/*
 * An open file (no name) of what git diff-tree -z says of each branch, after "ref NAME" and a
 * NUL: against what it was, a new one against the source's HEAD. At most `most` bytes.
 */
NODISCARD int commits_list(const struct review *r, const struct changes *c, int scratch,
			   const struct commits *m, uint64_t most, int *ret_out, struct err *e);
/* A new object or pack of git's, or a directory for some: names that tell a person nothing. */
bool commits_is_of_objects(const struct change *ch);
/* Whether the session has objects of its own; all of them as a tar file, for its objects/. */
bool commits_has_objects(const struct changes *c);
NODISCARD int commits_tar(const struct review *r, const struct changes *c, int out, struct err *e);

/* The objects, into the source's repository; no ref is changed. `scratch` is a directory of ours. */
NODISCARD int commits_fetch(const struct review *r, const struct changes *c,
			    const struct owner *owner, int scratch, struct commits *m,
			    struct err *e);

/* Notes in the journal what commits_move() is to do. */
NODISCARD int commits_note(const struct journal *j, const struct commits *m, struct err *e);

/*
 * All refs in one transaction, each only if it still is what it was; then HEAD's index. CONFLICT if
 * one is not, BUSY if somebody's git holds one; the journal knows nothing of them afterwards.
 */
NODISCARD int commits_move(const struct review *r, const struct owner *owner, int session,
			   const struct journal *j, struct commits *m, struct err *e);

/* What a killed apply noted and did not come to; how many branches it moved. */
size_t commits_resume(int source, const struct session_record *rec, const struct owner *owner,
		      int session, const struct journal *j);

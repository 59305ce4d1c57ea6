/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of a session's changes are to be applied: those that were named, without
 * what is never applied, and with what the others need. Decides only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "review/change.h"

struct choice {
	bool yes;
	bool exact;  /* named by exactly its path */
	bool merged; /* `content` is a merge that has markers in it */
	int content; /* what to write instead of the session's content; -1: that */
};

/* What stays behind of all that was named. */
struct left_out {
	size_t masked, special, git, kept;
	const char *masked_at, *special_at, *git_at, *kept_at; /* the first of each */
};

/* One for each change, none chosen; free with choices_free(). NULL without memory. */
struct choice *choices_new(size_t n);
void choices_free(struct choice *v, size_t n);

/*
 * Paths are below the source, clean, or "" for all of it. NOT_FOUND for one that has no change,
 * POLICY_DENIED for a masked one by its own path.
 */
NODISCARD int choices_name(const struct changes *c, const char *const *paths, size_t n,
			   struct choice *v, struct left_out *ret, struct err *e);

/*
 * Adds the directories that chosen entries lie in, and what goes with a directory that is
 * replaced; takes away directories that cannot go since something in them stays. CONFLICT if
 * that cannot be.
 */
NODISCARD int choices_complete(const struct changes *c, struct choice *v, struct left_out *ret,
			       struct err *e);

/* The change is to a directory, from something else or nothing. */
bool change_makes_dir(const struct change *ch);
/* The change replaces a directory with something else. */
bool change_replaces_dir(const struct change *ch);
/* The change removes a directory. */
bool change_removes_dir(const struct change *ch);
/* The outermost chosen directory above `path` of which `is` holds; NULL: none. */
const struct change *choices_above(const struct changes *c, const struct choice *v,
				   const char *path, bool (*is)(const struct change *ch));
/* Changes below the path are v[*ret_from] to v[*ret_to - 1]. */
void choices_below(const struct changes *c, const char *path, size_t *ret_from, size_t *ret_to);

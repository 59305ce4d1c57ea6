/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What commits of a session hold that its files do not show: whoever looks at the
 * files alone would not see it, and `apply` brings it with the branch.
 */
#pragma once

#include "review/commits.h"

#define MAX_UNSEEN 10000u /* paths that are told; what is more is counted */
#define MAX_UNSEEN_HASHED \
	((uint64_t)256 << 20)                /* bytes of files compared; what is beyond is told */
#define MAX_UNSEEN_LIST ((uint64_t)64 << 20) /* bytes of git's list of all branches together */

struct unseen_path {
	char *ref;  /* refs/heads/… */
	char *path; /* below the source; any bytes */
};

struct unseen {
	struct unseen_path *v; /* by branch, in git's order of paths */
	size_t n, more;
	uint64_t hashed;
};

/*
 * Compares what each moved branch has more or other than before with the session's files. Nothing
 * if none moved. A file that git's filters change (line ends) counts as another. Submodules do
 * not count. `scratch` is a directory of ours.
 */
NODISCARD int unseen_find(const struct review *r, const struct changes *c,
			  const struct applied *applied, int scratch, struct unseen *ret,
			  struct err *e);
void unseen_release(struct unseen *u);

/*
 * POLICY_DENIED if a moved branch has something at a masked path now: it would be tracked from then
 * on, and a person's next commit would have the file itself.
 */
NODISCARD int unseen_check_masked(const struct review *r, const struct changes *c,
				  const struct commits *m, int scratch, struct err *e);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source: which directory a command works on, and which it may not.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "policy/request.h"
#include "policy/resolve.h"

struct source {
	bool given;           /* false: no source */
	char path[PATH_TEXT]; /* canonical */
	struct stat st;
};

/* Directories that no source or grant may be or contain: homes, `/`, our own state. */
struct refused {
	struct places homes; /* homes and what is above them */
	struct places state; /* ours and what is above it */
	char state_path[3][PATH_TEXT];
	size_t state_paths;
};

NODISCARD int refused_init(const struct caller *who, struct refused *ret, struct err *e);

/*
 * POLICY_DENIED if the directory is a home, an ancestor of one, or holds (or
 * lies in) sandglass's own state. `what` names it in the message ("source").
 */
NODISCARD int refused_check(const struct refused *r, const char *what, const struct resolved *dir,
			    struct err *e);

/*
 * CONFIG_INVALID for a path below /sand, /proc, /sys or /dev: a view of our own
 * stands there, and nothing of the host can appear. `what` as above.
 */
NODISCARD int source_check_place(const struct resolved *dir, const char *what, struct err *e);

/*
 * Top of the git work tree around the working directory, else the working
 * directory; or --source, or none. Reads nothing of the directory but whether
 * `.git` is there. What is found may still be refused.
 */
NODISCARD int source_locate(const struct request *req, const struct caller *who, struct source *ret,
			    struct err *e);
NODISCARD int source_check(const struct source *src, const struct refused *refused, struct err *e);

/* Both. */
NODISCARD int source_find(const struct request *req, const struct caller *who,
			  const struct refused *refused, struct source *ret, struct err *e);

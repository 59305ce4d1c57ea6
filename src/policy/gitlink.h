/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source whose `.git` is a file: a linked worktree or a submodule, whose git
 * directory lies elsewhere. It is followed only if that directory points back
 * to this source and belongs to who works here; else anybody who can write the
 * file could have any repository mounted.
 */
#pragma once

#include "policy/source.h"

struct gitlink {
	bool found;
	bool worktree;          /* else a submodule: the directory is its alone */
	char common[PATH_TEXT]; /* what has to be mounted; canonical */
	struct stat st;         /* of it */
	char why[256]; /* there is a `.git` file and it was not followed: the reason; else "" */
};

/*
 * Reads `.git` of the source and, through it, `commondir`, `gitdir` or `config` of
 * the directory that it names. Never fails: what is not as it should be is not followed.
 */
void gitlink_find(const struct source *src, const struct caller *who, const struct refused *refused,
		  struct gitlink *ret);

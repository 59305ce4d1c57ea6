/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conflicts of text files, merged by `git merge-file` in a sandbox.
 */
#pragma once

#include "base/err.h"

#define MAX_MERGE_BYTES (64u << 20) /* of each of the three files */

struct apply;

/*
 * For each chosen conflict where both sides are regular files: its choice gets the merge as
 * content, and `merged` if markers are in it. Others, and what git cannot merge, stay conflicts.
 */
NODISCARD int merge_conflicts(struct apply *a, struct err *e);

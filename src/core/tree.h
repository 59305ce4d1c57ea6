/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host path as a detached mount: opened by init for an ordinary user, and from
 * outside (src/launch) for root.
 */
#pragma once

#include <stdbool.h>

#include "plan/plan.h"
#include "plan/report.h"

/* A part of the system, which only root changes: bound by its name, without a look at it first. */
static inline bool mount_is_plain(const struct plan_mount *m)
{
	return m->kind == MOUNT_BIND && (m->flags & MOUNT_SYSTEM) && !(m->flags & MOUNT_IDENT);
}

enum { TREE_NONE = -1, TREE_FAILED = -2 };
/* TREE_NONE: optional and not there. TREE_FAILED: *failure says why. */
int tree_open(const struct plan_mount *m, int idmap_fd, struct report *failure);
/* stdin's file opened once more, read-only; TREE_FAILED likewise. */
int tree_open_stdin(const struct plan *p, struct report *failure);

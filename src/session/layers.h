/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The namespaces of a session, and the overlay in them, held by one process: the
 * first of the session's pid namespace, so that its end is the end of every call.
 * It dies with the keeper, holds no secret and runs nothing.
 *
 *   keeper ── mount, tree ──► holder (pid, mount, network; as a user also user namespace)
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "store/session.h"

struct layers {
	pid_t pid; /* of the holder; 0: none */
	int ctl;
	int user; /* -1 as root */
	int pidns, net;
};

/* Makes them. The session's directory has upper/, work/ and mnt/, or copy/. */
NODISCARD int layers_start(struct layers *l, int dir, const struct session_record *rec,
			   struct err *e);
/*
 * Mounts the overlay (again): what has changed in the source is seen. `masks`: the
 * directory masks/ is a layer above the source. No call may run.
 */
NODISCARD int layers_mount(struct layers *l, bool masks, struct err *e);
/* What a call sees at the source's path, as a detached mount; -1 in *ret: nothing. */
NODISCARD int layers_tree(struct layers *l, int *ret, struct err *e);
/* All processes of the session end, and all mounts with them. */
void layers_end(struct layers *l);

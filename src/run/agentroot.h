/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AGENT_ROOT as a directory of the host, for a boundary that has no mounts:
 * `$SANDGLASS_HOME/sessions/<id>/root`, made for one call and removed with it.
 * Beside it a lock, held as long as this process lives: what nobody holds was
 * left by one that was killed, and the next that comes removes it.
 */
#pragma once

#include "base/uuid.h"
#include "policy/request.h"

struct agentroot {
	char path[4096];
	char id[UUID_TEXT]; /* name below sessions/ */
	int sessions;       /* -1: nothing was made */
	int lock;
};

/*
 * Makes home, tmp, cache, workspace and logs in it, all of them 0700 and, as root,
 * the given owner's. `id` is the session's, or `other` where that is taken.
 */
NODISCARD int agentroot_make(struct agentroot *a, const struct caller *who, const char *id,
			     const char *other, uid_t uid, gid_t gid, struct err *e);
/* A file in its home. */
NODISCARD int agentroot_write(const struct agentroot *a, const char *name, const char *text,
			      uid_t uid, gid_t gid, struct err *e);
/* After the last process of the command is gone. */
void agentroot_remove(struct agentroot *a);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * $SANDGLASS_HOME/quarantine/<session>/<n>/<name>: where things go that a
 * command has left and the host would run. Nothing is deleted: what cannot be
 * moved there stays beside its place under a name that nobody runs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/path.h"
#include "policy/request.h"

/* What one run may copy where a rename cannot do it, another file system. */
#define MAX_QUARANTINE_BYTES (256u << 20)
#define MAX_QUARANTINE_ENTRIES 20000u
/* Sessions that are kept, the newest. */
#define MAX_QUARANTINE_SESSIONS 200u

struct quarantine {
	char path[PATH_TEXT]; /* of the session's directory */
	int fd;               /* -1: not made yet */
	unsigned int next;
	uint64_t bytes, entries; /* copied so far */
	bool live;               /* a command runs: what cannot be renamed is only put aside */
};

void quarantine_init(struct quarantine *q, const struct caller *who, const char *session);
void quarantine_release(struct quarantine *q);

/*
 * Moves `name` out of the open directory `dir`, whose path is `dir_path`. Follows no link.
 * Permissions that the caller may change do not stop it. ret_to: where it is
 * now. False with errno: it is still there (ENOENT: it is gone).
 */
bool quarantine_take(struct quarantine *q, int dir, const char *dir_path, const char *name,
		     char ret_to[PATH_TEXT]);

/* A shell command (sh) that puts `from` back at `to`, appended. */
void quarantine_restore(struct buf *out, const char *from, const char *to);

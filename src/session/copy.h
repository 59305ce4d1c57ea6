/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session's own copy of the source, where there can be no overlay or none is wanted.
 */
#pragma once

#include "base/err.h"
#include "store/session.h"

/* Below the session: what was left out, each a letter, its path and NUL. */
#define COPY_LEFT "left-out"

/*
 * Copies the source to copy/: directories, files (shared blocks where the file system
 * can, holes as holes), links as links; modes without set-id bits of files, times. No
 * more than the session's limits allow, and not below the host's floor: DISK_LIMIT,
 * INODE_LIMIT. Sockets, devices, fifos, other file systems and what cannot be read are
 * left out, and so is what the list in the file `masked` names (session/masks.h), which
 * becomes something empty. Says how far it is on stderr, if that is a terminal
 * and it takes longer than a second.
 */
NODISCARD int copy_source(int dir, const struct session_record *rec, struct err *e);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session's own copy of the source, where there can be no overlay or none is wanted.
 */
#pragma once

#include "base/err.h"
#include "store/session.h"

/*
 * Copies the source to copy/: directories, files (shared blocks where the file system
 * can), links as links; modes without set-id bits, times. Sockets, devices and fifos
 * are left out, and so is what the list in the file `masked` names (session/masks.h),
 * which becomes something empty. Says how far it is on stderr, if that is a terminal
 * and it takes longer than a second.
 */
NODISCARD int copy_source(int dir, const struct session_record *rec, struct err *e);

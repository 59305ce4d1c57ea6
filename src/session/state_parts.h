/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What session/state.c asks of the file system; not for others.
 */
#pragma once

#include <stdbool.h>

#include "session/state.h"

/* UNSUPPORTED with a hint if the directory is on a file system of the network. */
NODISCARD int state_check_fs(const char *path, struct err *e);

typedef int state_found(void *self, const struct state_session *as, bool lives, struct err *e);

/*
 * All ids that left something below $SANDGLASS_HOME: sessions with their records (`lives`), and
 * those of which only a directory is there. Ends at the first failure of `found`.
 */
NODISCARD int state_traces(const struct caller *who, state_found *found, void *self, struct err *e);

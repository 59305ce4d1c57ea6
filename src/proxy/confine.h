/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sandglass-proxy gives up before it reads a foreign byte.
 */
#pragma once

#include "base/err.h"

/* Closes every descriptor but 0 to 2 and those in `keep`: ascending, above 2, n of them. */
NODISCARD int confine_descriptors(const int *keep, int n, struct err *e);

/*
 * Takes everything away that carrying bytes does not need:
 *
 *  - the id: root becomes a uid and gid of its own without groups; an ordinary user stays
 *  - capabilities: all sets empty, no_new_privs
 *  - not dumpable, no core file, killed when its parent ends
 *  - Landlock, where the kernel has it: reads the host's files about names (see
 *    confine.c) and nothing else, opens no TCP port, sends no signal
 *  - seccomp: a list of the calls of an event loop with sockets; all else is EPERM
 *
 * `parent` is the pid that is to be the parent still. Fails with
 * SANDBOX_UNAVAILABLE and the step that could not be done, or CANCELLED if the
 * parent has gone; the caller then ends.
 */
NODISCARD int confine(int parent, struct err *e);

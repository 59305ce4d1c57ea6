/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets of the host that lie in a granted tree: connecting to one needs no
 * more than its name, through read-only mounts too, so they are masked.
 */
#pragma once

#include "policy/view.h"

/* Adds a mask for each that /proc/net/unix names now. One bound later is not seen. */
NODISCARD int sockets_mask(struct view *v, const struct source *src, struct err *e);

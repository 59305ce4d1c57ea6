/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Session uids: as root every run gets a uid of its own from a range that
 * nobody else uses, for as long as one of its processes lives.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"

#define SESSION_UID_FIRST 1879100000u
#define SESSION_UID_COUNT 65536u

/*
 * Picks a free uid. Returns a descriptor that holds it (an open file
 * description lock: given back by the kernel when the last copy is closed, so
 * by init's death at the latest). BUSY if all are taken.
 */
NODISCARD int uidlock_take(uint32_t *ret_uid, struct err *e);

/* That one, of a session that had it before. BUSY if it is taken. */
NODISCARD int uidlock_take_this(uint32_t uid, struct err *e);

/* CONFIG_INVALID if passwd, subuid or subgid overlap with the range. Before a command runs. */
NODISCARD int uidlock_check(struct err *e);

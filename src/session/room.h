/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much a session may take up, alone and together with all others of its user, and
 * when it is near that.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "session/usage.h"
#include "store/session.h"

#define SESSIONS_BYTES (UINT64_C(20) << 30) /* of all sessions of one user */
#define ROOM_NEAR_PERCENT 80u

/* DISK_LIMIT or INODE_LIMIT; `others`: what all other sessions have, as they said last. */
NODISCARD int room_check(const struct session_record *rec, const struct usage_of *used,
			 uint64_t others, struct err *e);
/* A bit for each of KEEP_NEAR_*; `why` says which, if there is one. */
uint32_t room_near(const struct session_record *rec, const struct usage_of *used, uint64_t others,
		   struct err *why);

/* What a session takes up, left in its directory for the others; and the sum of theirs. */
void room_say(int dir, const struct session_record *rec, uint64_t bytes);
uint64_t room_others(int dir, const char *id);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a session's keeper writes about it, in the file `state` of its directory:
 * for who comes when no keeper answers any more.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define LEASE_BOOT 40 /* of /proc/sys/kernel/random/boot_id, with NUL */

struct lease {
	uint32_t state;   /* enum keep_state */
	int64_t end_ns;   /* since 1970 */
	int64_t most_ns;  /* since 1970: no renewal goes beyond */
	uint64_t left_ms; /* of a paused one */
	char boot[LEASE_BOOT];
};

/* Replaces the file at once. */
NODISCARD int lease_write(int dir, const struct lease *l, struct err *e);
/* Strict; NOT_FOUND if there is none. */
NODISCARD int lease_read(int dir, struct lease *ret, struct err *e);
/* Whether the machine was started anew since: what was not on the disk yet is lost. */
bool lease_is_unclean(int dir);
#define LEASE_UNCLEAN                                                                    \
	"the session is unclean: the machine was started anew, and what was not on the " \
	"disk yet is lost"
/* This boot's. */
void lease_boot(char ret[LEASE_BOOT]);

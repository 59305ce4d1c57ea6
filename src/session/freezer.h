/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cgroup (v2) of a session's own, below the caller's: its calls can be frozen and
 * killed there as a whole. Without controllers it limits nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Makes it; "" where we may not. */
void freezer_make(const char *id, char *ret, size_t len);
/* Waits until all of it stands still, at most 2 s; INTERNAL if it does not. */
NODISCARD int freezer_set(const char *dir, bool frozen, struct err *e);
/* All processes in it end, frozen or not. */
void freezer_kill(const char *dir);
void freezer_remove(const char *dir);

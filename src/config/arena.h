/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is given back in one piece.
 */
#pragma once

#include <stddef.h>

#include "base/err.h"

struct arena_chunk;
struct arena {
	struct arena_chunk *chunks;
	size_t bytes; /* handed out */
};

#define MAX_ARENA_BYTES ((size_t)64 << 20)

/* Zeroed; NULL with INTERNAL if there is none left, or more than MAX_ARENA_BYTES is asked for. */
void *arena_take(struct arena *a, size_t n, struct err *e);
/* A copy with a NUL behind it. */
char *arena_text(struct arena *a, const char *p, size_t n, struct err *e);
void arena_release(struct arena *a);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hunks of one file, as git makes them in a sandbox, and the file with some of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define MAX_HUNK_FILE ((uint64_t)64 << 20) /* bytes of a side; a larger file is taken as a whole */
#define MAX_HUNK_TEXT ((size_t)192 << 20)
#define MAX_HUNKS 100000u

struct hunk {
	const char *text; /* from its @@ on */
	size_t n;
	uint64_t old_at, old_n; /* lines of the old file, the first is 1 */
	bool take;
};

struct hunks {
	struct hunk *v; /* none: binary, or too large */
	size_t n, cap;
	char *text; /* git's */
};

/* Of two open files; they are read from their beginning. */
NODISCARD int hunks_make(int before, int after, struct hunks *ret, struct err *e);
/* git's text, n bytes, which becomes ret's. */
NODISCARD int hunks_parse(char *text, size_t n, struct hunks *ret, struct err *e);
void hunks_release(struct hunks *h);

/* The old file with the hunks that are taken. INTERNAL if they are not of it. */
struct buf;
NODISCARD int hunks_apply(const struct hunks *h, const char *old, size_t n, struct buf *out,
			  struct err *e);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What bench can measure. Each mode reads the commands of o->file, prints
 * Markdown tables on stdout, and returns 0, 1 if a gate does not hold, or -1.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define MAX_LEVELS 8
#define MAX_NAME 64

struct gate {
	char row[MAX_NAME];
	char base[MAX_NAME];
	uint64_t percent; /* p50(row) may be at most this much of p50(base); 0 is no gate */
};

struct options {
	const char *file;
	const char *base; /* name of the row that the second ratio is taken to, or NULL */
	const char *tool; /* tree: name of the process that is not counted */
	struct gate gate;
	uint64_t rounds;
	uint64_t warmup;             /* rounds that are run first and not counted */
	uint64_t runs;               /* load: runs in one block */
	uint64_t seed;               /* 0 takes a fresh one */
	uint64_t levels[MAX_LEVELS]; /* load: how many runs at a time */
	size_t level_count;
};

NODISCARD int rounds_mode(const struct options *o, struct err *e);
NODISCARD int values_mode(const struct options *o, struct err *e);
NODISCARD int load_mode(const struct options *o, struct err *e);
NODISCARD int tree_mode(const struct options *o, struct err *e);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identity and times of many directories at once. A stat(2) by name costs about
 * a microsecond, and a warm look at a tree is nothing else, so it is spread over
 * the processors there are.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct inventory;

#define MAX_STATS_PATH 2048u /* bytes; a longer one is left to the walk */

struct stats {
	uint64_t dev, ino; /* ino 0: not known */
	int64_t mtime_ns, ctime_ns;
};

/* False if it is not there or no directory. */
bool stats_one(int dir, const char *path, struct stats *ret);

/* One for each directory of the inventory, by its path below `root`; those that are not known
 * are all zero. Heap; NULL without memory. */
struct stats *stats_all(int root, const struct inventory *inv);

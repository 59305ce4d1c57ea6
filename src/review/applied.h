/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `apply` has put into a session's source, each with the identity that it
 * left there: a later look takes exactly that for our own doing, and anything
 * else for somebody's. The file `applied` in the session's directory; one writer,
 * who holds the journal.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define APPLIED_FILE "applied"
#define MAX_APPLIED_BYTES (1u << 30)

struct applied_entry {
	const char *path; /* below the source */
	uint64_t dev, ino;
	int64_t ctime_ns; /* 0: nothing was left there; dev and ino are of what had been */
};

struct applied {
	struct applied_entry *v; /* sorted by path, bytewise */
	size_t n, cap;
	char *bytes; /* of the file */
};

/* Nothing if there is no file; INTERNAL if it is not as it was written. */
NODISCARD int applied_read(int session, struct applied *ret, struct err *e);
void applied_release(struct applied *a);

/* NULL if the path is not in it. */
const struct applied_entry *applied_find(const struct applied *a, const char *path);

/* What stands at a path ("" is the source's top) is what apply left there; by its time too, or only the same file. */
bool applied_is_ours(const struct applied *a, const char *path, uint64_t dev, uint64_t ino,
		     int64_t ctime_ns);
bool applied_is_same(const struct applied *a, const char *path, uint64_t dev, uint64_t ino);

/* Puts the entries (sorted; paths stay the caller's) in place of those of the same paths, durably. */
NODISCARD int applied_add(int session, const struct applied_entry *v, size_t n, struct err *e);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the path that a person named to the file that is meant. Links are
 * followed by hand, and not at all inside a directory that a sandbox may write:
 * what lies there may have been put there by an earlier command.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/path.h"

#define MAX_PLACES 512
#define MAX_LINKS 40 /* as the kernel: path_resolution(7) */

/* A directory, known by identity. */
struct place {
	dev_t dev;
	ino_t ino;
};

struct places {
	struct place v[MAX_PLACES];
	size_t n;
};

struct resolved {
	char path[PATH_TEXT]; /* canonical: no link, no `.`, no `..` */
	struct stat st;
	bool inside; /* lies in one of the places (or is one) */
};

/* Remembers a directory; false if it is full. */
bool places_add(struct places *p, const struct stat *st);
bool places_have(const struct places *p, const struct stat *st);

/*
 * Adds `path` and all directories on the way to it to `places`, as far as they
 * exist. False: not all of it exists; else the canonical path is in ret.
 */
bool resolve_collect(const char *path, struct places *places, char ret[PATH_TEXT]);

/*
 * Resolves `path` (relative to `cwd`). NOT_FOUND and friends come as
 * CONFIG_INVALID naming the path, with the errno; a link inside `writable` is POLICY_DENIED.
 */
NODISCARD int resolve_path(const char *path, const char *cwd, const struct places *writable,
			   struct resolved *ret, struct err *e);

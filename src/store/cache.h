/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small files below $SANDGLASS_HOME/cache that can be made anew at any time.
 * A file counts only if it is the caller's own and nobody else may write it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "policy/request.h"

#define MAX_CACHE_FILES 256 /* with one prefix; the oldest go */

/* The directory, made if it is not there. -1: none that is ours alone. */
int cache_open(const struct caller *who);
/* The file's size if it counts and has at most `most` bytes, opened as *ret_fd; else 0. */
size_t cache_find(int dir, const char *name, size_t most, int *ret_fd);
/* Replaces the file at once; errors are not told: then there is none. */
void cache_put(int dir, const char *name, const void *bytes, size_t n);

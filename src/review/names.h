/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exchanging and removing names in an open directory. Where the file system has no
 * RENAME_EXCHANGE or RENAME_NOREPLACE (NFS, 9p), links do the same for all but
 * directories.
 */
#pragma once

#include <stdbool.h>

#include "review/journal.h"

/* What is at `temp` comes to `name`, where nothing is. 0, or -1 with errno: EEXIST if something is. */
int names_put(int dir, const char *temp, const char *name);

/* `temp` and `name` change places. 0, or -1 with errno. */
int names_swap(int dir, const char *temp, const char *name);

/* Finishes a names_swap() that was killed half way, so that what came out is at `temp`. */
void names_settle(int dir, const char *temp);

/* Like rm -r, also of directories without rights for their owner. False: something is left. */
bool names_remove(int dir, const char *name);

/* Mode bits of what is opened with O_PATH. 0, or -1 with errno. */
int names_chmod(int fd, mode_t mode);

/*
 * Calls `each` for all that is below the directory `name`, with its path behind `path`.
 * False if one call says so, or something cannot be read.
 */
typedef bool names_each(void *self, int dir, const char *name, const char *path);
bool names_walk(int dir, const char *name, const char *path, names_each *each, void *self);

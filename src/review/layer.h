/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One layer of a review: looking at entries beneath a directory, and what the
 * overlay wrote into its upper layer (whiteouts, opaque, redirect, origin).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/path.h"
#include "review/change.h"

/* openat2 beneath `dir`, no links, no other mounts. "" is the directory itself. -1 with errno. */
int layer_open(int dir, const char *path, int flags);
/* lstat of a path beneath `dir`. 0, or -1 with errno. */
int layer_stat(int dir, const char *path, struct stat *ret);
void layer_side(const struct stat *st, enum side_tree tree, const char *where,
		struct change_side *ret);

/* Opens a directory of the session; one that its owner shut is opened up for that moment. */
int layer_open_upper(int dir, const char *path, int flags);

enum layer_opaque {
	OPAQUE_NO,
	OPAQUE_YES,
	OPAQUE_WHITEOUTS /* may hold whiteouts that are files */
};
/* Of the directory `name` in the open directory `dir`, or of `dir` itself with NULL. */
enum layer_opaque layer_opaque(bool root, int dir, const char *name);
/* A whiteout of either kind. */
bool layer_whiteout(bool root, int dir, const char *name, const struct stat *st,
		    enum layer_opaque in);
/*
 * Where the directory's lower part is: `parent_lower` is that of the directory
 * that holds it (NULL none). False: there is none. The result is a clean
 * relative path, whatever the xattr says.
 */
bool layer_redirect(int dir, const char *name, const char *parent_lower, char ret[PATH_TEXT]);
/* The decision of it; `value` is the xattr's, n bytes. */
bool layer_redirect_parse(const char *value, size_t n, const char *parent_lower,
			  char ret[PATH_TEXT]);
/* Whether it was copied up, and the inode it was copied from (0 not known). */
bool layer_origin(bool root, int dir, const char *name, uint64_t *ret_ino);
uint64_t layer_origin_parse(const unsigned char *fh, size_t n);

/* The masks layer hides what the source has at this path. */
bool layer_masked(const struct review *r, const char *path);

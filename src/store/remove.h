/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Getting at, and rid of, what a command has left: by descriptor, no name is
 * followed, and nothing is walked by recursion.
 */
#pragma once

#include <sys/types.h>

/* A mode that was opened up, to be given back. */
struct opened {
	int fd; /* -1: nothing was changed */
	mode_t mode;
};

/* Lets us at `name` ("" for the directory itself): a command can take its owner's, our, rights away. */
struct opened open_up(int dir, const char *name);
void close_up(const struct opened *o);

/* Names that remove_tree() gives on its way: after a kill they may be left beside what it removed. */
#define REMOVE_GONE ".gone-"

/* Like rm -r below an open directory, whatever the depth; what cannot be removed stays. */
void remove_tree(int dir, const char *name);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names below an open directory, without following a link, leaving the tree or
 * crossing a mount, whoever changes it meanwhile. A path is relative and clean;
 * "" is the directory itself. It may be longer than the kernel takes at once.
 * errno is the kernel's: ELOOP for a link on the way.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* -1 with errno. O_CLOEXEC and O_NOFOLLOW are added; with O_CREAT the mode is 0600. */
int beneath_open(int top, const char *path, int flags);

/* The directory that holds `path` (O_PATH), and the last name in it. */
int beneath_parent(int top, const char *path, const char **ret_name);

/* 0, or -1 with errno; of a link itself. */
int beneath_stat(int top, const char *path, struct stat *ret);

/* Relative, and without empty, `.` and `..` components. */
bool beneath_is_clean(const char *path);

/* What is known of a file: by this it is told from another one, and from itself changed. */
struct node {
	mode_t mode; /* 0: nothing is there */
	uint64_t dev, ino, size;
	int64_t mtime_ns, ctime_ns;
};

struct node node_of(const struct stat *st);
/* Nothing where nothing is; false with errno if that cannot be told. */
bool node_at(int top, const char *path, struct node *ret);
/* In an open directory. */
bool node_in(int dir, const char *name, struct node *ret);

/* The same file, or nothing both. */
bool node_same(const struct node *a, const struct node *b);
/* And not written since (a rename changes its ctime only). Directories: the same one. */
bool node_unwritten(const struct node *a, const struct node *b);
/* And nothing at all changed. Directories: the same one. */
bool node_untouched(const struct node *a, const struct node *b);

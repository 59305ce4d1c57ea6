/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a decision read of the file system, noted while it reads, so that the
 * decision can be kept: it stands as long as everything it looked at is as it
 * was. There is no list of inputs to keep in step with the code: what is read
 * through these calls is noted, what is not may not be read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define MAX_LOOKS 1024
#define MAX_LOOK_TEXT (128u * 1024)

enum look_kind {
	LOOK_PLACE,   /* which file it is, its type, mode and owner */
	LOOK_CONTENT, /* and what is in it: size, mtime, ctime */
};

struct look {
	uint64_t dev, ino;
	int64_t size, mtime_ns, ctime_ns; /* 0 for a place */
	uint32_t mode, uid, gid;
	int32_t sys;     /* errno, if it could not be looked at; then all else is 0 */
	uint32_t kind;   /* enum look_kind */
	uint32_t follow; /* a link was followed */
	uint32_t path;   /* in `text` */
	uint32_t pad;
};

struct looks {
	struct look v[MAX_LOOKS];
	char text[MAX_LOOK_TEXT];
	uint32_t n, text_n;
	bool full;  /* not everything could be noted: nothing may be kept */
	bool young; /* something changed less than two seconds ago: a change now might not show */
};

/* From here to look_stop() what is looked at is noted in `in`, once for each path. */
void look_begin(struct looks *in);
void look_stop(void);

/* As lstat(2) and readlink(2). */
int look_lstat(const char *path, struct stat *ret);
ssize_t look_readlink(const char *path, char *ret, size_t len);
/* As open(2) for reading, and fstat(2) of the result; -1 with errno. */
int look_open(const char *path, int flags, struct stat *ret);

/* Whether an input is as it was noted; `path` is its own. */
bool look_stands(const struct look *in, const char *path);

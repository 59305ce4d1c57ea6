/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns over paths, as in an ignore file: `*` and `?` within a name, `[a-z]`
 * and `[!a-z]`, `**` for any number of directories, `\` before what stands for
 * itself. Bytes, but `?` is one character of UTF-8. Names only: nothing is opened.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/path.h"

#define MAX_PATTERN_PARTS 64

struct pattern {
	char text[PATH_TEXT]; /* parts, each ended by NUL */
	const char *part[MAX_PATTERN_PARTS];
	size_t parts;
	char anchor[PATH_TEXT]; /* absolute directory that it is relative to; "" floats: any root */
	bool tree;              /* ended in a slash and two stars, or one: only directories match */
	bool quiet;             /* names a directory that is left out otherwise */
};

/* Holds a character that only a pattern has. */
bool pattern_is(const char *text);

/*
 * `**`/… floats; else what comes before the first name with such a character is
 * resolved by the caller: pattern_split() gives its length (0: relative to the
 * working directory). What ends in `/` and stars stands for the directory before.
 */
size_t pattern_split(const char *text);

/*
 * From the part behind the split. CONFIG_INVALID: empty, too long, `..` in it, or
 * nothing but stars, which would be everything.
 */
NODISCARD int pattern_init(struct pattern *p, const char *anchor, const char *text, struct err *e);

/*
 * Whether a path below the anchor matches: `dir` ("" for the anchor itself) and a
 * name in it. `fold`: letters of either case are the same.
 */
bool pattern_match(const struct pattern *p, const char *dir, const char *name, bool fold);

/* Whether a part of it is this very name. */
bool pattern_names(const struct pattern *p, const char *name);

/* One name against one part. */
bool pattern_match_name(const char *part, const char *name, size_t len, bool fold);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths as text. Nothing here looks at the file system, so a path is never
 * "resolved": `..` is refused, since what it means depends on links.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define PATH_TEXT 4096 /* with the NUL; the kernel's PATH_MAX */
#define PATH_NAME_MAX 255

/*
 * Absolute path without `//`, `.` components and a trailing slash. Not
 * absolute, a `..`, a component or the result too long: CONFIG_INVALID.
 */
NODISCARD int path_clean(const char *path, char ret[PATH_TEXT], struct err *e);

/*
 * Where an absolute path would lead if nothing on it were a link: `.` and `..` are
 * taken away by their text alone. Only for what does not exist. False: not
 * absolute, or too long.
 */
bool path_lexical(const char *path, char ret[PATH_TEXT]);

/* dir + "/" + name (relative, not empty), as it is; CONFIG_INVALID if it needs cap bytes or more. */
NODISCARD int path_join(const char *dir, const char *name, char *ret, size_t cap, struct err *e);

/* child is parent or lies below it, by components. Both must be clean. */
bool path_is_below(const char *parent, const char *child);

/* `.` and `..`, which readdir(3) also tells. */
static inline bool path_is_dots(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* Absolute, and path_clean() would not change it. */
bool path_is_clean(const char *path);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names as git writes and takes them.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

/*
 * In quotes with C's escapes, all that is not printable ASCII in octal: one line
 * that git reads back to the same bytes, and safe on a terminal.
 */
int gitname_quote(struct buf *out, const char *path);

/*
 * `git apply` refuses a patch that has such a path (read-cache.c of git,
 * verify_path()): a component that is `.git` or would be on NTFS; as a link
 * also `.gitmodules`.
 */
bool gitname_refused(const char *path, bool link);

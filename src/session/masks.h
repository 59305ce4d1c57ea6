/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layer between upper and source: what the command is not to read. A call sends
 * the list, worked out over the source as it is now; each entry is one of the
 * letters below, a path below the source, and NUL.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "store/session.h"

#define MASKS_EMPTY 'e'           /* reads as empty */
#define MASKS_HIDDEN 'h'          /* cannot be read */
#define MAX_MASKS_LIST (8u << 20) /* bytes; 1,000 masks of PATH_MAX are half of it */

/* Strict. */
bool masks_check(const char *list, size_t n);

/*
 * Makes masks.new/ from the list. False in *ret_any: there is nothing to mask. Not in
 * force before masks_swap(), which may be called only when nothing is mounted over it
 * but what is mounted again at once.
 */
NODISCARD int masks_write(int dir, const struct session_record *rec, const char *list, size_t n,
			  bool *ret_any, struct err *e);
NODISCARD int masks_swap(int dir, struct err *e);
/* The list as it is in force from here on; what `ret` is of a session. */
NODISCARD int masks_keep(int dir, const char *list, size_t n, struct err *e);
NODISCARD int masks_kept(int dir, struct buf *ret, struct err *e);
/* The first entry that is not in force, past its letter; NULL: all are. */
const char *masks_missing(const struct buf *kept, const char *list, size_t n);
/* The one before, once it is not mounted any more. */
void masks_clear(int dir);

/* Lists what is masked for git in the session's home, so that `git add -A` leaves it alone. */
void masks_tell_git(int dir, const struct session_record *rec, const char *list, size_t n);

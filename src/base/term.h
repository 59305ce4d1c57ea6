/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Foreign text on a terminal line.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"

/*
 * Appends p made safe: control bytes (line ends and tabs too) and bytes that
 * are not UTF-8 as \xNN, other characters that utf8_is_unsafe() names as
 * \u{HEX}. Backslashes stay as they are, so escaping twice changes nothing and
 * the result is for reading, not for parsing. 0, or -1 if it does not fit (then
 * a part may have been appended).
 */
int term_escape(struct buf *out, const char *p, size_t n);

/*
 * The same without allocation, into cap bytes with a NUL at the end; cut at a
 * whole character and marked with "…" if it does not fit. cap must be at least
 * TERM_CAP_MIN. Returns ret.
 */
#define TERM_CAP_MIN 16
char *term_escape_cut(char *ret, size_t cap, const char *p, size_t n);

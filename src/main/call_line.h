/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call that has ended, for people: exit status, the signal that ended it, wall time and the
 * beginning of its command, escaped. A result that cannot be read is an ended call all the same.
 */
#pragma once

#include "base/buf.h"

/* Appends a line; `result` is the call's JSON result, as it was written. */
void call_line(const char *id, const struct buf *result, struct buf *out);

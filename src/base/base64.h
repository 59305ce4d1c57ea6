/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RFC 4648 base64, with padding, no line breaks.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"

/* Appends; 0, or -1 if it does not fit under the cap (then nothing was appended). */
int base64_encode(struct buf *out, const void *p, size_t n);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length (1 to 4) and value of the code point at p; 0 if the n bytes do not begin with one. */
size_t utf8_decode(const char *p, size_t n, uint32_t *ret_cp);

bool utf8_valid(const char *p, size_t n);

/*
 * Largest length <= max, of the len bytes at p, that does not split a code
 * point. Invalid bytes count as one each.
 */
size_t utf8_cut(const char *p, size_t len, size_t max);

/*
 * May change a terminal's state or how the text around it reads: C0, DEL and C1
 * controls, line and paragraph separators, bidi controls, invisible format
 * characters. (U+200C and U+200D are needed by scripts and are not in it.)
 */
bool utf8_is_unsafe(uint32_t cp);

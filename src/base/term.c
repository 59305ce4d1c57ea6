/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes foreign text safe for one line of a terminal.
 */
#include "base/term.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

#define PIECE_MAX 16
#define MARK "\xe2\x80\xa6" /* … */
#define MARK_LEN 3

/* One piece of the output: a character as it is, or its escape. Returns how much of p it took. */
static size_t next_piece(const char *p, size_t n, char piece[PIECE_MAX], size_t *ret_len)
{
	uint32_t cp;
	size_t used = utf8_decode(p, n, &cp);
	int len;

	if (used == 0 || cp < 0x20 || cp == 0x7f) {
		used = 1;
		len = snprintf(piece, PIECE_MAX, "\\x%02x", (unsigned char)p[0]);
	} else if (utf8_is_unsafe(cp)) {
		len = snprintf(piece, PIECE_MAX, "\\u{%x}", (unsigned int)cp);
	} else {
		memcpy(piece, p, used);
		len = (int)used;
	}
	*ret_len = (size_t)len;
	return used;
}

int term_escape(struct buf *out, const char *p, size_t n)
{
	char piece[PIECE_MAX];
	size_t len;

	for (size_t i = 0; i < n;) {
		i += next_piece(p + i, n - i, piece, &len);
		if (buf_add(out, piece, len) < 0)
			return -1;
	}
	return 0;
}

char *term_escape_cut(char *ret, size_t cap, const char *p, size_t n)
{
	char piece[PIECE_MAX];
	size_t at = 0;
	size_t fallback = 0; /* last length behind which the mark still fits */
	size_t len;

	assert(cap >= TERM_CAP_MIN);
	for (size_t i = 0; i < n;) {
		i += next_piece(p + i, n - i, piece, &len);
		if (at + len >= cap) {
			memcpy(ret + fallback, MARK, MARK_LEN);
			at = fallback + MARK_LEN;
			break;
		}
		memcpy(ret + at, piece, len);
		at += len;
		if (at + MARK_LEN < cap)
			fallback = at;
	}
	ret[at] = '\0';
	return ret;
}

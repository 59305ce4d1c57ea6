/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing byte string with a cap. What does not fit is refused as a whole:
 * nothing is ever cut silently. A failure sticks: every later addition fails
 * too and the content stays as it was, so a writer may check once, at the end,
 * with buf_check().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct buf {
	char *p;            /* NUL behind the last byte; NULL as long as nothing was added */
	size_t n, cap, max; /* max counts bytes of content, without that NUL */
	bool failed;
};

#define BUF_INIT(max_bytes) ((struct buf){.max = (max_bytes)})
#define AUTO_BUF __attribute__((cleanup(buf_release))) struct buf

/* Room for n more bytes at once, so that what comes does not grow step by step. */
int buf_reserve(struct buf *b, size_t n);
/* Each returns 0, or -1 if the cap, memory or an earlier failure forbids it. */
int buf_add(struct buf *b, const void *p, size_t n);
int buf_char(struct buf *b, char c);
int buf_str(struct buf *b, const char *s);
int buf_printf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);

/* Content as a C string, "" if empty; valid until the next change. */
const char *buf_cstr(const struct buf *b);
/* Fails with code and "WHAT does not fit into N bytes" if an addition failed. */
NODISCARD int buf_check(const struct buf *b, const char *what, enum err_code code, struct err *e);
/* Hands over the content, heap memory and never NULL on success; b is empty then. NULL if failed. */
char *buf_take(struct buf *b);
/* Empties without giving memory back; forgets a failure. */
void buf_clear(struct buf *b);
/* Frees; b may be used again. */
void buf_release(struct buf *b);

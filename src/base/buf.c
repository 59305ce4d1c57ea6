/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growing byte string with a cap.
 */
#include "base/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define FIRST_CAP 64

/* Room for n more bytes and the NUL. */
static int reserve(struct buf *b, size_t n)
{
	size_t need, cap;
	char *p;

	assert(b->n <= b->max && b->max < SIZE_MAX);
	if (b->failed)
		return -1;
	if (n > b->max - b->n) {
		b->failed = true;
		return -1;
	}
	need = b->n + n + 1;
	if (need <= b->cap)
		return 0;
	cap = b->cap > (b->max + 1) / 2 ? b->max + 1 : b->cap * 2;
	if (cap < FIRST_CAP)
		cap = FIRST_CAP < b->max + 1 ? FIRST_CAP : b->max + 1;
	if (cap < need)
		cap = need;
	p = realloc(b->p, cap);
	if (!p) {
		b->failed = true;
		return -1;
	}
	b->p = p;
	b->cap = cap;
	return 0;
}

int buf_reserve(struct buf *b, size_t n)
{
	return reserve(b, n);
}

int buf_add(struct buf *b, const void *p, size_t n)
{
	if (reserve(b, n) < 0)
		return -1;
	if (n > 0)
		memcpy(b->p + b->n, p, n);
	b->n += n;
	b->p[b->n] = '\0';
	return 0;
}

int buf_char(struct buf *b, char c)
{
	return buf_add(b, &c, 1);
}

int buf_str(struct buf *b, const char *s)
{
	return buf_add(b, s, strlen(s));
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		b->failed = true;
	if (n < 0 || reserve(b, (size_t)n) < 0)
		return -1;
	va_start(ap, fmt);
	n = vsnprintf(b->p + b->n, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->n += (size_t)n;
	return 0;
}

const char *buf_cstr(const struct buf *b)
{
	return b->p ? b->p : "";
}

int buf_check(const struct buf *b, const char *what, enum err_code code, struct err *e)
{
	if (!b->failed)
		return 0;
	return err_set(e, code, "%s does not fit into %zu bytes", what, b->max);
}

char *buf_take(struct buf *b)
{
	if (reserve(b, 0) < 0)
		return NULL;
	b->p[b->n] = '\0';
	b->n = 0;
	b->cap = 0;
	return TAKE(b->p);
}

void buf_clear(struct buf *b)
{
	b->n = 0;
	b->failed = false;
	if (b->p)
		b->p[0] = '\0';
}

void buf_release(struct buf *b)
{
	free(b->p);
	*b = BUF_INIT(b->max);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spellings of values, and the search for them over the seams of what is read.
 */
#include "proxy/echo.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/base64.h"

#define MAX_HELD_BACK ((size_t)1 << 20)
#define MAX_SPELLING 65536u

struct spelling {
	char *p;
	size_t n;
};

struct echo {
	struct spelling v[MAX_ECHO_SPELLINGS];
	size_t n;
	struct buf held; /* the end of what came, which may be a beginning */
};

struct echo *echo_new(void)
{
	struct echo *e = calloc(1, sizeof(*e));

	if (e)
		e->held = BUF_INIT(MAX_HELD_BACK);
	return e;
}

void echo_free(struct echo *e)
{
	if (!e)
		return;
	for (size_t i = 0; i < e->n; i++) {
		explicit_bzero(e->v[i].p, e->v[i].n);
		free(e->v[i].p);
	}
	buf_release(&e->held);
	free(e);
}

static bool add(struct echo *e, const char *p, size_t n)
{
	if (n < MIN_ECHO_BYTES)
		return true;
	for (unsigned int i = 0; i < e->n; i++)
		if (e->v[i].n == n && memcmp(e->v[i].p, p, n) == 0)
			return true; /* of the header's text and of the value itself */
	if (e->n == MAX_ECHO_SPELLINGS)
		return false;
	char *copy = malloc(n);
	if (!copy)
		return false;
	memcpy(copy, p, n);
	e->v[e->n++] = (struct spelling){copy, n};
	return true;
}

/* A buffer that held a value. Returns true. */
static bool wipe(struct buf *b)
{
	if (b->p)
		explicit_bzero(b->p, b->n);
	return true;
}

/* RFC 3986, 2.3. */
static bool is_plain(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c && strchr("-._~", c));
}

static bool add_encoded(struct echo *e, const char *p, size_t n, bool upper)
{
	AUTO_BUF b = BUF_INIT(MAX_SPELLING);
	bool differs = false;

	if (buf_reserve(&b, 3 * n) < 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (is_plain(p[i]))
			(void)buf_char(&b, p[i]);
		else
			(void)buf_printf(&b, upper ? "%%%02X" : "%%%02x", (unsigned char)p[i]);
		differs |= !is_plain(p[i]);
	}
	return (b.failed || !differs || add(e, b.p, b.n)) && wipe(&b);
}

/* Behind `offset` other bytes; only those characters that do not depend on what is beside it. */
static bool add_base64(struct echo *e, const char *p, size_t n, size_t offset)
{
	AUTO_BUF raw = BUF_INIT(MAX_SPELLING);
	AUTO_BUF b = BUF_INIT(2 * MAX_SPELLING);
	size_t from = offset ? offset + 1 : 0;
	size_t whole = (offset + n) * 8 / 6; /* characters without bits of what follows */

	if (buf_reserve(&raw, offset + n) < 0 || buf_reserve(&b, 2 * (offset + n) + 8) < 0)
		return false;
	(void)buf_add(&raw, "\0\0", offset);
	(void)buf_add(&raw, p, n);
	bool good = base64_encode(&b, raw.p, raw.n) == 0 && add(e, b.p + from, whole - from);
	explicit_bzero(raw.p, raw.n);
	/* RFC 4648, 5: the alphabet of URLs. */
	bool other = false;
	for (size_t i = 0; good && i < whole; i++) {
		char c = b.p[i];
		b.p[i] = c == '+' ? '-' : c == '/' ? '_' : c;
		other |= i >= from && b.p[i] != c;
	}
	return good && (!other || add(e, b.p + from, whole - from)) && wipe(&b);
}

/* As JSON may have it: a slash behind a backslash (RFC 8259, 7). */
static bool add_json(struct echo *e, const char *p, size_t n)
{
	AUTO_BUF b = BUF_INIT(MAX_SPELLING);

	if (!memchr(p, '/', n))
		return true;
	if (buf_reserve(&b, 2 * n) < 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (p[i] == '/')
			(void)buf_char(&b, '\\');
		(void)buf_char(&b, p[i]);
	}
	return add(e, b.p, b.n) && wipe(&b);
}

static bool add_all(struct echo *e, const char *p, size_t n)
{
	if (n < MIN_ECHO_BYTES)
		return true;
	return add(e, p, n) && add_json(e, p, n) && add_encoded(e, p, n, true) &&
	       add_encoded(e, p, n, false) && add_base64(e, p, n, 0) && add_base64(e, p, n, 1) &&
	       add_base64(e, p, n, 2);
}

static int digit(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* What base64 stands for, up to the first byte that is none of it. */
static void decode(const char *p, size_t n, struct buf *out)
{
	unsigned int bits = 0;
	unsigned int have = 0;

	for (size_t i = 0; i < n && digit(p[i]) >= 0; i++) {
		bits = (bits << 6 | (unsigned int)digit(p[i])) & 0xffffu;
		have += 6;
		if (have >= 8) {
			have -= 8;
			(void)buf_char(out, (char)(bits >> have & 0xffu));
		}
	}
}

bool echo_add(struct echo *e, const char *value)
{
	AUTO_BUF plain = BUF_INIT(MAX_SPELLING);
	const char *space = strrchr(value, ' ');
	const char *word = space && strlen(space + 1) >= MIN_ECHO_BYTES ? space + 1 : value;

	if (!add_all(e, word, strlen(word)))
		return false;
	if (strncasecmp(value, "Basic ", 6) != 0)
		return true;
	if (buf_reserve(&plain, strlen(word)) < 0)
		return false;
	decode(word, strlen(word), &plain);
	const char *colon = plain.n ? memchr(plain.p, ':', plain.n) : NULL;
	bool good = !colon || add_all(e, colon + 1, plain.n - (size_t)(colon + 1 - plain.p));
	return wipe(&plain) && good;
}

bool echo_add_value(struct echo *e, const char *raw)
{
	return add_all(e, raw, strlen(raw));
}

bool echo_finds(const struct echo *e, const char *p, size_t n)
{
	for (size_t i = 0; i < e->n; i++)
		if (n && memmem(p, n, e->v[i].p, e->v[i].n))
			return true;
	return false;
}

/* Bytes at the end that begin a spelling. */
static size_t beginning(const struct echo *e, const char *p, size_t n)
{
	size_t most = 0;

	for (size_t i = 0; i < e->n; i++) {
		size_t k = e->v[i].n - 1 < n ? e->v[i].n - 1 : n;
		while (k > most && memcmp(p + n - k, e->v[i].p, k) != 0)
			k--;
		if (k > most)
			most = k;
	}
	return most;
}

bool echo_feed(struct echo *e, const char *p, size_t n, bool last, struct buf *out)
{
	size_t keep = 0;

	if (buf_add(&e->held, p, n) < 0 || echo_finds(e, e->held.p, e->held.n))
		return false;
	if (!last && e->held.n)
		keep = beginning(e, e->held.p, e->held.n);
	if (e->held.n == 0)
		return true;
	AUTO_BUF all = e->held;
	e->held = BUF_INIT(MAX_HELD_BACK);
	return buf_add(out, all.p, all.n - keep) == 0 &&
	       buf_add(&e->held, all.p + all.n - keep, keep) == 0;
}

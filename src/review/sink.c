/* SPDX-License-Identifier: Apache-2.0 */
#include "review/sink.h"

#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/term.h"
#include "base/utf8.h"

#define MAX_LINE 65536u /* a longer one is written in parts */
#define RESET "\x1b[0m"

void sink_init(struct sink *s, int fd, unsigned int flags)
{
	*s = (struct sink){.fd = fd, .flags = flags, .line = BUF_INIT(MAX_LINE)};
}

void sink_release(struct sink *s)
{
	buf_release(&s->line);
}

static int write_all(int fd, const char *p, size_t n, struct err *e)
{
	while (n) {
		ssize_t some = RETRY_EINTR(write(fd, p, n));
		if (some < 0)
			return err_sys(e, "write");
		p += some;
		n -= (size_t)some;
	}
	return 0;
}

static bool begins(const struct buf *line, const char *with)
{
	size_t n = strlen(with);

	return line->n >= n && memcmp(line->p, with, n) == 0;
}

static const char *color_of(struct sink *s)
{
	static const struct {
		const char *begin, *color;
		bool anywhere;
	} rows[] = {
		{"diff --git ", "\x1b[1m", true}, {"@@ ", "\x1b[36m", true},
		{"# ", "\x1b[33m", true},         {"--- ", "\x1b[1m", false},
		{"+++ ", "\x1b[1m", false},       {"+", "\x1b[32m", true},
		{"-", "\x1b[31m", true},
	};

	if (begins(&s->line, "diff --git "))
		s->in_hunk = false;
	else if (begins(&s->line, "@@ ") || begins(&s->line, "GIT binary"))
		s->in_hunk = true;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (begins(&s->line, rows[i].begin) && (rows[i].anywhere || !s->in_hunk))
			return rows[i].color;
	}
	return NULL;
}

/* Tabs stay; everything else that moves the cursor or hides does not. */
static int escape(struct buf *out, const char *p, size_t n)
{
	int rc = 0;

	while (n && rc == 0) {
		const char *tab = memchr(p, '\t', n);
		size_t some = tab ? (size_t)(tab - p) : n;
		rc = term_escape(out, p, some);
		if (tab && rc == 0)
			rc = buf_char(out, '\t');
		some += tab != NULL;
		p += some;
		n -= some;
	}
	return rc;
}

/* n bytes of the line held, with its end if there is one. */
static int flush(struct sink *s, size_t n, bool end, struct err *e)
{
	AUTO_BUF out = BUF_INIT((size_t)MAX_LINE * 10 + 64);
	const char *color = s->flags & SINK_COLOR && !s->continued ? color_of(s) : NULL;

	if (color)
		(void)buf_str(&out, color);
	(void)escape(&out, s->line.p, n);
	if (color)
		(void)buf_str(&out, RESET);
	if (end)
		(void)buf_char(&out, '\n');
	if (buf_check(&out, "a line", ERR_INTERNAL, e) < 0)
		return -1;
	size_t rest = s->line.n - n;
	if (rest)
		memmove(s->line.p, s->line.p + n, rest);
	s->line.n = rest;
	s->continued = !end;
	return write_all(s->fd, buf_cstr(&out), out.n, e);
}

static int hold(struct sink *s, const char *p, size_t n, struct err *e)
{
	while (n) {
		size_t room = MAX_LINE - s->line.n;
		size_t some = n < room ? n : room;
		if (buf_add(&s->line, p, some) < 0)
			return buf_check(&s->line, "a line", ERR_INTERNAL, e);
		p += some;
		n -= some;
		if (s->line.n == MAX_LINE &&
		    flush(s, utf8_cut(s->line.p, s->line.n, MAX_LINE - 4), false, e) < 0)
			return -1;
	}
	return 0;
}

int sink_write(struct sink *s, const void *bytes, size_t n, struct err *e)
{
	const char *p = bytes;

	if (!(s->flags & SINK_SAFE))
		return write_all(s->fd, p, n, e);
	while (n) {
		const char *end = memchr(p, '\n', n);
		size_t some = end ? (size_t)(end - p) : n;
		if (hold(s, p, some, e) < 0)
			return -1;
		if (end && flush(s, s->line.n, true, e) < 0)
			return -1;
		some += end != NULL;
		p += some;
		n -= some;
	}
	return 0;
}

int sink_end(struct sink *s, struct err *e)
{
	return s->line.n ? flush(s, s->line.n, true, e) : 0;
}

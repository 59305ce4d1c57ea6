/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trees of a review, and getting at one entry of them again. Reads only.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "review/change.h"
#include "review/layer.h"

#define COMPARE_BYTES 65536u

static int open_layer(int dir, const char *name)
{
	return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int review_source(const struct session_record *rec, int *ret, struct err *e)
{
	struct stat st;
	AUTO_FD int fd = open(rec->source, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "open %s", rec->source);
	if (st.st_dev != rec->dev || st.st_ino != rec->ino)
		return err_set(e, ERR_CONFLICT,
			       "%s is another directory than when the session began", rec->source);
	*ret = TAKE_FD(fd);
	return 0;
}

int review_open(int dir, const struct session_record *rec, struct review *ret, struct err *e)
{
	if (rec->writes == SESSION_DIRECT || !rec->source[0]) {
		(void)err_set(e, ERR_UNSUPPORTED, "session %s holds no changes for review",
			      rec->id);
		return err_hint(e,
				"what it wrote %s; `session new --writes overlay` keeps it apart",
				rec->source[0] ? "is in the source already" : "had no source");
	}
	*ret = (struct review){
		.copy = rec->writes == SESSION_COPY,
		.root = rec->root,
		.rec = rec,
	};
	AUTO_FD int upper = open_layer(dir, ret->copy ? "copy" : "upper");
	if (upper < 0)
		return err_sys(e, "the changes of session %s", rec->id);
	AUTO_FD int masks = open_layer(dir, "masks");
	if (masks < 0 && errno != ENOENT)
		return err_sys(e, "the masks of session %s", rec->id);
	AUTO_FD int source = -1;
	if (review_source(rec, &source, e) < 0)
		return -1;
	ret->upper = TAKE_FD(upper);
	ret->masks = TAKE_FD(masks);
	ret->source = TAKE_FD(source);
	journal_pending(dir, JOURNAL_DIR, ret->pending);
	return 0;
}

void review_close(struct review *r)
{
	if (r->masks >= 0)
		(void)close(r->masks);
	(void)close(r->upper);
	(void)close(r->source);
	r->upper = r->masks = r->source = -1;
}

static int open_side(const struct review *r, const struct change_side *s, int flags)
{
	return s->tree == SIDE_UPPER ? layer_open_upper(r->upper, s->where, flags)
				     : layer_open(r->source, s->where, flags);
}

int change_open(const struct review *r, const struct change_side *s, struct err *e)
{
	struct stat st;

	/* Opening anything else could wait, or do something. */
	if (!S_ISREG(s->mode) && !S_ISDIR(s->mode))
		return err_set(e, ERR_CONFLICT, "%s is no file", s->where);
	AUTO_FD int fd = open_side(r, s, O_RDONLY | (S_ISDIR(s->mode) ? O_DIRECTORY : 0));
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "open %s", s->where);
	if ((st.st_mode & S_IFMT) != (s->mode & S_IFMT) || st.st_dev != s->dev ||
	    st.st_ino != s->ino)
		return err_set(e, ERR_CONFLICT, "%s is another file by now", s->where);
	return TAKE_FD(fd);
}

ssize_t change_readlink(const struct review *r, const struct change_side *s,
			char ret[MAX_LINK_TEXT], struct err *e)
{
	AUTO_FD int fd = open_side(r, s, O_PATH);
	ssize_t n = fd < 0 ? -1 : readlinkat(fd, "", ret, MAX_LINK_TEXT);

	if (n < 0)
		return err_sys(e, "readlink %s", s->where);
	if (n >= MAX_LINK_TEXT)
		return err_set(e, ERR_ARG_LIMIT, "the link %s is too long", s->where);
	ret[n] = '\0';
	return n;
}

/* Up to n bytes, fewer only at the end. */
static ssize_t read_full(int fd, char *p, size_t n)
{
	size_t at = 0;

	while (at < n) {
		ssize_t some = RETRY_EINTR(read(fd, p + at, n - at));
		if (some < 0)
			return -1;
		if (some == 0)
			break;
		at += (size_t)some;
	}
	return (ssize_t)at;
}

/* Reads no more than the size that both had: a file that grows ends too. */
static bool bytes_equal(int fa, int fb, uint64_t size, char bytes[2 * COMPARE_BYTES])
{
	for (uint64_t left = size; left;) {
		size_t n = left < COMPARE_BYTES ? (size_t)left : COMPARE_BYTES;
		if (read_full(fa, bytes, n) != (ssize_t)n ||
		    read_full(fb, bytes + COMPARE_BYTES, n) != (ssize_t)n ||
		    memcmp(bytes, bytes + COMPARE_BYTES, n) != 0)
			return false;
		left -= n;
	}
	return true;
}

static bool content_equal(const struct review *r, const struct change_side *a,
			  const struct change_side *b)
{
	struct err ignored = {0};
	AUTO_FD int fa = change_open(r, a, &ignored);
	AUTO_FD int fb = change_open(r, b, &ignored);

	if (fa < 0 || fb < 0)
		return false;
	char *bytes = malloc(2 * (size_t)COMPARE_BYTES);
	bool equal = bytes && bytes_equal(fa, fb, a->size, bytes);
	free(bytes);
	return equal;
}

static bool links_equal(const struct review *r, const struct change_side *a,
			const struct change_side *b)
{
	struct err ignored = {0};
	char ta[MAX_LINK_TEXT];
	char tb[MAX_LINK_TEXT];
	ssize_t n = change_readlink(r, a, ta, &ignored);

	return n >= 0 && change_readlink(r, b, tb, &ignored) == n && memcmp(ta, tb, (size_t)n) == 0;
}

bool change_sides_equal(const struct review *r, const struct change_side *a,
			const struct change_side *b)
{
	if ((a->mode & S_IFMT) != (b->mode & S_IFMT))
		return false;
	if (S_ISLNK(a->mode))
		return links_equal(r, a, b);
	/* Whether a directory gives its group on is the source's own. */
	mode_t bits = S_ISDIR(a->mode) ? ~(mode_t)S_ISGID : ~(mode_t)0;
	if ((a->mode & bits) != (b->mode & bits))
		return false;
	if (a->mode == 0 || (a->dev == b->dev && a->ino == b->ino))
		return true;
	if (S_ISREG(a->mode))
		return a->size == b->size && content_equal(r, a, b);
	return S_ISDIR(a->mode) || a->rdev == b->rdev;
}

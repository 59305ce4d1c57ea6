/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/look.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"

#define YOUNG_NS INT64_C(2000000000) /* file systems' clocks are coarser than their events */

static struct looks *noting;

void look_begin(struct looks *in)
{
	in->n = in->text_n = 0;
	in->full = in->young = false;
	noting = in;
}

void look_stop(void)
{
	noting = NULL;
}

static int64_t ns(const struct timespec *t)
{
	return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

static struct look of_stat(const struct stat *st, enum look_kind kind)
{
	struct look i = {.dev = st->st_dev,
			 .ino = st->st_ino,
			 .mode = st->st_mode,
			 .uid = st->st_uid,
			 .gid = st->st_gid,
			 .kind = kind};

	if (kind == LOOK_CONTENT) {
		i.size = st->st_size;
		i.mtime_ns = ns(&st->st_mtim);
		i.ctime_ns = ns(&st->st_ctim);
	}
	return i;
}

static struct look *find(struct looks *in, const char *path, uint32_t follow)
{
	for (uint32_t i = 0; i < in->n; i++)
		if (in->v[i].follow == follow && strcmp(in->text + in->v[i].path, path) == 0)
			return &in->v[i];
	return NULL;
}

/* Seen twice, it must be the same both times; content says more than place. */
static void note(const char *path, bool follow, struct look seen)
{
	struct looks *in = noting;
	struct timespec now;
	size_t len = strlen(path) + 1;

	if (!in)
		return;
	if (seen.kind == LOOK_CONTENT && !seen.sys) {
		(void)clock_gettime(CLOCK_REALTIME, &now);
		in->young |=
			ns(&now) - seen.mtime_ns < YOUNG_NS || ns(&now) - seen.ctime_ns < YOUNG_NS;
	}
	struct look *old = find(in, path, follow);
	if (old) {
		in->full |= old->dev != seen.dev || old->ino != seen.ino || old->sys != seen.sys ||
			    old->mode != seen.mode || old->uid != seen.uid;
		if (seen.kind == LOOK_PLACE)
			return;
		seen.path = old->path;
		seen.follow = follow;
		*old = seen;
		return;
	}
	if (in->n == MAX_LOOKS || len > MAX_LOOK_TEXT - in->text_n) {
		in->full = true;
		return;
	}
	memcpy(in->text + in->text_n, path, len);
	seen.path = in->text_n;
	seen.follow = follow;
	in->text_n += (uint32_t)len;
	in->v[in->n++] = seen;
}

int look_lstat(const char *path, struct stat *ret)
{
	int rc = lstat(path, ret);
	int saved = errno;

	note(path, false, rc < 0 ? (struct look){.sys = saved} : of_stat(ret, LOOK_PLACE));
	errno = saved;
	return rc;
}

/* A link's text never changes: its inode stands for it, and ctime for the inode. */
ssize_t look_readlink(const char *path, char *ret, size_t len)
{
	struct stat st;

	if (noting && lstat(path, &st) == 0)
		note(path, false, of_stat(&st, LOOK_CONTENT));
	return readlink(path, ret, len);
}

int look_open(const char *path, int flags, struct stat *ret)
{
	bool follow = !(flags & O_NOFOLLOW);

	int fd = open(path, flags);
	int saved = errno;
	if (fd >= 0 && fstat(fd, ret) < 0) {
		saved = errno;
		(void)close(fd);
		fd = -1;
	}
	if (fd >= 0) {
		note(path, follow, of_stat(ret, LOOK_CONTENT));
	} else if (noting) {
		struct stat st;
		int rc = follow ? stat(path, &st) : lstat(path, &st);
		note(path, follow,
		     rc < 0 ? (struct look){.sys = errno} : of_stat(&st, LOOK_CONTENT));
	}
	errno = saved;
	return fd;
}

bool look_stands(const struct look *in, const char *path)
{
	struct stat st;
	int rc = in->follow ? stat(path, &st) : lstat(path, &st);

	if (rc < 0 || in->sys)
		return rc < 0 && errno == in->sys;
	struct look now = of_stat(&st, (enum look_kind)in->kind);
	return now.dev == in->dev && now.ino == in->ino && now.mode == in->mode &&
	       now.uid == in->uid && now.gid == in->gid && now.size == in->size &&
	       now.mtime_ns == in->mtime_ns && now.ctime_ns == in->ctime_ns;
}

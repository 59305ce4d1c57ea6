/* SPDX-License-Identifier: Apache-2.0 */
#include "session/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/fs.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/nameset.h"
#include "core/sys.h"
#include "session/masks.h"

#define BENEATH (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)
#define CHUNK ((size_t)1 << 30)
#define TELL_MS 1000u

struct copy {
	const struct session_record *rec;
	int from, to;
	struct nameset masked; /* path below the source → its letter */
	struct buf left;       /* the list of them, and of what could not be copied */
	uint64_t files, bytes, tell_ms;
	bool told;
	struct err *e;
};

static int fail(struct copy *c, const char *path)
{
	return err_sys(c->e, "copy %s", path);
}

/* What is not there in the copy is not the session's doing: for the review it is masked. */
static int leave_out(struct copy *c, const char *path)
{
	(void)buf_char(&c->left, MASKS_HIDDEN);
	return buf_add(&c->left, path, strlen(path) + 1) < 0
		       ? err_set(c->e, ERR_INTERNAL, "too much of the project cannot be copied")
		       : 0;
}

static void take_owner(const struct copy *c, const char *path, const struct stat *st)
{
	if (c->rec->root)
		(void)!fchownat(c->to, path,
				st->st_uid == c->rec->owner_uid ? c->rec->uid : st->st_uid,
				st->st_gid == c->rec->owner_gid ? c->rec->gid : st->st_gid,
				AT_SYMLINK_NOFOLLOW);
}

static void take_times(const struct copy *c, const char *path, const struct stat *st)
{
	(void)utimensat(c->to, path, (const struct timespec[]){st->st_atim, st->st_mtim},
			AT_SYMLINK_NOFOLLOW);
}

static void tell(struct copy *c)
{
	uint64_t now = clock_mono_ms();

	if (now < c->tell_ms || !isatty(STDERR_FILENO))
		return;
	c->tell_ms = now + TELL_MS;
	c->told = true;
	(void)fprintf(stderr, "\rsandglass: copying the project: %llu files, %llu MiB",
		      (unsigned long long)c->files, (unsigned long long)(c->bytes >> 20));
}

static int copy_bytes(struct copy *c, int from, int to, const char *path)
{
	if (ioctl(to, FICLONE, from) == 0)
		return 0;
	for (;;) {
		ssize_t n = copy_file_range(from, NULL, to, NULL, CHUNK, 0);
		if (n < 0 && (errno == EXDEV || errno == EINVAL || errno == ENOSYS))
			break;
		if (n < 0)
			return fail(c, path);
		if (n == 0)
			return 0;
		tell(c);
	}
	AUTO_FREE char *block = malloc(1 << 18);
	for (;;) {
		ssize_t n = block ? read(from, block, 1 << 18) : -1;
		if (n == 0)
			return 0;
		if (n < 0 || write(to, block, (size_t)n) != n)
			return fail(c, path);
	}
}

static int copy_file(struct copy *c, const char *path)
{
	struct stat st;

	AUTO_FD int from = sys_openat2(c->from, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC, BENEATH);
	if (from < 0 && (errno == ENOENT || errno == EACCES || errno == ELOOP))
		return leave_out(c, path); /* gone by now, or not the caller's to read */
	if (from < 0 || fstat(from, &st) < 0)
		return fail(c, path);
	if (!S_ISREG(st.st_mode))
		return leave_out(c, path);
	AUTO_FD int to =
		openat(c->to, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return fail(c, path);
	if (copy_bytes(c, from, to, path) < 0)
		return -1;
	take_owner(c, path, &st);
	if (fchmod(to, st.st_mode & 0777) < 0)
		return fail(c, path);
	take_times(c, path, &st);
	c->files++;
	c->bytes += (uint64_t)st.st_size;
	tell(c);
	return 0;
}

static int copy_link(struct copy *c, const char *path, const struct stat *st)
{
	char text[PATH_TEXT];

	ssize_t n = readlinkat(c->from, path, text, sizeof(text) - 1);
	if (n < 0)
		return errno == ENOENT || errno == EINVAL ? 0 : fail(c, path);
	text[n] = '\0';
	if (symlinkat(text, c->to, path) < 0)
		return fail(c, path);
	take_owner(c, path, st);
	take_times(c, path, st);
	return 0;
}

/* Something empty of the same kind, as a mask would be. */
static int put_masked(struct copy *c, const char *path, bool is_dir, uint32_t letter)
{
	if (is_dir ? mkdirat(c->to, path, 0) < 0 : mknodat(c->to, path, S_IFREG | 0600, 0) < 0)
		return fail(c, path);
	if (!is_dir && fchmodat(c->to, path, letter == MASKS_EMPTY ? 0644 : 0, 0) < 0)
		return fail(c, path);
	if (c->rec->root &&
	    fchownat(c->to, path, c->rec->uid, c->rec->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(c, path);
	return 0;
}

static int copy_one(struct copy *c, FTS *f, FTSENT *at, const char *path)
{
	uint32_t letter = 0;

	if (at->fts_info != FTS_DP && nameset_get(&c->masked, path, &letter)) {
		if (at->fts_info == FTS_D)
			(void)fts_set(f, at, FTS_SKIP);
		return put_masked(c, path, at->fts_info == FTS_D, letter);
	}
	switch (at->fts_info) {
	case FTS_D:
		return mkdirat(c->to, path, 0700) < 0 ? fail(c, path) : 0;
	case FTS_DP: /* all that lies in it is there */
		if (nameset_get(&c->masked, path, &letter))
			return 0;
		take_owner(c, path, at->fts_statp);
		if (fchmodat(c->to, path, at->fts_statp->st_mode & 0777, 0) < 0)
			return fail(c, path);
		take_times(c, path, at->fts_statp);
		return 0;
	case FTS_F:
		return copy_file(c, path);
	case FTS_SL:
	case FTS_SLNONE:
		return copy_link(c, path, at->fts_statp);
	default: /* a socket, device or fifo, or nothing that can be looked at */
		return leave_out(c, path);
	}
}

static int load_masked(struct copy *c, int dir)
{
	struct stat st;

	AUTO_FD int fd = openat(dir, "masked", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size > (off_t)MAX_MASKS_LIST)
		return 0;
	size_t n = (size_t)st.st_size;
	AUTO_FREE char *list = malloc(n + 1);
	if (!list || read(fd, list, n) != (ssize_t)n)
		return err_set(c->e, ERR_INTERNAL, "the list of masks");
	list[n] = '\0';
	if (!masks_check(list, n) || buf_add(&c->left, list, n) < 0)
		return err_set(c->e, ERR_INTERNAL, "the list of masks");
	for (size_t i = 0; i < n; i += strlen(list + i) + 1)
		if (!nameset_put(&c->masked, list + i + 1, (unsigned char)list[i]))
			return err_set(c->e, ERR_INTERNAL, "out of memory");
	return 0;
}

static int walk(struct copy *c)
{
	char *const argv[] = {(char *)(uintptr_t)c->rec->source, NULL};
	size_t top = strlen(c->rec->source) + 1;
	int rc = 0;

	FTS *f = fts_open(argv, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	if (!f)
		return fail(c, c->rec->source);
	errno = 0;
	for (FTSENT *at = fts_read(f); at && rc == 0; at = fts_read(f)) {
		if (at->fts_level > 0)
			rc = copy_one(c, f, at, at->fts_path + top);
		errno = 0;
	}
	/* Its end is no error; a path that is too long for it is one. */
	if (rc == 0 && errno)
		rc = fail(c, c->rec->source);
	(void)fts_close(f);
	return rc;
}

/* The review reads it, as it does that of an overlay. */
static int put_masks(struct copy *c, int dir)
{
	bool any = false;

	if (masks_write(dir, c->rec, c->left.p ? c->left.p : "", c->left.n, &any, c->e) < 0)
		return -1;
	return masks_swap(dir, c->e);
}

int copy_source(int dir, const struct session_record *rec, struct err *e)
{
	struct copy c = {.rec = rec,
			 .e = e,
			 .left = BUF_INIT(MAX_MASKS_LIST),
			 .tell_ms = clock_mono_ms() + TELL_MS};
	struct stat st;

	AUTO_FD int from = open(rec->source, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (from < 0 || fstat(from, &st) < 0)
		return err_sys(e, "%s", rec->source);
	if (st.st_dev != rec->dev || st.st_ino != rec->ino)
		return err_set(e, ERR_CONFLICT, "%s is another directory now", rec->source);
	if (mkdirat(dir, "copy", 0700) < 0)
		return err_sys(e, "make copy of the session");
	AUTO_FD int to = openat(dir, "copy", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	c.from = from;
	c.to = to;
	int rc = to < 0 ? err_sys(e, "copy of the session") : load_masked(&c, dir);
	if (rc == 0)
		rc = walk(&c);
	if (c.told)
		(void)fprintf(stderr, "\n");
	if (rc == 0 && ((rec->root && fchown(to, rec->uid, rec->gid) < 0) ||
			fchmod(to, st.st_mode & 0777) < 0))
		rc = err_sys(e, "copy of the session");
	if (rc == 0)
		rc = put_masks(&c, dir);
	nameset_release(&c.masked);
	buf_release(&c.left);
	return rc;
}

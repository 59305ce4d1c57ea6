/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source may change while it is copied, and by somebody who means harm: each
 * directory is entered from the one above by its name alone, without following a link
 * and without leaving the file system, and what is read is what was opened.
 */
#include "session/copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/fs.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/nameset.h"
#include "base/path.h"
#include "core/sys.h"
#include "session/masks.h"
#include "session/usage.h"

#define BENEATH (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV)
#define CHUNK ((size_t)32 << 20)
#define BLOCK 512u /* of st_blocks: stat(2) */
#define BLOCK_BYTES ((size_t)1 << 18)
#define LOOK_BYTES (UINT64_C(64) << 20)
#define LOOK_FILES 1024u
#define TELL_MS 1000u
#define MAX_COPY_DEPTH 65536u

/* A directory on the way to what is copied. */
struct level {
	DIR *from;
	int to;
	struct stat st;
	size_t path_n; /* of the path that leads to it, with its slash */
};

struct copy {
	const struct session_record *rec;
	int dir;
	struct level *levels;
	size_t n, cap;
	struct buf path;       /* of the entry at hand, below the source */
	struct nameset masked; /* path below the source → its letter */
	struct buf left;       /* the list of them, and of what could not be copied */
	size_t masked_n;       /* bytes of the first part */
	uint64_t files, bytes; /* so far, as a session's limits count them */
	uint64_t looked_files, looked_bytes, tell_ms;
	bool told;
	struct err *e;
};

static const char *path_of(struct copy *c)
{
	return buf_cstr(&c->path);
}

static int fail(struct copy *c)
{
	return err_sys(c->e, "copy %s", path_of(c));
}

/* What is not there in the copy is not the session's doing: for the review it is masked. */
static int leave_out(struct copy *c)
{
	(void)buf_char(&c->left, MASKS_HIDDEN);
	return buf_add(&c->left, path_of(c), c->path.n + 1) < 0
		       ? err_set(c->e, ERR_INTERNAL, "too much of the project cannot be copied")
		       : 0;
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

/* The host's floor is looked at now and then; the session's limits each time. */
static int charge(struct copy *c, uint64_t files, uint64_t bytes)
{
	c->files += files;
	c->bytes += bytes;
	tell(c);
	if (c->bytes > c->rec->disk_bytes || c->files > c->rec->inodes) {
		bool is_disk = c->bytes > c->rec->disk_bytes;
		(void)err_set(c->e, is_disk ? ERR_DISK_LIMIT : ERR_INODE_LIMIT,
			      "the project has more %s than the %llu that the session may hold",
			      is_disk ? "bytes" : "files",
			      (unsigned long long)(is_disk ? c->rec->disk_bytes : c->rec->inodes));
		return err_hint(c->e, is_disk ? "--disk gives more; an overlay needs no copy"
					      : "--inodes gives more; an overlay needs no copy");
	}
	if (c->bytes - c->looked_bytes < LOOK_BYTES && c->files - c->looked_files < LOOK_FILES)
		return 0;
	c->looked_bytes = c->bytes;
	c->looked_files = c->files;
	if (usage_free(c->dir) >= USAGE_FLOOR_BYTES)
		return 0;
	(void)err_set(c->e, ERR_DISK_LIMIT, "less than %llu MiB are left on the host",
		      (unsigned long long)(USAGE_FLOOR_BYTES >> 20));
	return err_hint(c->e, "sandglass gc; an overlay needs no copy");
}

/* A caller who is not root keeps groups where he may. */
static void take_owner(const struct copy *c, int to, const char *name, const struct stat *st)
{
	const struct session_record *r = c->rec;

	if (r->root)
		(void)!fchownat(to, name, st->st_uid == r->owner_uid ? r->uid : st->st_uid,
				st->st_gid == r->owner_gid ? r->gid : st->st_gid,
				AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH);
	else if (st->st_gid != r->gid)
		(void)!fchownat(to, name, (uid_t)-1, st->st_gid,
				AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH);
}

/* By hand, where the file systems do not do it themselves. *block is made the first time. */
static ssize_t copy_block(struct copy *c, int from, int to, off_t at, size_t want, char **block)
{
	if (!*block && !(*block = malloc(BLOCK_BYTES)))
		return err_set(c->e, ERR_INTERNAL, "out of memory");
	ssize_t n = pread(from, *block, want < BLOCK_BYTES ? want : BLOCK_BYTES, at);
	if (n < 0 || (n > 0 && pwrite(to, *block, (size_t)n, at) != n))
		return fail(c);
	return n;
}

static bool is_not_offered(int error)
{
	return error == EXDEV || error == EINVAL || error == ENOSYS || error == EOPNOTSUPP;
}

static int copy_range(struct copy *c, int from, int to, off_t at, off_t end)
{
	AUTO_FREE char *block = NULL;

	while (at < end) {
		size_t want = (size_t)(end - at) < CHUNK ? (size_t)(end - at) : CHUNK;
		off_t in = at, out = at;
		ssize_t n = block ? -1 : copy_file_range(from, &in, to, &out, want, 0);
		if (n < 0 && !block && !is_not_offered(errno))
			return fail(c);
		if (n < 0)
			n = copy_block(c, from, to, at, want, &block);
		if (n < 0)
			return -1;
		at += n;
		if (n == 0)
			return 0; /* it is shorter by now */
		if (charge(c, 0, (uint64_t)n) < 0)
			return -1;
	}
	return 0;
}

/* What is a hole stays one; nothing of what is added meanwhile. */
static int copy_bytes(struct copy *c, int from, int to, const struct stat *st)
{
	if (ioctl(to, FICLONE, from) == 0)
		return charge(c, 0, (uint64_t)st->st_blocks * BLOCK);
	for (off_t at = 0; at < st->st_size;) {
		off_t data = lseek(from, at, SEEK_DATA);
		if (data < 0 && errno == ENXIO)
			break;
		data = data < 0 ? at : data;
		off_t hole = lseek(from, data, SEEK_HOLE);
		if (hole <= data || hole > st->st_size)
			hole = st->st_size;
		if (copy_range(c, from, to, data, hole) < 0)
			return -1;
		at = hole;
	}
	return ftruncate(to, st->st_size) < 0 ? fail(c) : 0;
}

static int copy_file(struct copy *c, const struct level *l, const char *name)
{
	struct stat st;

	AUTO_FD int from =
		sys_openat2(dirfd(l->from), name, O_RDONLY | O_NONBLOCK | O_CLOEXEC, BENEATH);
	if (from < 0 && (errno == ENOENT || errno == EACCES || errno == ELOOP || errno == EXDEV))
		return leave_out(c); /* gone by now, or not the caller's to read */
	if (from < 0 || fstat(from, &st) < 0)
		return fail(c);
	if (!S_ISREG(st.st_mode))
		return leave_out(c);
	AUTO_FD int to =
		openat(l->to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return fail(c);
	if (charge(c, 1, 0) < 0 || copy_bytes(c, from, to, &st) < 0)
		return -1;
	take_owner(c, to, "", &st);
	if (fchmod(to, st.st_mode & 0777) < 0)
		return fail(c);
	(void)futimens(to, (const struct timespec[]){st.st_atim, st.st_mtim});
	return 0;
}

static int copy_link(struct copy *c, const struct level *l, const char *name, const struct stat *st)
{
	char text[PATH_TEXT];

	ssize_t n = readlinkat(dirfd(l->from), name, text, sizeof(text) - 1);
	if (n < 0)
		return errno == ENOENT || errno == EINVAL ? 0 : fail(c);
	text[n] = '\0';
	if (symlinkat(text, l->to, name) < 0)
		return fail(c);
	take_owner(c, l->to, name, st);
	(void)utimensat(l->to, name, (const struct timespec[]){st->st_atim, st->st_mtim},
			AT_SYMLINK_NOFOLLOW);
	return charge(c, 1, 0);
}

/* Something empty of the same kind, as a mask would be. */
static int put_masked(struct copy *c, int to, const char *name, bool is_dir, uint32_t letter)
{
	if (is_dir ? mkdirat(to, name, 0) < 0 : mknodat(to, name, S_IFREG | 0600, 0) < 0)
		return fail(c);
	if (!is_dir && fchmodat(to, name, letter == MASKS_EMPTY ? 0644 : 0, 0) < 0)
		return fail(c);
	if (c->rec->root && fchownat(to, name, c->rec->uid, c->rec->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(c);
	return charge(c, 1, 0);
}

static int push(struct copy *c, int from, int to)
{
	struct stat st;

	if (c->n == c->cap) {
		size_t cap = c->cap ? 2 * c->cap : 64;
		struct level *more =
			cap > MAX_COPY_DEPTH ? NULL : realloc(c->levels, cap * sizeof(*more));
		if (!more)
			return err_set(c->e, ERR_INTERNAL, "the project is too deep to be copied");
		c->levels = more;
		c->cap = cap;
	}
	if (fstat(from, &st) < 0)
		return fail(c);
	AUTO_FD int mine = fcntl(from, F_DUPFD_CLOEXEC, 0);
	AUTO_FD int there = fcntl(to, F_DUPFD_CLOEXEC, 0);
	DIR *d = mine < 0 || there < 0 ? NULL : fdopendir(mine);
	if (!d)
		return fail(c);
	(void)TAKE_FD(mine);
	c->levels[c->n++] =
		(struct level){.from = d, .to = TAKE_FD(there), .st = st, .path_n = c->path.n};
	return 0;
}

static int enter(struct copy *c, const struct level *l, const char *name)
{
	AUTO_FD int from =
		sys_openat2(dirfd(l->from), name, O_RDONLY | O_DIRECTORY | O_CLOEXEC, BENEATH);

	if (from < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == ELOOP ||
			 errno == EXDEV))
		return leave_out(c); /* another file system, too: an overlay shows none either */
	if (from < 0)
		return fail(c);
	if (mkdirat(l->to, name, 0700) < 0)
		return fail(c);
	AUTO_FD int to = openat(l->to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (to < 0)
		return fail(c);
	(void)buf_char(&c->path, '/');
	return charge(c, 1, 0) < 0 ? -1 : push(c, from, to);
}

/* All that lies in it is there. */
static int leave(struct copy *c)
{
	struct level *l = &c->levels[--c->n];
	int rc = 0;

	take_owner(c, l->to, "", &l->st);
	if (c->n) {
		if (fchmod(l->to, l->st.st_mode & 03777) < 0)
			rc = fail(c);
		(void)futimens(l->to, (const struct timespec[]){l->st.st_atim, l->st.st_mtim});
	}
	(void)closedir(l->from);
	(void)close(l->to);
	return rc;
}

static int copy_one(struct copy *c, const struct level *l, const char *name)
{
	uint32_t letter = 0;
	struct stat st;

	if (fstatat(dirfd(l->from), name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : leave_out(c);
	if (nameset_get(&c->masked, path_of(c), &letter))
		return put_masked(c, l->to, name, S_ISDIR(st.st_mode), letter);
	switch (st.st_mode & S_IFMT) {
	case S_IFDIR:
		return enter(c, l, name);
	case S_IFREG:
		return copy_file(c, l, name);
	case S_IFLNK:
		return copy_link(c, l, name, &st);
	default: /* a socket, device or fifo */
		return leave_out(c);
	}
}

static int load_masked(struct copy *c, int dir)
{
	struct stat st;

	AUTO_FD int fd = openat(dir, SESSION_MASKED, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size > (off_t)MAX_MASKS_LIST)
		return 0;
	size_t n = (size_t)st.st_size;
	AUTO_FREE char *list = malloc(n + 1);
	if (!list || read(fd, list, n) != (ssize_t)n)
		return err_set(c->e, ERR_INTERNAL, "the list of masks");
	list[n] = '\0';
	c->masked_n = n;
	if (!masks_check(list, n) || buf_add(&c->left, list, n) < 0)
		return err_set(c->e, ERR_INTERNAL, "the list of masks");
	for (size_t i = 0; i < n; i += strlen(list + i) + 1)
		if (!nameset_put(&c->masked, list + i + 1, (unsigned char)list[i]))
			return err_set(c->e, ERR_INTERNAL, "out of memory");
	return 0;
}

static int walk(struct copy *c, int from, int to)
{
	struct rlimit files;
	int rc = push(c, from, to);

	/* A tree may be deeper than the usual number of descriptors. */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	while (c->n && rc == 0) {
		struct level l = c->levels[c->n - 1];
		c->path.n = l.path_n;
		errno = 0;
		const struct dirent *at = readdir(l.from);
		if (!at && errno)
			rc = fail(c);
		else if (!at)
			rc = leave(c);
		else if (!path_is_dots(at->d_name))
			rc = buf_str(&c->path, at->d_name) < 0
				     ? err_set(c->e, ERR_INTERNAL, "a path that is too long")
				     : copy_one(c, &l, at->d_name);
	}
	while (c->n) {
		struct err ignored = {0};
		struct err *e = c->e;
		c->e = &ignored; /* what has failed first counts */
		(void)leave(c);
		c->e = e;
	}
	return rc;
}

/* Names of what was left out, for whoever asks. */
static int put_left(const struct copy *c, int dir)
{
	(void)unlinkat(dir, COPY_LEFT, 0);
	if (c->left.n == c->masked_n)
		return 0;
	AUTO_FD int fd =
		openat(dir, COPY_LEFT, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	size_t n = c->left.n - c->masked_n;
	if (fd < 0 || write(fd, c->left.p + c->masked_n, n) != (ssize_t)n)
		return err_sys(c->e, "write %s of the session", COPY_LEFT);
	return 0;
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
			 .dir = dir,
			 .path = BUF_INIT(MAX_MASKS_LIST),
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
	int rc = to < 0 ? err_sys(e, "copy of the session") : load_masked(&c, dir);
	if (rc == 0)
		rc = walk(&c, from, to);
	if (c.told)
		(void)fprintf(stderr, "\n");
	if (rc == 0 && ((rec->root && fchown(to, rec->uid, rec->gid) < 0) ||
			fchmod(to, st.st_mode & 03777) < 0))
		rc = err_sys(e, "copy of the session");
	if (rc == 0)
		rc = put_masks(&c, dir);
	if (rc == 0)
		rc = put_left(&c, dir);
	free(c.levels);
	buf_release(&c.path);
	nameset_release(&c.masked);
	buf_release(&c.left);
	return rc;
}

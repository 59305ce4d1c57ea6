/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why it is safe: every step is one openat2(2) with RESOLVE_BENEATH and
 * RESOLVE_NO_SYMLINKS from a descriptor, so a directory that is swapped for a
 * link is an error, and the kernel checks that on the way and not before it.
 */
#include "review/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "base/path.h"

#define PIECE_BYTES 4000u /* below PATH_MAX */

static int open_piece(int dir, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned int)flags | O_CLOEXEC | O_NOFOLLOW,
		.mode = flags & O_CREAT ? 0600 : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
			   RESOLVE_NO_XDEV,
	};

	/* A rename elsewhere in the tree makes the kernel say EAGAIN. */
	for (int tries = 0; tries < 64; tries++) {
		int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			return fd;
	}
	return -1;
}

/* The longest beginning of whole components that one call takes of a longer path; 0: none. */
static size_t piece_of(const char *path)
{
	size_t n = PIECE_BYTES;

	while (n && path[n] != '/')
		n--;
	return n;
}

/* The first n bytes of a path. */
static int open_part(int top, const char *path, size_t n, int flags)
{
	char piece[PIECE_BYTES + 1];
	AUTO_FD int held = -1;
	int dir = top;

	while (n > PIECE_BYTES) {
		size_t len = piece_of(path);
		if (!len) { /* one name that is too long */
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(piece, path, len);
		piece[len] = '\0';
		int next = open_piece(dir, piece, O_PATH | O_DIRECTORY);
		if (next < 0)
			return -1;
		base_close_fd(&held);
		held = dir = next;
		path += len + 1;
		n -= len + 1;
	}
	memcpy(piece, path, n);
	piece[n] = '\0';
	return open_piece(dir, n ? piece : ".", flags);
}

int beneath_open(int top, const char *path, int flags)
{
	return open_part(top, path, strlen(path), flags);
}

int beneath_parent(int top, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');

	if (!slash) {
		*ret_name = path;
		return open_piece(top, ".", O_PATH | O_DIRECTORY);
	}
	*ret_name = slash + 1;
	return open_part(top, path, (size_t)(slash - path), O_PATH | O_DIRECTORY);
}

int beneath_stat(int top, const char *path, struct stat *ret)
{
	const char *name = NULL;

	if (!*path)
		return fstat(top, ret);
	AUTO_FD int dir = beneath_parent(top, path, &name);
	return dir < 0 ? -1 : fstatat(dir, name, ret, AT_SYMLINK_NOFOLLOW);
}

bool beneath_is_clean(const char *path)
{
	if (!*path)
		return false;
	while (*path) {
		size_t n = strcspn(path, "/");
		if (n == 0 || n > PATH_NAME_MAX || (n == 1 && path[0] == '.') ||
		    (n == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		path += n;
		if (*path == '/' && !*++path)
			return false;
	}
	return true;
}

static int64_t ns_of(const struct timespec *t)
{
	return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

struct node node_of(const struct stat *st)
{
	return (struct node){
		.mode = st->st_mode,
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime_ns = ns_of(&st->st_mtim),
		.ctime_ns = ns_of(&st->st_ctim),
	};
}

bool node_in(int dir, const char *name, struct node *ret)
{
	struct stat st;

	*ret = (struct node){.mode = 0};
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT;
	*ret = node_of(&st);
	return true;
}

bool node_at(int top, const char *path, struct node *ret)
{
	struct stat st;

	*ret = (struct node){.mode = 0};
	if (beneath_stat(top, path, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR;
	*ret = node_of(&st);
	return true;
}

bool node_same(const struct node *a, const struct node *b)
{
	if (!a->mode || !b->mode)
		return !a->mode && !b->mode;
	return a->dev == b->dev && a->ino == b->ino && (a->mode & S_IFMT) == (b->mode & S_IFMT);
}

bool node_unwritten(const struct node *a, const struct node *b)
{
	if (!node_same(a, b) || !a->mode || S_ISDIR(a->mode))
		return node_same(a, b);
	return a->mode == b->mode && a->size == b->size && a->mtime_ns == b->mtime_ns;
}

bool node_untouched(const struct node *a, const struct node *b)
{
	return node_unwritten(a, b) && (!a->mode || S_ISDIR(a->mode) || a->ctime_ns == b->ctime_ns);
}

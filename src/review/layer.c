/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The xattrs are the kernel's (fs/overlayfs/overlayfs.h): a command in the
 * session cannot set them through the overlay. They are parsed as hostile all
 * the same, and lead to nothing that is not beneath the source.
 */
#include "review/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/base.h"
#include "store/remove.h"

#define NS_PER_S 1000000000LL
#define MAX_ORIGIN 256 /* struct ovl_fb: at most 21 + 128 bytes */

int layer_open(int dir, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned int)flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
			   RESOLVE_NO_XDEV,
	};

	if (flags & O_PATH)
		how.flags &= ~(uint64_t)O_NONBLOCK;
	else
		how.flags |= O_NOCTTY;
	for (;;) {
		int fd = (int)syscall(SYS_openat2, dir, *path ? path : ".", &how, sizeof(how));
		/* EAGAIN: something was renamed meanwhile. */
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			return fd;
	}
}

int layer_stat(int dir, const char *path, struct stat *ret)
{
	AUTO_FD int fd = layer_open(dir, path, O_PATH);

	return fd < 0 ? -1 : fstat(fd, ret);
}

static int64_t ns_of(struct timespec t)
{
	return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

void layer_side(const struct stat *st, enum side_tree tree, const char *where,
		struct change_side *ret)
{
	*ret = (struct change_side){
		.mode = st->st_mode,
		.size = (uint64_t)st->st_size,
		.dev = st->st_dev,
		.ino = st->st_ino,
		.rdev = st->st_rdev,
		.ctime_ns = ns_of(st->st_ctim),
		.mtime_ns = ns_of(st->st_mtim),
		.tree = tree,
		.where = where,
	};
}

/* Directories on the way may be shut too: each is opened up until the next one is. */
static int open_shut(int dir, const char *path, int flags)
{
	int at = fcntl(dir, F_DUPFD_CLOEXEC, 3);
	struct opened held = {.fd = -1};
	char name[PATH_NAME_MAX + 1];

	while (at >= 0 && *path) {
		size_t n = strcspn(path, "/");
		if (n > PATH_NAME_MAX) {
			(void)close(at);
			at = -1;
			break;
		}
		memcpy(name, path, n);
		name[n] = '\0';
		path += n + (path[n] == '/');
		struct opened o = open_up(at, name);
		int next = layer_open(at, name, *path ? O_RDONLY | O_DIRECTORY : flags);
		close_up(&held);
		held = o;
		(void)close(at);
		at = next;
	}
	close_up(&held);
	return at;
}

int layer_open_upper(int dir, const char *path, int flags)
{
	int fd = layer_open(dir, path, flags);

	return fd < 0 && errno == EACCES && *path ? open_shut(dir, path, flags) : fd;
}

/* -1: not there, or larger than cap. `name` is one component, NULL is `dir` itself. */
static ssize_t get_xattr(bool root, int dir, const char *name, const char *attr, void *ret,
			 size_t cap)
{
	char path[PATH_NAME_MAX + 64];
	char full[64];

	(void)snprintf(full, sizeof(full), "%s.overlay.%s", root ? "trusted" : "user", attr);
	if (!name)
		return fgetxattr(dir, full, ret, cap);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dir, name);
	return lgetxattr(path, full, ret, cap);
}

enum layer_opaque layer_opaque(bool root, int dir, const char *name)
{
	char value = 0;

	if (get_xattr(root, dir, name, "opaque", &value, 1) != 1)
		return OPAQUE_NO;
	return value == 'y' ? OPAQUE_YES : value == 'x' ? OPAQUE_WHITEOUTS : OPAQUE_NO;
}

bool layer_whiteout(bool root, int dir, const char *name, const struct stat *st,
		    enum layer_opaque in)
{
	char value[8];

	if (S_ISCHR(st->st_mode))
		return st->st_rdev == makedev(0, 0);
	return in == OPAQUE_WHITEOUTS && S_ISREG(st->st_mode) && st->st_size == 0 &&
	       get_xattr(root, dir, name, "whiteout", value, sizeof(value)) >= 0;
}

static bool name_ok(const char *p, size_t n)
{
	return n > 0 && n <= PATH_NAME_MAX && !(n == 1 && p[0] == '.') &&
	       !(n == 2 && p[0] == '.' && p[1] == '.');
}

bool layer_redirect_parse(const char *value, size_t n, const char *parent_lower,
			  char ret[PATH_TEXT])
{
	size_t at = 0;

	if (n && value[n - 1] == '\0')
		n--;
	if (!n || n >= PATH_TEXT || memchr(value, 0, n))
		return false;
	bool absolute = value[0] == '/';
	if (!absolute && (!parent_lower || memchr(value, '/', n)))
		return false;
	if (!absolute && *parent_lower) {
		at = strlen(parent_lower);
		if (at + 1 + n >= PATH_TEXT)
			return false;
		memcpy(ret, parent_lower, at);
		ret[at++] = '/';
	}
	const char *p = value + absolute;
	const char *end = value + n;
	while (p <= end) {
		const char *slash = memchr(p, '/', (size_t)(end - p));
		size_t len = (size_t)((slash ? slash : end) - p);
		if (!name_ok(p, len))
			return false;
		memcpy(ret + at, p, len);
		at += len;
		if (!slash)
			break;
		ret[at++] = '/';
		p = slash + 1;
	}
	ret[at] = '\0';
	return true;
}

bool layer_redirect(int dir, const char *name, const char *parent_lower, char ret[PATH_TEXT])
{
	char value[PATH_TEXT];
	ssize_t n = get_xattr(true, dir, name, "redirect", value, sizeof(value));

	if (n >= 0)
		return layer_redirect_parse(value, (size_t)n, parent_lower, ret);
	if (!parent_lower)
		return false;
	int len = snprintf(ret, PATH_TEXT, "%s%s%s", parent_lower, *parent_lower ? "/" : "", name);
	return len > 0 && len < PATH_TEXT;
}

static uint32_t le32(const unsigned char *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/*
 * struct ovl_fb: version, magic, len, flags, type, uuid[16], then the handle. Of
 * those, FILEID_INO32_GEN is (ino, generation), or (generation, ino low, ino
 * high) on tmpfs; the others begin with an inode of 64 bits.
 */
uint64_t layer_origin_parse(const unsigned char *fh, size_t n)
{
	enum { HEAD = 21, MAGIC = 0xfb, TYPE_INO32 = 1 };

	if (n < HEAD + 8 || fh[1] != MAGIC)
		return 0;
	const unsigned char *p = fh + HEAD;
	if (fh[4] == TYPE_INO32 && n >= HEAD + 12)
		return (uint64_t)le32(p + 8) << 32 | le32(p + 4);
	if (fh[4] == TYPE_INO32)
		return le32(p);
	return (uint64_t)le32(p + 4) << 32 | le32(p);
}

bool layer_origin(bool root, int dir, const char *name, uint64_t *ret_ino)
{
	unsigned char fh[MAX_ORIGIN];
	ssize_t n = get_xattr(root, dir, name, "origin", fh, sizeof(fh));

	*ret_ino = n > 0 ? layer_origin_parse(fh, (size_t)n) : 0;
	return n >= 0;
}

/* 1 hidden, 0 the layer has a plain directory there, -1 it has nothing there or below. */
static int mask_at(const struct review *r, const char *path)
{
	struct stat st;
	AUTO_FD int fd = layer_open(r->masks, path, O_PATH);

	if (fd < 0 || fstat(fd, &st) < 0)
		return errno == ENOTDIR || errno == ELOOP ? 1 : -1;
	if (!S_ISDIR(st.st_mode))
		return 1;
	AUTO_FD int dir = layer_open(r->masks, path, O_RDONLY | O_DIRECTORY);
	/* What we cannot look at is taken for the worse. */
	if (dir < 0)
		return 1;
	return layer_opaque(r->root, dir, NULL) == OPAQUE_YES;
}

bool layer_masked(const struct review *r, const char *path)
{
	char part[PATH_TEXT];
	size_t n = strlen(path);

	if (r->masks < 0 || n >= sizeof(part))
		return false;
	for (size_t i = 1; i <= n; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		int at = mask_at(r, part);
		if (at)
			return at > 0;
	}
	return false;
}

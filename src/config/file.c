/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens without following a link at the end and without waiting for anybody,
 * looks at what it got, and reads only what is a plain file of the right owner.
 */
#include "config/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "config/yaml.h"

static int open_inside(const char *base, const char *path)
{
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
			       .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
					  RESOLVE_BENEATH};
	size_t n = strlen(base);
	AUTO_FD int dir = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return -1;
	if (strncmp(path, base, n) != 0) {
		errno = EXDEV;
		return -1;
	}
	path += n;
	path += strspn(path, "/");
	return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

static int cannot_open(struct err *e)
{
	int sys = errno;

	if (sys == ELOOP || sys == EXDEV) {
		(void)err_set(e, ERR_CONFIG_INVALID, "a link; a policy is a file itself");
		(void)err_hint(e, "put the file there instead of the link");
	} else if (sys == ENXIO || sys == ENODEV) {
		(void)err_set(e, ERR_CONFIG_INVALID, "not a regular file");
	} else {
		(void)err_set(e, ERR_CONFIG_INVALID, "%s", strerror(sys));
	}
	e->sys = sys;
	return -1;
}

static int check(const struct stat *st, unsigned int rules, uid_t uid, struct err *e)
{
	if (!S_ISREG(st->st_mode))
		return err_set(e, ERR_CONFIG_INVALID, "%s, not a regular file",
			       S_ISDIR(st->st_mode)    ? "a directory"
			       : S_ISFIFO(st->st_mode) ? "a fifo"
						       : "a device or socket");
	if (st->st_size > (off_t)MAX_YAML_BYTES)
		return err_set(e, ERR_CONFIG_INVALID, "%llu bytes; a policy has at most %zu",
			       (unsigned long long)st->st_size, MAX_YAML_BYTES);
	if (!(rules & FILE_OWN))
		return 0;
	if (st->st_uid != uid && st->st_uid != 0) {
		(void)err_set(e, ERR_CONFIG_INVALID, "belongs to uid %u, not to you or root",
			      (unsigned int)st->st_uid);
		return err_hint(e, "who can write it decides what your commands may do");
	}
	if (st->st_mode & (S_IWGRP | S_IWOTH)) {
		(void)err_set(e, ERR_CONFIG_INVALID, "others may write it (mode %04o)",
			      (unsigned int)(st->st_mode & 07777));
		return err_hint(e, "chmod go-w FILE; then look at what is in it");
	}
	return 0;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_uid == b->st_uid && a->st_mode == b->st_mode &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static int read_it(struct arena *a, int fd, struct policy_file *f, struct err *e)
{
	size_t size = (size_t)f->st.st_size;
	char *text = arena_take(a, size + 1, e);
	struct stat after;

	if (!text)
		return -1;
	while (f->n < size) {
		ssize_t n = RETRY_EINTR(read(fd, text + f->n, size - f->n));
		if (n < 0) {
			int sys = errno;
			(void)err_set(e, ERR_CONFIG_INVALID, "%s", strerror(sys));
			e->sys = sys;
			return -1;
		}
		if (n == 0)
			break;
		f->n += (size_t)n;
	}
	if (f->n != size || fstat(fd, &after) < 0 || !is_same(&f->st, &after)) {
		(void)err_set(e, ERR_CONFLICT, "changed while it was read");
		return err_hint(e, "try again when nothing writes it any more");
	}
	f->text = text;
	sha256(text, f->n, f->sha256);
	return 0;
}

int policy_file_read(struct arena *a, const char *base, const char *path, unsigned int rules,
		     uid_t uid, struct policy_file *ret, struct err *e)
{
	AUTO_FD int fd =
		rules & FILE_INSIDE
			? open_inside(base, path)
			: open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	*ret = (struct policy_file){.n = 0};
	if (fd < 0)
		return cannot_open(e);
	if (fstat(fd, &ret->st) < 0)
		return err_sys(e, "fstat");
	if (check(&ret->st, rules, uid, e) < 0)
		return -1;
	return read_it(a, fd, ret, e);
}

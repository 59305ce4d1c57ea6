/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk holds one descriptor for each level, so it has no path whose length could
 * end it, and reads a directory in pieces, so no directory is too large for it. What
 * cannot be counted is taken for more than any limit.
 */
#include "session/usage.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "store/remove.h"

#define BLOCK 512u /* of st_blocks: stat(2) */

static void count(const struct stat *st, struct usage_of *u)
{
	/* A file with several names is counted by its share. */
	uint64_t names = S_ISDIR(st->st_mode) || !st->st_nlink ? 1 : st->st_nlink;

	u->bytes += (uint64_t)st->st_blocks * BLOCK / names;
	u->inodes++;
}

/* A level of the walk. */
struct level {
	DIR *d;
	struct opened opened; /* a directory that its owner had closed to itself */
};

struct levels {
	struct level *v;
	size_t n, cap;
	dev_t dev;
};

static bool enter(struct levels *l, int dir, const char *name)
{
	struct opened o = {.fd = -1};
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == EACCES) {
		o = open_up(dir, name);
		fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)) {
		close_up(&o);
		return true; /* gone by now, or another thing, which is counted next time */
	}
	if (l->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 64;
		struct level *v = realloc(l->v, cap * sizeof(*v));
		l->v = v ? v : l->v;
		l->cap = v ? cap : l->cap;
	}
	DIR *d = fd < 0 || l->n == l->cap ? NULL : fdopendir(fd);
	if (!d) {
		if (fd >= 0)
			(void)close(fd);
		close_up(&o);
		return false;
	}
	l->v[l->n++] = (struct level){.d = d, .opened = o};
	return true;
}

static void leave(struct levels *l)
{
	struct level *at = &l->v[--l->n];

	(void)closedir(at->d);
	close_up(&at->opened);
}

/* One entry of the deepest directory. False: it cannot be counted. */
static bool step(struct levels *l, struct usage_of *u)
{
	DIR *d = l->v[l->n - 1].d;
	struct stat st;

	struct dirent *e = readdir(d);
	if (!e) {
		leave(l);
		return true;
	}
	if (path_is_dots(e->d_name))
		return true;
	if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT;
	count(&st, u);
	return !S_ISDIR(st.st_mode) || st.st_dev != l->dev || enter(l, dirfd(d), e->d_name);
}

/* Out of time, or beyond what is asked: a tree that is moved about during the walk has no end. */
static bool is_over(const struct usage_of *u, const struct usage_of *most, uint64_t until)
{
	return (most && (u->bytes > most->bytes || u->inodes > most->inodes)) ||
	       (u->inodes % 1024 == 0 && clock_mono_ms() > until);
}

void usage_measure(int dir, const struct usage_of *most, struct usage_of *ret)
{
	static const char *const parts[] = {"upper", "copy", "masks", "root", "journal-discard"};
	uint64_t until = clock_mono_ms() + USAGE_WALK_MS;
	struct levels l = {.n = 0};
	struct stat st;
	struct rlimit files;
	bool good = fstat(dir, &st) == 0;

	/* A tree may be deeper than the usual number of descriptors. */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}

	*ret = (struct usage_of){.bytes = 0};
	l.dev = st.st_dev;
	for (size_t i = 0; i < ARRAY_LEN(parts) && good; i++) {
		good = enter(&l, dir, parts[i]);
		while (good && l.n && !is_over(ret, most, until))
			good = step(&l, ret);
		if (l.n)
			break;
	}
	/* Beyond what is asked is answer enough. */
	good = good && (!l.n || clock_mono_ms() <= until);
	while (l.n)
		leave(&l);
	free(l.v);
	if (!good)
		*ret = (struct usage_of){.bytes = USAGE_UNKNOWN, .inodes = USAGE_UNKNOWN};
}

/* A memfd has no name either, and takes up memory. */
static bool is_memory(int fds, const char *name)
{
	static const char memfd[] = "/memfd:";
	char text[sizeof(memfd)];

	return readlinkat(fds, name, text, sizeof(text)) >= (ssize_t)sizeof(memfd) - 1 &&
	       strncmp(text, memfd, sizeof(memfd) - 1) == 0;
}

/* One process's open files that have no name any more. */
static void add_process(int proc, const char *pid, const ino_t *pid_ns, size_t n,
			struct usage_of *u)
{
	char path[PATH_TEXT];
	struct stat st;
	bool one = false;

	(void)snprintf(path, sizeof(path), "%s/ns/pid", pid);
	if (fstatat(proc, path, &st, 0) < 0)
		return;
	for (size_t i = 0; i < n; i++)
		one |= st.st_ino == pid_ns[i];
	if (!one)
		return;
	(void)snprintf(path, sizeof(path), "%s/fd", pid);
	int fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
		if (isdigit((unsigned char)e->d_name[0]) && fstatat(fd, e->d_name, &st, 0) == 0 &&
		    S_ISREG(st.st_mode) && !st.st_nlink && !is_memory(fd, e->d_name))
			count(&st, u);
	if (d)
		(void)closedir(d);
}

void usage_add_unlinked(const ino_t *pid_ns, size_t n, struct usage_of *u)
{
	AUTO_FD int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = proc < 0 ? NULL : fdopendir(fcntl(proc, F_DUPFD_CLOEXEC, 3));
	uint64_t until = clock_mono_ms() + USAGE_WALK_MS;

	if (u->bytes == USAGE_UNKNOWN)
		n = 0;
	for (struct dirent *e = d && n ? readdir(d) : NULL; e; e = readdir(d)) {
		if (isdigit((unsigned char)e->d_name[0]))
			add_process(proc, e->d_name, pid_ns, n, u);
		if (clock_mono_ms() > until) { /* a full table of descriptors, shared by many */
			*u = (struct usage_of){.bytes = USAGE_UNKNOWN, .inodes = USAGE_UNKNOWN};
			break;
		}
	}
	if (d)
		(void)closedir(d);
}

uint64_t usage_free(int dir)
{
	struct statvfs s;

	return fstatvfs(dir, &s) < 0 ? UINT64_MAX : (uint64_t)s.f_bavail * s.f_frsize;
}

ino_t usage_pid_ns(int pidfd)
{
	char path[64];
	char text[1024];
	struct stat st;
	int pid = 0;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	(void)file_read_text(AT_FDCWD, path, text, sizeof(text));
	const char *at = strstr(text, "\nPid:");
	if (!at || sscanf(at, "\nPid: %d", &pid) != 1)
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	return stat(path, &st) < 0 ? 0 : st.st_ino;
}

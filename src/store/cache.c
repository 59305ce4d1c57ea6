/* SPDX-License-Identifier: Apache-2.0 */
#include "store/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/path.h"
#include "policy/state.h"

static bool is_ours(const struct stat *st)
{
	return st->st_uid == geteuid() && !(st->st_mode & 0022);
}

static int open_ours(const char *path)
{
	struct stat st;

	AUTO_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !is_ours(&st))
		return -1;
	return TAKE_FD(fd);
}

int cache_open(const struct caller *who)
{
	char home[PATH_TEXT];
	char path[PATH_TEXT + 8];

	state_home(who, home);
	(void)snprintf(path, sizeof(path), "%s/cache", home);
	int fd = open_ours(path);
	if (fd >= 0 || errno != ENOENT)
		return fd;
	for (char *p = path + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		(void)mkdir(path, 0700);
		*p = '/';
	}
	(void)mkdir(path, 0700);
	return open_ours(path);
}

size_t cache_find(int dir, const char *name, size_t most, int *ret_fd)
{
	struct stat st;

	AUTO_FD int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !is_ours(&st) ||
	    st.st_size <= 0 || (uint64_t)st.st_size > most)
		return 0;
	*ret_fd = TAKE_FD(fd);
	return (size_t)st.st_size;
}

/* The file with this prefix that was written first, if there are too many. */
static void remove_oldest(int dir, const char *prefix, size_t prefix_len)
{
	char oldest[NAME_MAX + 1] = "";
	struct timespec when = {.tv_sec = 0};
	struct stat st;
	size_t n = 0;

	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	if (!d) {
		if (copy >= 0)
			(void)close(copy);
		return;
	}
	for (struct dirent *e = readdir(d); e; e = readdir(d)) {
		if (strncmp(e->d_name, prefix, prefix_len) != 0 ||
		    fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		n++;
		if (oldest[0] &&
		    (st.st_mtim.tv_sec > when.tv_sec ||
		     (st.st_mtim.tv_sec == when.tv_sec && st.st_mtim.tv_nsec >= when.tv_nsec)))
			continue;
		(void)snprintf(oldest, sizeof(oldest), "%s", e->d_name);
		when = st.st_mtim;
	}
	(void)closedir(d);
	if (n > MAX_CACHE_FILES)
		(void)unlinkat(dir, oldest, 0);
}

void cache_put(int dir, const char *name, const void *bytes, size_t n)
{
	char temporary[NAME_MAX + 1];
	const char *dash = strchr(name, '-');

	(void)snprintf(temporary, sizeof(temporary), ".%s.%d", name, (int)getpid());
	(void)unlinkat(dir, temporary, 0); /* of one with our pid that was killed */
	AUTO_FD int fd =
		openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (write(fd, bytes, n) != (ssize_t)n || renameat(dir, temporary, dir, name) < 0) {
		(void)unlinkat(dir, temporary, 0);
		return;
	}
	if (dash)
		remove_oldest(dir, name, (size_t)(dash - name) + 1);
}

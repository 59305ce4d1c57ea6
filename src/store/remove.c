/* SPDX-License-Identifier: Apache-2.0 */
#include "store/remove.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void set_mode(int fd, mode_t mode)
{
	char self[64];

	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	(void)chmod(self, mode);
}

struct opened open_up(int dir, const char *name)
{
	struct opened ret = {.fd = -1};
	struct stat st;

	/* "." could not be looked up in a directory that may not be searched. */
	int fd = *name ? openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC)
		       : fcntl(dir, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return ret;
	mode_t need = 0;
	if (fstat(fd, &st) == 0 && st.st_uid == geteuid())
		need = S_ISDIR(st.st_mode) ? 0700 : S_ISREG(st.st_mode) ? 0600 : 0;
	if (!need || (st.st_mode & need) == need) {
		(void)close(fd);
		return ret;
	}
	ret = (struct opened){.fd = fd, .mode = st.st_mode & 07777};
	set_mode(fd, ret.mode | need);
	return ret;
}

void close_up(const struct opened *o)
{
	if (o->fd < 0)
		return;
	set_mode(o->fd, o->mode);
	(void)close(o->fd);
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* One level: files go, directories come up beside `name` under numbers of their own. */
static void flatten(int dir, const char *name, unsigned int *count)
{
	char as[64];

	struct opened o = open_up(dir, name);
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
		if (is_dots(e->d_name) || unlinkat(dirfd(d), e->d_name, 0) == 0)
			continue;
		(void)snprintf(as, sizeof(as), REMOVE_GONE "%d-%u", (int)getpid(), *count);
		struct opened sub = open_up(dirfd(d), e->d_name);
		if (renameat(dirfd(d), e->d_name, dir, as) == 0)
			++*count;
		if (sub.fd >= 0)
			(void)close(sub.fd); /* it is going anyway */
	}
	if (d)
		(void)closedir(d);
	else if (fd >= 0)
		(void)close(fd);
	if (o.fd >= 0)
		(void)close(o.fd);
	(void)unlinkat(dir, name, AT_REMOVEDIR);
}

void remove_tree(int dir, const char *name)
{
	unsigned int count = 0;
	char as[64];

	if (unlinkat(dir, name, 0) == 0)
		return;
	flatten(dir, name, &count);
	for (unsigned int i = 0; i < count; i++) {
		(void)snprintf(as, sizeof(as), REMOVE_GONE "%d-%u", (int)getpid(), i);
		flatten(dir, as, &count);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One open, one read or write, one close.
 */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/path.h"

size_t file_read_text(int dir, const char *path, char *ret, size_t len)
{
	AUTO_FD int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, ret, len - 1);

	ret[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

int file_write_text(const char *path, const char *text)
{
	size_t len = strlen(text);
	AUTO_FD int fd = open(path, O_WRONLY | O_CLOEXEC);

	/* The write itself takes effect or fails: closing such a file has nothing to say. */
	return fd >= 0 && write(fd, text, len) == (ssize_t)len ? 0 : -1;
}

bool file_make_dirs(char *path, unsigned int mode)
{
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		bool good = mkdir(path, mode) == 0 || errno == EEXIST;
		*p = '/';
		if (!good)
			return false;
	}
	return true;
}

int file_fd_above(int fd, int least)
{
	if (fd < 0 || fd >= least)
		return fd;
	int up = fcntl(fd, F_DUPFD_CLOEXEC, least);
	base_close_fd(&fd);
	return up;
}

bool file_has_entries(int dir, const char *name)
{
	bool found = false;

	AUTO_FD int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	for (const struct dirent *at = d ? readdir(d) : NULL; at && !found; at = readdir(d))
		found = !path_is_dots(at->d_name);
	if (d) {
		fd = -1;
		(void)closedir(d);
	}
	return found;
}

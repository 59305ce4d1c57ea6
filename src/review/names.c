/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why it is safe: all is relative to a descriptor and no link is followed; what is
 * removed is either of our own making, at a random name, or was looked through.
 */
#include "review/names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/buf.h"

#define OLD_SUFFIX ".old"
#define MAX_WALK_PATH (1u << 20)

static void old_name(const char *temp, char ret[JOURNAL_TEMP + sizeof(OLD_SUFFIX)])
{
	(void)snprintf(ret, JOURNAL_TEMP + sizeof(OLD_SUFFIX), "%s" OLD_SUFFIX, temp);
}

static bool is_directory(int dir, const char *name)
{
	struct node n;

	return node_in(dir, name, &n) && S_ISDIR(n.mode);
}

int names_put(int dir, const char *temp, const char *name)
{
	if (renameat2(dir, temp, dir, name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	if (is_directory(dir, temp)) {
		if (faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
			errno = EEXIST;
			return -1;
		}
		return renameat(dir, temp, dir, name); /* never over what is not empty */
	}
	if (linkat(dir, temp, dir, name, 0) < 0)
		return -1;
	return unlinkat(dir, temp, 0);
}

int names_swap(int dir, const char *temp, const char *name)
{
	char old[JOURNAL_TEMP + sizeof(OLD_SUFFIX)];

	if (renameat2(dir, temp, dir, name, RENAME_EXCHANGE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	if (is_directory(dir, temp) || is_directory(dir, name)) {
		errno = EOPNOTSUPP;
		return -1;
	}
	old_name(temp, old);
	if (linkat(dir, name, dir, old, 0) < 0)
		return -1;
	if (renameat(dir, temp, dir, name) < 0) {
		int saved = errno;
		(void)unlinkat(dir, old, 0);
		errno = saved;
		return -1;
	}
	return renameat(dir, old, dir, temp);
}

void names_settle(int dir, const char *temp)
{
	char old[JOURNAL_TEMP + sizeof(OLD_SUFFIX)];
	struct node n;

	old_name(temp, old);
	if (!node_in(dir, old, &n) || !n.mode)
		return;
	if (node_in(dir, temp, &n) && n.mode)
		(void)unlinkat(dir, old, 0); /* the name still has what it had */
	else
		(void)renameat(dir, old, dir, temp);
}

int names_chmod(int fd, mode_t mode)
{
	char self[64];

	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return chmod(self, mode);
}

static int open_to_read(int dir, const char *path)
{
	return beneath_open(dir, path, O_RDONLY | O_DIRECTORY);
}

/* Lets us at a directory that is to go. */
static int open_to_empty(int dir, const char *path)
{
	AUTO_FD int at = beneath_open(dir, path, O_PATH | O_DIRECTORY);
	struct stat st;

	if (at < 0 || fstat(at, &st) < 0)
		return -1;
	if ((st.st_mode & 0700) != 0700 && names_chmod(at, 0700) < 0)
		return -1;
	return open_to_read(dir, path);
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Removes the files of a directory. The name of a directory in it, heap; NULL: there is none. */
static char *empty_once(int fd, bool *good)
{
	char *found = NULL;
	DIR *d = fdopendir(fd);

	if (!d) {
		(void)close(fd);
		*good = false;
		return NULL;
	}
	for (struct dirent *at = readdir(d); at && !found && *good; at = readdir(d)) {
		if (is_dots(at->d_name) || unlinkat(dirfd(d), at->d_name, 0) == 0)
			continue;
		if (is_directory(dirfd(d), at->d_name))
			found = strdup(at->d_name);
		*good = found != NULL;
	}
	(void)closedir(d);
	return found;
}

bool names_remove(int dir, const char *name)
{
	AUTO_BUF path = BUF_INIT(MAX_WALK_PATH);
	bool good = true;

	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return true;
	(void)buf_str(&path, name);
	while (good && path.n) {
		int fd = open_to_empty(dir, buf_cstr(&path));
		if (fd < 0)
			return false;
		AUTO_FREE char *sub = empty_once(fd, &good);
		if (sub) {
			good = buf_printf(&path, "/%s", sub) == 0;
			continue;
		}
		const char *last = NULL;
		AUTO_FD int parent = beneath_parent(dir, buf_cstr(&path), &last);
		good = good && parent >= 0 && unlinkat(parent, last, AT_REMOVEDIR) == 0;
		const char *slash = memrchr(path.p, '/', path.n);
		path.n = slash ? (size_t)(slash - path.p) : 0;
		path.p[path.n] = '\0';
	}
	return good;
}

/* Paths still to be read. */
struct walk {
	char **v;
	size_t n, cap;
};

static bool push(struct walk *w, const char *path, const char *name)
{
	if (w->n == w->cap) {
		size_t cap = w->cap ? 2 * w->cap : 16;
		char **v = realloc(w->v, cap * sizeof(*v));
		if (!v)
			return false;
		w->v = v;
		w->cap = cap;
	}
	w->v[w->n] = NULL;
	if (asprintf(&w->v[w->n], "%s%s%s", path, *path && *name ? "/" : "", name) < 0)
		return false;
	w->n++;
	return true;
}

static bool read_one(int fd, const char *below, const char *path, names_each *each, void *self,
		     struct walk *w)
{
	bool good = true;
	DIR *d = fdopendir(fd);

	if (!d) {
		(void)close(fd);
		return false;
	}
	for (struct dirent *at = readdir(d); at && good; at = readdir(d)) {
		AUTO_FREE char *full = NULL;
		if (is_dots(at->d_name))
			continue;
		if (asprintf(&full, "%s%s%s/%s", path, *below ? "/" : "", below, at->d_name) < 0) {
			good = false;
			break;
		}
		good = each(self, dirfd(d), at->d_name, full);
		if (good && is_directory(dirfd(d), at->d_name))
			good = push(w, below, at->d_name);
	}
	(void)closedir(d);
	return good;
}

bool names_walk(int dir, const char *name, const char *path, names_each *each, void *self)
{
	struct walk w = {.n = 0};
	AUTO_FD int top = beneath_open(dir, name, O_PATH | O_DIRECTORY);
	bool good = top >= 0 && push(&w, "", "");

	while (good && w.n) {
		AUTO_FREE char *below = w.v[--w.n];
		int fd = open_to_read(top, below);
		good = fd >= 0 && read_one(fd, below, path, each, self, &w);
	}
	while (w.n)
		free(w.v[--w.n]);
	free(w.v);
	return good;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the guard keeps between calls, below $SANDGLASS_HOME/index: an inventory
 * for each guarded place, a count of the calls that run there, and directories
 * that an index leads git to although nobody looks there otherwise.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "policy/gitindex.h"
#include "policy/state.h"
#include "run/guard_parts.h"

#define MUTEX_BYTE 0
#define ALIVE_BYTE 1
#define MAX_LINKS_BYTES 262144u

/* The directory that keeps the inventories. -1: there is none, everything is read each time. */
int guard_open_state(const struct guard *g)
{
	char path[PATH_TEXT + 8];
	char home[PATH_TEXT];

	state_home(g->who, home);
	(void)snprintf(path, sizeof(path), "%s/index", home);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 || errno != ENOENT)
		return fd;
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		bool good = mkdir(path, 0700) == 0 || errno == EEXIST;
		*p = '/';
		if (!good)
			return -1;
	}
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -1;
	return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool lock_byte(int fd, short type, off_t byte, bool wait)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

	return RETRY_EINTR(fcntl(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &l)) == 0;
}

static uint32_t read_count(int fd)
{
	uint32_t n = 0;

	return pread(fd, &n, sizeof(n), 0) == sizeof(n) ? n : 0;
}

static void write_count(int fd, uint32_t n)
{
	(void)!pwrite(fd, &n, sizeof(n), 0); /* a state that cannot be written: no making up */
}

/*
 * Calls over one place are counted: up when one begins, down when it has ended
 * in order. Each holds a shared lock on a byte. Who gets it alone and finds a
 * count knows that so many were killed.
 */
bool guard_begin_count(struct guard_root *r, int state)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "%s.calls", r->file);
	r->lock = openat(state, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	r->alone = true;
	if (r->lock < 0)
		return false;
	(void)lock_byte(r->lock, F_WRLCK, MUTEX_BYTE, true);
	r->alone = lock_byte(r->lock, F_WRLCK, ALIVE_BYTE, false);
	uint32_t n = read_count(r->lock);
	bool killed = r->alone && n > 0;
	write_count(r->lock, r->alone ? 1 : n + 1);
	(void)lock_byte(r->lock, F_RDLCK, ALIVE_BYTE, true);
	(void)lock_byte(r->lock, F_UNLCK, MUTEX_BYTE, true);
	return killed;
}

int guard_state_lock(const struct guard_root *r, int state)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "%s.calls", r->file);
	int fd = openat(state, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0)
		(void)lock_byte(fd, F_WRLCK, MUTEX_BYTE, true);
	return fd;
}

bool guard_is_idle(int lock)
{
	bool idle = lock >= 0 && lock_byte(lock, F_WRLCK, ALIVE_BYTE, false) && !read_count(lock);

	if (idle)
		(void)lock_byte(lock, F_UNLCK, ALIVE_BYTE, true);
	return idle;
}

/* Whether no other call is counted: what was found may be kept for the next. */
bool guard_end_count(struct guard_root *r)
{
	if (r->lock < 0)
		return true;
	(void)lock_byte(r->lock, F_WRLCK, MUTEX_BYTE, true);
	uint32_t n = read_count(r->lock);
	write_count(r->lock, n ? n - 1 : 0);
	(void)close(r->lock); /* and the locks with it */
	r->lock = -1;
	return n <= 1;
}

/* A directory that the scan leaves out: below node_modules and its like. */
static bool is_skipped(const char *path, size_t n)
{
	static const struct protect_dir tree = {.place = PLACE_TREE, .role = ROLE_NONE};
	struct protect_dir ignored;
	char name[256];

	while (n) {
		const char *slash = memchr(path, '/', n);
		size_t len = slash ? (size_t)(slash - path) : n;
		if (len < sizeof(name)) {
			memcpy(name, path, len);
			name[len] = '\0';
			if (!protect_child(tree, name, &ignored))
				return true;
		}
		path += len + (slash != NULL);
		n -= len + (slash != NULL);
	}
	return false;
}

struct links {
	struct guard *g;
	const char *work;
	struct nameset found; /* absolute paths */
};

static bool take_link(void *self, const struct gitindex_entry *e)
{
	struct links *l = self;
	AUTO_BUF path = BUF_INIT(2 * PATH_TEXT);

	if (e->mode != 0160000 || !is_skipped(e->path, e->path_len) ||
	    l->found.n >= MAX_GUARD_ROOTS)
		return true;
	if (buf_printf(&path, "%s/", l->work) == 0 && buf_add(&path, e->path, e->path_len) == 0 &&
	    !memchr(e->path, '\n', e->path_len))
		(void)nameset_put(&l->found, buf_cstr(&path), 1);
	return true;
}

static void read_index(struct links *l, const char *git)
{
	bool split = false;
	struct err ignored = {0};
	struct stat st;

	AUTO_FD int fd = guard_open_file(git, "index", &st);
	char *bytes = fd < 0 ? NULL : guard_read_file(fd, &st, MAX_GIT_INDEX);
	if (bytes &&
	    gitindex_each(bytes, (size_t)st.st_size, 20, take_link, l, &split, &ignored) < 0 &&
	    gitindex_each(bytes, (size_t)st.st_size, 32, take_link, l, &split, &ignored) < 0)
		l->work = NULL; /* no index that git would read either */
	free(bytes);
}

static void links_name(const struct guard *g, char ret[64])
{
	(void)snprintf(ret, 64, "%s.links", g->roots[0].file);
}

static void add_link_root(struct guard *g, const char *path)
{
	static const struct protect_dir tree = {.place = PLACE_TREE, .role = ROLE_NONE};

	for (size_t i = 0; i < g->root_count; i++)
		if (strcmp(g->roots[i].path, path) == 0)
			return;
	if (guard_root_of(g, path))
		(void)guard_add_root(g, path, tree);
}

void guard_read_links(struct guard *g, int state)
{
	char name[64];
	struct stat st;

	if (state < 0 || !g->root_count)
		return;
	links_name(g, name);
	AUTO_FD int fd = openat(state, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char *text =
		fd < 0 || fstat(fd, &st) < 0 ? NULL : guard_read_file(fd, &st, MAX_LINKS_BYTES);
	for (char *line = text; line && *line;) {
		size_t n = strcspn(line, "\n");
		bool last = !line[n];
		line[n] = '\0';
		if (path_is_clean(line))
			add_link_root(g, line);
		line += n + !last;
	}
	free(text);
}

static void keep_link(struct guard *g, int state, const char *path)
{
	char name[64];

	links_name(g, name);
	AUTO_FD int fd =
		openat(state, name, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0)
		(void)dprintf(fd, "%s\n", path);
}

/*
 * `git status` goes into every directory that the index has as a submodule, also
 * below node_modules. Where an index has changed, such directories are guarded
 * from now on like the rest.
 */
void guard_find_links(struct guard *g, int state)
{
	struct links l = {.g = g};
	struct stat st;

	for (size_t i = 0; i < g->repo_count; i++) {
		struct guard_repo *repo = &g->repos[i];
		AUTO_FD int fd = guard_open_index(repo, &st);
		if (fd < 0)
			continue;
		l.work = repo->work;
		read_index(&l, repo->git);
	}
	for (size_t i = 0; i < l.found.cap; i++) {
		if (!l.found.v[i])
			continue;
		add_link_root(g, l.found.v[i]);
		if (state >= 0)
			keep_link(g, state, l.found.v[i]);
	}
	nameset_release(&l.found);
}

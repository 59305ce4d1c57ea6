/* SPDX-License-Identifier: Apache-2.0 */
/*
 * While the call runs: one inotify instance over the git directories that were
 * there at the start, over the directories of every pin, and over what is above
 * them. It sees names, never content; every decision opens what it decides about
 * again. Anything may have changed in between: then there is another event.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/later.h"
#include "base/path.h"
#include "launch/launch.h"
#include "run/guard_parts.h"

#define GIT_EVENTS \
	(IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE | IN_MODIFY | IN_MOVED_FROM | IN_DELETE)
#define TREE_EVENTS (IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE)
#define MAX_DEPTH 16 /* of directories that appear below a watched one */
#define READ_BYTES 16384u
#define MAX_TRIES 200 /* a millisecond each, while the sandbox is built */

struct watch {
	int wd; /* -1: none */
	char *path;
	struct protect_dir kind;
	bool hooks;   /* a hooks directory: everything but samples goes */
	bool bare;    /* a git directory by its layout */
	bool swapped; /* came in the place of a directory that holds pins */
};

static void add_watch(struct guard *g, struct watch w, uint32_t events)
{
	struct watch *more = NULL;

	if (g->inotify < 0)
		return;
	w.wd = g->watch_count < MAX_GUARD_WATCHES
		       ? inotify_add_watch(g->inotify, w.path,
					   events | IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK)
		       : -1;
	if (w.wd < 0) {
		if (g->watch_count >= MAX_GUARD_WATCHES || (errno != ENOENT && errno != ENOTDIR))
			guard_lose(g, "quarantine-watch");
		return;
	}
	/* Watch descriptors count up from 1. */
	if ((size_t)w.wd >= g->watch_cap) {
		size_t cap = (size_t)w.wd * 2 + 64;
		more = realloc(g->watches, cap * sizeof(*more));
		if (!more) {
			guard_lose(g, "quarantine-watch");
			return;
		}
		for (size_t i = g->watch_cap; i < cap; i++)
			more[i] = (struct watch){.wd = -1};
		g->watches = more;
		g->watch_cap = cap;
	}
	struct watch *slot = &g->watches[w.wd];
	free(slot->path); /* the same directory again: by its new path */
	w.path = strdup(w.path);
	g->watch_count += slot->wd < 0;
	*slot = w;
	if (!w.path)
		slot->wd = -1;
}

static bool is_watched_role(const struct inventory_dir *d)
{
	static const unsigned char roles[] = {ROLE_GITDIR,    ROLE_INFO,      ROLE_OBJECTS_INFO,
					      ROLE_REBASE,    ROLE_SEQUENCER, ROLE_REMOTES,
					      ROLE_WORKTREES, ROLE_MODULES};

	return memchr(roles, d->role, sizeof(roles)) != NULL;
}

/* Directories with pins and all that are above them: whose names must not change. */
static unsigned char *mark(const struct guard_root *r)
{
	unsigned char *marks = calloc(r->before.dir_count + 1, 1);

	for (uint32_t i = 0; marks && i < r->before.find_count; i++)
		for (uint32_t d = r->before.finds[i].dir; d != INVENTORY_NONE && !marks[d];
		     d = r->before.dirs[d].parent)
			marks[d] = 1;
	return marks;
}

static void watch_root(struct guard *g, const struct guard_root *r)
{
	unsigned char *marks = mark(r);
	AUTO_BUF path = BUF_INIT(64u << 20);

	for (uint32_t i = 0; marks && i < r->before.dir_count; i++) {
		const struct inventory_dir *d = &r->before.dirs[i];
		bool git = is_watched_role(d);
		if (!git && !marks[i])
			continue;
		guard_put_dir(r, &r->before, i, &path);
		if (path.failed || path.n >= PATH_TEXT)
			continue; /* the scan at the end goes there */
		struct watch w = {
			.path = path.p,
			.kind = {.place = d->place, .role = d->role},
			.bare = d->given == ROLE_NONE && d->role == ROLE_GITDIR,
		};
		add_watch(g, w, git ? GIT_EVENTS : TREE_EVENTS);
	}
	free(marks);
}

/* The directories above a path, as far as they are granted and not watched yet. */
static void watch_above(struct guard *g, const char *path, struct nameset *seen)
{
	const struct guard_root *r = guard_root_of(g, path);
	char dir[PATH_TEXT];

	(void)snprintf(dir, sizeof(dir), "%s", path);
	for (char *slash = strrchr(dir, '/'); slash && slash != dir; slash = strrchr(dir, '/')) {
		*slash = '\0';
		if (nameset_get(seen, dir, NULL) || (r && !path_is_below(r->path, dir)))
			return;
		(void)nameset_put(seen, dir, 1);
		add_watch(g, (struct watch){.path = dir, .kind = {.place = PLACE_TREE}},
			  TREE_EVENTS);
		if (!r)
			return;
	}
}

static void watch_masks(struct guard *g)
{
	struct nameset seen = {.n = 0};

	for (size_t i = 0; i < g->watch_cap; i++)
		if (g->watches[i].wd >= 0)
			(void)nameset_put(&seen, g->watches[i].path, 1);
	for (size_t i = 0; i < g->masks.n; i++)
		watch_above(g, g->masks.v[i].path, &seen);
	for (size_t i = 0; i < g->masks.held.cap; i++)
		if (g->masks.held.v[i])
			watch_above(g, g->masks.held.v[i], &seen);
	nameset_release(&seen);
}

void guard_watch_begin(struct guard *g)
{
	bool any = false;

	for (size_t i = 0; i < g->root_count; i++)
		any |= g->roots[i].before.find_count > 0;
	any |= g->masks.n > 0 || g->masks.held.n > 0;
	if (!any)
		return;
	g->quarantine.live = true;
	g->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (g->inotify < 0) {
		guard_lose(g, "quarantine-watch"); /* EMFILE: the scan at the end is left */
		return;
	}
	for (size_t i = 0; i < g->root_count; i++)
		watch_root(g, &g->roots[i]);
	watch_masks(g);
}

void guard_watch_end(struct guard *g)
{
	if (g->inotify >= 0)
		later_close(g->inotify);
	g->inotify = -1;
	for (size_t i = 0; i < g->watch_cap; i++)
		free(g->watches[i].path);
	free(g->watches);
	g->watches = NULL;
	g->watch_cap = g->watch_count = 0;
}

int guard_fd(const struct guard *g)
{
	return g->inotify;
}

/*
 * Something stands at a pinned name again. A rename over a mount point cannot
 * have come from inside. After a removal, which cannot either, anybody may have
 * made the new one: it is pinned too, and judged at the end.
 */
static void on_pin(struct guard *g, const char *path, uint32_t mount)
{
	uint32_t times = 0;
	int sys = g->launch ? launch_pin_again(g->launch, mount) : EIO;

	if (sys == ENOENT)
		return; /* gone again: there is another event */
	(void)nameset_get(&g->put_back, path, &times);
	(void)nameset_put(&g->put_back, path, times + 1);
	if (times)
		return;
	if (sys)
		guard_tell(g, path, GUARD_REPLACED, strerror(sys), NULL);
	else
		guard_tell(g, path, GUARD_REPROTECTED,
			   "replaced from outside while the call ran; read-only again, but in "
			   "between the command could write it",
			   NULL);
}

/* The host has put something at a masked name: the kernel has dropped the mask, whatever it is. */
static void on_mask(struct guard *g, struct mask *m)
{
	if (!g->launch)
		return; /* the sandbox is over */
	int sys = launch_pin_again(g->launch, m->mount);

	/* The sandbox is just being built. */
	for (int tries = 0; sys == EEXIST && tries < MAX_TRIES; tries++) {
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		sys = launch_pin_again(g->launch, m->mount);
	}
	if (sys == ENOENT || sys == EALREADY)
		return; /* gone again: there is another event; or it was moved with its directory */
	m->again++;
	m->sys = sys;
}

static bool is_above_mask(const struct guard *g, const char *path)
{
	for (size_t i = 0; i < g->masks.n; i++)
		if (path_is_below(path, g->masks.v[i].path))
			return true;
	return false;
}

static void on_new_dir(struct guard *g, struct guard_root *r, const struct watch *w,
		       const char *path, const char *name, int depth);

/* A name in a git directory that was known, or in one that has come in it since. */
static void on_git_name(struct guard *g, struct guard_root *r, const struct watch *w,
			const char *path, const char *name)
{
	struct judged j = {.class = protect_name(w->kind, "", name)};
	const char *last = NULL;
	struct stat st;

	if (w->hooks)
		j.class = PROTECT_HOOKS;
	if (j.class == PROTECT_TOOL || guard_is_lifted(g, path))
		return;
	AUTO_FD int dir = guard_open_parent(r, path, &last);
	if (dir < 0 || fstatat(dir, last, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (j.class == PROTECT_NONE && S_ISLNK(st.st_mode))
		j.class = PROTECT_LINK;
	if (j.class == PROTECT_NONE)
		return;
	j.type = (unsigned char)IFTODT(st.st_mode);
	size_t n = strlen(name);
	if (w->hooks) {
		if (!(S_ISREG(st.st_mode) && st.st_nlink == 1 && n > 7 &&
		      strcmp(name + n - 7, ".sample") == 0))
			guard_take(g, r, path, protect_reason(PROTECT_HOOKS));
		return;
	}
	if (guard_may_stay(g, r, path, &j, true))
		return;
	if (j.class == PROTECT_HOOKS && j.type == DT_DIR)
		(void)guard_sift_hooks(g, r, path, true);
	else
		guard_take(g, r, path, j.why[0] ? j.why : protect_reason(j.class));
}

static bool is_above_pin(const struct guard *g, const char *path)
{
	size_t n = strlen(path);

	for (size_t i = 0; i < g->known.cap; i++)
		if (g->known.v[i] && strncmp(g->known.v[i], path, n) == 0 &&
		    g->known.v[i][n] == '/')
			return true;
	return false;
}

/*
 * A directory that came in the place of one that held protected names: what has
 * such a name there is new, and its place was taken from something that was not.
 */
static void on_swapped(struct guard *g, struct guard_root *r, const char *path)
{
	char identity[40];
	struct stat st;
	const char *last = NULL;

	if (!nameset_get(&g->known, path, NULL) || guard_is_lifted(g, path))
		return;
	AUTO_FD int dir = guard_open_parent(r, path, &last);
	if (dir < 0 || fstatat(dir, last, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	guard_identity(identity, st.st_dev, st.st_ino);
	if (!nameset_get(&g->same, identity, NULL))
		guard_take(g, r, path, "put at a protected name whose directory was moved away");
}

/* Still what it was when the call began, so its mount stands. */
static bool is_as_before(const struct guard *g, const struct guard_root *r, const char *path)
{
	char identity[40];
	struct stat st;
	const char *last = NULL;

	AUTO_FD int dir = guard_open_parent(r, path, &last);
	if (dir < 0 || fstatat(dir, last, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return true;
	guard_identity(identity, st.st_dev, st.st_ino);
	return nameset_get(&g->same, identity, NULL);
}

static void on_name(struct guard *g, const struct watch *w, uint32_t mask, const char *name,
		    int depth)
{
	AUTO_BUF path = BUF_INIT(2 * PATH_TEXT);
	uint32_t mount = 0;

	if (buf_printf(&path, "%s/%s", w->path, name) < 0)
		return;
	const char *p = buf_cstr(&path);
	if (nameset_get(&g->masks.at, p, &mount)) {
		if (mask & (IN_CREATE | IN_MOVED_TO))
			on_mask(g, &g->masks.v[mount]);
		return;
	}
	struct guard_root *r = guard_root_of(g, p);
	if (!r)
		return;
	bool pinned = nameset_get(&g->pins, p, &mount) && !w->swapped;
	if (mask & (IN_MOVED_FROM | IN_DELETE)) {
		if (pinned)
			(void)nameset_put(&g->loose, p, 1);
		return;
	}
	if (pinned) {
		if ((mask & (IN_CREATE | IN_MOVED_TO)) && !(depth && is_as_before(g, r, p)))
			on_pin(g, p, mount);
		return;
	}
	if (w->kind.place == PLACE_GIT || w->bare || w->hooks)
		on_git_name(g, r, w, p, name);
	else if (w->swapped)
		on_swapped(g, r, p);
	if (strcmp(name, "config.lock") == 0 && w->kind.role == ROLE_GITDIR) {
		uint32_t times = 0;
		path.p[path.n - 5] = '\0';
		if ((mask & IN_CREATE) && nameset_get(&g->pins, p, NULL)) {
			(void)nameset_get(&g->locks, p, &times);
			(void)nameset_put(&g->locks, p, times + 1);
		}
		return;
	}
	if ((mask & IN_ISDIR) && depth < MAX_DEPTH)
		on_new_dir(g, r, w, p, name, depth);
}

/* Everything that is in a directory by now, as if it came just now. */
static void look_at(struct guard *g, struct guard_root *r, const struct watch *w, int depth)
{
	const char *last = NULL;
	struct stat st;

	AUTO_FD int above = guard_open_parent(r, w->path, &last);
	int fd = above < 0 ? -1
			   : openat(above, *last ? last : ".",
				    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	if (!d) {
		if (fd >= 0)
			(void)close(fd);
		return;
	}
	for (struct dirent *e = readdir(d); e; e = readdir(d)) {
		if (path_is_dots(e->d_name))
			continue;
		bool is_dir = fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			      S_ISDIR(st.st_mode);
		on_name(g, w, IN_CREATE | (is_dir ? (uint32_t)IN_ISDIR : 0u), e->d_name, depth + 1);
	}
	(void)closedir(d);
}

static bool is_known_dir(const struct guard *g, const char *path)
{
	for (size_t i = 0; i < g->watch_cap; i++)
		if (g->watches[i].wd >= 0 && g->watches[i].path &&
		    strcmp(g->watches[i].path, path) == 0)
			return true;
	return false;
}

static void on_new_dir(struct guard *g, struct guard_root *r, const struct watch *w,
		       const char *path, const char *name, int depth)
{
	struct watch n = {.path = (char *)(uintptr_t)path};
	bool git = w->kind.place == PLACE_GIT || w->bare;

	if (w->hooks)
		return;
	bool counts = protect_child(w->kind, name, &n.kind);
	n.hooks = git && protect_name(w->kind, "", name) == PROTECT_HOOKS;
	n.swapped = !git && (w->swapped || is_above_pin(g, path) || is_above_mask(g, path));
	bool role =
		n.kind.role != ROLE_NONE && n.kind.role != ROLE_REFS && n.kind.role != ROLE_OBJECTS;
	if (!n.hooks && !n.swapped && !(counts && git && (role || n.kind.role == ROLE_OBJECTS)))
		return;
	if (depth > 0 && is_known_dir(g, path) && !n.swapped)
		return;
	add_watch(g, n, git || n.swapped ? GIT_EVENTS : TREE_EVENTS);
	look_at(g, r, &n, depth);
}

/* Events were lost: everything that is watched is looked at. */
static void look_at_all(struct guard *g)
{
	for (size_t i = 0; i < g->watch_cap; i++) {
		struct watch w = g->watches[i];
		struct guard_root *r = w.wd >= 0 && w.path ? guard_root_of(g, w.path) : NULL;
		if (!r)
			continue;
		w.path = strdup(w.path); /* the table may move meanwhile */
		if (w.path)
			look_at(g, r, &w, MAX_DEPTH - 1);
		free(w.path);
	}
}

static void on_event(struct guard *g, const struct inotify_event *ev)
{
	if (ev->mask & IN_Q_OVERFLOW)
		g->rescan = true;
	if (ev->wd < 0 || (size_t)ev->wd >= g->watch_cap)
		return;
	if ((ev->mask & IN_IGNORED) && g->watches[ev->wd].wd >= 0) { /* the directory is gone */
		free(g->watches[ev->wd].path);
		g->watches[ev->wd] = (struct watch){.wd = -1};
		g->watch_count--;
		return;
	}
	if (!ev->len)
		return;
	struct watch w = g->watches[ev->wd];
	w.path = w.wd >= 0 && w.path ? strdup(w.path) : NULL; /* the table may move meanwhile */
	if (w.path)
		on_name(g, &w, ev->mask, ev->name, 0);
	free(w.path);
}

void guard_step(struct guard *g)
{
	static _Alignas(struct inotify_event) char bytes[READ_BYTES];

	/* One buffer a turn: signals and output have theirs in between. */
	ssize_t n = g->inotify >= 0 ? read(g->inotify, bytes, sizeof(bytes)) : -1;
	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *ev = (const struct inotify_event *)(bytes + at);
		at += (ssize_t)(sizeof(*ev) + ev->len);
		on_event(g, ev);
	}
	if (g->rescan) {
		g->rescan = false;
		look_at_all(g);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether something new in a git directory may stay. Opens what it judges once,
 * without following a link, and reads from that descriptor; the verdict on the
 * bytes is policy/gitjudge.c's. A file with a second name is not judged: it could
 * be changed by that one later.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "base/base.h"
#include "base/path.h"
#include "policy/gitjudge.h"
#include "run/guard_parts.h"

#define OPEN_TRIES 16 /* of a file that is replaced again and again meanwhile */

static void because(struct judged *j, const char *what)
{
	(void)snprintf(j->why, sizeof(j->why), "%s", what);
}

/* Below one of the guarded places, by where the kernel says that the descriptor is. */
static bool is_inside(struct guard *g, int fd)
{
	char path[PATH_TEXT];
	char self[64];

	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(self, path, sizeof(path) - 1);
	if (n <= 0)
		return false;
	path[n] = '\0';
	return guard_root_of(g, path) != NULL;
}

/* On the way of a link it could be led elsewhere by a later call: openat2(2). */
static int open_straight(int dir, const char *path, uint64_t flags)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | flags,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

static bool is_git_dir(const struct guard *g, int dir, const char *path)
{
	char identity[40];
	struct stat st;

	AUTO_FD int fd = open_straight(dir, path, O_DIRECTORY);
	if (fd < 0 || fstat(fd, &st) < 0)
		return false;
	guard_identity(identity, st.st_dev, st.st_ino);
	for (size_t i = 0; i < g->root_count; i++)
		if (nameset_get(&g->roots[i].gitdirs_after, identity, NULL))
			return true;
	return nameset_get(&g->gitdirs, identity, NULL);
}

/* Where a path would be that does not exist yet: its text alone, from an absolute place. */
static bool is_inside_by_name(struct guard *g, const char *base, const char *path)
{
	char joined[2 * PATH_TEXT];
	char clean[PATH_TEXT];

	(void)snprintf(joined, sizeof(joined), "%s/%s", path[0] == '/' ? "" : base, path);
	return path_lexical(joined, clean) && guard_root_of(g, clean) != NULL;
}

/* A place in the work tree: it, or what it would be in, lies in this source. */
static bool is_place_inside(struct guard *g, int dir, const char *base, const char *path)
{
	char above[PATH_TEXT];

	AUTO_FD int fd = open_straight(dir, path, 0);
	if (fd >= 0)
		return is_inside(g, fd);
	if (errno != ENOENT && errno != ENOTDIR)
		return false; /* by a link, or not to be seen */
	(void)snprintf(above, sizeof(above), "%s", path);
	char *slash = strrchr(above, '/');
	if (slash && slash != above) {
		*slash = '\0';
		AUTO_FD int up = open_straight(dir, above, O_DIRECTORY);
		if (up >= 0)
			return is_inside(g, up);
		if (errno != ENOENT && errno != ENOTDIR)
			return false;
	}
	return is_inside_by_name(g, base, path);
}

struct from {
	struct guard *g;
	int dir;
};

static bool is_known_objects(void *self, const char *path)
{
	const struct from *p = self;

	return is_git_dir(p->g, p->dir, path);
}

static void say_verdict(struct judged *j, const struct gitjudge *verdict)
{
	(void)snprintf(j->why, sizeof(j->why), "%s: %.100s", protect_reason(j->class),
		       verdict->why);
}

static bool judge_config(struct guard *g, int dir, const char *base, const char *text, size_t n,
			 struct judged *j)
{
	struct gitjudge verdict;

	if (!gitjudge_config(text, n, &verdict)) {
		say_verdict(j, &verdict);
		return false;
	}
	if (verdict.worktree[0] && !is_place_inside(g, dir, base, verdict.worktree)) {
		because(j, "core.worktree leads out of this source");
		return false;
	}
	return true;
}

static bool judge_text(struct guard *g, int dir, const char *base, const char *name,
		       const char *text, size_t n, struct judged *j)
{
	struct gitjudge verdict;
	struct from p = {g, -1};
	char path[PATH_TEXT];

	switch (j->class) {
	case PROTECT_CONFIG:
	case PROTECT_CONFIG_WORKTREE:
		return judge_config(g, dir, base, text, n, j);
	case PROTECT_TODO:
		if (gitjudge_todo(text, n, &verdict))
			return true;
		say_verdict(j, &verdict);
		return false;
	case PROTECT_STATE:
		if (gitjudge_state(name, text, n, &verdict))
			return true;
		say_verdict(j, &verdict);
		return false;
	case PROTECT_GIT:
		return gitjudge_gitfile(text, n, path) && is_git_dir(g, dir, path);
	case PROTECT_COMMONDIR:
		return gitjudge_path(text, n, path) && is_git_dir(g, dir, path);
	case PROTECT_GITDIR:
		return gitjudge_path(text, n, path) && is_place_inside(g, dir, base, path);
	case PROTECT_ALTERNATES: {
		/* Relative paths count from the objects directory. */
		AUTO_FD int objects = openat(dir, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		p.dir = objects;
		return objects >= 0 && gitjudge_alternates(text, n, is_known_objects, &p);
	}
	case PROTECT_NONE:
	case PROTECT_TOOL:
	case PROTECT_HOOKS:
	case PROTECT_ATTRIBUTES:
	case PROTECT_REMOTE:
	case PROTECT_LINK:
	case PROTECT_LAYOUT:
	case PROTECT_CLASSES:
		break;
	}
	return false;
}

static bool is_sample(int dir, const char *name)
{
	struct stat st;
	size_t n = strlen(name);

	return n > 7 && strcmp(name + n - 7, ".sample") == 0 &&
	       fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	       st.st_nlink == 1;
}

/* The names in a hooks directory that are no samples. */
static bool each_hook(int dir, void (*item)(void *self, const char *name), void *self)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	bool any = false;

	if (!d) {
		if (fd >= 0)
			(void)close(fd);
		return true; /* what cannot be read is no set of samples */
	}
	for (struct dirent *e = readdir(d); e; e = readdir(d)) {
		if (path_is_dots(e->d_name) || is_sample(dir, e->d_name))
			continue;
		any = true;
		if (item)
			item(self, e->d_name);
	}
	(void)closedir(d);
	return any;
}

struct sifting {
	struct guard *g;
	struct guard_root *r;
	const char *path;
	bool all;  /* else only what the command has made or changed */
	bool left; /* something was left */
};

static void take_hook(void *self, const char *name)
{
	struct sifting *s = self;
	AUTO_BUF path = BUF_INIT(64u << 20);

	if (buf_printf(&path, "%s/%s", s->path, name) < 0)
		return;
	if (!s->all && !guard_is_recent(s->r, buf_cstr(&path), s->g->begin_ns))
		s->left = true;
	else
		guard_take(s->g, s->r, buf_cstr(&path), protect_reason(PROTECT_HOOKS));
}

bool guard_sift_hooks(struct guard *g, struct guard_root *r, const char *path, bool all)
{
	struct sifting s = {.g = g, .r = r, .path = path, .all = all};
	const char *name = NULL;

	AUTO_FD int above = guard_open_parent(r, path, &name);
	AUTO_FD int dir =
		above < 0 ? -1
			  : openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0) {
		guard_take(g, r, path, protect_reason(PROTECT_HOOKS));
		return false;
	}
	(void)each_hook(dir, take_hook, &s);
	return s.left;
}

/* Opens what has the name: not what another file was just put in the place of, if that can be. */
static int open_present(int dir, const char *name, struct stat *st)
{
	int fd = -1;

	for (int tries = 0; tries < OPEN_TRIES; tries++) {
		base_close_fd(&fd);
		fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0 || fstat(fd, st) < 0 || st->st_nlink != 0)
			break;
	}
	return fd;
}

static bool judge_file(struct guard *g, int dir, const char *base, const char *name,
		       struct judged *j, bool live)
{
	struct stat st = {0};

	AUTO_FD int fd = open_present(dir, name, &st);
	if (live && (fd < 0 ? errno == ENOENT : st.st_nlink == 0))
		return true; /* gone or replaced just now: there will be another event */
	if (fd < 0 || !S_ISREG(st.st_mode))
		return false;
	if (st.st_nlink != 1) {
		because(j, "it has a second name, by which it could be changed");
		return false;
	}
	/* Just made, nothing written yet: there will be another event. */
	if (st.st_size == 0 && live)
		return true;
	if ((uint64_t)st.st_size > MAX_GIT_FILE) {
		because(j, "it is larger than 1MiB");
		return false;
	}
	AUTO_FREE char *text = malloc(MAX_GIT_FILE + 1);
	size_t n = 0;
	while (text && n <= MAX_GIT_FILE) {
		ssize_t got = RETRY_EINTR(read(fd, text + n, MAX_GIT_FILE + 1 - n));
		if (got < 0)
			return false;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	return text && n <= MAX_GIT_FILE && judge_text(g, dir, base, name, text, n, j);
}

/* A `.git` that is a link to a git directory of this source. */
static bool judge_link(const struct guard *g, int dir, const char *name)
{
	char text[PATH_TEXT];
	ssize_t n = readlinkat(dir, name, text, sizeof(text) - 1);

	if (n <= 0)
		return false;
	text[n] = '\0';
	return is_git_dir(g, dir, text);
}

/*
 * Links that git makes itself: HEAD to a branch, as it once did, and for a moment
 * tXXXXXX to "testing", by which init finds out whether there are links (setup.c).
 */
static bool is_git_link(int dir, const char *name)
{
	char text[PATH_TEXT];
	ssize_t n = readlinkat(dir, name, text, sizeof(text) - 1);

	if (n <= 0)
		return n < 0 && errno == ENOENT; /* gone by now */
	text[n] = '\0';
	if (strcmp(text, "testing") == 0)
		return name[0] == 't' && strlen(name) == 7;
	return strcmp(name, "HEAD") == 0 && strncmp(text, "refs/", 5) == 0 && !strstr(text, "..");
}

/* `base` is the path of `dir`, `name` what lies in it. */
static bool judge(struct guard *g, int dir, const char *base, const char *name, struct judged *j,
		  bool live)
{
	if (j->class == PROTECT_GIT && j->type == DT_DIR)
		return true; /* what is in it is judged by itself */
	if (j->class == PROTECT_GIT && j->type == DT_LNK)
		return judge_link(g, dir, name);
	if (j->class == PROTECT_HOOKS && j->type == DT_DIR) {
		AUTO_FD int hooks =
			openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		return hooks >= 0 && !each_hook(hooks, NULL, NULL);
	}
	if (j->class == PROTECT_LINK)
		return is_git_link(dir, name);
	if (j->type != DT_REG) /* a directory of that name is nothing to git, a link may be */
		return j->type == DT_DIR && j->class != PROTECT_HOOKS;
	return judge_file(g, dir, base, name, j, live);
}

bool guard_may_stay(struct guard *g, struct guard_root *r, const char *path, struct judged *j,
		    bool live)
{
	const char *name = NULL;

	if (j->class == PROTECT_TOOL)
		return false;
	AUTO_FD int dir = guard_open_parent(r, path, &name);
	if (dir < 0)
		return guard_is_gone(errno);
	char *base = strndup(path, (size_t)(name - path) - 1);
	bool good = base && judge(g, dir, base, name, j, live);
	free(base);
	return good;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Begin and end. What existed when the call began is trusted; everything at a
 * protected name that has come since is judged, and moved unless it may stay.
 * Should this process be killed, the next start over the same place makes up for
 * the end: a counter of calls that began says so, and the inventory that was
 * saved before.
 */
#include "run/guard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/term.h"
#include "run/guard_parts.h"

#define MAX_ROUNDS 8        /* scan and move until nothing is found any more */
#define MAX_TOOL_FILES 4096 /* of one directory that came; with more all of it goes */
#define TICK_NS 20000000    /* file systems take the time of the last tick */
#define KILLED_NS 200000000

void guard_lose(struct guard *g, const char *what)
{
	for (size_t i = 0; i < g->lost_count; i++)
		if (strcmp(g->lost[i], what) == 0)
			return;
	if (g->lost_count < ARRAY_LEN(g->lost))
		g->lost[g->lost_count++] = what;
}

const char *guard_lost(const struct guard *g, size_t i)
{
	return i < g->lost_count ? g->lost[i] : NULL;
}

const char *guard_shown(const struct guard *g, const char *path)
{
	if (g->src->given && path_is_below(g->src->path, path) && strcmp(g->src->path, path) != 0)
		return path + strlen(g->src->path) + 1;
	return path;
}

const char *guard_as_option(const struct guard *g, const char *path)
{
	const char *cwd = g->who->cwd;

	return cwd && g->src->given && strcmp(cwd, g->src->path) == 0 ? guard_shown(g, path) : path;
}

void guard_tell(struct guard *g, const char *path, enum guard_action action, const char *why,
		const char *moved_to)
{
	AUTO_BUF restore = BUF_INIT(65536);

	for (size_t i = 0; i < g->flag_count && !moved_to; i++)
		if (g->flags[i].action == action &&
		    strcmp(g->flags[i].path, guard_shown(g, path)) == 0)
			return; /* told already */
	struct guard_flag *more = realloc(g->flags, (g->flag_count + 1) * sizeof(*more));

	if (!more)
		return;
	g->flags = more;
	struct guard_flag *f = &g->flags[g->flag_count++];
	*f = (struct guard_flag){.path = strdup(guard_shown(g, path)), .action = action};
	(void)snprintf(f->why, sizeof(f->why), "%s", why);
	if (!moved_to)
		return;
	quarantine_restore(&restore, moved_to, path);
	f->moved_to = strdup(moved_to);
	f->restore = buf_take(&restore);
}

void guard_deny(struct guard *g, const char *path, const char *hint, unsigned int count)
{
	struct guard_denial *more = realloc(g->denials, (g->denial_count + 1) * sizeof(*more));

	if (!more)
		return;
	g->denials = more;
	g->denials[g->denial_count++] =
		(struct guard_denial){.op = "write",
				      .rule = "protected",
				      .target = strdup(guard_shown(g, path)),
				      .hint = strdup(hint),
				      .count = count};
}

size_t guard_flags(const struct guard *g, const struct guard_flag **ret)
{
	*ret = g->flags;
	return g->flag_count;
}

size_t guard_denials(const struct guard *g, const struct guard_denial **ret)
{
	*ret = g->denials;
	return g->denial_count;
}

void guard_identity(char ret[40], uint64_t dev, uint64_t ino)
{
	(void)snprintf(ret, 40, "%llx:%llx", (unsigned long long)dev, (unsigned long long)ino);
}

/*
 * A grant of a path lifts that path. One of a protected directory (`.git`,
 * `.vscode`) lifts what lies in it too; one of an ordinary directory does not.
 */
bool guard_is_lifted(const struct guard *g, const char *path)
{
	static const struct protect_dir tree = {.place = PLACE_TREE, .role = ROLE_NONE};
	static const struct protect_dir git = {.place = PLACE_GIT, .role = ROLE_GITDIR};

	for (size_t i = 0; i < g->view->grant_count; i++) {
		const struct grant *gr = &g->view->grants[i];
		if (!gr->write || gr->linked)
			continue;
		if (strcmp(gr->path, path) == 0)
			return true;
		const char *name = strrchr(gr->path, '/');
		if (name && path_is_below(gr->path, path) &&
		    (protect_name(tree, "", name + 1) != PROTECT_NONE ||
		     (strcmp(name + 1, "hooks") == 0 &&
		      protect_name(git, "", name + 1) != PROTECT_NONE &&
		      nameset_get(&g->known, gr->path, NULL))))
			return true;
	}
	return false;
}

struct guard_root *guard_root_of(struct guard *g, const char *path)
{
	struct guard_root *best = NULL;

	for (size_t i = 0; i < g->root_count; i++)
		if (path_is_below(g->roots[i].path, path) &&
		    (!best || strlen(g->roots[i].path) > strlen(best->path)))
			best = &g->roots[i];
	return best;
}

/* A command can take its owner's, our, right to enter a directory away. */
static void let_in(struct guard *g, int fd)
{
	char self[64];
	struct stat st;

	if (fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 0100) ||
	    g->opened_count == MAX_GUARD_OPENED)
		return;
	int keep = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (keep < 0)
		return;
	g->opened[g->opened_count++] = (struct guard_opened){keep, st.st_mode & 07777};
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", keep);
	(void)chmod(self, (st.st_mode & 07777) | 0700);
}

static void give_back_modes(struct guard *g)
{
	char self[64];

	while (g->opened_count) {
		const struct guard_opened *o = &g->opened[--g->opened_count];
		(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", o->fd);
		(void)chmod(self, o->mode);
		(void)close(o->fd);
	}
}

int guard_open_parent(const struct guard_root *r, const char *path, const char **ret_name)
{
	const char *rest = path + strlen(r->path);
	int fd = fcntl(r->fd, F_DUPFD_CLOEXEC, 3);

	while (*rest == '/')
		rest++;
	/* Name by name: paths may be longer than one call takes, and no link is followed. */
	for (const char *slash = strchr(rest, '/'); slash && fd >= 0; slash = strchr(rest, '/')) {
		char name[1024];
		size_t n = (size_t)(slash - rest);
		if (n >= sizeof(name)) {
			(void)close(fd);
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(name, rest, n);
		name[n] = '\0';
		int next = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0 && errno == EACCES) {
			let_in(r->g, fd);
			next = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		}
		int saved = errno;
		(void)close(fd);
		errno = saved;
		fd = next;
		rest = slash + 1;
	}
	*ret_name = rest;
	if (fd >= 0 && geteuid() != 0)
		let_in(r->g, fd); /* what is in it is looked at next */
	return fd;
}

void guard_take(struct guard *g, struct guard_root *r, const char *path, const char *why)
{
	const char *name = NULL;
	char to[PATH_TEXT];

	AUTO_FD int dir = guard_open_parent(r, path, &name);
	if (dir < 0)
		return; /* its directory has gone, and it with it */
	char *above = strndup(path, (size_t)(name - path) - 1);
	bool taken = above && quarantine_take(&g->quarantine, dir, above, name, to);
	int sys = errno;
	free(above);
	if (taken)
		guard_tell(g, path, GUARD_QUARANTINED, why, to);
	else if (sys != ENOENT)
		guard_tell(g, path, GUARD_STUCK, strerror(sys), NULL);
}

struct guard_root *guard_add_root(struct guard *g, const char *path, struct protect_dir kind)
{
	struct stat st;

	if (g->root_count == MAX_GUARD_ROOTS) {
		guard_lose(g, "protection-of-grants");
		return NULL;
	}
	struct guard_root *r = &g->roots[g->root_count];
	*r = (struct guard_root){.g = g, .kind = kind, .lock = -1, .alone = true};
	r->fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r->fd < 0 || fstat(r->fd, &st) < 0) {
		if (r->fd >= 0)
			(void)close(r->fd);
		return NULL; /* core will say what is wrong with it */
	}
	(void)snprintf(r->path, sizeof(r->path), "%s", path);
	(void)snprintf(r->file, sizeof(r->file), "%llx-%llx", (unsigned long long)st.st_dev,
		       (unsigned long long)st.st_ino);
	g->root_count++;
	return r;
}

/* Unless it lies in one that is guarded already. */
static void add_root(struct guard *g, const char *path, struct protect_dir kind)
{
	if (!guard_root_of(g, path))
		(void)guard_add_root(g, path, kind);
}

static void find_roots(struct guard *g, const struct request *req)
{
	static const struct protect_dir tree = {.place = PLACE_TREE, .role = ROLE_NONE};
	static const struct protect_dir git = {.place = PLACE_GIT, .role = ROLE_GITDIR};

	if (g->src->given && req->mode == MODE_WORKSPACE_WRITE)
		add_root(g, g->src->path, tree);
	for (size_t i = 0; i < g->view->grant_count; i++) {
		const struct grant *gr = &g->view->grants[i];
		if (gr->write && S_ISDIR(gr->st.st_mode))
			add_root(g, gr->path, gr->linked ? git : tree);
	}
}

static bool put_path(const struct guard_root *r, const struct inventory *inv,
		     const struct inventory_find *f, struct buf *out)
{
	buf_clear(out);
	(void)buf_str(out, r->path);
	(void)buf_char(out, '/');
	inventory_path(inv, f, out);
	return !out->failed;
}

static void put_dir_path(const struct guard_root *r, const struct inventory *inv, uint32_t dir,
			 struct buf *out)
{
	buf_clear(out);
	(void)buf_str(out, r->path);
	if (inv->dirs[dir].parent != INVENTORY_NONE)
		(void)buf_char(out, '/');
	inventory_dir_path(inv, dir, out);
}

/* What exists now is known from here on. */
static bool learn(struct guard *g, struct guard_root *r)
{
	AUTO_BUF path = BUF_INIT(64u << 20);
	char identity[40];
	bool good = true;

	for (uint32_t i = 0; i < r->before.find_count; i++) {
		const struct inventory_find *f = &r->before.finds[i];
		guard_identity(identity, f->dev, f->ino);
		if (put_path(r, &r->before, f, &path) &&
		    nameset_get(&r->suspects, buf_cstr(&path), NULL))
			continue;
		good &= put_path(r, &r->before, f, &path) &&
			nameset_put(&g->known, buf_cstr(&path), i) &&
			nameset_put(&g->same, identity, 1);
	}
	for (uint32_t i = 0; i < r->before.dir_count; i++) {
		const struct inventory_dir *d = &r->before.dirs[i];
		if (d->role == ROLE_GITDIR && d->given == ROLE_NONE) {
			put_dir_path(r, &r->before, i, &path);
			good &= nameset_put(&g->layouts, buf_cstr(&path), 1);
		}
		if (d->role != ROLE_GITDIR && d->role != ROLE_OBJECTS)
			continue;
		guard_identity(identity, d->dev, d->ino);
		good &= nameset_put(&g->gitdirs, identity, 1);
	}
	return good;
}

/* Git directories that a call has made count as such once it is over, as long as they are. */
static void learn_after(struct guard_root *r)
{
	char identity[40];

	nameset_release(&r->gitdirs_after);
	for (uint32_t i = 0; i < r->after.dir_count; i++) {
		const struct inventory_dir *d = &r->after.dirs[i];
		if (d->role != ROLE_GITDIR && d->role != ROLE_OBJECTS)
			continue;
		guard_identity(identity, d->dev, d->ino);
		(void)nameset_put(&r->gitdirs_after, identity, 1);
	}
}

const char *guard_root_name(const struct guard_root *r)
{
	const char *slash = strrchr(r->path, '/');

	return slash && slash[1] ? slash + 1 : "/";
}

/* What is there and new, with all that is needed to decide about it. */
struct found {
	char *path;
	char *layout; /* its directory, if its entries made that a git directory just now */
	enum protect_class class;
	unsigned char type;
	char why[200];
};

struct findings {
	struct found *v;
	size_t n, cap;
};

static struct found *add_found(struct findings *list, const char *path)
{
	if (list->n == list->cap) {
		size_t cap = list->cap ? list->cap * 2 : 32;
		struct found *more = realloc(list->v, cap * sizeof(*more));
		if (!more)
			return NULL;
		list->v = more;
		list->cap = cap;
	}
	struct found *f = &list->v[list->n];
	*f = (struct found){.path = strdup(path)};
	if (!f->path)
		return NULL;
	list->n++;
	return f;
}

static void release_findings(struct findings *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free(list->v[i].path);
		free(list->v[i].layout);
	}
	free(list->v);
}

/* A pin that the host replaced: told, unless nobody can say who it was. */
static bool is_settled(struct guard *g, const char *path, const struct inventory_find *now,
		       const struct inventory_find *then)
{
	/* Removed by the host in between: a number that is the same says nothing. */
	if (nameset_get(&g->loose, path, NULL))
		return false;
	if (now->dev == then->dev && now->ino == then->ino)
		return true;
	if (nameset_get(&g->put_back, path, NULL))
		return true; /* told when it happened */
	if (!nameset_get(&g->pins, path, NULL))
		return false;
	guard_tell(g, path, GUARD_REPLACED, "replaced from outside while the call ran", NULL);
	return true;
}

/* The directory that `f` lies in, if its layout made it a git directory just now. */
static char *new_layout(struct guard *g, struct guard_root *r, const struct inventory_find *f)
{
	const struct inventory_dir *d = &r->after.dirs[f->dir];
	AUTO_BUF path = BUF_INIT(64u << 20);

	if (d->given != ROLE_NONE || d->role != ROLE_GITDIR)
		return NULL;
	put_dir_path(r, &r->after, f->dir, &path);
	return nameset_get(&g->layouts, buf_cstr(&path), NULL) ? NULL : buf_take(&path);
}

bool guard_is_recent(const struct guard_root *r, const char *path, int64_t begin_ns)
{
	const char *name = NULL;
	struct stat st;

	AUTO_FD int dir = guard_open_parent(r, path, &name);
	if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return true;
	return (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec >= begin_ns;
}

/* A find of the scan at the end: known, moved along with its directory, or new. */
static void consider(struct guard *g, struct guard_root *r, const struct inventory_find *f,
		     struct buf *path, struct findings *list)
{
	char identity[40];
	uint32_t i = 0;

	if (!put_path(r, &r->after, f, path))
		return;
	const char *p = buf_cstr(path);
	if (guard_is_lifted(g, p))
		return;
	bool known = nameset_get(&g->known, p, &i) && i < r->before.find_count;
	/* A list that was harmless at the start could be written: it is looked at again. */
	bool state = f->class == PROTECT_TODO || f->class == PROTECT_STATE;
	bool open = known && state && !nameset_get(&g->pins, p, NULL);
	if (known && !open && is_settled(g, p, f, &r->before.finds[i]))
		return;
	guard_identity(identity, f->dev, f->ino);
	/* A directory above it was renamed; it was read-only all the time. (A number of a file
	 * that is gone can be another's by now, but that one is recent.) */
	if (!known && nameset_get(&g->same, identity, NULL) && !state &&
	    !guard_is_recent(r, p, g->begin_ns))
		return;
	struct found *found = add_found(list, p);
	if (!found)
		return;
	found->class = (enum protect_class)f->class;
	found->type = f->type;
	found->layout = new_layout(g, r, f);
}

/* Every file of a directory of tools' configuration, as candidates to stay. */
static void list_files(const char *path, int dir, struct findings *files, int depth)
{
	AUTO_BUF sub = BUF_INIT(65536);

	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	if (!d) {
		if (fd >= 0)
			(void)close(fd);
		return;
	}
	for (struct dirent *e = readdir(d); e && files->n < MAX_TOOL_FILES; e = readdir(d)) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		buf_clear(&sub);
		if (buf_printf(&sub, "%s/%s", path, e->d_name) < 0)
			continue;
		AUTO_FD int in = openat(dirfd(d), e->d_name,
					O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (in >= 0 && depth < 32)
			list_files(buf_cstr(&sub), in, files, depth + 1);
		else
			(void)add_found(files, buf_cstr(&sub));
	}
	(void)closedir(d);
}

/* The work tree that holds a path: the nearest `.git` above it that was there before. */
static bool work_of(struct guard *g, struct guard_root *r, const char *path, char ret[PATH_TEXT])
{
	char dir[PATH_TEXT];
	char git[PATH_TEXT + 8];

	if (strlen(path) >= sizeof(dir))
		return false;
	(void)snprintf(dir, sizeof(dir), "%s", path);
	for (char *slash = strrchr(dir, '/'); slash && slash != dir; slash = strrchr(dir, '/')) {
		*slash = '\0';
		if (!path_is_below(r->path, dir))
			return false;
		(void)snprintf(git, sizeof(git), "%s/.git", dir);
		if (nameset_get(&g->known, git, NULL)) {
			memcpy(ret, dir, strlen(dir) + 1);
			return true;
		}
	}
	return false;
}

/*
 * Configuration of tools that has come: what git knows at that place from before
 * stays, file by file; the rest goes.
 */
static void settle_tool(struct guard *g, struct guard_root *r, const struct found *f)
{
	const char *why = protect_reason(PROTECT_TOOL);
	struct findings files = {.n = 0};
	char work[PATH_TEXT];
	size_t known = 0;

	if (!work_of(g, r, f->path, work)) {
		guard_take(g, r, f->path, why);
		return;
	}
	const char *name = NULL;
	AUTO_FD int above = guard_open_parent(r, f->path, &name);
	AUTO_FD int dir =
		above < 0 ? -1
			  : openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir >= 0)
		list_files(f->path, dir, &files, 0);
	else
		(void)add_found(&files, f->path);
	struct tracked_file *asks = calloc(files.n + 1, sizeof(*asks));
	for (size_t i = 0; asks && i < files.n; i++)
		asks[i] = (struct tracked_file){.path = files.v[i].path, .work = work};
	if (asks && files.n && files.n < MAX_TOOL_FILES)
		tracked_find(g, asks, files.n);
	for (size_t i = 0; asks && i < files.n; i++)
		known += asks[i].known;
	if (!known)
		guard_take(g, r, f->path, why);
	for (size_t i = 0; known && i < files.n; i++)
		if (!asks[i].known)
			guard_take(g, r, files.v[i].path, why);
	free(asks);
	release_findings(&files);
}

/*
 * What may not stay was there before, as something that git did not look at: what
 * has made it git's goes instead.
 */
static void break_layout(struct guard *g, struct guard_root *r, const char *dir)
{
	AUTO_BUF path = BUF_INIT(64u << 20);
	const char *name = NULL;
	bool any = false;

	(void)buf_printf(&path, "%s/.", dir);
	AUTO_FD int fd = guard_open_parent(r, buf_cstr(&path), &name);
	int own = fd < 0 ? -1 : openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = own < 0 ? NULL : fdopendir(own);
	if (!d) {
		if (own >= 0)
			(void)close(own);
		return;
	}
	for (struct dirent *e = readdir(d); e && !any; e = readdir(d)) {
		if (!protect_layout_bit(e->d_name))
			continue;
		buf_clear(&path);
		if (buf_printf(&path, "%s/%s", dir, e->d_name) < 0 ||
		    !guard_is_recent(r, buf_cstr(&path), g->begin_ns))
			continue;
		guard_take(g, r, buf_cstr(&path), protect_reason(PROTECT_LAYOUT));
		any = true;
	}
	(void)closedir(d);
}

static void settle(struct guard *g, struct guard_root *r, const struct found *f)
{
	struct judged j = {.class = f->class, .type = f->type};

	if (f->class == PROTECT_TOOL) {
		settle_tool(g, r, f);
		return;
	}
	if (guard_may_stay(g, r, f->path, &j, false))
		return;
	bool hooks = f->class == PROTECT_HOOKS && f->type == DT_DIR;
	bool old = hooks ? guard_sift_hooks(g, r, f->path, !f->layout)
			 : f->layout && !guard_is_recent(r, f->path, g->begin_ns);
	if (old)
		break_layout(g, r, f->layout);
	else if (!hooks)
		guard_take(g, r, f->path, j.why[0] ? j.why : protect_reason(f->class));
}

/* Links that led nowhere when the call began and lead somewhere now. */
static void settle_dangling(struct guard *g)
{
	char target[PATH_TEXT];
	char self[64];

	for (size_t i = 0; i < g->dangling.cap; i++) {
		const char *path = g->dangling.v[i];
		if (!path)
			continue;
		AUTO_FD int fd = open(path, O_PATH | O_CLOEXEC);
		if (fd < 0)
			continue;
		(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
		ssize_t n = readlink(self, target, sizeof(target) - 1);
		if (n <= 0)
			continue;
		target[n] = '\0';
		struct guard_root *r = guard_root_of(g, target);
		if (r && strcmp(r->path, target) != 0)
			guard_take(
				g, r, target,
				"a protected link or a git configuration leads to it, and it was not there");
	}
}

/* Files of a stopped rebase that may be written: their directory does not show it. */
static bool has_open_state(const struct guard *g, const struct guard_root *r)
{
	AUTO_BUF path = BUF_INIT(64u << 20);

	for (uint32_t i = 0; i < r->before.find_count; i++) {
		const struct inventory_find *f = &r->before.finds[i];
		if ((f->class == PROTECT_TODO || f->class == PROTECT_STATE) &&
		    put_path(r, &r->before, f, &path) &&
		    !nameset_get(&g->pins, buf_cstr(&path), NULL))
			return true;
	}
	return false;
}

/* Looks at a root as it is now. False: nothing is new, or it could not be looked at. */
static bool scan_after(struct guard *g, struct guard_root *r)
{
	struct inventory now;
	struct err ignored = {0};
	bool same = false;
	bool quick = !r->have_after && !r->suspects.n && !has_open_state(g, r);

	struct inventory_root root = {r->fd, r->kind, guard_root_name(r)};
	if (inventory_scan(&root, r->have_after ? &r->after : &r->before, INVENTORY_FORCE, &now,
			   quick ? &same : NULL, &ignored) < 0) {
		guard_lose(g, "quarantine");
		return false;
	}
	if (same)
		return false;
	if (r->have_after)
		inventory_release(&r->after);
	r->after = now;
	r->have_after = true;
	if (now.full)
		guard_lose(g, "protection-of-all-directories");
	return true;
}

void guard_early(struct guard *g)
{
	for (size_t i = 0; i < g->root_count; i++) {
		struct guard_root *r = &g->roots[i];
		r->news = scan_after(g, r);
		r->looked = true;
	}
}

/* Scans a root and moves what may not stay. Returns whether anything was moved. */
static bool clean_root(struct guard *g, struct guard_root *r)
{
	AUTO_BUF path = BUF_INIT(64u << 20);
	struct findings list = {.n = 0};
	size_t told = g->flag_count;

	bool news = r->looked ? r->news : scan_after(g, r);
	r->looked = false;
	if (!news)
		return false;
	learn_after(r);
	for (uint32_t i = 0; i < r->after.find_count; i++)
		consider(g, r, &r->after.finds[i], &path, &list);
	for (size_t i = 0; i < list.n; i++)
		settle(g, r, &list.v[i]);
	release_findings(&list);
	return g->flag_count != told;
}

/*
 * All roots from `first` to `last`, until a round moves nothing: what led to
 * something that was moved may not stay either. Each round reads again only what
 * has changed.
 */
static void clean(struct guard *g, size_t first, size_t last)
{
	bool moved = true;

	for (int round = 0; round < MAX_ROUNDS && moved; round++) {
		moved = false;
		for (size_t i = first; i < last; i++) {
			struct guard_root *r = &g->roots[i];
			moved |= clean_root(g, r);
		}
	}
}

/* A call over this place was killed: what has come since it began is judged now. */
static int make_up(struct guard *g, struct guard_root *r, struct err *e)
{
	if (!learn(g, r))
		return err_set(e, ERR_INTERNAL, "out of memory");
	clean(g, (size_t)(r - g->roots), (size_t)(r - g->roots) + 1);
	nameset_release(&g->known);
	nameset_release(&g->same);
	nameset_release(&g->gitdirs);
	nameset_release(&g->layouts);
	if (r->have_after) {
		inventory_release(&r->before);
		r->before = r->after;
		r->after = (struct inventory){.read = 0};
		r->have_after = false;
	}
	return 0;
}

static bool is_worth_saving(const struct inventory *inv, const struct inventory *old)
{
	return !inv->full &&
	       (inv->read > 16 || inv->read > inv->dir_count / 50 || !old ||
		inv->find_count != old->find_count || inv->inside_count != old->inside_count);
}

/*
 * Another call is running here: what is new since the inventory that was saved
 * before it may be its work, whatever place it has by the time either ends.
 */
static void suspect(struct guard_root *r, const struct inventory *old)
{
	AUTO_BUF path = BUF_INIT(64u << 20);
	struct nameset was = {.n = 0};

	for (uint32_t i = 0; i < old->find_count; i++)
		if (put_path(r, old, &old->finds[i], &path))
			(void)nameset_put(&was, buf_cstr(&path), 1);
	for (uint32_t i = 0; i < r->before.find_count; i++)
		if (put_path(r, &r->before, &r->before.finds[i], &path) &&
		    !nameset_get(&was, buf_cstr(&path), NULL))
			(void)nameset_put(&r->suspects, buf_cstr(&path), 1);
	nameset_release(&was);
}

static int begin_root(struct guard *g, struct guard_root *r, int state, struct err *e)
{
	struct inventory old = {.read = 0};
	bool killed = state >= 0 && guard_begin_count(r, state);
	bool have = state >= 0 && inventory_load(state, r->file, &old);
	int rc = 0;

	if (killed && have) {
		/* Its tree ends with it, by the kernel, but not before we get here. */
		(void)nanosleep(&(struct timespec){.tv_nsec = KILLED_NS}, NULL);
		r->before = old;
		rc = make_up(g, r, e);
		old = r->before;
		r->before = (struct inventory){.read = 0};
	}
	bool same = false;
	struct inventory_root root = {r->fd, r->kind, guard_root_name(r)};
	if (rc == 0)
		rc = inventory_scan(&root, have ? &old : NULL, 0, &r->before, &same, e);
	if (same) {
		r->before = old;
		r->before.read = 0;
		return 0;
	}
	if (rc == 0 && r->before.full)
		guard_lose(g, "protection-of-all-directories");
	if (rc == 0 && have && !r->alone && !old.full)
		suspect(r, &old);
	if (rc == 0 && state >= 0 && r->alone && is_worth_saving(&r->before, have ? &old : NULL))
		inventory_save(state, r->file, &r->before);
	inventory_release(&old);
	return rc;
}

/* A `.git` file that was not followed: git inside finds no repository, and why. */
static void tell_link(struct guard *g)
{
	AUTO_BUF hint = BUF_INIT(16384);
	char path[PATH_TEXT + 8];

	if (!g->link->why[0])
		return;
	(void)snprintf(path, sizeof(path), "%s/.git", g->src->path);
	(void)buf_printf(&hint,
			 "the git directory that .git names is not shown inside, so git finds no "
			 "repository there: %s; --write DIR grants it",
			 g->link->why);
	guard_deny(g, path, buf_cstr(&hint), 1);
	if (g->denial_count) {
		g->denials[g->denial_count - 1].op = "read";
		g->denials[g->denial_count - 1].rule = "git-link";
	}
}

int guard_begin(const struct guard_order *o, struct guard **ret, struct err *e)
{
	struct guard *g = calloc(1, sizeof(*g));
	struct timespec now;

	*ret = NULL;
	if (!g)
		return err_set(e, ERR_INTERNAL, "out of memory");
	g->who = o->who;
	g->src = o->src;
	g->view = o->view;
	g->link = o->link;
	g->idmap = o->idmap ? (uint32_t)MOUNT_IDMAP : 0;
	g->inotify = g->again = -1;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	g->begin_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - TICK_NS;
	quarantine_init(&g->quarantine, o->who, o->session);
	find_roots(g, o->req);
	if (!g->root_count && g->link->why[0] == '\0') {
		guard_free(g);
		return 0;
	}
	AUTO_FD int state = guard_open_state(g);
	int rc = 0;
	guard_read_links(g, state);
	for (size_t i = 0; i < g->root_count && rc == 0; i++)
		rc = begin_root(g, &g->roots[i], state, e);
	for (size_t i = 0; i < g->root_count && rc == 0; i++) {
		if (!learn(g, &g->roots[i]))
			rc = err_set(e, ERR_INTERNAL, "out of memory");
	}
	for (size_t i = 0; i < g->root_count && rc == 0; i++) {
		rc = guard_add_pins(g, &g->roots[i], e);
		guard_open_repos(g, &g->roots[i]);
	}
	if (rc < 0) {
		guard_free(g);
		return -1;
	}
	guard_watch_begin(g);
	tell_link(g);
	*ret = g;
	return 0;
}

void guard_attach(struct guard *g, int again_fd)
{
	g->again = again_fd;
}

/* A configuration that git tried to write, and that is as it was. */
static void deny_locks(struct guard *g)
{
	AUTO_BUF hint = BUF_INIT(16384);
	struct stat st;
	char identity[40];
	uint32_t i = 0;

	for (size_t k = 0; k < g->locks.cap; k++) {
		const char *path = g->locks.v[k];
		struct guard_root *r = path ? guard_root_of(g, path) : NULL;
		if (!r || !nameset_get(&g->known, path, &i) || lstat(path, &st) < 0)
			continue;
		guard_identity(identity, st.st_dev, st.st_ino);
		if (!nameset_get(&g->same, identity, NULL))
			continue; /* the host has written it */
		buf_clear(&hint);
		(void)buf_printf(&hint,
				 "git wanted to write its configuration %s, which stays as it is "
				 "in direct mode: --write %s allows that; --review holds changes "
				 "for review instead",
				 guard_shown(g, path), guard_as_option(g, path));
		guard_deny(g, path, buf_cstr(&hint), g->locks.value[k]);
	}
}

void guard_end(struct guard *g)
{
	AUTO_FD int state = guard_open_state(g);

	guard_step(g);
	guard_watch_end(g);
	guard_find_links(g, state);
	clean(g, 0, g->root_count);
	for (size_t i = 0; i < g->root_count; i++)
		tracked_remember(g, &g->roots[i]);
	settle_dangling(g);
	give_back_modes(g);
	deny_locks(g);
	tracked_deny(g);
	for (size_t i = 0; i < g->root_count; i++) {
		struct guard_root *r = &g->roots[i];
		bool last = guard_end_count(r);
		if (last && state >= 0 && r->have_after && is_worth_saving(&r->after, &r->before))
			inventory_save(state, r->file, &r->after);
	}
}

static void free_flags(struct guard *g)
{
	for (size_t i = 0; i < g->flag_count; i++) {
		free(g->flags[i].path);
		free(g->flags[i].moved_to);
		free(g->flags[i].restore);
	}
	for (size_t i = 0; i < g->denial_count; i++) {
		free(g->denials[i].target);
		free(g->denials[i].hint);
	}
	free(g->flags);
	free(g->denials);
}

void guard_free(struct guard *g)
{
	if (!g)
		return;
	guard_watch_end(g);
	give_back_modes(g);
	for (size_t i = 0; i < g->root_count; i++) {
		struct guard_root *r = &g->roots[i];
		if (r->lock >= 0)
			(void)guard_end_count(r); /* nothing was run */
		(void)close(r->fd);
		inventory_release(&r->before);
		inventory_release(&r->after);
		nameset_release(&r->gitdirs_after);
		nameset_release(&r->suspects);
	}
	for (size_t i = 0; i < g->repo_count; i++) {
		if (g->repos[i].index >= 0)
			(void)close(g->repos[i].index);
		free(g->repos[i].packed);
	}
	nameset_release(&g->pins);
	nameset_release(&g->known);
	nameset_release(&g->same);
	nameset_release(&g->gitdirs);
	nameset_release(&g->layouts);
	nameset_release(&g->loose);
	nameset_release(&g->put_back);
	nameset_release(&g->dangling);
	nameset_release(&g->locks);
	quarantine_release(&g->quarantine);
	free_flags(g);
	free(g->tips);
	free(g);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done at the end of a call: the tree is looked at again, and what is new
 * at a protected name is judged and moved, until a round moves nothing. Every
 * process of the sandbox is gone by then; another sandbox, or the host, may still
 * change what is looked at, so everything goes by descriptors without links.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/path.h"
#include "run/guard_parts.h"

#define MAX_ROUNDS 8        /* scan and move until nothing is found any more */
#define MAX_TOOL_FILES 4096 /* of one directory that came; with more all of it goes */

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

/* What is there and new, with all that is needed to decide about it. */
struct found {
	char *path;
	char *layout; /* its directory, if its entries made that a git directory just now */
	enum protect_class class;
	unsigned char type;
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
	guard_put_dir(r, &r->after, f->dir, &path);
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

	if (!guard_put_path(r, &r->after, f, path))
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
		if (path_is_dots(e->d_name))
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

/* A `.git` that has come with the call, as of `git worktree add`, and may stay. */
static bool is_new_work(struct guard *g, struct guard_root *r, const char *git)
{
	struct judged j = {.class = PROTECT_GIT};
	struct stat st;

	if (lstat(git, &st) < 0)
		return false;
	j.type = (unsigned char)IFTODT(st.st_mode);
	return guard_may_stay(g, r, git, &j, false);
}

/* The work tree that holds a path: the nearest `.git` above it. */
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
		if (nameset_get(&g->known, git, NULL) || is_new_work(g, r, git)) {
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
static bool break_layout(struct guard *g, struct guard_root *r, const char *dir)
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
		return false;
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
	return any;
}

/* Programs that a configuration names relative to the work tree, in a new one. */
static void take_relative(struct guard *g, struct guard_root *r, const char *git)
{
	AUTO_BUF path = BUF_INIT(4 * PATH_TEXT);
	char clean[PATH_TEXT];
	struct stat st;

	for (size_t i = 0; i < g->relative.cap; i++) {
		if (!g->relative.v[i])
			continue;
		buf_clear(&path);
		(void)buf_printf(&path, "%s/../%s", git, g->relative.v[i]);
		if (!path.failed && path_lexical(buf_cstr(&path), clean) &&
		    guard_root_of(g, clean) == r && lstat(clean, &st) == 0 &&
		    !nameset_get(&g->pins, clean, NULL))
			guard_take(g, r, clean, protect_reason(PROTECT_HOOKS));
	}
}

static void settle(struct guard *g, struct guard_root *r, const struct found *f)
{
	struct judged j = {.class = f->class, .type = f->type};

	if (f->class == PROTECT_TOOL) {
		settle_tool(g, r, f);
		return;
	}
	if (guard_may_stay(g, r, f->path, &j, false)) {
		if (f->class == PROTECT_GIT)
			take_relative(g, r, f->path);
		return;
	}
	bool hooks = f->class == PROTECT_HOOKS && f->type == DT_DIR;
	bool old = hooks ? guard_sift_hooks(g, r, f->path, !f->layout)
			 : f->layout && !guard_is_recent(r, f->path, g->begin_ns);
	bool goes = old ? !break_layout(g, r, f->layout) : !hooks;
	if (goes)
		guard_take(g, r, f->path, j.why[0] ? j.why : protect_reason(f->class));
}

/*
 * A path that led nowhere when the call began, of a link or in a configuration, and
 * leads somewhere now: a link on the way, or else the thing itself, is new.
 */
static void settle_path(struct guard *g, const char *path)
{
	struct guard_root *r = guard_root_of(g, path);
	char part[PATH_TEXT];
	struct stat st;

	if (!r || strcmp(r->path, path) == 0)
		return;
	for (const char *end = path + strlen(r->path); *end;) {
		end += 1 + strcspn(end + 1, "/");
		(void)snprintf(part, sizeof(part), "%.*s", (int)(end - path), path);
		if (lstat(part, &st) < 0)
			return;
		if (*end && !S_ISLNK(st.st_mode))
			continue;
		guard_take(
			g, r, part,
			"a protected link or a git configuration leads to it, and it was not there");
		return;
	}
}

void guard_settle_dangling(struct guard *g)
{
	for (size_t i = 0; i < g->dangling.cap; i++)
		if (g->dangling.v[i])
			settle_path(g, g->dangling.v[i]);
}

/* Files of a stopped rebase that may be written: their directory does not show it. */
static bool has_open_state(const struct guard *g, const struct guard_root *r)
{
	AUTO_BUF path = BUF_INIT(64u << 20);

	for (uint32_t i = 0; i < r->before.find_count; i++) {
		const struct inventory_find *f = &r->before.finds[i];
		if ((f->class == PROTECT_TODO || f->class == PROTECT_STATE) &&
		    guard_put_path(r, &r->before, f, &path) &&
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

	struct inventory_root root = {.fd = r->fd,
				      .kind = r->kind,
				      .name = guard_root_name(r),
				      .path = r->path,
				      .ask = &g->masks.ask};
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
		if (r->quiet)
			continue;
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
	for (size_t i = 0; i < list.n; i++) {
		settle(g, r, &list.v[i]);
		guard_give_back_modes(g);
	}
	release_findings(&list);
	return g->flag_count != told;
}

/*
 * All roots from `first` to `last`, until a round moves nothing: what led to
 * something that was moved may not stay either. Each round reads again only what
 * has changed.
 */
void guard_clean(struct guard *g, size_t first, size_t last)
{
	bool moved = true;

	for (int round = 0; round < MAX_ROUNDS && moved; round++) {
		moved = false;
		for (size_t i = first; i < last; i++) {
			struct guard_root *r = &g->roots[i];
			moved |= !r->quiet && clean_root(g, r);
		}
	}
}

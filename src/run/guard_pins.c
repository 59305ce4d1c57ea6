/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is pinned: every protected name that exists, read-only, and in a git
 * directory the directories on the way to it, so that none can be renamed away.
 * Opens files of git directories for reading; changes nothing.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "policy/gitconfig.h"
#include "policy/gitjudge.h"
#include "run/guard_parts.h"

#define MAX_CONFIG_BYTES 262144u
#define MAX_INCLUDES 10 /* as git: config.c, MAX_INCLUDE_DEPTH */

struct pin {
	char *path;
	bool write;
	const struct grant *grant; /* not a pin, but this grant, which lies over one; else NULL */
};

struct pins {
	struct guard *g;
	struct guard_root *r;
	struct pin *v;
	size_t n, cap;
	struct nameset seen;
	bool failed;
};

static void add_one(struct pins *p, const char *path, bool write, const struct grant *grant)
{
	if (strlen(path) >= MAX_PLAN_PATH) {
		guard_lose(p->g, "protection-of-long-paths");
		return;
	}
	uint32_t at = 0;
	if (p->failed)
		return;
	if (p->v && nameset_get(&p->seen, path, &at)) {
		p->v[at].write =
			p->v[at].write && write; /* read-only for one reason is read-only */
		return;
	}
	if (p->n == p->cap) {
		size_t cap = p->cap ? p->cap * 2 : 32;
		struct pin *more = realloc(p->v, cap * sizeof(*more));
		if (!more) {
			p->failed = true;
			return;
		}
		p->v = more;
		p->cap = cap;
	}
	char *copy = strdup(path);
	if (!copy || !nameset_put(&p->seen, path, (uint32_t)p->n)) {
		free(copy);
		p->failed = true;
		return;
	}
	p->v[p->n++] = (struct pin){.path = copy, .write = write, .grant = grant};
}

static void add(struct pins *p, const char *path, bool write)
{
	/* A mask can be neither written, renamed nor removed either. */
	if (!guard_is_lifted(p->g, path) && !nameset_get(&p->g->masks.at, path, NULL))
		add_one(p, path, write, NULL);
}

static void add_dir(struct pins *p, uint32_t dir)
{
	AUTO_BUF path = BUF_INIT(64u << 20);

	if (p->r->before.dirs[dir].parent == INVENTORY_NONE)
		return; /* the root is a mount already */
	guard_put_dir(p->r, &p->r->before, dir, &path);
	if (!path.failed)
		add(p, buf_cstr(&path), true);
}

/* The directories of a git directory above a find, up to what holds the git directory. */
static void add_chain(struct pins *p, uint32_t dir)
{
	const struct inventory *inv = &p->r->before;

	for (uint32_t d = dir; d != INVENTORY_NONE && inv->dirs[d].place == PLACE_GIT;
	     d = inv->dirs[d].parent)
		add_dir(p, d);
}

/* The way from a link to what it leads to, as far as that lies in the root. */
struct trail {
	struct pins *p;
	char done[PATH_TEXT];     /* absolute, no links in it; "" is the root directory */
	char rest[2 * PATH_TEXT]; /* what is left */
	int links;
};

static bool is_in_root(const struct trail *t)
{
	const char *root = t->p->r->path;

	return path_is_below(root, t->done) && strcmp(root, t->done) != 0;
}

/* A link on the way: its text goes before the rest. */
static bool go_through(struct trail *t)
{
	char text[PATH_TEXT];
	char joined[2 * PATH_TEXT];
	ssize_t n = readlink(t->done, text, sizeof(text) - 1);

	if (n <= 0 || ++t->links > MAX_LINKS)
		return false;
	text[n] = '\0';
	if ((size_t)snprintf(joined, sizeof(joined), "%s/%s", text, t->rest) >= sizeof(t->rest))
		return false;
	memcpy(t->rest, joined, strlen(joined) + 1);
	char *slash = strrchr(t->done, '/');
	t->done[text[0] == '/' || !slash ? 0 : slash - t->done] = '\0';
	return true;
}

/* One name further. False: it is not there, or too long. */
static bool go_on(struct trail *t)
{
	size_t len = strcspn(t->rest, "/");
	size_t at = strlen(t->done);
	struct stat st;

	if (len == 2 && memcmp(t->rest, "..", 2) == 0) {
		char *slash = strrchr(t->done, '/');
		if (slash)
			*slash = '\0';
	} else if (len && !(len == 1 && t->rest[0] == '.')) {
		if (at + len + 2 > sizeof(t->done))
			return false;
		t->done[at] = '/';
		memcpy(t->done + at + 1, t->rest, len);
		t->done[at + 1 + len] = '\0';
	}
	size_t skip = len + (t->rest[len] == '/');
	memmove(t->rest, t->rest + skip, strlen(t->rest + skip) + 1);
	if (!t->done[0] || lstat(t->done, &st) < 0)
		return !t->done[0];
	if (!S_ISLNK(st.st_mode)) {
		/* A directory on the way cannot be moved and another be put in its place. */
		if (t->rest[0] && is_in_root(t))
			add(t->p, t->done, true);
		return true;
	}
	if (is_in_root(t))
		add(t->p, t->done, false);
	return go_through(t);
}

/* Where the trail would end, if what is missing came: it must not. */
static void note_dangling(struct trail *t)
{
	AUTO_BUF path = BUF_INIT(4 * PATH_TEXT);
	char clean[PATH_TEXT];

	(void)buf_printf(&path, "%s/%s", t->done, t->rest);
	if (!path.failed && path_lexical(buf_cstr(&path), clean))
		t->p->failed |= !nameset_put(&t->p->g->dangling, clean, 1);
}

/* What a protected link leads to is protected too, and every link and directory on the way. */
static void add_target(struct pins *p, const char *path, bool write)
{
	struct trail t = {.p = p};

	(void)snprintf(t.done, sizeof(t.done), "%s", path);
	if (!go_through(&t))
		return;
	while (t.rest[0])
		if (!go_on(&t)) {
			note_dangling(&t);
			return;
		}
	if (is_in_root(&t))
		add(p, t.done, write);
}

struct named {
	struct pins *p;
	const char *git;  /* directory of the configuration */
	const char *work; /* work tree, or the git directory of a bare repository */
	int depth;        /* of includes */
};

/* A path that git follows, from an absolute directory: all on the way, and the end. */
static void add_way(struct pins *p, const char *base, const char *path, bool write,
		    char ret_end[PATH_TEXT])
{
	struct trail t = {.p = p};

	ret_end[0] = '\0';
	if (path[0] != '/')
		(void)snprintf(t.done, sizeof(t.done), "%s", base);
	if ((size_t)snprintf(t.rest, sizeof(t.rest), "%s", path) >= sizeof(t.rest))
		return;
	while (t.rest[0])
		if (!go_on(&t)) {
			note_dangling(&t);
			return;
		}
	if (!is_in_root(&t))
		return;
	add(p, t.done, write);
	memcpy(ret_end, t.done, sizeof(t.done));
}

/* A directory of hooks that a configuration names: links in it lead to programs too. */
static void add_named(struct pins *p, const char *base, const char *path)
{
	AUTO_BUF link = BUF_INIT(2 * PATH_TEXT);
	char end[PATH_TEXT];
	struct stat st;

	add_way(p, base, path, false, end);
	DIR *d = end[0] ? opendir(end) : NULL;
	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
		buf_clear(&link);
		if (buf_printf(&link, "%s/%s", end, e->d_name) == 0 &&
		    lstat(buf_cstr(&link), &st) == 0 && S_ISLNK(st.st_mode))
			add_target(p, buf_cstr(&link), false);
	}
	if (d)
		(void)closedir(d);
}

static void read_config(const struct named *n, const char *path);

/* Files that a configuration names and git runs or reads as more of it. */
static bool take_named(void *self, const struct gitconfig_entry *e)
{
	const struct named *n = self;
	bool core = strcmp(e->section, "core") == 0 && !e->sub;
	bool include = strcmp(e->section, "include") == 0 || strcmp(e->section, "includeif") == 0;
	char end[PATH_TEXT];

	if (!e->value || !e->value[0] || e->value[0] == '~')
		return true;
	if (core && (strcmp(e->key, "hookspath") == 0 ||
		     (strcmp(e->key, "fsmonitor") == 0 && strchr(e->value, '/')))) {
		add_named(n->p, n->work, e->value);
		if (e->value[0] != '/')
			n->p->failed |= !nameset_put(&n->p->g->relative, e->value, 1);
	}
	if (include && strcmp(e->key, "path") == 0 && n->depth < MAX_INCLUDES) {
		add_way(n->p, n->git, e->value, false, end);
		if (end[0])
			read_config(n, end);
	}
	return true;
}

/* The configuration at a path; what it includes, too. */
static void read_config(const struct named *n, const char *path)
{
	char dir[PATH_TEXT];
	struct named sub = {n->p, dir, n->work, n->depth + 1};
	struct stat st;

	(void)snprintf(dir, sizeof(dir), "%s", path);
	char *slash = strrchr(dir, '/');
	if (!slash)
		return;
	*slash = '\0';
	AUTO_FD int fd = guard_open_file(dir, slash + 1, &st);
	char *text = fd < 0 ? NULL : guard_read_file(fd, &st, MAX_CONFIG_BYTES);
	if (text)
		(void)gitconfig_parse(text, (size_t)st.st_size, take_named, &sub);
	free(text);
}

static void add_config(struct pins *p, const char *path)
{
	char work[PATH_TEXT];
	struct named n = {.p = p, .work = work};

	if ((size_t)snprintf(work, sizeof(work), "%s", path) >= sizeof(work))
		return;
	*strrchr(work, '/') = '\0';
	if (strlen(work) > 5 && strcmp(work + strlen(work) - 5, "/.git") == 0)
		work[strlen(work) - 5] = '\0';
	read_config(&n, path);
}

/* A `.git` file, or a commondir: the way that git goes from it. */
static void add_gitfile(struct pins *p, const struct inventory_find *f, const char *path)
{
	char dir[PATH_TEXT];
	char to[PATH_TEXT];
	char end[PATH_TEXT];
	struct stat st;

	if (f->type != DT_REG || (size_t)snprintf(dir, sizeof(dir), "%s", path) >= sizeof(dir))
		return;
	char *slash = strrchr(dir, '/');
	*slash = '\0';
	AUTO_FD int fd = guard_open_file(dir, slash + 1, &st);
	char *text = fd < 0 ? NULL : guard_read_file(fd, &st, PATH_TEXT + 16);
	bool good =
		text && (f->class == PROTECT_GIT ? gitjudge_gitfile(text, (size_t)st.st_size, to)
						 : gitjudge_path(text, (size_t)st.st_size, to));
	free(text);
	if (good)
		add_way(p, dir, to, true, end);
}

static void add_find(struct pins *p, const struct inventory_find *f, const char *path)
{
	const struct inventory_dir *d = &p->r->before.dirs[f->dir];
	struct judged j = {.class = (enum protect_class)f->class, .type = f->type};

	if ((f->class == PROTECT_TODO || f->class == PROTECT_STATE) &&
	    guard_may_stay(p->g, p->r, path, &j, true))
		return;                /* the next call goes on with it */
	if (d->place == PLACE_INNER) { /* read-only with the directory it lies in */
		add_target(p, path, false);
		return;
	}
	if (f->class != PROTECT_GIT && d->place == PLACE_GIT)
		add_chain(p, f->dir);
	if (f->class != PROTECT_TOOL && f->class != PROTECT_GIT && d->place != PLACE_GIT &&
	    d->role == ROLE_GITDIR)
		add_dir(p, f->dir); /* a git directory without the name */
	add(p, path, f->class == PROTECT_GIT && f->type == DT_DIR);
	/* A link of git's own use (HEAD) or of a person's, like a shared refs: only the link. */
	if (f->type == DT_LNK && f->class != PROTECT_LINK)
		add_target(p, path, f->class == PROTECT_GIT);
	if (f->class == PROTECT_CONFIG || f->class == PROTECT_CONFIG_WORKTREE)
		add_config(p, path);
	if (f->class == PROTECT_GIT || f->class == PROTECT_COMMONDIR)
		add_gitfile(p, f, path);
}

/* Files of a directory that are there, read-only. */
static void add_files(struct pins *p, const char *dir, const char *const *names)
{
	AUTO_BUF path = BUF_INIT(2 * PATH_TEXT);

	for (; *names; names++) {
		buf_clear(&path);
		if (buf_printf(&path, "%s/%s", dir, *names) == 0 &&
		    access(buf_cstr(&path), F_OK) == 0)
			add(p, buf_cstr(&path), false);
	}
}

/*
 * A linked worktree that lies elsewhere: git inside does not see it, takes it for
 * removed, and would prune what belongs to it. Seen from another worktree all of
 * it is read-only; from the main one only what cannot be made again, since gc
 * writes everybody's reflogs.
 */
static void add_worktrees(struct pins *p)
{
	static const char *const kept[] = {"HEAD", "index", "ORIG_HEAD", NULL};
	const struct inventory *inv = &p->r->before;
	AUTO_BUF path = BUF_INIT(64u << 20);

	for (uint32_t i = 0; i < inv->dir_count; i++) {
		uint32_t parent = inv->dirs[i].parent;
		struct judged j = {.class = PROTECT_GITDIR, .type = DT_REG};
		if (parent == INVENTORY_NONE || inv->dirs[parent].role != ROLE_WORKTREES)
			continue;
		guard_put_dir(p->r, &p->r->before, i, &path);
		size_t n = path.n;
		if (buf_str(&path, "/gitdir") < 0 ||
		    guard_may_stay(p->g, p->r, buf_cstr(&path), &j, false))
			continue;
		path.p[n] = '\0';
		if (p->r->kind.place == PLACE_GIT)
			add(p, path.p, false);
		else
			add_files(p, path.p, kept);
	}
}

/* Of a linked worktree's main repository what is not the worktree's. */
static void add_main(struct pins *p)
{
	static const char *const names[] = {"modules", "HEAD", "index", NULL};

	if (p->r->kind.place == PLACE_GIT && p->g->link->worktree)
		add_files(p, p->r->path, names);
}

static void add_read(struct pins *p, const char *path)
{
	add(p, path, false);
	p->failed |= !nameset_put(&p->g->masks.held, path, 1);
}

/* What rules make read-only in a tree that is writable: not to be undone by the host's programs. */
static void add_reads(struct pins *p)
{
	const struct inventory *inv = &p->r->before;
	uint64_t bits = masks_read_bits(p->g, inv);
	AUTO_BUF path = BUF_INIT(64u << 20);

	for (size_t i = 0; i < p->g->view->grant_count; i++) {
		const struct grant *gr = &p->g->view->grants[i];
		if (!gr->write && !gr->linked && strcmp(gr->path, p->r->path) != 0 &&
		    guard_root_of(p->g, gr->path) == p->r)
			add_read(p, gr->path);
	}
	for (uint32_t i = 0; bits && i < inv->hit_count; i++) {
		if (!(inv->hits[i].bits & bits))
			continue;
		guard_put_dir(p->r, inv, inv->hits[i].dir, &path);
		(void)buf_printf(&path, "/%s", inv->text + inv->hits[i].name);
		if (!path.failed)
			add_read(p, buf_cstr(&path));
	}
}

/* A writable grant of something in a pinned directory lies over the pin. */
static void add_grants(struct pins *p)
{
	for (size_t i = 0; i < p->g->view->grant_count; i++) {
		const struct grant *gr = &p->g->view->grants[i];
		bool below = false;
		if (!gr->write || gr->linked || !path_is_below(p->r->path, gr->path))
			continue;
		for (size_t k = 0; k < p->n && !below; k++)
			below = !p->v[k].write && path_is_below(p->v[k].path, gr->path);
		if (below && !nameset_get(&p->seen, gr->path, NULL))
			add_one(p, gr->path, true, gr);
	}
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct pin *)a)->path, ((const struct pin *)b)->path);
}

static int put_pins(struct pins *p, struct err *e)
{
	struct guard *g = p->g;

	if (p->n)
		qsort(p->v, p->n, sizeof(*p->v), by_path);
	for (size_t i = 0; i < p->n; i++) {
		const struct pin *pin = &p->v[i];
		if (g->pin_count == MAX_GUARD_PINS) {
			(void)err_set(e, ERR_SANDBOX_UNAVAILABLE,
				      "%s has more than %u protected paths: not all can be held",
				      p->r->path, MAX_GUARD_PINS);
			return err_hint(e, "use --mode read-only, or a source that is smaller");
		}
		g->pin_count++;
		if (pin->grant) {
			if (view_bind(g->view, pin->path, NULL, MOUNT_WRITE | g->idmap,
				      &pin->grant->st, e) < 0)
				return -1;
			continue;
		}
		if (view_pin(g->view, pin->path, pin->write ? MOUNT_WRITE : 0u, e) < 0)
			return -1;
		if (!nameset_put(&g->pins, pin->path, (uint32_t)g->view->n - 1))
			return err_set(e, ERR_INTERNAL, "out of memory");
	}
	return 0;
}

/* What configurations name relative to a work tree counts in each: `.git` files lead to them. */
static void add_relative(struct pins *p)
{
	const struct inventory *inv = &p->r->before;
	AUTO_BUF path = BUF_INIT(64u << 20);

	for (uint32_t i = 0; p->g->relative.n && i < inv->find_count; i++) {
		if (inv->finds[i].class != PROTECT_GIT || inv->finds[i].type == DT_DIR)
			continue;
		guard_put_dir(p->r, inv, inv->finds[i].dir, &path);
		for (size_t k = 0; k < p->g->relative.cap && !path.failed; k++)
			if (p->g->relative.v[k] && path.n < PATH_TEXT)
				add_named(p, buf_cstr(&path), p->g->relative.v[k]);
	}
}

int guard_add_pins(struct guard *g, struct guard_root *r, struct err *e)
{
	struct pins p = {.g = g, .r = r};
	AUTO_BUF path = BUF_INIT(64u << 20);

	/* Whole directories first: what comes first counts. */
	add_worktrees(&p);
	add_main(&p);
	for (uint32_t i = 0; i < r->before.find_count; i++) {
		buf_clear(&path);
		(void)buf_printf(&path, "%s/", r->path);
		inventory_path(&r->before, &r->before.finds[i], &path);
		if (path.failed)
			p.failed = true;
		else
			add_find(&p, &r->before.finds[i], buf_cstr(&path));
	}
	add_relative(&p);
	add_reads(&p);
	add_grants(&p);
	int rc = p.failed ? err_set(e, ERR_INTERNAL, "out of memory") : put_pins(&p, e);
	for (size_t i = 0; i < p.n; i++)
		free(p.v[i].path);
	free(p.v);
	nameset_release(&p.seen);
	return rc;
}

static bool add_tip(struct guard *g, const struct inventory_oid *oid)
{
	if (g->tip_count % 1024 == 0) {
		struct inventory_oid *more =
			realloc(g->tips, (g->tip_count + 1024) * sizeof(*more));
		if (!more)
			return false;
		g->tips = more;
	}
	g->tips[g->tip_count++] = *oid;
	return true;
}

int guard_open_file(const char *git, const char *name, struct stat *ret)
{
	AUTO_BUF path = BUF_INIT(2 * PATH_TEXT);

	(void)buf_printf(&path, "%s/%s", git, name);
	int fd = open(buf_cstr(&path), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && (fstat(fd, ret) < 0 || !S_ISREG(ret->st_mode))) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

int guard_open_index(const struct guard_repo *repo, struct stat *ret)
{
	const struct stat *old = &repo->index_st;

	if (!repo->work[0] || repo->quiet)
		return -1;
	AUTO_FD int fd = guard_open_file(repo->git, "index", ret);
	if (fd >= 0 && repo->index >= 0 && ret->st_ino == old->st_ino &&
	    ret->st_size == old->st_size &&
	    memcmp(&ret->st_ctim, &old->st_ctim, sizeof(old->st_ctim)) == 0)
		return -1;
	return TAKE_FD(fd);
}

char *guard_read_file(int fd, const struct stat *st, size_t most)
{
	if (st->st_size < 0 || (uint64_t)st->st_size > most)
		return NULL;
	char *text = malloc((size_t)st->st_size + 1);
	ssize_t n = text ? RETRY_EINTR(pread(fd, text, (size_t)st->st_size, 0)) : -1;
	if (n < 0) {
		free(text);
		return NULL;
	}
	text[n] = '\0';
	return text;
}

/* A detached HEAD is a tip too. */
static void add_head(struct guard *g, const char *git)
{
	struct inventory_oid oid;
	struct stat st;
	char text[80];

	AUTO_FD int fd = guard_open_file(git, "HEAD", &st);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text)) : -1;
	if (n > 0 && inventory_oid_parse(text, (size_t)n, &oid))
		(void)add_tip(g, &oid);
}

/* What a small file of a git directory says, "" if it is not there. */
static void read_line(const char *git, const char *name, char ret[PATH_TEXT])
{
	struct stat st;

	ret[0] = '\0';
	AUTO_FD int fd = guard_open_file(git, name, &st);
	char *text = fd < 0 ? NULL : guard_read_file(fd, &st, PATH_TEXT - 1);
	if (text)
		(void)gitjudge_path(text, (size_t)st.st_size, ret);
	free(text);
}

/*
 * The work tree of a git directory: beside a `.git`, what `gitdir` of a linked
 * worktree names, or core.worktree of a submodule.
 */
static void find_work(struct guard *g, struct guard_repo *repo)
{
	char joined[2 * PATH_TEXT + 2];
	char path[PATH_TEXT] = "";
	size_t n = strlen(repo->git);
	struct stat st;

	if (n > 5 && strcmp(repo->git + n - 5, "/.git") == 0) {
		memcpy(repo->work, repo->git, n - 5); /* the rest is zero */
		return;
	}
	read_line(repo->git, "gitdir", path);
	size_t len = strlen(path);
	if (len > 5 && strcmp(path + len - 5, "/.git") == 0) {
		path[len - 5] = '\0';
	} else {
		AUTO_FD int fd = guard_open_file(repo->git, "config", &st);
		char *text = fd < 0 ? NULL : guard_read_file(fd, &st, MAX_CONFIG_BYTES);
		path[0] = '\0';
		if (text)
			(void)gitconfig_parse(text, (size_t)st.st_size, gitconfig_take_worktree,
					      path);
		free(text);
	}
	if (!path[0])
		return;
	(void)snprintf(joined, sizeof(joined), "%s/%s", path[0] == '/' ? "" : repo->git, path);
	if (!path_lexical(joined, repo->work) || !guard_root_of(g, repo->work))
		repo->work[0] = '\0';
}

/* The tips that git directories have now, and their index, held open. */
void guard_open_repos(struct guard *g, struct guard_root *r)
{
	AUTO_BUF path = BUF_INIT(64u << 20);

	for (uint32_t i = 0; i < r->before.tip_count; i++)
		(void)add_tip(g, &r->before.tips[i]);
	for (uint32_t i = 0; i < r->before.dir_count && g->repo_count < MAX_GUARD_REPOS; i++) {
		const struct inventory_dir *d = &r->before.dirs[i];
		if (d->role != ROLE_GITDIR)
			continue;
		struct guard_repo *repo = &g->repos[g->repo_count];
		guard_put_dir(r, &r->before, i, &path);
		if (path.failed || path.n >= sizeof(repo->git))
			continue;
		*repo = (struct guard_repo){.index = -1};
		memcpy(repo->git, buf_cstr(&path), path.n + 1);
		repo->quiet = r->quiet;
		find_work(g, repo);
		repo->index =
			repo->work[0] ? guard_open_file(repo->git, "index", &repo->index_st) : -1;
		struct stat st;
		AUTO_FD int packed = guard_open_file(repo->git, "packed-refs", &st);
		if (packed >= 0)
			repo->packed = guard_read_file(packed, &st, MAX_PACKED_BYTES);
		add_head(g, repo->git);
		g->repo_count++;
	}
}

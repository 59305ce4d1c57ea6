/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees for the tests of src/store, and the plain way to look at them: each
 * directory by its path, each name asked alone.
 */
#pragma once

#include <dirent.h>
#include <time.h>

#include "store/inventory.h"
#include "test_policy_somebody.h"

#define TREE ((struct protect_dir){.place = PLACE_TREE, .role = ROLE_NONE})
#define OID40 "0123456789abcdef0123456789abcdef01234567"
#define OID64 "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

/* A find as text, "class type path"; lists of them are sorted. */
struct lines {
	char **v;
	size_t n, cap;
	uint32_t dirs;
};

static inline void lines_add(struct lines *l, int class, int type, const char *path)
{
	size_t n = strlen(path) + 32;

	if (l->n == l->cap) {
		l->cap = l->cap ? 2 * l->cap : 64;
		l->v = realloc(l->v, l->cap * sizeof(*l->v));
		ck_assert_ptr_nonnull(l->v);
	}
	l->v[l->n] = malloc(n);
	ck_assert_ptr_nonnull(l->v[l->n]);
	snprintf(l->v[l->n++], n, "%d %d %s", class, type, path);
}

static inline int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static inline void lines_release(struct lines *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i]);
	free(l->v);
}

static inline void same_lines(const struct lines *got, const struct lines *want, const char *what)
{
	for (size_t i = 0; i < got->n || i < want->n; i++) {
		const char *g = i < got->n ? got->v[i] : "(end)";
		const char *w = i < want->n ? want->v[i] : "(end)";
		ck_assert_msg(strcmp(g, w) == 0, "%s: \"%s\", not \"%s\"", what, g, w);
	}
	ck_assert_msg(got->dirs == want->dirs, "%s: %u directories, not %u", what, got->dirs,
		      want->dirs);
}

/*
 * What a name is in a directory with that role. A git directory by its layout is
 * still what it is to the one that it lies in; what only holds some has none of
 * git's names itself.
 */
static inline enum protect_class ask(struct protect_dir kind, uint8_t given, const char *own,
				     const char *name, bool link)
{
	const uint8_t roles[] = {kind.role, given};
	enum protect_class c = PROTECT_NONE;
	bool inside = kind.place == PLACE_GIT || kind.place == PLACE_INNER || kind.role || given;

	for (size_t i = 0; i < ARRAY_LEN(roles) && c == PROTECT_NONE; i++) {
		kind.role = roles[i] == ROLE_MODULES ? (uint8_t)ROLE_NONE : roles[i];
		c = protect_name(kind, own, name);
	}
	return c == PROTECT_NONE && link && inside ? PROTECT_LINK : c;
}

/* The directory `name` of class `c`; of objects first what they are to the one around them. */
static inline bool ask_child(struct protect_dir kind, uint8_t given, enum protect_class c,
			     const char *name, struct protect_dir *ret)
{
	struct protect_dir other, was = {.place = kind.place, .role = given};
	bool objects = given == ROLE_OBJECTS;

	*ret = (struct protect_dir){.place = PLACE_INNER};
	if (c == PROTECT_TOOL || c == PROTECT_HOOKS)
		return true;
	if ((c != PROTECT_NONE && c != PROTECT_GIT) ||
	    !protect_child(objects ? was : kind, name, ret))
		return false;
	if (ret->role == ROLE_NONE && given != ROLE_NONE &&
	    protect_child(objects ? kind : was, name, &other))
		*ret = other;
	return true;
}

/* The plain way: every directory by its path, each name asked alone. */
static inline void look(const char *path, const char *below, const char *own,
			struct protect_dir kind, struct lines *l)
{
	char full[2 * PATH_TEXT], rel[2 * PATH_TEXT];
	unsigned int layout = 0;
	struct dirent *e;
	struct stat st;
	DIR *d = opendir(path);
	uint8_t given = kind.role;

	ck_assert_msg(d != NULL, "%s: %s", path, strerror(errno));
	l->dirs++;
	while ((e = readdir(d)))
		layout |= protect_layout_bit(e->d_name);
	/* Of remotes each name is one, whatever else it is; in what is protected none counts. */
	if (protect_layout_is_git(layout) && given != ROLE_REMOTES && kind.place != PLACE_INNER)
		kind.role = ROLE_GITDIR;
	rewinddir(d);
	while ((e = readdir(d))) {
		struct protect_dir child;
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		snprintf(full, sizeof(full), "%s/%s", path, e->d_name);
		snprintf(rel, sizeof(rel), "%s%s%s", below, *below ? "/" : "", e->d_name);
		ck_assert_int_eq(lstat(full, &st), 0);
		enum protect_class c = ask(kind, given, own, e->d_name, S_ISLNK(st.st_mode));
		if (c != PROTECT_NONE)
			lines_add(l, (int)c, (int)IFTODT(st.st_mode), rel);
		if (S_ISDIR(st.st_mode) && ask_child(kind, given, c, e->d_name, &child))
			look(full, rel, e->d_name, child, l);
	}
	closedir(d);
}

static inline struct lines oracle(const char *name)
{
	struct lines l = {.n = 0};

	look(at("%s", name), "", name, TREE, &l);
	if (l.n)
		qsort(l.v, l.n, sizeof(*l.v), by_text);
	return l;
}

/* As oracle(); each find is what it is said to be. */
static inline struct lines lines_of(const char *name, const struct inventory *inv)
{
	AUTO_BUF path = BUF_INIT(1u << 20);
	struct lines l = {.dirs = inv->dir_count};
	struct stat st;

	for (uint32_t i = 0; i < inv->find_count; i++) {
		const struct inventory_find *f = &inv->finds[i];
		buf_clear(&path);
		inventory_path(inv, f, &path);
		if (path.n < 3000) {
			st = (struct stat){.st_ino = 0};
			ck_assert_int_eq(lstat(at("%s/%s", name, buf_cstr(&path)), &st), 0);
			ck_assert(st.st_dev == f->dev && st.st_ino == f->ino);
		}
		lines_add(&l, f->class, f->type, buf_cstr(&path));
	}
	if (l.n)
		qsort(l.v, l.n, sizeof(*l.v), by_text);
	return l;
}

static inline struct inventory scan_as(const char *name, struct protect_dir kind,
				       const struct inventory *old, unsigned int flags)
{
	struct inventory inv;
	struct err e;

	AUTO_FD int fd = open(at("%s", name), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	struct inventory_root root = {.fd = fd, .kind = kind, .name = name};
	CK_WORKS(inventory_scan(&root, old, flags, &inv, NULL, &e), e);
	return inv;
}

static inline struct inventory scan(const char *name, const struct inventory *old)
{
	return scan_as(name, TREE, old, 0);
}

/* Every index is within its array, sizes and order are those of a walk. */
static inline void is_sound(const struct inventory *inv)
{
	AUTO_BUF path = BUF_INIT(1u << 20);
	uint32_t finds = 0;

	for (uint32_t i = 0; i < inv->dir_count; i++) {
		const struct inventory_dir *d = &inv->dirs[i];
		ck_assert(i == 0 ? d->parent == INVENTORY_NONE : d->parent < i);
		ck_assert(d->size >= 1 && d->size <= inv->dir_count - i);
		if (i > 0)
			ck_assert_uint_le(i + d->size, d->parent + inv->dirs[d->parent].size);
		ck_assert(d->find <= inv->find_count && d->finds <= inv->find_count - d->find);
		ck_assert(d->tip <= inv->tip_count && d->tips <= inv->tip_count - d->tip);
		ck_assert(d->name < inv->text_count);
		for (uint32_t f = d->find; f < d->find + d->finds; f++)
			ck_assert_uint_eq(inv->finds[f].dir, i);
		finds += d->finds;
		buf_clear(&path);
		inventory_dir_path(inv, i, &path);
		ck_assert(i == 0 ? path.n == 0 : path.n > 0);
	}
	ck_assert_uint_le(finds, inv->find_count);
	for (uint32_t i = 0; i < inv->find_count; i++) {
		ck_assert_uint_lt(inv->finds[i].dir, inv->dir_count);
		ck_assert(inv->finds[i].class > PROTECT_NONE &&
			  inv->finds[i].class < PROTECT_CLASSES);
		buf_clear(&path);
		inventory_path(inv, &inv->finds[i], &path);
		ck_assert(path.n > 0 && !path.failed && path.p[0] != '/');
	}
}

/* The scan over `old` has what is there; it replaces *old if `keep`. Returns what it read. */
static inline uint32_t check_scan(const char *name, struct inventory *old, bool keep,
				  const char *what)
{
	struct lines want = oracle(name);
	struct inventory inv = scan(name, old);
	struct lines got = lines_of(name, &inv);
	uint32_t read = inv.read;

	same_lines(&got, &want, what);
	is_sound(&inv);
	ck_assert(!inv.full);
	lines_release(&want);
	lines_release(&got);
	if (keep) {
		inventory_release(old);
		*old = inv;
	} else {
		inventory_release(&inv);
	}
	return read;
}

/* The class of what lies at the path, PROTECT_NONE: not listed. */
static inline enum protect_class class_of(const struct inventory *inv, const char *path)
{
	AUTO_BUF p = BUF_INIT(1u << 20);

	for (uint32_t i = 0; i < inv->find_count; i++) {
		buf_clear(&p);
		inventory_path(inv, &inv->finds[i], &p);
		if (strcmp(buf_cstr(&p), path) == 0)
			return (enum protect_class)inv->finds[i].class;
	}
	return PROTECT_NONE;
}

/* Longer than a directory has to rest before its times are believed. */
static inline void rest(void)
{
	struct timespec t = {.tv_sec = 2, .tv_nsec = 100000000};

	while (nanosleep(&t, &t) < 0)
		;
}

static inline void put_gitdir(const char *name)
{
	static const char *const dirs[] = {"objects/info", "objects/ab", "objects/pack",
					   "refs/heads",   "info",       "hooks",
					   "logs/refs"};

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		put_dir(at("%s/%s", name, dirs[i]) + strlen(place_top) + 1);
	put_file(at("%s/HEAD", name) + strlen(place_top) + 1, "ref: refs/heads/main\n");
	put_file(at("%s/config", name) + strlen(place_top) + 1, "[core]\n");
	put_file(at("%s/info/attributes", name) + strlen(place_top) + 1, "");
	put_file(at("%s/objects/info/alternates", name) + strlen(place_top) + 1, "");
	put_file(at("%s/refs/heads/main", name) + strlen(place_top) + 1, OID40 "\n");
}

/* A tree with one of everything. */
static inline void put_tree(void)
{
	put_gitdir("t/.git");
	put_gitdir("t/.git/modules/deep/sub");
	put_dir("t/.git/worktrees/w/rebase-merge");
	put_file("t/.git/worktrees/w/commondir", "../..\n");
	put_file("t/.git/worktrees/w/gitdir", "/x/.git\n");
	put_file("t/.git/worktrees/w/config.worktree", "");
	put_file("t/.git/worktrees/w/rebase-merge/git-rebase-todo", "");
	put_dir("t/.git/remotes/dir");
	put_file("t/.git/remotes/origin", "");
	put_dir("t/.git/sequencer");
	put_file("t/.git/sequencer/todo", "");
	put_file("t/.git/sequencer/opts", "");
	put_dir("t/.git/rebase-merge");
	put_file("t/.git/rebase-merge/strategy", "");
	put_dir("t/.git/rebase-apply");
	put_file("t/.git/rebase-apply/apply-opt", "");
	put_dir("t/.git/branches");
	put_file("t/.git/branches/old", "");
	put_file("t/.git/modules/deep/config", "");
	put_dir("t/.git/modules/deep/info");
	put_file("t/.git/modules/deep/info/attributes", "");
	put_gitdir("t/.git/refs/below");
	put_gitdir("t/bare.d");
	put_dir("t/a/b/c");
	put_file("t/a/.envrc", "");
	put_file("t/a/b/plain", "");
	put_file("t/a/b/c/.GitConfig", "");
	put_dir("t/a/.vscode");
	put_file("t/a/.vscode/.envrc", "");
	put_dir("t/a/.vscode/x/.git");
	put_file("t/a/.vscode/x/.git/config", "");
	put_link("t/a/.vscode/x/link", "nowhere");
	put_link("t/.git/hooks/post-commit", "+t/a/b/plain");
	put_dir("t/.git/hooks/dir");
	put_link("t/.git/hooks/dir/link", "nowhere");
	put_link("t/.git/refs/heads/link", "nowhere");
	put_link("t/.git/logs/refs/link", "nowhere");
	put_link("t/bare.d/packed-refs", "nowhere");
	put_link("t/.git/index", "+t/a");
	put_dir("t/vendor/x/.git/hooks");
	put_file("t/vendor/x/.envrc", "");
	put_dir("t/node_modules/p/.git");
	put_dir("t/.cargo");
	put_file("t/.cargo/config.toml", "");
	put_link("t/a/link", "+t/vendor");
	put_link("t/a/b/.bashrc", "nowhere");
	put_link("t/a/b/.claude", "+t/vendor");
	ck_assert_int_eq(mkfifo(at("t/a/b/.npmrc"), 0600), 0);
	put_dir("t/odd\nname/.idea");
	put_file("t/odd\nname/.profile", "");
	put_dir("t/bytes\xff\xfe/.husky");
	put_file("t/bytes\xff\xfe/.zshrc", "");
	put_file("t/a/b/.g\xe2\x80\x8bit", "gitdir: x\n");
	put_file("t/.git\n", "");
}

/* A chain of directories that no path reaches: `levels` of them, the last one's descriptor. */
static inline int put_deep(const char *top, const char *name, int levels)
{
	int fd = open(at("%s", top), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < levels; i++) {
		ck_assert_int_eq(mkdirat(fd, name, 0755), 0);
		int next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		ck_assert_int_ge(next, 0);
		(void)close(fd);
		fd = next;
	}
	return fd;
}

/* Takes one level away after the other, from above; what is in the last one stays. */
static inline void cut_deep(const char *top, const char *name)
{
	char inner[600];

	AUTO_FD int fd = open(at("%s", top), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(inner, sizeof(inner), "%s/%s", name, name);
	while (renameat(fd, inner, fd, "next") == 0) {
		ck_assert_int_eq(unlinkat(fd, name, AT_REMOVEDIR), 0);
		ck_assert_int_eq(renameat(fd, "next", fd, name), 0);
	}
}

static inline void put_at(int fd, const char *name)
{
	(void)close(openat(fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

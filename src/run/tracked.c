/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What git knows of protected files: whether a new one is of a commit that a ref
 * named before the call, and whether the index has replaced one that could not be. Commits that a command in a sandbox has made do
 * not count, nor does history: a file could be committed in one call, taken back
 * by the next commit, and checked out in a later call.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "policy/gitindex.h"
#include "run/catfile.h"
#include "run/guard_parts.h"

#define MAX_OBJECTS 20000u /* read for one question */
#define MAX_SEARCH_MS 8000u
#define MAX_FILE_BYTES (16u << 20)

/* One file that is asked about. */
struct question {
	struct tracked_file *file;
	char *path; /* in the work tree */
	char *content;
	size_t n;
	unsigned int mode; /* as a tree has it */
};

struct search {
	struct guard *g;
	struct catfile git;
	struct question *v;
	size_t n, open;
	struct nameset seen; /* objects, and trees by the file they were searched for */
	struct inventory_oid *queue;
	size_t queue_n, queue_cap, queue_at;
	unsigned int objects;
	uint64_t until_ms;
};

static void spell(char ret[65], const struct inventory_oid *oid)
{
	for (size_t i = 0; i < oid->bytes; i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", oid->oid[i]);
}

static void push(struct search *s, const struct inventory_oid *oid)
{
	char name[65];

	spell(name, oid);
	if (nameset_get(&s->seen, name, NULL) || !nameset_put(&s->seen, name, 1))
		return;
	if (s->queue_n == s->queue_cap) {
		size_t cap = s->queue_cap ? s->queue_cap * 2 : 256;
		struct inventory_oid *more = realloc(s->queue, cap * sizeof(*more));
		if (!more)
			return;
		s->queue = more;
		s->queue_cap = cap;
	}
	s->queue[s->queue_n++] = *oid;
}

static bool get(struct search *s, const struct inventory_oid *oid)
{
	return s->objects++ < MAX_OBJECTS && clock_mono_ms() < s->until_ms &&
	       catfile_get(&s->git, oid);
}

/* The entry of a tree: "MODE NAME\0" and the raw name of an object. */
static bool find_entry(const struct search *s, const char *name, size_t len, unsigned int bytes,
		       unsigned int *ret_mode, struct inventory_oid *ret)
{
	const char *p = s->git.object;
	const char *end = p + s->git.size;

	while (p < end) {
		const char *rest = p;
		unsigned int mode = 0;
		for (; rest < end && *rest >= '0' && *rest <= '7'; rest++)
			mode = mode * 8 + (unsigned int)(*rest - '0');
		const char *nul = rest < end ? memchr(rest, 0, (size_t)(end - rest)) : NULL;
		if (!nul || *rest != ' ' || (size_t)(end - nul) < 1 + bytes)
			return false;
		if ((size_t)(nul - rest - 1) == len && memcmp(rest + 1, name, len) == 0) {
			*ret_mode = mode;
			*ret = (struct inventory_oid){.bytes = (uint8_t)bytes};
			memcpy(ret->oid, nul + 1, bytes);
			return true;
		}
		p = nul + 1 + bytes;
	}
	return false;
}

/* Goes down from a root tree along the file's path. */
static void look_in_tree(struct search *s, struct question *q, struct inventory_oid tree)
{
	struct inventory_oid blob;
	char seen[65 + 32];
	char name[65];
	unsigned int mode = 0;

	for (const char *p = q->path; *p;) {
		size_t len = strcspn(p, "/");
		spell(name, &tree);
		(void)snprintf(seen, sizeof(seen), "%s %zu %zu", name, (size_t)(q - s->v),
			       (size_t)(p - q->path));
		if (nameset_get(&s->seen, seen, NULL) || !nameset_put(&s->seen, seen, 1) ||
		    !get(s, &tree) || strcmp(s->git.type, "tree") != 0 ||
		    !find_entry(s, p, len, tree.bytes, &mode, &tree))
			return;
		p += len;
		p += *p == '/';
	}
	if (mode == q->mode && object_name("blob", q->content, q->n, tree.bytes, &blob) &&
	    memcmp(blob.oid, tree.oid, tree.bytes) == 0) {
		q->file->known = true;
		s->open--;
	}
}

static bool take_name(const char **p, const char *word, struct inventory_oid *ret)
{
	size_t n = strlen(word);

	if (strncmp(*p, word, n) != 0 || !inventory_oid_parse(*p + n, strlen(*p + n), ret))
		return false;
	*p += n + 2u * ret->bytes;
	*p += **p == '\n';
	return true;
}

/* A commit: its tree is searched. A tag: what it names. */
static void look_at(struct search *s, const struct inventory_oid *oid)
{
	struct inventory_oid tree;
	struct inventory_oid next;

	if (!get(s, oid))
		return;
	const char *p = s->git.object;
	if (strcmp(s->git.type, "tag") == 0 && take_name(&p, "object ", &next))
		push(s, &next);
	if (strcmp(s->git.type, "commit") != 0 || !take_name(&p, "tree ", &tree))
		return;
	for (size_t i = 0; s->v && i < s->n; i++)
		if (s->v[i].content && !s->v[i].file->known)
			look_in_tree(s, &s->v[i], tree);
}

/* Content and mode as git would keep them. */
static bool load(struct guard *g, struct question *q)
{
	struct guard_root *r = guard_root_of(g, q->file->path);
	const char *name = NULL;
	struct stat st;

	AUTO_FD int dir = r ? guard_open_parent(r, q->file->path, &name) : -1;
	if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	/* A link stays only as long as nobody changes what it leads to: no file of a commit. */
	if (S_ISLNK(st.st_mode))
		return false;
	AUTO_FD int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1 ||
	    st.st_size > MAX_FILE_BYTES)
		return false;
	q->content = malloc((size_t)st.st_size + 1);
	while (q->content && q->n < (size_t)st.st_size) {
		ssize_t n = RETRY_EINTR(read(fd, q->content + q->n, (size_t)st.st_size - q->n));
		if (n <= 0)
			return false;
		q->n += (size_t)n;
	}
	q->mode = st.st_mode & 0100 ? 0100755 : 0100644;
	return q->content != NULL;
}

static int by_oid(const void *a, const void *b)
{
	const struct inventory_oid *x = a;
	const struct inventory_oid *y = b;

	return x->bytes == y->bytes ? memcmp(x->oid, y->oid, sizeof(x->oid)) : x->bytes - y->bytes;
}

/* Built at the first question: there can be thousands. */
static void build_inside(struct guard *g)
{
	char name[65];

	if (g->inside.n)
		return;
	for (size_t i = 0; i < g->root_count; i++) {
		const struct inventory *inv = &g->roots[i].before;
		for (uint32_t k = 0; inv->inside && k < inv->inside_count; k++) {
			spell(name, &inv->inside[k]);
			(void)nameset_put(&g->inside, name, 1);
		}
	}
}

static bool is_inside(const struct guard *g, const struct inventory_oid *oid)
{
	char name[65];

	spell(name, oid);
	return nameset_get(&g->inside, name, NULL);
}

/* Each object's name in packed-refs, peeled tags' lines ("^NAME") included. */
static void each_packed(const char *text, void (*item)(void *self, const struct inventory_oid *oid),
			void *self)
{
	struct inventory_oid oid;

	while (text && *text) {
		size_t n = strcspn(text, "\n");
		size_t skip = *text == '^';
		if (inventory_oid_parse(text + skip, n - skip, &oid))
			item(self, &oid);
		text += n;
		text += *text == '\n';
	}
}

struct push_to {
	struct guard *g;
	struct search *s;
};

static void push_tip(void *self, const struct inventory_oid *oid)
{
	struct push_to *to = self;

	if (!is_inside(to->g, oid))
		push(to->s, oid);
}

static bool is_unchanged(int fd, const struct stat *then)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_size == then->st_size &&
	       memcmp(&st.st_mtim, &then->st_mtim, sizeof(st.st_mtim)) == 0;
}

static void push_tips(struct guard *g, struct search *s)
{
	struct push_to to = {g, s};

	for (size_t i = 0; i < g->tip_count; i++)
		push_tip(&to, &g->tips[i]);
	for (size_t i = 0; i < g->repo_count; i++)
		each_packed(g->repos[i].packed, push_tip, &to);
}

static void release(struct search *s)
{
	for (size_t i = 0; s->v && i < s->n; i++) {
		free(s->v[i].path);
		free(s->v[i].content);
	}
	free(s->v);
	free(s->queue);
	nameset_release(&s->seen);
}

static void add_question(struct guard *g, struct search *s, struct tracked_file *file)
{
	struct question *q = &s->v[s->n++];

	q->file = file;
	q->path = strdup(file->path + strlen(file->work) + 1);
	if (q->path && load(g, q)) {
		s->open++;
	} else {
		free(q->content);
		q->content = NULL;
	}
}

void tracked_find(struct guard *g, struct tracked_file *files, size_t n)
{
	struct search s = {.g = g, .until_ms = clock_deadline(clock_mono_ms(), MAX_SEARCH_MS)};

	for (size_t i = 0; i < g->root_count; i++)
		if (g->roots[i].before.inside_full)
			return; /* which commits are a person's is not known any more */
	s.until_ms = g->search_ms ? g->search_ms : s.until_ms; /* one budget for a whole call */
	g->search_ms = s.until_ms;
	build_inside(g);
	push_tips(g, &s);
	s.v = calloc(n, sizeof(*s.v));
	for (size_t i = 0; s.v && s.queue_n && i < n; i++)
		add_question(g, &s, &files[i]);
	if (s.open && catfile_start(&s.git, files[0].work, g->who->env)) {
		while (s.open && s.queue && s.queue_at < s.queue_n) {
			struct inventory_oid next = s.queue[s.queue_at++];
			look_at(&s, &next);
		}
		catfile_end(&s.git);
	}
	release(&s);
}

struct tips {
	struct inventory_oid *v;
	size_t n, cap;
};

static void add_tip(void *self, const struct inventory_oid *oid)
{
	struct tips *t = self;

	if (t->n == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 256;
		struct inventory_oid *more = realloc(t->v, cap * sizeof(*more));
		if (!more)
			return;
		t->v = more;
		t->cap = cap;
	}
	t->v[t->n++] = *oid;
}

/* The tips of a git directory as it is now, loose refs aside: packed ones and HEAD. */
static void add_tips_of(const char *git, struct tips *ret)
{
	struct inventory_oid oid;
	struct stat st;

	AUTO_FD int packed = guard_open_file(git, "packed-refs", &st);
	char *text = packed < 0 ? NULL : guard_read_file(packed, &st, MAX_PACKED_BYTES);
	each_packed(text, add_tip, ret);
	free(text);
	AUTO_FD int head = guard_open_file(git, "HEAD", &st);
	text = head < 0 ? NULL : guard_read_file(head, &st, 4096);
	if (text && inventory_oid_parse(text, strlen(text), &oid))
		add_tip(ret, &oid);
	free(text);
}

void tracked_remember(struct guard *g, struct guard_root *r)
{
	AUTO_BUF git = BUF_INIT(64u << 20);
	struct tips old = {.v = NULL};
	struct tips now = {.v = NULL};

	if (!r->have_after || !r->after.read)
		return;
	for (size_t i = 0; i < g->tip_count; i++)
		add_tip(&old, &g->tips[i]);
	for (uint32_t i = 0; i < r->after.inside_count; i++)
		add_tip(&old, &r->after.inside[i]);
	for (size_t i = 0; i < g->repo_count; i++)
		each_packed(g->repos[i].packed, add_tip, &old);
	for (uint32_t i = 0; i < r->after.tip_count; i++)
		add_tip(&now, &r->after.tips[i]);
	for (uint32_t i = 0; i < r->after.dir_count; i++) {
		if (r->after.dirs[i].role != ROLE_GITDIR)
			continue;
		guard_put_dir(r, &r->after, i, &git);
		if (!git.failed && git.n < PATH_TEXT)
			add_tips_of(buf_cstr(&git), &now);
	}
	if (old.n)
		qsort(old.v, old.n, sizeof(*old.v), by_oid);
	for (size_t i = 0; i < now.n; i++)
		if (!old.n || !bsearch(&now.v[i], old.v, old.n, sizeof(*old.v), by_oid))
			(void)inventory_add_inside(&r->after, &now.v[i]);
	free(old.v);
	free(now.v);
}

/* The objects that an index has at protected paths, as "PATH\0" → the bytes. */
struct index_files {
	struct guard *g;
	const struct guard_repo *repo;
	struct nameset oids; /* path → number of its name in `v` */
	struct tips v;
	unsigned int bytes;
};

static bool take_entry(void *self, const struct gitindex_entry *e)
{
	struct index_files *f = self;
	AUTO_BUF path = BUF_INIT(2 * PATH_TEXT);
	struct inventory_oid oid = {.bytes = (uint8_t)f->bytes};

	if (e->stage != 0)
		return true;
	if (buf_printf(&path, "%s/", f->repo->work) < 0 || buf_add(&path, e->path, e->path_len) < 0)
		return true;
	/* Pinned itself, or in a pinned directory. */
	size_t shortest = strlen(f->repo->work);
	for (char *end = path.p + path.n; end > path.p + shortest; end--) {
		if (*end != '/' && *end != '\0')
			continue;
		char saved = *end;
		*end = '\0';
		bool pinned = nameset_get(&f->g->pins, path.p, NULL);
		*end = saved;
		if (!pinned)
			continue;
		memcpy(oid.oid, e->oid, f->bytes);
		(void)nameset_put(&f->oids, path.p, (uint32_t)f->v.n);
		add_tip(&f->v, &oid);
		break;
	}
	return true;
}

static void read_index(struct index_files *f, int fd, size_t size)
{
	bool split = false;
	struct err ignored = {0};

	if (fd < 0 || !size || size > MAX_GIT_INDEX)
		return;
	AUTO_FREE char *bytes = malloc(size);
	if (!bytes || pread(fd, bytes, size, 0) != (ssize_t)size)
		return;
	f->bytes = 20;
	if (gitindex_each(bytes, size, 20, take_entry, f, &split, &ignored) == 0)
		return;
	nameset_release(&f->oids);
	f->v.n = 0;
	f->bytes = 32;
	if (gitindex_each(bytes, size, 32, take_entry, f, &split, &ignored) < 0)
		f->v.n = 0;
}

/* Is the file on disk what this object is? */
static bool is_content(struct guard *g, const char *path, const struct inventory_oid *oid)
{
	struct tracked_file file = {.path = path};
	struct question q = {.file = &file};
	struct inventory_oid is;

	bool good = load(g, &q) && object_name("blob", q.content, q.n, oid->bytes, &is) &&
		    memcmp(is.oid, oid->oid, oid->bytes) == 0;
	free(q.content);
	return good;
}

/* The topmost pinned path that a path is or lies in: what a grant has to name. */
static void pinned_top(const struct guard *g, const char *work, const char *path,
		       char ret[PATH_TEXT])
{
	(void)snprintf(ret, PATH_TEXT, "%s", path);
	for (const char *p = strchr(path + strlen(work) + 1, '/'); p; p = strchr(p + 1, '/')) {
		char above[PATH_TEXT];
		(void)snprintf(above, sizeof(above), "%.*s", (int)(p - path), path);
		if (nameset_get(&g->pins, above, NULL)) {
			memcpy(ret, above, strlen(above) + 1);
			return;
		}
	}
}

static void deny_file(struct guard *g, const char *work, const char *path)
{
	AUTO_BUF hint = BUF_INIT(16384);
	char top[PATH_TEXT];

	pinned_top(g, work, path, top);
	(void)buf_printf(&hint,
			 "git has another version of %s now, but the file stays as it is in direct "
			 "mode: `git restore` it outside, and do not commit it before; --write %s "
			 "allows the change, --review holds changes for review instead",
			 guard_shown(g, path), guard_as_option(g, top));
	guard_deny(g, path, buf_cstr(&hint), 1);
}

static void compare_indexes(struct guard *g, struct index_files *old, struct index_files *now)
{
	uint32_t k = 0;

	for (size_t i = 0; now->v.v && i < now->oids.cap; i++) {
		const char *path = now->oids.v[i];
		if (!path)
			continue;
		const struct inventory_oid *oid = &now->v.v[now->oids.value[i]];
		bool was = old->v.v && nameset_get(&old->oids, path, &k);
		if (was && by_oid(&old->v.v[k], oid) == 0)
			continue;
		if (!is_content(g, path, oid))
			deny_file(g, now->repo->work, path);
	}
	/* What the index has no more, and what could not be removed either. */
	for (size_t i = 0; old->v.v && i < old->oids.cap; i++) {
		const char *path = old->oids.v[i];
		if (path && !nameset_get(&now->oids, path, NULL) &&
		    is_content(g, path, &old->v.v[old->oids.value[i]]))
			deny_file(g, now->repo->work, path);
	}
}

/* Whether tools' configuration is pinned in a work tree: else nothing of it can have stayed behind. */
static bool has_tools(const struct guard *g, const char *work)
{
	size_t n = strlen(work);

	for (size_t i = 0; i < g->pins.cap; i++) {
		const char *path = g->pins.v[i];
		if (path && strncmp(path, work, n) == 0 && path[n] == '/' &&
		    strncmp(path + n, "/.git/", 6) != 0 && strcmp(path + n, "/.git") != 0)
			return true;
	}
	return false;
}

void tracked_deny(struct guard *g)
{
	struct stat st;

	for (size_t i = 0; i < g->repo_count; i++) {
		const struct guard_repo *repo = &g->repos[i];
		if (!repo->work[0] || repo->index < 0 || !has_tools(g, repo->work) ||
		    !is_unchanged(repo->index, &repo->index_st))
			continue;
		AUTO_FD int fd = guard_open_file(repo->git, "index", &st);
		if (fd < 0 ||
		    (st.st_ino == repo->index_st.st_ino && st.st_dev == repo->index_st.st_dev))
			continue;
		struct index_files old = {.g = g, .repo = repo};
		struct index_files now = {.g = g, .repo = repo};
		read_index(&old, repo->index, (size_t)repo->index_st.st_size);
		read_index(&now, fd, (size_t)st.st_size);
		compare_indexes(g, &old, &now);
		nameset_release(&old.oids);
		nameset_release(&now.oids);
		free(old.v.v);
		free(now.v.v);
	}
}

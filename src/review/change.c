/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk. A directory is visited with up to three parts: the session's (upper),
 * what shows through from the source below it (lower, elsewhere after a rename),
 * and what the source has at this very path (before). Where lower and before are
 * the same, only the names of the upper count, so the cost is that of the change.
 */
#include "review/change.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/path.h"
#include "policy/protect.h"
#include "review/layer.h"
#include "store/remove.h"

#define TEXT_CHUNK ((size_t)64 << 10)
#define LAYOUT_BARE (LAYOUT_HEAD | LAYOUT_OBJECTS | LAYOUT_REFS)
#define LAYOUT_LINKED (LAYOUT_HEAD | LAYOUT_COMMONDIR)

struct change_text {
	struct change_text *next;
	size_t n, cap;
	char bytes[];
};

/* A directory that is to be visited. */
struct item {
	const char *path;
	const char *lower; /* where in the source; NULL: nothing shows through */
	bool upper, before;
	bool git;
	bool moved; /* copy mode: it, or what it lies in, may have been renamed */
	bool fresh; /* copy mode: the source has no such directory, all in it counts */
};

struct walk {
	const struct review *r;
	struct changes *c;
	struct item *todo;
	size_t n, cap;
	const char *deep; /* the directory that was too deep last */
	uint32_t *equal;  /* inodes of the source's entries that were looked at and are no change */
	size_t equal_n, equal_cap;
	struct err *e;
};

/* A directory that is being visited. */
struct visit {
	const struct item *it;
	int upper, lower, before; /* descriptors, -1: no such part */
	enum layer_opaque in;
	struct opened shut;
	bool git;
	bool young;   /* before has changed since the session began */
	bool touched; /* and not by our own apply */
};

/* One name of it. */
struct entry {
	struct change ch;
	bool in_upper;            /* the upper's own, no whiteout */
	bool lower;               /* as a directory it has a lower part: */
	char lower_at[PATH_TEXT]; /* there */
	char path[PATH_TEXT];
};

static int too_many(struct walk *w)
{
	return err_set(w->e, ERR_ARG_LIMIT, "more than %u entries changed", MAX_CHANGES);
}

static const char *keep_text(struct walk *w, const char *s)
{
	size_t n = strlen(s) + 1;
	struct change_text *t = w->c->text;

	if (!t || t->cap - t->n < n) {
		size_t cap = n > TEXT_CHUNK ? n : TEXT_CHUNK;
		if (w->c->text_bytes + cap > MAX_CHANGE_TEXT) {
			(void)too_many(w);
			return NULL;
		}
		t = malloc(sizeof(*t) + cap);
		if (!t) {
			(void)err_set(w->e, ERR_INTERNAL, "out of memory");
			return NULL;
		}
		*t = (struct change_text){.next = w->c->text, .cap = cap};
		w->c->text = t;
		w->c->text_bytes += cap;
	}
	char *ret = t->bytes + t->n;
	memcpy(ret, s, n);
	t->n += n;
	return ret;
}

/* Room for one more element; false on out of memory. */
static bool grow(void *array, size_t n, size_t *cap, size_t size)
{
	void *old = NULL;

	if (n < *cap)
		return true;
	memcpy(&old, array, sizeof(old));
	size_t more = *cap ? *cap * 2 : 64;
	void *p = reallocarray(old, more, size);
	if (!p)
		return false;
	memcpy(array, &p, sizeof(p));
	*cap = more;
	return true;
}

static int push(struct walk *w, const struct item *it)
{
	if (!grow(&w->todo, w->n, &w->cap, sizeof(*w->todo)))
		return err_set(w->e, ERR_INTERNAL, "out of memory");
	w->todo[w->n++] = *it;
	return 0;
}

static int add_change(struct walk *w, const struct entry *x, const char *path)
{
	struct changes *c = w->c;

	if (c->n >= MAX_CHANGES)
		return too_many(w);
	if (!grow(&c->v, c->n, &c->cap, sizeof(*c->v)))
		return err_set(w->e, ERR_INTERNAL, "out of memory");
	struct change *ch = &c->v[c->n];
	*ch = x->ch;
	ch->path = path;
	ch->before.where = path;
	if (ch->after.tree == SIDE_UPPER || strcmp(x->lower_at, path) == 0) {
		ch->after.where = path;
	} else {
		ch->after.where = keep_text(w, x->lower_at);
		if (!ch->after.where)
			return -1;
	}
	c->n++;
	return 0;
}

static bool join(const char *dir, const char *name, char ret[PATH_TEXT])
{
	size_t d = strlen(dir);
	size_t n = strlen(name);

	if (d + (d != 0) + n >= PATH_TEXT)
		return false;
	memcpy(ret, dir, d);
	if (d)
		ret[d++] = '/';
	memcpy(ret + d, name, n + 1);
	return true;
}

static int stat_in(int dir, const char *name, struct stat *ret)
{
	return dir < 0 ? -1 : fstatat(dir, name, ret, AT_SYMLINK_NOFOLLOW);
}

/* Where what the session's directory at x->path shows through lies. */
static void find_lower(const struct walk *w, const struct visit *v, const char *name,
		       const struct stat *st, struct entry *x)
{
	struct stat below;
	struct opened o = {.fd = -1};

	if (w->r->copy)
		return;
	/* user.* wants a directory that can be read. No other is touched: a kill would leave its mode. */
	if (!(st->st_mode & 0400))
		o = open_up(v->upper, name);
	bool opaque = layer_opaque(w->r->root, v->upper, name) == OPAQUE_YES;
	x->ch.origin = layer_origin(w->r->root, v->upper, name, &x->ch.origin_ino);
	close_up(&o);
	x->lower = !opaque &&
		   (w->r->root ? layer_redirect(v->upper, name, v->it->lower, x->lower_at)
			       : v->it->lower && join(v->it->lower, name, x->lower_at)) &&
		   layer_stat(w->r->source, x->lower_at, &below) == 0 && S_ISDIR(below.st_mode) &&
		   !layer_masked(w->r, x->lower_at);
}

/* The merged view's side. */
static void find_after(const struct walk *w, const struct visit *v, const char *name,
		       struct entry *x)
{
	struct stat st;

	if (stat_in(v->upper, name, &st) == 0) {
		if (!w->r->copy && layer_whiteout(w->r->root, v->upper, name, &st, v->in))
			return;
		x->in_upper = true;
		layer_side(&st, SIDE_UPPER, NULL, &x->ch.after);
		if (S_ISDIR(st.st_mode))
			find_lower(w, v, name, &st, x);
		else if (!w->r->copy)
			x->ch.origin = layer_origin(w->r->root, v->upper, name, &x->ch.origin_ino);
		return;
	}
	if (stat_in(v->lower, name, &st) < 0 || !join(v->it->lower, name, x->lower_at) ||
	    layer_masked(w->r, x->lower_at))
		return;
	layer_side(&st, SIDE_SOURCE, NULL, &x->ch.after);
	x->lower = S_ISDIR(st.st_mode);
}

static bool ours(const struct walk *w, const struct entry *x)
{
	const struct change_side *b = &x->ch.before;

	return b->mode && applied_is_ours(w->r->applied, x->path, b->dev, b->ino, b->ctime_ns);
}

/* What an apply that was killed has left beside the names that it is for. */
static bool is_pending(const struct walk *w, const struct visit *v, const char *name)
{
	static const char prefix[] = JOURNAL_PREFIX;
	struct stat st;

	return w->r->pending[0] && strncmp(name, prefix, sizeof(prefix) - 1) == 0 &&
	       strncmp(name + sizeof(prefix) - 1, w->r->pending, JOURNAL_TAG - 1) == 0 &&
	       stat_in(v->upper, name, &st) < 0;
}

/* The source's entry is from after the session began, and not by our own apply. */
static bool is_young(const struct walk *w, const struct entry *x)
{
	return x->ch.before.mode && x->ch.before.ctime_ns >= w->r->rec->base_ns && !ours(w, x);
}

static bool equal(const struct walk *w, const struct entry *x)
{
	struct change_side a = x->ch.before;
	struct change_side b = x->ch.after;

	a.where = x->path;
	b.where = b.tree == SIDE_UPPER ? x->path : x->lower_at;
	return change_sides_equal(w->r, &a, &b);
}

static bool born_after(const struct walk *w, const char *path)
{
	struct statx sx;
	AUTO_FD int fd = layer_open(w->r->source, path, O_PATH);

	return fd >= 0 && statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &sx) == 0 &&
	       (sx.stx_mask & STATX_BTIME) &&
	       sx.stx_btime.tv_sec * 1000000000LL + sx.stx_btime.tv_nsec >= w->r->rec->base_ns;
}

/*
 * Whether a difference between copy and source is the session's doing. What the
 * session did has a ctime behind copied_ns; a renamed directory takes entries of old
 * times along, so in one that changed itself the entries are compared too.
 */
static bool by_session(const struct walk *w, const struct visit *v, const struct entry *x)
{
	const struct change_side *a = &x->ch.after;
	const struct change_side *b = &x->ch.before;
	bool young = is_young(w, x);

	if (!a->mode)
		return !x->ch.masked && (!young || (S_ISDIR(b->mode) && !born_after(w, x->path)));
	if (a->ctime_ns > w->r->rec->copied_ns)
		return true;
	if (!b->mode)
		return v->it->fresh || v->it->moved;
	/* An untouched entry: a difference is the host's, unless it came with its directory. */
	return v->it->moved && !young &&
	       !(S_ISREG(a->mode) && a->mode == b->mode && a->size == b->size &&
		 a->mtime_ns == b->mtime_ns);
}

/* Copy mode: it is old and may have come with its directory, or the host removed the other one. */
static bool is_stray(const struct walk *w, const struct visit *v, const struct entry *x)
{
	return w->r->copy && v->young && !v->it->fresh && !x->ch.before.mode &&
	       x->ch.after.ctime_ns <= w->r->rec->copied_ns;
}

static bool is_change(const struct walk *w, const struct visit *v, const struct entry *x)
{
	if (!x->ch.before.mode && !x->ch.after.mode)
		return false;
	if (w->r->copy && !by_session(w, v, x))
		return false;
	return !equal(w, x);
}

/* What is to be visited because of this entry. `kept` is its path if it is kept already. */
static int push_child(struct walk *w, const struct visit *v, const struct entry *x,
		      const char *kept)
{
	bool dir = S_ISDIR(x->ch.after.mode);
	struct item it = {
		.upper = dir && x->in_upper,
		.before = S_ISDIR(x->ch.before.mode),
		.git = x->ch.git,
	};

	if (!dir && !it.before)
		return 0;
	bool lower = dir && x->lower;
	if (!it.upper && it.before && lower && strcmp(x->lower_at, x->path) == 0)
		return 0; /* nothing touched it */
	/* In a directory that the source's side lost meanwhile, and we kept, all is old. */
	it.fresh = w->r->copy && dir && !it.before;
	it.moved = w->r->copy && (v->it->moved || x->ch.after.ctime_ns > w->r->rec->copied_ns);
	if (it.fresh && !v->it->fresh && x->ch.after.ctime_ns <= w->r->rec->copied_ns)
		it.fresh = false;
	it.path = kept ? kept : keep_text(w, x->path);
	if (!it.path)
		return -1;
	if (lower) {
		it.lower = strcmp(x->lower_at, x->path) == 0 ? it.path : keep_text(w, x->lower_at);
		if (!it.lower)
			return -1;
	}
	return push(w, &it);
}

static void note(size_t *count, const char **first, const char *path)
{
	if (!(*count)++)
		*first = path;
}

/*
 * As a user the overlay does not say from which inode a file was copied up. It is in the source
 * no more, and somebody has been at work in the source's directory: then it may be that who
 * removed it. keep_renamed() knows better for some.
 */
static bool may_be_lost(const struct visit *v, const struct change *ch)
{
	return v->touched && ch->origin && !ch->origin_ino && !ch->before.mode &&
	       (S_ISREG(ch->after.mode) || S_ISDIR(ch->after.mode));
}

/*
 * A directory's times say nothing, since all that comes and goes in it changes them. It is another
 * one if it is younger than the session, or not the one that was copied up.
 */
static bool is_other_dir(const struct walk *w, const struct entry *x)
{
	const struct change_side *b = &x->ch.before;

	if (b->ctime_ns < w->r->rec->base_ns ||
	    applied_is_same(w->r->applied, x->path, b->dev, b->ino))
		return false;
	bool here = x->lower && strcmp(x->lower_at, x->path) == 0;
	return born_after(w, x->path) || (here && x->ch.origin && x->ch.origin_ino &&
					  (uint32_t)x->ch.origin_ino != (uint32_t)b->ino);
}

static int look_at(struct walk *w, const struct visit *v, const char *name)
{
	struct entry x;
	struct stat st;
	const char *kept = NULL;

	if (is_pending(w, v, name))
		return 0;
	x.ch = (struct change){.git = v->git};
	x.in_upper = x.lower = false;
	x.lower_at[0] = '\0';
	if (!join(v->it->path, name, x.path)) {
		if (w->deep != v->it->path)
			note(&w->c->deep, &w->c->deep_at, v->it->path);
		w->deep = v->it->path;
		return 0;
	}
	if (protect_name((struct protect_dir){.place = PLACE_TREE}, "", name) == PROTECT_GIT)
		x.ch.git = true;
	find_after(w, v, name, &x);
	if (stat_in(v->before, name, &st) == 0)
		layer_side(&st, SIDE_SOURCE, NULL, &x.ch.before);
	x.ch.masked = layer_masked(w->r, x.path);
	if (is_change(w, v, &x)) {
		x.ch.conflict = S_ISDIR(x.ch.before.mode) ? is_other_dir(w, &x)
							  : is_young(w, &x) || is_stray(w, v, &x) ||
								    may_be_lost(v, &x.ch);
		kept = keep_text(w, x.path);
		if (!kept || add_change(w, &x, kept) < 0)
			return -1;
	} else if (x.ch.before.mode) {
		if (!grow(&w->equal, w->equal_n, &w->equal_cap, sizeof(*w->equal)))
			return err_set(w->e, ERR_INTERNAL, "out of memory");
		w->equal[w->equal_n++] = (uint32_t)x.ch.before.ino;
	}
	return push_child(w, v, &x, kept);
}

/* Of a directory's names: those that none of the other two parts has. */
static int look_through(struct walk *w, const struct visit *v, int dir, int not_in, int nor_in)
{
	struct stat st;
	int rc = 0;
	int fd = dir < 0 ? -1 : openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d) {
		if (fd >= 0)
			(void)close(fd);
		return 0;
	}
	for (struct dirent *at = readdir(d); at && rc == 0; at = readdir(d)) {
		if (path_is_dots(at->d_name) || stat_in(not_in, at->d_name, &st) == 0 ||
		    stat_in(nor_in, at->d_name, &st) == 0)
			continue;
		rc = look_at(w, v, at->d_name);
	}
	(void)closedir(d);
	return rc;
}

/* HEAD, objects and refs: git works in such a directory whatever its name is. */
static bool has_layout(const struct visit *v)
{
	static const char *const names[] = {"HEAD", "objects", "refs", "commondir"};
	const int dirs[] = {v->upper, v->lower, v->before};
	struct stat st;
	unsigned int bits = 0;

	for (size_t d = 0; d < ARRAY_LEN(dirs); d++) {
		for (size_t i = 0; i < ARRAY_LEN(names); i++) {
			if (stat_in(dirs[d], names[i], &st) == 0)
				bits |= protect_layout_bit(names[i]);
		}
	}
	return (bits & LAYOUT_BARE) == LAYOUT_BARE || (bits & LAYOUT_LINKED) == LAYOUT_LINKED;
}

static int open_part(struct walk *w, const struct item *it, bool upper, const char *path)
{
	int fd = upper ? layer_open_upper(w->r->upper, path, O_RDONLY | O_DIRECTORY)
		       : layer_open(w->r->source, path, O_RDONLY | O_DIRECTORY);

	/* Gone meanwhile, or a mount on the host, which no session saw. */
	if (fd < 0 && errno != ENOENT && errno != ENOTDIR && errno != ELOOP && errno != EXDEV)
		note(&w->c->unread, &w->c->unread_at, it->path);
	return fd;
}

static int look_in(struct walk *w, struct visit *v)
{
	const struct item *it = v->it;
	bool same = it->lower && it->before && strcmp(it->lower, it->path) == 0;

	if (look_through(w, v, v->upper, -1, -1) < 0)
		return -1;
	if (same)
		return 0;
	if (look_through(w, v, v->lower, v->upper, -1) < 0)
		return -1;
	return look_through(w, v, v->before, v->upper, v->lower);
}

static int visit(struct walk *w, const struct item *it)
{
	struct visit v = {.it = it, .shut = {.fd = -1}};
	struct stat st;

	AUTO_FD int upper = it->upper ? open_part(w, it, true, it->path) : -1;
	AUTO_FD int lower = it->lower ? open_part(w, it, false, it->lower) : -1;
	AUTO_FD int before = it->before ? open_part(w, it, false, it->path) : -1;
	v.upper = upper;
	v.lower = lower;
	v.before = before;
	if (before >= 0 && fstat(before, &st) == 0) {
		int64_t ctime_ns = st.st_ctim.tv_sec * 1000000000LL + st.st_ctim.tv_nsec;
		v.young = ctime_ns >= w->r->rec->base_ns;
		v.touched = v.young && !applied_is_ours(w->r->applied, it->path, st.st_dev,
							st.st_ino, ctime_ns);
	}
	if (upper >= 0 && fstat(upper, &st) == 0 && (st.st_mode & 0500) != 0500)
		v.shut = open_up(upper, "");
	if (upper >= 0 && !w->r->copy)
		v.in = layer_opaque(w->r->root, upper, NULL);
	v.git = it->git || has_layout(&v);
	int rc = look_in(w, &v);
	close_up(&v.shut);
	return rc;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct change *)a)->path, ((const struct change *)b)->path);
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a;
	uint32_t y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static bool was_copied_away(const struct change *c)
{
	return c->origin && c->origin_ino && !c->before.mode && c->after.mode;
}

/* With unknown inodes: an entry that was deleted in the session and is as long and old was renamed. */
static void keep_renamed(struct changes *c)
{
	for (size_t i = 0; i < c->n; i++) {
		struct change *to = &c->v[i];
		if (!to->conflict || !to->origin || to->origin_ino || to->before.mode ||
		    !S_ISREG(to->after.mode))
			continue;
		for (size_t k = 0; k < c->n && to->conflict; k++) {
			const struct change *from = &c->v[k];
			to->conflict = !(from->before.mode && !from->after.mode &&
					 from->before.size == to->after.size &&
					 from->before.mtime_ns == to->after.mtime_ns);
		}
	}
}

/*
 * A file that was copied up is there and the source has nothing: it was renamed
 * in the session, then its old entry is among the changes or has an equal one in its
 * place, or removed from the source, which is a conflict. Handles hold 32 bits of the
 * inode on some file systems.
 */
static int find_lost(const struct walk *w, struct changes *c, struct err *e)
{
	keep_renamed(c);
	size_t n = w->equal_n;

	AUTO_FREE uint32_t *inos = malloc((c->n + n + 1) * sizeof(*inos));
	if (!inos)
		return err_set(e, ERR_INTERNAL, "out of memory");
	if (n)
		memcpy(inos, w->equal, n * sizeof(*inos));
	for (size_t i = 0; i < c->n; i++) {
		if (c->v[i].before.mode)
			inos[n++] = (uint32_t)c->v[i].before.ino;
	}
	qsort(inos, n, sizeof(*inos), by_number);
	for (size_t i = 0; i < c->n; i++) {
		uint32_t ino = (uint32_t)c->v[i].origin_ino;
		if (was_copied_away(&c->v[i]) && !bsearch(&ino, inos, n, sizeof(*inos), by_number))
			c->v[i].conflict = true;
	}
	return 0;
}

static void sort(struct changes *c)
{
	size_t n = 0;

	if (c->n)
		qsort(c->v, c->n, sizeof(*c->v), by_path);
	/* A directory that changes while it is read can give a name twice. */
	for (size_t i = 0; i < c->n; i++) {
		if (n == 0 || strcmp(c->v[n - 1].path, c->v[i].path) != 0)
			c->v[n++] = c->v[i];
	}
	c->n = n;
}

int changes_find(const struct review *r, struct changes *ret, struct err *e)
{
	struct changes c = {.v = NULL};
	struct walk w = {.r = r, .c = &c, .e = e};
	struct item top = {.path = "", .lower = r->copy ? NULL : "", .upper = true, .before = true};
	int rc = push(&w, &top);

	while (rc == 0 && w.n) {
		struct item it = w.todo[--w.n];
		rc = visit(&w, &it);
	}
	free(w.todo);
	if (rc == 0) {
		sort(&c);
		rc = find_lost(&w, &c, e);
	}
	free(w.equal);
	if (rc < 0) {
		changes_release(&c);
		return -1;
	}
	*ret = c;
	return 0;
}

void changes_release(struct changes *c)
{
	while (c->text) {
		struct change_text *next = c->text->next;
		free(c->text);
		c->text = next;
	}
	free(c->v);
	*c = (struct changes){.v = NULL};
}

size_t changes_seek(const struct changes *c, const char *path)
{
	size_t low = 0;
	size_t high = c->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (strcmp(c->v[mid].path, path) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

const struct change *changes_get(const struct changes *c, const char *path)
{
	size_t i = changes_seek(c, path);

	return i < c->n && strcmp(c->v[i].path, path) == 0 ? &c->v[i] : NULL;
}

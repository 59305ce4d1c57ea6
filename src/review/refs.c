/* SPDX-License-Identifier: Apache-2.0 */
#include "review/refs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "review/layer.h"

#define GIT ".git/"
#define PACKED GIT "packed-refs"
#define MAX_LOOSE_TEXT 4096u
#define OID_MAX 64u

struct packed_ref {
	const char *name; /* heap memory */
	char oid[OID_MAX + 1];
};

/* One side's packed-refs. */
struct packed {
	struct packed_ref *v; /* sorted by name */
	size_t n, cap;
};

bool refs_is_oid(const char *p, size_t n)
{
	if (n != 40 && n != OID_MAX)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!((p[i] >= '0' && p[i] <= '9') || (p[i] >= 'a' && p[i] <= 'f')))
			return false;
	}
	return true;
}

/* What a person can be shown as it is; git's own rules are narrower still. */
static bool is_name(const char *p, size_t n)
{
	if (n < 5 || n >= MAX_REF_NAME || memcmp(p, "refs/", 5) != 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (p[i] <= ' ' || p[i] == 0x7f)
			return false;
	}
	return true;
}

bool refs_parse_packed(const char *text, size_t n, ref_packed *each, void *self)
{
	char oid[OID_MAX + 1];
	char name[MAX_REF_NAME];

	for (size_t at = 0; at < n;) {
		const char *line = text + at;
		const char *end = memchr(line, '\n', n - at);
		size_t len = end ? (size_t)(end - line) : n - at;
		const char *space = memchr(line, ' ', len);
		at += len + 1;
		if (!space || !refs_is_oid(line, (size_t)(space - line)))
			continue;
		size_t name_n = len - (size_t)(space - line) - 1;
		if (!is_name(space + 1, name_n))
			continue;
		memcpy(oid, line, (size_t)(space - line));
		oid[space - line] = '\0';
		memcpy(name, space + 1, name_n);
		name[name_n] = '\0';
		if (!each(self, name, oid))
			return false;
	}
	return true;
}

void refs_parse_loose(const char *text, size_t n, char ret[MAX_REF_TEXT])
{
	while (n && (text[n - 1] == '\n' || text[n - 1] == ' ' || text[n - 1] == '\r'))
		n--;
	(void)snprintf(ret, MAX_REF_TEXT, "?");
	if (refs_is_oid(text, n)) {
		memcpy(ret, text, n);
		ret[n] = '\0';
		return;
	}
	if (n < 5 || memcmp(text, "ref:", 4) != 0)
		return;
	size_t at = 4 + (text[4] == ' ');
	if (is_name(text + at, n - at))
		(void)snprintf(ret, MAX_REF_TEXT, "ref: %.*s", (int)(n - at), text + at);
}

/* A file's beginning, heap memory; NULL if it is none. */
static char *read_file(int fd, size_t max, size_t *ret_n)
{
	struct stat st;
	size_t at = 0;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return NULL;
	size_t n = (uint64_t)st.st_size < max ? (size_t)st.st_size : max;
	char *text = malloc(n + 1);
	while (text && at < n) {
		ssize_t some = RETRY_EINTR(read(fd, text + at, n - at));
		if (some <= 0)
			break;
		at += (size_t)some;
	}
	*ret_n = at;
	return text;
}

/* What lies at the path on that side, whether it changed or not. */
static char *read_at(const struct review *r, const struct changes *c, const char *path, bool after,
		     size_t max, size_t *ret_n)
{
	const struct change *x = changes_get(c, path);
	struct err ignored = {0};

	if (!x || !after) {
		AUTO_FD int fd = layer_open(r->source, path, O_RDONLY);
		return read_file(fd, max, ret_n);
	}
	AUTO_FD int fd = S_ISREG(x->after.mode) ? change_open(r, &x->after, &ignored) : -1;
	return read_file(fd, max, ret_n);
}

static bool add_packed(void *self, const char *name, const char *oid)
{
	struct packed *p = self;

	if (p->n == p->cap) {
		size_t cap = p->cap ? 2 * p->cap : 256;
		struct packed_ref *v = reallocarray(p->v, cap, sizeof(*v));
		if (!v)
			return false;
		p->v = v;
		p->cap = cap;
	}
	struct packed_ref *new = &p->v[p->n];
	new->name = strdup(name);
	if (!new->name)
		return false;
	memcpy(new->oid, oid, strlen(oid) + 1);
	p->n++;
	return true;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct packed_ref *)a)->name, ((const struct packed_ref *)b)->name);
}

static int read_packed(const struct review *r, const struct changes *c, bool after,
		       struct packed *p, struct err *e)
{
	size_t n = 0;
	AUTO_FREE char *text = read_at(r, c, PACKED, after, MAX_PACKED_TEXT, &n);

	if (text && !refs_parse_packed(text, n, add_packed, p))
		return err_set(e, ERR_INTERNAL, "out of memory");
	if (p->n)
		qsort(p->v, p->n, sizeof(*p->v), by_name);
	return 0;
}

static void packed_release(struct packed *p)
{
	for (size_t i = 0; i < p->n; i++)
		free((char *)(uintptr_t)p->v[i].name);
	free(p->v);
}

struct find {
	const struct review *r;
	const struct changes *c;
	struct packed was, is;
	struct refs *out;
	struct err *e;
};

static void value_of(const struct find *f, const char *name, bool after, char ret[MAX_REF_TEXT])
{
	const struct packed *p = after ? &f->is : &f->was;
	struct packed_ref key = {.name = name};
	char path[MAX_REF_NAME + sizeof(GIT)];
	size_t n = 0;

	ret[0] = '\0';
	(void)snprintf(path, sizeof(path), GIT "%s", name);
	AUTO_FREE char *text = read_at(f->r, f->c, path, after, MAX_LOOSE_TEXT, &n);
	if (text) {
		refs_parse_loose(text, n, ret);
		return;
	}
	const struct packed_ref *found =
		p->n ? bsearch(&key, p->v, p->n, sizeof(*p->v), by_name) : NULL;
	if (found)
		memcpy(ret, found->oid, strlen(found->oid) + 1);
}

/* One that may have moved. */
static int look_at(struct find *f, const char *name)
{
	struct refs *out = f->out;
	struct ref_move m = {.name = NULL};

	value_of(f, name, false, m.was);
	value_of(f, name, true, m.is);
	if (strcmp(m.was, m.is) == 0)
		return 0;
	if (out->n == MAX_REFS) {
		out->more++;
		return 0;
	}
	if (out->n == out->cap) {
		size_t cap = out->cap ? 2 * out->cap : 16;
		struct ref_move *v = reallocarray(out->v, cap, sizeof(*v));
		if (!v)
			return err_set(f->e, ERR_INTERNAL, "out of memory");
		out->v = v;
		out->cap = cap;
	}
	m.name = strdup(name);
	if (!m.name)
		return err_set(f->e, ERR_INTERNAL, "out of memory");
	out->v[out->n++] = m;
	return 0;
}

static int by_ref(const void *a, const void *b)
{
	return strcmp(((const struct ref_move *)a)->name, ((const struct ref_move *)b)->name);
}

static int look_at_loose(struct find *f)
{
	size_t at = changes_seek(f->c, GIT "refs/");

	for (; at < f->c->n; at++) {
		const struct change *x = &f->c->v[at];
		if (strncmp(x->path, GIT "refs/", sizeof(GIT "refs/") - 1) != 0)
			return 0;
		const char *name = x->path + sizeof(GIT) - 1;
		if (!S_ISREG(x->before.mode) && !S_ISREG(x->after.mode))
			continue;
		if (is_name(name, strlen(name)) && look_at(f, name) < 0)
			return -1;
	}
	return 0;
}

/* Those of either file that differ; a loose one of the same name has been looked at. */
static int look_at_packed(struct find *f)
{
	size_t i = 0;
	size_t j = 0;

	while (i < f->was.n || j < f->is.n) {
		const struct packed_ref *a = i < f->was.n ? &f->was.v[i] : NULL;
		const struct packed_ref *b = j < f->is.n ? &f->is.v[j] : NULL;
		int order = !a ? 1 : !b ? -1 : strcmp(a->name, b->name);
		const char *name = order <= 0 ? a->name : b->name;
		bool same = order == 0 && strcmp(a->oid, b->oid) == 0;
		i += order <= 0;
		j += order >= 0;
		if (!same && look_at(f, name) < 0)
			return -1;
	}
	return 0;
}

static void drop_twice(struct refs *r)
{
	size_t n = 0;

	if (r->n)
		qsort(r->v, r->n, sizeof(*r->v), by_ref);
	for (size_t i = 0; i < r->n; i++) {
		if (n && strcmp(r->v[n - 1].name, r->v[i].name) == 0)
			free(r->v[i].name);
		else
			r->v[n++] = r->v[i];
	}
	r->n = n;
}

static bool any_touched(const struct changes *c)
{
	size_t at = changes_seek(c, GIT "refs/");

	return changes_get(c, GIT "HEAD") || changes_get(c, PACKED) ||
	       (at < c->n && strncmp(c->v[at].path, GIT "refs/", sizeof(GIT "refs/") - 1) == 0);
}

int refs_find(const struct review *r, const struct changes *c, struct refs *ret, struct err *e)
{
	struct refs out = {.v = NULL};
	struct find f = {.r = r, .c = c, .out = &out, .e = e};
	int rc = 0;

	*ret = out;
	if (!any_touched(c))
		return 0;
	rc = read_packed(r, c, false, &f.was, e);
	if (rc == 0)
		rc = read_packed(r, c, true, &f.is, e);
	if (rc == 0 && changes_get(c, GIT "HEAD"))
		rc = look_at(&f, "HEAD");
	if (rc == 0)
		rc = look_at_loose(&f);
	if (rc == 0 && changes_get(c, PACKED))
		rc = look_at_packed(&f);
	packed_release(&f.was);
	packed_release(&f.is);
	drop_twice(&out);
	if (rc < 0)
		refs_release(&out);
	else
		*ret = out;
	return rc;
}

void refs_release(struct refs *refs)
{
	for (size_t i = 0; i < refs->n; i++)
		free(refs->v[i].name);
	free(refs->v);
	*refs = (struct refs){.v = NULL};
}

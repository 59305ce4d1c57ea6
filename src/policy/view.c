/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assembles the view from its parts. Of the host's paths only small
 * files of /etc and the caller's git configuration are opened; nothing is made.
 */
#include "policy/view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/term.h"
#include "policy/gitid.h"
#include "policy/look.h"
#include "policy/pattern.h"

#define SHOWN 512

/* Texts live as long as the view, so they are cut from large pieces. */
struct view_chunk {
	struct view_chunk *next;
	size_t used, size;
	_Alignas(8) char text[];
};

#define CHUNK_BYTES 30000u

void *view_room(struct view *v, size_t n)
{
	struct view_chunk *c = malloc(sizeof(*c) + n);

	if (!c)
		return NULL;
	*c = (struct view_chunk){.size = n, .used = n};
	/* Behind the one that has room left. */
	struct view_chunk **at = v->chunks ? &v->chunks->next : &v->chunks;
	c->next = *at;
	*at = c;
	return c->text;
}

static const char *keep(struct view *v, const char *p, size_t n, struct err *e)
{
	struct view_chunk *c = v->chunks;

	if (!c || c->size - c->used < n + 1) {
		size_t size = n + 1 > CHUNK_BYTES ? n + 1 : CHUNK_BYTES;
		c = malloc(sizeof(*c) + size);
		if (!c) {
			(void)err_set(e, ERR_INTERNAL, "out of memory");
			return NULL;
		}
		*c = (struct view_chunk){.next = v->chunks, .size = size};
		v->chunks = c;
	}
	char *copy = c->text + c->used;
	memcpy(copy, p, n);
	copy[n] = '\0';
	c->used += n + 1;
	return copy;
}

/*
 * Without namespaces there is nothing but the host's own paths: a file that we
 * would make is the host's file of that name, and what names one sandbox, or
 * covers something, is not there. False: nothing to add.
 */
static bool make_rule(struct view *v, struct plan_mount *m, struct err *e)
{
	if (m->kind == MOUNT_FILE && path_is_below("/sand", m->dst)) {
		v->home_config = keep(v, m->src, m->src_len, e);
		return false;
	}
	if (m->kind == MOUNT_FILE && strcmp(m->dst, "/etc/machine-id") != 0) {
		m->kind = MOUNT_BIND;
		m->flags = MOUNT_SYSTEM | MOUNT_OPTIONAL;
		m->src = m->dst;
		m->src_len = strlen(m->dst);
	}
	m->flags &= ~(uint32_t)MOUNT_IDMAP;
	m->dst = m->src;
	return m->kind == MOUNT_BIND;
}

static int add(struct view *v, struct plan_mount m, struct err *e)
{
	if (v->rules && !make_rule(v, &m, e))
		return 0;
	if (v->n == MAX_PLAN_MOUNTS)
		return err_set(e, ERR_CONFIG_INVALID, "the view has more than %u entries",
			       MAX_PLAN_MOUNTS);
	m.dst = keep(v, m.dst, strlen(m.dst), e);
	if (m.src)
		m.src = keep(v, m.src, m.src_len, e);
	if (!m.dst || (m.src_len && !m.src))
		return -1;
	v->mounts[v->n++] = m;
	return 0;
}

int view_bind(struct view *v, const char *src, const char *dst, uint32_t flags,
	      const struct stat *ident, struct err *e)
{
	struct plan_mount m = {
		.kind = MOUNT_BIND,
		.flags = flags | (ident ? (uint32_t)MOUNT_IDENT : 0) |
			 (ident && S_ISDIR(ident->st_mode) ? (uint32_t)MOUNT_DIRECTORY : 0),
		.dst = dst ? dst : src,
		.src = src,
		.src_len = strlen(src),
	};

	if (ident) {
		m.dev = ident->st_dev;
		m.ino = ident->st_ino;
		m.owner_uid = ident->st_uid;
		m.owner_gid = ident->st_gid;
	}
	return add(v, m, e);
}

int view_made(struct view *v, enum plan_mount_kind kind, const char *dst, const char *content,
	      struct err *e)
{
	return add(v,
		   (struct plan_mount){.kind = kind,
				       .flags = MOUNT_SYSTEM,
				       .dst = dst,
				       .src = content,
				       .src_len = content ? strlen(content) : 0},
		   e);
}

int view_file(struct view *v, const char *dst, const char *content, size_t n, struct err *e)
{
	return add(v,
		   (struct plan_mount){.kind = MOUNT_FILE,
				       .flags = MOUNT_SYSTEM,
				       .dst = dst,
				       .src = content,
				       .src_len = n},
		   e);
}

int view_pin(struct view *v, const char *path, uint32_t flags, struct err *e)
{
	return add(v,
		   (struct plan_mount){.kind = MOUNT_PIN,
				       .flags = flags | MOUNT_OPTIONAL,
				       .dst = path},
		   e);
}

int view_mask(struct view *v, const char *path, uint32_t flags, struct err *e)
{
	return add(v,
		   (struct plan_mount){.kind = MOUNT_MASK,
				       .flags = flags | MOUNT_OPTIONAL,
				       .dst = path},
		   e);
}

bool view_covers(const struct view *v, const char *path)
{
	for (size_t i = 0; i < v->n; i++)
		if (v->mounts[i].kind == MOUNT_BIND && path_is_below(v->mounts[i].dst, path))
			return true;
	return false;
}

/* /usr and what lies beside it: links on a merged system, else directories. */
static int add_system(struct view *v, struct err *e)
{
	static const char *const top[] = {"/usr",   "/bin",   "/sbin",  "/lib",
					  "/lib32", "/lib64", "/libx32"};
	char text[PATH_TEXT];
	struct stat st;

	for (size_t i = 0; i < sizeof(top) / sizeof(top[0]); i++) {
		if (look_lstat(top[i], &st) < 0)
			continue;
		if (!S_ISLNK(st.st_mode)) {
			if (view_bind(v, top[i], NULL, MOUNT_SYSTEM | MOUNT_DIRECTORY, NULL, e) < 0)
				return -1;
			continue;
		}
		ssize_t n = look_readlink(top[i], text, sizeof(text) - 1);
		if (n <= 0)
			return err_sys(e, "readlink %s", top[i]);
		text[n] = '\0';
		if (view_made(v, MOUNT_SYMLINK, top[i], text, e) < 0)
			return -1;
	}
	return 0;
}

static int add_sys_and_dirs(struct view *v, struct err *e)
{
	static const char *const sys[] = {"/sys/devices/system/cpu", "/sys/devices/system/node"};

	for (size_t i = 0; i < sizeof(sys) / sizeof(sys[0]); i++)
		if (view_bind(v, sys[i], NULL, MOUNT_SYSTEM | MOUNT_DIRECTORY | MOUNT_OPTIONAL,
			      NULL, e) < 0)
			return -1;
	if (view_made(v, MOUNT_DIR, "/run", NULL, e) < 0 ||
	    view_made(v, MOUNT_DIR, "/var", NULL, e) < 0 ||
	    view_made(v, MOUNT_SYMLINK, "/var/run", "/run", e) < 0)
		return -1;
	return 0;
}

/* The places that a sandbox may write: grants below them are opened without following links. */
static void writable_places(const struct view *v, const struct source *src, struct places *ret)
{
	ret->n = 0;
	if (src->given)
		(void)places_add(ret, &src->st);
	for (size_t i = 0; i < v->grant_count; i++)
		if (v->grants[i].write)
			(void)places_add(ret, &v->grants[i].st);
}

/* What no option opens: our own places inside, the host's /tmp, things that are no files. */
static int check_grant(const struct resolved *r, const char *option, struct err *e)
{
	char shown[SHOWN];

	if (source_check_place(r, option, e) < 0)
		return -1;
	(void)term_escape_cut(shown, sizeof(shown), r->path, strlen(r->path));
	if (strcmp(r->path, "/tmp") == 0 || strcmp(r->path, "/var/tmp") == 0) {
		(void)err_set(e, ERR_CONFIG_INVALID, "%s %s: inside, %s is private", option, shown,
			      shown);
		return err_hint(e, "name a directory below it");
	}
	if (!S_ISDIR(r->st.st_mode) && !S_ISREG(r->st.st_mode)) {
		(void)err_set(e, ERR_POLICY_DENIED,
			      "%s %s: a socket, device or fifo of the host is not granted", option,
			      shown);
		return err_hint(e,
				"it needs a reviewed exception, which this version does not have");
	}
	return 0;
}

/* The higher layer counts, within one layer reading. */
static int put_grant(struct view *v, const struct resolved *r, bool write, uint8_t layer,
		     struct err *e)
{
	struct grant *g = NULL;

	for (size_t i = 0; i < v->grant_count && !g; i++)
		if (strcmp(v->grants[i].path, r->path) == 0)
			g = &v->grants[i];
	if (g && (g->layer > layer || (g->layer == layer && !g->write)))
		return 0;
	if (!g && v->grant_count == MAX_GRANTS)
		return err_set(e, ERR_CONFIG_INVALID, "more than %u paths granted", MAX_GRANTS);
	if (!g)
		g = &v->grants[v->grant_count++];
	memcpy(g->path, r->path, sizeof(r->path));
	g->st = r->st;
	g->write = write;
	g->layer = layer;
	g->linked = g->narrow = false;
	return 0;
}

static struct grant *granted(struct view *v, const char *path)
{
	for (size_t i = 0; i < v->grant_count; i++)
		if (strcmp(v->grants[i].path, path) == 0)
			return &v->grants[i];
	return NULL;
}

static int add_grants(struct view *v, const struct strlist *list, bool write,
		      const struct caller *who, const struct refused *refused,
		      const struct source *src, struct err *e)
{
	const char *option = write ? "--write" : "--read";
	struct places writable;
	struct resolved r;

	for (size_t i = 0; i < list->n; i++) {
		if (!write && pattern_is(list->v[i]))
			continue; /* of what is shown anyway: the guard's */
		writable_places(v, src, &writable);
		if (resolve_path(list->v[i], who->cwd, &writable, &r, e) < 0)
			return err_wrap(e, "%s", option);
		if (check_grant(&r, option, e) < 0 || refused_check(refused, option, &r, e) < 0 ||
		    put_grant(v, &r, write, LAYER_OPTION, e) < 0)
			return -1;
	}
	return 0;
}

/* What a file names need not be there, nor be reachable for who runs this. */
static bool is_absent(const struct err *e)
{
	return e->sys == ENOENT || e->sys == ENOTDIR || e->sys == EACCES;
}

static int add_rule(struct view *v, const struct path_rule *rule, const struct refused *refused,
		    const struct source *src, struct err *e)
{
	struct places writable;
	struct resolved r;
	struct err why;
	char shown[SHOWN];

	writable_places(v, src, &writable);
	struct stat st;
	if (resolve_path(rule->path, NULL, &writable, &r, &why) < 0) {
		/* A link that leads nowhere is nothing either, wherever it lies. */
		if (is_absent(&why) || (stat(rule->path, &st) < 0 && errno == ENOENT))
			return 0;
		*e = why;
		return err_wrap(e, "%s", rule->origin);
	}
	/* A file that can only narrow takes writing away, it shows nothing. */
	if (rule->narrow && !(src->given && path_is_below(src->path, r.path)))
		return 0;
	(void)term_escape_cut(shown, sizeof(shown) - 1, rule->origin, strlen(rule->origin));
	memcpy(shown + strlen(shown), ":", 2);
	if (check_grant(&r, shown, e) < 0 || refused_check(refused, shown, &r, e) < 0)
		return -1;
	if (put_grant(v, &r, rule->access == ACCESS_WRITE, rule->layer, e) < 0)
		return -1;
	struct grant *g = granted(v, r.path);
	g->narrow = g->layer == rule->layer && rule->narrow;
	return 0;
}

static int add_rules(struct view *v, const struct request *req, bool write,
		     const struct refused *refused, const struct source *src, struct err *e)
{
	for (size_t i = 0; i < req->rule_count; i++) {
		const struct path_rule *rule = &req->rules[i];
		if (rule->pattern || rule->access != (write ? ACCESS_WRITE : ACCESS_READ))
			continue;
		if (add_rule(v, rule, refused, src, e) < 0)
			return -1;
	}
	return 0;
}

/* Writable ones first, whoever names them: no link in them is followed by the others. */
int view_grants(struct view *v, const struct request *req, const struct caller *who,
		const struct refused *refused, const struct source *src, struct err *e)
{
	if (add_grants(v, &req->write, true, who, refused, src, e) < 0 ||
	    add_rules(v, req, true, refused, src, e) < 0 ||
	    add_grants(v, &req->read, false, who, refused, src, e) < 0 ||
	    add_rules(v, req, false, refused, src, e) < 0)
		return -1;
	return 0;
}

int view_link(struct view *v, const struct request *req, const struct caller *who,
	      const struct refused *refused, const struct source *src, struct gitlink *ret,
	      struct err *e)
{
	gitlink_find(src, who, refused, ret);
	if (!ret->found)
		return 0;
	for (size_t i = 0; i < v->grant_count; i++)
		if (path_is_below(v->grants[i].path, ret->common))
			return 0; /* shown anyway, with the rights that were asked for */
	if (v->grant_count == MAX_GRANTS)
		return err_set(e, ERR_CONFIG_INVALID, "more than %u paths granted", MAX_GRANTS);
	struct grant *g = &v->grants[v->grant_count++];
	memcpy(g->path, ret->common, sizeof(ret->common));
	g->st = ret->st;
	g->write = req->mode == MODE_WORKSPACE_WRITE;
	g->layer = LAYER_BUILT_IN;
	g->linked = true;
	return 0;
}

static int by_depth(const void *a, const void *b)
{
	const struct plan_mount *x = a;
	const struct plan_mount *y = b;

	return strcmp(x->dst, y->dst);
}

/* A rule that reads the source's top itself takes writing away from all of it. */
static bool is_source_closed(const struct view *v, const struct source *src)
{
	for (size_t i = 0; i < v->grant_count; i++)
		if (!v->grants[i].write && strcmp(v->grants[i].path, src->path) == 0)
			return true;
	return false;
}

/* Whether the nearest of what holds a grant is writable. */
static bool is_writable_there(const struct view *v, const struct source *src, const struct grant *g,
			      bool read_only)
{
	size_t nearest = 0;
	bool writable = false;

	if (src->given && path_is_below(src->path, g->path)) {
		nearest = strlen(src->path);
		writable = !read_only && !is_source_closed(v, src);
	}
	for (size_t i = 0; i < v->grant_count; i++) {
		const struct grant *o = &v->grants[i];
		size_t n = strlen(o->path);
		if (o == g || n < nearest || n >= strlen(g->path) ||
		    !path_is_below(o->path, g->path))
			continue;
		nearest = n;
		writable = o->write;
	}
	return writable;
}

/* A parent goes before what lies in it, else it would cover it. */
int view_add_places(struct view *v, const struct request *req, const struct source *src,
		    const struct view_ids *ids, struct err *e)
{
	bool read_only = req->mode == MODE_READ_ONLY;
	size_t first = v->n;
	const struct grant *of_source = src->given ? granted(v, src->path) : NULL;
	uint32_t write = read_only || (of_source && !of_source->write) ? 0 : MOUNT_WRITE;
	uint32_t map = ids->idmap ? MOUNT_IDMAP : 0;

	if (src->given && is_source_closed(v, src))
		write = 0;
	if (src->given && view_bind(v, src->path, NULL, write | map, &src->st, e) < 0)
		return -1;
	for (size_t i = 0; i < v->grant_count; i++) {
		const struct grant *g = &v->grants[i];
		if (src->given && strcmp(g->path, src->path) == 0)
			continue;
		/* Writable already: a mount of its own would only stand in the way of renames. */
		if (g->write && is_writable_there(v, src, g, read_only))
			continue;
		/* What lies in the source already has its rights unless the grant changes them. */
		if (view_bind(v, g->path, NULL, (g->write ? MOUNT_WRITE : 0u) | map, &g->st, e) < 0)
			return -1;
	}
	qsort(&v->mounts[first], v->n - first, sizeof(v->mounts[0]), by_depth);
	return 0;
}

static int add_given_places(struct view *v, const struct request *req, const struct source *src,
			    uint32_t map, struct err *e)
{
	bool read_only = req->mode == MODE_READ_ONLY || is_source_closed(v, src);

	if (view_bind(v, src->path, NULL,
		      MOUNT_GIVEN | MOUNT_DIRECTORY | (read_only ? 0u : (uint32_t)MOUNT_WRITE),
		      NULL, e) < 0)
		return -1;
	for (size_t i = 0; i < v->grant_count; i++) {
		const struct grant *g = &v->grants[i];
		bool in = path_is_below(src->path, g->path);
		if (strcmp(g->path, src->path) == 0 || (in && g->write))
			continue;
		if (in ? view_pin(v, g->path, 0, e) < 0
		       : view_bind(v, g->path, NULL, (g->write ? (uint32_t)MOUNT_WRITE : 0u) | map,
				   &g->st, e) < 0)
			return -1;
	}
	return 0;
}

int view_add_session(struct view *v, const struct request *req, const struct source *src,
		     const struct view_ids *ids, const struct view_session *how, struct err *e)
{
	if (view_bind(v, how->root, "/sand", MOUNT_WRITE | MOUNT_DIRECTORY, NULL, e) < 0)
		return -1;
	if (!how->given)
		return view_add_places(v, req, src, ids, e);
	return add_given_places(v, req, src, ids->idmap ? (uint32_t)MOUNT_IDMAP : 0u, e);
}

int view_add_usual(struct view *v, const struct caller *who, const struct refused *refused,
		   const struct source *src, const struct view_ids *ids, struct err *e)
{
	if (add_system(v, e) < 0 || view_add_etc(v, ids, e) < 0 || add_sys_and_dirs(v, e) < 0 ||
	    view_add_toolchains(v, who, src, refused, e) < 0)
		return -1;
	if (!src->given && view_made(v, MOUNT_SYMLINK, "/workspace", "/sand/workspace", e) < 0)
		return -1;
	return gitid_add(v, who, src, e);
}

void view_release(struct view *v)
{
	while (v->chunks) {
		struct view_chunk *next = v->chunks->next;
		free(v->chunks);
		v->chunks = next;
	}
	v->n = v->grant_count = 0;
	v->home_config = NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/viewcache.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "policy/viewcache_record.h"

#define STATE_PATHS ARRAY_LEN(((struct refused *)0)->state_path)
#define SUM_START UINT64_C(0xcbf29ce484222325)

static uint64_t sum_of(uint64_t h, const unsigned char *p, size_t n)
{
	uint64_t word = 0;

	for (; n >= sizeof(word); p += sizeof(word), n -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		h = (h ^ word) * UINT64_C(0x100000001b3);
		h ^= h >> 29;
	}
	for (; n; p++, n--)
		h = (h ^ *p) * UINT64_C(0x100000001b3);
	return h;
}

/* Of the head too: it says how many places are refused, and where their texts are. */
uint64_t viewcache_sum(const struct viewcache_head *h, const void *body, size_t n)
{
	struct viewcache_head copy = *h;

	copy.sum = 0;
	return sum_of(sum_of(SUM_START, (const unsigned char *)&copy, sizeof(copy)), body, n);
}

int viewcache_key(const struct caller *who, const struct source *src, const struct view_ids *ids,
		  struct buf *ret, struct err *e)
{
	static const char *const names[] = {"PATH", "XDG_CONFIG_HOME", "XDG_STATE_HOME",
					    "SANDGLASS_HOME"};
	struct stat st;

	/* A program that was put in the place of this one may see things otherwise. */
	if (stat("/proc/self/exe", &st) < 0)
		memset(&st, 0, sizeof(st));
	(void)buf_printf(ret, "%s %llx:%llx:%llx %lld.%ld %lld.%ld", SANDGLASS_VERSION,
			 (unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
			 (unsigned long long)st.st_size, (long long)st.st_mtim.tv_sec,
			 st.st_mtim.tv_nsec, (long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
	(void)buf_printf(ret, " %u %u %d %u %u %d %s", who->uid, who->gid, who->root, ids->uid,
			 ids->gid, ids->idmap, ids->name);
	(void)buf_char(ret, '\0');
	(void)buf_str(ret, who->home ? who->home : "");
	(void)buf_char(ret, '\0');
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *value = caller_env(who, names[i]);
		(void)buf_str(ret, value ? value : "");
		(void)buf_char(ret, value ? '=' : '-');
		(void)buf_char(ret, '\0');
	}
	(void)buf_str(ret, src->given ? src->path : "-");
	(void)buf_char(ret, '\0');
	return buf_check(ret, "what the view depends on", ERR_ARG_LIMIT, e);
}

void viewcache_name(const struct buf *key, char ret[VIEWCACHE_NAME])
{
	(void)snprintf(ret, VIEWCACHE_NAME, "view-%016llx",
		       (unsigned long long)sum_of(SUM_START, (const unsigned char *)key->p,
						  key->n));
}

struct parts {
	const struct viewcache_head *h;
	const struct look *inputs;
	const struct viewcache_mount *mounts;
	const struct place *homes, *states;
	const char *text;
};

/* The text at an offset ends within the text, which ends with a NUL. */
static bool is_text(const struct parts *p, uint32_t at)
{
	return at < p->h->text_len;
}

static bool find_parts(const void *bytes, size_t n, struct parts *p)
{
	const struct viewcache_head *h = bytes;
	const char *at = (const char *)(h + 1);

	if (n < sizeof(*h) || n > MAX_VIEWCACHE_BYTES || h->magic != VIEWCACHE_MAGIC ||
	    h->format != VIEWCACHE_FORMAT || h->total != n)
		return false;
	if (h->inputs > MAX_LOOKS || h->mounts > MAX_PLAN_MOUNTS || h->homes > MAX_PLACES ||
	    h->states > MAX_PLACES || h->state_paths > STATE_PATHS || !h->text_len ||
	    h->text_len > MAX_VIEWCACHE_BYTES || h->key_len > h->text_len)
		return false;
	size_t need = sizeof(*h) + h->inputs * sizeof(struct look) +
		      h->mounts * sizeof(struct viewcache_mount) +
		      ((size_t)h->homes + h->states) * sizeof(struct place) + h->text_len;
	if (need != n || viewcache_sum(h, at, n - sizeof(*h)) != h->sum)
		return false;
	p->h = h;
	p->inputs = (const void *)at;
	p->mounts = (const void *)(p->inputs + h->inputs);
	p->homes = (const void *)(p->mounts + h->mounts);
	p->states = p->homes + h->homes;
	p->text = (const char *)(p->states + h->states);
	return p->text[h->text_len - 1] == '\0';
}

static bool take_mount(const struct parts *p, const struct viewcache_mount *k,
		       struct plan_mount *ret)
{
	if (k->kind >= MOUNT_KINDS || (k->flags & ~(uint32_t)MOUNT_FLAGS_ALL) ||
	    !is_text(p, k->dst) || p->text[k->dst] != '/' || k->has_src > 1 ||
	    (k->has_src && (k->src >= p->h->text_len || k->src_len >= p->h->text_len - k->src)) ||
	    (!k->has_src && k->src_len))
		return false;
	*ret = (struct plan_mount){.kind = k->kind,
				   .flags = k->flags,
				   .dev = k->dev,
				   .ino = k->ino,
				   .owner_uid = k->owner_uid,
				   .owner_gid = k->owner_gid,
				   .dst = p->text + k->dst,
				   .src = k->has_src ? p->text + k->src : NULL,
				   .src_len = k->src_len};
	return true;
}

static bool take_refused(const struct parts *p, struct refused *r)
{
	const struct viewcache_head *h = p->h;

	r->homes.n = h->homes;
	r->state.n = h->states;
	if (h->homes)
		memcpy(r->homes.v, p->homes, h->homes * sizeof(struct place));
	if (h->states)
		memcpy(r->state.v, p->states, h->states * sizeof(struct place));
	r->state_paths = h->state_paths;
	for (uint32_t i = 0; i < h->state_paths; i++) {
		if (!is_text(p, h->state_path[i]) ||
		    strlen(p->text + h->state_path[i]) >= PATH_TEXT)
			return false;
		(void)snprintf(r->state_path[i], PATH_TEXT, "%s", p->text + h->state_path[i]);
	}
	return true;
}

bool viewcache_decode(const void *bytes, size_t n, const struct buf *key, struct view *v,
		      struct refused *refused)
{
	size_t before = v->n;
	struct parts p;

	if (!find_parts(bytes, n, &p) || p.h->key_len != key->n ||
	    (key->n && memcmp(p.text, key->p, key->n) != 0) || p.h->mounts > MAX_PLAN_MOUNTS - v->n)
		return false;
	for (uint32_t i = 0; i < p.h->inputs; i++)
		if (!is_text(&p, p.inputs[i].path) || p.inputs[i].kind > LOOK_CONTENT ||
		    !look_stands(&p.inputs[i], p.text + p.inputs[i].path))
			return false;
	bool good = take_refused(&p, refused);
	for (uint32_t i = 0; i < p.h->mounts && good; i++)
		good = take_mount(&p, &p.mounts[i], &v->mounts[v->n++]);
	if (!good)
		v->n = before;
	return good;
}

static uint32_t put_text(struct buf *text, const char *p, size_t n)
{
	uint32_t at = (uint32_t)text->n;

	(void)buf_add(text, p, n);
	(void)buf_char(text, '\0');
	return at;
}

static struct viewcache_mount keep_mount(const struct plan_mount *m, struct buf *text)
{
	struct viewcache_mount k = {.kind = m->kind,
				    .flags = m->flags,
				    .dev = m->dev,
				    .ino = m->ino,
				    .owner_uid = m->owner_uid,
				    .owner_gid = m->owner_gid,
				    .has_src = m->src != NULL,
				    .src_len = (uint32_t)m->src_len};

	k.dst = put_text(text, m->dst, strlen(m->dst));
	if (m->src)
		k.src = put_text(text, m->src, m->src_len);
	return k;
}

int viewcache_encode(const struct looks *in, const struct buf *key, const struct view *v,
		     size_t first, const struct refused *refused, struct buf *ret, struct err *e)
{
	AUTO_BUF text = BUF_INIT(MAX_VIEWCACHE_BYTES);
	AUTO_BUF body = BUF_INIT(MAX_VIEWCACHE_BYTES);
	struct viewcache_head h = {.magic = VIEWCACHE_MAGIC,
				   .format = VIEWCACHE_FORMAT,
				   .inputs = in->n,
				   .mounts = (uint32_t)(v->n - first),
				   .homes = (uint32_t)refused->homes.n,
				   .states = (uint32_t)refused->state.n,
				   .state_paths = (uint32_t)refused->state_paths,
				   .key_len = (uint32_t)key->n};

	(void)put_text(&text, key->p, key->n);
	for (uint32_t i = 0; i < in->n; i++) {
		struct look one = in->v[i];
		const char *path = in->text + one.path;
		one.path = put_text(&text, path, strlen(path));
		(void)buf_add(&body, &one, sizeof(one));
	}
	for (size_t i = first; i < v->n; i++) {
		struct viewcache_mount k = keep_mount(&v->mounts[i], &text);
		(void)buf_add(&body, &k, sizeof(k));
	}
	(void)buf_add(&body, refused->homes.v, refused->homes.n * sizeof(struct place));
	(void)buf_add(&body, refused->state.v, refused->state.n * sizeof(struct place));
	for (size_t i = 0; i < refused->state_paths; i++)
		h.state_path[i] =
			put_text(&text, refused->state_path[i], strlen(refused->state_path[i]));
	h.text_len = (uint32_t)text.n;
	(void)buf_add(&body, text.p, text.n);
	if (text.failed || buf_check(&body, "the view's entry", ERR_ARG_LIMIT, e) < 0)
		return err_set(e, ERR_ARG_LIMIT, "the view's entry is too long");
	h.total = (uint32_t)(sizeof(h) + body.n);
	h.sum = viewcache_sum(&h, body.p, body.n);
	(void)buf_add(ret, &h, sizeof(h));
	(void)buf_add(ret, body.p, body.n);
	return buf_check(ret, "the view's entry", ERR_ARG_LIMIT, e);
}

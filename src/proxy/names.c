/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of names, a hash over them and a list by age, all with indices. Index i
 * is the address SYNTHETIC4 + 1 + i.
 */
#include "proxy/names.h"

#include <stdbool.h>
#include <string.h>

#include "base/base.h"

#define NO_NAME UINT32_MAX

static uint32_t slot_of(const struct names *s, const char *text)
{
	/* FNV-1a over the seed and the text, folded. */
	uint64_t h = 0xcbf29ce484222325u ^ s->seed;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3u;
	h ^= s->seed >> 32;
	h = (h ^ h >> 29) * 0x9e3779b97f4a7c15u;
	return (uint32_t)(h >> 40) % MAX_SYNTHETIC_NAMES;
}

int names_init(struct names *ret, uint64_t seed, struct err *e)
{
	AUTO_FREE struct name **v = calloc(MAX_SYNTHETIC_NAMES, sizeof(struct name *));
	AUTO_FREE uint32_t *heads = malloc(MAX_SYNTHETIC_NAMES * sizeof(uint32_t));

	if (!v || !heads)
		return err_sys(e, "a table of names");
	for (size_t i = 0; i < MAX_SYNTHETIC_NAMES; i++)
		heads[i] = NO_NAME;
	*ret = (struct names){TAKE(v), 0, TAKE(heads), NO_NAME, NO_NAME, seed};
	return 0;
}

void names_release(struct names *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		free(s->v[i]);
	free(s->v);
	free(s->heads);
	*s = (struct names){.v = NULL};
}

static void unlink_age(struct names *s, const struct name *n)
{
	*(n->newer == NO_NAME ? &s->newest : &s->v[n->newer]->older) = n->older;
	*(n->older == NO_NAME ? &s->oldest : &s->v[n->older]->newer) = n->newer;
}

static void link_newest(struct names *s, struct name *n, uint64_t now_ms)
{
	n->used_ms = now_ms;
	n->newer = NO_NAME;
	n->older = s->newest;
	if (s->newest != NO_NAME)
		s->v[s->newest]->newer = n->index;
	else
		s->oldest = n->index;
	s->newest = n->index;
}

static void touch(struct names *s, struct name *n, uint64_t now_ms)
{
	unlink_age(s, n);
	link_newest(s, n, now_ms);
}

static void unlink_hash(struct names *s, const struct name *n)
{
	uint32_t *at = &s->heads[slot_of(s, n->host.text)];

	while (*at != n->index)
		at = &s->v[*at]->hash_next;
	*at = n->hash_next;
}

/* The one used longest ago of those without a connection, taken out of hash and list. */
static struct name *reuse(struct names *s, uint64_t now_ms)
{
	for (uint32_t i = s->oldest; i != NO_NAME; i = s->v[i]->newer) {
		struct name *n = s->v[i];
		if (now_ms - n->used_ms < UINT64_C(2000) * NAME_TTL_S)
			return NULL; /* all that follow are younger */
		if (n->connections)
			continue;
		unlink_hash(s, n);
		unlink_age(s, n);
		return n;
	}
	return NULL;
}

static struct name *another(struct names *s, uint64_t now_ms)
{
	if (s->n == MAX_SYNTHETIC_NAMES)
		return reuse(s, now_ms);
	struct name *n = calloc(1, sizeof(*n));
	if (n) {
		n->index = s->n;
		s->v[s->n++] = n;
	}
	return n;
}

struct name *names_take(struct names *s, const struct host *host, uint64_t now_ms)
{
	uint32_t *head = &s->heads[slot_of(s, host->text)];

	for (uint32_t i = *head; i != NO_NAME; i = s->v[i]->hash_next) {
		if (strcmp(s->v[i]->host.text, host->text) == 0) {
			touch(s, s->v[i], now_ms);
			return s->v[i];
		}
	}
	struct name *n = another(s, now_ms);
	if (!n)
		return NULL;
	n->host = *host;
	n->hash_next = *head; /* reuse() may have changed it */
	*head = n->index;
	link_newest(s, n, now_ms);
	return n;
}

static uint32_t get32(const unsigned char *b)
{
	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void put32(unsigned char *b, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		b[i] = (unsigned char)(v >> (24 - 8 * i));
}

static void prefix6(struct address *ret)
{
	if (!address_parse(SYNTHETIC6, ret))
		*ret = (struct address){.family = 6};
}

struct name *names_find(struct names *s, const struct address *a)
{
	struct address six;
	uint32_t v = get32(a->b);

	if (a->family == 6) {
		prefix6(&six);
		if (!address_in(a, &six, SYNTHETIC6_BITS))
			return NULL;
		v = get32(a->b + 12);
	}
	if (v <= SYNTHETIC4 || v - SYNTHETIC4 - 1 >= s->n)
		return NULL;
	return s->v[v - SYNTHETIC4 - 1];
}

void names_hold(struct names *s, struct name *n, uint64_t now_ms)
{
	n->connections++;
	touch(s, n, now_ms);
}

void names_drop(struct names *s, struct name *n, uint64_t now_ms)
{
	n->connections--;
	touch(s, n, now_ms);
}

void names_address4(const struct name *n, struct address *ret)
{
	*ret = (struct address){.family = 4};
	put32(ret->b, SYNTHETIC4 + 1 + n->index);
}

void names_address6(const struct name *n, struct address *ret)
{
	prefix6(ret);
	put32(ret->b + 12, SYNTHETIC4 + 1 + n->index);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table from strings to numbers, open addressing, never more than half
 * full.
 */
#include "base/nameset.h"

#include <stdlib.h>
#include <string.h>

/* FNV-1a, 64 bits. The keys are a project's paths: flooding it costs its owner only time. */
static uint64_t hash_of(const char *name)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 0x100000001b3u;
	return h;
}

static size_t slot_of(char **v, size_t cap, const char *name)
{
	size_t i = hash_of(name) & (cap - 1);

	while (v[i] && strcmp(v[i], name) != 0)
		i = (i + 1) & (cap - 1);
	return i;
}

static bool grow(struct nameset *s)
{
	size_t cap = s->cap ? s->cap * 2 : 64;
	char **v = calloc(cap, sizeof(*v));
	uint32_t *value = calloc(cap, sizeof(*value));

	if (!v || !value) {
		free(v);
		free(value);
		return false;
	}
	for (size_t i = 0; i < s->cap; i++) {
		if (!s->v[i])
			continue;
		size_t at = slot_of(v, cap, s->v[i]);
		v[at] = s->v[i];
		value[at] = s->value[i];
	}
	free(s->v);
	free(s->value);
	s->v = v;
	s->value = value;
	s->cap = cap;
	return true;
}

bool nameset_put(struct nameset *s, const char *name, uint32_t value)
{
	if (2 * (s->n + 1) > s->cap && !grow(s))
		return false;
	size_t i = slot_of(s->v, s->cap, name);
	if (!s->v[i]) {
		s->v[i] = strdup(name);
		if (!s->v[i])
			return false;
		s->n++;
	}
	s->value[i] = value;
	return true;
}

bool nameset_get(const struct nameset *s, const char *name, uint32_t *ret)
{
	if (!s->cap)
		return false;
	size_t i = slot_of(s->v, s->cap, name);
	if (!s->v[i])
		return false;
	if (ret)
		*ret = s->value[i];
	return true;
}

void nameset_release(struct nameset *s)
{
	for (size_t i = 0; i < s->cap; i++)
		free(s->v[i]);
	free(s->v);
	free(s->value);
	*s = (struct nameset){.n = 0};
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config/arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES 65536u

struct arena_chunk {
	struct arena_chunk *next;
	size_t used, size;
	alignas(max_align_t) char bytes[];
};

void *arena_take(struct arena *a, size_t n, struct err *e)
{
	struct arena_chunk *c = a->chunks;
	size_t aligned = (n + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);

	if (n > MAX_ARENA_BYTES || a->bytes + aligned > MAX_ARENA_BYTES) {
		(void)err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	if (!c || c->size - c->used < aligned) {
		size_t size = aligned > CHUNK_BYTES ? aligned : CHUNK_BYTES;
		c = calloc(1, sizeof(*c) + size);
		if (!c) {
			(void)err_set(e, ERR_INTERNAL, "out of memory");
			return NULL;
		}
		c->next = a->chunks;
		c->size = size;
		a->chunks = c;
	}
	void *p = c->bytes + c->used;
	c->used += aligned;
	a->bytes += aligned;
	return p;
}

char *arena_text(struct arena *a, const char *p, size_t n, struct err *e)
{
	char *copy = arena_take(a, n + 1, e);

	if (copy && n)
		memcpy(copy, p, n);
	return copy;
}

void arena_release(struct arena *a)
{
	while (a->chunks) {
		struct arena_chunk *next = a->chunks->next;
		free(a->chunks);
		a->chunks = next;
	}
	a->bytes = 0;
}

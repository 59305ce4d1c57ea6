/* SPDX-License-Identifier: Apache-2.0 */
#include "stats.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

int samples_init(struct samples *s, size_t cap, struct err *e)
{
	uint64_t *v = calloc(cap, sizeof(*v));
	if (!v) {
		(void)err_sys(e, "room for %zu samples", cap);
		return -1;
	}
	*s = (struct samples){.v = v, .cap = cap};
	return 0;
}

void samples_release(struct samples *s)
{
	free(s->v);
	*s = (struct samples){0};
}

int samples_add(struct samples *s, uint64_t value, struct err *e)
{
	if (s->n == s->cap)
		return err_set(e, ERR_INTERNAL, "more than %zu samples", s->cap);
	s->v[s->n++] = value;
	return 0;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

void samples_sort(struct samples *s)
{
	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), compare_u64);
}

uint64_t samples_rank(const struct samples *s, unsigned percent)
{
	assert(s->n > 0 && percent <= 100);
	size_t rank = (s->n * percent + 99) / 100;
	return s->v[rank ? rank - 1 : 0];
}

int samples_median(const struct samples *s, size_t from, size_t n, uint64_t *ret, struct err *e)
{
	assert(from + n <= s->n);
	if (!n) {
		*ret = 0;
		return 0;
	}
	struct samples part = {0};
	if (samples_init(&part, n, e))
		return -1;
	memcpy(part.v, s->v + from, n * sizeof(*part.v));
	part.n = n;
	samples_sort(&part);
	*ret = samples_rank(&part, 50);
	samples_release(&part);
	return 0;
}

uint64_t rng_init(struct rng *r, uint64_t seed)
{
	/* 32 bits are enough to repeat an order and short enough to type. */
	uint32_t fresh = 0;
	if (!seed && getrandom(&fresh, sizeof(fresh), 0) == (ssize_t)sizeof(fresh))
		seed = fresh;
	r->state = seed ? seed : 1;
	return r->state;
}

/* splitmix64: good enough to order a list, repeatable from its seed */
static uint64_t rng_next(struct rng *r)
{
	r->state += 0x9e3779b97f4a7c15ULL;
	uint64_t z = r->state;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

void rng_shuffle(struct rng *r, size_t *order, size_t n)
{
	for (size_t i = 0; i < n; i++)
		order[i] = i;
	for (size_t i = n; i > 1; i--) {
		size_t other = rng_next(r) % i;
		size_t kept = order[i - 1];
		order[i - 1] = order[other];
		order[other] = kept;
	}
}

uint64_t now_ns(void)
{
	struct timespec t;
	int rc = clock_gettime(CLOCK_MONOTONIC, &t);
	assert(rc == 0);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

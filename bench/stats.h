/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples, their order statistics, and the random order of a round.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct samples {
	uint64_t *v; /* heap, owned */
	size_t n, cap;
};

/* Room for cap samples; samples_add fails past it. */
NODISCARD int samples_init(struct samples *s, size_t cap, struct err *e);
void samples_release(struct samples *s);
NODISCARD int samples_add(struct samples *s, uint64_t value, struct err *e);
void samples_sort(struct samples *s);
/* Nearest rank of a sorted, non-empty set; percent 0 is the minimum. */
uint64_t samples_rank(const struct samples *s, unsigned percent);
/* Median of the unsorted samples from..from+n; 0 for an empty range. */
NODISCARD int samples_median(const struct samples *s, size_t from, size_t n, uint64_t *ret,
			     struct err *e);

struct rng {
	uint64_t state;
};

/* Seed 0 takes one from the kernel. Returns the seed, so that it can be printed. */
uint64_t rng_init(struct rng *r, uint64_t seed);
/* Fills order with 0..n-1 in random order. */
void rng_shuffle(struct rng *r, size_t *order, size_t n);

uint64_t now_ns(void);

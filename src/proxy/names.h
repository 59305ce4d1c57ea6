/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses that stand for names. A name keeps its address as long as it is asked
 * for or connected to; when all are given out, the one that was used longest ago
 * is given to another name, never while a connection to it lives. Pure but for
 * the heap.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "egress/address.h"
#include "egress/host.h"

/* At once. 198.18.0.0/15 has 131,072 addresses; a name costs about 300 bytes here. */
#define MAX_SYNTHETIC_NAMES 16384u
/* Of an answer, and how long clients may keep it; an address is not given to another name before twice that. */
#define NAME_TTL_S 30u

struct name {
	uint32_t index, hash_next, older, newer; /* of the table; NO_NAME ends a list */
	uint32_t connections;
	uint64_t used_ms;
	struct host host;
};

struct names {
	struct name **v; /* by index; each of its own, so that a pointer stays */
	uint32_t n;
	uint32_t *heads; /* hash table of MAX_SYNTHETIC_NAMES lists */
	uint32_t newest, oldest;
	uint64_t seed;
};

/* seed: not to be guessed from inside, so that nobody makes one long list. */
NODISCARD int names_init(struct names *ret, uint64_t seed, struct err *e);
void names_release(struct names *s);

/* The name's entry, a new one if need be. NULL: every address is in use, or no memory. */
struct name *names_take(struct names *s, const struct host *host, uint64_t now_ms);
/* The name that a synthetic address stands for, or NULL. */
struct name *names_find(struct names *s, const struct address *a);
/* A connection to it begins or ends. */
void names_hold(struct names *s, struct name *n, uint64_t now_ms);
void names_drop(struct names *s, struct name *n, uint64_t now_ms);

/* Both addresses of a name. */
void names_address4(const struct name *n, struct address *ret);
void names_address6(const struct name *n, struct address *ret);

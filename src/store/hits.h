/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which names of a tree are to be masked: those of policy/maskname.h, by pattern,
 * and by inode. Of one scan; nothing is opened but the root for its kind.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/pattern.h"
#include "store/inventory.h"

struct hits_pattern {
	struct pattern p;
	const char *below;     /* what the directory begins with, in the root */
	char front[PATH_TEXT]; /* what is put in front of it: from the anchor to the root */
	bool elsewhere;        /* nothing in this root can match */
};

struct hits {
	struct hits_pattern *v;
	uint32_t n;
	const uint64_t *ino;
	size_t inos;
	bool fold; /* upper and lower case are the same */
	struct buf scratch;
};

/* Of the inventory's list of patterns. ERR_CONFIG_INVALID, or ERR_INTERNAL without memory. */
NODISCARD int hits_init(struct hits *h, const struct inventory_root *root,
			const struct inventory *inv, struct err *e);
void hits_release(struct hits *h);

struct hits_name {
	uint8_t place;
	const char *dir; /* below the root, "" for the root */
	const char *own; /* the directory's name */
	const char *name;
	unsigned char type;
	uint64_t ino;
};
uint64_t hits_bits(struct hits *h, const struct hits_name *n);

/* Whether a directory that is left out otherwise has to be walked. */
bool hits_enter(const struct hits *h, const char *name);

/* Puts the patterns of a scan together: what the old one has, and what is asked for. False: no memory. */
bool hits_merge(struct inventory *inv, const struct inventory *old,
		const struct inventory_ask *ask);
/* Whether the old one was looked through by all that is asked for. */
bool hits_have(const struct inventory *old, const struct inventory_ask *ask);

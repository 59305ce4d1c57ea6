/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML 1.2 or JSON, as a tree with positions. No aliases, no anchors, no tags,
 * no second document, no key twice; bounded in size and depth. Types are for
 * the reader of the tree: a scalar is its text.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "config/arena.h"
#include "config/finding.h"

#define MAX_YAML_BYTES ((size_t)256 << 10)
#define MAX_YAML_DEPTH 16
#define MAX_YAML_NODES 16384

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP };

struct node {
	enum node_kind kind;
	struct position at;
	const char *text; /* of a scalar: UTF-8 without NUL inside */
	size_t len;
	bool plain;                /* not quoted, no block: a number can be one */
	const struct node *key;    /* of a value in a map */
	struct node *next;         /* the next in the same list or map */
	struct node *first, *last; /* what is in it */
	size_t count;
};

/*
 * Reads `n` bytes. NULL: something is wrong, and `f` has it. A file without any
 * content is an error. Nodes live as long as the arena.
 */
const struct node *yaml_read(struct arena *a, const char *file, const char *text, size_t n,
			     struct findings *f);

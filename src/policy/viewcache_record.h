/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an entry of the view cache is laid out: the head, then inputs (struct look),
 * mounts, homes and state (struct place), and the text, which begins with the key.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define VIEWCACHE_MAGIC 0x43564753u /* "SGVC" */
#define VIEWCACHE_FORMAT 2u

struct viewcache_head {
	uint32_t magic, format, total, pad;
	uint64_t sum; /* of all but itself */
	uint32_t inputs, mounts, homes, states, state_paths, key_len, text_len, pad2;
	uint32_t state_path[4]; /* in the text */
};

struct viewcache_mount {
	uint32_t kind, flags;
	uint64_t dev, ino;
	uint32_t owner_uid, owner_gid;
	uint32_t dst, src; /* in the text; src is followed by a NUL too */
	uint32_t src_len, has_src;
};

/* What `sum` has to be. Catches damage, not malice: who can write the file is the caller. */
uint64_t viewcache_sum(const struct viewcache_head *h, const void *body, size_t n);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a view that is the same for every call of one caller in one source
 * (the system, /etc, toolchains, the git identity, and which places are no
 * project), kept together with all that was looked at to find it: an entry stands
 * as long as each of these is as it was. A file of our own format, for this
 * machine; what is not exactly as it should be is no entry, and the part is
 * worked out anew.
 */
#pragma once

#include "base/buf.h"
#include "policy/look.h"
#include "policy/view.h"

#define MAX_VIEWCACHE_BYTES (1u << 20)
#define VIEWCACHE_NAME 24 /* of an entry's file, with its NUL */

/* What an entry is for, as text: caller, source, ids, this very program. */
NODISCARD int viewcache_key(const struct caller *who, const struct source *src,
			    const struct view_ids *ids, struct buf *ret, struct err *e);
/* The file for a key. */
void viewcache_name(const struct buf *key, char ret[VIEWCACHE_NAME]);

/*
 * True: the entry is whole, for this key, and stands. Its mounts are appended to
 * `v` and point into `bytes` (8-aligned), which must live as long as the view.
 */
bool viewcache_decode(const void *bytes, size_t n, const struct buf *key, struct view *v,
		      struct refused *refused);

/* The entry of v->mounts from `first` on. */
NODISCARD int viewcache_encode(const struct looks *in, const struct buf *key, const struct view *v,
			       size_t first, const struct refused *refused, struct buf *ret,
			       struct err *e);

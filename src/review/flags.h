/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a reviewer should look at first.
 */
#pragma once

#include "review/change.h"

#define FLAG_DETAIL 160                         /* bytes of a detail, with the NUL */
#define MAX_FLAGS 100000u                       /* what is more is counted */
#define MAX_FLAG_SEARCHED ((uint64_t)256 << 20) /* bytes searched for secrets, of all files */

enum flag_level { FLAG_HIGH, FLAG_MEDIUM, FLAG_LOW };
extern const char *const flag_level_names[];

struct flag {
	const struct change *change;
	enum flag_level level;
	const char *kind;         /* "hook", "secret", … */
	char detail[FLAG_DETAIL]; /* safe to show; "" none */
};

struct flags {
	struct flag *v; /* high before medium before low, then by path */
	size_t n, cap, more;
};

NODISCARD int flags_find(const struct review *r, const struct changes *c, struct flags *ret,
			 struct err *e);
void flags_release(struct flags *f);

/*
 * The value of that member of the object that a JSON text is, without blanks
 * outside of strings, into `out`; false if there is none. For comparing only.
 */
bool flags_json_member(const char *text, size_t n, const char *name, struct buf *out);
/* A link at `path` (below the source) with that target leaves the tree. */
bool flags_link_leaves(const char *path, const char *target);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * References that a session moved: HEAD, loose and packed ones of `.git` in the
 * source and in the session, read as files that anybody could have written.
 */
#pragma once

#include "review/change.h"

#define MAX_REF_NAME 1024           /* bytes with the NUL; longer ones are left out */
#define MAX_REF_TEXT 1100           /* "ref: " and a name, with the NUL */
#define MAX_REFS 20000u             /* moved ones that are told; what is more is counted */
#define MAX_PACKED_TEXT (64u << 20) /* bytes of packed-refs; of a longer one only these count */

struct ref_move {
	char *name; /* "HEAD", "refs/heads/main"; printable bytes only */
	/* An object's name in hex, "ref: …" of a symbolic one, "?" of what is neither; "" none. */
	char was[MAX_REF_TEXT], is[MAX_REF_TEXT];
};

struct refs {
	struct ref_move *v; /* sorted by name */
	size_t n, cap, more;
};

/* Empty if the session touched none; costs nothing then. */
NODISCARD int refs_find(const struct review *r, const struct changes *c, struct refs *ret,
			struct err *e);
void refs_release(struct refs *refs);

/* n characters are an object's name in hex, as git writes it: SHA-1 or SHA-256. */
bool refs_is_oid(const char *p, size_t n);

/* Each line of packed-refs that is as git writes it; `oid` is hex, both end with a NUL. */
typedef bool ref_packed(void *self, const char *name, const char *oid);
/* False if `each` was. */
bool refs_parse_packed(const char *text, size_t n, ref_packed *each, void *self);
/* A loose one's content, as ref_move has it. */
void refs_parse_loose(const char *text, size_t n, char ret[MAX_REF_TEXT]);

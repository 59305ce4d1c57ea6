/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets in text: patterns of credentials, each with an example that it finds
 * and one that it does not. A value found is never shown whole.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define MAX_SECRET_TEXT ((size_t)8 << 20) /* bytes of one text that are searched */
#define MAX_SECRETS 20u                   /* of one text that are told */
#define SECRET_SHOWN 8                    /* four bytes at most, "…" and the NUL */

struct secret_kind {
	const char *name, *pattern;
	const char *hit, *miss; /* never a real one */
};
extern const struct secret_kind secret_kinds[];
extern const size_t secret_kind_count;

struct secrets; /* all patterns, compiled */
NODISCARD int secrets_new(struct secrets **ret, struct err *e);
void secrets_free(struct secrets *s);

struct secret_found {
	const struct secret_kind *kind;
	size_t line;              /* from 1 */
	char shown[SECRET_SHOWN]; /* the value's beginning, safe to show */
};

/*
 * What is in `text` and not in `before` (NULL and 0: nothing was). Returns how
 * many, at most MAX_SECRETS. *ret_given_up is set if a pattern came to its limit.
 */
size_t secrets_find(struct secrets *s, const char *text, size_t n, const char *before,
		    size_t before_n, struct secret_found ret[MAX_SECRETS], bool *ret_given_up);

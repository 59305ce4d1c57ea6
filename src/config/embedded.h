/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that are part of the program (tools/embed).
 */
#pragma once

#include <stddef.h>

struct embedded {
	const char *name; /* NULL behind the last */
	const char *text; /* a NUL behind its end */
	size_t n;
};

extern const struct embedded embedded_profiles[]; /* share/profiles/ */
extern const struct embedded embedded_schemas[];  /* schema/ */

/* NULL if there is none of that name. */
const struct embedded *embedded_find(const struct embedded *list, const char *name);

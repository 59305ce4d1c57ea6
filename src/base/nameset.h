/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table from strings to numbers. The caller owns it; it keeps copies of the
 * strings. All zero is an empty one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nameset {
	char **v; /* cap of them, NULL where nothing is */
	uint32_t *value;
	size_t n, cap;
};

/* Adds it or sets its value. False: out of memory. */
bool nameset_put(struct nameset *s, const char *name, uint32_t value);
/* ret may be NULL; untouched if the name is not there. */
bool nameset_get(const struct nameset *s, const char *name, uint32_t *ret);
void nameset_release(struct nameset *s);

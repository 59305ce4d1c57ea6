/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the fuzz targets of src/base share.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/utf8.h"

/* Stays on whatever NDEBUG says. */
#define FUZZ_CHECK(x)            \
	do {                     \
		if (!(x))        \
			abort(); \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void fuzz_check_line(const char *s, size_t cap)
{
	size_t n = strlen(s);
	uint32_t cp;

	FUZZ_CHECK(n < cap);
	for (size_t i = 0; i < n;) {
		size_t used = utf8_decode(s + i, n - i, &cp);

		FUZZ_CHECK(used > 0 && !utf8_is_unsafe(cp));
		i += used;
	}
}

/* A failure has a code and a text that is safe on a terminal line. */
static inline void fuzz_check_err(const struct err *e)
{
	FUZZ_CHECK(e->code > ERR_NONE && e->code < ERR_CODES);
	FUZZ_CHECK(e->msg[0] != '\0');
	fuzz_check_line(e->msg, sizeof(e->msg));
	fuzz_check_line(e->hint, sizeof(e->hint));
}

/* The input as a C string of its own, so that reading past it is seen. The caller frees. */
static inline char *fuzz_string(const uint8_t *data, size_t size)
{
	char *s = malloc(size + 1);

	FUZZ_CHECK(s != NULL);
	if (size > 0)
		memcpy(s, data, size);
	s[size] = '\0';
	return s;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is wrong with a file, and where: all of it, not only the first.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/path.h"

#define MAX_FINDINGS 64 /* what comes after is counted only */
#define KEY_TEXT 160

struct position {
	unsigned int line, column; /* from 1; 0: of the file as a whole */
};

struct finding {
	bool warning;
	char file[PATH_TEXT];
	struct position at;
	char key[KEY_TEXT]; /* "limits.memory"; "" if it is about none */
	struct err why;     /* without file and position */
};

struct findings {
	struct finding v[MAX_FINDINGS];
	size_t n, more;
	size_t errors;
};

void findings_add(struct findings *f, bool warning, const char *file, struct position at,
		  const char *key, const struct err *why);

/* "FILE:LINE:COLUMN: KEY: message" with code and hint. A very long path loses its beginning. */
void finding_err(const struct finding *f, struct err *ret);

/* The first error. Returns -1. */
int findings_first(const struct findings *f, struct err *e);

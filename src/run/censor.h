/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of secrets taken out of what passes: as they stand, in base64 (each of its three
 * shifts, both alphabets) and percent-encoded, also where they come in pieces. In their place
 * are asterisks, as many as there were bytes.
 *
 * Values shorter than MIN_CENSORED bytes stay: they would be found everywhere.
 */
#pragma once

#include <stddef.h>

#include "base/err.h"

#define MIN_CENSORED 8u

struct secret_values;
struct censor;

/* *ret is NULL if there is no value to look for. Lives without `v`; its copies are wiped. */
NODISCARD int censor_new(const struct secret_values *v, struct censor **ret, struct err *e);
void censor_free(struct censor *c);

/* In place. Returns how many were found. */
size_t censor_blot(const struct censor *c, char *p, size_t n);

/* A command without the values: `argv` itself if there are none to look for. NULL: no memory. */
char **censor_argv(const struct censor *c, char **argv);
void censor_release_argv(char **hidden, char *const *argv);

/* Gets what may be seen. */
typedef void censor_sink(void *self, const char *p, size_t n);

/* One stream of bytes; {.c = …}, or {NULL}: all passes as it is. */
struct censor_stream {
	const struct censor *c;
	char *held; /* what could be the beginning of a value */
	size_t n;
};

/*
 * n bytes more. What could be the beginning of a value is held back until it is known. Without
 * memory nothing passes.
 */
void censor_feed(struct censor_stream *s, const char *p, size_t n, censor_sink *sink, void *self);
/* No more come: what is held goes out, with asterisks if it is MIN_CENSORED bytes or more. */
void censor_end(struct censor_stream *s, censor_sink *sink, void *self);

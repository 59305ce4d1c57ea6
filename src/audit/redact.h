/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes what looks like a secret out of text before it is written: values of names such
 * as `--token`, assignments of environment variables, passwords in URLs, shapes of known
 * tokens, and the values of the caller's own secret variables. What cannot be recognised
 * stays: this is a sieve and no promise, and a secret is better not an argument.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define REDACTED "[redacted]"

/* A name such as `api_key` or `X-Auth-Token`, whose value is nobody's business. */
bool redact_is_secret_name(const char *p, size_t n);

/* Values of the caller's secret variables, which a shell may have put into a command. */
#define MAX_REDACT_SECRETS 32
struct redact_secrets {
	size_t n;
	const char *value[MAX_REDACT_SECRETS]; /* they stay the environment's */
	size_t len[MAX_REDACT_SECRETS];
};

/* `env` is NULL-terminated NAME=VALUE, or NULL. */
void redact_secrets_find(char *const *env, struct redact_secrets *ret);

void redact_text(const char *p, size_t n, const struct redact_secrets *s, struct buf *out);

/*
 * One argument of a command; `before` is the one before it, NULL for the first. With
 * `all` each NAME=VALUE loses its value, as for what is behind `env`.
 */
void redact_argument(const char *before, const char *arg, bool all, const struct redact_secrets *s,
		     struct buf *out);

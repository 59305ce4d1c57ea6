/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of branches and addresses of remotes, as text: which may be pushed to.
 */
#pragma once

#include <stddef.h>

#include <stdbool.h>

#include "base/err.h"

#define MAX_BRANCH 244 /* bytes: with refs/heads/ it is a file's name to most servers */

/* git-check-ref-format(1), and stricter: no leading `-`, no `refs/`, no HEAD. CONFIG_INVALID. */
NODISCARD int branch_check(const char *name, struct err *e);

/* `*` is any text, slashes too, `?` one byte; ASCII letters of both cases are the same. */
bool branch_matches(const char *pattern, const char *name);

/*
 * Whether a remote is one that a push may speak to: a path, file://, ssh://, HOST:PATH,
 * https://. POLICY_DENIED with a hint for all others; CONFIG_INVALID for one that would be
 * an option. *ret_local: a path of this host, or of file://.
 */
NODISCARD int remote_check(const char *url, const char **ret_local, struct err *e);

/* For people and logs: a text with the user and password of each URL in it cut out, in place. */
char *remote_cut(char *text);
/* Of an address; cut to what fits. */
const char *remote_shown(const char *url, char *ret, size_t size);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * git at work on what a session left: a script in a sandbox of ours without a
 * source, without network and with nothing of the caller's but two pipes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

struct gitbox {
	pid_t pid;
	int to, from, said; /* its stdin and stdout; what it said on stderr */
	char *bytes;        /* read ahead */
	size_t at, n;
};

/*
 * `sandglass` is the front's path, the script one for sh. Who writes must not
 * die of SIGPIPE. SANDBOX_UNAVAILABLE and the like come from gitbox_end().
 */
NODISCARD int gitbox_start(const char *sandglass, char **env, const char *script,
			   struct gitbox *ret, struct err *e);
/* All of it. -1 with e; then gitbox_end() knows more. */
NODISCARD int gitbox_write(struct gitbox *g, const void *p, size_t n, struct err *e);
/* No more will be written. */
void gitbox_written(struct gitbox *g);
/* Up to n bytes, 0 at the end, -1 with e. */
NODISCARD ssize_t gitbox_read(struct gitbox *g, void *p, size_t n, struct err *e);
/* A text up to a NUL, which is not part of its length; INTERNAL if it needs cap bytes. */
NODISCARD ssize_t gitbox_text(struct gitbox *g, char *ret, size_t cap, struct err *e);
/*
 * Waits, or with `stop` ends it first; frees. Without `stop`, -1 with what it said if it failed.
 */
int gitbox_end(struct gitbox *g, bool stop, struct err *e);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shell script in a sandbox of our own, without network and project (or with one
 * that is read-only): for programs that read what a session wrote. Its input is
 * ours, its output is data of unknown content.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* A part of its standard input: a file from its beginning, or with fd -1 a text. */
struct boxed_part {
	int fd;
	const char *text;
};

struct boxed {
	const char *script;      /* of the pinned shell; begins in an empty directory */
	const char *const *args; /* $1 and on; NULL-terminated; NULL: none */
	const char *source;      /* shown read-only at its own path; NULL: no project */
	const struct boxed_part *in;
	size_t in_n;
	uint64_t max_out; /* bytes of output */
};

/*
 * Runs it to its end. *ret_out is an open file (no name) with what it wrote, at its beginning.
 * SANDBOX_UNAVAILABLE, or whatever kept it from ending with status 0.
 */
NODISCARD int boxed_run(const struct boxed *b, int *ret_out, struct err *e);

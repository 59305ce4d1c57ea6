/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of the caller's stdin, stdout and stderr.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/path.h"

enum stdio_way {
	STDIO_PASS,    /* the command gets the descriptor itself */
	STDIO_NULL,    /* it is closed: /dev/null */
	STDIO_FILE,    /* stdin is a regular file: core opens it again, read-only */
	STDIO_RELAY,   /* a pipe of ours; the front copies */
	STDIO_CAPTURE, /* a pipe of ours into the result */
	STDIO_PTY,     /* a pty of the sandbox; the front copies */
};

struct stdio {
	enum stdio_way way[3];
	bool one_output; /* stdout and stderr are the same file: one pipe keeps their order */
	char file_path[PATH_TEXT]; /* of stdin with STDIO_FILE */
	struct stat file;
};

/* Opens /dev/null for those of 0 to 2 that are closed. Returns a bit for each. */
unsigned int stdio_fill(void);

/* With `bare` all but a capture is passed on. Refuses directories, host devices and odd descriptors: POLICY_DENIED. */
NODISCARD int stdio_plan(unsigned int closed, bool json, bool tty, bool bare, struct stdio *ret,
			 struct err *e);

/* All output passes through the front, which keeps it: nothing is handed over as it is. */
void stdio_keep_output(struct stdio *io);

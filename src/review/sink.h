/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where text for people or programs goes: as it is, or safe to look at.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

enum sink_flags {
	SINK_SAFE = 1u << 0,  /* all that could change a terminal is escaped, line by line */
	SINK_COLOR = 1u << 1, /* lines of a diff in its colours; only with SINK_SAFE */
};

struct sink {
	int fd;
	unsigned int flags;
	struct buf line; /* SINK_SAFE: a line that is not complete */
	bool continued;  /* the line's beginning is written */
	bool in_hunk;    /* a diff's body, where "---" is a removed "--" */
};

void sink_init(struct sink *s, int fd, unsigned int flags);
void sink_release(struct sink *s);
NODISCARD int sink_write(struct sink *s, const void *p, size_t n, struct err *e);
/* What is held back of an incomplete line. */
NODISCARD int sink_end(struct sink *s, struct err *e);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that a verb starts and waits for, and a person who is asked, with signals held
 * back meanwhile: a verb that made files of its own removes them before it ends by one.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct attend {
	int signals; /* signalfd */
	int told;    /* the signal that is to end us; 0: none */
	sigset_t before;
};

/* From here on HUP, INT, QUIT and TERM are held back; children start without that. */
NODISCARD int attend_begin(struct attend *a, struct err *e);
/* Lets signals through again; ends this process by the one that was told, if one was. */
void attend_end(struct attend *a);

#define MAX_CHILD_TAIL 8192u /* bytes of what a child said that are kept, the last ones */

struct child {
	const char *path;  /* of the program */
	char *const *argv; /* NULL-terminated */
	char *const *env;
	const char *cwd;     /* NULL: ours */
	int in;              /* -1: /dev/null */
	int out;             /* a file that stdout goes into; -1: into the tail, with stderr */
	uint64_t most_bytes; /* into `out`; more ends the child and is DISK_LIMIT */
	bool terminal;       /* stderr is ours, not kept: it may ask the person something */
	/* What comes of it: */
	int status; /* as of waitpid(2) */
	char tail[MAX_CHILD_TAIL + 1];
	size_t tail_n;
	uint64_t out_bytes;
};

/* -1: it could not be started, or a signal told us to end (CANCELLED). */
NODISCARD int child_run(struct attend *a, struct child *c, struct err *e);

/*
 * A line that the person types at the terminal, without its end, cut to fit. CANCELLED if
 * a signal or the terminal's end comes first.
 */
NODISCARD int attend_ask(struct attend *a, int tty, char *ret, size_t cap, struct err *e);

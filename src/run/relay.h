/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies bytes from one descriptor to another, or into a capture, without ever
 * blocking on the reading side.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#include "run/calllog.h"
#include "run/capture.h"
#include "run/censor.h"

#define RELAY_BYTES 65536u

struct relay {
	int from; /* -1: over */
	int to;   /* -1: into `capture`, or nowhere once it has failed */
	struct capture *capture;
	struct call_log *log;      /* gets all of it, too; NULL: none */
	struct censor_stream hide; /* what of it neither `log` nor `capture` gets */
	bool is_input;             /* for the command; else from it */
	bool close_to;             /* end of file on `from` closes `to` */
	bool to_pty;        /* end of file on `from` is the terminal's end-of-file character */
	char last;          /* byte read */
	uint64_t again_ms;  /* when the end of file is said again, 0: not ended */
	bool from_terminal; /* read only in the foreground, else we would be stopped */
	bool by_line;       /* and only while nobody else reads it key by key */
	bool away;          /* it is not ours to read just now */
	bool gone;          /* the terminal is there no more, or nobody reads `to` */
	size_t chunk;       /* most bytes of one write: PIPE_BUF where a write may block */
	char *data;
	size_t at, n;
};

/* False: out of memory. */
bool relay_init(struct relay *r, int from, int to, struct capture *capture);
/*
 * A program that only now begins to read has flushed the end-of-file character
 * that came before: it is said again twice a second. Returns when, or LIMIT_NONE.
 */
uint64_t relay_say_end(struct relay *r, uint64_t now_ms);
/* What to poll for: fills at most one entry, returns how many. */
size_t relay_poll(struct relay *r, struct pollfd *fds);
/* After poll: moves what can be moved. */
void relay_step(struct relay *r, const struct pollfd *fds, size_t n);
/* No more is read; what was read before may still go out. */
void relay_end(struct relay *r);
void relay_release(struct relay *r);

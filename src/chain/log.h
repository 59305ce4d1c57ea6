/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of the log, in their order, as far as it went when it was opened: writers may
 * go on meanwhile.
 */
#pragma once

#include "audit/audit.h"
#include "base/buf.h"

#define MAX_LOG_FILES 40000u /* days: more than a hundred years */

struct log_file {
	char name[AUDIT_FILE_TEXT];
	uint64_t size;
};

struct chain_log {
	int dir; /* -1: not open */
	struct log_file *files;
	size_t count;
	size_t at;        /* the file that is read */
	int fd;           /* of it; -1: not open yet */
	uint64_t done;    /* bytes of it that were read */
	uint64_t line;    /* lines of it that were given out */
	struct buf bytes; /* of it, not given out yet */
	size_t from;      /* where they begin in `bytes` */
};

struct log_line {
	const char *p; /* without its end; valid until the next one */
	size_t n;
	const char *file; /* its name, valid as long as the log is open */
	uint64_t number;  /* in its file, from 1 */
	bool torn;        /* the file ends before the line does */
	bool last_file;
	bool too_long; /* only its beginning is here; nothing of this file follows */
};

#define CHAIN_LOG_NONE ((struct chain_log){.dir = -1, .fd = -1})
#define AUTO_CHAIN_LOG __attribute__((cleanup(chain_log_release))) struct chain_log

/* NOT_FOUND: there is none. */
NODISCARD int chain_log_open(const struct caller *who, struct chain_log *ret, struct err *e);
/* 1 and a line, 0 at the end, -1. */
NODISCARD int chain_log_next(struct chain_log *log, struct log_line *ret, struct err *e);
/* So that what is given out next is the last `lines` lines, or all if there are fewer. */
NODISCARD int chain_log_tail(struct chain_log *log, uint64_t lines, struct err *e);
/*
 * Whole lines only: looks again how far the log goes by now. What was torn is read again
 * when it is whole.
 */
NODISCARD int chain_log_again(struct chain_log *log, struct err *e);
void chain_log_release(struct chain_log *log);

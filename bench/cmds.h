/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands to compare, and one measured run of one of them.
 *
 * File format: a command a line, `NAME TAB WORD WORD…`; words are split at
 * blanks, '…' and "…" quote, a backslash takes the next byte as it is. Empty
 * lines and lines that begin with # are skipped. Nothing is expanded.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define MAX_CMDS 32
#define MAX_WORDS 96
#define MAX_CMDS_FILE (64 * 1024)

struct cmd {
	char *name;
	char *argv[MAX_WORDS + 1];
};

struct cmds {
	struct cmd *v;
	size_t n;
	char *text; /* what name and argv point into */
};

NODISCARD int cmds_read(const char *path, struct cmds *ret, struct err *e);
void cmds_release(struct cmds *c);
/* Index of the command of that name, or c->n. */
size_t cmds_find(const struct cmds *c, const char *name);

/* What becomes of the child's output. */
enum cmd_io {
	CMD_IO_NULL,   /* 0, 1 and 2 are /dev/null */
	CMD_IO_STDERR, /* 2 is ours, so that a person sees why it fails */
	CMD_IO_STDOUT, /* 1 is a pipe */
};

struct cmd_run {
	uint64_t wall_ns;
	uint64_t cpu_us;     /* user and system, of the child and all it waited for */
	uint64_t maxrss_kib; /* largest of the same processes; never below our own */
	int status;          /* 0, or as a shell would say it */
};

/* Starts a command; *ret_out is the pipe's read end with CMD_IO_STDOUT (else pass NULL). */
NODISCARD int cmd_start(const struct cmd *c, enum cmd_io io, pid_t *ret, int *ret_out,
			struct err *e);
NODISCARD int cmd_wait(pid_t pid, struct cmd_run *ret, struct err *e);
/* Both, timed from before the spawn until the status is here. */
NODISCARD int cmd_measure(const struct cmd *c, struct cmd_run *ret, struct err *e);
/* Runs it once unmeasured; on failure once more with its stderr visible, then err. */
NODISCARD int cmd_prove(const struct cmd *c, struct err *e);

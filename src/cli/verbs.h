/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs, one file each. A verb gets what follows its name and returns the
 * exit status.
 */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "cli/usage.h"

struct cli {
	char **env;
	unsigned int closed; /* which of 0 to 2 were closed when we began */
	int argc;            /* what follows the verb */
	char **argv;
};

struct verb {
	const char *name;
	int (*run)(const struct cli *cli, int argc, char **argv);
	const struct usage *usage; /* NULL: not in this version */
	const char *later;         /* the part that brings it */
};

extern const struct verb verbs[];
extern const size_t verb_count;

/* NULL if there is none of that name. */
const struct verb *verb_find(const char *name);
/* Says on stderr that there is no such verb, with the nearest one. Returns 2. */
int verb_unknown(const char *name);

/* What sandglass-main carries out: it gets the verb and what follows. The exit status is its own. */
int verb_in_main(const struct cli *cli, const char *verb, int argc, char **argv);

int verb_run(const struct cli *cli, int argc, char **argv);
int verb_shell(const struct cli *cli, int argc, char **argv);
int verb_diff(const struct cli *cli, int argc, char **argv);
int verb_doctor(const struct cli *cli, int argc, char **argv);
int verb_policy(const struct cli *cli, int argc, char **argv);
int verb_apply(const struct cli *cli, int argc, char **argv);
int verb_audit(const struct cli *cli, int argc, char **argv);
int verb_discard(const struct cli *cli, int argc, char **argv);
int verb_schema(const struct cli *cli, int argc, char **argv);
int verb_session(const struct cli *cli, int argc, char **argv);
int verb_session_exec(const struct cli *cli, int argc, char **argv);
int verb_gc(const struct cli *cli, int argc, char **argv);
int verb_export(const struct cli *cli, int argc, char **argv);
int verb_push(const struct cli *cli, int argc, char **argv);
int verb_version(const struct cli *cli, int argc, char **argv);
int verb_help(const struct cli *cli, int argc, char **argv);

extern const struct usage run_usage, shell_usage, doctor_usage, help_usage, version_usage;

/* Last line on stderr, "sandglass: CODE: message", and the hint above it. Returns `status`. */
int cli_fail(const struct err *e, int status);
/* All of it, or an error. */
NODISCARD int cli_write(int fd, const char *p, size_t n, struct err *e);
/* Ends this process as that signal would have. */
void cli_die_by(int sig);

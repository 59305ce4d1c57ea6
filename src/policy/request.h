/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was asked for, and who asks: the inputs of a decision. Everything that
 * comes from the environment (time, cwd, ids, variables) is a field here, so
 * that the layer itself reads none of it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/num.h"
#include "base/opt.h"

enum mode { MODE_READ_ONLY, MODE_WORKSPACE_WRITE, MODE_FULL_ACCESS };

/* Indices of the choices of --mode, in this order. */
extern const char *const mode_names[];

struct request {
	const char *source; /* --source, NULL: found */
	const char *script; /* -c */
	struct strlist read, write, env;
	uint64_t wall_ms, grace_ms, cpu_ms; /* LIMIT_UNSET: not asked for */
	uint64_t cpus_milli, memory_bytes, pids, disk_bytes, inodes, output_bytes;
	int mode, writes, approval, isolation;
	bool no_source, json, quiet, tty, no_tty, full_access, help;
	char **argv; /* operands */
	int argc;
};

/* The defaults: what a call without any option asks for. */
static inline struct request request_of_nothing(void)
{
	return (struct request){
		.mode = MODE_WORKSPACE_WRITE,
		.writes = 0,
		.approval = 2,
		.wall_ms = LIMIT_UNSET,
		.grace_ms = LIMIT_UNSET,
		.cpu_ms = LIMIT_UNSET,
		.cpus_milli = LIMIT_UNSET,
		.memory_bytes = LIMIT_UNSET,
		.pids = LIMIT_UNSET,
		.disk_bytes = LIMIT_UNSET,
		.inodes = LIMIT_UNSET,
		.output_bytes = LIMIT_UNSET,
	};
}

struct caller {
	uid_t uid;
	gid_t gid;
	const char *home; /* HOME, else from passwd; NULL if none */
	const char *cwd;  /* physical; NULL if it has vanished */
	char **env;
	bool root;     /* host root with all ids mapped: session uids, id-mapped mounts */
	bool terminal; /* stdin, stdout and stderr are terminals */
	uint64_t ram_bytes;
};

/* The value of a variable in caller->env, or NULL. */
const char *caller_env(const struct caller *c, const char *name);

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
#include "egress/set.h"

enum mode { MODE_READ_ONLY, MODE_WORKSPACE_WRITE, MODE_FULL_ACCESS };

/* How the boundary is made; the other choices of --isolation are not in this version. */
/* Indices of the choices of --writes. */
enum writes { WRITES_DIRECT, WRITES_OVERLAY };
#define WRITES_UNSET (-1)

enum isolation { ISOLATION_NAMESPACE, ISOLATION_LANDLOCK };

/* Indices of the choices of --mode, in this order. */
extern const char *const mode_names[];
/* That of a call; one that failed before it was decided has the default. */
const char *mode_name(int mode);

#define MODE_UNSET (-1) /* no option named one: the policy files decide */

/* Who said something, from the weakest to the strongest. */
enum policy_layer {
	LAYER_BUILT_IN,
	LAYER_USER,    /* the user's own file */
	LAYER_PROJECT, /* .sandglass/policy.yaml of the source */
	LAYER_PROFILE, /* --profile; what a file extends has the file's own layer */
	LAYER_FILE,    /* --policy */
	LAYER_OPTION,
	POLICY_LAYERS,
};

enum path_access { ACCESS_READ, ACCESS_WRITE, ACCESS_HIDE, PATH_ACCESSES };

/*
 * A path that a policy file or a profile names. A path that does not exist is
 * skipped. For the same path the higher layer counts, within one layer hide
 * before read before write; of different ones the more specific.
 */
struct path_rule {
	const char *path;   /* absolute (`~` and the source are put in), or a pattern `**\/...` */
	const char *origin; /* for messages: "user /home/me/.config/sandglass/policy.yaml:7" */
	uint8_t access;     /* enum path_access */
	uint8_t layer;      /* enum policy_layer */
	bool pattern;       /* resolved over the source */
	bool narrow; /* of a file that can only narrow: a read takes writing away and shows nothing */
};

/* A variable that a policy file or a profile names. */
struct file_env {
	const char *text; /* NAME or NAME=VALUE */
	bool if_there;    /* the value is a path: nothing is set where it does not exist */
};

/* A rule about the network that a policy file names (egress/rule.h). */
struct host_rule {
	const char *text;
	const char *origin;
	uint8_t list; /* enum egress_list */
};

/*
 * A secret that a policy file names: never its value. Its placeholder is in a variable
 * inside, and towards `hosts` it is replaced in the one header (policy/secret.h).
 */
struct secret_rule {
	const char *name;
	const char *variable; /* NULL: from `from`, or the name */
	const char *from;     /* "env:NAME", "file:PATH", "command:PROGRAM ARGUMENT" */
	const char *header;   /* "Authorization: Bearer {value}" */
	const char *hosts;    /* as network.inspect reads them, a blank between */
	const char *origin;
	bool plain; /* also without TLS */
};

enum limit_id {
	LIMIT_WALL,
	LIMIT_CPU_TIME,
	LIMIT_CPUS,
	LIMIT_MEMORY,
	LIMIT_PIDS,
	LIMIT_DISK,
	LIMIT_INODES,
	LIMIT_OUTPUT,
	LIMITS,
	LIMIT_GRACE = LIMITS, /* no limit of its own, but set and narrowed like one */
	LIMIT_SETTINGS,
};

struct request {
	const char *source; /* --source, NULL: found */
	const char *script; /* -c */
	const char *policy; /* --policy, NULL: none */
	struct strlist read, write, hide, env, profile;
	struct strlist allow_host, deny_host, allow_local, secret;
	struct egress_set egress;           /* of files and options; {0}: the network is closed */
	uint64_t wall_ms, grace_ms, cpu_ms; /* LIMIT_UNSET: not asked for */
	uint64_t cpus_milli, memory_bytes, pids, disk_bytes, inodes, output_bytes;
	int mode, writes, approval, isolation;
	bool no_source, json, quiet, tty, no_tty, full_access, help;
	bool review, keep, copy, detach; /* of sessions */
	const char *name, *id;           /* of `session new`; NULL: none */
	uint64_t ttl_ms;
	char **argv; /* operands */
	int argc;
	/* What policy files and profiles say (policy/apply.h); weaker than all options. */
	const struct path_rule *rules;
	size_t rule_count;
	const struct file_env *file_env;
	size_t file_env_count;
	const struct host_rule *hosts;
	size_t host_count;
	const struct secret_rule *secrets;
	size_t secret_count;
	uint32_t narrowed; /* bits 1 << limit_id: of a file that can only narrow */
};

/* Where the value of a limit is; the order of enum limit_id, grace last. */
static inline uint64_t *request_limit(struct request *r, unsigned int id)
{
	uint64_t *const at[LIMIT_SETTINGS] = {
		[LIMIT_WALL] = &r->wall_ms,    [LIMIT_CPU_TIME] = &r->cpu_ms,
		[LIMIT_CPUS] = &r->cpus_milli, [LIMIT_MEMORY] = &r->memory_bytes,
		[LIMIT_PIDS] = &r->pids,       [LIMIT_DISK] = &r->disk_bytes,
		[LIMIT_INODES] = &r->inodes,   [LIMIT_OUTPUT] = &r->output_bytes,
		[LIMIT_GRACE] = &r->grace_ms,
	};

	return at[id];
}

/* The defaults: what a call without any option asks for. */
static inline struct request request_of_nothing(void)
{
	return (struct request){
		.mode = MODE_WORKSPACE_WRITE,
		.writes = 0,
		.approval = 2,
		.ttl_ms = LIMIT_UNSET,
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

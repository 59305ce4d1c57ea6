/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stays outside of a boundary: it runs in the front's process, makes
 * the namespaces with sandglass-core as their first process, gives that what
 * only the outside can give (id maps, cgroups, mounts that root opens), and
 * waits for its end. Steps that fail return -1 with `failure` filled in, as a
 * report of core's would be; nothing here ends the process.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "plan/plan.h"
#include "plan/report.h"

/* A session's namespaces, which a call is born in. */
struct launch_session {
	int user; /* whose child the call's is; -1: as root, the host's */
	int pid;  /* whose end is the call's end */
	int net;
};

struct launch {
	const struct plan *p;
	const struct launch_session *session; /* NULL: none */
	int given;         /* the tree of the mount with MOUNT_GIVEN; -1: none, or handed over */
	pid_t init;        /* first process of the sandbox, 0: none */
	pid_t holder;      /* of the id map's user namespace, 0: none */
	pid_t ended;       /* the holder before it, killed, not reaped yet */
	int user_ns;       /* of the sandbox, for pins; -1: none */
	int mount_ns;      /* likewise */
	int *trees;        /* detached mounts that root opened, by mount index */
	size_t opened;     /* mounts that were handed over before */
	bool pids_counted; /* by a cgroup */
	struct report failure;
};

/* What the first process finds open. */
struct launch_fds {
	int stdio[3];
	int plan, ctl;
	int uid; /* -1: none */
};

/* Fills in `failure`; always -1. */
int launch_fail(struct launch *l, enum stage stage, int sys, const char *text);

/* leaf.c: cgroups of one run. Before launch_start(), which a v2 leaf takes its child at. */
NODISCARD int leaf_make(struct launch *l);
/* In a session (session.c): likewise, from a process that has entered its namespaces. */
NODISCARD int session_start(struct launch *l, const char *core, const struct launch_fds *fds,
			    int cgroup);
/* launch.c: the newborn's way to core; `arg` is a struct newborn. */
struct newborn {
	const char *core;
	const char *how; /* core's argument: "init", "egress", or "join" in a session */
	const struct launch_fds *fds;
};
int newborn_run(void *arg);
#define LAUNCH_NAMESPACES (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS)
/* One id each, of process `pid`, in what the caller's user namespace calls them. -1 with errno. */
int launch_write_maps(const struct plan_numbers *n, pid_t pid, const char **ret_file);

/* The v2 leaf, opened; -1: none, or `failure` with *ret_failed. */
int leaf_open_v2(struct launch *l, bool *ret_failed);
NODISCARD int leaf_enter(struct launch *l);
/* Counters of the leaves into *usage; then they are removed. */
void leaf_finish(const struct launch *l, struct report *usage);

/* Clones the namespaces and starts `core` (its path) as init; needs clone3(2) or clone(2). */
NODISCARD int launch_start(struct launch *l, const char *core, const struct launch_fds *fds);

/* Ids are mapped, numbers are known (l->p->n): init begins. `ctl` is the front's end. */
NODISCARD int launch_begin(struct launch *l, int ctl);

/*
 * The first part of the plan is sealed (l->p has its mounts): maps, mounts that
 * root opens, and init goes on. `ctl` is the front's end.
 */
NODISCARD int launch_release(struct launch *l, int ctl);
/* The second part: the mounts of l->p that have come since, sealed in `plan`. */
NODISCARD int launch_release_more(struct launch *l, int ctl, int plan);

/* Pins what lies at this mount's path again. Returns errno. */
int launch_pin_again(const struct launch *l, uint32_t mount);

/* Waits for the end of init; its usage, and what the cgroups counted. */
void launch_wait(struct launch *l, struct report *usage);

/* idmap.c: as root. */
void idmap_start_holder(struct launch *l);
void idmap_end_holder(struct launch *l);
void idmap_reap_holder(struct launch *l);
NODISCARD int idmap_open_trees(struct launch *l);
/* A user namespace that is the map from this owner to l->p->n's outer ids; -1: `failure` says why. */
NODISCARD int idmap_make(struct launch *l, uint32_t owner_uid, uint32_t owner_gid);

/* handover.c */
/* Lets go of mounts that were opened and not handed over. */
void handover_drop(struct launch *l);
/* The trees of l->trees, and one more descriptor (-1: none): stdin, or the second part. */
NODISCARD int handover_send(struct launch *l, int ctl, int extra, bool is_stdin);

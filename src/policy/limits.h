/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits: the table of defaults, what was asked for, and how each one can be
 * held on this host.
 */
#pragma once

#include "plan/plan.h"
#include "policy/request.h"

enum grade {
	GRADE_NONE,    /* not held: named in not_enforced */
	GRADE_WATCHED, /* sampled */
	GRADE_KERNEL,  /* cgroup, rlimit, tmpfs, timer of init */
};

extern const char *const limit_names[LIMITS];

/* What this host offers, found by run/. */
struct host_limits {
	bool memory, pids, cpu;                        /* a cgroup controller that we may use */
	uint64_t max_memory, max_pids, max_cpus_milli; /* what the caller itself is held to */
};

struct limits {
	uint64_t value[LIMITS]; /* LIMIT_NONE: no limit */
	bool asked[LIMITS];
	enum grade grade[LIMITS];
	uint64_t grace_ms;
};

#define DRAIN_MS 250u /* what a finished command left running gets before KILL */

/* LIMIT_UNAVAILABLE if something asked for cannot be held here. */
NODISCARD int limits_decide(const struct request *req, const struct caller *who,
			    const struct host_limits *host, struct limits *ret, struct err *e);
void limits_to_plan(const struct limits *l, struct plan_numbers *n);

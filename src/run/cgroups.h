/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which cgroups of this host we may use, and the names of one run's leaves.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/path.h"
#include "plan/plan.h"

enum cgroup_kind { CGROUP_KIND_NONE, CGROUP_KIND_V1, CGROUP_KIND_V2 };

struct cgroups {
	enum cgroup_kind kind;
	/* Directories below which leaves can be made, by role; "" where there is none. */
	char base[CGROUP_ROLES][PATH_TEXT];
	bool memory, pids, cpu; /* what a leaf can limit */
	/* Limits that the caller's own group has and a v2 leaf beside it would not; LIMIT_NONE. */
	uint64_t max_memory, max_pids, max_cpus_milli;
};

/* The host has the unified hierarchy with all controllers. */
bool cgroups_are_v2(void);

/*
 * The caller's own group in the unified hierarchy, with or without controllers, or the
 * nearest above it below which we may make one. False: none.
 */
bool cgroups_own_v2(char *ret, size_t len);

/* Reads /proc/self/cgroup and the usual mount points; changes nothing. */
void cgroups_find(struct cgroups *ret);

/* Removes empty leaves of runs whose front is gone. Leaves others alone. */
void cgroups_sweep(const struct cgroups *g);

/*
 * The leaves for one run, named after the front's pid and `tag`. `want_…` says
 * which limits there are. Texts live in `store`. Returns how many.
 */
struct cgroup_store {
	char dir[CGROUP_ROLES][PATH_TEXT + 64];
};
size_t cgroups_plan(const struct cgroups *g, bool want_memory, bool want_pids, bool want_cpu,
		    const char *tag, struct cgroup_store *store, struct plan_cgroup *ret);

/* Removes a leaf whose last task may still be on its way out; gone already is fine. */
void cgroups_remove(const char *dir);

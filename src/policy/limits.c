/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defaults as in sandglass-run(1), table LIMITS.
 */
#include "policy/limits.h"

#include <string.h>

#define HOUR_MS (UINT64_C(3600) * 1000)
#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)

const char *const limit_names[LIMITS] = {"wall", "cpu_time", "cpus",   "memory",
					 "pids", "disk",     "inodes", "output"};

/* LIMIT_NONE is the largest of all, so that "smaller" means what it says. */
static uint64_t choose(const struct request *req, enum limit_id id, uint64_t asked,
		       uint64_t fallback, bool *was_asked)
{
	bool narrowed = req->narrowed >> id & 1u;

	if (asked == LIMIT_UNSET || (narrowed && asked >= fallback)) {
		*was_asked = false;
		return fallback;
	}
	*was_asked = asked != LIMIT_NONE;
	return asked;
}

static int check_bounds(const struct limits *l, struct err *e)
{
	if (l->value[LIMIT_PIDS] != LIMIT_NONE && l->value[LIMIT_PIDS] < 1)
		return err_set(e, ERR_CONFIG_INVALID, "--pids 0: a command is one process already");
	if (l->value[LIMIT_MEMORY] != LIMIT_NONE && l->value[LIMIT_MEMORY] < MIB)
		return err_set(e, ERR_CONFIG_INVALID,
			       "--memory: no program starts in less than 1MiB");
	if (l->value[LIMIT_INODES] != LIMIT_NONE && l->value[LIMIT_INODES] < 16)
		return err_set(e, ERR_CONFIG_INVALID,
			       "--inodes: the sandbox's own directories need 16");
	if (l->value[LIMIT_DISK] != LIMIT_NONE && l->value[LIMIT_DISK] < 65536)
		return err_set(e, ERR_CONFIG_INVALID, "--disk: at least 64KiB");
	return 0;
}

int limits_decide(const struct request *req, const struct caller *who,
		  const struct host_limits *host, struct limits *ret, struct err *e)
{
	const uint64_t fallback[LIMIT_SETTINGS] = {
		[LIMIT_WALL] = who->terminal ? 12 * HOUR_MS : HOUR_MS,
		[LIMIT_CPU_TIME] = LIMIT_NONE,
		[LIMIT_CPUS] = LIMIT_NONE,
		[LIMIT_MEMORY] = who->ram_bytes / 4 * 3,
		[LIMIT_PIDS] = 8192,
		[LIMIT_DISK] = 16 * GIB,
		[LIMIT_INODES] = 2000000,
		[LIMIT_OUTPUT] = req->json ? MIB : LIMIT_NONE,
		[LIMIT_GRACE] = 5000,
	};
	struct limits l = {.grace_ms = 0};
	struct request asked = *req;
	bool ignored = false;

	for (unsigned int i = 0; i < LIMITS; i++)
		l.value[i] = choose(req, i, *request_limit(&asked, i), fallback[i], &l.asked[i]);
	l.grace_ms = choose(req, LIMIT_GRACE, req->grace_ms, fallback[LIMIT_GRACE], &ignored);
	/* No more than the caller has: never a way out of limits that somebody set for it. */
	if (host->max_memory < l.value[LIMIT_MEMORY])
		l.value[LIMIT_MEMORY] = host->max_memory;
	if (host->max_pids < l.value[LIMIT_PIDS])
		l.value[LIMIT_PIDS] = host->max_pids;
	if (host->max_cpus_milli < l.value[LIMIT_CPUS])
		l.value[LIMIT_CPUS] = host->max_cpus_milli;
	if (check_bounds(&l, e) < 0)
		return -1;

	bool bare = req->mode == MODE_FULL_ACCESS;
	l.grade[LIMIT_WALL] = GRADE_KERNEL;
	l.grade[LIMIT_OUTPUT] = GRADE_KERNEL;
	l.grade[LIMIT_CPU_TIME] = bare ? GRADE_NONE : GRADE_WATCHED;
	l.grade[LIMIT_CPUS] = host->cpu && !bare ? GRADE_KERNEL : GRADE_NONE;
	l.grade[LIMIT_MEMORY] = bare ? GRADE_NONE : host->memory ? GRADE_KERNEL : GRADE_WATCHED;
	bool rung = req->isolation == ISOLATION_LANDLOCK;
	/* cgroup, or RLIMIT_NPROC, which counts a user's processes where there is no user namespace */
	l.grade[LIMIT_PIDS] = bare || (rung && !host->pids) ? GRADE_NONE : GRADE_KERNEL;
	l.grade[LIMIT_DISK] = bare || rung ? GRADE_NONE : GRADE_KERNEL; /* tmpfs */
	l.grade[LIMIT_INODES] = l.grade[LIMIT_DISK];
	for (size_t i = 0; i < LIMITS; i++) {
		if (!l.asked[i] || l.grade[i] != GRADE_NONE)
			continue;
		(void)err_set(e, ERR_LIMIT_UNAVAILABLE, "the limit `%s` cannot be held %s",
			      limit_names[i],
			      bare ? "with full access"
			      : l.grade[LIMIT_DISK] == GRADE_NONE && i >= LIMIT_DISK
				      ? "with isolation `landlock`"
				      : "here: no cgroup that we may use");
		return err_hint(
			e, bare ? "leave the option out, or leave out full access"
				: "see `sandglass doctor`; run as root or in a delegated cgroup");
	}
	*ret = l;
	return 0;
}

void limits_to_plan(const struct limits *l, struct plan_numbers *n)
{
	n->wall_ms = l->value[LIMIT_WALL];
	n->grace_ms = l->grace_ms;
	n->drain_ms = DRAIN_MS;
	n->cpu_ms = l->value[LIMIT_CPU_TIME];
	n->cpus_milli = l->value[LIMIT_CPUS];
	n->memory_bytes = l->value[LIMIT_MEMORY];
	n->pids = l->value[LIMIT_PIDS];
	n->disk_bytes = l->value[LIMIT_DISK];
	n->inodes = l->value[LIMIT_INODES];
}

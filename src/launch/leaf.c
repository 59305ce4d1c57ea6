/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One leaf cgroup a controller (v1) or one for all (v2), made from outside
 * below a directory that the front has found writable, never used twice, and
 * removed when init is gone. The plan names directories; all this writes there
 * are numbers of the plan and a pid.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "launch/launch.h"

#define CPU_PERIOD_US 100000u

struct knob {
	const char *file;
	char text[48];
	bool optional;
};

static int write_at(const char *dir, const char *file, const char *text)
{
	char path[MAX_PLAN_PATH + 64];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, file);
	return file_write_text(path, text);
}

/* The number after `key` (or the first one with key NULL). */
static uint64_t read_at(const char *dir, const char *file, const char *key)
{
	char path[MAX_PLAN_PATH + 64];
	char text[4096];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, file);
	(void)file_read_text(AT_FDCWD, path, text, sizeof(text));
	for (char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		size_t k = key ? strlen(key) : 0;
		if (key && (strncmp(line, key, k) != 0 || line[k] != ' '))
			continue;
		unsigned long long value = 0;
		return sscanf(line + k, "%llu", &value) == 1 ? value : 0;
	}
	return 0;
}

static bool is_v2(const struct plan_cgroup *g)
{
	return g->role == CGROUP_V2 || g->role == CGROUP_FREEZER;
}

static size_t knobs_v1(const struct plan_numbers *n, uint32_t role, struct knob *k)
{
	size_t count = 0;

	if (role == CGROUP_V1_MEMORY) {
		k[count++] = (struct knob){.file = "memory.limit_in_bytes"};
		k[count++] = (struct knob){.file = "memory.memsw.limit_in_bytes", .optional = true};
		for (size_t i = 0; i < count; i++)
			(void)snprintf(k[i].text, sizeof(k[i].text), "%llu",
				       (unsigned long long)n->memory_bytes);
	} else if (role == CGROUP_V1_PIDS) {
		k[count] = (struct knob){.file = "pids.max"};
		/* init counts too */
		(void)snprintf(k[count++].text, sizeof(k->text), "%llu",
			       (unsigned long long)n->pids + 1);
	} else {
		k[count] = (struct knob){.file = "cpu.cfs_period_us"};
		(void)snprintf(k[count++].text, sizeof(k->text), "%u", CPU_PERIOD_US);
		k[count] = (struct knob){.file = "cpu.cfs_quota_us"};
		(void)snprintf(k[count++].text, sizeof(k->text), "%llu",
			       (unsigned long long)n->cpus_milli * CPU_PERIOD_US / 1000);
	}
	return count;
}

static size_t knobs_v2(const struct plan_numbers *n, struct knob *k)
{
	size_t count = 0;

	if (n->memory_bytes != UINT64_MAX) {
		k[count] = (struct knob){.file = "memory.max"};
		(void)snprintf(k[count++].text, sizeof(k->text), "%llu",
			       (unsigned long long)n->memory_bytes);
		k[count++] =
			(struct knob){.file = "memory.swap.max", .text = "0", .optional = true};
	}
	if (n->pids != UINT64_MAX) {
		k[count] = (struct knob){.file = "pids.max", .optional = true};
		(void)snprintf(k[count++].text, sizeof(k->text), "%llu",
			       (unsigned long long)n->pids + 1);
	}
	if (n->cpus_milli != UINT64_MAX) {
		k[count] = (struct knob){.file = "cpu.max"};
		(void)snprintf(k[count++].text, sizeof(k->text), "%llu %u",
			       (unsigned long long)n->cpus_milli * CPU_PERIOD_US / 1000,
			       CPU_PERIOD_US);
	}
	return count;
}

static void remove_all(const struct launch *l)
{
	/* A dead task leaves its cgroup a moment after it was reaped: at most 50 ms. */
	static const struct timespec pause = {.tv_nsec = 1000000};

	for (size_t i = 0; i < l->p->cgroup_count; i++)
		for (int tries = 0; rmdir(l->p->cgroups[i].dir) < 0 && errno == EBUSY && tries < 50;
		     tries++)
			(void)nanosleep(&pause, NULL);
}

static int give_up(struct launch *l, int sys, const char *text)
{
	remove_all(l);
	return launch_fail(l, STAGE_CGROUP, sys, text);
}

int leaf_make(struct launch *l)
{
	struct knob knobs[4];

	for (size_t i = 0; i < l->p->cgroup_count; i++) {
		const struct plan_cgroup *g = &l->p->cgroups[i];
		if (mkdir(g->dir, 0755) < 0)
			return give_up(l, errno, g->dir);
		size_t count = g->role == CGROUP_FREEZER ? 0
			       : g->role == CGROUP_V2    ? knobs_v2(&l->p->n, knobs)
							 : knobs_v1(&l->p->n, g->role, knobs);
		for (size_t k = 0; k < count; k++) {
			int rc = write_at(g->dir, knobs[k].file, knobs[k].text);
			l->pids_counted |= rc == 0 && strcmp(knobs[k].file, "pids.max") == 0;
			if (rc < 0 && !(knobs[k].optional && errno == ENOENT))
				return give_up(l, errno, knobs[k].file);
		}
	}
	return 0;
}

int leaf_open_v2(struct launch *l, bool *ret_failed)
{
	*ret_failed = false;
	for (size_t i = 0; i < l->p->cgroup_count; i++) {
		if (!is_v2(&l->p->cgroups[i]))
			continue;
		int fd = open(l->p->cgroups[i].dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			(void)launch_fail(l, STAGE_CGROUP, errno, l->p->cgroups[i].dir);
		*ret_failed = fd < 0;
		return fd;
	}
	return -1;
}

/* v1, or without namespaces: else a v2 leaf has had its child since clone3. */
int leaf_enter(struct launch *l)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%d", (int)l->init);
	for (size_t i = 0; i < l->p->cgroup_count; i++)
		if ((!is_v2(&l->p->cgroups[i]) || (l->p->n.flags & PLAN_LANDLOCK)) &&
		    write_at(l->p->cgroups[i].dir, "cgroup.procs", text) < 0)
			return launch_fail(l, STAGE_CGROUP, errno, l->p->cgroups[i].dir);
	return 0;
}

void leaf_finish(const struct launch *l, struct report *usage)
{
	for (size_t i = 0; i < l->p->cgroup_count; i++) {
		const char *dir = l->p->cgroups[i].dir;
		uint64_t peak = 0;
		uint64_t kills = 0;
		uint64_t forks = 0;
		if (l->p->cgroups[i].role == CGROUP_V1_MEMORY) {
			peak = read_at(dir, "memory.max_usage_in_bytes", NULL);
			kills = read_at(dir, "memory.oom_control", "oom_kill");
		} else if (l->p->cgroups[i].role == CGROUP_V1_PIDS) {
			forks = read_at(dir, "pids.events", "max");
		} else if (l->p->cgroups[i].role == CGROUP_V2) {
			peak = read_at(dir, "memory.peak", NULL);
			kills = read_at(dir, "memory.events", "oom_kill");
			forks = read_at(dir, "pids.events", "max");
		}
		if (peak)
			usage->peak_memory_bytes = peak;
		usage->flags |= (kills ? REPORT_MEMORY : 0u) | (forks ? REPORT_PIDS : 0u);
	}
	remove_all(l);
}

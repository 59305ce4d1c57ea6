/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree: the memory of all processes that a running command needs besides the
 * tool itself. Starts each command, waits until the tool is there, and reads
 * /proc of everything below. Peaks are of each process since its last exec.
 */
#include "modes.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/base.h"
#include "cmds.h"
#include "stats.h"

#define MAX_PROCS 8192
#define TOOL_WAIT_NS (10ULL * 1000000000ULL)
#define POLL_NS (10L * 1000000L)
#define SETTLE_NS (300L * 1000000L)

struct proc {
	pid_t pid, parent;
	char comm[32];
};

struct procs {
	struct proc *v;
	size_t n;
};

/* Each in KiB; 0 and known = 0 where the kernel does not let us read it. */
struct memory {
	uint64_t peak, rss, pss, private;
	int known;
};

/* The process table changes under us: a process that went away is skipped. */
static int proc_read(const char *pid, struct proc *ret)
{
	char path[64], line[512];
	(void)snprintf(path, sizeof(path), "/proc/%s/stat", pid); /* a pid is short */
	FILE *f = fopen(path, "re");
	if (!f)
		return -1;
	size_t n = fread(line, 1, sizeof(line) - 1, f);
	(void)fclose(f); /* only read */
	line[n] = 0;
	char *open = strchr(line, '('), *close = strrchr(line, ')');
	int own = 0, parent = 0;
	if (!open || !close || sscanf(line, "%d", &own) != 1 ||
	    sscanf(close + 1, " %*c %d", &parent) != 1)
		return -1;
	*ret = (struct proc){.pid = own, .parent = parent};
	(void)snprintf(ret->comm, sizeof(ret->comm), "%.*s", (int)(close - open - 1), open + 1);
	return 0;
}

static int procs_read(struct procs *p, struct err *e)
{
	DIR *d = opendir("/proc");
	if (!d)
		return err_sys(e, "open /proc");
	p->n = 0;
	for (struct dirent *entry; (entry = readdir(d)) && p->n < MAX_PROCS;) {
		if (isdigit((unsigned char)entry->d_name[0]) &&
		    proc_read(entry->d_name, &p->v[p->n]) == 0)
			p->n++;
	}
	(void)closedir(d); /* only read */
	return 0;
}

static const struct proc *procs_find(const struct procs *p, pid_t pid)
{
	for (size_t i = 0; i < p->n; i++) {
		if (p->v[i].pid == pid)
			return &p->v[i];
	}
	return NULL;
}

static int is_below(const struct procs *p, const struct proc *of, pid_t top)
{
	for (size_t steps = 0; of && steps < p->n; steps++) {
		if (of->pid == top)
			return 1;
		of = procs_find(p, of->parent);
	}
	return 0;
}

/* Sums `KEY: N kB` lines whose key begins as given. */
static int field_sum(pid_t pid, const char *file, const char *key, uint64_t *ret)
{
	char path[64], line[256];
	unsigned long long value = 0;
	int seen = 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, file); /* short names */
	FILE *f = fopen(path, "re");
	if (!f)
		return -1;
	*ret = 0;
	while (fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':');
		if (colon && strncmp(line, key, strlen(key)) == 0 &&
		    sscanf(colon + 1, "%llu", &value) == 1) {
			*ret += value;
			seen = 1;
		}
	}
	(void)fclose(f); /* only read */
	return seen ? 0 : -1;
}

static int memory_read(pid_t pid, struct memory *ret, struct err *e)
{
	struct memory m = {0};
	if (field_sum(pid, "status", "VmHWM", &m.peak) || field_sum(pid, "status", "VmRSS", &m.rss))
		return err_set(e, ERR_INTERNAL, "process %d went away", pid);
	/* The counters of status lag behind by some pages; smaps_rollup counts. */
	m.known = field_sum(pid, "smaps_rollup", "Rss:", &m.rss) == 0 &&
		  field_sum(pid, "smaps_rollup", "Pss:", &m.pss) == 0 &&
		  field_sum(pid, "smaps_rollup", "Private_", &m.private) == 0;
	m.peak = m.rss > m.peak ? m.rss : m.peak;
	*ret = m;
	return 0;
}

static void memory_print(const char *name, const char *process, const struct memory *m)
{
	printf("| %-16s | %-16s | %8llu | %8llu | ", name, process, (unsigned long long)m->peak,
	       (unsigned long long)m->rss);
	if (m->known)
		printf("%8llu | %8llu |\n", (unsigned long long)m->pss,
		       (unsigned long long)m->private);
	else
		printf("%8s | %8s |\n", "-", "-");
}

/* Waits until a process of the tool's name is below top. */
static int tool_wait(struct procs *p, pid_t top, const char *tool, struct err *e)
{
	uint64_t deadline = now_ns() + TOOL_WAIT_NS;
	struct timespec pause = {.tv_nsec = POLL_NS};
	while (now_ns() < deadline) {
		if (procs_read(p, e))
			return -1;
		for (size_t i = 0; i < p->n; i++) {
			if (strcmp(p->v[i].comm, tool) == 0 && is_below(p, &p->v[i], top))
				return 0;
		}
		(void)nanosleep(&pause, NULL); /* polling /proc has no event to wait for */
	}
	return err_set(e, ERR_INTERNAL, "no %s appeared", tool);
}

static int tree_print(const struct cmd *c, struct procs *p, pid_t top, const char *tool,
		      struct err *e)
{
	struct memory sum = {.known = 1};
	struct timespec settle = {.tv_nsec = SETTLE_NS};
	if (tool_wait(p, top, tool, e))
		return -1;
	(void)nanosleep(&settle, NULL); /* what still starts beside the tool shall be seen */
	if (procs_read(p, e))
		return -1;
	for (size_t i = 0; i < p->n; i++) {
		struct memory m = {0};
		if (!is_below(p, &p->v[i], top) || strcmp(p->v[i].comm, tool) == 0)
			continue;
		if (memory_read(p->v[i].pid, &m, e))
			return -1;
		memory_print(c->name, p->v[i].comm, &m);
		sum.peak += m.peak;
		sum.rss += m.rss;
		sum.pss += m.pss;
		sum.private += m.private;
		sum.known &= m.known;
	}
	memory_print(c->name, "(sum)", &sum);
	return 0;
}

static int tree_one(const struct cmd *c, struct procs *p, const char *tool, struct err *e)
{
	struct cmd_run run = {0};
	pid_t pid = 0;
	if (cmd_start(c, CMD_IO_NULL, &pid, NULL, e))
		return -1;
	int rc = tree_print(c, p, pid, tool, e);
	/* The tool ends by itself; nothing has to be killed. */
	if (cmd_wait(pid, &run, e))
		return -1;
	if (rc == 0 && run.status)
		return err_set(e, ERR_INTERNAL, "%s ends with status %d", c->name, run.status);
	return rc;
}

int tree_mode(const struct options *o, struct err *e)
{
	struct cmds c;
	if (!o->tool)
		return err_set(e, ERR_CONFIG_INVALID, "tree needs --tool NAME");
	/* A process that was re-parented must still be found below us. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		return err_sys(e, "become subreaper");
	AUTO_FREE struct proc *v = calloc(MAX_PROCS, sizeof(*v));
	if (!v)
		return err_sys(e, "room for the process table");
	if (cmds_read(o->file, &c, e))
		return -1;
	struct procs p = {.v = v};
	int rc = 0;
	printf("| %-16s | %-16s | %8s | %8s | %8s | %8s |\n", "command", "process", "peak KiB",
	       "RSS", "PSS", "private");
	printf("|---|---|---|---|---|---|\n");
	for (size_t i = 0; rc == 0 && i < c.n; i++)
		rc = tree_one(&c.v[i], &p, o->tool, e);
	cmds_release(&c);
	return rc;
}

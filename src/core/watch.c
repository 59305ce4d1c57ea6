/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits that no kernel counter holds here, sampled by init over its own /proc:
 * memory where there is no cgroup, cpu time of the whole tree, tasks, and the
 * fill of /sand. Between two samples a command can go over; the result says
 * `watched`. The distance between samples grows with the room that is left, so
 * an idle sandbox costs next to nothing.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/tree.h"
#include "core/core.h"

#define SAMPLE_MIN_MS 100u
#define SAMPLE_MAX_MS 1000u
/* No tree of processes fills memory faster than this, in bytes a millisecond. */
#define FILL_RATE (8u << 20)

static size_t read_proc(int proc, const char *pid, const char *file, char *buf, size_t len)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%s/%s", pid, file);
	return file_read_text(proc, path, buf, len);
}

static uint64_t kib_after(const char *text, const char *key)
{
	const char *at = strstr(text, key);
	unsigned long long kib = 0;

	return at && sscanf(at + strlen(key), "%llu", &kib) == 1 ? kib * 1024u : 0;
}

/*
 * Anonymous memory, and shared memory that is mapped (proc_pid_status(5)). The
 * latter is one thing seen by many, so the largest view of it counts, once.
 */
static uint64_t private_bytes(int proc, const char *pid, uint64_t *shared)
{
	char text[2048];

	if (!read_proc(proc, pid, "status", text, sizeof(text)))
		return 0;
	uint64_t mapped = kib_after(text, "RssShmem:");
	if (mapped > *shared)
		*shared = mapped;
	return kib_after(text, "RssAnon:");
}

/* Fields 14 to 17 and 20 of proc_pid_stat(5): times in ticks, its waited-for children's, threads. */
static void times_of(int proc, const char *pid, uint64_t *ticks, uint64_t *tasks)
{
	char text[1024];
	unsigned long t[4] = {0};
	long threads = 0;

	if (!read_proc(proc, pid, "stat", text, sizeof(text)))
		return;
	const char *after = strrchr(text, ')');
	if (!after ||
	    sscanf(after + 1,
		   " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu %*d %*d %ld",
		   &t[0], &t[1], &t[2], &t[3], &threads) != 5)
		return;
	*ticks += t[0] + t[1] + t[2] + t[3];
	*tasks += threads > 0 ? (uint64_t)threads : 1;
}

static uint64_t used_bytes(int fd)
{
	struct statfs s;

	if (fd < 0 || fstatfs(fd, &s) < 0)
		return 0;
	return (uint64_t)(s.f_blocks - s.f_bfree) * (uint64_t)s.f_bsize;
}

uint64_t watch_cpu_ms(const struct rusage *u)
{
	return (uint64_t)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1000u +
	       (uint64_t)(u->ru_utime.tv_usec + u->ru_stime.tv_usec) / 1000u;
}

static uint64_t cpu_of_reaped(void)
{
	struct rusage u;

	return getrusage(RUSAGE_CHILDREN, &u) < 0 ? 0 : watch_cpu_ms(&u);
}

static uint64_t next_distance(const struct core *c, struct watch *w, uint64_t bytes)
{
	const struct plan_numbers *n = &c->p->n;

	w->distance_ms = w->distance_ms ? w->distance_ms * 2 : 2ul * WATCH_FIRST_MS;
	if (w->distance_ms < SAMPLE_MIN_MS)
		return w->distance_ms;
	w->distance_ms = SAMPLE_MIN_MS;
	if (n->cpu_ms != UINT64_MAX || bytes >= n->memory_bytes)
		return SAMPLE_MIN_MS;
	uint64_t ms = (n->memory_bytes - bytes) / FILL_RATE;
	return ms < SAMPLE_MIN_MS ? SAMPLE_MIN_MS : ms > SAMPLE_MAX_MS ? SAMPLE_MAX_MS : ms;
}

bool watch_needed(const struct core *c)
{
	const struct plan_numbers *n = &c->p->n;

	return n->cpu_ms != UINT64_MAX || n->memory_bytes != UINT64_MAX || n->pids != UINT64_MAX;
}

struct sums {
	int proc;
	uint64_t bytes, shared, ticks, tasks;
};

static void add_process(void *self, pid_t pid)
{
	struct sums *s = self;
	char name[16];

	(void)snprintf(name, sizeof(name), "%d", (int)pid);
	s->bytes += private_bytes(s->proc, name, &s->shared);
	times_of(s->proc, name, &s->ticks, &s->tasks);
}

void watch_sample(const struct core *c, struct watch *w, uint64_t now_ms)
{
	struct sums s = {.bytes = used_bytes(c->sand_fd) + used_bytes(c->shm_fd)};

	w->next_ms = now_ms + SAMPLE_MIN_MS;
	DIR *dir = opendir("/proc");
	if (!dir)
		return;
	s.proc = dirfd(dir);
	if (c->p->n.flags & PLAN_LANDLOCK)
		tree_each(add_process, &s);
	for (struct dirent *d = readdir(dir); d && !(c->p->n.flags & PLAN_LANDLOCK);
	     d = readdir(dir)) {
		int pid = 0;
		if (sscanf(d->d_name, "%d", &pid) == 1 && pid > 1)
			add_process(&s, pid);
	}
	(void)closedir(dir);
	uint64_t bytes = s.bytes + s.shared;
	w->cpu_ms = cpu_of_reaped() + s.ticks * 1000u / (uint64_t)sysconf(_SC_CLK_TCK);
	w->tasks = s.tasks;
	if (bytes > w->peak_bytes)
		w->peak_bytes = bytes;
	w->next_ms = now_ms + next_distance(c, w, bytes);
}

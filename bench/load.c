/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load: throughput with several runs at a time. A block is `runs` runs of one
 * command by `level` workers; blocks of all commands and levels are mixed in
 * random order, round by round.
 */
#include "modes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "cmds.h"
#include "stats.h"

struct cell {
	struct samples wall;
	uint64_t elapsed_ns, runs, busy_us;
};

/* What the whole machine has computed, idle and waiting left out: 10 ms steps. */
static int machine_busy_us(uint64_t *ret, struct err *e)
{
	unsigned long long user, nice, sys, idle, wait, irq, soft;
	FILE *f = fopen("/proc/stat", "re");
	if (!f)
		return err_sys(e, "open /proc/stat");
	int got = fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &sys, &idle,
			 &wait, &irq, &soft);
	(void)fclose(f); /* only read */
	if (got != 7)
		return err_set(e, ERR_INTERNAL, "/proc/stat is not as expected");
	*ret = (user + nice + sys + irq + soft) * (1000000ULL / (uint64_t)sysconf(_SC_CLK_TCK));
	return 0;
}

/* One worker's share; a failed run leaves a zero, which the parent sees. */
static void worker_run(const struct cmd *c, uint64_t *wall, uint64_t n)
{
	struct err e;
	struct cmd_run run;
	for (uint64_t i = 0; i < n; i++) {
		if (cmd_measure(c, &run, &e))
			_exit(1);
		wall[i] = run.status ? 0 : run.wall_ns;
	}
	_exit(0);
}

static int workers_run(const struct cmd *c, uint64_t level, uint64_t each, uint64_t *wall,
		       struct err *e)
{
	pid_t pids[64];
	uint64_t started = 0;
	int failed = 0;
	for (; started < level && !failed; started++) {
		pids[started] = fork();
		if (pids[started] < 0)
			failed = err_sys(e, "fork");
		else if (pids[started] == 0)
			worker_run(c, wall + started * each, each);
	}
	for (uint64_t i = 0; i < started; i++) {
		int ws = 0;
		if (pids[i] < 0)
			continue;
		if (RETRY_EINTR(waitpid(pids[i], &ws, 0)) != pids[i])
			failed = err_sys(e, "wait");
		else if (ws)
			failed = err_set(e, ERR_INTERNAL, "a worker of %s failed", c->name);
	}
	return failed;
}

static int block_run(const struct cmd *c, uint64_t level, uint64_t runs, struct cell *cell,
		     uint64_t *wall, struct err *e)
{
	uint64_t each = runs / level, total = each * level, busy0 = 0, busy1 = 0;
	memset(wall, 0, total * sizeof(*wall));
	if (machine_busy_us(&busy0, e))
		return -1;
	uint64_t began = now_ns();
	if (workers_run(c, level, each, wall, e))
		return -1;
	cell->elapsed_ns += now_ns() - began;
	if (machine_busy_us(&busy1, e))
		return -1;
	cell->busy_us += busy1 - busy0;
	cell->runs += total;
	for (uint64_t i = 0; i < total; i++) {
		if (!wall[i])
			return err_set(e, ERR_INTERNAL, "%s failed at %llu at a time", c->name,
				       (unsigned long long)level);
		if (samples_add(&cell->wall, wall[i], e))
			return -1;
	}
	return 0;
}

static double per_second(const struct cell *cell)
{
	return (double)cell->runs / ((double)cell->elapsed_ns / 1e9);
}

static void load_print(const struct cmds *c, struct cell *cells, const struct options *o)
{
	size_t base = o->base ? cmds_find(c, o->base) : c->n;
	printf("| %-16s | %7s | %6s | %8s | %8s | %8s | %7s | %7s | %9s |\n", "command", "at once",
	       "n", "p50 us", "p99", "runs/s", "x first", "x base", "busy/run");
	printf("|---|---|---|---|---|---|---|---|---|\n");
	for (size_t i = 0; i < c->n * o->level_count; i++) {
		size_t at = i / o->level_count, level = i % o->level_count;
		struct cell *cell = &cells[i];
		samples_sort(&cell->wall);
		printf("| %-16s | %7llu | %6zu | %7.0f | %8.0f | %8.0f | %7.2f | ", c->v[at].name,
		       (unsigned long long)o->levels[level], cell->wall.n,
		       (double)samples_rank(&cell->wall, 50) / 1e3,
		       (double)samples_rank(&cell->wall, 99) / 1e3, per_second(cell),
		       per_second(cell) / per_second(&cells[level]));
		if (base < c->n)
			printf("%7.2f | ",
			       per_second(cell) /
				       per_second(&cells[base * o->level_count + level]));
		else
			printf("%7s | ", "-");
		printf("%9.0f |\n", (double)cell->busy_us / (double)cell->runs);
	}
	printf("\nx is of runs/s; busy/run is what the whole machine computed, ours or not, in us.\n");
}

static int load_all(const struct cmds *c, struct cell *cells, const struct options *o,
		    uint64_t *wall, struct err *e)
{
	struct rng rng;
	size_t order[MAX_CMDS * MAX_LEVELS], blocks = c->n * o->level_count;
	for (size_t i = 0; i < c->n; i++) {
		if (cmd_prove(&c->v[i], e))
			return -1;
	}
	for (size_t i = 0; i < blocks; i++) {
		if (samples_init(&cells[i].wall, o->rounds * o->runs, e))
			return -1;
	}
	printf("seed %llu, %llu rounds of blocks of %llu runs\n\n",
	       (unsigned long long)rng_init(&rng, o->seed), (unsigned long long)o->rounds,
	       (unsigned long long)o->runs);
	(void)fflush(stdout); /* also keeps it out of the workers' buffers */
	for (uint64_t r = 0; r < o->rounds; r++) {
		rng_shuffle(&rng, order, blocks);
		for (size_t i = 0; i < blocks; i++) {
			size_t at = order[i] / o->level_count, level = order[i] % o->level_count;
			if (block_run(&c->v[at], o->levels[level], o->runs, &cells[order[i]], wall,
				      e))
				return -1;
		}
	}
	load_print(c, cells, o);
	return 0;
}

int load_mode(const struct options *o, struct err *e)
{
	struct cmds c;
	size_t bytes = o->runs * sizeof(uint64_t);
	uint64_t *wall =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (wall == MAP_FAILED)
		return err_sys(e, "room for a block");
	if (cmds_read(o->file, &c, e))
		return -1;
	struct cell *cells = calloc(c.n * o->level_count, sizeof(*cells));
	int rc = cells ? load_all(&c, cells, o, wall, e) : err_sys(e, "room for cells");
	for (size_t i = 0; cells && i < c.n * o->level_count; i++)
		samples_release(&cells[i].wall);
	free(cells);
	cmds_release(&c);
	return rc;
}

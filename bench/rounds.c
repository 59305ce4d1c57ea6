/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rounds: every command once a round, in a new random order each round, so
 * that whatever else the machine does falls on all of them alike. Only the
 * ratios of one such run mean anything.
 */
#include "modes.h"

#include <stdio.h>
#include <stdlib.h>

#include "cmds.h"
#include "stats.h"

/* The gate's ratio is also shown for as many consecutive parts of the run. */
#define GATE_PARTS 5

struct row {
	struct samples wall; /* in the order taken, until sorted for the table */
	uint64_t cpu_us, maxrss_kib, failed;
};

static int round_run(const struct cmds *c, struct row *rows, const size_t *order, struct err *e)
{
	for (size_t i = 0; i < c->n; i++) {
		struct row *row = &rows[order[i]];
		struct cmd_run run;
		if (cmd_measure(&c->v[order[i]], &run, e) ||
		    samples_add(&row->wall, run.wall_ns, e))
			return -1;
		row->cpu_us += run.cpu_us;
		row->failed += run.status != 0;
		if (run.maxrss_kib > row->maxrss_kib)
			row->maxrss_kib = run.maxrss_kib;
	}
	return 0;
}

static int rounds_run(const struct cmds *c, struct row *rows, const struct options *o,
		      struct rng *rng, struct err *e)
{
	size_t order[MAX_CMDS];
	struct cmd_run ignored;
	for (uint64_t i = 0; i < o->warmup; i++) {
		rng_shuffle(rng, order, c->n);
		for (size_t k = 0; k < c->n; k++) {
			if (cmd_measure(&c->v[order[k]], &ignored, e))
				return -1;
		}
	}
	for (uint64_t i = 0; i < o->rounds; i++) {
		rng_shuffle(rng, order, c->n);
		if (round_run(c, rows, order, e))
			return -1;
	}
	return 0;
}

static double us(uint64_t ns)
{
	return (double)ns / 1000.0;
}

static void table_print(const struct cmds *c, struct row *rows, const struct options *o)
{
	size_t base = o->base ? cmds_find(c, o->base) : c->n;
	for (size_t i = 0; i < c->n; i++)
		samples_sort(&rows[i].wall);
	printf("| %-16s | %5s | %7s | %8s | %8s | %8s | %8s | %7s | %7s | %7s | %4s |\n", "command",
	       "n", "min us", "p10", "p50", "p99", "CPU/run", "x first", "x base", "max KiB",
	       "fail");
	printf("|---|---|---|---|---|---|---|---|---|---|---|\n");
	for (size_t i = 0; i < c->n; i++) {
		const struct row *r = &rows[i];
		double p50 = us(samples_rank(&r->wall, 50));
		printf("| %-16s | %5zu | %7.0f | %8.0f | %8.0f | %8.0f | %8.0f | %7.2f | ",
		       c->v[i].name, r->wall.n, us(samples_rank(&r->wall, 0)),
		       us(samples_rank(&r->wall, 10)), p50, us(samples_rank(&r->wall, 99)),
		       (double)r->cpu_us / (double)r->wall.n,
		       p50 / us(samples_rank(&rows[0].wall, 50)));
		if (base < c->n)
			printf("%7.2f | ", p50 / us(samples_rank(&rows[base].wall, 50)));
		else
			printf("%7s | ", "-");
		printf("%7llu | %4llu |\n", (unsigned long long)r->maxrss_kib,
		       (unsigned long long)r->failed);
	}
}

/* Lowest and highest ratio of the run's parts; before the samples are sorted. */
static int gate_spread(const struct samples *a, const struct samples *b, double *ret_low,
		       double *ret_high, struct err *e)
{
	size_t part = a->n / GATE_PARTS;
	double low = 0, high = 0;
	for (size_t i = 0; part && i < GATE_PARTS; i++) {
		uint64_t x = 0, y = 0;
		if (samples_median(a, i * part, part, &x, e) ||
		    samples_median(b, i * part, part, &y, e))
			return -1;
		double ratio = (double)x / (double)y;
		low = i == 0 || ratio < low ? ratio : low;
		high = i == 0 || ratio > high ? ratio : high;
	}
	*ret_low = low;
	*ret_high = high;
	return 0;
}

static int gate_check(const struct cmds *c, const struct row *rows, const struct gate *g,
		      struct err *e)
{
	const struct samples *a = &rows[cmds_find(c, g->row)].wall;
	const struct samples *b = &rows[cmds_find(c, g->base)].wall;
	double low = 0, high = 0;
	uint64_t x = 0, y = 0;
	if (gate_spread(a, b, &low, &high, e) || samples_median(a, 0, a->n, &x, e) ||
	    samples_median(b, 0, b->n, &y, e))
		return -1;
	double ratio = (double)x / (double)y;
	double bound = (double)g->percent / 100.0;
	int held = ratio <= bound;
	printf("gate: p50 %s / %s = %.3f, at most %.2f: %s (%d parts of the run: %.3f to %.3f)\n\n",
	       g->row, g->base, ratio, bound, held ? "holds" : "FAILS", GATE_PARTS, low, high);
	return held ? 0 : 1;
}

static int rounds_report(const struct cmds *c, struct row *rows, const struct options *o,
			 struct err *e)
{
	int verdict = o->gate.percent ? gate_check(c, rows, &o->gate, e) : 0;
	if (verdict < 0)
		return -1;
	table_print(c, rows, o);
	for (size_t i = 0; i < c->n; i++) {
		if (rows[i].failed)
			return err_set(e, ERR_INTERNAL, "%s failed %llu times: no valid figures",
				       c->v[i].name, (unsigned long long)rows[i].failed);
	}
	return verdict;
}

/* A mistyped gate shall not show after minutes of measuring. */
static int names_check(const struct cmds *c, const struct options *o, struct err *e)
{
	if (o->base && cmds_find(c, o->base) == c->n)
		return err_set(e, ERR_CONFIG_INVALID, "no row %s", o->base);
	if (!o->gate.percent)
		return 0;
	if (cmds_find(c, o->gate.row) == c->n)
		return err_set(e, ERR_CONFIG_INVALID, "gate: no row %s", o->gate.row);
	if (cmds_find(c, o->gate.base) == c->n)
		return err_set(e, ERR_CONFIG_INVALID, "gate: no row %s", o->gate.base);
	return 0;
}

static int rounds_all(const struct cmds *c, struct row *rows, const struct options *o,
		      struct err *e)
{
	struct rng rng;
	if (names_check(c, o, e))
		return -1;
	for (size_t i = 0; i < c->n; i++) {
		if (samples_init(&rows[i].wall, o->rounds, e) || cmd_prove(&c->v[i], e))
			return -1;
	}
	printf("seed %llu, %llu rounds after %llu unmeasured\n\n",
	       (unsigned long long)rng_init(&rng, o->seed), (unsigned long long)o->rounds,
	       (unsigned long long)o->warmup);
	(void)fflush(stdout); /* a person waits; printing errors show at the end */
	if (rounds_run(c, rows, o, &rng, e))
		return -1;
	return rounds_report(c, rows, o, e);
}

int rounds_mode(const struct options *o, struct err *e)
{
	struct row rows[MAX_CMDS] = {0};
	struct cmds c;
	if (cmds_read(o->file, &c, e))
		return -1;
	int rc = rounds_all(&c, rows, o, e);
	for (size_t i = 0; i < c.n; i++)
		samples_release(&rows[i].wall);
	cmds_release(&c);
	return rc;
}

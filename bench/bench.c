/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench: compares commands with each other on this machine. Reads a list of
 * them (cmds.h says in which form) and prints Markdown tables.
 * Exit status: 0; 1 if a gate does not hold; 2 if nothing valid was measured.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/num.h"
#include "modes.h"
#include "stats.h"

enum opt { OPT_ROUNDS = 256, OPT_WARMUP, OPT_RUNS, OPT_SEED, OPT_BASE, OPT_TOOL, OPT_GATE, OPT_AT };

static const struct option long_options[] = {
	{"rounds", required_argument, NULL, OPT_ROUNDS},
	{"warmup", required_argument, NULL, OPT_WARMUP},
	{"runs", required_argument, NULL, OPT_RUNS},
	{"seed", required_argument, NULL, OPT_SEED},
	{"base", required_argument, NULL, OPT_BASE},
	{"tool", required_argument, NULL, OPT_TOOL},
	{"gate", required_argument, NULL, OPT_GATE},
	{"at-once", required_argument, NULL, OPT_AT},
	{0},
};

static const struct mode {
	const char *name;
	int (*run)(const struct options *o, struct err *e);
	const char *help;
} modes[] = {
	{"rounds", rounds_mode, "time every command, interleaved"},
	{"values", values_mode, "compare the numbers that commands print"},
	{"load", load_mode, "throughput with several at a time"},
	{"tree", tree_mode, "memory of all processes of a running command"},
};

static void usage(void)
{
	(void)fputs("usage: bench MODE [OPTION…] FILE\n", stderr);
	for (size_t i = 0; i < ARRAY_LEN(modes); i++)
		(void)fprintf(stderr, "  %-8s %s\n", modes[i].name, modes[i].help);
	(void)fputs("  --rounds N --warmup N --seed N   how often, in which order (0: a new one)\n"
		    "  --base NAME                      row for the second ratio\n"
		    "  --gate ROW:BASE:PERCENT          rounds: exit 1 if p50 is more than that\n"
		    "  --at-once N,N… --runs N          load: how many at a time, runs a block\n"
		    "  --tool NAME                      tree: the process that is not counted\n",
		    stderr);
}

static int name_copy(char ret[static MAX_NAME], const char *from, size_t n, struct err *e)
{
	if (n == 0 || n >= MAX_NAME)
		return err_set(e, ERR_CONFIG_INVALID, "a row's name is 1 to %d bytes",
			       MAX_NAME - 1);
	memcpy(ret, from, n);
	ret[n] = 0;
	return 0;
}

static int gate_parse(const char *text, struct gate *ret, struct err *e)
{
	const char *first = strchr(text, ':'), *second = first ? strchr(first + 1, ':') : NULL;
	if (!second)
		return err_set(e, ERR_CONFIG_INVALID, "--gate is ROW:BASE:PERCENT");
	if (name_copy(ret->row, text, (size_t)(first - text), e) ||
	    name_copy(ret->base, first + 1, (size_t)(second - first - 1), e))
		return -1;
	return num_parse(second + 1, 1, 10000, &ret->percent, e);
}

static int levels_parse(char *text, struct options *o, struct err *e)
{
	o->level_count = 0;
	for (char *p = text, *next; p; p = next) {
		next = strchr(p, ',');
		if (next)
			*next++ = 0;
		if (o->level_count == MAX_LEVELS)
			return err_set(e, ERR_CONFIG_INVALID, "more than %d levels", MAX_LEVELS);
		if (num_parse(p, 1, 64, &o->levels[o->level_count++], e))
			return err_wrap(e, "--at-once");
	}
	return 0;
}

static int option_take(int opt, char *arg, struct options *o, struct err *e)
{
	switch (opt) {
	case OPT_ROUNDS:
		return num_parse(arg, 1, 100000, &o->rounds, e);
	case OPT_WARMUP:
		return num_parse(arg, 0, 1000, &o->warmup, e);
	case OPT_RUNS:
		return num_parse(arg, 64, 100000, &o->runs, e);
	case OPT_SEED:
		return num_parse(arg, 0, UINT64_MAX, &o->seed, e);
	case OPT_BASE:
		o->base = arg;
		return 0;
	case OPT_TOOL:
		o->tool = arg;
		return 0;
	case OPT_GATE:
		return gate_parse(arg, &o->gate, e);
	case OPT_AT:
		return levels_parse(arg, o, e);
	default:
		return err_set(e, ERR_CONFIG_INVALID, "unknown option");
	}
}

static int mode_run(int argc, char **argv, struct err *e)
{
	struct options o = {.rounds = 300,
			    .warmup = 3,
			    .runs = 128,
			    .levels = {1, 2, 4, 8},
			    .level_count = 4};
	const struct mode *mode = NULL;
	for (size_t i = 0; argc > 1 && i < ARRAY_LEN(modes); i++) {
		if (strcmp(argv[1], modes[i].name) == 0)
			mode = &modes[i];
	}
	if (!mode)
		return err_set(e, ERR_CONFIG_INVALID, "which mode?");
	optind = 2;
	for (int opt; (opt = getopt_long(argc, argv, "", long_options, NULL)) != -1;) {
		if (option_take(opt, optarg, &o, e))
			return -1;
	}
	if (optind + 1 != argc)
		return err_set(e, ERR_CONFIG_INVALID, "one FILE with commands is expected");
	o.file = argv[optind];
	return mode->run(&o, e);
}

int main(int argc, char **argv)
{
	struct err e;
	int rc = mode_run(argc, argv, &e);
	if (rc < 0) {
		(void)fprintf(stderr, "bench: %s\n", e.msg);
		if (argc < 2)
			usage();
		return 2;
	}
	if (fflush(stdout)) {
		perror("bench: stdout");
		return 2;
	}
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the option parser. Each line of the input is one argument.
 *
 * The table has every kind of option. Whatever is parsed must point into argv,
 * lie within the table's bounds and come out the same a second time.
 */
#include "base/opt.h"

#include <stdbool.h>

#include "base/base.h"
#include "base/num.h"
#include "fuzz_base.h"

#define MAX_ARGS 600

struct target {
	bool json, quiet;
	const char *source, *script;
	int mode;
	uint64_t pids, memory, timeout, cpus;
	struct strlist env;
};

static const char *const modes[] = {"read-only", "workspace-write", NULL};

static const struct opt table[] = {
	{.name = "json", .kind = OPT_FLAG, .off = offsetof(struct target, json), .help = "JSON."},
	{.name = "quiet",
	 .short_name = 'q',
	 .kind = OPT_FLAG,
	 .off = offsetof(struct target, quiet)},
	{.name = "source", .kind = OPT_STRING, .off = offsetof(struct target, source)},
	{.short_name = 'c', .kind = OPT_STRING, .off = offsetof(struct target, script)},
	{.name = "mode",
	 .kind = OPT_CHOICE,
	 .off = offsetof(struct target, mode),
	 .choices = modes},
	{.name = "pids",
	 .kind = OPT_NUM,
	 .off = offsetof(struct target, pids),
	 .min = 1,
	 .max = 99},
	{.name = "memory",
	 .kind = OPT_SIZE,
	 .off = offsetof(struct target, memory),
	 .none_ok = true},
	{.name = "timeout",
	 .kind = OPT_DURATION,
	 .off = offsetof(struct target, timeout),
	 .min = 1},
	{.name = "cpus", .kind = OPT_CPUS, .off = offsetof(struct target, cpus), .max = 4000},
	{.name = "env", .short_name = 'e', .kind = OPT_LIST, .off = offsetof(struct target, env)},
	{.name = "hide", .kind = OPT_LIST, .later = "later"},
};

static const struct target defaults = {
	.mode = -1,
	.pids = LIMIT_UNSET,
	.memory = LIMIT_UNSET,
	.timeout = LIMIT_UNSET,
	.cpus = LIMIT_UNSET,
};

static int split(char *text, char *argv[MAX_ARGS])
{
	int argc = 0;

	for (char *line = text; line && argc < MAX_ARGS;) {
		char *end = strchr(line, '\n');

		if (end)
			*end++ = '\0';
		argv[argc++] = line;
		line = end;
	}
	return argc;
}

static void check_target(const struct target *t, const char *text, size_t size)
{
	FUZZ_CHECK(t->mode >= -1 && t->mode < 2);
	FUZZ_CHECK(t->pids == LIMIT_UNSET || (t->pids >= 1 && t->pids <= 99));
	FUZZ_CHECK(t->memory == LIMIT_UNSET || t->memory == LIMIT_NONE ||
		   t->memory <= MAX_SIZE_BYTES);
	FUZZ_CHECK(t->timeout == LIMIT_UNSET || (t->timeout >= 1 && t->timeout <= MAX_DURATION_MS));
	FUZZ_CHECK(t->cpus == LIMIT_UNSET || (t->cpus >= 1 && t->cpus <= 4000));
	FUZZ_CHECK(!t->source || (t->source >= text && t->source <= text + size));
	FUZZ_CHECK(!t->script || (t->script >= text && t->script <= text + size));
	FUZZ_CHECK(t->env.n <= STRLIST_MAX);
	for (size_t i = 0; i < t->env.n; i++)
		FUZZ_CHECK(t->env.v[i] >= text && t->env.v[i] <= text + size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char *argv[MAX_ARGS];
	char *text = fuzz_string(data, size);
	int argc = split(text, argv);
	struct target t = defaults, again = defaults;
	int first = -1, first_again = -1;
	struct err e = {0}, e_again = {0};
	int rc = opt_parse(table, ARRAY_LEN(table), argc, argv, &t, &first, &e);
	int rc_again =
		opt_parse(table, ARRAY_LEN(table), argc, argv, &again, &first_again, &e_again);

	FUZZ_CHECK(rc == rc_again && first == first_again && memcmp(&t, &again, sizeof(t)) == 0);
	check_target(&t, text, size);
	if (rc < 0) {
		FUZZ_CHECK(first == -1);
		FUZZ_CHECK(e.code == ERR_CONFIG_INVALID || e.code == ERR_UNSUPPORTED ||
			   e.code == ERR_ARG_LIMIT);
		fuzz_check_err(&e);
	} else {
		FUZZ_CHECK(e.code == ERR_NONE && first >= 0 && first <= argc);
		/* What ended the options is an operand or stands behind `--`. */
		FUZZ_CHECK(first == argc || argv[first][0] != '-' || argv[first][1] == '\0' ||
			   (first > 0 && strcmp(argv[first - 1], "--") == 0));
	}
	free(text);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandglass: finds the verb in the table and runs it.
 */
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/verbs.h"
#include "run/stdio.h"

/* `call` and `session exec` run something: their own failures have the statuses of `run`. */
static bool is_call(int argc, char **argv)
{
	return strcmp(argv[1], "call") == 0 ||
	       (strcmp(argv[1], "session") == 0 && argc > 2 && strcmp(argv[2], "exec") == 0);
}

int main(int argc, char **argv)
{
	/* Descriptors that our caller forgot are no business of anybody below us. */
	(void)syscall(436 /* close_range */, 3u, ~0u, 0u);
	struct cli cli = {.env = environ, .closed = stdio_fill()};
	const char *name = argc > 1 ? argv[1] : "help";

	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		name = "help";
	if (strcmp(name, "--version") == 0)
		name = "version";
	const struct verb *v = verb_find(name);
	if (!v)
		return verb_unknown(name);
	if (!v->run)
		return usage_later(name, v->later, is_call(argc, argv) ? 125 : 2);
	cli.argc = argc > 1 ? argc - 2 : 0;
	cli.argv = argv + (argc > 1 ? 2 : argc);
	return v->run(&cli, cli.argc, cli.argv);
}

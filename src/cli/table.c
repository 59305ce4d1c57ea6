/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All verbs of the contract. Those without a function answer UNSUPPORTED and
 * name the part that brings them.
 */
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/buf.h"
#include "cli/verbs.h"

const struct verb verbs[] = {
	{"run", verb_run, "run a command in a sandbox over this project", NULL},
	{"shell", verb_shell, "the same with the pinned shell at a terminal", NULL},
	{"doctor", verb_doctor, "what this host can enforce, and how to mend the rest", NULL},
	{"help", verb_help, "this list", NULL},
	{"version", verb_version, "the version", NULL},
	{"session", NULL, NULL, "sessions and review"},
	{"diff", NULL, NULL, "sessions and review"},
	{"apply", NULL, NULL, "sessions and review"},
	{"discard", NULL, NULL, "sessions and review"},
	{"export", NULL, NULL, "sessions and review"},
	{"push", NULL, NULL, "sessions and review"},
	{"gc", NULL, NULL, "sessions and review"},
	{"audit", NULL, NULL, "sessions and review"},
	{"call", NULL, NULL, "the tool manifest"},
	{"manifest", NULL, NULL, "the tool manifest"},
	{"serve", NULL, NULL, "the gateway"},
	{"mcp", NULL, NULL, "the gateway"},
	{"token", NULL, NULL, "the gateway"},
	{"approval", NULL, NULL, "rules and approvals"},
	{"policy", NULL, NULL, "policy files"},
	{"schema", NULL, NULL, "policy files"},
	{"gate", NULL, NULL, "the gates for CI"},
	{"probe", NULL, NULL, "the gates for CI"},
	{"soak", NULL, NULL, "the gates for CI"},
};

const size_t verb_count = ARRAY_LEN(verbs);

int verb_help(const struct cli *cli, int argc, char **argv)
{
	AUTO_BUF out = BUF_INIT(65536);
	struct err e = {0};

	(void)argc;
	(void)argv;
	(void)cli;
	(void)buf_str(
		&out,
		"sandglass: a disposable, bounded sandbox for every command of a coding agent\n\n"
		"usage: sandglass VERB [OPTION…] …\n\n");
	for (size_t i = 0; i < verb_count; i++)
		if (verbs[i].run)
			(void)buf_printf(&out, "  %-10s %s\n", verbs[i].name, verbs[i].help);
	(void)buf_str(&out, "\nnot in this version:");
	for (size_t i = 0; i < verb_count; i++)
		if (!verbs[i].run)
			(void)buf_printf(&out, " %s", verbs[i].name);
	(void)buf_str(&out,
		      "\n\nexamples:\n"
		      "  sandglass run make test              this project, its tools, no network\n"
		      "  sandglass run -c 'make && ./test'   a script for the pinned shell\n"
		      "  sandglass run --mode read-only ls    nothing of the project is writable\n"
		      "  sandglass run --json make            one JSON result\n"
		      "\n`sandglass VERB --help` says more.\n");
	if (cli_write(STDOUT_FILENO, buf_cstr(&out), out.n, &e) < 0)
		return cli_fail(&e, 2);
	return 0;
}

int verb_version(const struct cli *cli, int argc, char **argv)
{
	static const char text[] = "sandglass " SANDGLASS_VERSION "\n";
	struct err e = {0};

	(void)argc;
	(void)argv;
	(void)cli;
	return cli_write(STDOUT_FILENO, text, strlen(text), &e) < 0 ? cli_fail(&e, 2) : 0;
}

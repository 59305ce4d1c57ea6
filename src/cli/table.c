/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All verbs of the contract. Those without a function answer UNSUPPORTED and
 * name the part that brings them.
 */
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/nearest.h"
#include "base/term.h"
#include "cli/apply_options.h"
#include "cli/audit_options.h"
#include "cli/policy_options.h"
#include "cli/promote.h"
#include "cli/review_options.h"
#include "cli/session_options.h"
#include "cli/verbs.h"

const struct verb verbs[] = {
	{"run", verb_run, &run_usage, NULL},
	{"shell", verb_shell, &shell_usage, NULL},
	{"session", verb_session, &session_usage, NULL},
	{"diff", verb_diff, &diff_usage, NULL},
	{"apply", verb_apply, &apply_usage, NULL},
	{"discard", verb_discard, &discard_usage, NULL},
	{"export", verb_export, &export_usage, NULL},
	{"push", verb_push, &push_usage, NULL},
	{"gc", verb_gc, &gc_usage, NULL},
	{"audit", verb_audit, &audit_usage, NULL},
	{"policy", verb_policy, &policy_usage, NULL},
	{"schema", verb_schema, &schema_usage, NULL},
	{"doctor", verb_doctor, &doctor_usage, NULL},
	{"help", verb_help, &help_usage, NULL},
	{"version", verb_version, &version_usage, NULL},
	{"call", NULL, NULL, "the tool manifest"},
	{"manifest", NULL, NULL, "the tool manifest"},
	{"serve", NULL, NULL, "the gateway"},
	{"mcp", NULL, NULL, "the gateway"},
	{"token", NULL, NULL, "the gateway"},
	{"approval", NULL, NULL, "rules and approvals"},
	{"gate", NULL, NULL, "the gates for CI"},
	{"probe", NULL, NULL, "the gates for CI"},
	{"soak", NULL, NULL, "the gates for CI"},
};

const size_t verb_count = ARRAY_LEN(verbs);

const struct verb *verb_find(const char *name)
{
	for (size_t i = 0; i < verb_count; i++)
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
}

int verb_unknown(const char *name)
{
	struct err e = {0};
	const char *names[ARRAY_LEN(verbs)];
	char shown[128];

	for (size_t i = 0; i < verb_count; i++)
		names[i] = verbs[i].name;
	const char *near = nearest(name, names, verb_count);
	(void)err_set(&e, ERR_CONFIG_INVALID, "unknown verb `%s`",
		      term_escape_cut(shown, sizeof(shown), name, strlen(name)));
	if (near)
		(void)err_hint(&e, "did you mean `%s`?", near);
	else if (name[0] == '-')
		(void)err_hint(&e, "options come after the verb: `sandglass run %s … CMD`", shown);
	else
		(void)err_hint(
			&e, "`sandglass help` lists the verbs; a command is `sandglass run CMD`");
	return cli_fail(&e, 2);
}

const struct usage help_usage = {
	.name = "help",
	.summary = "the verbs, or the help of one",
	.synopsis = (const char *const[]){"help [VERB [VERB]]", NULL},
	.about = "Lists the verbs, or prints what `sandglass VERB --help` does.",
	.options = help_options,
	.option_count = 1,
	.operand = OPERAND_VERB,
};

const struct usage version_usage = {
	.name = "version",
	.summary = "the version",
	.synopsis = (const char *const[]){"version", NULL},
	.about = "Prints `sandglass` and the version.",
	.options = help_options,
	.option_count = 1,
};

static int list_verbs(void)
{
	AUTO_BUF out = BUF_INIT(65536);
	const char *later[ARRAY_LEN(verbs)];
	size_t n = 0;
	struct err e = {0};

	(void)buf_str(
		&out,
		"sandglass: a disposable, bounded sandbox for every command of a coding agent\n\n"
		"usage: sandglass VERB [OPTION…] …\n\n");
	for (size_t i = 0; i < verb_count; i++)
		if (verbs[i].usage)
			(void)buf_printf(&out, "  %-10s %s\n", verbs[i].name,
					 verbs[i].usage->summary);
	for (size_t i = 0; i < verb_count; i++)
		if (!verbs[i].usage)
			later[n++] = verbs[i].name;
	usage_list_later(later, n, &out);
	(void)buf_str(
		&out,
		"\nexamples:\n"
		"  sandglass run make test              this project, its tools, no network\n"
		"  sandglass run -c 'make && ./test'    a script for the pinned shell\n"
		"  sandglass run --mode read-only ls    nothing of the project is writable\n"
		"  sandglass run --json make            one JSON result\n"
		"  sandglass run --review make fmt      what it changes is held until you say yes\n"
		"\n`sandglass VERB --help` says more, and so does `man sandglass-run`.\n");
	if (cli_write(STDOUT_FILENO, buf_cstr(&out), out.n, &e) < 0)
		return cli_fail(&e, 2);
	return 0;
}

/* What a verb whose only option is --help was given: its operands, or the help. -1: go on. */
static int only_help(const struct usage *u, int argc, char **argv, int most, int *ret_first)
{
	struct help_options o = {.help = false};
	struct err e = {0};

	if (opt_parse(help_options, help_option_count, argc, argv, &o, ret_first, &e) < 0)
		return cli_fail(&e, 2);
	if (o.help)
		return usage_show(u, 2);
	if (argc - *ret_first <= most)
		return -1;
	(void)err_set(&e, ERR_CONFIG_INVALID, "`%s` takes %s", u->name,
		      most ? "two words at most" : "no argument");
	return cli_fail(&e, 2);
}

int verb_help(const struct cli *cli, int argc, char **argv)
{
	int first = 0;
	int status = only_help(&help_usage, argc, argv, 2, &first);

	(void)cli;
	if (status >= 0)
		return status;
	if (first == argc)
		return list_verbs();
	const struct verb *v = verb_find(argv[first]);
	if (!v)
		return verb_unknown(argv[first]);
	if (!v->usage)
		return usage_later(v->name, v->later, 2);
	if (first + 1 == argc)
		return usage_show(v->usage, 2);
	const struct usage *sub = usage_sub(v->usage, argv[first + 1]);
	if (!sub)
		return usage_unknown(v->usage, argv[first + 1]);
	if (sub->later)
		return usage_later(sub->name, sub->later, 2);
	return usage_show(sub, 2);
}

int verb_version(const struct cli *cli, int argc, char **argv)
{
	static const char text[] = "sandglass " SANDGLASS_VERSION "\n";
	struct err e = {0};
	int first = 0;
	int status = only_help(&version_usage, argc, argv, 0, &first);

	(void)cli;
	if (status >= 0)
		return status;
	return cli_write(STDOUT_FILENO, text, strlen(text), &e) < 0 ? cli_fail(&e, 2) : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sandglass export` and `sandglass push`: their descriptions.
 */
#include "cli/promote.h"

#include "base/base.h"
#include "cli/verbs.h"

#define OPT_COMMON(type)                                                \
	{.name = "json",                                                \
	 .kind = OPT_FLAG,                                              \
	 .off = offsetof(struct type, json),                            \
	 .help = "one JSON document"},                                  \
	{                                                               \
		.name = "help", .short_name = 'h', .kind = OPT_FLAG,    \
		.off = offsetof(struct type, help), .help = "this text" \
	}

static const struct opt export_table[] = {
	{.name = "output",
	 .kind = OPT_STRING,
	 .off = offsetof(struct export_options, output),
	 .arg = "DIR",
	 .help = "into this directory, which must be new or empty"},
	{.name = "at-end",
	 .kind = OPT_FLAG,
	 .off = offsetof(struct export_options, at_end),
	 .help = "as when a session ends: nothing if no change is held"},
	OPT_COMMON(export_options),
};

const struct usage export_usage = {
	.name = "export",
	.summary = "write a session's diff, logs, results and reports to files",
	.synopsis = (const char *const[]){"export [OPTION…] [ID]", NULL},
	.about =
		"Copies what is worth keeping of a session: diff.patch, results, logs, test reports\n"
		"(policy key `artifacts`), a summary and checksums. ID is the beginning of an id, a\n"
		"name or @last, the newest session of this source, which is the default.",
	.status = "Exit status: 0, done; 2, it could not be done.",
	.options = export_table,
	.option_count = ARRAY_LEN(export_table),
};

static const struct opt push_table[] = {
	{.name = "branch",
	 .kind = OPT_STRING,
	 .off = offsetof(struct push_options, branch),
	 .arg = "NAME",
	 .help = "the new branch; sandglass/ID if none is named"},
	{.name = "message",
	 .short_name = 'm',
	 .kind = OPT_STRING,
	 .off = offsetof(struct push_options, message),
	 .arg = "TEXT",
	 .help = "the commit's message; trailers are added"},
	OPT_COMMON(push_options),
};

const struct usage push_usage = {
	.name = "push",
	.summary = "commit what was applied, and push it as a new branch",
	.synopsis = (const char *const[]){"push [OPTION…] [ID]", NULL},
	.about = "Makes a commit of the session's applied changes on top of the commit that the\n"
		 "session began with, runs promotion.checks over it, shows all of it, asks, and\n"
		 "pushes it to the remote of then. Never to a protected branch, never forced.",
	.status = "Exit status: 0, pushed; 1, the answer is no (a check, a person, a conflict);\n"
		  "2, it could not be done.",
	.options = push_table,
	.option_count = ARRAY_LEN(push_table),
};

int verb_export(const struct cli *cli, int argc, char **argv)
{
	return verb_in_main(cli, "export", argc, argv);
}

int verb_push(const struct cli *cli, int argc, char **argv)
{
	return verb_in_main(cli, "push", argc, argv);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sandglass policy` and `sandglass schema`: their descriptions.
 */
#include "base/base.h"
#include "cli/common_options.h"
#include "cli/policy_options.h"
#include "cli/verbs.h"

#define AT(field) offsetof(struct policy_options, field)
#define EXIT_STATUSES "Exit status: 0, done; 2, it could not be done."

#define OPTS_WHERE                                                                                \
	{.name = "source",                                                                        \
	 .kind = OPT_STRING,                                                                      \
	 .off = AT(source),                                                                       \
	 .arg = "DIR",                                                                            \
	 .help = "the project; default as for `run`"},                                            \
	{                                                                                         \
		.name = "no-source", .kind = OPT_FLAG, .off = AT(no_source), .help = "no project" \
	}

#define OPTS_LAYERS                                                                     \
	{.name = "profile",                                                             \
	 .kind = OPT_LIST,                                                              \
	 .off = AT(profile),                                                            \
	 .arg = "NAME",                                                                 \
	 .choices = profile_names,                                                      \
	 .help = "as for `run`"},                                                       \
	{                                                                               \
		.name = "policy", .kind = OPT_STRING, .off = AT(policy), .arg = "FILE", \
		.help = "as for `run`"                                                  \
	}

static const char *const profile_names[] = {"node", "python",  "rust",     "go",
					    "jvm",  "browser", "ssh-sign", NULL};

static const struct opt show_options[] = {
	{.name = "origin",
	 .kind = OPT_FLAG,
	 .off = AT(origin),
	 .help = "say of each value where it is from"},
	OPTS_LAYERS,
	OPTS_WHERE,
	OPT_JSON,
	OPT_HELP,
};

static const struct opt check_options[] = {
	OPTS_WHERE,
	OPT_JSON,
	OPT_HELP,
};

static const struct opt explain_options[] = {
	{.name = "host",
	 .kind = OPT_STRING,
	 .off = AT(host),
	 .arg = "HOST",
	 .help = "may a command connect to HOST, HOST:PORT, or ask for https://HOST/PATH"},
	{.name = "method",
	 .kind = OPT_STRING,
	 .off = AT(method),
	 .arg = "METHOD",
	 .help = "the request's method; GET if none is named"},
	OPTS_LAYERS,
	{.name = "allow-host",
	 .kind = OPT_LIST,
	 .off = AT(allow_host),
	 .arg = "HOST",
	 .help = "as for `run`"},
	{.name = "deny-host",
	 .kind = OPT_LIST,
	 .off = AT(deny_host),
	 .arg = "HOST",
	 .help = "as for `run`"},
	{.name = "allow-local",
	 .kind = OPT_LIST,
	 .off = AT(allow_local),
	 .arg = "PORT",
	 .help = "as for `run`"},
	OPTS_WHERE,
	OPT_JSON,
	OPT_HELP,
	{.name = "cmd", .kind = OPT_STRING, .later = "rules and approvals"},
	{.name = "path", .kind = OPT_STRING, .later = "rules and approvals"},
};

static const struct opt trust_options[] = {OPT_HELP};

const struct usage policy_show_usage = {
	.name = "show",
	.summary = "what holds here, and where each value is from",
	.synopsis = (const char *const[]){"policy show [--origin] [--profile NAME] [--json]", NULL},
	.about = "Prints what the policies that hold for this project come to, as a policy file.\n"
		 "Paths that do not exist, and what was not taken from an untrusted file, are in\n"
		 "comments.",
	.status = EXIT_STATUSES,
	.options = show_options,
	.option_count = ARRAY_LEN(show_options),
};

const struct usage policy_check_usage = {
	.name = "check",
	.summary = "what is wrong with the policies here, or with a file",
	.synopsis = (const char *const[]){"policy check [--json] [FILE]", NULL},
	.about = "Reads FILE as `run --policy FILE` would, else the policies that hold for this\n"
		 "project, and names every mistake with file, line, column and key.",
	.status = "Exit status: 0, nothing is wrong; 1, something is; 2, it could not be read.",
	.options = check_options,
	.option_count = ARRAY_LEN(check_options),
	.operand = OPERAND_FILE,
};

const struct usage policy_trust_usage = {
	.name = "trust",
	.summary = "let a project's file widen what commands may do",
	.synopsis = (const char *const[]){"policy trust FILE", NULL},
	.about = "Remembers path and SHA-256 of FILE: as long as it has this content, all of it\n"
		 "counts. Read it first. A project's file that is not trusted can only narrow.",
	.status = EXIT_STATUSES,
	.options = trust_options,
	.option_count = ARRAY_LEN(trust_options),
	.operand = OPERAND_FILE,
};

const struct usage policy_untrust_usage = {
	.name = "untrust",
	.summary = "take that back",
	.synopsis = (const char *const[]){"policy untrust FILE", NULL},
	.about = "Forgets all trust in FILE, whatever content it was for.",
	.status = "Exit status: 0, forgotten; 1, it was not trusted; 2, it could not be done.",
	.options = trust_options,
	.option_count = ARRAY_LEN(trust_options),
	.operand = OPERAND_FILE,
};

const struct usage policy_explain_usage = {
	.name = "explain",
	.summary = "what would be decided about a host, and why",
	.synopsis = (const char *const[]){"policy explain --host HOST[:PORT]|URL [OPTION…]", NULL},
	.about = "Says whether a command may connect to a host, by which rule and where that is\n"
		 "from, by the code that decides when it does. Nothing is resolved.",
	.status = "Exit status: 0, allowed; 1, denied; 2, it could not be done.",
	.options = explain_options,
	.option_count = ARRAY_LEN(explain_options),
};
static const struct usage import_usage = {
	.name = "import",
	.summary = "make a policy of another program's settings",
	.later = "rules and approvals",
};
static const struct usage learn_usage = {
	.name = "learn",
	.summary = "make a policy of what a command did",
	.later = "rules and approvals",
};

const struct usage policy_usage = {
	.name = "policy",
	.summary = "what policy files say: show, check, explain, trust",
	.synopsis = (const char *const[]){"policy VERB [OPTION…] …", NULL},
	.about = "Policy files say what commands may see, write and use; see sandglass-policy(5).",
	.status = "Exit status: 0, done or yes; 1, the answer is no; 2, it could not be done.",
	.options = trust_options,
	.option_count = ARRAY_LEN(trust_options),
	.subs = (const struct usage *[]){&policy_show_usage, &policy_check_usage,
					 &policy_trust_usage, &policy_untrust_usage,
					 &policy_explain_usage, &import_usage, &learn_usage, NULL},
};

static const char *const schema_words[] = {"policy", "result", "audit", NULL};

const struct usage schema_usage = {
	.name = "schema",
	.summary = "the JSON Schema of policies, results or the audit log",
	.synopsis = (const char *const[]){"schema policy|result|audit", NULL},
	.about = "Prints a JSON Schema (draft 2020-12).",
	.status = EXIT_STATUSES,
	.options = trust_options,
	.option_count = ARRAY_LEN(trust_options),
	.operand = OPERAND_WORD,
	.words = schema_words,
};

int verb_policy(const struct cli *cli, int argc, char **argv)
{
	return verb_in_main(cli, "policy", argc, argv);
}

int verb_schema(const struct cli *cli, int argc, char **argv)
{
	return verb_in_main(cli, "schema", argc, argv);
}

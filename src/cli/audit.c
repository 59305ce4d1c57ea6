/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sandglass audit`: its description, and the way to sandglass-main.
 */
#include <stddef.h>

#include "base/base.h"
#include "cli/audit_options.h"
#include "cli/common_options.h"
#include "cli/verbs.h"

#define AT(field) offsetof(struct audit_options, field)
#define MAX_TAIL_LINES 1000000u

#define OPTS_WHEN                                                                      \
	{.name = "since",                                                              \
	 .kind = OPT_STRING,                                                           \
	 .off = AT(since),                                                             \
	 .arg = "WHEN",                                                                \
	 .help = "not before: 2026-01-31, 2026-01-31T12:30, or how long ago: 2h, 1d"}, \
	{                                                                              \
		.name = "until", .kind = OPT_STRING, .off = AT(until), .arg = "WHEN",  \
		.help = "not after; a day is meant to its end"                         \
	}

static const char *const decisions[] = {"allow", "ask", "deny", NULL};
static const char *const formats[] = {"jsonl", "csv", NULL};

static const struct opt verify_options[] = {
	{.name = "heads",
	 .kind = OPT_FLAG,
	 .off = AT(heads),
	 .help = "compare with the heads in FILE, else with those kept in artifacts"},
	OPT_JSON,
	OPT_HELP,
};

static const struct opt query_options[] = {
	OPTS_WHEN,
	{.name = "session",
	 .kind = OPT_STRING,
	 .off = AT(session),
	 .arg = "ID",
	 .help = "of this session: its id or the beginning of it, its name, or @last"},
	{.name = "event",
	 .kind = OPT_STRING,
	 .off = AT(event),
	 .arg = "NAME",
	 .help = "this event (call.end), or all of a kind (call)"},
	{.name = "decision",
	 .kind = OPT_STRING,
	 .off = AT(decision),
	 .arg = "WORD",
	 .choices = decisions,
	 .help = "decided this way: allow, ask, deny"},
	{.name = "host",
	 .kind = OPT_STRING,
	 .off = AT(host),
	 .arg = "HOST",
	 .help = "about this host"},
	{.name = "path",
	 .kind = OPT_STRING,
	 .off = AT(path),
	 .arg = "PATH",
	 .help = "about this path, or one below it"},
	{.name = "tool",
	 .kind = OPT_STRING,
	 .off = AT(tool),
	 .arg = "NAME",
	 .help = "of this tool"},
	{.name = "actor",
	 .kind = OPT_STRING,
	 .off = AT(actor),
	 .arg = "NAME",
	 .help = "by this account"},
	OPT_JSON,
	OPT_HELP,
};

static const struct opt tail_options[] = {
	{.name = "follow",
	 .short_name = 'f',
	 .kind = OPT_FLAG,
	 .off = AT(follow),
	 .help = "go on with what is written from now on"},
	{.name = "lines",
	 .short_name = 'n',
	 .kind = OPT_NUM,
	 .off = AT(lines),
	 .arg = "N",
	 .max = MAX_TAIL_LINES,
	 .help = "how many of those that are there (default 10)"},
	OPT_HELP,
};

static const struct opt export_options[] = {
	{.name = "format",
	 .kind = OPT_CHOICE,
	 .off = AT(format),
	 .arg = "FORMAT",
	 .choices = formats,
	 .help = "jsonl, the lines as they are (default), or csv"},
	OPTS_WHEN,
	OPT_HELP,
};

const struct usage audit_verify_usage = {
	.name = "verify",
	.summary = "whether the log is what was written",
	.synopsis = (const char *const[]){"audit verify [--heads [FILE]] [--json]", NULL},
	.about =
		"Follows the chain of hashes over all files and names the first line that does not\n"
		"fit. That the end was cut off, or all of it made anew, shows only against heads\n"
		"(lines `SEQ HASH`) that were kept elsewhere: --heads.",
	.status = "Exit status: 0, it is one chain; 1, it is not; 2, it could not be read.",
	.options = verify_options,
	.option_count = ARRAY_LEN(verify_options),
	.operand = OPERAND_FILE,
};

const struct usage audit_query_usage = {
	.name = "query",
	.summary = "lines of the log that are about something",
	.synopsis = (const char *const[]){"audit query [OPTION…]", NULL},
	.about = "Prints the lines that all options fit. Where the log has pseudonyms, names are\n"
		 "looked for under theirs.",
	.status = "Exit status: 0, done; 2, it could not be done.",
	.options = query_options,
	.option_count = ARRAY_LEN(query_options),
};

const struct usage audit_tail_usage = {
	.name = "tail",
	.summary = "the newest lines of the log",
	.synopsis = (const char *const[]){"audit tail [-f] [-n N]", NULL},
	.status = "Exit status: 0, done; 2, it could not be done.",
	.options = tail_options,
	.option_count = ARRAY_LEN(tail_options),
};

const struct usage audit_export_usage = {
	.name = "export",
	.summary = "the log as JSON lines or CSV",
	.synopsis = (const char *const
			     []){"audit export [--format jsonl|csv] [--since WHEN] [--until WHEN]",
				 NULL},
	.about = "As JSON lines the bytes are the log's own, so that the hashes still fit.",
	.status = "Exit status: 0, done; 2, it could not be done.",
	.options = export_options,
	.option_count = ARRAY_LEN(export_options),
};

const struct usage audit_usage = {
	.name = "audit",
	.summary = "the audit log: verify, query, tail, export",
	.synopsis = (const char *const[]){"audit VERB [OPTION…] …", NULL},
	.about = "What was run and decided, in a chain of hashes; see sandglass-audit(1).",
	.status = "Exit status: 0, done or yes; 1, the answer is no; 2, it could not be done.",
	.options = help_options,
	.option_count = 1,
	.subs = (const struct usage *[]){&audit_verify_usage, &audit_query_usage, &audit_tail_usage,
					 &audit_export_usage, NULL},
};

int verb_audit(const struct cli *cli, int argc, char **argv)
{
	return verb_in_main(cli, "audit", argc, argv);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sandglass diff`: its description.
 */
#include "cli/review_options.h"

#include "base/base.h"
#include "cli/verbs.h"

#define AT(field) offsetof(struct diff_options, field)

static const struct opt diff_options[] = {
	{.name = "stat",
	 .kind = OPT_FLAG,
	 .off = AT(stat),
	 .help = "a line for each file, and what to look at, instead of the patch"},
	{.name = "exit-code",
	 .kind = OPT_FLAG,
	 .off = AT(exit_code),
	 .help = "end with 1 if anything changed"},
	{.name = "no-color",
	 .kind = OPT_FLAG,
	 .off = AT(no_color),
	 .help = "no colours at a terminal; NO_COLOR in the environment does the same"},
	{.name = "at-end",
	 .kind = OPT_FLAG,
	 .off = AT(at_end),
	 .help = "as when a session ends: its keeper, which waits for that, is not asked"},
	{.name = "json", .kind = OPT_FLAG, .off = AT(json), .help = "one JSON document"},
	{.name = "help", .short_name = 'h', .kind = OPT_FLAG, .off = AT(help), .help = "this text"},
};

const struct usage diff_usage = {
	.name = "diff",
	.summary = "what a session changed, as a patch that git apply takes",
	.synopsis = (const char *const[]){"diff [OPTION…] [ID]", NULL},
	.about = "ID is a session's id, the beginning of it, its name, or @last, which is the\n"
		 "newest of this project and the default. What git cannot carry stands before the\n"
		 "patch, in lines that begin with #. At a terminal, characters that could change\n"
		 "how it looks are shown escaped; into a pipe or a file the patch goes as it is.",
	.status = "Exit status: 0, done; 1, something changed (with --exit-code); 2, it could not\n"
		  "be done.",
	.options = diff_options,
	.option_count = ARRAY_LEN(diff_options),
};

int verb_diff(const struct cli *cli, int argc, char **argv)
{
	return verb_in_main(cli, "diff", argc, argv);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `sandglass apply` and `sandglass discard` are called with.
 */
#include "base/base.h"
#include "cli/apply_options.h"
#include "cli/common_options.h"
#include "cli/verbs.h"

#define AT(field) offsetof(struct apply_options, field)

static const struct opt apply_options[] = {
	{.name = "merge",
	 .kind = OPT_FLAG,
	 .off = AT(merge),
	 .help = "merge files that changed on both sides, with markers where both changed the same"},
	{.name = "patch",
	 .short_name = 'p',
	 .kind = OPT_FLAG,
	 .off = AT(patch),
	 .help = "ask about each hunk; needs a terminal"},
	OPT_JSON,
	OPT_HELP,
};

static const struct opt discard_options[] = {OPT_JSON, OPT_HELP};

const struct usage apply_usage = {
	.name = "apply",
	.summary = "put what a session changed into its source",
	.synopsis = (const char *const[]){"apply [OPTION…] [ID] [PATH…]", NULL},
	.about = "Without a PATH, all of it and the commits that the session made. A PATH is seen\n"
		 "from here, else from the source; a directory means all that is in it. If the\n"
		 "source changed at one of them too, nothing is applied.",
	.status = "Exit status: 0, applied; 1, a conflict, markers, or nothing there; 2, it could\n"
		  "not be done.",
	.options = apply_options,
	.option_count = ARRAY_LEN(apply_options),
};

const struct usage discard_usage = {
	.name = "discard",
	.summary = "take back what a session changed",
	.synopsis = (const char *const[]){"discard [OPTION…] [ID] [PATH…]", NULL},
	.about = "The session sees the source's content again: everywhere, or at each PATH and\n"
		 "below it. What was applied stays in the source.",
	.status = "Exit status: 0, discarded; 1, nothing there; 2, it could not be done.",
	.options = discard_options,
	.option_count = ARRAY_LEN(discard_options),
};

int verb_apply(const struct cli *cli, int argc, char **argv)
{
	return verb_in_main(cli, "apply", argc, argv);
}

int verb_discard(const struct cli *cli, int argc, char **argv)
{
	return verb_in_main(cli, "discard", argc, argv);
}

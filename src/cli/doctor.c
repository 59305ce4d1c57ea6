/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sandglass doctor`.
 */
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/opt.h"
#include "cli/verbs.h"
#include "run/job.h"

struct doctor_options {
	bool json, help;
};

static const struct opt options[] = {
	{.name = "json",
	 .kind = OPT_FLAG,
	 .off = offsetof(struct doctor_options, json),
	 .help = "one JSON document"},
	{.name = "help",
	 .short_name = 'h',
	 .kind = OPT_FLAG,
	 .off = offsetof(struct doctor_options, help),
	 .help = "this text"},
	{.name = "fingerprint", .kind = OPT_FLAG, .later = "the gates for CI"},
};

const struct usage doctor_usage = {
	.name = "doctor",
	.summary = "what this host can enforce, and how to mend the rest",
	.synopsis = (const char *const[]){"doctor [--json]", NULL},
	.about = "Tries each feature that a sandbox is made of, and says how to mend what is\n"
		 "missing.",
	.status =
		"Exit status: 0, a sandbox can be made here; 1, it cannot; 2, it could not be tried.",
	.options = options,
	.option_count = ARRAY_LEN(options),
};

int verb_doctor(const struct cli *cli, int argc, char **argv)
{
	AUTO_BUF out = BUF_INIT(262144);
	struct doctor_options o = {.json = false};
	struct err e = {0};
	int first = 0;

	(void)cli;
	if (opt_parse(options, ARRAY_LEN(options), argc, argv, &o, &first, &e) < 0)
		return cli_fail(&e, 2);
	if (first < argc) {
		(void)err_set(&e, ERR_CONFIG_INVALID, "`doctor` takes no argument");
		return cli_fail(&e, 2);
	}
	if (o.help)
		return usage_show(&doctor_usage, 2);
	int able = doctor_write(o.json, &out, &e);
	if (able < 0 || cli_write(STDOUT_FILENO, buf_cstr(&out), out.n, &e) < 0)
		return cli_fail(&e, 2);
	return able ? 0 : 1;
}

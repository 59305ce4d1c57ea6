/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table is the parser, the help and the list of what is still to come.
 */
#include "cli/run_options.h"

#include <string.h>

#include "base/base.h"
#include "cli/verbs.h"

#define AT(field) offsetof(struct request, field)
#define LATER_REVIEW "sessions and review"
#define LATER_NETWORK "the network"
#define LATER_RULES "rules and approvals"
#define LATER_TIERS "other kernels and tiers"

static const char *const writes_names[] = {"direct", "overlay", NULL};
static const char *const approval_names[] = {"untrusted", "on-request", "never", NULL};
static const char *const writes_later[] = {NULL, LATER_REVIEW, NULL};
static const char *const approval_later[] = {LATER_RULES, LATER_RULES, NULL, NULL};
static const char *const isolation_names[] = {"namespace", "landlock", "gvisor",
					      "microvm",   "seatbelt", NULL};
static const char *const isolation_later[] = {NULL,        NULL,        LATER_TIERS,
					      LATER_TIERS, LATER_TIERS, NULL};

static const struct opt options[] = {
	{.section = "What to run",
	 .short_name = 'c',
	 .kind = OPT_STRING,
	 .off = AT(script),
	 .arg = "SCRIPT",
	 .help = "run SCRIPT with the pinned shell (bash --noprofile --norc, else sh)"},
	{.section = "What it sees",
	 .name = "source",
	 .kind = OPT_STRING,
	 .off = AT(source),
	 .arg = "DIR",
	 .help = "the project; default: top of the git work tree, else the working directory"},
	{.name = "no-source",
	 .kind = OPT_FLAG,
	 .off = AT(no_source),
	 .help = "no project: work in /sand/workspace"},
	{.name = "mode",
	 .kind = OPT_CHOICE,
	 .off = AT(mode),
	 .arg = "MODE",
	 .choices = mode_names,
	 .help = "read-only, workspace-write (default) or danger-full-access"},
	{.name = "read",
	 .kind = OPT_LIST,
	 .off = AT(read),
	 .arg = "PATH",
	 .help = "show PATH, read-only"},
	{.name = "write",
	 .kind = OPT_LIST,
	 .off = AT(write),
	 .arg = "PATH",
	 .help = "show PATH, writable"},
	{.name = "hide",
	 .kind = OPT_LIST,
	 .off = AT(hide),
	 .arg = "PATH",
	 .help = "make PATH, or what a pattern (**/*.pem) matches, unreadable"},
	{.name = "policy",
	 .kind = OPT_STRING,
	 .off = AT(policy),
	 .arg = "FILE",
	 .help = "a policy file above those of user and project; see sandglass-policy(5)"},
	{.name = "profile",
	 .kind = OPT_LIST,
	 .off = AT(profile),
	 .arg = "NAME",
	 .help = "what a tool needs: node python rust go jvm browser ssh-sign"},
	{.name = "env",
	 .kind = OPT_LIST,
	 .off = AT(env),
	 .arg = "NAME[=VALUE]",
	 .help = "pass the caller's NAME, or set it"},
	{.section = "What it may use up",
	 .name = "timeout",
	 .kind = OPT_DURATION,
	 .off = AT(wall_ms),
	 .arg = "D",
	 .none_ok = true,
	 .min = 1,
	 .help = "wall time (250ms 30s 5m 1h30m 1d none); default 1h, at a terminal 12h"},
	{.name = "grace",
	 .kind = OPT_DURATION,
	 .off = AT(grace_ms),
	 .arg = "D",
	 .help = "between TERM and KILL; default 5s"},
	{.name = "cpu-time",
	 .kind = OPT_DURATION,
	 .off = AT(cpu_ms),
	 .arg = "D",
	 .none_ok = true,
	 .min = 1,
	 .help = "cpu time of all processes together"},
	{.name = "cpus",
	 .kind = OPT_CPUS,
	 .off = AT(cpus_milli),
	 .arg = "N",
	 .none_ok = true,
	 .min = 1,
	 .help = "processors (0.5, 2); needs a cgroup"},
	{.name = "memory",
	 .kind = OPT_SIZE,
	 .off = AT(memory_bytes),
	 .arg = "SIZE",
	 .none_ok = true,
	 .help = "memory of all processes together; default three quarters of the RAM"},
	{.name = "pids",
	 .kind = OPT_NUM,
	 .off = AT(pids),
	 .arg = "N",
	 .none_ok = true,
	 .max = 4194304,
	 .help = "processes and threads; default 8192"},
	{.name = "disk",
	 .kind = OPT_SIZE,
	 .off = AT(disk_bytes),
	 .arg = "SIZE",
	 .none_ok = true,
	 .help = "bytes in /sand; default 16GiB"},
	{.name = "inodes",
	 .kind = OPT_NUM,
	 .off = AT(inodes),
	 .arg = "N",
	 .none_ok = true,
	 .max = UINT32_MAX,
	 .help = "files in /sand; default 2000000"},
	{.name = "output",
	 .kind = OPT_SIZE,
	 .off = AT(output_bytes),
	 .arg = "SIZE",
	 .none_ok = true,
	 .help = "bytes of each stream that --json keeps, head and tail; default 1MiB"},
	{.section = "The boundary",
	 .name = "writes",
	 .kind = OPT_CHOICE,
	 .off = AT(writes),
	 .arg = "HOW",
	 .choices = writes_names,
	 .choices_later = writes_later,
	 .help = "direct: changes land in the project at once (overlay comes later)"},
	{.name = "approval",
	 .kind = OPT_CHOICE,
	 .off = AT(approval),
	 .arg = "WHEN",
	 .choices = approval_names,
	 .choices_later = approval_later,
	 .help = "never (default); the others come with rules and approvals"},
	{.name = "isolation",
	 .kind = OPT_CHOICE,
	 .off = AT(isolation),
	 .arg = "HOW",
	 .choices = isolation_names,
	 .choices_later = isolation_later,
	 .help = "namespace (default), or landlock: without namespaces, and less"},
	{.name = "dangerously-full-access",
	 .kind = OPT_FLAG,
	 .off = AT(full_access),
	 .help = "no boundary at all; asks at a terminal, refused without one"},
	{.section = "How it answers",
	 .name = "json",
	 .kind = OPT_FLAG,
	 .off = AT(json),
	 .help = "print one JSON result instead"},
	{.name = "quiet", .kind = OPT_FLAG, .off = AT(quiet), .help = "no notices on stderr"},
	{.name = "tty", .kind = OPT_FLAG, .off = AT(tty), .help = "give the command a terminal"},
	{.name = "no-tty", .kind = OPT_FLAG, .off = AT(no_tty), .help = "never give it one"},
	{.name = "help", .short_name = 'h', .kind = OPT_FLAG, .off = AT(help), .help = "this text"},
	{.name = "review", .kind = OPT_FLAG, .later = LATER_REVIEW},
	{.name = "copy", .kind = OPT_FLAG, .later = LATER_REVIEW},
	{.name = "keep", .kind = OPT_FLAG, .later = LATER_REVIEW},
	{.name = "observe", .kind = OPT_FLAG, .later = LATER_REVIEW},
	{.name = "idle", .kind = OPT_DURATION, .later = LATER_REVIEW},
	{.name = "allow-host", .kind = OPT_LIST, .later = LATER_NETWORK},
	{.name = "deny-host", .kind = OPT_LIST, .later = LATER_NETWORK},
	{.name = "allow-local", .kind = OPT_LIST, .later = LATER_NETWORK},
	{.name = "publish", .kind = OPT_LIST, .later = LATER_NETWORK},
	{.name = "secret", .kind = OPT_LIST, .later = LATER_NETWORK},
};

int run_options_parse(int argc, char **argv, struct request *ret, struct err *e)
{
	int first = 0;

	*ret = request_of_nothing();
	ret->mode = MODE_UNSET;
	/* Whatever is wrong with the rest, who asked for JSON gets JSON. */
	for (int i = 0; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0; i++)
		ret->json |= strcmp(argv[i], "--json") == 0;
	bool json = ret->json;
	ret->json = false;
	int rc = opt_parse(options, ARRAY_LEN(options), argc, argv, ret, &first, e);
	ret->json |= json;
	if (rc < 0)
		return -1;
	ret->argv = argv + first;
	ret->argc = argc - first;
	if (ret->tty && (ret->no_tty || ret->json))
		return err_set(e, ERR_CONFIG_INVALID, "--tty and %s exclude each other",
			       ret->json ? "--json" : "--no-tty");
	if (ret->full_access)
		ret->mode = MODE_FULL_ACCESS;
	if (ret->mode == MODE_FULL_ACCESS && ret->isolation == ISOLATION_LANDLOCK)
		return err_set(e, ERR_CONFIG_INVALID,
			       "--isolation landlock and full access exclude each other");
	return 0;
}

#define EXIT_STATUSES                                                                       \
	"Exit status: the command's own; 128+n if signal n ended it; 124 if its time was\n" \
	"over; 126 not executable; 127 not found; 125 if sandglass itself failed."

const struct usage run_usage = {
	.name = "run",
	.summary = "run a command in a sandbox over this project",
	.synopsis = (const char *const[]){"run [OPTION…] CMD [ARG…]",
					  "run [OPTION…] -c 'SCRIPT' [ARG…]", NULL},
	.about = "Runs a command over this project in a sandbox that ends with it: its own view,\n"
		 "no network, no secrets, bounded time, memory and processes.",
	.status = EXIT_STATUSES,
	.options = options,
	.option_count = ARRAY_LEN(options),
	.operand = OPERAND_COMMAND,
};

const struct usage shell_usage = {
	.name = "shell",
	.summary = "the same with the pinned shell at a terminal",
	.synopsis = (const char *const[]){"shell [OPTION…]", NULL},
	.about = "Opens the pinned shell (bash --noprofile --norc, else sh) over this project in\n"
		 "a sandbox that ends with it.",
	.status = EXIT_STATUSES,
	.options = options + 1, /* all but -c, which it refuses */
	.option_count = ARRAY_LEN(options) - 1,
};

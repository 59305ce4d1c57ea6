/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table is the parser, the help and the list of what is still to come.
 */
#include "cli/run_options.h"

#include <string.h>

#include "base/base.h"
#include "cli/common_options.h"
#include "cli/session_options.h"
#include "cli/verbs.h"
#include "policy/network.h"

#define AT(field) offsetof(struct request, field)
#define LATER_SESSION_SECRETS "secrets of one call of a session"
#define LATER_PUBLISH "ports of a sandbox"
#define LATER_RULES "rules and approvals"
#define LATER_TIERS "other kernels and tiers"

static const char *const writes_names[] = {"direct", "overlay", NULL};
static const char *const approval_names[] = {"untrusted", "on-request", "never", NULL};
static const char *const approval_later[] = {LATER_RULES, LATER_RULES, NULL, NULL};
static const char *const isolation_names[] = {"namespace", "landlock", "gvisor",
					      "microvm",   "seatbelt", NULL};
static const char *const isolation_later[] = {NULL,        NULL,        LATER_TIERS,
					      LATER_TIERS, LATER_TIERS, NULL};

#define OPT_SCRIPT                                                                            \
	{                                                                                     \
		.section = "What to run", .short_name = 'c', .kind = OPT_STRING,              \
		.off = AT(script), .arg = "SCRIPT",                                           \
		.help = "run SCRIPT with the pinned shell (bash --noprofile --norc, else sh)" \
	}

#define OPTS_SEES                                                                                   \
	{.section = "What it sees",                                                                 \
	 .name = "source",                                                                          \
	 .kind = OPT_STRING,                                                                        \
	 .off = AT(source),                                                                         \
	 .arg = "DIR",                                                                              \
	 .help = "the project; default: top of the git work tree, else the working directory"},     \
		{.name = "no-source",                                                               \
		 .kind = OPT_FLAG,                                                                  \
		 .off = AT(no_source),                                                              \
		 .help = "no project: work in /sand/workspace"},                                    \
		{.name = "mode",                                                                    \
		 .kind = OPT_CHOICE,                                                                \
		 .off = AT(mode),                                                                   \
		 .arg = "MODE",                                                                     \
		 .choices = mode_names,                                                             \
		 .help = "read-only, workspace-write (default) or danger-full-access"},             \
		{.name = "read",                                                                    \
		 .kind = OPT_LIST,                                                                  \
		 .off = AT(read),                                                                   \
		 .arg = "PATH",                                                                     \
		 .help = "show PATH, read-only"},                                                   \
		{.name = "write",                                                                   \
		 .kind = OPT_LIST,                                                                  \
		 .off = AT(write),                                                                  \
		 .arg = "PATH",                                                                     \
		 .help = "show PATH, writable"},                                                    \
		{.name = "hide",                                                                    \
		 .kind = OPT_LIST,                                                                  \
		 .off = AT(hide),                                                                   \
		 .arg = "PATH",                                                                     \
		 .help = "make PATH, or what a pattern (**/*.pem) matches, unreadable"},            \
		{.name = "policy",                                                                  \
		 .kind = OPT_STRING,                                                                \
		 .off = AT(policy),                                                                 \
		 .arg = "FILE",                                                                     \
		 .help = "a policy file above those of user and project; see sandglass-policy(5)"}, \
		{.name = "profile",                                                                 \
		 .kind = OPT_LIST,                                                                  \
		 .off = AT(profile),                                                                \
		 .arg = "NAME",                                                                     \
		 .help = "what a tool needs: node python rust go jvm browser ssh-sign"},            \
	{                                                                                           \
		.name = "env", .kind = OPT_LIST, .off = AT(env), .arg = "NAME[=VALUE]",             \
		.help = "pass the caller's NAME, or set it"                                         \
	}

#define OPTS_TIME(wall, most)                                                                    \
	{.section = "What it may use up",                                                        \
	 .name = "timeout",                                                                      \
	 .kind = OPT_DURATION,                                                                   \
	 .off = AT(wall_ms),                                                                     \
	 .arg = "D",                                                                             \
	 .none_ok = true,                                                                        \
	 .min = 1,                                                                               \
	 .help = "wall time (250ms 30s 5m 1h30m 1d none); default " wall},                       \
		{.name = "grace",                                                                \
		 .kind = OPT_DURATION,                                                           \
		 .off = AT(grace_ms),                                                            \
		 .arg = "D",                                                                     \
		 .help = "between TERM and KILL; default 5s"},                                   \
		{.name = "cpu-time",                                                             \
		 .kind = OPT_DURATION,                                                           \
		 .off = AT(cpu_ms),                                                              \
		 .arg = "D",                                                                     \
		 .none_ok = true,                                                                \
		 .min = 1,                                                                       \
		 .help = "cpu time of all processes together"},                                  \
		{.name = "cpus",                                                                 \
		 .kind = OPT_CPUS,                                                               \
		 .off = AT(cpus_milli),                                                          \
		 .arg = "N",                                                                     \
		 .none_ok = true,                                                                \
		 .min = 1,                                                                       \
		 .help = "processors (0.5, 2); needs a cgroup"},                                 \
		{.name = "memory",                                                               \
		 .kind = OPT_SIZE,                                                               \
		 .off = AT(memory_bytes),                                                        \
		 .arg = "SIZE",                                                                  \
		 .none_ok = true,                                                                \
		 .help = "memory of all processes together; default three quarters of the RAM"}, \
	{                                                                                        \
		.name = "pids", .kind = OPT_NUM, .off = AT(pids), .arg = "N", .none_ok = true,   \
		.max = 4194304, .help = "processes and threads; default " most                   \
	}

#define OPTS_DISK                                                                                  \
	{.name = "disk",                                                                           \
	 .kind = OPT_SIZE,                                                                         \
	 .off = AT(disk_bytes),                                                                    \
	 .arg = "SIZE",                                                                            \
	 .none_ok = true,                                                                          \
	 .help = "bytes in /sand; default 16GiB"},                                                 \
	{                                                                                          \
		.name = "inodes", .kind = OPT_NUM, .off = AT(inodes), .arg = "N", .none_ok = true, \
		.max = UINT32_MAX, .help = "files in /sand; default 2000000"                       \
	}

#define OPT_OUTPUT                                                                            \
	{                                                                                     \
		.name = "output", .kind = OPT_SIZE, .off = AT(output_bytes), .arg = "SIZE",   \
		.none_ok = true,                                                              \
		.help = "bytes of each stream that --json keeps, head and tail; default 1MiB" \
	}

#define OPTS_BOUNDARY                                                                        \
	{.name = "approval",                                                                 \
	 .kind = OPT_CHOICE,                                                                 \
	 .off = AT(approval),                                                                \
	 .arg = "WHEN",                                                                      \
	 .choices = approval_names,                                                          \
	 .choices_later = approval_later,                                                    \
	 .help = "never (default); the others come with rules and approvals"},               \
	{                                                                                    \
		.name = "isolation", .kind = OPT_CHOICE, .off = AT(isolation), .arg = "HOW", \
		.choices = isolation_names, .choices_later = isolation_later,                \
		.help = "namespace (default), or landlock: without namespaces, and less"     \
	}

#define OPT_FULL                                                                             \
	{                                                                                    \
		.name = "dangerously-full-access", .kind = OPT_FLAG, .off = AT(full_access), \
		.help = "no boundary at all; asks at a terminal, refused without one"        \
	}

#define OPTS_ANSWERS                                                                               \
	{.section = "How it answers",                                                              \
	 .name = "json",                                                                           \
	 .kind = OPT_FLAG,                                                                         \
	 .off = AT(json),                                                                          \
	 .help = "print one JSON result instead"},                                                 \
		{.name = "quiet",                                                                  \
		 .kind = OPT_FLAG,                                                                 \
		 .off = AT(quiet),                                                                 \
		 .help = "no notices on stderr"},                                                  \
		{.name = "tty",                                                                    \
		 .kind = OPT_FLAG,                                                                 \
		 .off = AT(tty),                                                                   \
		 .help = "give the command a terminal"},                                           \
	{                                                                                          \
		.name = "no-tty", .kind = OPT_FLAG, .off = AT(no_tty), .help = "never give it one" \
	}

#define OPTS_NETWORK                                                                            \
	{.section = "What it reaches",                                                          \
	 .name = "allow-host",                                                                  \
	 .kind = OPT_LIST,                                                                      \
	 .off = AT(allow_host),                                                                 \
	 .arg = "HOST",                                                                         \
	 .help = "open a host (port 443), *.HOST, HOST:PORT, an address or prefix"},            \
		{.name = "deny-host",                                                           \
		 .kind = OPT_LIST,                                                              \
		 .off = AT(deny_host),                                                          \
		 .arg = "HOST",                                                                 \
		 .help = "close it again, whatever opens it; without a port all of it"},        \
		{.name = "allow-local",                                                         \
		 .kind = OPT_LIST,                                                              \
		 .off = AT(allow_local),                                                        \
		 .arg = "PORT",                                                                 \
		 .help = "open this port of the host's 127.0.0.1, same port"},                  \
	{                                                                                       \
		.name = "secret", .kind = OPT_LIST, .off = AT(secret), .arg = "NAME",           \
		.help = "of the policy's secrets only those named so; all of them without this" \
	}

#define OPTS_NETWORK_LATER                                                  \
	{                                                                   \
		.name = "publish", .kind = OPT_LIST, .later = LATER_PUBLISH \
	}

#define OF_SESSION(option)                                                                  \
	{                                                                                   \
		.name = (option), .kind = OPT_LIST, .elsewhere = true,                      \
		.later = "the calls of a session share one network: sandglass session net " \
			 "ID --" option " …, for all of them"                             \
	}
#define OPTS_NETWORK_OF_SESSIONS                                                      \
	OF_SESSION("allow-host"), OF_SESSION("deny-host"), OF_SESSION("allow-local"), \
		{.name = "publish", .kind = OPT_LIST, .later = LATER_PUBLISH},        \
	{                                                                             \
		.name = "secret", .kind = OPT_LIST, .later = LATER_SESSION_SECRETS    \
	}

static const struct opt options[] = {
	OPT_SCRIPT,
	OPTS_SEES,
	OPTS_NETWORK,
	OPTS_TIME("1h, at a terminal 12h", "8192"),
	OPTS_DISK,
	OPT_OUTPUT,
	{.section = "The boundary",
	 .name = "writes",
	 .kind = OPT_CHOICE,
	 .off = AT(writes),
	 .arg = "HOW",
	 .choices = writes_names,
	 .help = "direct: changes land in the project at once; overlay: held for review"},
	{.name = "copy",
	 .kind = OPT_FLAG,
	 .off = AT(copy),
	 .help = "with overlay: a copy of the project instead of an overlay over it"},
	{.name = "review",
	 .kind = OPT_FLAG,
	 .off = AT(review),
	 .help = "hold what changes for review: --writes overlay"},
	{.name = "keep",
	 .kind = OPT_FLAG,
	 .off = AT(keep),
	 .help = "keep the session afterwards and say its id; implies --review"},
	OPTS_BOUNDARY,
	OPT_FULL,
	OPTS_ANSWERS,
	OPT_HELP,
	{.name = "observe", .kind = OPT_FLAG, .later = LATER_RULES},
	{.name = "idle", .kind = OPT_DURATION, .later = LATER_RULES},
	OPTS_NETWORK_LATER,
};

static const struct opt new_options[] = {
	{.section = "The session",
	 .name = "name",
	 .kind = OPT_STRING,
	 .off = AT(name),
	 .arg = "NAME",
	 .help = "another way to name it, besides its id"},
	{.name = "id",
	 .kind = OPT_STRING,
	 .off = AT(id),
	 .arg = "UUID",
	 .help = "its id; default SESSION_ID in the environment, else a new one"},
	{.name = "ttl",
	 .kind = OPT_DURATION,
	 .off = AT(ttl_ms),
	 .arg = "D",
	 .min = 1000,
	 .help = "lease: how long it lives after its last call; default 30m, at most 24h"},
	OPTS_SEES,
	OPTS_NETWORK,
	OPTS_TIME("5m for each call", "4096"),
	OPTS_DISK,
	{.section = "The boundary",
	 .name = "writes",
	 .kind = OPT_CHOICE,
	 .off = AT(writes),
	 .arg = "HOW",
	 .choices = writes_names,
	 .help = "direct: changes land in the project at once; overlay: held for review"},
	{.name = "copy",
	 .kind = OPT_FLAG,
	 .off = AT(copy),
	 .help = "with overlay: a copy of the project instead of an overlay over it"},
	OPTS_BOUNDARY,
	{.section = "How it answers",
	 .name = "json",
	 .kind = OPT_FLAG,
	 .off = AT(json),
	 .help = "print one JSON document instead of the id"},
	OPT_HELP,
	{.name = "observe", .kind = OPT_FLAG, .later = LATER_RULES},
	{.name = "idle", .kind = OPT_DURATION, .later = LATER_RULES},
	OPTS_NETWORK_LATER,
};

static const struct opt exec_options[] = {
	OPT_SCRIPT,
	{.name = "detach",
	 .kind = OPT_FLAG,
	 .off = AT(detach),
	 .help = "leave it running in the session, and print the call's id"},
	{.name = "env",
	 .kind = OPT_LIST,
	 .off = AT(env),
	 .arg = "NAME[=VALUE]",
	 .help = "pass the caller's NAME, or set it"},
	OPTS_TIME("that of the session, else 5m", "that of the session, else 4096"),
	OPT_OUTPUT,
	OPTS_ANSWERS,
	OPT_HELP,
	{.name = "observe", .kind = OPT_FLAG, .later = LATER_RULES},
	{.name = "idle", .kind = OPT_DURATION, .later = LATER_RULES},
	OPTS_NETWORK_OF_SESSIONS,
};

/* Whatever is wrong with the rest, who asked for JSON gets JSON. */
static bool wants_json(int argc, char **argv)
{
	for (int i = 0; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--json") == 0)
			return true;
	return false;
}

static int parse(const struct opt *table, size_t n, int argc, char **argv, struct request *ret,
		 struct err *e)
{
	int first = 0;

	int rc = opt_parse(table, n, argc, argv, ret, &first, e);
	if (rc < 0) {
		ret->json = ret->json || wants_json(argc, argv);
		return -1;
	}
	ret->argv = argv + first;
	ret->argc = argc - first;
	return 0;
}

static int check_tty(const struct request *r, struct err *e)
{
	if (r->tty && (r->no_tty || r->json))
		return err_set(e, ERR_CONFIG_INVALID, "--tty and %s exclude each other",
			       r->json ? "--json" : "--no-tty");
	return 0;
}

/* Rules of options are read at once, so that a mistake is seen whatever else there is. */
static int check_network(const struct request *r, struct err *e)
{
	AUTO_EGRESS_SET set = {0};
	const char *whole = r->mode == MODE_FULL_ACCESS          ? "full access"
			    : r->isolation == ISOLATION_LANDLOCK ? "--isolation landlock"
								 : NULL;

	if (whole && r->allow_host.n + r->deny_host.n + r->allow_local.n)
		return err_set(e, ERR_CONFIG_INVALID,
			       "rules about the network and %s exclude each other", whole);
	return network_of_options(r, &set, e);
}

int run_options_parse(int argc, char **argv, struct request *ret, struct err *e)
{
	*ret = request_of_nothing();
	ret->mode = MODE_UNSET;
	ret->writes = WRITES_UNSET;
	if (parse(options, ARRAY_LEN(options), argc, argv, ret, e) < 0 || check_tty(ret, e) < 0)
		return -1;
	if (ret->full_access)
		ret->mode = MODE_FULL_ACCESS;
	if (ret->mode == MODE_FULL_ACCESS && ret->isolation == ISOLATION_LANDLOCK)
		return err_set(e, ERR_CONFIG_INVALID,
			       "--isolation landlock and full access exclude each other");
	if (check_network(ret, e) < 0)
		return -1;
	if (ret->review || ret->keep)
		ret->writes = WRITES_OVERLAY;
	if (ret->writes == WRITES_OVERLAY &&
	    (ret->mode == MODE_FULL_ACCESS || ret->isolation == ISOLATION_LANDLOCK))
		return err_set(e, ERR_CONFIG_INVALID, "changes cannot be held for review with %s",
			       ret->mode == MODE_FULL_ACCESS ? "full access"
							     : "--isolation landlock");
	return 0;
}

int session_new_parse(int argc, char **argv, struct request *ret, struct err *e)
{
	*ret = request_of_nothing();
	ret->mode = MODE_UNSET;
	ret->writes = WRITES_OVERLAY;
	if (parse(new_options, ARRAY_LEN(new_options), argc, argv, ret, e) < 0)
		return -1;
	if (ret->mode == MODE_FULL_ACCESS || ret->isolation == ISOLATION_LANDLOCK)
		return err_set(e, ERR_UNSUPPORTED, "a session needs the whole boundary: no %s",
			       ret->mode == MODE_FULL_ACCESS ? "danger-full-access"
							     : "isolation landlock");
	if (ret->argc && !ret->help)
		return err_set(e, ERR_CONFIG_INVALID,
			       "`session new` takes no command; that is `session exec ID CMD`");
	return 0;
}

int session_exec_parse(int argc, char **argv, struct request *ret, struct err *e)
{
	if (parse(exec_options, ARRAY_LEN(exec_options), argc, argv, ret, e) < 0)
		return -1;
	return check_tty(ret, e);
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

const struct usage session_new_usage = {
	.name = "new",
	.summary = "make a session over this project, and print its id",
	.synopsis = (const char *const[]){"session new [OPTION…]", NULL},
	.about =
		"Makes a sandbox that stays: its commands see each other's files and servers, and\n"
		"what they change in the project is held for review.",
	.status = "Exit status: 0, made; 2, it could not be done.",
	.options = new_options,
	.option_count = ARRAY_LEN(new_options),
};

const struct usage session_exec_usage = {
	.name = "exec",
	.summary = "run a command in it",
	.synopsis = (const char *const[]){"session exec [OPTION…] ID [OPTION…] CMD [ARG…]",
					  "session exec [OPTION…] ID -c 'SCRIPT' [ARG…]", NULL},
	.about =
		"Runs a command in a session. All that it has started ends with it, unless --detach\n"
		"is given. ID is the session's, its beginning, its name, or @last.",
	.status = EXIT_STATUSES,
	.options = exec_options,
	.option_count = ARRAY_LEN(exec_options),
	.operand = OPERAND_COMMAND,
};

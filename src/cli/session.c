/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sandglass session` and `sandglass gc`: their descriptions. `session exec` is
 * carried out here, in cli/run.c; sandglass-main does the rest.
 */
#include <string.h>

#include "base/base.h"
#include "cli/common_options.h"
#include "cli/session_options.h"
#include "cli/verbs.h"

#define AT(field) offsetof(struct session_options, field)
#define STATUS "Exit status: 0, done; 2, it could not be done."
#define ID_IS "ID is a session's id, its beginning (4 characters or more), its name, or @last."

static const struct opt plain_options[] = {OPT_JSON, OPT_HELP};
static const struct opt renew_options[] = {
	{.name = "ttl",
	 .kind = OPT_DURATION,
	 .off = AT(ttl_ms),
	 .arg = "D",
	 .min = 1000,
	 .help = "from now; default as when it was made"},
	OPT_JSON,
	OPT_HELP,
};
static const struct opt logs_options[] = {
	{.short_name = 'f',
	 .name = "follow",
	 .kind = OPT_FLAG,
	 .off = AT(follow),
	 .help = "go on until the call has ended"},
	{.name = "err", .kind = OPT_FLAG, .off = AT(err), .help = "stderr instead of stdout"},
	OPT_HELP,
};
static const struct opt destroy_options[] = {
	{.name = "discard",
	 .kind = OPT_FLAG,
	 .off = AT(discard),
	 .help = "throw away what was not reviewed, instead of keeping it as an artifact"},
	OPT_JSON,
	OPT_HELP,
};
static const struct opt net_options[] = {
	{.name = "allow-host",
	 .kind = OPT_LIST,
	 .off = AT(allow_host),
	 .arg = "HOST",
	 .help = "open a host (port 443), *.HOST, HOST:PORT, an address or prefix"},
	{.name = "deny-host",
	 .kind = OPT_LIST,
	 .off = AT(deny_host),
	 .arg = "HOST",
	 .help = "close it, whatever opens it; its connections are reset"},
	{.name = "allow-local",
	 .kind = OPT_LIST,
	 .off = AT(allow_local),
	 .arg = "PORT",
	 .help = "open this port of the host's 127.0.0.1, same port"},
	{.name = "anew",
	 .kind = OPT_FLAG,
	 .off = AT(anew),
	 .help = "take back what `session net` has said before"},
	OPT_JSON,
	OPT_HELP,
};
static const struct opt gc_options[] = {
	{.name = "dry-run",
	 .kind = OPT_FLAG,
	 .off = AT(dry_run),
	 .help = "only say what there is, and what would go"},
	OPT_JSON,
	OPT_HELP,
};

#define SESSION_VERB(id, verb, what, args, text, opts)                         \
	const struct usage session_##id##_usage = {                            \
		.name = (verb),                                                \
		.summary = (what),                                             \
		.synopsis = (const char *const[]){"session " verb args, NULL}, \
		.about = (text),                                               \
		.status = STATUS,                                              \
		.options = (opts),                                             \
		.option_count = ARRAY_LEN(opts),                               \
	}

SESSION_VERB(list, "list", "the sessions there are", " [--json]",
	     "Lists your sessions: id, state, what is left of the lease, size, calls, source.",
	     plain_options);
SESSION_VERB(show, "show", "all about one", " [--json] ID", "Shows one session.\n" ID_IS,
	     plain_options);
SESSION_VERB(calls, "calls", "what was run in it", " [--json] ID",
	     "Lists the calls of a session, those that run and those that have ended.\n" ID_IS,
	     plain_options);
SESSION_VERB(logs, "logs", "what a call has said", " [-f] [--err] ID [CALL]",
	     "Prints what a call has written, as it is; default the last call.\n" ID_IS,
	     logs_options);
SESSION_VERB(stop, "stop", "end a call", " [--json] ID CALL",
	     "Ends a call that runs: TERM, and KILL after its grace. CALL is its id or the\n"
	     "beginning of it.",
	     plain_options);
SESSION_VERB(net, "net", "change the network of one that runs", " [OPTION…] ID",
	     "Adds rules about the network to those of a session, at once and for all its calls,\n"
	     "or lists them. What is not allowed any more is reset.\n" ID_IS,
	     net_options);
SESSION_VERB(renew, "renew", "give it more time", " [--ttl D] [--json] ID",
	     "Sets the lease anew, at most to 24 hours after the session was made.\n" ID_IS,
	     renew_options);
SESSION_VERB(pause, "pause", "let it stand still", " [--json] ID",
	     "Freezes all that runs in a session; its lease does not run meanwhile. Needs a\n"
	     "cgroup (v2) below which we may make one.\n" ID_IS,
	     plain_options);
SESSION_VERB(resume, "resume", "let it go on", " [--json] ID", "Ends a pause.\n" ID_IS,
	     plain_options);
SESSION_VERB(reset, "reset", "put it back to its beginning", " [--json] ID",
	     "Ends all calls and empties all that the session has written: changes of the\n"
	     "project, home, caches, logs.\n" ID_IS,
	     plain_options);
SESSION_VERB(destroy, "destroy", "end it", " [--discard] [--json] ID",
	     "Ends a session with all that runs in it. What was changed and not reviewed is\n"
	     "kept as an artifact. Returns when processes, mounts and files are gone.\n" ID_IS,
	     destroy_options);

const struct usage session_usage = {
	.name = "session",
	.summary = "sandboxes that stay: new, exec, list, destroy, …",
	.synopsis = (const char *const[]){"session VERB [OPTION…] …", NULL},
	.about = "A session is a sandbox with a lease: calls in it share files, servers and a\n"
		 "network of their own, and what they change in the project is held for review.",
	.status = "Exit status: 0, done; 2, it could not be done; of `exec` see its help.",
	.options = plain_options + 1,
	.option_count = 1,
	.subs = (const struct usage *[]){&session_new_usage, &session_list_usage,
					 &session_show_usage, &session_exec_usage,
					 &session_calls_usage, &session_logs_usage,
					 &session_stop_usage, &session_net_usage,
					 &session_renew_usage, &session_pause_usage,
					 &session_resume_usage, &session_reset_usage,
					 &session_destroy_usage, NULL},
};

const struct usage gc_usage = {
	.name = "gc",
	.summary = "end sessions whose time is over, remove what was left",
	.synopsis = (const char *const[]){"gc [--dry-run] [--json]", NULL},
	.about = "Ends what is over and what killed processes left: sessions without a keeper,\n"
		 "artifacts and logs beyond their retention.",
	.status = STATUS,
	.options = gc_options,
	.option_count = ARRAY_LEN(gc_options),
};

int verb_session(const struct cli *cli, int argc, char **argv)
{
	if (argc && strcmp(argv[0], "exec") == 0)
		return verb_session_exec(cli, argc - 1, argv + 1);
	return verb_in_main(cli, "session", argc, argv);
}

int verb_gc(const struct cli *cli, int argc, char **argv)
{
	return verb_in_main(cli, "gc", argc, argv);
}

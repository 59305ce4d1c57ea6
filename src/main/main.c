/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandglass-main: what needs libraries. The front starts it, for the verbs of the table
 * below and to compile policy files.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/verbs.h"
#include "main/diff.h"
#include "main/review_verbs.h"
#include "main/verbs.h"
#include "run/job.h"

int main_program(char ret[PATH_TEXT], struct err *e)
{
	ssize_t n = readlink("/proc/self/exe", ret, PATH_TEXT - 1);

	if (n <= 0)
		return err_sys(e, "readlink /proc/self/exe");
	ret[n] = '\0';
	return 0;
}

int main_caller_init(struct main_caller *c, const struct policy_options *o, char **env,
		     struct err *e)
{
	struct request req = request_of_nothing();

	if (caller_init(&c->who, env, c->cwd, e) < 0)
		return -1;
	req.source = o->source;
	req.no_source = o->no_source;
	policy_where(&c->who, &c->where);
	return source_locate(&req, &c->who, &c->src, e);
}

struct sub {
	const struct usage *usage;
	int least, most; /* operands */
};

static int run_sub(const struct sub *s, const struct policy_options *o, char **operands)
{
	if (s->usage == &policy_show_usage)
		return main_show(o, environ);
	if (s->usage == &policy_check_usage)
		return main_check(o, operands[0], environ);
	if (s->usage == &policy_explain_usage)
		return main_explain(o, environ);
	return main_trust(operands[0], s->usage == &policy_trust_usage, environ);
}

static int policy(int argc, char **argv)
{
	static const struct sub subs[] = {
		{&policy_show_usage, 0, 0},    {&policy_check_usage, 0, 1},
		{&policy_trust_usage, 1, 1},   {&policy_untrust_usage, 1, 1},
		{&policy_explain_usage, 0, 0},
	};
	struct policy_options o = {.json = false};
	struct err e = {0};
	int first = 0;

	if (argc == 0 || strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)
		return usage_show(&policy_usage, 2);
	const struct usage *u = usage_sub(&policy_usage, argv[0]);
	if (!u)
		return usage_unknown(&policy_usage, argv[0]);
	if (u->later) {
		char name[64];
		(void)snprintf(name, sizeof(name), "policy %s", u->name);
		return usage_later(name, u->later, 2);
	}
	const struct sub *s = subs;
	while (s->usage != u)
		s++;
	if (opt_parse(u->options, u->option_count, argc - 1, argv + 1, &o, &first, &e) < 0)
		return cli_fail(&e, 2);
	if (o.help)
		return usage_show(u, 2);
	int given = argc - 1 - first;
	if (given < s->least || given > s->most) {
		(void)err_set(&e, ERR_CONFIG_INVALID, "`policy %s` takes %s", u->name,
			      s->most == 0 ? "no argument"
			      : s->least   ? "one file"
					   : "at most one file");
		if (u == &policy_explain_usage)
			(void)err_hint(&e, "write --host %.200s", argv[1 + first]);
		return cli_fail(&e, 2);
	}
	char *none[] = {NULL};
	return run_sub(s, &o, given ? argv + 1 + first : none);
}

/* A verb gets what follows its name, and returns the exit status. */
static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	bool quick; /* nothing in it takes a minute; a file system that hangs does */
} verbs_here[] = {
	{"compile", main_compile, true},  {"policy", policy, true},
	{"schema", main_schema, true},    {"session", main_session, false},
	{"gc", main_gc, false},           {"apply", main_apply, false},
	{"push", main_push, false},       {"export", main_export, false},
	{"diff", main_diff, false},       {"audit", main_audit, false},
	{"discard", main_discard, false},
};

int main(int argc, char **argv)
{
	struct err e = {0};

	for (size_t i = 0; argc > 1 && i < ARRAY_LEN(verbs_here); i++) {
		if (strcmp(argv[1], verbs_here[i].name) != 0)
			continue;
		if (verbs_here[i].quick)
			(void)alarm(60);
		else
			main_follow_policy();
		return verbs_here[i].run(argc - 2, argv + 2);
	}
	(void)err_set(&e, ERR_CONFIG_INVALID, "sandglass-main is started by sandglass");
	return cli_fail(&e, 2);
}

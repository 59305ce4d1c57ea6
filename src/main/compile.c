/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sandglass-main compile`: the front's question, answered on stdout in the form
 * of policy/compiled.h. Mistakes in files are answers too.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/verbs.h"
#include "main/verbs.h"

struct options {
	const char *state, *user, *home, *source, *policy;
	struct strlist profile;
};

#define AT(field) offsetof(struct options, field)

static const struct opt options[] = {
	{.name = "state", .kind = OPT_STRING, .off = AT(state)},
	{.name = "user", .kind = OPT_STRING, .off = AT(user)},
	{.name = "home", .kind = OPT_STRING, .off = AT(home)},
	{.name = "source", .kind = OPT_STRING, .off = AT(source)},
	{.name = "policy", .kind = OPT_STRING, .off = AT(policy)},
	{.name = "profile", .kind = OPT_LIST, .off = AT(profile)},
};

static int put(const char *text, char ret[PATH_TEXT], struct err *e)
{
	if (text && strlen(text) >= PATH_TEXT)
		return err_set(e, ERR_CONFIG_INVALID, "a path of more than 4095 bytes");
	(void)snprintf(ret, PATH_TEXT, "%s", text ? text : "");
	return 0;
}

static int compile(const struct options *o, struct set *s, struct buf *key, struct buf *out,
		   struct err *e)
{
	static struct policy_inputs in;
	struct policy_where where = {.uid = geteuid(), .home = o->home};
	struct source src = {.given = o->source != NULL};
	char program[PATH_TEXT];
	struct compiled c = {.failed = false};

	if (put(o->state, where.state, e) < 0 || put(o->user, where.user, e) < 0 ||
	    put(o->source, src.path, e) < 0 || main_program(program, e) < 0 ||
	    policy_inputs_find(&where, &src, o->policy, &o->profile, &in, e) < 0)
		return -1;
	/* Before the records of trust are read: a change in between is seen by the front. */
	policy_inputs_more(&in, program);
	bool good = set_load(s, &in, where.uid, 0) == 0;
	if (policy_inputs_key(&in, key, e) < 0)
		return -1;
	if (!good) {
		c = (struct compiled){.key = key->p, .key_bytes = key->n, .failed = true};
		(void)findings_first(&s->findings, &c.error);
	} else if (set_compile(s, key->p, key->n, &c, e) < 0) {
		return -1;
	}
	return compiled_encode(&c, out, e);
}

int main_compile(int argc, char **argv)
{
	static struct set s;
	AUTO_BUF key = BUF_INIT(MAX_COMPILED_KEY);
	AUTO_BUF out = BUF_INIT(MAX_COMPILED_BYTES);
	struct options o = {.state = NULL};
	struct err e = {0};
	int first = 0;

	int rc = opt_parse(options, ARRAY_LEN(options), argc, argv, &o, &first, &e);
	if (rc == 0 && first < argc)
		rc = err_set(&e, ERR_INTERNAL, "compile takes no operand");
	if (rc == 0)
		rc = compile(&o, &s, &key, &out, &e);
	if (rc == 0)
		rc = cli_write(STDOUT_FILENO, out.p, out.n, &e);
	set_release(&s);
	return rc == 0 ? 0 : cli_fail(&e, 2);
}

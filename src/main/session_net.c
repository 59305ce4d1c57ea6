/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `session net`: the rules about the network that hold in a session, and more of them.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/json.h"
#include "base/term.h"
#include "cli/run_options.h"
#include "cli/usage.h"
#include "cli/verbs.h"
#include "main/session_parts.h"
#include "policy/network.h"
#include "policy/secret.h"
#include "run/egress.h"
#include "run/keep.h"
#include "run/policy.h"
#include "run/secretkeep.h"
#include "run/session.h"

#define MAX_TEXT ((size_t)1 << 24)

/* What it was made with: its options, and the files of then. */
struct own {
	struct request req;
	struct call_policy policy;
};

static struct own *read_own(struct picked *p, struct err *e)
{
	static struct own own;

	own = (struct own){.req = request_of_nothing()};
	if (run_options_parse((int)p->rec.option_count, p->rec.options, &own.req, e) < 0 ||
	    policy_load_snapshot(&own.policy, &own.req, p->dir, e) < 0)
		return NULL;
	return &own;
}

static int own_rules(struct picked *p, struct egress_set *ret, struct err *e)
{
	struct own *own = read_own(p, e);

	if (!own)
		return -1;
	int rc = network_of(&own->req, ret, e);
	policy_release(&own->policy);
	return rc;
}

static int all_rules(struct picked *p, struct egress_set *ret, struct err *e)
{
	return own_rules(p, ret, e) < 0 ? -1 : session_rules_add(p->dir, ret, ret->n, e);
}

void session_net_json(struct picked *p, struct json *o)
{
	AUTO_EGRESS_SET s = {0};
	struct err ignored = {0};

	if (all_rules(p, &s, &ignored) < 0) {
		json_nil(o);
		return;
	}
	json_arr_begin(o);
	for (size_t i = 0; i < s.n; i++) {
		json_obj_begin(o);
		json_kv_str(o, "list", egress_list_names[s.v[i].rule.list]);
		json_kv_str(o, "rule", s.v[i].text);
		json_kv_str(o, "origin", s.v[i].origin);
		json_obj_end(o);
	}
	json_arr_end(o);
}

void session_net_lines(struct picked *p, struct buf *out)
{
	AUTO_EGRESS_SET s = {0};
	struct err ignored = {0};

	if (all_rules(p, &s, &ignored) < 0) {
		(void)buf_str(out, "network  not to be read\n");
		return;
	}
	if (!s.n)
		(void)buf_str(out, "network  closed\n");
	for (size_t i = 0; i < s.n; i++) {
		(void)buf_printf(out, "%-8s %-5s ", i ? "" : "network",
				 egress_list_names[s.v[i].rule.list]);
		(void)term_escape(out, s.v[i].text, strlen(s.v[i].text));
		(void)buf_str(out, "  (");
		(void)term_escape(out, s.v[i].origin, strlen(s.v[i].origin));
		(void)buf_str(out, ")\n");
	}
}

/* Those that hold, by name. False: they are not to be read. */
static bool own_secrets(struct picked *p, struct buf *ret_names, bool *ret_inspects)
{
	AUTO_EGRESS_SET s = {0};
	const struct secret_rule *v[MAX_EGRESS_SECRETS];
	struct err ignored = {0};
	size_t n = 0;

	if (all_rules(p, &s, &ignored) < 0)
		return false;
	*ret_inspects = egress_set_opens(&s) && egress_set_inspects(&s);
	struct own *own = read_own(p, &ignored);
	if (!own)
		return false;
	bool good = secrets_chosen(&own->req, v, &n, &ignored) == 0;
	for (size_t i = 0; good && i < n; i++)
		(void)buf_add(ret_names, v[i]->name, strlen(v[i]->name) + 1);
	policy_release(&own->policy);
	return good && !ret_names->failed;
}

void session_secrets_json(struct picked *p, struct json *o)
{
	AUTO_BUF names = BUF_INIT(MAX_TEXT);
	bool inspects = false;
	bool known = own_secrets(p, &names, &inspects);

	json_key(o, "secrets");
	if (known)
		json_arr_begin(o);
	else
		json_nil(o);
	for (size_t at = 0; known && at < names.n; at += strlen(names.p + at) + 1)
		json_str(o, names.p + at);
	if (known)
		json_arr_end(o);
	json_key(o, "inspection");
	if (known)
		json_bool(o, inspects);
	else
		json_nil(o);
}

void session_secrets_lines(struct picked *p, struct buf *out)
{
	AUTO_BUF names = BUF_INIT(MAX_TEXT);
	bool inspects = false;

	if (!own_secrets(p, &names, &inspects)) {
		(void)buf_str(out, "secrets  not to be read\n");
		return;
	}
	for (size_t at = 0; at < names.n; at += strlen(names.p + at) + 1)
		(void)buf_printf(out, "%s%s", at ? ", " : "secrets  ", names.p + at);
	if (names.n)
		(void)buf_char(out, '\n');
	if (inspects)
		(void)buf_str(out, "inspection  on\n");
}

/* What this call adds. */
static int more_rules(const struct session_options *o, struct egress_set *ret, struct err *e)
{
	const struct {
		const struct strlist *list;
		enum egress_list kind;
		const char *name;
	} options[] = {
		{&o->allow_host, EGRESS_LIST_ALLOW, "--allow-host"},
		{&o->deny_host, EGRESS_LIST_DENY, "--deny-host"},
		{&o->allow_local, EGRESS_LIST_LOCAL, "--allow-local"},
	};

	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		for (size_t k = 0; k < options[i].list->n; k++)
			if (egress_set_add(ret, options[i].kind, options[i].list->v[k],
					   "session net", e) < 0)
				return err_wrap(e, "%s", options[i].name);
	return 0;
}

/*
 * The proxy that a session's first open rule starts has its secrets from its beginning:
 * they are fetched now, if they were not before.
 */
static int know_secrets(const struct caller *who, struct picked *p, const struct egress_set *own,
			const struct egress_set *more, struct err *e)
{
	struct secret_values values = {.n = 0};
	struct own *o = read_own(p, e);

	if (!o)
		return -1;
	int rc = egress_set_copy(own, &o->req.egress, e);
	if (rc == 0)
		rc = egress_set_join(&o->req.egress, more, e);
	if (rc == 0)
		rc = secrets_of_session(p->ctl, &o->req, who, p->rec.id, &values, e);
	secrets_release(&values);
	egress_set_release(&o->req.egress);
	policy_release(&o->policy);
	return rc;
}

static int change(const struct caller *who, struct picked *p, const struct session_options *o,
		  struct err *e)
{
	struct keep_request q = {.kind = KEEP_NET, .flags = o->anew ? KEEP_ANEW : 0u};
	AUTO_EGRESS_SET own = {0};
	AUTO_EGRESS_SET more = {0};
	struct keep_answer a;

	if (more_rules(o, &more, e) < 0)
		return -1;
	if (!p->kept && keep_connect(p->dir, &p->ctl, e) < 0)
		return -1;
	if (own_rules(p, &own, e) < 0 ||
	    (egress_set_opens(&more) && know_secrets(who, p, &own, &more, e) < 0))
		return -1;
	AUTO_FD int base = egress_file(&own, e);
	AUTO_FD int added = base < 0 ? -1 : egress_file(&more, e);
	if (added < 0)
		return -1;
	const int fds[] = {base, added};
	return keep_ask_with(p->ctl, &q, fds, ARRAY_LEN(fds), &a, NULL, e);
}

int session_net(const struct session_caller *c, const struct session_options *o, char **operands)
{
	AUTO_BUF out = BUF_INIT(MAX_TEXT);
	struct json j = JSON_INIT(&out);
	struct picked p;
	struct err e = {0};
	bool changes = o->anew || o->allow_host.n || o->deny_host.n || o->allow_local.n;

	int rc = session_pick(&c->who, operands[0], &p, &e);
	if (rc == 0 && changes)
		rc = change(&c->who, &p, o, &e);
	if (rc == 0 && o->json) {
		session_net_json(&p, &j);
		(void)buf_char(&out, '\n');
	} else if (rc == 0 && !changes) {
		session_net_lines(&p, &out);
	}
	if (rc == 0 && out.n)
		rc = cli_write(STDOUT_FILENO, out.p, out.n, &e);
	session_let_go(&p);
	return rc < 0 ? cli_fail(&e, 2) : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sandglass policy explain --host`: the answer of the matcher that decides when a
 * command connects, from the same rules.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/json.h"
#include "base/term.h"
#include "cli/verbs.h"
#include "main/hosts.h"
#include "main/verbs.h"
#include "policy/apply.h"
#include "policy/network.h"

struct answer {
	struct host host;
	uint16_t port;
	struct egress_verdict verdict;
	struct egress_said said;
	const char *origin;          /* of the rule that decided; NULL: none */
	struct buf notes;            /* lines */
	const char *method, *target; /* of a request; NULL: only the connection is asked for */
	bool inspected;
};

static int read_rules(const struct policy_options *o, char **env, struct set *set,
		      struct egress_set *ret, struct err *e)
{
	static struct main_caller c;
	static struct policy_inputs in;
	char program[PATH_TEXT];
	struct request req = request_of_nothing();

	if (main_program(program, e) < 0 || main_caller_init(&c, o, env, e) < 0 ||
	    policy_inputs_find(&c.where, &c.src, o->policy, &o->profile, &in, e) < 0)
		return -1;
	policy_inputs_more(&in, program);
	if (set_load(set, &in, c.who.uid, 0) < 0)
		return findings_first(&set->findings, e);
	req.allow_host = o->allow_host;
	req.deny_host = o->deny_host;
	req.allow_local = o->allow_local;
	struct compiled compiled;
	if (set_compile(set, "", 0, &compiled, e) < 0)
		return -1;
	policy_apply(&req, &compiled);
	return network_of(&req, ret, e);
}

/* HOST, HOST:PORT, or a URL, of which a request is asked for. */
static int read_host(const struct policy_options *o, struct answer *ret, struct err *e)
{
	const char *text = o->host;
	uint16_t port = EGRESS_PORT_ALLOW;
	bool url = true;

	if (strncmp(text, "https://", 8) == 0) {
		text += 8;
	} else if (strncmp(text, "http://", 7) == 0) {
		text += 7;
		port = 80;
	} else {
		url = false;
	}
	size_t n = url ? strcspn(text, "/?#") : strlen(text);
	if (url && text[n] && text[n] != '/')
		return err_set(e, ERR_CONFIG_INVALID,
			       "--host: behind the host of a URL stands a path");
	enum host_bad bad = host_port_read(text, n, port, &ret->host, &ret->port);
	if ((url && text[n]) || o->method) {
		ret->target = url && text[n] ? text + n : "/";
		ret->method = o->method ? o->method : "GET";
	}

	if (bad == HOST_GOOD)
		return 0;
	(void)err_set(e, ERR_CONFIG_INVALID, "--host: %s", host_bad_text(bad));
	return err_hint(e, "write HOST, HOST:PORT or https://HOST/PATH, an IPv6 address as "
			   "[2001:db8::1]:443");
}

/* What the rule lets in besides, and whether git can write to just this host. */
static void note_rule(const struct egress_set *s, struct answer *a, const struct egress_rule *rule)
{
	struct egress_rule here = {.list = EGRESS_LIST_ALLOW,
				   .kind = a->host.kind == HOST_NAME ? EGRESS_NAME : EGRESS_PREFIX,
				   .port = a->port};

	if (hosts_say_broad(rule, &a->notes))
		(void)buf_char(&a->notes, '\n');
	memcpy(here.host, a->host.text, sizeof(here.host));
	if (!a->verdict.local && hosts_say_push(s, &here, &a->notes))
		(void)buf_char(&a->notes, '\n');
}

static void decide(const struct egress_set *s, struct answer *a)
{
	const struct egress_verdict *v = &a->verdict;

	a->verdict = egress_match_name(s, &a->host, a->port);
	a->inspected = a->host.kind == HOST_NAME && egress_inspects(s, &a->host, a->port);
	if (v->allow && a->inspected && a->method)
		a->verdict = egress_match_request(s, &a->host, a->port, a->method,
						  strlen(a->method), a->target, strlen(a->target));
	egress_say(s, v->reason, v->rule, a->host.text, a->port, "", &a->said);
	bool decided = v->reason == EGRESS_WHY_RULE || v->reason == EGRESS_WHY_DENIED ||
		       v->reason == EGRESS_WHY_METHOD || v->reason == EGRESS_WHY_PATH ||
		       v->reason == EGRESS_WHY_AMBIGUOUS;
	const struct egress_entry *by =
		v->rule >= 0 && (size_t)v->rule < s->n && s->v ? &s->v[v->rule] : NULL;
	a->origin = decided && by ? by->origin : NULL;
	if (!v->allow || !by)
		return;
	if (a->inspected && a->method)
		(void)buf_printf(&a->notes, "the request %s %s%s\n", a->method, a->target,
				 v->push ? ", by which git writes, with a push grant" : "");
	else if (a->inspected)
		(void)buf_str(&a->notes,
			      "inspected: each request is judged by its method and path\n");
	else if (a->method)
		(void)buf_str(&a->notes, "not inspected: whatever is asked for there\n");
	if (v->local)
		(void)buf_printf(&a->notes, "it is port %u of the host's 127.0.0.1\n", a->port);
	else if (a->host.kind == HOST_NAME)
		(void)buf_str(&a->notes,
			      "each address it resolves to has to be public, or named by "
			      "an address rule\n");
	note_rule(s, a, &by->rule);
}

static void write_text(const struct answer *a, struct buf *out)
{
	(void)buf_printf(out, "%s: %s by %s", a->said.target,
			 a->verdict.allow ? "allowed" : "denied", a->said.rule);
	if (a->origin) {
		AUTO_BUF shown = BUF_INIT((size_t)1 << 15);
		(void)term_escape(&shown, a->origin, strlen(a->origin));
		(void)buf_printf(out, " (%s)", buf_cstr(&shown));
	}
	(void)buf_char(out, '\n');
	for (const char *p = buf_cstr(&a->notes); *p;) {
		size_t n = strcspn(p, "\n");
		(void)buf_printf(out, "  %.*s\n", (int)n, p);
		p += n + (p[n] == '\n');
	}
	if (!a->verdict.allow && a->said.hint[0] && a->verdict.reason != EGRESS_WHY_DENIED)
		(void)buf_printf(out, "  hint: %s\n", a->said.hint);
}

static void kv_text(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	if (text && text[0])
		json_text(j, text, strlen(text));
	else
		json_nil(j);
}

static int write_json(const struct answer *a, struct buf *out, struct err *e)
{
	struct json j = JSON_INIT(out);
	bool address = a->host.kind != HOST_NAME;

	json_obj_begin(&j);
	json_kv_uint(&j, "version", 1);
	json_kv_str(&j, "host", a->host.text);
	json_kv_uint(&j, "port", a->port);
	json_kv_bool(&j, "allowed", a->verdict.allow);
	json_kv_bool(&j, "local", a->verdict.local);
	json_kv_bool(&j, "inspected", a->inspected);
	kv_text(&j, "method", a->method);
	kv_text(&j, "target", a->target);
	json_kv_str(&j, "reason", egress_reason_name(a->verdict.reason));
	json_kv_str(&j, "rule", a->said.rule);
	kv_text(&j, "origin", a->origin);
	kv_text(&j, "class", address ? address_class_name(address_class(&a->host.addr)) : NULL);
	json_key(&j, "notes");
	json_arr_begin(&j);
	for (const char *p = buf_cstr(&a->notes); *p;) {
		size_t n = strcspn(p, "\n");
		json_text(&j, p, n);
		p += n + (p[n] == '\n');
	}
	json_arr_end(&j);
	kv_text(&j, "hint", a->said.hint);
	json_obj_end(&j);
	if (json_finish(&j, ERR_INTERNAL, e) < 0)
		return -1;
	return buf_char(out, '\n');
}

int main_explain(const struct policy_options *o, char **env)
{
	static struct set set;
	AUTO_EGRESS_SET rules = {0};
	AUTO_BUF out = BUF_INIT((size_t)1 << 16);
	struct answer a = {.notes = BUF_INIT(4096)};
	struct err e = {0};
	int rc = 0;

	if (!o->host) {
		rc = err_set(&e, ERR_CONFIG_INVALID, "`policy explain` needs --host HOST[:PORT]");
	} else if (read_host(o, &a, &e) < 0 || read_rules(o, env, &set, &rules, &e) < 0) {
		rc = -1;
	} else {
		decide(&rules, &a);
		if (o->json)
			rc = write_json(&a, &out, &e);
		else
			write_text(&a, &out);
	}
	if (rc == 0)
		rc = cli_write(STDOUT_FILENO, buf_cstr(&out), out.n, &e);
	buf_release(&a.notes);
	set_release(&set);
	return rc < 0 ? cli_fail(&e, 2) : a.verdict.allow ? 0 : 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sandglass policy check`.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/json.h"
#include "base/term.h"
#include "cli/verbs.h"
#include "main/hosts.h"
#include "main/verbs.h"

static void write_text(const struct findings *f, struct buf *out)
{
	for (size_t i = 0; i < f->n; i++) {
		struct err e = {0};
		finding_err(&f->v[i], &e);
		(void)buf_printf(out, "%s%s: %s\n", f->v[i].warning ? "warning: " : "",
				 err_code_name(e.code), e.msg);
		if (e.hint[0])
			(void)buf_printf(out, "  hint: %s\n", e.hint);
	}
	if (f->more)
		(void)buf_printf(out, "and %zu more\n", f->more);
}

static void kv_text(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	if (text[0])
		json_text(j, text, strlen(text));
	else
		json_nil(j);
}

static int write_json(const struct findings *f, struct buf *out, struct err *e)
{
	struct json j = JSON_INIT(out);

	json_obj_begin(&j);
	json_kv_uint(&j, "version", 1);
	json_kv_bool(&j, "ok", f->errors == 0);
	json_key(&j, "findings");
	json_arr_begin(&j);
	for (size_t i = 0; i < f->n; i++) {
		const struct finding *o = &f->v[i];
		json_obj_begin(&j);
		json_kv_str(&j, "severity", o->warning ? "warning" : "error");
		json_kv_str(&j, "code", err_code_name(o->why.code));
		kv_text(&j, "file", o->file);
		json_key(&j, "line");
		if (o->at.line)
			json_uint(&j, o->at.line);
		else
			json_nil(&j);
		json_key(&j, "column");
		if (o->at.line)
			json_uint(&j, o->at.column);
		else
			json_nil(&j);
		kv_text(&j, "key", o->key);
		kv_text(&j, "message", o->why.msg);
		kv_text(&j, "hint", o->why.hint);
		json_obj_end(&j);
	}
	json_arr_end(&j);
	json_kv_uint(&j, "more", f->more);
	json_obj_end(&j);
	if (json_finish(&j, ERR_INTERNAL, e) < 0)
		return -1;
	return buf_char(out, '\n');
}

/* What was not taken from untrusted files is worth knowing, and no mistake. */
static void warn_ignored(struct set *s)
{
	for (size_t i = 0; i < s->ignored_count; i++) {
		const struct set_ignored *o = &s->ignored[i];
		struct err e = {0};
		(void)err_set(&e, ERR_POLICY_DENIED, "%s",
			      o->why == IGNORED_UNTRUSTED
				      ? "does not count: the file is not trusted, so it only "
					"narrows"
				      : ignored_whys[o->why]);
		if (o->why == IGNORED_UNTRUSTED)
			(void)err_hint(&e, "after reading it: sandglass policy trust FILE");
		findings_add(&s->findings, true, o->at.layer->file, o->at.at, o->key, &e);
	}
}

static void warn_host(struct set *s, const struct set_host *h, const char *what, const char *hint)
{
	char key[KEY_TEXT];
	struct err e = {0};

	if (h->v->list == EGRESS_LIST_MIRROR)
		(void)snprintf(key, sizeof(key), "network.mirror.%.*s",
			       (int)strcspn(h->v->text, " "), h->v->text);
	else
		(void)snprintf(key, sizeof(key), "network.%s[%u]", egress_list_names[h->v->list],
			       h->v->number);
	(void)err_set(&e, ERR_CONFIG_INVALID, "`%s`: %s", h->v->text, what);
	(void)err_hint(&e, "%s", hint);
	findings_add(&s->findings, true, h->from->file, h->v->at, key, &e);
}

/* Those of all files; what is wrong with one is a finding of its own. */
static void rules_of(const struct set *s, struct egress_set *ret)
{
	struct err ignored = {0};

	for (size_t i = 0; i < s->host_count; i++)
		(void)!egress_set_add(ret, (enum egress_list)s->hosts[i].v->list,
				      s->hosts[i].v->text, "", &ignored);
}

/* Rules that are right, and open more than they seem to. */
static void warn_hosts(struct set *s)
{
	AUTO_EGRESS_SET all = {0};

	rules_of(s, &all);
	for (size_t i = 0; i < s->host_count; i++) {
		const struct set_host *h = &s->hosts[i];
		AUTO_BUF broad = BUF_INIT(512);
		AUTO_BUF push = BUF_INIT(512);
		struct egress_rule rule;
		struct err ignored = {0};
		if (egress_rule_read((enum egress_list)h->v->list, h->v->text, &rule, &ignored) <
			    0 ||
		    !egress_rule_opens(&rule))
			continue;
		if (rule.list == EGRESS_LIST_ALLOW && hosts_say_broad(&rule, &broad))
			warn_host(s, h, buf_cstr(&broad), "name the hosts that are meant");
		if (hosts_say_push(&all, &rule, &push))
			warn_host(s, h, buf_cstr(&push),
				  "what is committed can leave the machine this way");
	}
}

/* One host of a secret that nothing opens: then it goes nowhere. */
static void warn_secret(struct set *s, size_t i, const char *text, const struct egress_set *all)
{
	const struct set_secret *one = &s->secrets[i];
	struct host host = {.kind = HOST_NAME};
	struct egress_rule rule;
	struct err e = {0};

	if (egress_rule_read(EGRESS_LIST_INSPECT, text, &rule, &e) < 0 || strchr(text, '*') ||
	    rule.kind != EGRESS_NAME)
		return;
	memcpy(host.text, rule.host, sizeof(host.text));
	if (!rule.port || egress_match_name(all, &host, rule.port).allow)
		return;
	(void)err_set(&e, ERR_CONFIG_INVALID, "`%s` of `%s`: nothing opens this host at port %u",
		      text, one->v->rule.name, rule.port);
	(void)err_hint(&e, "network.allow: [\"%s:%u\"], or the port that is meant in hosts",
		       rule.host, rule.port);
	findings_add(&s->findings, true, one->from->file, one->v->at, "secrets", &e);
}

static void warn_secrets(struct set *s)
{
	AUTO_EGRESS_SET all = {0};

	rules_of(s, &all);
	for (size_t i = 0; i < s->secret_count; i++) {
		AUTO_FREE char *hosts = strdup(s->secrets[i].v->rule.hosts);
		char *rest = NULL;
		for (char *at = hosts ? strtok_r(hosts, " ", &rest) : NULL; at;
		     at = strtok_r(NULL, " ", &rest))
			warn_secret(s, i, at, &all);
	}
}

/* Not there, or not to be opened: no answer, instead of the answer no. */
static bool is_unreadable(const struct findings *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->v[i].why.sys == ENOENT || f->v[i].why.sys == ENOTDIR ||
		    f->v[i].why.sys == EACCES || f->v[i].why.code == ERR_INTERNAL)
			return true;
	return false;
}

static int answer(struct set *s, bool json)
{
	AUTO_BUF out = BUF_INIT((size_t)4 << 20);
	struct err e = {0};

	if (json) {
		if (write_json(&s->findings, &out, &e) < 0)
			return cli_fail(&e, 2);
	} else {
		write_text(&s->findings, &out);
	}
	if (cli_write(STDOUT_FILENO, buf_cstr(&out), out.n, &e) < 0)
		return cli_fail(&e, 2);
	return !s->findings.errors ? 0 : is_unreadable(&s->findings) ? 2 : 1;
}

int main_check(const struct policy_options *o, const char *file, char **env)
{
	static struct main_caller c;
	static struct policy_inputs in;
	static struct set s;
	struct err e = {0};
	char program[PATH_TEXT];

	if (main_program(program, &e) < 0 || main_caller_init(&c, o, env, &e) < 0 ||
	    policy_inputs_find(&c.where, &c.src, file, &o->profile, &in, &e) < 0)
		return cli_fail(&e, 2);
	policy_inputs_more(&in, program);
	if (set_load(&s, &in, c.who.uid, file ? SET_ONLY_FILE : 0) == 0) {
		warn_ignored(&s);
		warn_hosts(&s);
		warn_secrets(&s);
	}
	int status = answer(&s, o->json);
	set_release(&s);
	return status;
}

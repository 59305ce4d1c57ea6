/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `secrets` of a layer: where each is from, and where it goes. Values are never read here.
 */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "config/layer_parts.h"
#include "policy/secret.h"

static void read_text(struct reader *r, const struct node *n, unsigned int what)
{
	const char *text = reader_word(r, n);
	struct secret_rule *s = &r->secret->rule;
	const char **const at[] = {&s->name, &s->variable, &s->from, &s->header};
	struct err e = {0};

	if (!text)
		return;
	if (secret_check_text((enum secret_text)what, text, &e) < 0)
		reader_report(r, false, n->at, &e);
	else
		*at[what] = text;
}

static void read_plain(struct reader *r, const struct node *n, unsigned int arg)
{
	const char *text = reader_word(r, n);

	(void)arg;
	if (!text)
		return;
	if (!n->plain || (strcmp(text, "true") != 0 && strcmp(text, "false") != 0))
		reader_wrong(r, n, "must be true or false", NULL);
	else
		r->secret->rule.plain = text[0] == 't';
}

static void read_one_host(struct reader *r, const struct node *n, unsigned int arg)
{
	struct egress_rule rule;
	struct err e = {0};

	(void)arg;
	if (!reader_word(r, n))
		return;
	if (egress_rule_read(EGRESS_LIST_INSPECT, n->text, &rule, &e) == 0 &&
	    rule.kind == EGRESS_EVERY)
		(void)err_set(&e, ERR_CONFIG_INVALID, "a secret goes to hosts that are named");
	if (e.code != ERR_NONE)
		reader_report(r, false, n->at, &e);
}

static void read_secret_hosts(struct reader *r, const struct node *n, unsigned int arg)
{
	AUTO_BUF text = BUF_INIT(MAX_SECRET_HOSTS_TEXT);
	size_t before = r->findings->errors;
	size_t count = 0;
	struct err e = {0};

	reader_each(r, n, arg, read_one_host);
	if (r->findings->errors != before)
		return;
	for (const struct node *one = n->first; one; one = one->next, count++)
		(void)buf_printf(&text, "%s%s", one == n->first ? "" : " ", one->text);
	if (count == 0 || count > MAX_SECRET_HOSTS || text.failed) {
		reader_wrong(r, n, "from 1 to 32 hosts", NULL);
		return;
	}
	r->secret->rule.hosts = arena_text(r->arena, buf_cstr(&text), text.n, &e);
	if (!r->secret->rule.hosts)
		reader_report(r, false, n->at, &e);
}

static const struct key secret_keys[] = {
	{.name = "name", .read = read_text, .arg = SECRET_NAME},
	{.name = "variable", .read = read_text, .arg = SECRET_VARIABLE},
	{.name = "from", .read = read_text, .arg = SECRET_FROM},
	{.name = "header", .read = read_text, .arg = SECRET_HEADER},
	{.name = "hosts", .read = read_secret_hosts},
	{.name = "plain", .read = read_plain},
	{.name = "ttl", .later = "secrets that are fetched anew"},
	{.name = NULL},
};

static void read_secret(struct reader *r, const struct node *n, unsigned int arg)
{
	static const char form[] =
		"write {name: NAME, from: \"env:VARIABLE\", hosts: [HOST], header: "
		"\"Authorization: Bearer {value}\"}";
	void *list = r->layer->secrets;
	size_t before = r->findings->errors;

	(void)arg;
	r->secret = reader_more(r, n, &list, &r->layer->secret_count, MAX_EGRESS_SECRETS,
				sizeof(*r->secret));
	r->layer->secrets = list;
	if (!r->secret)
		return;
	*r->secret = (struct layer_secret){.at = n->at};
	reader_map(r, n, secret_keys);
	const struct secret_rule *s = &r->secret->rule;
	const struct {
		const char *value, *missing;
	} must[] = {{s->name, "`name` is missing"},
		    {s->from, "`from` is missing"},
		    {s->hosts, "`hosts` is missing"},
		    {s->header, "`header` is missing"}};
	for (size_t i = 0; i < ARRAY_LEN(must) && r->findings->errors == before; i++)
		if (!must[i].value)
			reader_wrong(r, n, must[i].missing, form);
	if (r->findings->errors != before)
		return;
	for (const struct layer_secret *o = r->layer->secrets; o < r->secret; o++)
		if (o->rule.name && strcmp(o->rule.name, s->name) == 0)
			reader_wrong(r, n, "another secret of this file has that name", NULL);
}

void read_secrets(struct reader *r, const struct node *n, unsigned int arg)
{
	reader_each(r, n, arg, read_secret);
}

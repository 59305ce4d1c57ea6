/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `network` of a layer: rules, each in its one-line form (egress/rule.h).
 */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "config/layer_parts.h"
#include "egress/limit.h"
#include "egress/mirror.h"

static void add_host(struct reader *r, const struct node *n, enum egress_list list,
		     const char *text)
{
	struct layer *l = r->layer;
	void *room = l->hosts;
	struct egress_rule rule;
	struct err e = {0};
	unsigned int number = 0;

	if (egress_rule_read(list, text, &rule, &e) < 0) {
		reader_report(r, false, n->at, &e);
		return;
	}
	for (size_t i = 0; i < l->host_count; i++)
		number += l->hosts[i].list == list;
	struct layer_host *one =
		reader_more(r, n, &room, &l->host_count, MAX_LAYER_HOSTS, sizeof(*one));
	l->hosts = room;
	if (one)
		*one = (struct layer_host){.text = text,
					   .list = (uint8_t)list,
					   .number = number,
					   .at = n->at};
}

static void read_host_word(struct reader *r, const struct node *n, unsigned int list)
{
	if (reader_word(r, n))
		add_host(r, n, (enum egress_list)list, n->text);
}

/* One of `methods` or `paths`, tried alone: a mistake is shown where it stands. */
static void read_condition(struct reader *r, const struct node *n, unsigned int is_path)
{
	char text[MAX_EGRESS_RULE_TEXT + 16];
	struct egress_rule rule;
	struct err e = {0};

	if (!reader_word(r, n))
		return;
	if (strchr(n->text, ' ') || (!is_path && strchr(n->text, ',')) ||
	    (n->text[0] == '/') != (is_path != 0)) {
		reader_wrong(r, n,
			     is_path ? "a path begins with `/`, blanks in it are `%20`"
				     : "one method: GET, POST, …",
			     NULL);
		return;
	}
	(void)snprintf(text, sizeof(text), "x.example %s", n->text);
	if (egress_rule_read(EGRESS_LIST_ALLOW, text, &rule, &e) < 0)
		reader_report(r, false, n->at, &e);
}

static void read_conditions(struct reader *r, const struct node *n, unsigned int is_path)
{
	reader_each(r, n, is_path, read_condition);
	if (n->kind == NODE_LIST && !n->first)
		reader_wrong(r, n, "an empty list would match nothing",
			     "leave the key out for all");
}

/* Read below, when all keys of the rule are known. */
static void read_rule_host(struct reader *r, const struct node *n, unsigned int arg)
{
	(void)arg;
	(void)reader_word(r, n);
}

static const struct key rule_keys[] = {
	{.name = "host", .read = read_rule_host},
	{.name = "methods", .read = read_conditions, .arg = 0},
	{.name = "paths", .read = read_conditions, .arg = 1},
	{.name = NULL},
};

static const struct node *find_key(const struct node *map, const char *key)
{
	for (const struct node *n = map->first; n; n = n->next)
		if (strcmp(n->key->text, key) == 0)
			return n;
	return NULL;
}

static void put_list(struct buf *out, const struct node *list, char between)
{
	if (list)
		(void)buf_char(out, ' ');
	for (const struct node *n = list ? list->first : NULL; n; n = n->next)
		(void)buf_printf(out, "%s%.*s", n->text, n->next ? 1 : 0, &between);
}

static void read_rule(struct reader *r, const struct node *n, unsigned int list)
{
	AUTO_BUF text = BUF_INIT(64u << 10);
	size_t before = r->findings->errors;
	struct err e = {0};

	if (n->kind != NODE_MAP) {
		read_host_word(r, n, list);
		return;
	}
	reader_map(r, n, rule_keys);
	const struct node *host = find_key(n, "host");
	if (!host)
		reader_wrong(r, n, "`host` is missing", "write {host: HOST}");
	if (!host || r->findings->errors != before)
		return;
	(void)buf_str(&text, host->text);
	put_list(&text, find_key(n, "methods"), ',');
	put_list(&text, find_key(n, "paths"), ' ');
	const char *line = arena_text(r->arena, buf_cstr(&text), text.n, &e);
	if (text.failed || !line)
		reader_wrong(r, n, "a rule of this length", NULL);
	else
		add_host(r, host, (enum egress_list)list, line);
}

static void read_hosts(struct reader *r, const struct node *n, unsigned int list)
{
	bool rules = list == EGRESS_LIST_ALLOW || list == EGRESS_LIST_DENY;

	reader_each(r, n, list, rules ? read_rule : read_host_word);
}

/* A limit, as the rule that it is kept as. */
static void read_amount(struct reader *r, const struct node *n, unsigned int what)
{
	AUTO_BUF text = BUF_INIT(MAX_EGRESS_RULE_TEXT);
	struct err e = {0};

	if (!reader_word(r, n))
		return;
	(void)buf_printf(&text, "%s %s", egress_limit_names[what], n->text);
	const char *line = text.failed ? NULL : arena_text(r->arena, buf_cstr(&text), text.n, &e);
	if (line)
		add_host(r, n, EGRESS_LIST_LIMIT, line);
	else
		reader_wrong(r, n, "an amount of this length", NULL);
}

/* `npm: URL` is the rule `npm URL`. */
static void read_mirror(struct reader *r, const struct node *n, unsigned int manager)
{
	AUTO_BUF text = BUF_INIT(64u << 10);
	struct err e = {0};

	if (!reader_word(r, n))
		return;
	(void)buf_printf(&text, "%s %s", egress_managers[manager], n->text);
	const char *line = arena_text(r->arena, buf_cstr(&text), text.n, &e);
	if (text.failed || !line)
		reader_wrong(r, n, "an address of this length", NULL);
	else
		add_host(r, n, EGRESS_LIST_MIRROR, line);
}

static const struct key mirror_keys[] = {
	{.name = "apt", .read = read_mirror, .arg = MANAGER_APT},
	{.name = "cargo", .read = read_mirror, .arg = MANAGER_CARGO},
	{.name = "go", .read = read_mirror, .arg = MANAGER_GO},
	{.name = "maven", .read = read_mirror, .arg = MANAGER_MAVEN},
	{.name = "npm", .read = read_mirror, .arg = MANAGER_NPM},
	{.name = "pip", .read = read_mirror, .arg = MANAGER_PIP},
	{.name = NULL},
};

const struct key network_keys[] = {
	{.name = "allow", .read = read_hosts, .arg = EGRESS_LIST_ALLOW},
	{.name = "deny", .read = read_hosts, .arg = EGRESS_LIST_DENY},
	{.name = "local", .read = read_hosts, .arg = EGRESS_LIST_LOCAL},
	{.name = "inspect", .read = read_hosts, .arg = EGRESS_LIST_INSPECT},
	{.name = "push", .read = read_hosts, .arg = EGRESS_LIST_PUSH},
	{.name = "bytes_up", .read = read_amount, .arg = EGRESS_LIMIT_UP},
	{.name = "bytes_down", .read = read_amount, .arg = EGRESS_LIMIT_DOWN},
	{.name = "rate", .read = read_amount, .arg = EGRESS_LIMIT_RATE},
	{.name = "connections", .read = read_amount, .arg = EGRESS_LIMIT_CONNECTIONS},
	{.name = "mirror", .sub = mirror_keys},
	{.name = NULL},
};

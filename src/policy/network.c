/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts the rules of files and options together. The order means nothing to the
 * matcher (deny beats allow), only to the numbers that rules are called by.
 */
#include "policy/network.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "policy/secret.h"

static int add_options(struct egress_set *s, const struct request *req, struct err *e)
{
	const struct {
		const struct strlist *list;
		enum egress_list kind;
		const char *name;
	} options[] = {
		{&req->allow_host, EGRESS_LIST_ALLOW, "option --allow-host"},
		{&req->deny_host, EGRESS_LIST_DENY, "option --deny-host"},
		{&req->allow_local, EGRESS_LIST_LOCAL, "option --allow-local"},
	};

	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		for (size_t k = 0; k < options[i].list->n; k++)
			if (egress_set_add(s, options[i].kind, options[i].list->v[k],
					   options[i].name, e) < 0)
				return err_wrap(e, "%s", options[i].name + sizeof("option ") - 1);
	return 0;
}

int network_of_options(const struct request *req, struct egress_set *ret, struct err *e)
{
	AUTO_EGRESS_SET s = {0};

	if (add_options(&s, req, e) < 0)
		return -1;
	*ret = s;
	s = (struct egress_set){0};
	return 0;
}

/* Where a secret goes, connections have to be inspected. */
static int add_secrets(struct egress_set *s, const struct request *req, struct err *e)
{
	const struct secret_rule *v[MAX_EGRESS_SECRETS];
	char text[MAX_EGRESS_HOST_TEXT + 1];
	size_t n = 0;

	if (secrets_chosen(req, v, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		for (const char *p = v[i]->hosts; *p;) {
			size_t len = strcspn(p, " ");
			(void)snprintf(text, sizeof(text), "%.*s", (int)len, p);
			if (egress_set_add(s, EGRESS_LIST_INSPECT, text, v[i]->origin, e) < 0)
				return err_wrap(e, "%s", v[i]->origin);
			p += len + (p[len] == ' ');
		}
	return 0;
}

int network_of(const struct request *req, struct egress_set *ret, struct err *e)
{
	AUTO_EGRESS_SET s = {0};

	for (size_t i = 0; i < req->host_count; i++)
		if (egress_set_add(&s, (enum egress_list)req->hosts[i].list, req->hosts[i].text,
				   req->hosts[i].origin, e) < 0)
			return err_wrap(e, "%s", req->hosts[i].origin);
	if (add_options(&s, req, e) < 0 || add_secrets(&s, req, e) < 0)
		return -1;
	*ret = s;
	s = (struct egress_set){0};
	return 0;
}

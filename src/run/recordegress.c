/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A path can hold whatever a command puts into it: values of the call's secrets are taken out.
 */
#include "run/recordegress.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"

#define FIELDS 7

struct store {
	struct audit_field field[MAX_RECORD_EGRESS][FIELDS];
	char rule[MAX_RECORD_EGRESS][32]; /* network.deny[2]: without its text, which is a host */
	char path[MAX_RECORD_EGRESS][EGRESS_PATH_TEXT];
	size_t n;
};

static struct audit_field word(const char *key, const char *text)
{
	return (struct audit_field){.key = key, .kind = AUDIT_WORD, .text = text};
}

static struct audit_field number(const char *key, uint64_t u)
{
	return (struct audit_field){.key = key, .kind = AUDIT_UINT, .u = u};
}

static struct audit_field host(const char *text)
{
	return (struct audit_field){.key = "target",
				    .kind = AUDIT_HOST,
				    .text = text[0] ? text : NULL};
}

/* One event of `count` fields that are in the store's next place. */
static struct audit_event take(struct store *s, const struct audit_event *common, const char *event,
			       const char *rule, size_t count)
{
	struct audit_event v = *common;
	char *text = s->rule[s->n];

	(void)snprintf(text, sizeof(s->rule[0]), "%.*s", (int)strcspn(rule, " "), rule);
	v.event = event;
	v.decision = strcmp(event, "egress.deny") == 0 ? "deny" : "allow";
	v.rule = text;
	v.data = s->field[s->n++];
	v.data_count = count;
	return v;
}

/* Connections before names, of which a command may ask for as many as it likes. */
static const struct egress_row *nth(const struct egress_rows *rows, size_t n)
{
	size_t connects = rows->n - rows->names;
	enum egress_op op = n < connects ? EGRESS_CONNECT : EGRESS_RESOLVE;
	size_t i = 0;

	for (n -= n < connects ? 0 : connects; rows->v[i].op != op || n-- > 0; i++)
		;
	return &rows->v[i];
}

/* How many others the i-th of n that are told stands for. */
static uint64_t others(size_t i, size_t n, uint64_t lost)
{
	size_t told = n < MAX_EGRESS_EVENTS ? n : MAX_EGRESS_EVENTS;

	return i + 1 < told ? 0 : lost + (n - told);
}

static size_t add_rows(struct store *s, const struct egress_rows *rows, const char *event,
		       const struct audit_event *common, struct audit_event *ret)
{
	size_t i = 0;

	for (; i < rows->n && i < MAX_EGRESS_EVENTS; i++) {
		const struct egress_row *r = nth(rows, i);
		struct audit_field *f = s->field[s->n];
		f[0] = host(r->said.target);
		f[1] = word("how", egress_how_name(r->how));
		f[2] = number("count", r->count);
		f[3] = number("more", others(i, rows->n, rows->more));
		ret[i] = take(s, common, event, r->said.rule, 4);
	}
	return i;
}

static size_t add_requests(struct store *s, const struct job *j, const struct audit_event *common,
			   struct audit_event *ret)
{
	const struct asked *a = &j->egress.requests;
	size_t i = 0;

	for (; i < a->n && i < MAX_EGRESS_EVENTS; i++) {
		const struct asked_row *r = &a->v[i];
		struct audit_field *f = s->field[s->n];
		char *path = s->path[s->n];
		memcpy(path, r->path, sizeof(s->path[0]));
		(void)censor_blot(j->censor, path, strlen(path));
		f[0] = host(r->target);
		f[1] = word("how", egress_how_name(r->how));
		f[2] = number("count", r->count);
		f[3] = number("more", others(i, a->n, a->more));
		f[4] = (struct audit_field){.key = "method", .kind = AUDIT_TEXT, .text = r->method};
		f[5] = (struct audit_field){.key = "path", .kind = AUDIT_TEXT, .text = path};
		f[6] = number("status", r->status);
		ret[i] = take(s, common, "egress.allow", r->rule, 7);
	}
	return i;
}

static size_t add_used(struct store *s, const struct asked *a, const struct audit_event *common,
		       struct audit_event *ret)
{
	size_t i = 0;

	for (; i < a->n && i < MAX_EGRESS_EVENTS; i++) {
		const struct asked_row *r = &a->v[i];
		struct audit_field *f = s->field[s->n];
		f[0] = word("name", r->path);
		f[1] = host(r->target);
		f[2] = number("count", r->count);
		f[3] = number("more", others(i, a->n, a->more));
		ret[i] = take(s, common, "secret.use", r->rule, 4);
	}
	return i;
}

size_t record_egress(const struct job *j, const struct audit_event *common, struct audit_event *ret)
{
	static struct store s; /* too much for a stack */
	const struct egress *g = &j->egress;
	size_t n = 0;

	s.n = 0;
	n += add_rows(&s, &g->allowed, "egress.allow", common, ret + n);
	n += add_requests(&s, j, common, ret + n);
	n += add_used(&s, &g->used, common, ret + n);
	n += add_rows(&s, &g->denied, "egress.deny", common, ret + n);
	return n;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "run/asked.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is_same(const struct asked_row *a, const struct asked_row *b)
{
	return a->status == b->status && a->how == b->how && strcmp(a->path, b->path) == 0 &&
	       strcmp(a->method, b->method) == 0 && strcmp(a->target, b->target) == 0 &&
	       strcmp(a->rule, b->rule) == 0;
}

void asked_note(struct asked *a, const struct egress_set *set, const struct egress_event *v)
{
	struct egress_said said;
	struct asked_row row = {.status = v->status,
				.how = (enum egress_how)v->how,
				.count = egress_times(v)};

	egress_say(set, EGRESS_WHY_RULE, v->rule, v->host, v->port, "", &said);
	memcpy(row.target, said.target, sizeof(row.target));
	memcpy(row.rule, said.rule, sizeof(row.rule));
	if (v->kind == EGRESS_REQUEST)
		memcpy(row.method, v->method, sizeof(row.method));
	memcpy(row.path, v->path, sizeof(row.path));
	for (size_t i = 0; i < a->n; i++)
		if (is_same(&a->v[i], &row)) {
			a->v[i].count += row.count;
			return;
		}
	if (!a->v)
		a->v = calloc(MAX_ASKED, sizeof(*a->v));
	if (!a->v || a->n == MAX_ASKED)
		a->more += row.count;
	else
		a->v[a->n++] = row;
}

void asked_release(struct asked *a)
{
	free(a->v);
	*a = (struct asked){.v = NULL};
}

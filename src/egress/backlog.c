/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/backlog.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static struct egress_event *at(const struct egress_backlog *b, uint32_t i)
{
	return &b->v[(b->first + i) % MAX_EVENTS];
}

static bool is_bytes(const struct egress_event *v)
{
	return v->kind == EGRESS_CLOSE || v->kind == EGRESS_BYTES;
}

/* Says the same: what differs is which connection it was. */
static bool same(const struct egress_event *a, const struct egress_event *b)
{
	if (is_bytes(a) && is_bytes(b))
		return true;
	return a->kind == b->kind && a->kind != EGRESS_DONE && a->how == b->how &&
	       a->reason == b->reason && a->rule == b->rule && a->port == b->port &&
	       a->generation == b->generation && a->status == b->status &&
	       strcmp(a->host, b->host) == 0 && strcmp(a->address, b->address) == 0 &&
	       strcmp(a->method, b->method) == 0 && strcmp(a->path, b->path) == 0;
}

static bool merge(struct egress_backlog *b, const struct egress_event *ev)
{
	for (uint32_t i = b->count; i-- > 0;) {
		struct egress_event *v = at(b, i);
		if (!same(v, ev))
			continue;
		v->up += ev->up;
		v->down += ev->down;
		v->times = egress_times(v) + egress_times(ev);
		return true;
	}
	return false;
}

/* How much it matters that this one is told. */
static int worth(const struct egress_event *v)
{
	if (v->kind == EGRESS_DENY || v->kind == EGRESS_FAIL || v->kind == EGRESS_REQUEST)
		return v->how == EGRESS_BY_DNS ? 0 : 1;
	return v->kind == EGRESS_ALLOW || v->kind == EGRESS_SECRET ? 2 : 3;
}

/* Takes the newest of those that matter least, and less than ev, out. False: there is none. */
static bool make_room(struct egress_backlog *b, const struct egress_event *ev)
{
	uint32_t which = b->count;

	for (uint32_t i = b->count; i-- > 0;)
		if (worth(at(b, i)) < worth(which < b->count ? at(b, which) : ev))
			which = i;
	if (which == b->count)
		return false;
	b->lost += egress_times(at(b, which));
	for (uint32_t i = which; i + 1 < b->count; i++)
		*at(b, i) = *at(b, i + 1);
	b->count--;
	return true;
}

void egress_backlog_put(struct egress_backlog *b, const struct egress_event *ev)
{
	if (!b->v)
		b->v = calloc(MAX_EVENTS, sizeof(*b->v));
	if (b->v && merge(b, ev))
		return;
	if (!b->v || (b->count == MAX_EVENTS && !make_room(b, ev))) {
		b->lost += egress_times(ev);
		return;
	}
	*at(b, b->count++) = *ev;
}

bool egress_backlog_next(const struct egress_backlog *b, struct egress_event *ret)
{
	if (b->count)
		*ret = *at(b, 0);
	else if (b->lost)
		*ret = (struct egress_event){.kind = EGRESS_MORE,
					     .rule = -1,
					     .times = b->lost < UINT32_MAX ? (uint32_t)b->lost
									   : UINT32_MAX};
	return egress_backlog_waits(b);
}

void egress_backlog_drop(struct egress_backlog *b)
{
	if (b->count) {
		b->first = (b->first + 1) % MAX_EVENTS;
		b->count--;
	} else {
		b->lost = 0;
	}
}

void egress_backlog_release(struct egress_backlog *b)
{
	free(b->v);
	*b = (struct egress_backlog){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events that wait for somebody who does not read. What is equal is counted in one;
 * when all room is taken, denials of names go first, then those of connections: what
 * was allowed, bytes and ends are never lost to a flood of what was refused. How many
 * were lost is said in the end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "egress/event.h"

#define MAX_EVENTS 1024u /* 640 bytes each */

/* {0}: nothing waits. Its room is made when it is needed. */
struct egress_backlog {
	struct egress_event *v; /* ring of MAX_EVENTS */
	uint32_t first, count;
	uint64_t lost;
};

void egress_backlog_put(struct egress_backlog *b, const struct egress_event *ev);
/* The oldest, which stays; after the last one EGRESS_MORE if some were lost. False: nothing. */
bool egress_backlog_next(const struct egress_backlog *b, struct egress_event *ret);
/* What was next goes. */
void egress_backlog_drop(struct egress_backlog *b);
static inline bool egress_backlog_waits(const struct egress_backlog *b)
{
	return b->count || b->lost;
}
void egress_backlog_release(struct egress_backlog *b);

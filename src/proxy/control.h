/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptor 4: first the table of listeners, then events and orders. Never blocks: while the
 * supervisor does not read, events wait as backlog.h has it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "egress/backlog.h"
#include "egress/event.h"
#include "egress/set.h"

/* Listeners: DNS (2), HTTP, SOCKS, redirect (2), and one or two for each local port. */
#define MAX_LISTENERS (2u * MAX_EGRESS_LOCALS + 16u)

struct control {
	uv_poll_t poll;
	int fd;
	struct egress_backlog waits;
	/* Takes what comes with an order. False: the process has to end. */
	bool (*order)(void *self, const struct egress_order *o, const int *fds);
	void *self;
};

struct control_table {
	struct egress_listener v[MAX_LISTENERS];
	int fds[MAX_LISTENERS];
	size_t n;
};

/* Reads the whole table from a blocking socket. Whatever is wrong with it is INTERNAL. */
NODISCARD int control_read_table(int fd, struct control_table *ret, struct err *e);

/* The authority's certificate, before everything else that is said; n bytes and a NUL. */
NODISCARD int control_send_ca(int fd, const struct egress_ca *ca, struct err *e);

/*
 * From now on in the loop; it stops when the other end is closed, or says what is no
 * order. Before an order can come, `order` and `self` have to be set; they may be NULL.
 */
NODISCARD int control_start(struct control *c, uv_loop_t *loop, int fd, struct err *e);
void control_send(struct control *c, const struct egress_event *ev);
/* The loop has ended: what is left goes out, at most for CONTROL_LAST_MS. */
#define CONTROL_LAST_MS 300
void control_finish(struct control *c);

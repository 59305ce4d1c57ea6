/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call asked for under inspection, and where its secrets went: for the audit log.
 * Method, path without its query, status, the names of secrets; never a header, a body or
 * a value.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "egress/event.h"
#include "egress/set.h"

/* Different rows that are kept of a call; more are counted. */
#define MAX_ASKED 64u

struct asked_row {
	char target[HOST_PORT_TEXT];
	char rule[EGRESS_RULE_SAID];
	char method[EGRESS_METHOD_TEXT]; /* "": a secret was used, whose name is `path` */
	char path[EGRESS_PATH_TEXT];
	uint32_t status;
	enum egress_how how;
	uint64_t count;
};

/* {0}: nothing. */
struct asked {
	struct asked_row *v;
	size_t n;
	uint64_t more; /* that found no room */
};

/* Of an EGRESS_REQUEST or an EGRESS_SECRET whose texts are known to end. */
void asked_note(struct asked *a, const struct egress_set *set, const struct egress_event *v);
void asked_release(struct asked *a);

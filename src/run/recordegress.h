/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the audit log gets of a call's way out.
 */
#pragma once

#include "audit/audit.h"
#include "run/job.h"

/* Of one list: what is more than fits is counted by the last event of it. */
#define MAX_EGRESS_EVENTS 24u
#define MAX_RECORD_EGRESS (4 * MAX_EGRESS_EVENTS)

/*
 * Events of connections, of requests and of secrets, each like `common`; ret has room for
 * MAX_RECORD_EGRESS. They point into memory that lasts until the next call. Returns how many.
 */
size_t record_egress(const struct job *j, const struct audit_event *common,
		     struct audit_event *ret);

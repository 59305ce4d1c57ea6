/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the audit log gets of a session's life.
 */
#pragma once

#include "policy/request.h"
#include "store/session.h"

/* `event`: "session.create" and its like; `why` NULL: nothing to say. On the disk at a session's end. */
void session_told(const struct caller *who, const struct session_record *rec, const char *event,
		  const char *why);

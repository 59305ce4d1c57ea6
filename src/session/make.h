/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A new session, from what was asked for to its keeper.
 */
#pragma once

#include "policy/request.h"
#include "store/session.h"

#define SESSION_TTL_MS (UINT64_C(30) * 60 * 1000)
#define SESSION_MAX_MS (UINT64_C(24) * 3600 * 1000)
#define SESSION_DISK_BYTES (UINT64_C(16) << 30)
#define SESSION_INODES UINT64_C(2000000)

/* Below a session that is a copy since there could be no overlay: why. */
#define WHY_COPY "why-copy"

struct made {
	struct session_record rec;
	int dir;
	bool fell_back; /* a copy, since there could be no overlay: */
	char why[ERR_MSG_MAX];
};

/* `req` is session_new_parse()'s; it is filled in from policy files. On failure nothing is left. */
NODISCARD int session_make(struct request *req, const struct caller *who, struct made *ret,
			   struct err *e);
void made_release(struct made *m);

/* The options that a call of the session has from it, as for `run`. */
NODISCARD int options_put(const struct request *req, const struct caller *who, struct buf *out,
			  struct err *e);

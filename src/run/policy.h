/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy of a call: from the files of the caller and the project, through
 * sandglass-main or the cache of what it said.
 */
#pragma once

#include "base/buf.h"
#include "policy/compiled.h"
#include "policy/request.h"
#include "policy/source.h"

struct call_policy {
	bool there; /* something was read; else nothing below counts */
	bool read;  /* what the files say is known, also that there is none */
	bool fresh; /* compiled anew: the files are new, or have changed */
	struct buf bytes;
	struct compiled compiled;
};

/*
 * Reads it and fills in what no option has said (policy/apply.h). Without any
 * policy file three stats; sandglass-main is started only where no compiled form
 * of exactly these files is in the cache. On failure nothing may run.
 */
NODISCARD int policy_load(struct call_policy *p, struct request *req, const struct caller *who,
			  const struct source *src, struct err *e);
/* The same from a session's snapshot, the file `policy` of its directory; none holds if it is not there. */
NODISCARD int policy_load_snapshot(struct call_policy *p, struct request *req, int dir,
				   struct err *e);
void policy_release(struct call_policy *p);

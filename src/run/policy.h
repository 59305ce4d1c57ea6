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
void policy_release(struct call_policy *p);

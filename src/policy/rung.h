/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rung `landlock`: what a view without namespaces consists of, what cannot
 * be asked for there, and what is lost. sandglass-landlock(7) tells the same to
 * people.
 */
#pragma once

#include "policy/view.h"

/* Subdirectories of AGENT_ROOT, in this order; the last one is read-only inside. */
#define RUNG_DIRS 5
extern const char *const rung_dirs[RUNG_DIRS];

/*
 * After the grants: SANDBOX_UNAVAILABLE for what Landlock cannot do, which is
 * anything narrower inside something wider.
 */
NODISCARD int rung_check(const struct view *v, const struct request *req, const struct source *src,
			 struct err *e);

/* Adds the devices, the files of /proc and the directories of AGENT_ROOT as rules. */
NODISCARD int rung_add(struct view *v, const char *agent_root, struct err *e);

/* What is not held at this ABI, for `not_enforced`; NULL at the end. */
const char *rung_lost(unsigned int abi, size_t i);

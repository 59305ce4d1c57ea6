/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `run --review` has around its call: a session made for it, and what becomes
 * of that afterwards.
 */
#pragma once

#include <stdbool.h>

#include "base/uuid.h"
#include "cli/verbs.h"

/* Makes a session of the arguments of `run`. */
NODISCARD int reviewed_begin(const struct cli *cli, int argc, char **argv, char ret_id[UUID_TEXT],
			     struct err *e);

/*
 * After the call. Nothing was changed: the session goes. At a terminal a person
 * decides, unless `keep` says so already; else it stays, and its id is told on stderr.
 */
void reviewed_end(const struct cli *cli, const char *id, bool keep, bool ask);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands behind the host of a rule: methods and paths.
 */
#pragma once

#include "egress/rule.h"

/*
 * Reads `METHOD,METHOD /path /path`, n bytes from `at` in `text`, into r->methods and
 * r->paths. CONFIG_INVALID says what is wrong at which byte of the text.
 */
NODISCARD int egress_condition_read(struct egress_rule *r, const char *text, const char *at,
				    struct err *e);

/*
 * Reads `/team/app` behind the host of a push grant: paths of that repository, with
 * `.git` and without.
 */
NODISCARD int egress_repository_read(struct egress_rule *r, const char *text, const char *at,
				     struct err *e);

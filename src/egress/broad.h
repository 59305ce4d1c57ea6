/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is worth saying about a rule that is right: whom else it lets in, and
 * whether git can push through it unseen. For `policy check` and `explain`; the
 * matcher never looks here.
 */
#pragma once

#include "egress/rule.h"

enum egress_broad {
	EGRESS_NARROW,          /* nothing to say */
	EGRESS_BROAD_ALL,       /* every name */
	EGRESS_BROAD_TOP,       /* all of a top-level domain, or of a registry below one */
	EGRESS_BROAD_HOST,      /* anybody can have a name there: shared hosting */
	EGRESS_BROAD_PATH,      /* one host, below which anybody can have a path */
	EGRESS_BROAD_ADDRESSES, /* a prefix of more than 65,536 addresses; IPv6: shorter than /48 */
};

/* Of an allow rule. *ret_what (never NULL afterwards): the suffix or host meant, or "". */
enum egress_broad egress_rule_broad(const struct egress_rule *r, const char **ret_what);

/*
 * A way to push with git that nothing inspects: port 22 or 9418, every port, or a
 * forge's host at 443. A short text that says which; NULL: none.
 */
const char *egress_rule_push(const struct egress_rule *r);

/* SPDX-License-Identifier: Apache-2.0 */
#include "main/hosts.h"

#include <string.h>

#include "egress/broad.h"

bool hosts_say_broad(const struct egress_rule *rule, struct buf *ret)
{
	const char *what = "";

	switch (egress_rule_broad(rule, &what)) {
	case EGRESS_NARROW:
		return false;
	case EGRESS_BROAD_ALL:
		(void)buf_str(ret, "broad: every name there is");
		return true;
	case EGRESS_BROAD_TOP:
		(void)buf_printf(ret, "broad: anybody can register a name below `%s`", what);
		return true;
	case EGRESS_BROAD_HOST:
		(void)buf_printf(ret, "broad: shared hosting, anybody can have a name below `%s`",
				 what);
		return true;
	case EGRESS_BROAD_PATH:
		(void)buf_printf(ret, "broad: anybody can put something at `%s`, or fetch it there",
				 what);
		return true;
	case EGRESS_BROAD_ADDRESSES:
		(void)buf_str(ret, "broad: a prefix of many networks");
		return true;
	}
	return false;
}

bool hosts_say_push(const struct egress_set *all, const struct egress_rule *rule, struct buf *ret)
{
	struct host h = {.kind = HOST_NAME};
	const char *how = egress_rule_push(rule);

	memcpy(h.text, rule->host, sizeof(h.text));
	if (how && rule->kind == EGRESS_NAME && rule->port &&
	    (egress_rule_is_partial(rule) || egress_inspects(all, &h, rule->port)))
		how = NULL;

	if (how)
		(void)buf_printf(ret, "push possible: git can write through %s, uninspected", how);
	return how != NULL;
}

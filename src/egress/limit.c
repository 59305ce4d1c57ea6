/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/limit.h"

#include <string.h>

#include "base/base.h"
#include "base/num.h"

const char *const egress_limit_names[EGRESS_LIMITS] = {
	[EGRESS_LIMIT_UP] = "bytes_up",
	[EGRESS_LIMIT_DOWN] = "bytes_down",
	[EGRESS_LIMIT_RATE] = "rate",
	[EGRESS_LIMIT_CONNECTIONS] = "connections",
};

static int read_bytes(enum egress_limit what, const char *text, uint64_t *ret, struct err *e)
{
	uint64_t least = what == EGRESS_LIMIT_RATE ? MIN_EGRESS_RATE : 1;

	if (size_parse(text, ret, e) < 0)
		return -1;
	if (*ret == LIMIT_NONE) {
		(void)err_set(e, ERR_CONFIG_INVALID, "`none`: the smallest of all layers counts");
		return err_hint(e, "leave the key out");
	}
	if (*ret < least)
		return err_set(e, ERR_CONFIG_INVALID, "`%.40s`: at least %s", text,
			       what == EGRESS_LIMIT_RATE ? "1KiB a second" : "1 byte");
	return 0;
}

int egress_limit_read(const char *text, struct egress_rule *ret, struct err *e)
{
	size_t n = strcspn(text, " ");
	unsigned int what = 0;
	uint64_t amount = 0;

	while (what < EGRESS_LIMITS && (strlen(egress_limit_names[what]) != n ||
					memcmp(egress_limit_names[what], text, n) != 0))
		what++;
	if (what == EGRESS_LIMITS || !text[n])
		return err_set(e, ERR_CONFIG_INVALID, "`%.40s` is no limit of the network", text);
	int rc = what == EGRESS_LIMIT_CONNECTIONS
			 ? num_parse(text + n + 1, 1, MAX_EGRESS_CONNECTIONS, &amount, e)
			 : read_bytes((enum egress_limit)what, text + n + 1, &amount, e);
	if (rc < 0)
		return -1;
	*ret = (struct egress_rule){.list = EGRESS_LIST_LIMIT,
				    .kind = EGRESS_AMOUNT,
				    .limit = (uint8_t)what,
				    .amount = amount};
	return 0;
}

int egress_limit_find(const struct egress_set *s, enum egress_limit what)
{
	int found = -1;

	for (size_t i = 0; i < s->n; i++) {
		const struct egress_rule *r = &s->v[i].rule;
		if (r->list == EGRESS_LIST_LIMIT && r->limit == what &&
		    (found < 0 || r->amount < s->v[found].rule.amount))
			found = (int)i;
	}
	return found;
}

const char *egress_limit_help(enum egress_limit what)
{
	static const char *const help[EGRESS_LIMITS] = {
		[EGRESS_LIMIT_UP] = "it is used up: network.bytes_up is set",
		[EGRESS_LIMIT_DOWN] = "it is used up: network.bytes_down is set",
		[EGRESS_LIMIT_RATE] = "network.rate is set",
		[EGRESS_LIMIT_CONNECTIONS] = "close others first: network.connections is set",
	};

	return help[what];
}

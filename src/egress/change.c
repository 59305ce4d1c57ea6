/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets that change while somebody holds them: rules are only appended, so that the
 * number of each stays what it was, and taken away from the end.
 */
#include <stdlib.h>

#include "base/base.h"
#include "egress/set.h"

int egress_set_join(struct egress_set *s, const struct egress_set *from, struct err *e)
{
	for (size_t i = 0; i < from->n; i++) {
		const struct egress_entry *r = &from->v[i];
		if (egress_set_add(s, (enum egress_list)r->rule.list, r->text, r->origin, e) < 0)
			return err_wrap(e, "%s", r->text);
	}
	return 0;
}

void egress_set_cut(struct egress_set *s, size_t n)
{
	while (s->n > n) {
		struct egress_entry *r = &s->v[--s->n];
		s->counts[r->rule.list]--;
		free(r->text);
		free(r->origin);
	}
}

int egress_set_copy(const struct egress_set *s, struct egress_set *ret, struct err *e)
{
	AUTO_BUF bytes = BUF_INIT(MAX_EGRESS_BYTES);

	if (egress_set_encode(s, &bytes, e) < 0)
		return -1;
	return egress_set_decode(bytes.p, bytes.n, ret, e);
}

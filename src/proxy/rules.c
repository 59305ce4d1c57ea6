/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/rules.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/base.h"

int rules_read(int fd, struct egress_set *ret, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(e, "the rules");
	if (st.st_size <= 0 || st.st_size > (off_t)MAX_EGRESS_BYTES)
		return err_set(e, ERR_INTERNAL, "descriptor %d holds no set of rules", fd);
	void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return err_sys(e, "the rules");
	int rc = egress_set_decode(p, (size_t)st.st_size, ret, e);
	(void)munmap(p, (size_t)st.st_size);
	return rc;
}

/* The name first, then the address that it has come to, as dialling does. */
static struct egress_verdict judge(const struct conn *c)
{
	const struct egress_set *s = &c->px->set;
	struct egress_verdict v = egress_match_name(s, &c->host, c->port);

	if (!v.allow || v.local || c->host.kind != HOST_NAME || !c->address.family)
		return v;
	struct egress_verdict a = egress_match_address(s, &c->address, c->port, &c->host);
	return a.allow ? v : a;
}

/* What stands was not looked into, and nobody can do that later: it is refused as it is. */
static bool is_unseen(const struct conn *c)
{
	return !c->inspected && !c->exchange && inspect_wanted(c);
}

/* False: it is at its end. */
static bool judge_again(struct conn *c)
{
	struct egress_verdict v = judge(c);

	c->rule = v.rule;
	if (!v.allow || v.local != c->local || (c->dial && !dial_judge(c)))
		conn_say(c, EGRESS_DENY, v.allow ? EGRESS_WHY_DEFAULT : v.reason, v.rule,
			 &c->address);
	else if (is_unseen(c))
		conn_say(c, EGRESS_DENY, EGRESS_WHY_UNSEEN, v.rule, &c->address);
	else if (exchange_judge(c))
		return true;
	conn_end(c, true);
	return false;
}

/* Ended connections stay in memory until the loop has turned, but not in this list. */
static void judge_all(struct proxy *px)
{
	for (struct conn *c = px->first; c;) {
		struct conn *next = c->next;
		if (c->ruled && !c->gone)
			(void)judge_again(c);
		c = next;
	}
}

static int replace(struct proxy *px, const struct egress_order *o, const int *fds, struct err *e)
{
	AUTO_EGRESS_SET set = {0};

	if (rules_read(fds[0], &set, e) < 0 ||
	    (o->count && listen_start(px, o->v, fds + 1, o->count, e) < 0))
		return -1;
	(void)close(fds[0]);
	struct egress_set before = px->set;
	px->set = set;
	set = before; /* released */
	limits_set(px);
	return 0;
}

static void tally(struct proxy *px)
{
	struct egress_event sum = {.kind = EGRESS_BYTES, .rule = -1};

	for (struct conn *c = px->first; c; c = c->next) {
		uint64_t up = 0;
		uint64_t down = 0;
		if (c->opened)
			conn_tally(c, &up, &down);
		sum.up += up;
		sum.down += down;
	}
	if (sum.up || sum.down)
		control_send(&px->control, &sum);
}

static void end_all(struct proxy *px)
{
	for (struct conn *c = px->first; c;) {
		struct conn *next = c->next;
		conn_end(c, true);
		c = next;
	}
}

static void stand_still(struct proxy *px, bool still)
{
	px->still = still;
	for (struct conn *c = px->first; c; c = c->next)
		conn_update(c);
}

int rules_order(struct proxy *px, const struct egress_order *o, const int *fds, struct err *e)
{
	struct egress_event done = {.kind = EGRESS_DONE, .rule = -1, .id = o->number};

	switch ((enum egress_order_kind)o->kind) {
	case EGRESS_ORDER_RULES:
		if (replace(px, o, fds, e) < 0)
			return -1;
		control_send(&px->control, &done);
		judge_all(px);
		return 0;
	case EGRESS_ORDER_TALLY:
		tally(px);
		break;
	case EGRESS_ORDER_RESET:
		end_all(px);
		break;
	case EGRESS_ORDER_STILL:
	case EGRESS_ORDER_GO:
		stand_still(px, o->kind == EGRESS_ORDER_STILL);
		break;
	case EGRESS_ORDERS:
		break;
	}
	control_send(&px->control, &done);
	return 0;
}

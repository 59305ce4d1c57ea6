/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of the rules: how many bytes in all, how many a second, how many connections at
 * once. Bytes are counted where they are read, before anybody gets them, so that many
 * connections together pass no limit either. Of a connection that the rules allow its
 * beginning counts too; of one that they refuse nothing does.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/base.h"
#include "proxy/proxy.h"

/* With a rate: how long nothing is read when it is used up, and what may come at once. */
#define PAUSE_MS 50u
#define BURST_MS 100u
#define MIN_BURST 64u

static bool is_set(const struct limits *l, enum egress_limit what)
{
	return l->rule[what] >= 0;
}

/* What DNS inside asks for is answered by us; a name goes on only where it is dialled. */
static bool is_limited(const struct conn *c)
{
	return c->how != EGRESS_BY_DNS;
}

static uint64_t burst(const struct limits *l)
{
	uint64_t n = l->amount[EGRESS_LIMIT_RATE] / (1000 / BURST_MS);

	return n > MIN_BURST ? n : MIN_BURST;
}

/* What the time since the last look has added. */
static void add_tokens(struct proxy *px)
{
	struct limits *l = &px->limits;
	uint64_t now = proxy_now(px);
	uint64_t ms = now > l->since_ms ? now - l->since_ms : 0;
	uint64_t most = burst(l);

	l->since_ms = now;
	if (ms > BURST_MS)
		ms = BURST_MS;
	if (ms && l->amount[EGRESS_LIMIT_RATE] > UINT64_MAX / (2 * BURST_MS)) {
		l->tokens = most;
		return;
	}
	l->owed += l->amount[EGRESS_LIMIT_RATE] * ms;
	l->tokens += l->owed / 1000;
	l->owed %= 1000;
	if (l->tokens > most)
		l->tokens = most;
}

/* Who comes after the one that has read last is looked at first: each has its turn. */
static void go_on(uv_timer_t *t)
{
	struct proxy *px = t->data;
	uint32_t turn = px->limits.turn;

	add_tokens(px);
	for (int later = 0; later < 2; later++)
		for (struct conn *c = px->first; c; c = c->next)
			if ((c->id >= turn) == later)
				conn_update(c);
}

int limits_take(struct proxy *px, int fd, struct err *e)
{
	struct limits *l = &px->limits;
	struct stat st;

	l->spent = &l->own;
	if (fstat(fd, &st) < 0)
		return err_sys(e, "descriptor %d", fd);
	if (!S_ISREG(st.st_mode))
		return 0;
	if (st.st_size != (off_t)sizeof(*l->spent))
		return err_set(e, ERR_INTERNAL, "descriptor %d holds no counters", fd);
	l->spent = mmap(NULL, sizeof(*l->spent), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return l->spent == MAP_FAILED ? err_sys(e, "descriptor %d", fd) : 0;
}

void limits_begin(struct proxy *px)
{
	(void)uv_timer_init(&px->loop, &px->limits.more);
	px->limits.more.data = px;
	limits_set(px);
}

void limits_set(struct proxy *px)
{
	struct limits *l = &px->limits;

	for (unsigned int i = 0; i < EGRESS_LIMITS; i++) {
		l->rule[i] = egress_limit_find(&px->set, (enum egress_limit)i);
		l->amount[i] = l->rule[i] < 0 ? 0 : px->set.v[l->rule[i]].rule.amount;
	}
	l->tokens = burst(l);
	l->since_ms = proxy_now(px);
}

static bool passes(const struct limits *l, enum egress_limit what, uint64_t n)
{
	return is_set(l, what) && n > l->amount[what];
}

/* What c has had and nobody has counted yet. Returns the limit that it passes, or EGRESS_LIMITS. */
static enum egress_limit charge(struct conn *c)
{
	struct limits *l = &c->px->limits;
	uint64_t *spent[] = {&l->spent->up, &l->spent->down};
	uint64_t n[] = {c->up - c->charged_up, c->down - c->charged_down};

	c->charged_up = c->up;
	c->charged_down = c->down;
	for (int i = 0; i < 2; i++) {
		enum egress_limit what = i == 0 ? EGRESS_LIMIT_UP : EGRESS_LIMIT_DOWN;
		uint64_t left = is_set(l, what) ? l->amount[what] : UINT64_MAX;
		left = left > *spent[i] ? left - *spent[i] : 0;
		if (n[i] > left) { /* not even a small one afterwards */
			*spent[i] += left;
			return what;
		}
		*spent[i] += n[i];
	}
	return EGRESS_LIMITS;
}

/* Nothing could come of a new connection: not one byte is left, or there is no room for it. */
static enum egress_limit find_full(const struct conn *c)
{
	const struct limits *l = &c->px->limits;

	if (is_set(l, EGRESS_LIMIT_UP) && l->spent->up >= l->amount[EGRESS_LIMIT_UP])
		return EGRESS_LIMIT_UP;
	if (is_set(l, EGRESS_LIMIT_DOWN) && l->spent->down >= l->amount[EGRESS_LIMIT_DOWN])
		return EGRESS_LIMIT_DOWN;
	if (!c->counted && passes(l, EGRESS_LIMIT_CONNECTIONS, l->counted + 1))
		return EGRESS_LIMIT_CONNECTIONS;
	return EGRESS_LIMITS;
}

/* Where a pattern lets the sandbox choose it, a name says something to whose name server it goes. */
static bool charge_name(const struct conn *c, const struct egress_verdict *v)
{
	struct limits *l = &c->px->limits;
	const struct egress_rule *r = v->rule < 0 ? NULL : &c->px->set.v[v->rule].rule;
	uint64_t n = strlen(c->host.text);

	if (c->counted || v->local || !r || c->host.kind != HOST_NAME ||
	    !is_set(l, EGRESS_LIMIT_UP) || (r->kind == EGRESS_NAME && !strchr(r->host, '*')))
		return true;
	uint64_t left = l->amount[EGRESS_LIMIT_UP] - l->spent->up;
	l->spent->up += n < left ? n : left;
	return n <= left;
}

bool limit_admit(struct conn *c, struct egress_verdict *v)
{
	struct limits *l = &c->px->limits;
	enum egress_limit full = find_full(c);

	if (full == EGRESS_LIMITS && !charge_name(c, v))
		full = EGRESS_LIMIT_UP;
	if (full == EGRESS_LIMITS)
		full = charge(c);
	if (full != EGRESS_LIMITS) {
		v->reason = EGRESS_WHY_LIMIT;
		v->rule = l->rule[full];
		return false;
	}
	l->counted += !c->counted;
	c->counted = true;
	return true;
}

void limit_leave(struct conn *c)
{
	c->px->limits.counted -= c->counted;
	c->counted = false;
}

size_t limit_room(struct conn *c, size_t n)
{
	struct limits *l = &c->px->limits;

	if (n == 0 || !is_set(l, EGRESS_LIMIT_RATE) || !is_limited(c))
		return n;
	add_tokens(c->px);
	if (l->tokens == 0 && !uv_is_active((uv_handle_t *)&l->more))
		(void)uv_timer_start(&l->more, go_on, PAUSE_MS, 0);
	return l->tokens < n ? (size_t)l->tokens : n;
}

bool limit_took(struct conn *c, enum end from, size_t n)
{
	struct limits *l = &c->px->limits;

	*(from == CLIENT ? &c->up : &c->down) += n;
	if (is_set(l, EGRESS_LIMIT_RATE) && is_limited(c)) {
		l->tokens -= n < l->tokens ? n : l->tokens;
		l->turn = c->id;
	}
	enum egress_limit over = c->counted ? charge(c) : EGRESS_LIMITS;
	if (over == EGRESS_LIMITS)
		return true;
	conn_say(c, EGRESS_DENY, EGRESS_WHY_LIMIT, l->rule[over], &c->address);
	conn_end(c, true);
	return false;
}

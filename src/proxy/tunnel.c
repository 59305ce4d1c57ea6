/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes in both directions: ends, resets and pressure are passed on as they come.
 * What a client sends first is looked at: if it is TLS, the name it asks for has to
 * be the one that was allowed; nothing of it is sent on before. If it is none, what it
 * sends first after each answer is looked at in the same way, for protocols that turn
 * to TLS later.
 */
#include <string.h>

#include "base/base.h"
#include "proxy/clienthello.h"
#include "proxy/proxy.h"

static const struct ops ops;

static bool pending(const struct side *s)
{
	return s->out_len > s->out_at;
}

static size_t want(struct conn *c, enum end from)
{
	const struct side *to = &c->side[other_end(from)];

	if (pending(to))
		return 0;
	if (from == CLIENT && c->guarded)
		return MAX_HELLO_BYTES - c->in_len;
	return MAX_RELAY_BYTES;
}

/* Both have ended and both know: nothing can come any more. */
static void look_for_end(struct conn *c)
{
	const struct side *a = &c->side[CLIENT];
	const struct side *b = &c->side[SERVER];

	if (a->ended && b->ended && !pending(a) && !pending(b))
		conn_end(c, false);
}

static void taken(struct conn *c, enum end by)
{
	(void)by;
	look_for_end(c);
}

static void deny(struct conn *c, enum egress_reason reason)
{
	conn_say(c, EGRESS_DENY, reason, c->rule, NULL);
	conn_end(c, true);
}

/* So often after an answer the head of a record alone makes it TLS; later chance would. */
#define LOOSE_TURNS 16u

/* HELLO_DONE, HELLO_NOT_TLS: the bytes may go on. HELLO_BAD: the connection was denied. */
static enum hello_verdict judge_hello(struct conn *c)
{
	struct hello hello;
	struct host asked;
	enum hello_verdict v = hello_parse((const unsigned char *)c->in, c->in_len, &hello);

	c->watched = v == HELLO_NOT_TLS;
	if (v == HELLO_BAD) {
		deny(c, EGRESS_WHY_MALFORMED);
		return v;
	}
	if (v != HELLO_DONE || !hello.has_sni)
		return v;
	if (host_read(hello.sni, hello.sni_len, &asked) == HOST_GOOD &&
	    strcmp(asked.text, c->host.text) == 0)
		return v;
	deny(c, hello.has_ech ? EGRESS_WHY_ECH : EGRESS_WHY_SNI);
	return HELLO_BAD;
}

/* Sends what was held back; the guard has done its work. */
static bool release(struct conn *c)
{
	size_t n = c->in_len;
	char *in = TAKE(c->in);

	c->guarded = false;
	c->px->held -= c->in_room;
	c->in_len = c->in_room = 0;
	bool alive = n == 0 || conn_send(c, SERVER, in, n);
	free(in);
	return alive;
}

/* The first bytes of a client after an answer, in what was no TLS so far. */
static void watch(struct conn *c, enum end from, const char *p, size_t n)
{
	if (from == SERVER) {
		c->turned = true;
		return;
	}
	if (!c->turned)
		return;
	c->turned = false;
	c->turns += c->turns < LOOSE_TURNS;
	c->guarded = hello_begins((const unsigned char *)p, n, c->turns == LOOSE_TURNS);
}

static void data(struct conn *c, enum end from, const char *p, size_t n)
{
	if (c->watched && !c->guarded)
		watch(c, from, p, n);
	if (from == CLIENT && c->guarded) {
		if (!conn_keep(c, p, n, MAX_HELLO_BYTES)) {
			deny(c, EGRESS_WHY_LIMIT);
			return;
		}
		switch (judge_hello(c)) {
		case HELLO_DONE:
		case HELLO_NOT_TLS:
			if (release(c) && c->ops == &ops)
				conn_deadline(c, TUNNEL_IDLE_MS, true);
			break;
		case HELLO_MORE:
			if (c->in_len == n) /* its first piece */
				conn_deadline(c, HEAD_MS, false);
			break;
		case HELLO_BAD:
			break;
		}
		return;
	}
	(void)conn_send(c, other_end(from), p, n);
}

static void eof(struct conn *c, enum end from)
{
	/* A beginning of TLS that goes nowhere is no TLS. */
	if (from == CLIENT && c->guarded && !release(c))
		return;
	conn_shut(c, other_end(from));
	conn_deadline(c, HALF_IDLE_MS, true);
	look_for_end(c);
}

static void broken(struct conn *c, enum end from)
{
	conn_reset_after(c, other_end(from));
}

static void late(struct conn *c)
{
	if (c->guarded && c->in_len)
		deny(c, EGRESS_WHY_LIMIT);
	else
		conn_end(c, true);
}

static const struct ops ops = {
	.want = want,
	.data = data,
	.eof = eof,
	.broken = broken,
	.late = late,
	.taken = taken,
};

void tunnel_start(struct conn *c)
{
	conn_opened(c);
	c->ops = &ops;
	/* An address has no name that TLS could contradict. */
	c->guarded = c->host.kind == HOST_NAME && !c->local;
	conn_deadline(c, TUNNEL_IDLE_MS, true);
	/* What tunnel_peek() read has been judged there. */
	if (c->in_len && !release(c))
		return;
	if (c->side[CLIENT].ended)
		eof(c, CLIENT);
	conn_update(c);
}

/* Before dialling: a client that is about to name another host is not worth a connection. */
static size_t peek_want(struct conn *c, enum end from)
{
	return from == CLIENT ? MAX_HELLO_BYTES - c->in_len : 0;
}

static void peek_over(struct conn *c)
{
	conn_deadline(c, 0, false);
	c->then(c);
}

static void peek_data(struct conn *c, enum end from, const char *p, size_t n)
{
	(void)from;
	if (!conn_keep(c, p, n, MAX_HELLO_BYTES)) {
		deny(c, EGRESS_WHY_LIMIT);
		return;
	}
	switch (judge_hello(c)) {
	case HELLO_MORE:
		if (c->in_len == n) /* TLS: have it all, but not for ever */
			conn_deadline(c, HEAD_MS, false);
		break;
	case HELLO_DONE:
	case HELLO_NOT_TLS:
		peek_over(c);
		break;
	case HELLO_BAD:
		break;
	}
}

static void peek_eof(struct conn *c, enum end from)
{
	(void)from;
	peek_over(c);
}

static void peek_broken(struct conn *c, enum end from)
{
	(void)from;
	conn_end(c, true);
}

/* Not one byte: a server that speaks first. */
static void peek_late(struct conn *c)
{
	if (c->in_len == 0)
		peek_over(c);
	else
		deny(c, EGRESS_WHY_LIMIT);
}

static const struct ops peeking = {
	.want = peek_want,
	.data = peek_data,
	.eof = peek_eof,
	.broken = peek_broken,
	.late = peek_late,
};

void tunnel_peek(struct conn *c, void (*go)(struct conn *c))
{
	c->ops = &peeking;
	c->then = go;
	conn_deadline(c, HELLO_WAIT_MS, false);
	conn_update(c);
}

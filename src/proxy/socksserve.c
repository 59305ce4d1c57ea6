/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SOCKS5 listener: greeting, request, tunnel.
 */
#include <string.h>

#include "base/base.h"
#include "proxy/proxy.h"
#include "proxy/socks5.h"

static void end_with(struct conn *c, enum socks_reply reply)
{
	unsigned char answer[SOCKS_ANSWER];

	socks_answer(reply, answer);
	if (conn_send(c, CLIENT, answer, sizeof(answer)))
		conn_finish(c);
}

static void refuse(struct conn *c, enum egress_reason reason, enum socks_reply reply)
{
	conn_say(c, EGRESS_DENY, reason, -1, NULL);
	end_with(c, reply);
}

static bool grant(struct conn *c)
{
	unsigned char answer[SOCKS_ANSWER];

	socks_answer(SOCKS_GRANTED, answer);
	return conn_send(c, CLIENT, answer, sizeof(answer));
}

static void dialled(struct conn *c, const struct dial_end *end)
{
	switch (end->what) {
	case DIAL_DENIED:
		end_with(c, SOCKS_DENIED);
		return;
	case DIAL_UNRESOLVED:
		end_with(c, SOCKS_HOST_UNREACHABLE);
		return;
	case DIAL_UNREACHED:
		end_with(c, end->err == ECONNREFUSED  ? SOCKS_REFUSED
			    : end->err == ENETUNREACH ? SOCKS_NET_UNREACHABLE
			    : end->err == ETIMEDOUT   ? SOCKS_TIMED_OUT
						      : SOCKS_HOST_UNREACHABLE);
		return;
	case DIAL_GOOD:
		break;
	}
	if (grant(c))
		tunnel_start(c);
}

/* A name as text, an address as such: both are read by what reads every host here. */
static enum host_bad take_host(const struct socks_request *r, struct host *ret)
{
	struct address a = {.family = r->type == SOCKS_V4 ? 4 : 6};

	if (r->type == SOCKS_NAME)
		return host_read(r->host, r->host_len, ret);
	memcpy(a.b, r->host, r->host_len);
	address_unmap(&a);
	host_of_address(&a, ret);
	return HOST_GOOD;
}

static size_t want(struct conn *c, enum end from)
{
	return from == CLIENT ? MAX_SOCKS_MESSAGE - c->in_len : 0;
}

static void request_data(struct conn *c, enum end from, const char *p, size_t n)
{
	struct socks_request r;
	enum socks_reply reply;
	enum egress_reason reason;

	(void)from;
	if (!conn_keep(c, p, n, MAX_SOCKS_MESSAGE)) {
		conn_end(c, true);
		return;
	}
	enum socks_verdict v = socks_request_parse((unsigned char *)c->in, c->in_len, &r, &reply);
	if (v == SOCKS_MORE)
		return;
	if (v == SOCKS_BAD || c->in_len > r.bytes) {
		refuse(c, EGRESS_WHY_MALFORMED, reply);
		return;
	}
	c->port = r.port;
	if (r.command != SOCKS_CONNECT) {
		refuse(c, EGRESS_WHY_PROTOCOL, SOCKS_NO_COMMAND);
		return;
	}
	if (take_host(&r, &c->host) != HOST_GOOD) {
		refuse(c, EGRESS_WHY_HOST, SOCKS_DENIED);
		return;
	}
	conn_drop_kept(c, c->in_len);
	if (!conn_allowed(c, &reason)) {
		end_with(c, SOCKS_DENIED);
		return;
	}
	if (inspect_wanted(c)) {
		if (grant(c))
			inspect_start(c);
		return;
	}
	c->ops = &ops_waiting;
	conn_deadline(c, 0, false);
	dial_start(c, dialled);
}

static void eof(struct conn *c, enum end from)
{
	(void)from;
	conn_end(c, false);
}

static void broken(struct conn *c, enum end from)
{
	(void)from;
	conn_end(c, true);
}

static void late(struct conn *c)
{
	conn_say(c, EGRESS_DENY, EGRESS_WHY_LIMIT, -1, NULL);
	conn_end(c, true);
}

static const struct ops request_ops = {
	.want = want,
	.data = request_data,
	.eof = eof,
	.broken = broken,
	.late = late,
};

static void greeting_data(struct conn *c, enum end from, const char *p, size_t n)
{
	unsigned char answer[2] = {5, 0};
	size_t bytes = 0;

	(void)from;
	if (!conn_keep(c, p, n, MAX_SOCKS_MESSAGE)) {
		conn_end(c, true);
		return;
	}
	enum socks_verdict v =
		socks_greeting_parse((unsigned char *)c->in, c->in_len, &bytes, &answer[1]);
	if (v == SOCKS_MORE)
		return;
	/* RFC 1928, 3: the client waits for the method. */
	if (v == SOCKS_BAD || c->in_len > bytes) {
		conn_say(c, EGRESS_DENY, EGRESS_WHY_MALFORMED, -1, NULL);
		conn_end(c, true);
		return;
	}
	conn_drop_kept(c, bytes);
	if (!conn_send(c, CLIENT, answer, sizeof(answer)))
		return;
	if (answer[1] != 0) {
		conn_say(c, EGRESS_DENY, EGRESS_WHY_PROTOCOL, -1, NULL);
		conn_finish(c);
		return;
	}
	c->ops = &request_ops;
}

static const struct ops greeting_ops = {
	.want = want,
	.data = greeting_data,
	.eof = eof,
	.broken = broken,
	.late = late,
};

void socks_accepted(struct proxy *px, int fd)
{
	struct conn *c = conn_new(px, fd, EGRESS_BY_SOCKS, &greeting_ops);

	if (!c)
		return;
	conn_deadline(c, HEAD_MS, false);
	conn_update(c);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP listener: reads one head, refuses what is malformed, makes a tunnel for
 * CONNECT and an exchange for all else. Nothing is sent anywhere before the whole
 * head was read and judged.
 */
#include <string.h>
#include <sys/socket.h>

#include "base/base.h"
#include "proxy/proxy.h"

static size_t want(struct conn *c, enum end from)
{
	const struct side *s = &c->side[CLIENT];

	return from == CLIENT && s->out_len == s->out_at ? MAX_HEAD_BYTES - c->in_len : 0;
}

static void refuse(struct conn *c, enum egress_reason reason, unsigned int status, const char *why)
{
	conn_say(c, EGRESS_DENY, reason, -1, NULL);
	answer_bad(c, status, why);
}

static const char granted[] = "HTTP/1.1 200 Connection established\r\n\r\n";

static void connect_dialled(struct conn *c, const struct dial_end *end)
{
	char byte;

	if (end->what == DIAL_DENIED) {
		answer_denied(c, end->reason, end->rule);
		return;
	}
	if (end->what != DIAL_GOOD) {
		answer_failed(c, end);
		return;
	}
	/* RFC 9110, 9.3.6: the client waits for this answer. One that does not is not believed. */
	if (recv(c->side[CLIENT].fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0) {
		conn_detach(c, true);
		refuse(c, EGRESS_WHY_MALFORMED, 400, "bytes after CONNECT, before its answer");
		return;
	}
	if (conn_send(c, CLIENT, granted, sizeof(granted) - 1))
		tunnel_start(c);
}

/* Sets what was asked for. False: it is no host, and that was answered. */
static bool take_host(struct conn *c, const struct http_head *h)
{
	struct host host;
	enum host_bad bad = host_read(h->host.p, h->host.n, &host);

	c->port = h->port;
	if (bad == HOST_GOOD && h->literal6 && !memchr(h->host.p, ':', h->host.n))
		bad = HOST_BRACKETS;
	if (bad != HOST_GOOD) {
		refuse(c, EGRESS_WHY_HOST, 400, host_bad_text(bad));
		return false;
	}
	c->host = host;
	return true;
}

static void take_connect(struct conn *c, size_t head_bytes)
{
	enum egress_reason reason;

	c->how = EGRESS_BY_CONNECT;
	if (c->in_len > head_bytes) {
		refuse(c, EGRESS_WHY_MALFORMED, 400, "bytes after CONNECT, before its answer");
		return;
	}
	conn_drop_kept(c, c->in_len);
	if (!conn_allowed(c, &reason)) {
		answer_denied(c, reason, c->rule);
		return;
	}
	if (inspect_wanted(c)) {
		if (conn_send(c, CLIENT, granted, sizeof(granted) - 1))
			inspect_start(c);
		return;
	}
	c->ops = &ops_waiting;
	conn_deadline(c, 0, false);
	dial_start(c, connect_dialled);
}

/*
 * Is the head worth reading again? When it may have ended in what came since, or has doubled:
 * so a client that sends it byte by byte costs no more than one that does not.
 */
static bool worth(struct conn *c)
{
	size_t from = c->judged > 3 ? c->judged - 3 : 0;
	const char *p = c->in + from;
	size_t n = c->in_len - from;

	return c->in_len >= 2 * c->judged || memmem(p, n, "\n\n", 2) || memmem(p, n, "\n\r\n", 3);
}

/* Under inspection the host is settled, and Host says the same or nothing. */
static bool is_same_host(struct conn *c, const struct http_head *h)
{
	struct host host;

	return h->host.n == 0 || (host_read(h->host.p, h->host.n, &host) == HOST_GOOD &&
				  h->port == c->port && strcmp(host.text, c->host.text) == 0);
}

static enum http_verdict parse(struct conn *c, struct http_head *h, struct http_bad *bad)
{
	if (c->inspected)
		return http_origin_parse(c->in, c->in_len, c->secure ? 443 : 80, h, bad);
	return http_request_parse(c->in, c->in_len, h, bad);
}

static void try_head(struct conn *c)
{
	struct http_head h;
	struct http_bad bad;

	if (!worth(c))
		return;
	c->judged = c->in_len;
	switch (parse(c, &h, &bad)) {
	case HTTP_MORE:
		return;
	case HTTP_BAD:
		refuse(c, bad.mismatch ? EGRESS_WHY_AUTHORITY : EGRESS_WHY_MALFORMED, bad.status,
		       bad.why);
		return;
	case HTTP_DONE:
		break;
	}
	if (c->inspected && !is_same_host(c, &h)) {
		refuse(c, EGRESS_WHY_AUTHORITY, 421, "Host is not the one that was connected to");
		return;
	}
	if (!c->inspected && !take_host(c, &h))
		return;
	if (h.form == HTTP_FORM_CONNECT)
		take_connect(c, h.bytes);
	else
		exchange_start(c, &h);
}

static void data(struct conn *c, enum end from, const char *p, size_t n)
{
	(void)from;
	if (c->in_len == 0)
		conn_deadline(c, HEAD_MS, false);
	if (!conn_keep(c, p, n, MAX_HEAD_BYTES)) {
		conn_end(c, true);
		return;
	}
	try_head(c);
}

static void eof(struct conn *c, enum end from)
{
	(void)from;
	if (c->in_len == 0)
		conn_end(c, false);
	else
		refuse(c, EGRESS_WHY_MALFORMED, 400, "the request ends in its head");
}

static void broken(struct conn *c, enum end from)
{
	(void)from;
	conn_end(c, true);
}

static void late(struct conn *c)
{
	if (c->in_len == 0)
		conn_end(c, false);
	else
		refuse(c, EGRESS_WHY_LIMIT, 408, "the head took too long");
}

/* The response before is with the client: the time for the next request begins. */
static void taken(struct conn *c, enum end by)
{
	if (by == CLIENT && c->in_len == 0)
		conn_deadline(c, KEEP_ALIVE_MS, false);
}

static const struct ops head_ops = {
	.want = want,
	.data = data,
	.eof = eof,
	.broken = broken,
	.late = late,
	.taken = taken,
};

void http_accepted(struct proxy *px, int fd)
{
	struct conn *c = conn_new(px, fd, EGRESS_BY_HTTP, &head_ops);

	if (!c)
		return;
	conn_deadline(c, HEAD_MS, false);
	conn_update(c);
}

void http_next(struct conn *c)
{
	c->ops = &head_ops;
	c->id = ++c->px->last_id;
	c->up = c->down = c->told_up = c->told_down = c->charged_up = c->charged_down = 0;
	c->address = (struct address){.family = 0};
	if (!c->inspected) {
		c->how = EGRESS_BY_HTTP;
		limit_leave(c);
		conn_forget_name(c);
		c->host = (struct host){.kind = HOST_NAME};
	}
	c->rule = -1;
	if (c->side[CLIENT].out_len > c->side[CLIENT].out_at)
		conn_deadline(c, EXCHANGE_IDLE_MS, true); /* a slow reader */
	else
		conn_deadline(c, c->in_len ? HEAD_MS : KEEP_ALIVE_MS, false);
	if (c->in_len)
		try_head(c);
	else if (c->side[CLIENT].ended)
		conn_end(c, false);
	conn_update(c);
}

void http_begin(struct conn *c)
{
	c->ops = &head_ops;
	conn_deadline(c, HEAD_MS, false);
	if (c->in_len)
		try_head(c);
	else if (c->side[CLIENT].ended)
		conn_end(c, false);
	conn_update(c);
}

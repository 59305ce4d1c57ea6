/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request in absolute form and its response, over a connection of its own to
 * the server. So no byte of one request can become part of another: what follows a
 * request on the client's connection is read as a new one, and judged anew.
 *
 * The part of the body that came with the head is checked before anything is
 * dialled. Later parts go on as they were checked; a fault in one resets both sides.
 */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "proxy/proxy.h"

#define MAX_INTERIM 16 /* 1xx responses before the response */

struct exchange {
	struct proxy *px;
	size_t charged;    /* of px->held: room of first and head */
	struct echo *echo; /* a value went up with it; NULL: none */
	uint32_t used;     /* of which secrets: inspect_secrets() */
	struct buf first;  /* head and checked body, as they go to the server */
	enum http_body body;
	uint64_t left; /* HTTP_BODY_LENGTH */
	struct http_chunks chunks;
	bool sent_all; /* the request is complete */
	bool to_head, client_keeps, old_client;
	char *asked; /* under inspection: method, then target, for the log and other rules */
	size_t method_len, target_len;
	bool overrides; /* inspect_overrides() */
	/* the response */
	struct buf head;
	bool answered; /* its head went to the client */
	bool keep;
	unsigned int interim;
	enum http_body reply;
	uint64_t reply_left;
	struct http_chunks reply_chunks;
};

/* A secret's value may be in it. */
static void forget_first(struct buf *first)
{
	if (first->p)
		explicit_bzero(first->p, first->n);
	buf_release(first);
}

void exchange_free(struct exchange *x)
{
	if (!x)
		return;
	forget_first(&x->first);
	buf_release(&x->head);
	x->px->held -= x->charged;
	echo_free(x->echo);
	free(x->asked);
	free(x);
}

/* What it keeps counts with all that is kept of beginnings. False: that is too much. */
static bool charge(struct exchange *x)
{
	size_t now = x->first.cap + x->head.cap;

	if (now > x->charged && now - x->charged > MAX_HELD_BYTES - x->px->held)
		return false;
	x->px->held += now - x->charged;
	x->charged = now;
	return true;
}

static void fail(struct conn *c, unsigned int status, const char *why)
{
	struct exchange *x = c->exchange;

	if (x->answered) {
		conn_reset_after(c, CLIENT);
		return;
	}
	conn_detach(c, true);
	if (status == 400)
		conn_say(c, EGRESS_DENY, EGRESS_WHY_MALFORMED, -1, NULL);
	answer_bad(c, status, why);
}

/* The response is complete: the next request, or the end. */
static void done(struct conn *c)
{
	struct exchange *x = c->exchange;
	bool keep = x->keep && x->sent_all;

	conn_detach(c, !x->sent_all);
	conn_closed(c);
	exchange_free(x);
	c->exchange = NULL;
	if (keep)
		http_next(c);
	else
		conn_finish(c);
}

/* Counts the well-formed part of n bytes of the request's body in *ret_used. */
static bool take_body(struct exchange *x, const char *p, size_t n, size_t *ret_used,
		      struct http_bad *bad)
{
	*ret_used = 0;
	switch (x->body) {
	case HTTP_BODY_LENGTH:
		*ret_used = n < x->left ? n : (size_t)x->left;
		x->left -= *ret_used;
		x->sent_all = x->left == 0;
		return true;
	case HTTP_BODY_CHUNKED:;
		enum http_verdict v = http_chunks_feed(&x->chunks, p, n, ret_used, bad);
		x->sent_all = v == HTTP_DONE;
		return v != HTTP_BAD;
	case HTTP_BODY_NONE:
	case HTTP_BODY_CLOSE:
		x->sent_all = true;
	}
	return true;
}

static size_t want(struct conn *c, enum end from)
{
	const struct exchange *x = c->exchange;
	const struct side *to = &c->side[other_end(from)];

	if (to->out_len > to->out_at)
		return 0;
	if (from == CLIENT) {
		if (x->sent_all)
			return 0;
		/* What follows a chunked body is kept in c->in, which takes a head. */
		if (x->body == HTTP_BODY_CHUNKED)
			return MAX_HEAD_BYTES;
		return x->left < MAX_RELAY_BYTES ? (size_t)x->left : MAX_RELAY_BYTES;
	}
	if (!x->answered)
		return MAX_HEAD_BYTES - x->head.n;
	if (x->reply == HTTP_BODY_LENGTH && x->reply_left < MAX_RELAY_BYTES)
		return (size_t)x->reply_left;
	return MAX_RELAY_BYTES;
}

static void request_data(struct conn *c, const char *p, size_t n)
{
	struct exchange *x = c->exchange;
	struct http_bad bad;
	size_t used;

	if (!take_body(x, p, n, &used, &bad)) {
		fail(c, 400, bad.why);
		return;
	}
	if (used < n && !conn_keep(c, p + used, n - used, MAX_HEAD_BYTES)) {
		conn_end(c, true);
		return;
	}
	(void)conn_send(c, SERVER, p, used);
}

/* The server sends a secret's value back, which the sandbox is not to know. */
static void reveals(struct conn *c)
{
	conn_say(c, EGRESS_DENY, EGRESS_WHY_SECRET, c->rule, &c->address);
	fail(c, 502, "the server's answer holds a secret that was sent to it");
}

/* A part of the body, the last one if it is `over`. False: the connection has ended, or will. */
static bool send_body(struct conn *c, const char *p, size_t n, bool over)
{
	struct echo *echo = c->exchange->echo;
	AUTO_BUF out = BUF_INIT(8 * MAX_RELAY_BYTES);

	if (!echo)
		return n == 0 || conn_send(c, CLIENT, p, n);
	if (echo_feed(echo, p, n, over, &out))
		return out.n == 0 || conn_send(c, CLIENT, out.p, out.n);
	reveals(c);
	return false;
}

static void reply_body(struct conn *c, const char *p, size_t n)
{
	struct exchange *x = c->exchange;
	struct http_bad bad;
	size_t used = n;
	bool over = false;

	switch (x->reply) {
	case HTTP_BODY_NONE:
		used = 0;
		over = true;
		break;
	case HTTP_BODY_LENGTH:
		used = n < x->reply_left ? n : (size_t)x->reply_left;
		x->reply_left -= used;
		over = x->reply_left == 0;
		break;
	case HTTP_BODY_CHUNKED:;
		enum http_verdict v = http_chunks_feed(&x->reply_chunks, p, n, &used, &bad);
		if (v == HTTP_BAD) {
			conn_reset_after(c, CLIENT);
			return;
		}
		over = v == HTTP_DONE;
		break;
	case HTTP_BODY_CLOSE:
		break;
	}
	if (send_body(c, p, used, over) && over)
		done(c);
}

/* Nothing of a response is believed that could make two of it at the client. */
static bool take_reply_head(struct conn *c, const struct http_head *h)
{
	struct exchange *x = c->exchange;
	AUTO_BUF out = BUF_INIT(2 * MAX_HEAD_BYTES);
	bool final = h->status / 100 != 1;

	if (h->status == 101 || (!final && ++x->interim > MAX_INTERIM)) {
		fail(c, 502, "the server's answer is not one to this request");
		return false;
	}
	if (x->old_client && (!final || h->body == HTTP_BODY_CHUNKED)) {
		if (!final)
			return true;
		fail(c, 502, "the server answers HTTP/1.0 with chunks");
		return false;
	}
	if (final && x->asked)
		conn_say_request(c, &(struct request_said){.kind = EGRESS_REQUEST,
							   .rule = c->rule,
							   .method = {x->asked, x->method_len},
							   .target = {x->asked + x->method_len,
								      x->target_len},
							   .status = h->status});
	if (final) {
		x->keep = x->client_keeps && h->body != HTTP_BODY_CLOSE && x->sent_all;
		x->reply = h->body;
		x->reply_left = h->length;
		x->answered = true;
	}
	http_response_write(h, x->keep, &out);
	if (x->echo && echo_finds(x->echo, out.p, out.n)) {
		x->answered = false;
		reveals(c);
		return false;
	}
	if (out.failed) {
		x->answered = false;
		fail(c, 502, "the server's head is too long");
		return false;
	}
	return conn_send(c, CLIENT, out.p, out.n);
}

static void reply_data(struct conn *c, const char *p, size_t n)
{
	struct exchange *x = c->exchange;
	struct http_head h;
	struct http_bad bad;

	if (x->answered) {
		reply_body(c, p, n);
		return;
	}
	if (buf_add(&x->head, p, n) < 0) {
		fail(c, 502, "the server's head is too long");
		return;
	}
	AUTO_BUF head = take_buf(&x->head);
	size_t at = 0;
	while (!x->answered) {
		switch (http_response_parse(head.p + at, head.n - at, x->to_head, &h, &bad)) {
		case HTTP_BAD:
			fail(c, 502, bad.why);
			return;
		case HTTP_MORE:
			if (buf_add(&x->head, head.p + at, head.n - at) < 0 || !charge(x))
				conn_end(c, true);
			return;
		case HTTP_DONE:
			break;
		}
		if (!take_reply_head(c, &h))
			return;
		at += h.bytes;
	}
	reply_body(c, head.p + at, head.n - at);
}

static void data(struct conn *c, enum end from, const char *p, size_t n)
{
	if (from == CLIENT)
		request_data(c, p, n);
	else
		reply_data(c, p, n);
}

static void eof(struct conn *c, enum end from)
{
	const struct exchange *x = c->exchange;

	if (from == CLIENT) /* in the middle of a body */
		conn_end(c, true);
	else if (!x->answered)
		fail(c, 502, "the server ended without an answer");
	else if (x->reply == HTTP_BODY_CLOSE && c->side[from].cut)
		conn_reset_after(c, CLIENT); /* nobody knows whether that was all of it */
	else if (x->reply != HTTP_BODY_CLOSE)
		conn_finish(c); /* cut off; the client sees that by its length */
	else if (send_body(c, "", 0, true))
		done(c);
}

static void broken(struct conn *c, enum end from)
{
	if (from == CLIENT)
		conn_end(c, true);
	else
		fail(c, 502, "the server broke the connection off");
}

static void late(struct conn *c)
{
	fail(c, 504, "the server took too long");
}

static const struct ops ops = {
	.want = want,
	.data = data,
	.eof = eof,
	.broken = broken,
	.late = late,
};

static void send_first(struct conn *c)
{
	AUTO_BUF first = take_buf(&c->exchange->first);

	(void)charge(c->exchange); /* less than before */
	c->ops = &ops;
	conn_deadline(c, EXCHANGE_IDLE_MS, true);
	inspect_say_used(c, c->exchange->used);
	(void)conn_send(c, SERVER, first.p, first.n);
	if (first.p)
		explicit_bzero(first.p, first.n);
}

/* TLS with the server: nothing of the request goes up before it is known who that is. */
static size_t want_none(struct conn *c, enum end from)
{
	(void)c;
	(void)from;
	return 0;
}

static void not_yet(struct conn *c, enum end from, const char *p, size_t n)
{
	(void)from;
	(void)p;
	(void)n;
	conn_end(c, true);
}

static void ended_early(struct conn *c, enum end from)
{
	(void)from;
	fail(c, 502, "the server ended without an answer");
}

static void not_secured(struct conn *c, enum end from)
{
	char why[ERR_MSG_MAX];

	if (from == CLIENT) {
		conn_end(c, true);
		return;
	}
	const struct tls *tls = c->side[SERVER].tls;
	bool denied = tls_failure(tls) == TLS_FAILURE_CERTIFICATE;
	(void)snprintf(why, sizeof(why), "%s",
		       tls_failure(tls) == TLS_FAILURE_NONE ? "the server broke it off"
							    : tls_failure_text(tls));
	conn_detach(c, true);
	if (denied)
		conn_say(c, EGRESS_DENY, EGRESS_WHY_CERTIFICATE, c->rule, &c->address);
	else
		conn_say(c, EGRESS_FAIL, EGRESS_WHY_UNREACHED, c->rule, &c->address);
	answer_insecure(c, denied, why);
}

static void secured(struct conn *c, enum end which)
{
	(void)which;
	conn_opened(c);
	send_first(c);
}

static const struct ops securing = {
	.want = want_none,
	.data = not_yet,
	.eof = ended_early,
	.broken = not_secured,
	.late = late,
	.secured = secured,
	.waits = true,
};

static void secure_server(struct conn *c)
{
	struct tls *tls = tls_for_server(c->px->ways, c->host.text, c->host.kind != HOST_NAME);

	if (!tls) {
		conn_end(c, true);
		return;
	}
	c->ops = &securing;
	conn_deadline(c, HEAD_MS, false);
	(void)conn_secure(c, SERVER, tls);
}

static void dialled(struct conn *c, const struct dial_end *end)
{
	if (end->what == DIAL_DENIED) {
		answer_denied(c, end->reason, end->rule);
		return;
	}
	if (end->what != DIAL_GOOD) {
		answer_failed(c, end);
		return;
	}
	if (c->secure) {
		secure_server(c);
		return;
	}
	conn_opened(c);
	send_first(c);
}

/* For the log, which is written when there is an answer. */
static bool take_asked(struct exchange *x, const struct http_head *h)
{
	x->method_len = h->method.n;
	x->target_len = h->path.n;
	x->overrides = inspect_overrides(h);
	x->asked = malloc(h->method.n + h->path.n);
	if (!x->asked)
		return false;
	memcpy(x->asked, h->method.p, h->method.n);
	memcpy(x->asked + h->method.n, h->path.p, h->path.n);
	return true;
}

/* Moves the head and what is there of the body from c->in to what will be sent. */
static bool take_request(struct conn *c, struct http_head *h, struct exchange *x)
{
	char authority[HOST_PORT_TEXT];
	struct http_bad bad;
	size_t used;

	x->first = BUF_INIT(3 * MAX_HEAD_BYTES);
	x->head = BUF_INIT(MAX_HEAD_BYTES);
	x->body = h->body;
	x->left = h->length;
	x->reply_chunks.response = true;
	x->to_head = http_text_is(h->method, "HEAD");
	x->client_keeps = h->keep_alive;
	x->old_client = h->minor == 0;
	(void)host_port_format(&c->host, c->port, authority);
	if (c->port == (c->secure ? 443 : 80)) /* as clients write it */
		*strrchr(authority, ':') = '\0';
	if ((c->inspected || inspect_wanted(c)) && !take_asked(x, h)) {
		conn_end(c, true);
		return false;
	}
	if (!inspect_secrets(c, h, &x->echo, &x->used)) {
		conn_end(c, true);
		return false;
	}
	/* With a value in it, it is not to grow: no copy stays behind. */
	if (x->echo)
		(void)buf_reserve(&x->first, x->first.max);
	http_request_write(h, authority, &x->first);
	if (!take_body(x, c->in + h->bytes, c->in_len - h->bytes, &used, &bad)) {
		conn_say(c, EGRESS_DENY, EGRESS_WHY_MALFORMED, -1, NULL);
		answer_bad(c, bad.status, bad.why);
		return false;
	}
	(void)buf_add(&x->first, c->in + h->bytes, used);
	if (x->first.failed || !charge(x)) {
		conn_end(c, true);
		return false;
	}
	conn_drop_kept(c, h->bytes + used); /* h is of no use any more */
	return true;
}

bool exchange_judge(struct conn *c)
{
	const struct exchange *x = c->exchange;

	if (x && !x->asked && inspect_wanted(c)) {
		conn_say(c, EGRESS_DENY, EGRESS_WHY_UNSEEN, c->rule, &c->address);
		return false;
	}
	if (!x || !x->asked)
		return true;
	return inspect_again(c, (struct http_text){x->asked, x->method_len},
			     (struct http_text){x->asked + x->method_len, x->target_len},
			     x->overrides);
}

void exchange_start(struct conn *c, struct http_head *h)
{
	enum egress_reason reason;
	struct exchange *x = NULL;

	if (!conn_allowed(c, &reason)) {
		answer_denied(c, reason, c->rule);
		return;
	}
	if (!inspect_request(c, h))
		return;
	x = calloc(1, sizeof(*x));
	if (!x) {
		conn_end(c, true);
		return;
	}
	c->exchange = x;
	x->px = c->px;
	if (!take_request(c, h, x))
		return;
	c->ops = &ops_waiting;
	conn_deadline(c, 0, false);
	dial_start(c, dialled);
}

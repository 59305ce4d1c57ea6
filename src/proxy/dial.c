/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an allowed name to a connected socket. Between the look at an address and
 * connect() there is no other resolution: the very bytes that were checked are
 * dialled, so a name server that answers differently the next time gains nothing.
 */
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/base.h"
#include "proxy/proxy.h"

/* An attempt while there is another address to try; the last one has what is left of all. */
#define ATTEMPT_MS 2000u
#define DIAL_MS 30000u

/* One socket that connects. Its handle closes later than the attempt ends. */
struct attempt {
	uv_poll_t poll;
	struct dial *d;
	int fd;
};

struct dial {
	uv_timer_t timer;
	struct conn *c;
	struct lookup *lookup;
	struct attempt *attempt;
	struct address v[MAX_RESOLVED]; /* those that may be dialled, in this order */
	size_t n, at;
	uint64_t until_ms;
	int err;
};

static void freed(uv_handle_t *h)
{
	free(h->data);
}

/* Ends an attempt; the socket is the caller's, or closed. */
static int attempt_end(struct dial *d, bool keep)
{
	struct attempt *a = d->attempt;
	int fd = -1;

	if (!a)
		return -1;
	d->attempt = NULL;
	a->d = NULL;
	fd = a->fd;
	uv_close((uv_handle_t *)&a->poll, freed);
	if (keep)
		return fd;
	(void)close(fd);
	return -1;
}

void dial_cancel(struct conn *c)
{
	struct dial *d = c->dial;

	if (!d)
		return;
	c->dial = NULL;
	if (d->lookup)
		lookup_forget(d->lookup);
	(void)attempt_end(d, false);
	uv_close((uv_handle_t *)&d->timer, freed);
}

/* Says how it ended; the connection may be gone afterwards. */
static void finish(struct dial *d, enum dialled what, enum egress_reason reason, int rule)
{
	struct conn *c = d->c;
	struct dial_end end = {what, reason, rule, d->err};
	int fd = attempt_end(d, what == DIAL_GOOD);

	if (d->at < d->n)
		c->address = d->v[d->at];
	dial_cancel(c);
	if (what == DIAL_GOOD && !conn_attach(c, fd))
		return;
	if (what == DIAL_UNRESOLVED)
		conn_say(c, EGRESS_FAIL, EGRESS_WHY_UNRESOLVED, c->rule, NULL);
	else if (what == DIAL_UNREACHED)
		conn_say(c, EGRESS_FAIL, EGRESS_WHY_UNREACHED, c->rule, &c->address);
	c->dialled(c, &end);
	conn_update(c);
}

static void next_attempt(struct dial *d);

static void failed(struct dial *d, int err)
{
	(void)attempt_end(d, false);
	d->err = err;
	if (d->at + 1 == d->n || proxy_now(d->c->px) >= d->until_ms) {
		finish(d, DIAL_UNREACHED, EGRESS_WHY_UNREACHED, -1);
		return;
	}
	d->at++;
	next_attempt(d);
}

static void connected(uv_poll_t *poll, int status, int events)
{
	struct attempt *a = poll->data;
	int err = 0;
	socklen_t len = sizeof(err);

	(void)events;
	if (getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		err = errno;
	if (err == 0 && status < 0)
		err = ECONNRESET;
	if (err)
		failed(a->d, err);
	else
		finish(a->d, DIAL_GOOD, EGRESS_WHY_RULE, a->d->c->rule);
}

static void too_late(uv_timer_t *t)
{
	struct dial *d = t->data;

	if (d->n == 0)
		finish(d, DIAL_UNRESOLVED, EGRESS_WHY_UNRESOLVED, -1);
	else
		failed(d, d->err ? d->err : ETIMEDOUT);
}

static socklen_t socket_address(const struct address *a, uint16_t port,
				struct sockaddr_storage *ret)
{
	struct sockaddr_in *four = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)ret;

	memset(ret, 0, sizeof(*ret));
	if (a->family == 4) {
		four->sin_family = AF_INET;
		four->sin_port = htons(port);
		memcpy(&four->sin_addr, a->b, 4);
		return sizeof(*four);
	}
	six->sin6_family = AF_INET6;
	six->sin6_port = htons(port);
	memcpy(&six->sin6_addr, a->b, 16);
	return sizeof(*six);
}

/* 0 or an errno. Also a refusal at once is told by the loop: nothing ends before dial_start() returns. */
static int attempt_start(struct dial *d)
{
	struct sockaddr_storage to;
	const struct address *a = &d->v[d->at];
	socklen_t len = socket_address(a, d->c->port, &to);

	AUTO_FD int fd = socket(a->family == 4 ? AF_INET : AF_INET6,
				SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno;
	if (connect(fd, (struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS)
		return errno;
	struct attempt *one = calloc(1, sizeof(*one));
	if (!one || uv_poll_init(&d->c->px->loop, &one->poll, fd) < 0) {
		free(one);
		return ENOMEM;
	}
	one->poll.data = one;
	one->d = d;
	one->fd = TAKE_FD(fd);
	d->attempt = one;
	(void)uv_poll_start(&one->poll, UV_WRITABLE, connected);
	return 0;
}

static void next_attempt(struct dial *d)
{
	uint64_t now = proxy_now(d->c->px);
	uint64_t left = d->until_ms > now ? d->until_ms - now : 1;

	for (;; d->at++) {
		d->err = attempt_start(d);
		if (d->err == 0 || d->at + 1 == d->n)
			break;
	}
	if (d->err) /* the last one, refused at once */
		left = 0;
	else if (d->at + 1 < d->n && left > ATTEMPT_MS)
		left = ATTEMPT_MS;
	(void)uv_timer_start(&d->timer, too_late, left, 0);
}

static int is_six(const struct address *a)
{
	return a->family == 6;
}

/* Checks each; IPv4 first: a host without a way for IPv6 is more frequent than the other. */
static void resolved(void *self, const struct address *v, size_t n)
{
	struct dial *d = self;
	struct conn *c = d->c;
	struct egress_verdict refused = {.reason = EGRESS_WHY_UNRESOLVED, .rule = -1};
	const struct address *denied = NULL;

	for (int six = 0; six < 2; six++) {
		for (size_t i = 0; i < n; i++) {
			if (is_six(&v[i]) != six)
				continue;
			struct address a = v[i];
			address_unmap(&a);
			struct egress_verdict one =
				egress_match_address(&c->px->set, &a, c->port, &c->host);
			if (one.allow) {
				d->v[d->n++] = a;
			} else if (!denied) {
				refused = one;
				denied = &v[i];
			}
		}
	}
	if (d->n) {
		next_attempt(d);
		return;
	}
	if (!denied) {
		finish(d, DIAL_UNRESOLVED, EGRESS_WHY_UNRESOLVED, -1);
		return;
	}
	conn_say(c, EGRESS_DENY, refused.reason, refused.rule, denied);
	finish(d, DIAL_DENIED, refused.reason, refused.rule);
}

bool dial_judge(const struct conn *c)
{
	const struct dial *d = c->dial;

	for (size_t i = d->at; i < d->n && !c->local && c->host.kind == HOST_NAME; i++)
		if (!egress_match_address(&c->px->set, &d->v[i], c->port, &c->host).allow)
			return false;
	return true;
}

/* Addresses need no resolver; what is dialled then was allowed as it stands. */
static bool known_address(const struct conn *c, struct address *ret)
{
	static const struct address loopback = {4, {127, 0, 0, 1}};

	*ret = c->local ? loopback : c->host.addr;
	return c->local || c->host.kind != HOST_NAME;
}

static void start_later(uv_timer_t *t)
{
	struct dial *d = t->data;
	struct conn *c = d->c;

	if (d->n) {
		next_attempt(d);
		return;
	}
	(void)uv_timer_start(&d->timer, too_late, DIAL_MS, 0);
	if (!resolver_ask(c->px->resolver, c->host.text, resolved, d, &d->lookup))
		finish(d, DIAL_UNRESOLVED, EGRESS_WHY_LIMIT, -1);
}

void dial_start(struct conn *c, void (*done)(struct conn *c, const struct dial_end *end))
{
	struct dial *d = calloc(1, sizeof(*d));

	c->dialled = done;
	if (!d) {
		conn_end(c, true);
		return;
	}
	c->dial = d;
	d->c = c;
	d->until_ms = proxy_now(c->px) + DIAL_MS;
	(void)uv_timer_init(&c->px->loop, &d->timer);
	d->timer.data = d;
	if (known_address(c, &d->v[0]))
		d->n = 1;
	/* Everything begins in the loop, so that nothing can end before this returns. */
	(void)uv_timer_start(&d->timer, start_later, 0, 0);
}

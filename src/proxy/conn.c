/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections: two sockets, what waits to be sent to each, a deadline. Bytes are
 * read into one buffer of the process and go on at once; only what the other side
 * does not take is kept, and then nothing more is read for it. An idle connection
 * has no buffer at all.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/base.h"
#include "proxy/proxy.h"

#define SIOCOUTQ_ 0x5411 /* linux/sockios.h: bytes that were not acknowledged */
#define RESET_LOOK_MS 10u
/* Reads of one side before the others have their turn. */
#define ROUNDS 4
#define ROUNDS_TLS 64 /* of a record at most, which is 16 KiB */
#define SMALL_READ 4096u
#define TLS_ROOM (MAX_RELAY_BYTES / 2) /* of px->scratch for plain text; behind it what is read */
/* A record and its head (RFC 8446, 5.2): what is read may have to wait until it is wanted. */
#define TLS_READ ((size_t)16384 + 256 + 5)

struct poller {
	uv_poll_t poll;
	struct conn *c;
	enum end end;
};

static void ready(uv_poll_t *poll, int status, int events);
static void again(uv_timer_t *t);

static void poller_closed(uv_handle_t *h)
{
	free(h->data);
}

static void handle_closed(uv_handle_t *h)
{
	free(h);
}

static bool side_open(struct conn *c, enum end which, int fd)
{
	struct side *s = &c->side[which];
	struct poller *p = calloc(1, sizeof(*p));
	int one = 1;
	int narrow = NARROW_WINDOW_BYTES;

	*s = (struct side){.fd = -1};
	if (!p || uv_poll_init(&c->px->loop, &p->poll, fd) < 0) {
		free(p);
		(void)close(fd);
		return false;
	}
	/* Every byte goes on at once; urgent data is data like other data. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &one, sizeof(one));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	/* What the kernel keeps for many slow peers is counted for nobody. */
	if (c->px->connections > MAX_WIDE_CONNECTIONS) {
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &narrow, sizeof(narrow));
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &narrow, sizeof(narrow));
	}
	p->c = c;
	p->end = which;
	p->poll.data = p;
	s->poller = p;
	s->fd = fd;
	return true;
}

static void drop_out(struct conn *c, struct side *s)
{
	c->px->kept -= s->out_len - s->out_at;
	free(s->out);
	s->out = NULL;
	s->out_len = s->out_at = 0;
}

/* TLS says its end if the socket takes it at once: what comes after it is nobody's. */
static void say_end(const struct side *s)
{
	const char *p;

	if (!s->tls || s->shut || s->deaf || s->out_len > s->out_at)
		return;
	tls_end(s->tls);
	size_t n = tls_out(s->tls, &p);
	if (n)
		(void)send(s->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void side_close(struct conn *c, enum end which, bool reset)
{
	struct side *s = &c->side[which];
	struct linger now = {1, 0};

	if (s->fd < 0)
		return;
	if (!reset)
		say_end(s);
	drop_out(c, s);
	uv_close((uv_handle_t *)&s->poller->poll, poller_closed);
	if (s->again)
		uv_close((uv_handle_t *)s->again, handle_closed);
	tls_free(s->tls);
	if (reset)
		(void)setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	(void)close(s->fd);
	*s = (struct side){.fd = -1};
}

static void timer_closed(uv_handle_t *h)
{
	struct conn *c = h->data;

	c->px->held -= c->in_room;
	free(c->in);
	free(c);
}

static void timer_fired(uv_timer_t *t)
{
	struct conn *c = t->data;
	uint64_t now = proxy_now(c->px);

	if (c->deadline_ms == 0)
		return;
	if (now < c->deadline_ms)
		(void)uv_timer_start(t, timer_fired, c->deadline_ms - now, 0);
	else
		c->ops->late(c);
}

void conn_deadline(struct conn *c, uint64_t ms, bool idle)
{
	c->idle_ms = idle ? ms : 0;
	c->deadline_ms = ms ? proxy_now(c->px) + ms : 0;
	if (ms)
		(void)uv_timer_start(&c->timer, timer_fired, ms, 0);
	else
		(void)uv_timer_stop(&c->timer);
}

struct conn *conn_new(struct proxy *px, int fd, uint32_t how, const struct ops *ops)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c) {
		(void)close(fd);
		return NULL;
	}
	c->px = px;
	c->ops = ops;
	c->how = how;
	c->rule = -1;
	c->id = ++px->last_id;
	c->side[SERVER].fd = -1;
	px->connections++;
	c->next = px->first;
	if (px->first)
		px->first->prev = c;
	px->first = c;
	(void)uv_timer_init(&px->loop, &c->timer);
	c->timer.data = c;
	if (!side_open(c, CLIENT, fd)) {
		conn_end(c, true);
		return NULL;
	}
	return c;
}

bool conn_attach(struct conn *c, int fd)
{
	if (side_open(c, SERVER, fd))
		return true;
	conn_end(c, true);
	return false;
}

void conn_detach(struct conn *c, bool reset)
{
	side_close(c, SERVER, reset);
}

void conn_end(struct conn *c, bool reset)
{
	if (c->gone)
		return;
	c->gone = true;
	conn_closed(c);
	limit_leave(c);
	c->px->secure -= c->secure;
	dial_cancel(c);
	exchange_free(c->exchange);
	c->exchange = NULL;
	conn_forget_name(c);
	side_close(c, CLIENT, reset);
	side_close(c, SERVER, reset);
	c->px->connections--;
	*(c->prev ? &c->prev->next : &c->px->first) = c->next;
	if (c->next)
		c->next->prev = c->prev;
	uv_close((uv_handle_t *)&c->timer, timer_closed);
}

static size_t wanted(struct conn *c, enum end which)
{
	const struct side *s = &c->side[which];

	if (s->fd < 0 || s->ended || s->broken || c->px->still)
		return 0;
	if (!s->tls)
		return limit_room(c, c->ops->want(c, which));
	/* What it says can make TLS answer by itself (KeyUpdate): not while it takes nothing. */
	if (s->out_len > s->out_at)
		return 0;
	return limit_room(c, tls_is_secured(s->tls) ? c->ops->want(c, which) : SMALL_READ);
}

/* TLS may have what it has already read, of which no socket tells. */
static void look_from_loop(struct conn *c, enum end which)
{
	struct side *s = &c->side[which];

	if (s->tls && tls_has_more(s->tls) && wanted(c, which))
		(void)uv_timer_start(s->again, again, 0, 0);
}

static void update_side(struct conn *c, enum end which)
{
	struct side *s = &c->side[which];

	if (s->fd < 0)
		return;
	look_from_loop(c, which);
	int mask = (s->hung ? 0 : UV_PRIORITIZED) | (wanted(c, which) ? UV_READABLE : 0) |
		   (s->out_len > s->out_at ? UV_WRITABLE : 0);
	if (mask == s->mask)
		return;
	s->mask = mask;
	if (mask)
		(void)uv_poll_start(&s->poller->poll, mask, ready);
	else
		(void)uv_poll_stop(&s->poller->poll);
}

void conn_update(struct conn *c)
{
	if (c->gone)
		return;
	update_side(c, CLIENT);
	update_side(c, SERVER);
}

static void moved(struct conn *c)
{
	if (c->idle_ms)
		c->deadline_ms = proxy_now(c->px) + c->idle_ms;
}

static void side_broken(struct conn *c, enum end which)
{
	c->side[which].broken = true;
	drop_out(c, &c->side[which]);
	c->ops->broken(c, which);
}

/* What could not be sent is lost; what it sent before may still be there to be read. */
static void side_deaf(struct conn *c, enum end which)
{
	struct side *s = &c->side[which];

	s->deaf = true;
	drop_out(c, s);
	if (s->ended)
		side_broken(c, which);
}

static void shut_now(struct conn *c, enum end which)
{
	struct side *s = &c->side[which];

	s->shut_wish = false;
	if (!s->shut && !s->deaf && s->fd >= 0)
		(void)shutdown(s->fd, SHUT_WR); /* fails only if it is reset, which reading tells */
	s->shut = true;
}

static void send_out(struct conn *c, enum end which)
{
	struct side *s = &c->side[which];

	while (s->out_at < s->out_len) {
		ssize_t n = RETRY_EINTR(send(s->fd, s->out + s->out_at, s->out_len - s->out_at,
					     MSG_NOSIGNAL | MSG_DONTWAIT));
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			side_deaf(c, which);
			return;
		}
		s->out_at += (size_t)n;
		c->px->kept -= (size_t)n;
		moved(c);
	}
	drop_out(c, s);
	if (s->shut_wish)
		shut_now(c, which);
	if (c->ops->taken)
		c->ops->taken(c, which);
}

/* Keeps what was not taken. Bounded: nothing is read for a side that has something here. */
static bool keep_out(struct conn *c, struct side *s, const char *p, size_t n)
{
	size_t rest = s->out_len - s->out_at;
	char *room = malloc(rest + n);

	if (!room) {
		conn_end(c, true);
		return false;
	}
	if (rest)
		memcpy(room, s->out + s->out_at, rest);
	memcpy(room + rest, p, n);
	free(s->out);
	s->out = room;
	s->out_at = 0;
	s->out_len = rest + n;
	c->px->kept += n;
	return true;
}

/* To the socket as it is. */
static bool send_raw(struct conn *c, enum end to, const void *p, size_t n)
{
	struct side *s = &c->side[to];
	size_t sent = 0;

	if (s->deaf || s->broken || s->fd < 0)
		return true;
	while (s->out_len == s->out_at && sent < n) {
		ssize_t some = RETRY_EINTR(
			send(s->fd, (const char *)p + sent, n - sent, MSG_NOSIGNAL | MSG_DONTWAIT));
		if (some < 0 && errno != EAGAIN) {
			side_deaf(c, to);
			return !c->gone;
		}
		if (some < 0)
			break;
		sent += (size_t)some;
	}
	return sent == n || keep_out(c, s, (const char *)p + sent, n - sent);
}

/* What TLS has for the peer. False: the connection has ended. */
static bool flush_tls(struct conn *c, enum end to)
{
	struct tls *tls = c->side[to].tls;
	const char *p;
	size_t n = tls_out(tls, &p);

	if (n == 0)
		return true;
	bool alive = send_raw(c, to, p, n);
	if (alive && c->side[to].tls == tls)
		tls_out_clear(tls);
	return alive;
}

bool conn_send(struct conn *c, enum end to, const void *p, size_t n)
{
	struct side *s = &c->side[to];

	if (c->gone)
		return false;
	if (!s->tls)
		return send_raw(c, to, p, n);
	if (s->deaf || s->broken || s->fd < 0)
		return true;
	if (tls_write(s->tls, p, n))
		return flush_tls(c, to);
	conn_end(c, true);
	return false;
}

void conn_shut(struct conn *c, enum end to)
{
	struct side *s = &c->side[to];

	if (s->tls && !s->shut && !s->shut_wish) {
		tls_end(s->tls);
		if (!flush_tls(c, to))
			return;
	}
	if (s->out_len > s->out_at)
		s->shut_wish = true;
	else
		shut_now(c, to);
}

/* One step of a side's TLS. False: nothing more can be done for it now. */
static bool step_tls(struct conn *c, enum end which)
{
	struct side *s = &c->side[which];
	struct tls *tls = s->tls;
	size_t most = wanted(c, which);
	size_t n = 0;

	if (most == 0)
		return false;
	enum tls_step step = tls_step(tls, c->px->scratch, most < TLS_ROOM ? most : TLS_ROOM, &n);
	if (!flush_tls(c, which))
		return false;
	switch (step) {
	case TLS_MORE:
		break;
	case TLS_SECURED:
		if (c->ops->secured)
			c->ops->secured(c, which);
		break;
	case TLS_BYTES:
		c->ops->data(c, which, c->px->scratch, n);
		break;
	case TLS_ENDED:
		s->ended = true;
		c->ops->eof(c, which);
		return false;
	case TLS_FAILED:
		side_broken(c, which);
		return false;
	}
	return !c->gone && s->tls == tls;
}

/* Reads what the socket has for TLS. False: nothing, or that was the end. */
static bool feed_tls(struct conn *c, enum end which)
{
	struct side *s = &c->side[which];
	char *raw = c->px->scratch + TLS_ROOM;
	size_t room = c->px->kept < MAX_KEPT_BYTES_SOFT ? TLS_READ : SMALL_READ;

	room = limit_room(c, room);
	if (room == 0)
		return false;
	ssize_t n = RETRY_EINTR(recv(s->fd, raw, room, MSG_DONTWAIT));
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n > 0) {
		moved(c);
		if (!limit_took(c, which, (size_t)n))
			return false;
		if (tls_feed(s->tls, raw, (size_t)n))
			return true;
		conn_end(c, true);
		return false;
	}
	s->cut = true;
	if (n < 0 || s->deaf || !tls_is_secured(s->tls)) {
		side_broken(c, which);
		return false;
	}
	s->ended = true;
	c->ops->eof(c, which);
	return false;
}

static void read_tls(struct conn *c, enum end which)
{
	struct side *s = &c->side[which];
	const struct tls *tls = s->tls;

	for (int round = 0; round < ROUNDS_TLS && wanted(c, which); round++) {
		bool more = tls_has_more(tls) ? step_tls(c, which) : feed_tls(c, which);
		if (!more || c->gone || s->tls != tls)
			return;
	}
}

static void again(uv_timer_t *t)
{
	struct poller *p = t->data;
	struct conn *c = p->c;

	read_tls(c, p->end);
	conn_update(c);
}

bool conn_secure(struct conn *c, enum end which, struct tls *tls)
{
	struct side *s = &c->side[which];

	s->tls = tls;
	s->again = malloc(sizeof(*s->again));
	if (!s->again || uv_timer_init(&c->px->loop, s->again) < 0 ||
	    (which == CLIENT && c->in_len && !tls_feed(tls, c->in, c->in_len))) {
		conn_end(c, true);
		return false;
	}
	s->again->data = s->poller;
	if (which == CLIENT)
		conn_drop_kept(c, c->in_len);
	conn_update(c); /* the first step is made from the loop */
	return true;
}

static void read_side(struct conn *c, enum end which)
{
	struct side *s = &c->side[which];

	if (s->tls) {
		read_tls(c, which);
		return;
	}
	for (int round = 0; round < ROUNDS; round++) {
		size_t most = wanted(c, which);
		size_t room = c->px->kept < MAX_KEPT_BYTES_SOFT ? MAX_RELAY_BYTES : SMALL_READ;
		if (most == 0)
			return;
		if (most > room)
			most = room;
		ssize_t n = RETRY_EINTR(recv(s->fd, c->px->scratch, most, MSG_DONTWAIT));
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0 || (n == 0 && s->deaf)) {
			side_broken(c, which);
			return;
		}
		moved(c);
		if (n == 0) {
			s->ended = true;
			c->ops->eof(c, which);
			return;
		}
		if (!limit_took(c, which, (size_t)n))
			return;
		c->ops->data(c, which, c->px->scratch, (size_t)n);
		if (c->gone || (size_t)n < most)
			return;
	}
}

/* Nothing is read here now, so that a reset or hang-up is all there can be. */
static void side_hung(struct conn *c, enum end which, bool error)
{
	struct side *s = &c->side[which];

	s->hung = true;
	if (s->ended && error)
		side_broken(c, which);
	else if (!s->ended && which == CLIENT && c->ops->waits)
		conn_end(c, true);
}

static void ready(uv_poll_t *poll, int status, int events)
{
	struct poller *p = poll->data;
	struct conn *c = p->c;
	struct side *s = &c->side[p->end];

	if (status < 0) { /* POLLERR: the loop has stopped the handle */
		s->mask = 0;
		events |= UV_READABLE | UV_WRITABLE;
	}
	if ((events & UV_WRITABLE) && s->out_len > s->out_at)
		send_out(c, p->end);
	if (!c->gone && (events & (UV_READABLE | UV_PRIORITIZED))) {
		if (wanted(c, p->end))
			read_side(c, p->end);
		else if (status < 0 || (events & UV_PRIORITIZED))
			side_hung(c, p->end, status < 0);
	}
	conn_update(c);
}

static size_t want_nothing(struct conn *c, enum end from)
{
	(void)c;
	(void)from;
	return 0;
}

static void end_plainly(struct conn *c)
{
	conn_end(c, false);
}

static void end_broken(struct conn *c, enum end from)
{
	(void)from;
	conn_end(c, true);
}

static void no_data(struct conn *c, enum end from, const char *p, size_t n)
{
	(void)c;
	(void)from;
	(void)p;
	(void)n;
}

static void no_eof(struct conn *c, enum end from)
{
	(void)from;
	conn_end(c, false);
}

/* After the last answer: closing with bytes unread would reset it away. */
static size_t want_waste(struct conn *c, enum end from)
{
	return from == CLIENT && c->up < MAX_RELAY_BYTES * 16 ? MAX_RELAY_BYTES : 0;
}

static void waste_taken(struct conn *c, enum end by)
{
	if (by == CLIENT)
		conn_deadline(c, LINGER_MS, false);
}

static const struct ops finishing = {
	.want = want_waste,
	.data = no_data,
	.eof = no_eof,
	.broken = end_broken,
	.late = end_plainly,
	.taken = waste_taken,
};

void conn_finish(struct conn *c)
{
	if (c->gone)
		return;
	conn_closed(c);
	limit_leave(c);
	c->up = 0;
	conn_detach(c, true);
	c->ops = &finishing;
	conn_shut(c, CLIENT);
	/* A slow reader has its time for what is still here. */
	if (c->side[CLIENT].shut_wish)
		conn_deadline(c, EXCHANGE_IDLE_MS, true);
	else
		conn_deadline(c, LINGER_MS, false);
	if (c->side[CLIENT].ended && c->side[CLIENT].shut)
		conn_end(c, false);
	conn_update(c);
}

static void look_again(struct conn *c);

static const struct ops resetting = {
	.want = want_nothing,
	.data = no_data,
	.eof = no_eof,
	.broken = end_broken,
	.late = look_again,
};

/* Bytes that are still on their way to whoever is there. */
static uint64_t on_the_way(const struct conn *c)
{
	uint64_t sum = 0;

	for (int i = 0; i < 2; i++) {
		const struct side *s = &c->side[i];
		int left = 0;
		if (s->fd < 0 || s->broken || s->deaf)
			continue;
		sum += s->out_len - s->out_at;
		if (ioctl(s->fd, SIOCOUTQ_, &left) == 0 && left > 0)
			sum += (uint64_t)left;
	}
	return sum;
}

static void look_again(struct conn *c)
{
	uint64_t left = on_the_way(c);

	if (left != c->left)
		c->looks = 0; /* it moves */
	c->left = left;
	if (left == 0 || c->looks++ * RESET_LOOK_MS >= LINGER_MS) {
		conn_end(c, true);
		return;
	}
	conn_deadline(c, RESET_LOOK_MS, false);
	conn_update(c);
}

void conn_reset_after(struct conn *c, enum end to)
{
	if (c->gone)
		return;
	if (c->side[other_end(to)].fd >= 0)
		side_close(c, other_end(to), true);
	c->ops = &resetting;
	c->looks = 0;
	look_again(c);
}

bool conn_keep(struct conn *c, const char *p, size_t n, size_t most)
{
	if (n > most - c->in_len)
		return false;
	if (c->in_len + n > c->in_room) {
		size_t room = c->in_room ? c->in_room : 1024;
		while (room < c->in_len + n)
			room *= 2;
		if (room - c->in_room > MAX_HELD_BYTES - c->px->held)
			return false;
		char *in = realloc(c->in, room);
		if (!in)
			return false;
		c->in = in;
		c->px->held += room - c->in_room;
		c->in_room = room;
	}
	memcpy(c->in + c->in_len, p, n);
	c->in_len += n;
	return true;
}

void conn_drop_kept(struct conn *c, size_t n)
{
	c->in_len -= n;
	c->judged = 0;
	if (c->in_len) {
		memmove(c->in, c->in + n, c->in_len);
		return;
	}
	c->px->held -= c->in_room;
	free(c->in);
	c->in = NULL;
	c->in_room = 0;
}

void conn_tally(struct conn *c, uint64_t *ret_up, uint64_t *ret_down)
{
	*ret_up = c->up - c->told_up;
	*ret_down = c->down - c->told_down;
	c->told_up = c->up;
	c->told_down = c->down;
}

void conn_say(struct conn *c, enum egress_event_kind kind, enum egress_reason reason, int rule,
	      const struct address *address)
{
	struct egress_event ev = {
		.kind = kind,
		.how = c->how,
		.reason = reason,
		.rule = rule,
		.port = c->port,
		.id = c->id,
	};

	if (kind == EGRESS_CLOSE)
		conn_tally(c, &ev.up, &ev.down);
	memcpy(ev.host, c->host.text, sizeof(ev.host));
	if (address && address->family)
		(void)address_format(address, ev.address);
	control_send(&c->px->control, &ev);
}

/* n bytes as text; what is longer ends with "…". */
static void take_said(struct http_text t, char *ret, size_t room)
{
	static const char more[] = "…";
	size_t n = t.n < room ? t.n : room - sizeof(more);

	memcpy(ret, t.p, n);
	memcpy(ret + n, more, t.n < room ? 0 : sizeof(more));
}

void conn_say_request(struct conn *c, const struct request_said *what)
{
	const char *query = memchr(what->target.p, '?', what->target.n);
	struct http_text path = {what->target.p,
				 query ? (size_t)(query - what->target.p) : what->target.n};
	struct egress_event ev = {
		.kind = what->kind,
		.how = c->how,
		.reason = what->reason,
		.rule = what->rule,
		.port = c->port,
		.id = c->id,
		.status = what->status,
	};

	memcpy(ev.host, c->host.text, sizeof(ev.host));
	take_said(what->method, ev.method, sizeof(ev.method));
	take_said(path, ev.path, sizeof(ev.path));
	control_send(&c->px->control, &ev);
}

void conn_opened(struct conn *c)
{
	c->opened = true;
	conn_say(c, EGRESS_ALLOW, EGRESS_WHY_RULE, c->rule, &c->address);
}

void conn_closed(struct conn *c)
{
	if (c->opened)
		conn_say(c, EGRESS_CLOSE, EGRESS_WHY_RULE, c->rule, &c->address);
	c->opened = c->ruled = false;
}

void conn_close_all(struct proxy *px)
{
	for (struct conn *c = px->first; c; c = c->next)
		conn_closed(c);
}

/* A synthetic address is the name that it was given out for, whoever speaks of it. */
static bool know_name(struct conn *c)
{
	struct name *n = NULL;

	if (c->host.kind == HOST_NAME)
		return true;
	n = names_find(&c->px->names, &c->host.addr);
	if (!n)
		return address_class(&c->host.addr) != ADDRESS_SYNTHETIC;
	names_hold(&c->px->names, n, proxy_now(c->px));
	c->name = n;
	c->host = n->host;
	return true;
}

void conn_forget_name(struct conn *c)
{
	if (c->name)
		names_drop(&c->px->names, c->name, proxy_now(c->px));
	c->name = NULL;
}

bool conn_allowed(struct conn *c, enum egress_reason *ret_reason)
{
	struct egress_verdict v = {.reason = EGRESS_WHY_SYNTHETIC, .rule = -1};

	if (know_name(c))
		v = egress_match_name(&c->px->set, &c->host, c->port);
	if (v.allow && !limit_admit(c, &v))
		v.allow = false;
	c->address = c->host.kind == HOST_NAME ? (struct address){.family = 0} : c->host.addr;
	c->rule = v.rule;
	c->local = v.allow && v.local;
	c->ruled = v.allow;
	*ret_reason = v.reason;
	if (!v.allow)
		conn_say(c, EGRESS_DENY, v.reason, v.rule, &c->address);
	return v.allow;
}

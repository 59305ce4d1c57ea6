/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptor 4. The other end is the supervisor, whom we believe; what it sends is
 * checked all the same, so that a mistake there is seen here and not later.
 */
#include "proxy/control.h"

#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/base.h"
#include "base/clock.h"

static size_t take_fds(const struct msghdr *msg, int *ret, size_t room)
{
	size_t n = 0;

	for (struct cmsghdr *h = CMSG_FIRSTHDR(msg); h; h = CMSG_NXTHDR((struct msghdr *)msg, h)) {
		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof(fd));
			if (n < room)
				ret[n++] = fd;
			else
				(void)close(fd);
		}
	}
	return n;
}

/* 1: one more message, 0: the last one, -1. */
static int read_message(int fd, struct control_table *t, struct err *e)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(MAX_EGRESS_FDS * sizeof(int))];
	} control;
	struct egress_listener v[MAX_EGRESS_FDS];
	struct iovec iov = {v, sizeof(v)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};

	ssize_t n = RETRY_EINTR(recvmsg(fd, &msg, MSG_CMSG_CLOEXEC));
	if (n < 0)
		return err_sys(e, "the table of listeners");
	size_t got = take_fds(&msg, t->fds + t->n, MAX_LISTENERS - t->n);
	if (n == 1 && got == 0)
		return 0;
	if (n == 0 || (size_t)n % sizeof(v[0]) || (size_t)n / sizeof(v[0]) != got ||
	    (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return err_set(e, ERR_INTERNAL, "the table of listeners is not well-formed");
	for (size_t i = 0; i < got; i++) {
		if (v[i].kind >= EGRESS_LISTENER_KINDS || v[i].port > 65535)
			return err_set(e, ERR_INTERNAL, "a listener of an unknown kind");
		t->v[t->n++] = v[i];
	}
	return 1;
}

int control_read_table(int fd, struct control_table *ret, struct err *e)
{
	int rc = 1;

	ret->n = 0;
	while (rc > 0)
		rc = read_message(fd, ret, e);
	if (rc == 0 && ret->n == 0)
		return err_set(e, ERR_INTERNAL, "a table without listeners");
	return rc;
}

int control_send_ca(int fd, const struct egress_ca *ca, struct err *e)
{
	ssize_t n = RETRY_EINTR(send(fd, ca, sizeof(*ca), MSG_DONTWAIT | MSG_NOSIGNAL));

	return n == (ssize_t)sizeof(*ca) ? 0 : err_sys(e, "the authority's certificate");
}

static bool send_now(const struct control *c, const struct egress_event *ev)
{
	ssize_t n = RETRY_EINTR(send(c->fd, ev, sizeof(*ev), MSG_DONTWAIT | MSG_NOSIGNAL));

	return n >= 0 || (errno != EAGAIN && errno != ENOBUFS);
}

static void flush(struct control *c)
{
	struct egress_event ev;

	while (egress_backlog_next(&c->waits, &ev) && send_now(c, &ev))
		egress_backlog_drop(&c->waits);
}

static void ready(uv_poll_t *poll, int status, int events);

static void wait_for(struct control *c)
{
	(void)uv_poll_start(&c->poll,
			    UV_READABLE | (egress_backlog_waits(&c->waits) ? UV_WRITABLE : 0),
			    ready);
}

/* False: nobody asks any more, or what was said is no order. */
static bool take_order(struct control *c)
{
	struct egress_order o;
	int fds[1 + MAX_EGRESS_ORDER];
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(fds))];
	} control;
	struct iovec iov = {&o, sizeof(o)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};

	ssize_t n = RETRY_EINTR(recvmsg(c->fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT));
	if (n < 0)
		return errno == EAGAIN;
	size_t got = take_fds(&msg, fds, ARRAY_LEN(fds));
	if (n != sizeof(o) || (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ||
	    o.kind >= EGRESS_ORDERS || o.count > MAX_EGRESS_ORDER || !c->order ||
	    got != (o.kind == EGRESS_ORDER_RULES ? 1 + (size_t)o.count : 0))
		return false;
	for (uint32_t i = 0; i < o.count; i++)
		if (o.v[i].kind >= EGRESS_LISTENER_KINDS || o.v[i].port > 65535)
			return false;
	return c->order(c->self, &o, fds);
}

static void ready(uv_poll_t *poll, int status, int events)
{
	struct control *c = poll->data;

	if (status < 0 || ((events & UV_READABLE) && !take_order(c))) {
		uv_stop(poll->loop);
		return;
	}
	flush(c);
	wait_for(c);
}

int control_start(struct control *c, uv_loop_t *loop, int fd, struct err *e)
{
	*c = (struct control){.fd = fd};
	if (uv_poll_init(loop, &c->poll, fd) < 0)
		return err_set(e, ERR_INTERNAL, "descriptor 4 is no socket");
	c->poll.data = c;
	wait_for(c);
	return 0;
}

void control_finish(struct control *c)
{
	uint64_t until = clock_mono_ms() + CONTROL_LAST_MS;
	struct pollfd p = {.fd = c->fd, .events = POLLOUT};

	for (flush(c); egress_backlog_waits(&c->waits); flush(c)) {
		int left = clock_poll_timeout(clock_mono_ms(), until);
		if (left <= 0 || poll(&p, 1, left) <= 0)
			return;
	}
}

void control_send(struct control *c, const struct egress_event *ev)
{
	if (!egress_backlog_waits(&c->waits) && send_now(c, ev))
		return;
	egress_backlog_put(&c->waits, ev);
	wait_for(c);
}

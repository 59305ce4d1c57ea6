/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets that were made inside the sandbox: who connects to them is the
 * sandbox, whatever it says. Accepts until there is nothing, or too much.
 */
#include <sys/socket.h>

#include "base/base.h"
#include "proxy/proxy.h"

#define ROUNDS 32
#define PAUSE_MS 100u

struct listener {
	uv_poll_t poll;
	uv_timer_t pause;
	struct proxy *px;
	int fd;
	struct egress_listener what;
};

static enum egress_how how_of(uint32_t kind)
{
	switch ((enum egress_listener_kind)kind) {
	case EGRESS_HTTP:
		return EGRESS_BY_HTTP;
	case EGRESS_SOCKS:
		return EGRESS_BY_SOCKS;
	case EGRESS_REDIRECT4:
	case EGRESS_REDIRECT6:
		return EGRESS_BY_REDIRECT;
	case EGRESS_LOCAL:
		return EGRESS_BY_LOCAL;
	case EGRESS_DNS_UDP:
	case EGRESS_DNS_TCP:
	case EGRESS_LISTENER_KINDS:
		break;
	}
	return EGRESS_BY_DNS;
}

/* One too many: reset, and said. */
static void turn_away(struct listener *l, int fd)
{
	struct linger now = {1, 0};
	struct egress_event ev = {.kind = EGRESS_DENY,
				  .how = how_of(l->what.kind),
				  .reason = EGRESS_WHY_LIMIT,
				  .rule = -1};

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	(void)close(fd);
	control_send(&l->px->control, &ev);
}

static void hand_on(struct listener *l, int fd)
{
	if (l->px->connections >= l->px->most) {
		turn_away(l, fd);
		return;
	}
	switch ((enum egress_listener_kind)l->what.kind) {
	case EGRESS_DNS_TCP:
		dns_accepted(l->px, fd);
		break;
	case EGRESS_HTTP:
		http_accepted(l->px, fd);
		break;
	case EGRESS_SOCKS:
		socks_accepted(l->px, fd);
		break;
	case EGRESS_REDIRECT4:
	case EGRESS_REDIRECT6:
		redirect_accepted(l->px, fd);
		break;
	case EGRESS_LOCAL:
		local_accepted(l->px, fd, (uint16_t)l->what.port);
		break;
	case EGRESS_DNS_UDP:
	case EGRESS_LISTENER_KINDS:
		(void)close(fd);
		break;
	}
}

static void ready(uv_poll_t *poll, int status, int events);

static void go_on(uv_timer_t *t)
{
	struct listener *l = t->data;

	(void)uv_poll_start(&l->poll, UV_READABLE, ready);
}

/* No descriptor or memory now: not again before some may be free. */
static void pause_for(struct listener *l)
{
	(void)uv_poll_stop(&l->poll);
	(void)uv_timer_start(&l->pause, go_on, PAUSE_MS, 0);
}

static void ready(uv_poll_t *poll, int status, int events)
{
	struct listener *l = poll->data;

	(void)events;
	if (status < 0) {
		pause_for(l);
		return;
	}
	if (l->what.kind == EGRESS_DNS_UDP) {
		dns_datagrams(l->px, l->fd);
		return;
	}
	for (int i = 0; i < ROUNDS; i++) {
		int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			hand_on(l, fd);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			pause_for(l);
		if (errno != ECONNABORTED && errno != EINTR)
			return;
	}
}

static int check_socket(const struct egress_listener *what, int fd, struct err *e)
{
	int type = 0;
	int listens = 0;
	socklen_t len = sizeof(int);
	bool datagrams = what->kind == EGRESS_DNS_UDP;

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) < 0)
		return err_sys(e, "a listener");
	if (type != (datagrams ? SOCK_DGRAM : SOCK_STREAM) || !listens == !datagrams)
		return err_set(e, ERR_INTERNAL, "a listener is not of its kind");
	return 0;
}

int listen_start(struct proxy *px, const struct egress_listener *v, const int *fds, size_t n,
		 struct err *e)
{
	struct listener *all = calloc(n, sizeof(*all));

	if (!all)
		return err_sys(e, "listeners");
	for (size_t i = 0; i < n; i++) {
		struct listener *l = &all[i];
		*l = (struct listener){.px = px, .fd = fds[i], .what = v[i]};
		px->redirects |= v[i].kind == EGRESS_REDIRECT4;
		px->redirects6 |= v[i].kind == EGRESS_REDIRECT6;
		if (check_socket(&v[i], fds[i], e) < 0) {
			free(all);
			return -1;
		}
	}
	/* From here on they belong to the loop, until the process ends. */
	for (size_t i = 0; i < n; i++) {
		struct listener *l = &all[i];
		(void)uv_timer_init(&px->loop, &l->pause);
		l->pause.data = l;
		if (uv_poll_init(&px->loop, &l->poll, l->fd) < 0)
			return err_set(e, ERR_INTERNAL, "a listener cannot be waited for");
		l->poll.data = l;
		(void)uv_poll_start(&l->poll, UV_READABLE, ready);
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * c-ares on libuv: each of its sockets has a poll handle, one timer for all.
 */
#include "proxy/resolve.h"

#include <ares.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

#include "base/base.h"

#define TRY_MS 3000
#define TRIES 2

struct resolver {
	ares_channel channel;
	uv_loop_t *loop;
	uv_timer_t timer;
	struct socket *sockets; /* those that c-ares has now: few */
	size_t lookups;
};

struct socket {
	uv_poll_t poll;
	struct socket *next;
	struct resolver *r;
	ares_socket_t fd;
};

struct lookup {
	struct resolver *r;
	resolved_fn *done;
	void *self;
	struct lookup **owner; /* NULL there once it is over */
};

static void set_timer(struct resolver *r);

static void timer_fired(uv_timer_t *t)
{
	struct resolver *r = t->data;

	ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	set_timer(r);
}

static void set_timer(struct resolver *r)
{
	struct timeval room;
	struct timeval *next = ares_timeout(r->channel, NULL, &room);

	if (!next) {
		(void)uv_timer_stop(&r->timer);
		return;
	}
	uint64_t ms = (uint64_t)next->tv_sec * 1000 + (uint64_t)next->tv_usec / 1000 + 1;
	(void)uv_timer_start(&r->timer, timer_fired, ms, 0);
}

static void socket_ready(uv_poll_t *poll, int status, int events)
{
	struct socket *s = poll->data;
	struct resolver *r = s->r;
	ares_socket_t fd = s->fd;

	/* s may be gone after this */
	ares_process_fd(r->channel, status < 0 || (events & UV_READABLE) ? fd : ARES_SOCKET_BAD,
			status < 0 || (events & UV_WRITABLE) ? fd : ARES_SOCKET_BAD);
	set_timer(r);
}

static void socket_closed(uv_handle_t *h)
{
	free(h->data);
}

static struct socket **find_socket(struct resolver *r, ares_socket_t fd)
{
	struct socket **at = &r->sockets;

	while (*at && (*at)->fd != fd)
		at = &(*at)->next;
	return at;
}

static struct socket *add_socket(struct resolver *r, ares_socket_t fd)
{
	struct socket *s = calloc(1, sizeof(*s));

	if (!s || uv_poll_init(r->loop, &s->poll, fd) < 0) {
		free(s); /* the lookup ends by its time */
		return NULL;
	}
	s->poll.data = s;
	s->r = r;
	s->fd = fd;
	s->next = r->sockets;
	r->sockets = s;
	return s;
}

/* c-ares says which of its sockets it waits for; neither: it is about to close it. */
static void socket_state(void *self, ares_socket_t fd, int readable, int writable)
{
	struct resolver *r = self;
	struct socket **at = find_socket(r, fd);
	struct socket *s = *at;

	if (readable || writable) {
		if (!s)
			s = add_socket(r, fd);
		if (s)
			(void)uv_poll_start(&s->poll,
					    (readable ? UV_READABLE : 0) |
						    (writable ? UV_WRITABLE : 0),
					    socket_ready);
	} else if (s) {
		*at = s->next;
		(void)uv_poll_stop(&s->poll);
		uv_close((uv_handle_t *)&s->poll, socket_closed);
	}
}

int resolver_new(uv_loop_t *loop, struct resolver **ret, struct err *e)
{
	/* The name that was allowed and no other: no search list, no aliases. */
	struct ares_options options = {
		.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
		.timeout = TRY_MS,
		.tries = TRIES,
		.sock_state_cb = socket_state,
	};
	AUTO_FREE struct resolver *r = calloc(1, sizeof(*r));

	if (!r)
		return err_sys(e, "a resolver");
	int rc = ares_library_init(ARES_LIB_INIT_ALL);
	options.sock_state_cb_data = r;
	if (rc == ARES_SUCCESS)
		rc = ares_init_options(&r->channel, &options,
				       ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
					       ARES_OPT_SOCK_STATE_CB);
	if (rc != ARES_SUCCESS)
		return err_set(e, ERR_INTERNAL, "c-ares: %s", ares_strerror(rc));
	r->loop = loop;
	(void)uv_timer_init(loop, &r->timer);
	r->timer.data = r;
	*ret = TAKE(r);
	return 0;
}

static size_t take_addresses(const struct ares_addrinfo *info, struct address *ret)
{
	size_t n = 0;

	for (const struct ares_addrinfo_node *a = info->nodes; a && n < MAX_RESOLVED;
	     a = a->ai_next) {
		struct address one = {.family = 0};
		if (a->ai_family == AF_INET) {
			one.family = 4;
			memcpy(one.b, &((const struct sockaddr_in *)a->ai_addr)->sin_addr, 4);
		} else if (a->ai_family == AF_INET6) {
			one.family = 6;
			memcpy(one.b, &((const struct sockaddr_in6 *)a->ai_addr)->sin6_addr, 16);
		}
		if (one.family)
			ret[n++] = one;
	}
	return n;
}

static void answered(void *self, int status, int timeouts, struct ares_addrinfo *info)
{
	struct lookup *l = self;
	struct address v[MAX_RESOLVED];
	size_t n = status == ARES_SUCCESS && info ? take_addresses(info, v) : 0;

	(void)timeouts;
	if (info)
		ares_freeaddrinfo(info);
	l->r->lookups--;
	if (l->done) {
		*l->owner = NULL;
		l->done(l->self, v, n);
	}
	free(l);
}

bool resolver_ask(struct resolver *r, const char *name, resolved_fn *done, void *self,
		  struct lookup **ret)
{
	struct ares_addrinfo_hints hints = {.ai_family = AF_UNSPEC,
					    .ai_socktype = SOCK_STREAM,
					    .ai_flags = ARES_AI_NOSORT};
	struct lookup *l = r->lookups < MAX_LOOKUPS ? calloc(1, sizeof(*l)) : NULL;

	if (!l)
		return false;
	*l = (struct lookup){r, done, self, ret};
	*ret = l;
	r->lookups++;
	ares_getaddrinfo(r->channel, name, NULL, &hints, answered, l);
	set_timer(r);
	return true;
}

void lookup_forget(struct lookup *l)
{
	l->done = NULL;
}

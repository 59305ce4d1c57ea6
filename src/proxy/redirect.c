/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that a program made to an address, not to a proxy: redirected by the
 * sandbox's netfilter, or to a port of the host's loopback. There is no protocol to
 * answer in, so a denial is a reset.
 */
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/base.h"
#include "proxy/proxy.h"

#define ORIGINAL_DST 80 /* SO_ORIGINAL_DST, IP6T_SO_ORIGINAL_DST: linux/netfilter_ipv4.h, _ipv6 */
#define PORT_TLS 443

static bool take_address(const struct sockaddr_storage *from, struct address *ret,
			 uint16_t *ret_port)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)from;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)from;

	*ret = (struct address){.family = 0};
	if (from->ss_family == AF_INET) {
		ret->family = 4;
		memcpy(ret->b, &four->sin_addr, 4);
		*ret_port = ntohs(four->sin_port);
	} else if (from->ss_family == AF_INET6) {
		ret->family = 6;
		memcpy(ret->b, &six->sin6_addr, 16);
		*ret_port = ntohs(six->sin6_port);
		address_unmap(ret);
	}
	return ret->family != 0;
}

/*
 * Where the client wanted to go: what connection tracking remembers, or, where nothing
 * was rewritten, the address it reached. Neither can be chosen apart from the other.
 */
static bool original(int fd, struct address *ret, uint16_t *ret_port)
{
	struct sockaddr_storage to = {.ss_family = AF_UNSPEC};
	socklen_t len = sizeof(to);
	int family = 0;
	socklen_t family_len = sizeof(family);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &family_len) < 0)
		return false;
	if (getsockopt(fd, family == AF_INET6 ? SOL_IPV6 : SOL_IP, ORIGINAL_DST, &to, &len) == 0)
		return take_address(&to, ret, ret_port);
	len = sizeof(to);
	return getsockname(fd, (struct sockaddr *)&to, &len) == 0 &&
	       take_address(&to, ret, ret_port);
}

static size_t want(struct conn *c, enum end from)
{
	(void)c;
	(void)from;
	return 0;
}

static void data(struct conn *c, enum end from, const char *p, size_t n)
{
	(void)c;
	(void)from;
	(void)p;
	(void)n;
}

static void end(struct conn *c, enum end from)
{
	(void)from;
	conn_end(c, true);
}

static void late(struct conn *c)
{
	conn_end(c, true);
}

const struct ops ops_waiting = {
	.want = want,
	.data = data,
	.eof = end,
	.broken = end,
	.late = late,
	.waits = true,
};

static void dialled(struct conn *c, const struct dial_end *end_of_it)
{
	if (end_of_it->what == DIAL_GOOD)
		tunnel_start(c);
	else
		conn_end(c, true);
}

static void go(struct conn *c)
{
	c->ops = &ops_waiting;
	dial_start(c, dialled);
}

void redirect_accepted(struct proxy *px, int fd)
{
	struct address to;
	enum egress_reason reason;
	struct conn *c = conn_new(px, fd, EGRESS_BY_REDIRECT, &ops_waiting);

	if (!c)
		return;
	if (!original(fd, &to, &c->port) || c->port == 0) {
		conn_say(c, EGRESS_DENY, EGRESS_WHY_SYNTHETIC, -1, NULL);
		conn_end(c, true);
		return;
	}
	host_of_address(&to, &c->host);
	if (!conn_allowed(c, &reason)) {
		conn_end(c, true);
		return;
	}
	if (inspect_wanted(c)) {
		inspect_start(c);
		return;
	}
	/*
	 * On TLS's own port the client speaks first, and what it says is looked at before
	 * dialling. Elsewhere the server may have to: then the look comes later.
	 */
	if (c->port == PORT_TLS && c->name)
		tunnel_peek(c, go);
	else
		go(c);
	conn_update(c);
}

void local_accepted(struct proxy *px, int fd, uint16_t port)
{
	static const char loopback[] = "localhost";
	enum egress_reason reason;
	struct conn *c = conn_new(px, fd, EGRESS_BY_LOCAL, &ops_waiting);

	if (!c)
		return;
	c->port = port;
	if (host_read(loopback, sizeof(loopback) - 1, &c->host) != HOST_GOOD ||
	    !conn_allowed(c, &reason) || !c->local) {
		conn_end(c, true);
		return;
	}
	go(c);
	conn_update(c);
}

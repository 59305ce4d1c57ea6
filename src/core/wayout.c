/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inner end of the way out, with PLAN_EGRESS: addresses that lead to nobody are
 * made local, TCP to them is redirected to sockets that are made here and handed to
 * the front. In init, which has CAP_NET_ADMIN over its own network namespace, after
 * the namespace is there and before capabilities are dropped. Needs socket(2) of
 * families INET, INET6 and NETLINK (ROUTE, NETFILTER), bind(2), listen(2), sendmsg(2).
 *
 * Why it is safe: nothing here leads out. The namespace has loopback only, no route
 * but those to itself; who accepts on the sockets decides what leaves. The plan only
 * supplies ports and prefixes, which the decoder has checked. The command cannot
 * undo it: it has no capability, the filter gives it no netlink but for reading, and
 * the ports are taken before it starts.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/rtnetlink.h>

#include "base/base.h"
#include "core/core.h"
#include "redirect_batch.h"

#define LOOPBACK_INDEX 1 /* lo is made with its namespace, first of all */
#define BACKLOG 512
#define OURS 0x7f000035u /* 127.0.0.53 */
#define LOOPBACK6 0u     /* for [::1] */

/* Sends; the first answer is an error, or that of the message that asks for one. Returns errno. */
static int talk(int fd, const void *message, size_t n)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr e;
		char rest[512];
	} got;

	if (send(fd, message, n, 0) < 0)
		return errno;
	ssize_t len = RETRY_EINTR(recv(fd, &got, sizeof(got), 0));
	if (len < 0)
		return errno;
	return len < (ssize_t)offsetof(typeof(got), rest) || got.head.nlmsg_type != NLMSG_ERROR
		       ? EBADMSG
		       : -got.e.error;
}

/* AnyIP: every address of the prefix is this host's. Returns errno. */
static int add_route(int fd, const struct plan_prefix *p)
{
	size_t n = p->family == 4 ? 4 : 16;
	struct {
		struct nlmsghdr head;
		struct rtmsg r;
		struct rtattr oif;
		uint32_t lo;
		struct rtattr dst;
		uint8_t addr[16];
	} m = {
		.head = {.nlmsg_len = (uint32_t)(offsetof(typeof(m), addr) + n),
			 .nlmsg_type = RTM_NEWROUTE,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK},
		.r = {.rtm_family = p->family == 4 ? AF_INET : AF_INET6,
		      .rtm_dst_len = p->bits,
		      .rtm_table = RT_TABLE_LOCAL,
		      .rtm_protocol = RTPROT_BOOT,
		      .rtm_scope = p->family == 4 ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
		      .rtm_type = RTN_LOCAL},
		.oif = {.rta_len = RTA_LENGTH(sizeof(m.lo)), .rta_type = RTA_OIF},
		.lo = LOOPBACK_INDEX,
		.dst = {.rta_len = (uint16_t)RTA_LENGTH(n), .rta_type = RTA_DST},
	};

	memcpy(m.addr, p->addr, n);
	return talk(fd, &m, m.head.nlmsg_len);
}

/* Sockets that wait to be handed over. */
struct handed {
	struct report r;
	struct report_socket what[MAX_REPORT_SOCKETS];
	int fds[MAX_REPORT_SOCKETS];
};

/* None stays open here: with the proxy's end nobody listens any more. */
static void hand_over(struct handed *h)
{
	size_t n = (size_t)h->r.status;

	memcpy(h->r.text, h->what, n * sizeof(h->what[0]));
	report_fds(&h->r, h->fds, n);
	for (size_t i = 0; i < n; i++)
		(void)close(h->fds[i]);
	h->r.status = 0;
}

static int open_socket(const struct sockaddr *addr, socklen_t len, bool udp)
{
	int type = (udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC | SOCK_NONBLOCK;
	int on = 1;

	AUTO_FD int fd = socket(addr->sa_family, type, 0);
	if (fd < 0)
		return -1;
	/* Of UDP sockets it would let others share the port. */
	if (!udp && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
		return -1;
	if (bind(fd, addr, len) < 0 || (!udp && listen(fd, BACKLOG) < 0))
		return -1;
	return TAKE_FD(fd);
}

static void add(struct handed *h, enum report_socket_kind kind, uint32_t addr, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(addr)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
				   .sin6_port = htons(port),
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	bool v6 = addr == LOOPBACK6;

	int fd = open_socket(v6 ? (void *)&in6 : (void *)&in, v6 ? sizeof(in6) : sizeof(in),
			     kind == SOCKET_DNS_UDP);
	if (fd < 0 && v6 && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL))
		return; /* IPv6 is switched off, for the command too */
	if (fd < 0)
		core_die(STAGE_EGRESS, errno, "listen");
	h->what[h->r.status] = (struct report_socket){kind, port};
	h->fds[h->r.status++] = fd;
	if (h->r.status == MAX_REPORT_SOCKETS)
		hand_over(h);
}

static void route(const struct plan_prefix *p, size_t n)
{
	AUTO_FD int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0)
		core_die(STAGE_EGRESS, errno, "netlink");
	for (size_t i = 0; i < n; i++) {
		int sys = add_route(fd, &p[i]);
		/* IPv6 may be switched off. */
		if (sys && sys != EEXIST && p[i].family == 4)
			core_die(STAGE_EGRESS, sys, "route");
	}
}

/* Returns errno: a kernel without nftables is none of our failures. */
static int redirect(void)
{
	AUTO_FD int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);

	return fd < 0 ? errno : talk(fd, redirect_batch, sizeof(redirect_batch));
}

void wayout_begin(struct core *c)
{
	static const struct plan_prefix synthetic[] = {
		{4, 15, {198, 18}},
		{6, 96, {0xfd, 0x53, 0x61, 0x6e, 0x64, 0x67}},
	};

	route(synthetic, ARRAY_LEN(synthetic));
	if (redirect())
		c->lost |= REPORT_NO_REDIRECT;
}

/* What the plan names; then all is handed over. */
static void open_named(const struct plan_egress *g, struct handed *h)
{
	if (g->prefix_count)
		route(g->prefixes, g->prefix_count);
	for (size_t i = 0; i < g->port_count; i++) {
		add(h, SOCKET_LOCAL, INADDR_LOOPBACK, g->ports[i]);
		add(h, SOCKET_LOCAL, LOOPBACK6, g->ports[i]);
	}
	if (h->r.status)
		hand_over(h);
	report_send(&h->r);
}

void wayout_open(struct core *c)
{
	static const struct {
		enum report_socket_kind kind;
		uint32_t addr;
		uint16_t port;
	} own[] = {
		{SOCKET_DNS_UDP, OURS, 53},      {SOCKET_DNS_TCP, OURS, 53},
		{SOCKET_HTTP, OURS, 3128},       {SOCKET_SOCKS, OURS, 1080},
		{SOCKET_REDIRECT4, OURS, 15001}, {SOCKET_REDIRECT6, LOOPBACK6, 15001},
	};
	struct handed h = {.r = {.kind = REPORT_EGRESS}};

	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (own[i].kind < SOCKET_REDIRECT4 || !(c->lost & REPORT_NO_REDIRECT))
			add(&h, own[i].kind, own[i].addr, own[i].port);
	open_named(&c->p->egress, &h);
}

void wayout_more(struct core *c)
{
	struct handed h = {.r = {.kind = REPORT_EGRESS}};

	open_named(&c->p->egress, &h);
}

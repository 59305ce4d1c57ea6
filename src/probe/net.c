/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows about sockets: services of the host by address, by path and by name,
 * and families that a sandbox has no use for. A connection counts when it is
 * made; what the other side says is printed.
 */
#include "rows.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/vm_sockets.h> /* needs struct sockaddr before it */
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/base.h"
#include "base/num.h"
#include "probe/sys.h"

#define WAIT_MS 700

/* 0 when connected, else -1 with errno. */
static int connect_wait(int fd, const void *addr, socklen_t n)
{
	int err = 0;
	socklen_t len = sizeof(err);
	if (connect(fd, addr, n) == 0)
		return 0;
	if (errno != EINPROGRESS && errno != EAGAIN)
		return -1;
	struct pollfd p = {fd, POLLOUT, 0};
	if (poll(&p, 1, WAIT_MS) <= 0) {
		errno = ETIMEDOUT;
		return -1;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		return -1;
	errno = err;
	return err ? -1 : 0;
}

static void talk(struct finding *f, int fd, const char *what)
{
	char text[64];
	struct pollfd p = {fd, POLLIN, 0};
	(void)send(fd, "probe\n", 6, MSG_NOSIGNAL);
	ssize_t n = poll(&p, 1, WAIT_MS) > 0 ? recv(fd, text, sizeof(text) - 1, 0) : -1;
	if (n > 0) {
		text[n] = '\0';
		note(f, "%s answers %.50s", what, text);
	}
}

static void try_connect(struct finding *f, const char *what, int type, const void *addr,
			socklen_t n, unsigned int refusals)
{
	int family = ((const struct sockaddr *)addr)->sa_family;
	AUTO_FD int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		tried(f, what, -1, BY_NET);
		return;
	}
	int rc = connect_wait(fd, addr, n);
	tried(f, what, rc, refusals);
	if (rc == 0 && type == SOCK_DGRAM)
		(void)send(fd, "probe\n", 6, MSG_NOSIGNAL);
	else if (rc == 0)
		talk(f, fd, what);
}

static void try_ipv4(struct finding *f, const char *what, const char *text, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
	if (inet_pton(AF_INET, text, &in.sin_addr) == 1)
		try_connect(f, what, SOCK_STREAM, &in, sizeof(in), BY_NET);
}

static void row_loopback(struct finding *f)
{
	uint16_t port = (uint16_t)arg_num("port", 0);
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	try_ipv4(f, "127.0.0.1", "127.0.0.1", port);
	try_ipv4(f, "127.1.2.3", "127.1.2.3", port);
	try_ipv4(f, "0.0.0.0", "0.0.0.0", port);
	in6.sin6_addr = in6addr_loopback;
	try_connect(f, "::1", SOCK_STREAM, &in6, sizeof(in6), BY_NET);
	(void)inet_pton(AF_INET6, "::ffff:127.0.0.1", &in6.sin6_addr);
	try_connect(f, "::ffff:127.0.0.1", SOCK_STREAM, &in6, sizeof(in6), BY_NET);
	if (arg("addr"))
		try_ipv4(f, arg("addr"), arg("addr"), port);
}

static void try_datagram(struct finding *f, const char *what, const struct sockaddr_in *to)
{
	AUTO_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		tried(f, what, -1, BY_NET);
		return;
	}
	tried(f, what, sendto(fd, "probe\n", 6, 0, (const struct sockaddr *)to, sizeof(*to)),
	      BY_NET);
}

static void row_call_home(struct finding *f)
{
	char host[64];
	const char *home = arg("home"), *colon = strrchr(home, ':');
	uint64_t port = 0;
	struct err e;
	size_t n = colon ? (size_t)(colon - home) : sizeof(host);
	if (n >= sizeof(host) || num_parse(colon + 1, 1, 65535, &port, &e)) {
		cannot(f, "home is ADDRESS:PORT");
		return;
	}
	(void)memcpy(host, home, n);
	host[n] = '\0';
	try_ipv4(f, "tcp", host, (uint16_t)port);
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	if (inet_pton(AF_INET, host, &to.sin_addr) != 1)
		return;
	try_datagram(f, "udp", &to);
	to.sin_port = htons(53);
	try_datagram(f, "udp 53", &to);
	/* Data in the first segment, without a connect. */
	AUTO_FD int fast = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	to.sin_port = htons((uint16_t)port);
	long rc = sendto(fast, "probe\n", 6, MSG_FASTOPEN | MSG_NOSIGNAL, (struct sockaddr *)&to,
			 sizeof(to));
	if (rc >= 0 || errno != EINPROGRESS)
		tried(f, "tcp fast open", rc, BY_NET | BY_TYPE);
}

/* A path ends with a NUL, an abstract name begins with one: the length is the same. */
static socklen_t unix_address(struct sockaddr_un *ret, const char *name, bool abstract)
{
	size_t n = strlen(name);
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (n + 1 > sizeof(ret->sun_path))
		n = sizeof(ret->sun_path) - 1;
	(void)memcpy(ret->sun_path + abstract, name, n);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
}

static void by_path(struct finding *f, const char *what, int type, const char *path)
{
	struct sockaddr_un un;
	if (strlen(path) >= sizeof(un.sun_path)) {
		note(f, "%s: path too long for a socket", what);
		return;
	}
	socklen_t n = unix_address(&un, path, false);
	try_connect(f, what, type, &un, n, BY_NET | BY_FILE | BY_BUSY);
}

/* The same socket by its path, by other spellings of it and by a handle. */
static void by_all_paths(struct finding *f, int type, const char *path)
{
	char other[PATH_MAX];
	by_path(f, "path", type, path);
	if (join(other, sizeof(other), "/proc/self/root", path))
		by_path(f, "/proc/self/root", type, other);
	if (scratch_path(other, sizeof(other), ".") && symlink(path, other) == 0) {
		by_path(f, "symlink", type, other);
		(void)unlink(other);
	}
	AUTO_FD int handle = open(path, O_PATH | O_CLOEXEC);
	if (handle >= 0) {
		(void)snprintf(other, sizeof(other), "/proc/self/fd/%d", handle);
		by_path(f, "handle", type, other);
	}
}

static void row_unix_path(struct finding *f)
{
	static const char *const known[] = {
		"/run/docker.sock",
		"/var/run/docker.sock",
		"/run/dbus/system_bus_socket",
		"/run/systemd/private",
		"/run/systemd/notify",
		"/run/systemd/journal/stdout",
		"/run/podman/podman.sock",
		"/run/containerd/containerd.sock",
		"/run/user/1000/bus",
		"/tmp/.X11-unix/X0",
		"/run/user/1000/wayland-0",
	};
	if (arg("sock"))
		by_all_paths(f, SOCK_STREAM, arg("sock"));
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		by_path(f, known[i], SOCK_STREAM, known[i]);
	const char *agent = getenv("SSH_AUTH_SOCK");
	if (agent)
		by_path(f, "SSH_AUTH_SOCK", SOCK_STREAM, agent);
}

static void row_unix_dgram(struct finding *f)
{
	struct sockaddr_un un;
	by_all_paths(f, SOCK_DGRAM, arg("dgram"));
	socklen_t n = unix_address(&un, arg("dgram"), false);
	AUTO_FD int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	tried(f, "sendto", sendto(fd, "probe\n", 6, 0, (struct sockaddr *)&un, n),
	      BY_NET | BY_FILE);
	by_path(f, "/dev/log", SOCK_DGRAM, "/dev/log");
	by_path(f, "/run/systemd/journal/socket", SOCK_DGRAM, "/run/systemd/journal/socket");
}

static void row_unix_abstract(struct finding *f)
{
	struct sockaddr_un un;
	socklen_t n = unix_address(&un, arg("abstract"), true);
	try_connect(f, "stream", SOCK_STREAM, &un, n, BY_NET);
	try_connect(f, "dgram", SOCK_DGRAM, &un, n, BY_NET | BY_ABSENCE);
	try_connect(f, "seqpacket", SOCK_SEQPACKET, &un, n, BY_NET);
}

static void row_vsock(struct finding *f)
{
	AUTO_FD int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	tried(f, "socket", fd, BY_NET);
	long high = syscall(SYS_socket, HIGH_BIT | AF_VSOCK, SOCK_STREAM, 0);
	tried(f, "socket high", high, BY_NET);
	if (high >= 0)
		(void)close((int)high);
	int pair[2];
	long rc = socketpair(AF_VSOCK, SOCK_STREAM, 0, pair);
	if (rc < 0 && errno != EOPNOTSUPP)
		tried(f, "socketpair", rc, BY_NET);
	if (fd < 0)
		return;
	struct sockaddr_vm vm = {.svm_family = AF_VSOCK,
				 .svm_cid = VMADDR_CID_HOST,
				 .svm_port = (unsigned int)arg_num("vport", 1)};
	rc = connect_wait(fd, &vm, sizeof(vm));
	note(f, "host: %s", errno_text(rc < 0 ? errno : 0));
}

static void row_families(struct finding *f)
{
	static const struct {
		const char *name;
		int family, type, protocol;
	} sockets[] = {
		{"AF_PACKET", AF_PACKET, SOCK_RAW, 0x0300},
		{"AF_PACKET dgram", AF_PACKET, SOCK_DGRAM, 0x0300},
		{"raw icmp", AF_INET, SOCK_RAW, IPPROTO_ICMP},
		{"raw ip", AF_INET, SOCK_RAW, IPPROTO_RAW},
		{"raw icmp6", AF_INET6, SOCK_RAW, IPPROTO_ICMPV6},
		{"AF_ALG", 38, SOCK_SEQPACKET, 0},
		{"AF_KEY", 15, SOCK_RAW, 2},
		{"AF_BLUETOOTH", 31, SOCK_RAW, 1},
		{"AF_TIPC", 30, SOCK_RDM, 0},
		{"AF_RDS", 21, SOCK_SEQPACKET, 0},
		{"AF_CAN", 29, SOCK_RAW, 1},
		{"AF_XDP", 44, SOCK_RAW, 0},
		{"AF_QIPCRTR", 42, SOCK_DGRAM, 0},
		{"AF_SMC", 43, SOCK_STREAM, 0},
		{"AF_NFC", 39, SOCK_SEQPACKET, 1},
		{"AF_PPPOX", 24, SOCK_STREAM, 0},
		{"AF_AX25", 3, SOCK_SEQPACKET, 0},
	};
	for (size_t i = 0; i < ARRAY_LEN(sockets); i++) {
		AUTO_FD int fd = socket(sockets[i].family, sockets[i].type | SOCK_CLOEXEC,
					sockets[i].protocol);
		tried(f, sockets[i].name, fd, BY_NET);
	}
}

/* A connected TCP socket forgets its peer and takes another, in the network it was made in. */
static void leave_peer(struct finding *f)
{
	struct sockaddr none = {.sa_family = AF_UNSPEC};
	struct sockaddr_in in = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)arg_num("port", 0)),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	tried(f, "disconnect", connect(0, &none, sizeof(none)), BY_FILTER | BY_TYPE);
	int rc = connect_wait(0, &in, sizeof(in));
	judged(f, "connect", rc < 0 ? errno : 0, rc == 0);
	if (rc == 0)
		talk(f, 0, "host");
}

static void send_elsewhere(struct finding *f, const void *addr, socklen_t n, const char *what)
{
	ssize_t rc = sendto(0, "probe\n", 6, MSG_NOSIGNAL, addr, n);
	judged(f, what, rc < 0 ? errno : 0, rc >= 0);
}

/* A descriptor of the process at the other end, and then its descriptors. */
static void steal_from_peer(struct finding *f)
{
	int pidfd = -1;
	socklen_t n = sizeof(pidfd);
	if (getsockopt(0, SOL_SOCKET, 77 /* SO_PEERPIDFD */, &pidfd, &n) < 0)
		return;
	for (int i = 0; i < 3; i++)
		tried(f, "pidfd_getfd of the peer", syscall(NR_pidfd_getfd, pidfd, i, 0),
		      BY_FILTER | BY_ABSENCE);
	(void)close(pidfd);
}

static void row_stdin_socket(struct finding *f)
{
	int family = 0, type = 0;
	socklen_t n = sizeof(int);
	struct sockaddr_un un;
	struct sockaddr_in in = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)arg_num("port", 0)),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (getsockopt(0, SOL_SOCKET, SO_DOMAIN, &family, &n) < 0 ||
	    getsockopt(0, SOL_SOCKET, SO_TYPE, &type, &n) < 0) {
		judged(f, "stdin is no socket", errno, false);
		return;
	}
	if (family == AF_UNIX)
		steal_from_peer(f);
	if (family == AF_UNIX && arg("dgram"))
		send_elsewhere(f, &un, unix_address(&un, arg("dgram"), false), "to a path");
	if (family == AF_UNIX && arg("abstract"))
		send_elsewhere(f, &un, unix_address(&un, arg("abstract"), true), "to a name");
	if (family == AF_INET && type == SOCK_DGRAM)
		send_elsewhere(f, &in, sizeof(in), "to a port");
	if (family == AF_INET && type == SOCK_STREAM)
		leave_peer(f);
	if (f->attempts == 0)
		judged(f, "connected unix socket", EISCONN, false);
}

/* The host must not be able to connect to it. Judged by who comes. */
static void row_listener(struct finding *f)
{
	AUTO_FD int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in in = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)arg_num("port", 0))};
	int on = 1;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&in, sizeof(in)) < 0 || listen(fd, 4) < 0) {
		cannot(f, "cannot listen: %s", errno_text(errno));
		return;
	}
	AUTO_FD int mark =
		arg("mark") ? open(arg("mark"), O_WRONLY | O_CREAT | O_CLOEXEC, 0666) : -1;
	struct pollfd p = {fd, POLLIN, 0};
	bool came = poll(&p, 1, (int)arg_num("hold", 1000)) > 0;
	judged(f, "accept", came ? 0 : ETIMEDOUT, came);
	AUTO_FD int peer = came ? accept4(fd, NULL, NULL, SOCK_CLOEXEC) : -1;
	if (peer >= 0)
		(void)send(peer, "reached\n", 8, MSG_NOSIGNAL);
}

static const struct row rows[] = {
	{"net-02", "host-loopback", row_loopback, 0, "port",
	 "a listener on the host's loopback (--set port=, addr=)"},
	{"call-home", NULL, row_call_home, 0, "home", "TCP and UDP to an address out there"},
	{"net-03", "unix-path", row_unix_path, 0, NULL,
	 "stream sockets of the host by path (--set sock= and the usual ones)"},
	{"unix-dgram", NULL, row_unix_dgram, 0, "dgram", "a datagram socket of the host by path"},
	{"unix-abstract", NULL, row_unix_abstract, 0, "abstract", "abstract sockets of the host"},
	{"vsock", NULL, row_vsock, 0, NULL, "AF_VSOCK to the machine below"},
	{"socket-families", NULL, row_families, 0, NULL, "raw, packet and rare socket families"},
	{"stdin-socket", NULL, row_stdin_socket, 0, NULL,
	 "a socket as stdin that takes another peer (--set port=, dgram=, abstract=)"},
	{"net-14", "listener", row_listener, 0, "port", "listens and waits for the host to come"},
};
const struct row_table rows_net = {rows, ARRAY_LEN(rows)};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sandbox must leave in working order, part one: processes, sockets,
 * events. An attempt that fails is BROKEN.
 */
#include "rows.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/base.h"
#include "probe/sys.h"

static volatile long shared_word = 0x5a5a;

/* A child that waits to be looked at. */
static pid_t waiting_child(void)
{
	pid_t parent = getpid();
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	shared_word = 0xc0de;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent)
		pause_ms(10000);
	_exit(0);
}

static void end_child(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

static void works_ptrace(struct finding *f)
{
	int status = 0;
	pid_t pid = waiting_child();
	if (!expect(f, "fork", pid > 0))
		return;
	pause_ms(20);
	expect(f, "attach", ptrace(PTRACE_ATTACH, pid, NULL, NULL) == 0);
	expect(f, "stop", waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
	errno = 0;
	long word = ptrace(PTRACE_PEEKDATA, pid, (void *)(uintptr_t)&shared_word, NULL);
	expect(f, "peek", errno == 0 && (word & 0xffff) == 0xc0de);
	expect(f, "poke",
	       ptrace(PTRACE_POKEDATA, pid, (void *)(uintptr_t)&shared_word, (void *)7L) == 0);
	expect(f, "detach", ptrace(PTRACE_DETACH, pid, NULL, NULL) == 0);
	end_child(pid);
}

static void works_vm_readv(struct finding *f)
{
	long word = 0;
	struct iovec here = {&word, sizeof(word)};
	struct iovec there = {(void *)(uintptr_t)&shared_word, sizeof(word)};
	pid_t pid = waiting_child();
	pause_ms(20);
	ssize_t n = syscall(SYS_process_vm_readv, pid, &here, 1L, &there, 1L, 0L);
	expect(f, "process_vm_readv", n == (ssize_t)sizeof(word) && word == 0xc0de);
	word = 9;
	n = syscall(SYS_process_vm_writev, pid, &here, 1L, &there, 1L, 0L);
	expect(f, "process_vm_writev", n == (ssize_t)sizeof(word));
	end_child(pid);
}

static void works_processes(struct finding *f)
{
	const char *const argv[] = {"sh", "-c", "echo up; (exit 3)", NULL};
	char out[64];
	int status = run_program(argv, -1, out, sizeof(out));
	expect(f, "sh", status >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == 3);
	expect(f, "output", strcmp(out, "up\n") == 0);
	pid_t pid = waiting_child();
	expect(f, "setpgid", setpgid(pid, pid) == 0);
	long pidfd = syscall(NR_pidfd_open, pid, 0);
	expect(f, "pidfd_open", pidfd >= 0);
	expect(f, "stop", kill(pid, SIGSTOP) == 0 && waitpid(pid, &status, WUNTRACED) == pid);
	expect(f, "continue", kill(-pid, SIGCONT) == 0);
	expect(f, "pidfd_send_signal",
	       syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) == 0);
	expect(f, "wait", waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	cpu_set_t cpus;
	expect(f, "affinity",
	       sched_getaffinity(0, sizeof(cpus), &cpus) == 0 &&
		       sched_setaffinity(0, sizeof(cpus), &cpus) == 0);
	expect(f, "nice", nice(1) != -1);
	expect(f, "personality", personality(0xffffffff) != -1);
	expect(f, "setsid", setsid() > 0);
}

static int thread_main(void *arg)
{
	*(volatile int *)arg = 42;
	return 0;
}

/* The flags that C libraries make threads with. */
static void works_thread(struct finding *f)
{
	static char stack[65536] __attribute__((aligned(16)));
	volatile int seen = 0;
	int flags =
		CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
	int rc = clone(thread_main, stack + sizeof(stack), flags, (void *)(uintptr_t)&seen);
	expect(f, "clone", rc > 0);
	for (int i = 0; i < 200 && seen != 42; i++)
		pause_ms(5);
	expect(f, "thread", seen == 42);
}

static void works_filter(struct finding *f)
{
	struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog prog = {ARRAY_LEN(code), code};
	expect(f, "no new privileges", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	expect(f, "prctl", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0) == 0);
	expect(f, "seccomp", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) == 0);
}

static void exchange(struct finding *f, const char *what, int a, int b)
{
	char byte = 0;
	expect(f, what, write(a, "x", 1) == 1 && read(b, &byte, 1) == 1 && byte == 'x');
}

static void works_socketpair(struct finding *f)
{
	int pair[2];
	if (!expect(f, "stream", socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0))
		return;
	exchange(f, "talk", pair[0], pair[1]);
	struct iovec iov = {(char[]){"f"}, 1};
	union {
		char raw[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} ctl = {0};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = ctl.raw,
			     .msg_controllen = sizeof(ctl.raw)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	(void)memcpy(CMSG_DATA(c), &pair[0], sizeof(int));
	expect(f, "send descriptor", sendmsg(pair[0], &msg, 0) == 1);
	expect(f, "receive descriptor", recvmsg(pair[1], &msg, 0) == 1 && CMSG_FIRSTHDR(&msg));
	expect(f, "dgram", socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
	expect(f, "seqpacket", socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
}

static void serve_and_call(struct finding *f, const char *what, const void *addr, socklen_t n)
{
	int family = ((const struct sockaddr *)addr)->sa_family;
	AUTO_FD int server = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	AUTO_FD int client = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	union {
		struct sockaddr head;
		struct sockaddr_storage room;
	} bound = {0};
	socklen_t len = sizeof(bound);
	char text[MAX_WHAT];
	(void)snprintf(text, sizeof(text), "%s listen", what);
	if (!expect(f, text, bind(server, addr, n) == 0 && listen(server, 1) == 0))
		return;
	if (family == AF_UNIX) {
		(void)memcpy(&bound, addr, n);
		len = n;
	} else if (getsockname(server, &bound.head, &len) < 0) {
		return;
	}
	(void)snprintf(text, sizeof(text), "%s connect", what);
	expect(f, text, connect(client, &bound.head, len) == 0);
	AUTO_FD int peer = accept4(server, NULL, NULL, SOCK_CLOEXEC);
	exchange(f, what, client, peer);
}

static void works_unix(struct finding *f)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	char path[sizeof(un.sun_path)];
	int n = snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "sandglass-probe.%d",
			 (int)getpid());
	serve_and_call(f, "abstract", &un,
		       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n));
	if (!scratch_path(path, sizeof(path), scratch_dir())) {
		cannot(f, "TMPDIR is too long for a socket");
		return;
	}
	(void)memcpy(un.sun_path, path, sizeof(path));
	serve_and_call(f, "path", &un, sizeof(un));
	(void)unlink(path);
}

static void works_localhost(struct finding *f)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	serve_and_call(f, "127.0.0.1", &in, sizeof(in));
	in.sin_addr.s_addr = htonl(INADDR_ANY);
	serve_and_call(f, "0.0.0.0", &in, sizeof(in));
	AUTO_FD int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	in.sin_port = 0;
	socklen_t n = sizeof(in);
	char byte = 0;
	expect(f, "udp",
	       bind(udp, (struct sockaddr *)&in, sizeof(in)) == 0 &&
		       getsockname(udp, (struct sockaddr *)&in, &n) == 0 &&
		       sendto(udp, "x", 1, 0, (struct sockaddr *)&in, n) == 1 &&
		       recv(udp, &byte, 1, 0) == 1);
	if (access("/proc/net/if_inet6", R_OK) < 0)
		return; /* a kernel without it */
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	serve_and_call(f, "::1", &in6, sizeof(in6));
}

static void works_low_port(struct finding *f)
{
	static const uint16_t ports[] = {80, 443, 22, 1};
	for (size_t i = 0; i < ARRAY_LEN(ports); i++) {
		char what[MAX_WHAT];
		struct sockaddr_in in = {.sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
					 .sin_port = htons(ports[i])};
		(void)snprintf(what, sizeof(what), "port %u", ports[i]);
		serve_and_call(f, what, &in, sizeof(in));
	}
}

/* What getifaddrs() asks. */
static void works_route(struct finding *f)
{
	AUTO_FD int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct {
		struct nlmsghdr head;
		struct rtgenmsg gen;
	} ask = {{sizeof(ask), RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 1, 0}, {AF_UNSPEC}};
	char answer[4096];
	expect(f, "socket", fd >= 0);
	expect(f, "ask", send(fd, &ask, sizeof(ask), 0) == (ssize_t)sizeof(ask));
	expect(f, "answer", recv(fd, answer, sizeof(answer), 0) > (ssize_t)sizeof(ask));
}

static void works_events(struct finding *f)
{
	uint64_t one = 1;
	AUTO_FD int event = eventfd(0, EFD_CLOEXEC);
	AUTO_FD int poller = epoll_create1(EPOLL_CLOEXEC);
	AUTO_FD int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	struct epoll_event ev = {.events = EPOLLIN};
	expect(f, "eventfd", write(event, &one, sizeof(one)) == (ssize_t)sizeof(one));
	expect(f, "epoll",
	       epoll_ctl(poller, EPOLL_CTL_ADD, event, &ev) == 0 &&
		       epoll_wait(poller, &ev, 1, 100) == 1);
	struct itimerspec soon = {.it_value = {0, 1000000}};
	expect(f, "timerfd",
	       timerfd_settime(timer, 0, &soon, NULL) == 0 &&
		       read(timer, &one, sizeof(one)) == (ssize_t)sizeof(one));
	sigset_t set;
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGUSR1);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	AUTO_FD int signals = signalfd(-1, &set, SFD_CLOEXEC);
	struct signalfd_siginfo info;
	(void)kill(getpid(), SIGUSR1);
	expect(f, "signalfd", read(signals, &info, sizeof(info)) == (ssize_t)sizeof(info));
	AUTO_FD int watch = inotify_init1(IN_CLOEXEC);
	char path[4096], text[512];
	AUTO_FD int dir = inotify_add_watch(watch, scratch_dir(), IN_CREATE);
	AUTO_FD int made = scratch_file(path, sizeof(path), scratch_dir());
	dir = -1; /* a watch, not a descriptor */
	expect(f, "inotify", made >= 0 && read(watch, text, sizeof(text)) > 0);
	(void)unlink(path);
}

static const struct row rows[] = {
	{"works-ptrace", NULL, works_ptrace, ROW_WORKS, NULL, "ptrace of an own child"},
	{"works-vm-readv", NULL, works_vm_readv, ROW_WORKS, NULL,
	 "process_vm_readv of an own child"},
	{"works-processes", NULL, works_processes, ROW_WORKS, NULL,
	 "fork, exec, groups, signals, pidfd, affinity, personality"},
	{"works-thread", NULL, works_thread, ROW_WORKS, NULL, "threads by clone"},
	{"works-filter", NULL, works_filter, ROW_WORKS, NULL, "a seccomp filter of its own"},
	{"works-socketpair", NULL, works_socketpair, ROW_WORKS, NULL,
	 "socket pairs, descriptors passed over them"},
	{"works-unix", NULL, works_unix, ROW_WORKS, NULL, "own Unix sockets by path and by name"},
	{"works-localhost", NULL, works_localhost, ROW_WORKS, NULL, "TCP and UDP on localhost"},
	{"works-low-port", NULL, works_low_port, ROW_WORKS, NULL,
	 "listens on ports 80, 443, 22, 1"},
	{"works-route", NULL, works_route, ROW_WORKS, NULL, "asks for the network interfaces"},
	{"works-events", NULL, works_events, ROW_WORKS, NULL,
	 "eventfd, epoll, timerfd, signalfd, inotify"},
};
const struct row_table rows_works = {rows, ARRAY_LEN(rows)};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proxy's confinement, from inside: a child confines itself and then tries what
 * a taken-over proxy would try. The control is the same child before.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "proxy/confine.h"
#include "test_base_suite.h"

static bool opens(const char *path, int flags)
{
	AUTO_FD int fd = open(path, flags, 0600);

	return fd >= 0;
}

static bool has_socket(int family, int type)
{
	AUTO_FD int fd = socket(family, type, 0);

	return fd >= 0;
}

static bool listens(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET};
	AUTO_FD int fd = socket(AF_INET, SOCK_STREAM, 0);

	return fd >= 0 && bind(fd, (struct sockaddr *)&any, sizeof(any)) == 0 && listen(fd, 1) == 0;
}

static bool forks(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return pid > 0 && waitpid(pid, NULL, 0) == pid;
}

static bool runs(void)
{
	char *argv[] = {(char *)(uintptr_t) "true", NULL};

	/* Not to be found: the call is refused, or fails later, by its error. */
	(void)execve("/proc/none/true", argv, argv + 1);
	return errno == ENOENT;
}

static bool maps_code(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p != MAP_FAILED;
}

static bool kills(void)
{
	return kill(getppid(), 0) == 0;
}

static bool signals_another(void)
{
	return syscall(SYS_tgkill, getppid(), getppid(), 0) == 0;
}

static bool signals_itself(void)
{
	return syscall(SYS_tgkill, getpid(), gettid(), 0) == 0;
}

static bool has_signals_sent(void)
{
	int p[2];

	if (pipe(p) < 0)
		return false;
	bool can = fcntl(p[0], F_SETOWN, getppid()) == 0;
	return close(p[0]) == 0 && close(p[1]) == 0 && can;
}

static bool makes_namespace(void)
{
	return unshare(CLONE_NEWUSER) == 0 || unshare(CLONE_FILES) == 0;
}

static bool reads_secret(void)
{
	return opens("/etc/passwd", O_RDONLY);
}

static bool reads_proc(void)
{
	return opens("/proc/self/environ", O_RDONLY);
}

static bool writes(void)
{
	return opens("/dev/null", O_WRONLY);
}

static bool creates(void)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/tmp/sandglass-confine.%d", (int)getpid());
	bool made = opens(path, O_RDWR | O_CREAT);
	(void)unlink(path);
	return made;
}

static bool lists(void)
{
	return opens("/etc", O_RDONLY | O_DIRECTORY);
}

static bool unix_socket(void)
{
	return has_socket(AF_UNIX, SOCK_STREAM);
}

static bool netlink(void)
{
	return has_socket(AF_NETLINK, SOCK_RAW);
}

static bool changes_limit(void)
{
	struct rlimit now;

	return getrlimit(RLIMIT_NPROC, &now) == 0 && setrlimit(RLIMIT_NPROC, &now) == 0;
}

static bool reads_memory(void)
{
	char byte;
	struct iovec to = {&byte, 1};
	struct iovec from = {(void *)(uintptr_t)&forks, 1};

	return syscall(SYS_process_vm_readv, getpid(), &to, 1, &from, 1, 0) == 1;
}

static bool links(void)
{
	return symlink("x", "/proc/none/y") < 0 && errno == ENOENT;
}

static bool sends_to_the_world(void)
{
	return has_socket(AF_INET, SOCK_STREAM) && has_socket(AF_INET6, SOCK_DGRAM);
}

static bool reads_hosts(void)
{
	return opens("/etc/hosts", O_RDONLY);
}

/* What is lost, and what is kept. */
static const struct {
	const char *name;
	bool (*can)(void);
	bool kept;
} rows[] = {
	{"read /etc/passwd", reads_secret, false},
	{"read /proc/self/environ", reads_proc, false},
	{"write a device", writes, false},
	{"make a file", creates, false},
	{"open a directory", lists, false},
	{"make a link", links, false},
	{"a unix socket", unix_socket, false},
	{"a netlink socket", netlink, false},
	{"listen", listens, false},
	{"fork", forks, false},
	{"execve", runs, false},
	{"map code", maps_code, false},
	{"kill", kills, false},
	{"tgkill another", signals_another, false},
	{"have signals sent", has_signals_sent, false},
	{"tgkill itself", signals_itself, true},
	{"a namespace", makes_namespace, false},
	{"change a limit", changes_limit, false},
	{"read a process's memory", reads_memory, false},
	{"sockets of IPv4 and IPv6", sends_to_the_world, true},
	{"read /etc/hosts", reads_hosts, true},
};

/* A bit for each row that can be done. The child says it by a pipe: assertions are the parent's. */
static uint32_t tried(void)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		bits |= (uint32_t)rows[i].can() << i;
	return bits;
}

struct found {
	uint32_t before, after;
	int rc;
	unsigned int fds; /* of the four that were open, a bit each */
	struct err e;
};

static void be_child(int out, int parent)
{
	static struct found f;
	int keep[] = {out, 0};
	int fds[4];

	/* Two before and two after, of which one is kept. */
	for (int i = 0; i < 4; i++)
		fds[i] = fcntl(out, F_DUPFD, 20 + 10 * i);
	keep[1] = fds[2];
	f.before = tried();
	f.rc = confine_descriptors(keep, 2, &f.e);
	for (int i = 0; i < 4; i++)
		f.fds |= (unsigned int)(fcntl(fds[i], F_GETFD) >= 0) << i;
	if (f.rc == 0)
		f.rc = confine(parent, &f.e);
	f.after = tried();
	(void)write(out, &f, sizeof(f));
	_exit(0);
}

static struct found confined(int parent)
{
	static struct found f;
	int p[2];

	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		be_child(p[1], parent);
	(void)close(p[1]);
	ck_assert_int_eq(read(p[0], &f, sizeof(f)), (ssize_t)sizeof(f));
	(void)close(p[0]);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	return f;
}

START_TEST(nothing_but_sockets_and_names)
{
	struct found f = confined(getpid());

	ck_assert_msg(f.rc == 0, "%s", f.e.msg);
	ck_assert_uint_eq(f.fds, 1u << 2);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool before = f.before >> i & 1;
		bool after = f.after >> i & 1;
		/* Some hosts lack one or the other from the beginning. */
		if (strcmp(rows[i].name, "a namespace") != 0)
			ck_assert_msg(before, "control: %s", rows[i].name);
		ck_assert_msg(after == rows[i].kept, "%s", rows[i].name);
	}
}
END_TEST

START_TEST(not_without_its_parent)
{
	struct found f = confined(1 << 30);

	ck_assert_int_eq(f.rc, -1);
	ck_assert_int_eq(f.e.code, ERR_CANCELLED);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("proxy_confine");
	TCase *tc = tcase_create("all");

	suite_add_tcase(suite, tc);
	tcase_add_test(tc, nothing_but_sockets_and_names);
	tcase_add_test(tc, not_without_its_parent);
	return suite_run(suite);
}

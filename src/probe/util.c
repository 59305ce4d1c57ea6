/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What several rows need: files, children, ids.
 */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/base.h"
#include "probe/sys.h"

ssize_t read_text(const char *path, char *ret, size_t cap)
{
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -1;
	size_t n = 0;
	while (n < cap - 1) {
		ssize_t got = RETRY_EINTR(read(fd, ret + n, cap - 1 - n));
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	ret[n] = '\0';
	return (ssize_t)n;
}

bool join(char *ret, size_t cap, const char *dir, const char *name)
{
	int n = snprintf(ret, cap, "%s/%s", dir, name);
	return n > 0 && (size_t)n < cap;
}

const char *scratch_dir(void)
{
	const char *dir = getenv("TMPDIR");
	return dir && dir[0] == '/' ? dir : "/tmp";
}

bool scratch_path(char *ret, size_t cap, const char *dir)
{
	static unsigned int counter;
	char name[64];
	(void)snprintf(name, sizeof(name), "sandglass-probe.%d.%u", (int)getpid(), counter++);
	return join(ret, cap, dir, name);
}

int scratch_file(char *ret, size_t cap, const char *dir)
{
	if (!scratch_path(ret, cap, dir))
		return -1;
	int fd = open(ret, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -1;
	if (write(fd, "probe\n", 6) != 6) {
		base_close_fd(&fd);
		return -1;
	}
	return fd;
}

bool has_cap(unsigned int cap)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2] = {{0}};
	if (syscall(SYS_capget, &head, data) < 0)
		return false;
	return data[cap / 32].effective & (1u << cap % 32);
}

bool in_host_pid_namespace(void)
{
	char link[64] = "";
	ssize_t n = readlink("/proc/self/ns/pid", link, sizeof(link) - 1);
	/* The number of the first pid namespace is part of the kernel's interface. */
	return n > 0 && strcmp(link, "pid:[4026531836]") == 0;
}

int in_child(void (*fn)(struct finding *f, void *arg), struct finding *f, void *arg)
{
	pid_t parent = getpid();
	pid_t pid = fork();
	if (pid < 0)
		return -1;
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			fn(f, arg);
		_exit(0);
	}
	int status = 0;
	return RETRY_EINTR(waitpid(pid, &status, 0)) == pid ? status : -1;
}

#ifdef __x86_64__
long entry32(long nr, long a, long b)
{
	long rc;
	/* The end of the process is what is looked for: it is no sanitizer's to report. */
	(void)sigaction(SIGSEGV, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	__asm__ volatile("int $0x80" : "=a"(rc) : "a"(nr), "b"(a), "c"(b) : "memory");
	return rc;
}
#endif

void guarded(struct finding *f, const char *what, void (*fn)(struct finding *f, void *arg),
	     void *arg)
{
	int status = in_child(fn, f, arg);
	if (status >= 0 && WIFSIGNALED(status)) {
		bool refused = WTERMSIG(status) == SIGSYS;
		note(f, "%s: killed by signal %d", what, WTERMSIG(status));
		judged(f, what, EPERM, !refused);
	}
}

int run_program(const char *const argv[], int exec_fd, char *ret, size_t cap)
{
	int ends[2];
	ret[0] = '\0';
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	AUTO_FD int from = ends[0];
	AUTO_FD int to = ends[1];
	pid_t pid = fork();
	if (pid < 0)
		return -1;
	if (pid == 0) {
		(void)dup2(to, 1); /* takes the close-on-exec flag away */
		(void)dup2(open("/dev/null", O_WRONLY), 2);
		char *const env[] = {(char[]){"PATH=/usr/bin:/bin"}, NULL};
		char *args[16] = {NULL};
		for (size_t i = 0; argv[i] && i + 1 < ARRAY_LEN(args); i++)
			args[i] = strdup(argv[i]);
		if (exec_fd >= 0)
			(void)syscall(SYS_execveat, exec_fd, "", args, env, 0x1000);
		else if (args[0])
			(void)execvpe(args[0], args, env);
		_exit(127);
	}
	(void)close(to);
	to = -1;
	size_t n = 0;
	ssize_t got;
	while (n < cap - 1 && (got = RETRY_EINTR(read(from, ret + n, cap - 1 - n))) > 0)
		n += (size_t)got;
	ret[n] = '\0';
	int status = 0;
	return RETRY_EINTR(waitpid(pid, &status, 0)) == pid ? status : -1;
}

void pause_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};
	(void)nanosleep(&t, NULL); /* shorter after a signal does no harm */
}

long now_ms(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void hold_here(void)
{
	const char *mark = arg("mark");
	if (!mark)
		return;
	char done[4096];
	if (snprintf(done, sizeof(done), "%s.done", mark) >= (int)sizeof(done))
		return;
	AUTO_FD int fd = open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	long until = now_ms() + arg_num("hold", 2000);
	while (now_ms() < until && access(done, F_OK) < 0)
		pause_ms(5);
}

/* The number behind the name, all digits taken as hexadecimal; 99 if it is not there. */
static unsigned long long status_field(const char *text, const char *name)
{
	unsigned long long v = 99;
	const char *at = strstr(text, name);
	if (at)
		(void)sscanf(at + strlen(name), "%llx", &v);
	return v;
}

void ids_text(char *ret, size_t cap)
{
	char status[8192];
	if (read_text("/proc/self/status", status, sizeof(status)) < 0)
		status[0] = '\0';
	(void)snprintf(ret, cap, "ids %u %u %u %llu %llu %llx\n", (unsigned int)getuid(),
		       (unsigned int)geteuid(), (unsigned int)getegid(),
		       status_field(status, "NoNewPrivs:"), status_field(status, "Seccomp:"),
		       status_field(status, "CapEff:"));
}

void judge_ids(struct finding *f, const char *what, const char *ids)
{
	unsigned int uid, euid, egid;
	unsigned long long nnp, filter, caps;
	const char *at = strstr(ids, "ids ");
	if (!at || sscanf(at, "ids %u %u %u %llu %llu %llx", &uid, &euid, &egid, &nnp, &filter,
			  &caps) != 6) {
		judged(f, what, ENOEXEC, false);
		return;
	}
	bool gained = euid != geteuid() || egid != getegid() || caps != 0;
	bool loose = nnp != 1 || filter != 2;
	if (gained || loose)
		note(f, "%s runs as %u/%u, new privileges %s, filter %llu, capabilities %llx", what,
		     euid, egid, nnp ? "off" : "on", filter, caps);
	judged(f, what, 0, gained || loose);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows about other processes: the sandbox's init, the supervisor, the host's.
 * In the machine's own pid namespace pid 1 is left alone.
 */
#include "rows.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "base/base.h"
#include "probe/sys.h"

static bool init_is_ours(struct finding *f)
{
	if (!in_host_pid_namespace())
		return true;
	cannot(f, "pid 1 is the machine's own");
	return false;
}

static void attach_init(struct finding *f, void *arg)
{
	(void)arg;
	long rc = ptrace(PTRACE_ATTACH, 1, NULL, NULL);
	tried(f, "PTRACE_ATTACH", rc, BY_FILTER);
	if (rc == 0) {
		(void)waitpid(1, NULL, __WALL);
		errno = 0;
		note(f, "first word of its stack %#lx",
		     (unsigned long)ptrace(PTRACE_PEEKUSER, 1, NULL, NULL));
		(void)ptrace(PTRACE_DETACH, 1, NULL, NULL);
	}
}

static void seize_init(struct finding *f, void *arg)
{
	(void)arg; /* the end of the tracer detaches */
	tried(f, "PTRACE_SEIZE", ptrace(PTRACE_SEIZE, 1, NULL, NULL), BY_FILTER);
}

static void row_ptrace_init(struct finding *f)
{
	if (!init_is_ours(f))
		return;
	guarded(f, "PTRACE_ATTACH", attach_init, NULL);
	guarded(f, "PTRACE_SEIZE", seize_init, NULL);
}

/* Reads and writes back a byte of the writable memory of pid 1. */
static void touch_memory(struct finding *f, int mem)
{
	char maps[16384], *stack, byte;
	if (read_text("/proc/1/maps", maps, sizeof(maps)) < 0) {
		tried(f, "maps", -1, BY_FILE);
		return;
	}
	stack = strstr(maps, "[stack]");
	while (stack && stack > maps && stack[-1] != '\n')
		stack--;
	unsigned long end = 0;
	if (!stack || sscanf(stack, "%*x-%lx", &end) != 1)
		return;
	tried(f, "pread mem", pread(mem, &byte, 1, (off_t)(end - 16)), BY_FILE);
	tried(f, "pwrite mem", pwrite(mem, &byte, 1, (off_t)(end - 16)), BY_FILE);
}

static void row_init_files(struct finding *f)
{
	static const char *const contents[] = {"environ", "auxv", "maps",    "stack",
					       "syscall", "io",   "pagemap", "smaps"};
	static const char *const links[] = {"root", "cwd", "exe", "ns/mnt", "ns/net"};
	static const char *const dirs[] = {"fd", "fdinfo", "map_files", "root", "cwd"};
	char path[64], text[256];
	if (!init_is_ours(f))
		return;
	for (size_t i = 0; i < ARRAY_LEN(contents); i++) {
		(void)snprintf(path, sizeof(path), "/proc/1/%s", contents[i]);
		ssize_t n = read_text(path, text, sizeof(text));
		if (n != 0) /* empty reveals nothing */
			tried(f, contents[i], n, BY_FILE);
	}
	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		(void)snprintf(path, sizeof(path), "/proc/1/%s", links[i]);
		ssize_t n = readlink(path, text, sizeof(text) - 1);
		tried(f, links[i], n, BY_FILE);
		AUTO_FD int fd = open(path, O_PATH | O_CLOEXEC);
		tried(f, links[i], fd, BY_FILE);
	}
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		(void)snprintf(path, sizeof(path), "/proc/1/%s/", dirs[i]);
		AUTO_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		tried(f, dirs[i], fd, BY_FILE);
	}
	AUTO_FD int mem = open("/proc/1/mem", O_RDWR | O_CLOEXEC);
	if (mem < 0)
		tried(f, "mem", -1, BY_FILE);
	else
		touch_memory(f, mem);
}

/* Looks for "NAME=" at the start of an entry. */
static const char *find_variable(const char *block, size_t n, const char *name)
{
	size_t len = strlen(name);
	for (size_t at = 0; at < n; at += strlen(block + at) + 1)
		if (strncmp(block + at, name, len) == 0 && block[at + len] == '=')
			return block + at;
	return NULL;
}

static void row_environ_others(struct finding *f)
{
	static char block[256 * 1024];
	DIR *proc = opendir("/proc");
	if (!proc) {
		tried(f, "/proc", -1, BY_FILE);
		return;
	}
	for (struct dirent *d; (d = readdir(proc));) {
		char path[300];
		if (!isdigit((unsigned char)d->d_name[0]))
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%s/environ", d->d_name);
		ssize_t n = read_text(path, block, sizeof(block));
		const char *hit = n > 0 ? find_variable(block, (size_t)n, arg("envname")) : NULL;
		int err = n < 0 ? errno : ENOENT;
		judged(f, d->d_name, hit ? 0 : err, hit);
		if (hit)
			note(f, "%s: %.60s", path, hit);
	}
	(void)closedir(proc);
}

static void row_environ(struct finding *f)
{
	static const char *const words[] = {"TOKEN", "SECRET", "PASSW", "API_KEY", "PRIVATE_KEY",
					    "AWS_",  "GCP_",   "AZURE", "SSH_AUTH"};
	const char *name = arg("envname");
	if (name)
		judged(f, name, getenv(name) ? 0 : ENOENT, getenv(name));
	for (char **e = environ; *e; e++) {
		size_t n = strcspn(*e, "=");
		char var[64];
		(void)snprintf(var, sizeof(var), "%.*s", (int)(n < 60 ? n : 60), *e);
		for (size_t i = 0; i < ARRAY_LEN(words); i++) {
			if (strstr(var, words[i])) {
				judged(f, var, 0, true);
				break;
			}
		}
	}
	if (f->attempts == 0)
		judged(f, "environ", ENOENT, false);
}

static void row_steal(struct finding *f)
{
	char byte = 0;
	struct iovec here = {&byte, 1}, there = {(void *)0x400000, 1};
	if (!init_is_ours(f))
		return;
	long pidfd = syscall(NR_pidfd_open, 1, 0);
	if (pidfd < 0) {
		tried(f, "pidfd_open", pidfd, BY_FILTER);
	} else {
		for (int i = 0; i < 12; i++) {
			char what[MAX_WHAT];
			(void)snprintf(what, sizeof(what), "pidfd_getfd %d", i);
			long fd = syscall(NR_pidfd_getfd, pidfd, i, 0);
			/* EBADF: permitted, but no such descriptor there. */
			tried(f, what, fd, BY_FILTER);
		}
	}
	tried(f, "process_vm_readv", syscall(SYS_process_vm_readv, 1, &here, 1L, &there, 1L, 0L),
	      BY_FILTER);
	/* To an address where no program maps anything: EFAULT says that it was let through. */
	there.iov_base = (void *)0x10;
	tried(f, "process_vm_writev", syscall(SYS_process_vm_writev, 1, &here, 1L, &there, 1L, 0L),
	      BY_FILTER);
	tried(f, "kcmp", syscall(SYS_kcmp, getpid(), 1, 0, 0, 0), BY_FILTER);
}

/* Gone, or dead and not yet waited for. */
static bool is_dead(pid_t pid)
{
	char path[64], text[512];
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (read_text(path, text, sizeof(text)) <= 0)
		return true;
	const char *paren = strrchr(text, ')');
	return !paren || strchr("ZX", paren[2]);
}

static void row_kill_all(struct finding *f)
{
	char stat_text[512] = "", state = '?';
	if (!init_is_ours(f))
		return;
	pid_t canary = (pid_t)arg_num("pid", 0);
	bool visible = canary && kill(canary, 0) == 0;
	(void)kill(1, SIGSTOP);
	(void)kill(1, SIGKILL);
	(void)kill(1, SIGTERM);
	(void)kill(-1, SIGSTOP);
	(void)kill(-1, SIGCONT);
	(void)kill(-1, SIGKILL);
	pause_ms(50);
	if (read_text("/proc/1/stat", stat_text, sizeof(stat_text)) > 0 && strchr(stat_text, ')'))
		state = strrchr(stat_text, ')')[2];
	judged(f, "kill 1", state == 'T' || state == 'Z' ? 0 : EPERM, strchr("TtZX?", state));
	note(f, "init is %c", state);
	if (canary) {
		bool gone = visible && is_dead(canary);
		judged(f, "canary", gone ? 0 : ESRCH, gone);
	}
}

static void row_kill_host(struct finding *f)
{
	pid_t pid = (pid_t)arg_num("pid", 0);
	tried(f, "kill 0", kill(pid, 0), BY_ABSENCE | BY_FILTER);
	tried(f, "tgkill 0", syscall(SYS_tgkill, pid, pid, 0), BY_ABSENCE | BY_FILTER);
	siginfo_t info = {.si_signo = SIGCONT, .si_code = SI_QUEUE};
	tried(f, "rt_sigqueueinfo", syscall(SYS_rt_sigqueueinfo, pid, SIGCONT, &info),
	      BY_ABSENCE | BY_FILTER);
	long pidfd = syscall(NR_pidfd_open, pid, 0);
	tried(f, "pidfd_open", pidfd, BY_ABSENCE | BY_FILTER);
	if (pidfd >= 0)
		tried(f, "pidfd_send_signal",
		      syscall(SYS_pidfd_send_signal, pidfd, SIGCONT, NULL, 0), BY_FILTER);
	tried(f, "setpriority", setpriority(PRIO_PROCESS, (id_t)pid, 19), BY_ABSENCE | BY_FILTER);
	unsigned int seen = 0;
	for (pid_t p = 2; p <= 32768; p++)
		if (p != getpid() && p != getppid() && (kill(p, 0) == 0 || errno != ESRCH))
			seen++;
	note(f, "%u other processes", seen);
	/* Last, since it is the end of the canary. */
	tried(f, "kill KILL", kill(pid, SIGKILL), BY_ABSENCE | BY_FILTER);
}

static void adjust(struct finding *f, const char *path, const char *value)
{
	AUTO_FD int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		tried(f, path + 6, -1, BY_FILE);
	else
		tried(f, path + 6, write(fd, value, strlen(value)), BY_FILE);
}

/* Makes the kernel end others first when memory is short. */
static void row_oom(struct finding *f)
{
	if (!in_host_pid_namespace()) {
		adjust(f, "/proc/1/oom_score_adj", "1000");
		adjust(f, "/proc/1/oom_adj", "15");
	}
	adjust(f, "/proc/self/oom_score_adj", "-1000");
}

static const struct row rows[] = {
	{"ns-05", "ptrace-init", row_ptrace_init, 0, NULL, "ptrace attach and seize of pid 1"},
	{"ns-06", "proc1", row_init_files, 0, NULL,
	 "environ, mem, root, cwd, fd, exe and the like of pid 1"},
	{"proc1-environ", NULL, row_environ_others, 0, "envname",
	 "a variable of the caller in /proc/*/environ"},
	{"res-05", "environ", row_environ, 0, NULL, "secrets in the own environment"},
	{"ns-07", "steal-init", row_steal, 0, NULL,
	 "pidfd_getfd, process_vm_readv and _writev, kcmp of pid 1"},
	{"ns-11", "kill-all", row_kill_all, ROW_ALONE, NULL,
	 "stops and kills pid 1 and everything"},
	{"net-13", "kill-host", row_kill_host, 0, "pid", "signals to a process of the host"},
	{"res-15", "oom-adj", row_oom, 0, NULL, "oom_score_adj of pid 1, and below its own"},
};
const struct row_table rows_proc = {rows, ARRAY_LEN(rows)};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows about limits: what can be raised, and how much can be used up. Those
 * that use something up stop at the amount of their argument.
 */
#include "rows.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/base.h"
#include "probe/sys.h"

#define CHUNK (1L << 20)
#define MAX_INSTANCES 8192
#define MAX_QUEUES 256

static const struct {
	const char *name;
	int what;
} kinds[] = {
	{"nofile", RLIMIT_NOFILE},   {"core", RLIMIT_CORE}, {"nproc", RLIMIT_NPROC},
	{"memlock", RLIMIT_MEMLOCK}, {"nice", RLIMIT_NICE}, {"rtprio", RLIMIT_RTPRIO},
	{"fsize", RLIMIT_FSIZE},     {"cpu", RLIMIT_CPU},   {"msgqueue", RLIMIT_MSGQUEUE},
};

static void row_raise(struct finding *f)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct rlimit lim;
		if (getrlimit(kinds[i].what, &lim) < 0 || lim.rlim_max == RLIM_INFINITY)
			continue;
		struct rlimit more = {lim.rlim_cur, lim.rlim_max + 1};
		int rc = setrlimit(kinds[i].what, &more);
		/* A filter may say yes and change nothing: what counts is the limit. */
		if (rc == 0 && getrlimit(kinds[i].what, &lim) == 0 &&
		    lim.rlim_max != more.rlim_max) {
			rc = -1;
			errno = EPERM;
		}
		tried(f, kinds[i].name, rc, BY_FILTER);
	}
	/* Everybody may read the limits of pid 1; it gets back what it had. */
	struct rlimit same;
	if (syscall(SYS_prlimit64, 1, RLIMIT_NOFILE, NULL, &same) < 0)
		same = (struct rlimit){1024, 1024};
	tried(f, "prlimit 1", syscall(SYS_prlimit64, 1, RLIMIT_NOFILE, &same, NULL), BY_FILTER);
}

static void row_inotify(struct finding *f)
{
	long limit = 128;
	char text[32];
	struct rlimit lim;
	if (read_text("/proc/sys/fs/inotify/max_user_instances", text, sizeof(text)) > 0)
		(void)sscanf(text, "%ld", &limit);
	if (getrlimit(RLIMIT_NOFILE, &lim) == 0) {
		lim.rlim_cur = lim.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &lim);
	}
	long made = 0;
	int err = 0;
	while (made < MAX_INSTANCES) {
		if (inotify_init1(IN_CLOEXEC) < 0) {
			err = errno;
			break;
		}
		made++;
	}
	note(f, "%ld instances of the host's %ld, then %s", made, limit, errno_text(err));
	judged(f, "inotify_init1", err, made >= limit - 8);
	hold_here();
}

/* Signals that wait are counted for the user, whatever namespace they wait in. */
static void row_signals(struct finding *f)
{
	long limit = arg_num("limit", 0), made = 0;
	sigset_t set;
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGRTMAX);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	while (made < limit && sigqueue(getpid(), SIGRTMAX, (union sigval){0}) == 0)
		made++;
	note(f, "%ld signals of the host's %ld", made, limit);
	/* Others of the same user may have a few of them. */
	judged(f, "sigqueue", made < limit ? errno : 0, made >= limit - limit / 100);
	hold_here();
}

/* Bytes of POSIX queues are, too. */
static void row_queues(struct finding *f)
{
	long limit = arg_num("limit", 0), bytes = 0;
	struct mq_attr attr = {.mq_maxmsg = 10, .mq_msgsize = 8192};
	int err = 0;
	for (int i = 0; i < MAX_QUEUES && bytes < limit; i++) {
		char name[64];
		(void)snprintf(name, sizeof(name), "/sandglass-probe.%d.%d", (int)getpid(), i);
		mqd_t q = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
		if (q == (mqd_t)-1) {
			err = errno;
			break;
		}
		(void)mq_unlink(name); /* stays as long as it is open */
		bytes += attr.mq_maxmsg * attr.mq_msgsize;
	}
	note(f, "%ld bytes of the host's %ld, then %s", bytes, limit, errno_text(err));
	judged(f, "mq_open", err, bytes >= limit - attr.mq_maxmsg * (attr.mq_msgsize + 256));
	hold_here();
}

static void row_processes(struct finding *f)
{
	long limit = arg_num("procs", 0), made = 0;
	int err = 0;
	pid_t parent = getpid();
	while (made < limit) {
		pid_t pid = fork();
		if (pid < 0) {
			err = errno;
			break;
		}
		if (pid == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			while (getppid() == parent)
				pause_ms(10000);
			_exit(0);
		}
		made++;
	}
	note(f, "%ld processes", made);
	judged(f, "fork", err, made >= limit);
}

static void row_memory(struct finding *f)
{
	long limit = arg_num("bytes", 0);
	judged(f, "memory", ENOMEM, false); /* stands if the kernel ends us before the limit */
	for (long got = 0; got < limit; got += CHUNK) {
		char *p = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (p == MAP_FAILED) {
			note(f, "%ld MiB, then %s", got / CHUNK, errno_text(errno));
			return;
		}
		(void)memset(p, 1, CHUNK);
	}
	reached(f, "%ld MiB touched", limit / CHUNK);
}

static void row_disk(struct finding *f)
{
	static char block[CHUNK];
	char path[PATH_MAX];
	long limit = arg_num("bytes", 0), got = 0;
	AUTO_FD int fd = scratch_file(path, sizeof(path), scratch_dir());
	if (fd < 0) {
		cannot(f, "%s: %s", scratch_dir(), errno_text(errno));
		return;
	}
	(void)unlink(path);
	(void)memset(block, 1, sizeof(block));
	ssize_t n = 1;
	while (got < limit && (n = write(fd, block, sizeof(block))) > 0)
		got += n;
	note(f, "%ld MiB, then %s", got / CHUNK, errno_text(n < 0 ? errno : 0));
	judged(f, "disk", n < 0 ? errno : 0, got >= limit);
}

static void crash(struct finding *f, void *arg)
{
	(void)f;
	(void)arg;
	struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
	if (setrlimit(RLIMIT_CORE, &all) < 0 && getrlimit(RLIMIT_CORE, &all) == 0) {
		all.rlim_cur = all.rlim_max;
		(void)setrlimit(RLIMIT_CORE, &all);
	}
	(void)prctl(PR_SET_DUMPABLE, 1);
	(void)kill(getpid(), SIGQUIT); /* ends with a core file by default */
	pause_ms(1000);
}

/* In a new directory, where every file is its own. */
static void row_core(struct finding *f)
{
	char dir[PATH_MAX];
	if (!scratch_path(dir, sizeof(dir), ".") || mkdir(dir, 0700) < 0) {
		cannot(f, "cannot make a directory here: %s", errno_text(errno));
		return;
	}
	AUTO_FD int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fchdir(fd) < 0)
		return;
	int status = in_child(crash, f, NULL);
	bool dumped = status >= 0 && WIFSIGNALED(status) && WCOREDUMP(status);
	judged(f, "core dump", dumped ? 0 : EPERM, dumped);
	unsigned int files = 0;
	DIR *list = opendir(".");
	for (struct dirent *d; list && (d = readdir(list));)
		files += d->d_name[0] != '.' && unlink(d->d_name) == 0;
	if (list)
		(void)closedir(list);
	judged(f, "core file", files ? 0 : ENOENT, files > 0);
	if (chdir("..") == 0)
		(void)rmdir(strrchr(dir, '/') + 1);
}

static const struct row rows[] = {
	{"res-16", "rlimits", row_raise, 0, NULL, "hard limits raised; limits of pid 1"},
	{"inotify", NULL, row_inotify, 0, NULL, "uses up the user's inotify instances"},
	{"queued-signals", NULL, row_signals, 0, "limit", "uses up the user's waiting signals"},
	{"queue-bytes", NULL, row_queues, 0, "limit", "uses up the user's bytes of POSIX queues"},
	{"ns-10", "processes", row_processes, 0, "procs", "forks until it may not (--set procs=)"},
	{"res-01", "memory", row_memory, 0, "bytes",
	 "touches memory until it may not (--set bytes=)"},
	{"disk", NULL, row_disk, 0, "bytes", "writes below TMPDIR until it may not (--set bytes=)"},
	{"core-dump", NULL, row_core, 0, NULL,
	 "a crash that leaves a core file or starts its handler"},
};
const struct row_table rows_limit = {rows, ARRAY_LEN(rows)};

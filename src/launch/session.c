/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call of a session: init is born in the session's pid and network namespaces
 * (and, for an ordinary user, below its user namespace) and yet our own child.
 *
 *   front ── fork ──► enters the namespaces ── clone ──► in them ── clone ──► init
 *
 * setns(2) of a pid namespace counts for children only, and a new one can only be made
 * by a member; one that has entered a user namespace does not come back. Both processes
 * in between make their child as a sibling (CLONE_PARENT), say its pid and end. The
 * second one also maps init's ids, which only a member of the parent namespace can.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/file.h"
#include "core/sys.h"
#include "launch/launch.h"

/* What they say. */
struct said {
	int32_t pid; /* as the front sees it; 0: none */
	int32_t sys;
	uint32_t stage;
	uint32_t is_init; /* else it is of the second one */
	char text[32];
};

static _Noreturn void say(int to, const char *text, enum stage stage, pid_t pid, bool is_init)
{
	struct said s = {.pid = pid, .sys = errno, .stage = stage, .is_init = is_init};

	strncpy(s.text, text, sizeof(s.text) - 1);
	(void)!write(to, &s, sizeof(s));
	_exit(0);
}

/* Its number where we come from: in ours it has another one. */
static pid_t outer_pid(int pidfd)
{
	char path[64];
	char text[1024];
	int pid = 0;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	(void)file_read_text(AT_FDCWD, path, text, sizeof(text));
	const char *at = strstr(text, "\nPid:");
	return at && sscanf(at, "\nPid: %d", &pid) == 1 ? pid : 0;
}

/* A member of the session's namespaces. */
static _Noreturn void be_inside(const struct launch *l, struct newborn *b, int cgroup, int to)
{
	int pidfd = -1;
	/* Of a sibling, the signal at its end is the one of its elder. */
	struct clone_args a = {.flags = LAUNCH_NAMESPACES | CLONE_PARENT | CLONE_PIDFD,
			       .pidfd = (uint64_t)(uintptr_t)&pidfd};
	const char *file = "";

	if (cgroup >= 0) {
		a.flags |= CLONE_INTO_CGROUP;
		a.cgroup = (uint64_t)cgroup;
	}
	long inner = sys_clone3(&a);
	if (inner == 0)
		_exit(newborn_run(b));
	if (inner < 0)
		say(to, "make namespaces", STAGE_CLONE, 0, true);
	pid_t pid = outer_pid(pidfd);
	if (!pid || (l->session->user >= 0 && launch_write_maps(&l->p->n, pid, &file) < 0)) {
		int saved = pid ? errno : ESRCH;
		(void)kill((pid_t)inner, SIGKILL);
		errno = saved;
		say(to, file, STAGE_MAPS, pid, true);
	}
	errno = 0;
	say(to, "", STAGE_CLONE, pid, true);
}

static _Noreturn void be_between(const struct launch *l, struct newborn *b, int cgroup, int to)
{
	struct clone_args a = {.flags = CLONE_PARENT};

	if (l->session->user >= 0 && setns(l->session->user, CLONE_NEWUSER) < 0)
		say(to, "the session's user namespace", STAGE_CLONE, 0, false);
	if (setns(l->session->net, CLONE_NEWNET) < 0 || setns(l->session->pid, CLONE_NEWPID) < 0)
		say(to, "the session's namespaces", STAGE_CLONE, 0, false);
	/* The change of namespace took that away, and with it our own /proc. */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		say(to, "dumpable", STAGE_CLONE, 0, false);
	long pid = sys_clone3(&a);
	if (pid == 0)
		be_inside(l, b, cgroup, to);
	if (pid < 0)
		say(to, "enter the session", STAGE_CLONE, 0, false);
	errno = 0;
	say(to, "", STAGE_CLONE, (pid_t)pid, false);
}

/* Both end at once; what is not said they could not. */
static int hear(struct launch *l, int from)
{
	struct said s = {.pid = 0};
	int rc = 0;

	while (RETRY_EINTR(read(from, &s, sizeof(s))) == sizeof(s)) {
		s.text[sizeof(s.text) - 1] = '\0';
		if (s.is_init)
			l->init = s.pid;
		else if (s.pid)
			(void)RETRY_EINTR(waitpid(s.pid, NULL, 0));
		if (s.sys && rc == 0)
			rc = launch_fail(l, (enum stage)s.stage, s.sys, s.text);
	}
	if (rc == 0 && !l->init)
		rc = launch_fail(l, STAGE_CLONE, ECHILD, "enter the session");
	return rc;
}

int session_start(struct launch *l, const char *core, const struct launch_fds *fds, int cgroup)
{
	struct newborn b = {core, "join", fds};
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return launch_fail(l, STAGE_CLONE, errno, "pipe");
	pid_t between = fork();
	if (between == 0)
		be_between(l, &b, cgroup, ends[1]);
	int sys = errno;
	(void)close(ends[1]);
	int rc = between < 0 ? launch_fail(l, STAGE_CLONE, sys, "fork") : hear(l, ends[0]);
	(void)close(ends[0]);
	if (between > 0)
		(void)RETRY_EINTR(waitpid(between, NULL, 0));
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "main/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/verbs.h"

#define READ_BYTES 65536u

int attend_begin(struct attend *a, struct err *e)
{
	static const int held[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGCHLD};
	sigset_t set;

	*a = (struct attend){.signals = -1};
	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(held); i++)
		(void)sigaddset(&set, held[i]);
	(void)sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	/* Who reads what a child said may be gone: that is an error of write(2). */
	(void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	if (sigprocmask(SIG_BLOCK, &set, &a->before) < 0)
		return err_sys(e, "sigprocmask");
	a->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return a->signals < 0 ? err_sys(e, "signalfd") : 0;
}

void attend_end(struct attend *a)
{
	if (a->signals >= 0)
		(void)close(a->signals);
	a->signals = -1;
	(void)sigprocmask(SIG_SETMASK, &a->before, NULL);
	if (a->told)
		cli_die_by(a->told);
}

/* Takes what came; the first one that is to end us stays. */
static void take_signals(struct attend *a)
{
	struct signalfd_siginfo info;

	while (read(a->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo != SIGCHLD && !a->told)
			a->told = (int)info.ssi_signo;
}

static int cancelled(const struct attend *a, struct err *e)
{
	return err_set(e, ERR_CANCELLED, "told to end: %s", strsignal(a->told));
}

static int start(const struct attend *a, const struct child *c, int out, int err, pid_t *ret_pid,
		 struct err *e)
{
	posix_spawn_file_actions_t acts;
	posix_spawnattr_t attr;
	sigset_t reset;

	if (posix_spawn_file_actions_init(&acts) != 0)
		return err_set(e, ERR_INTERNAL, "out of memory");
	if (posix_spawnattr_init(&attr) != 0) {
		(void)posix_spawn_file_actions_destroy(&acts);
		return err_set(e, ERR_INTERNAL, "out of memory");
	}
	(void)sigemptyset(&reset);
	(void)sigaddset(&reset, SIGPIPE);
	(void)posix_spawnattr_setsigmask(&attr, &a->before);
	(void)posix_spawnattr_setsigdefault(&attr, &reset);
	(void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	int rc = c->in < 0 ? posix_spawn_file_actions_addopen(&acts, 0, "/dev/null", O_RDONLY, 0)
			   : posix_spawn_file_actions_adddup2(&acts, c->in, 0);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(&acts, out, 1);
	if (rc == 0 && !c->terminal)
		rc = posix_spawn_file_actions_adddup2(&acts, err, 2);
	if (rc == 0 && c->cwd)
		rc = posix_spawn_file_actions_addchdir_np(&acts, c->cwd);
	if (rc == 0)
		rc = posix_spawn(ret_pid, c->path, &acts, &attr, c->argv, c->env);
	(void)posix_spawnattr_destroy(&attr);
	(void)posix_spawn_file_actions_destroy(&acts);
	errno = rc;
	return rc == 0 ? 0 : err_sys(e, "start %s", c->path);
}

static void keep_tail(struct child *c, const char *p, size_t n)
{
	if (n > MAX_CHILD_TAIL) {
		p += n - MAX_CHILD_TAIL;
		n = MAX_CHILD_TAIL;
	}
	if (c->tail_n + n > MAX_CHILD_TAIL) {
		size_t drop = c->tail_n + n - MAX_CHILD_TAIL;
		memmove(c->tail, c->tail + drop, c->tail_n - drop);
		c->tail_n -= drop;
	}
	memcpy(c->tail + c->tail_n, p, n);
	c->tail_n += n;
	c->tail[c->tail_n] = '\0';
}

/* False: the end. */
static bool take(struct child *c, int fd, bool is_out, struct err *e)
{
	static char bytes[READ_BYTES];
	ssize_t n = RETRY_EINTR(read(fd, bytes, sizeof(bytes)));

	if (n <= 0)
		return n < 0 && errno == EAGAIN;
	if (!is_out || c->out < 0) {
		keep_tail(c, bytes, (size_t)n);
		return true;
	}
	c->out_bytes += (uint64_t)n;
	if (c->out_bytes > c->most_bytes)
		(void)err_set(e, ERR_DISK_LIMIT, "more than %llu bytes of output",
			      (unsigned long long)c->most_bytes);
	else if (cli_write(c->out, bytes, (size_t)n, e) == 0)
		return true;
	return false;
}

/*
 * Until the child has ended and what is in the pipes is read; whoever else holds an end of
 * them is not waited for.
 */
static int attend_child(struct attend *a, struct child *c, pid_t pid, const int from[2],
			struct err *e)
{
	struct pollfd fds[3] = {{.fd = a->signals, .events = POLLIN},
				{.fd = from[0], .events = POLLIN},
				{.fd = from[1], .events = POLLIN}};
	struct err failed = {0};
	bool ended = false;

	while (!ended) {
		(void)poll(fds, ARRAY_LEN(fds), -1);
		int had = a->told;
		take_signals(a);
		if ((a->told && !had) || failed.code)
			(void)kill(pid, a->told ? a->told : SIGTERM);
		ended = waitpid(pid, &c->status, WNOHANG) != 0;
		for (unsigned int i = 0; i < 2; i++)
			if (fds[1 + i].fd >= 0 && (fds[1 + i].revents || ended) &&
			    !take(c, fds[1 + i].fd, i == 0, &failed))
				fds[1 + i].fd = -1;
	}
	for (unsigned int i = 0; i < 2; i++)
		while (fds[1 + i].fd >= 0 && poll(&fds[1 + i], 1, 0) > 0)
			if (!take(c, fds[1 + i].fd, i == 0, &failed))
				fds[1 + i].fd = -1;
	if (failed.code) {
		*e = failed;
		return -1;
	}
	return a->told ? cancelled(a, e) : 0;
}

int child_run(struct attend *a, struct child *c, struct err *e)
{
	int out[2] = {-1, -1};
	int err[2] = {-1, -1};
	pid_t pid = -1;

	c->tail_n = 0;
	c->tail[0] = '\0';
	c->out_bytes = 0;
	take_signals(a);
	if (a->told)
		return cancelled(a, e);
	if (pipe2(out, O_CLOEXEC | O_NONBLOCK) < 0 || pipe2(err, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_sys(e, "pipe2");
	AUTO_FD int out_from = out[0];
	AUTO_FD int err_from = err[0];
	/* A child takes its end for a blocking one. */
	(void)fcntl(out[1], F_SETFL, 0);
	(void)fcntl(err[1], F_SETFL, 0);
	int rc = start(a, c, out[1], c->out < 0 ? out[1] : err[1], &pid, e);
	(void)close(out[1]);
	(void)close(err[1]);
	if (rc < 0)
		return -1;
	return attend_child(a, c, pid, (const int[2]){out_from, err_from}, e);
}

int attend_ask(struct attend *a, int tty, char *ret, size_t cap, struct err *e)
{
	struct pollfd fds[2] = {{.fd = a->signals, .events = POLLIN},
				{.fd = tty, .events = POLLIN}};

	for (;;) {
		(void)poll(fds, ARRAY_LEN(fds), -1);
		take_signals(a);
		if (a->told)
			return cancelled(a, e);
		if (!fds[1].revents)
			continue;
		ssize_t n = RETRY_EINTR(read(tty, ret, cap - 1));
		if (n <= 0)
			return err_set(e, ERR_CANCELLED, "the terminal is gone");
		ret[n] = '\0';
		ret[strcspn(ret, "\n")] = '\0';
		return 0;
	}
}

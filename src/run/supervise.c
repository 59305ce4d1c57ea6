/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts core and stays with it: carries bytes, passes signals on, collects the
 * reports. Holds the only front end of the control socket, so that the tree
 * ends with this process whatever ends it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/later.h"
#include "base/tree.h"
#include "launch/launch.h"
#include "run/beside.h"
#include "run/egress.h"
#include "run/job.h"
#include "run/relay.h"
#include "run/session.h"
#include "run/terminal.h"

#define FD_SAFE CORE_FD_END /* ours stay above the numbers that core is given */
#define MAX_DRAIN_MS 500u
#define USUAL_PLAN_BYTES 24576u /* more than most need; a page of it costs only when it is used */
#define USUAL_MORE_BYTES 4096u
#define LAST_WORDS_MS 200 /* of init, when a step has failed from outside */
#define BACKSTOP_MS 3000u
#define FOREGROUND_MS 250u /* how long a job that comes to the front waits for its keys */
#define MAX_RELAYS 3
#define END_MS 5000u /* as core's */

struct super {
	struct job *j;
	struct launch launch; /* the sandbox; `init` is core without a boundary too */
	int plan;             /* memfd */
	size_t first_part;    /* mounts that core has been told of */
	int ctl;              /* -1: core and init are gone */
	int signals;
	int pty; /* master */
	struct relay relay[MAX_RELAYS];
	size_t relays;
	int child_fd[3]; /* what core gets as 0 to 2 */
	struct terminal terminal;
	bool reaper;      /* orphans of core come to us, and nobody else's do */
	uint64_t over_ms; /* when draining ends; LIMIT_NONE while core lives */
	uint64_t kill_ms; /* init should have ended the tree by then: core is killed */
	uint64_t
		gone_ms; /* core is gone: whatever still holds the socket is not waited for longer */
};

static const int told[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
static const int passed[] = {SIGUSR1, SIGUSR2};

static int high(int fd)
{
	return file_fd_above(fd, FD_SAFE);
}

static bool has_namespaces(const struct job *j)
{
	return j->req->mode != MODE_FULL_ACCESS && !job_is_rung(j);
}

static int write_sealed(int fd, const struct buf *bytes, struct err *e)
{
	for (size_t at = 0; at < bytes->n;) {
		ssize_t n = write(fd, bytes->p + at, bytes->n - at);
		if (n < 0)
			return err_sys(e, "write the plan");
		at += (size_t)n;
	}
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return err_sys(e, "seal the plan");
	return 0;
}

static void on_ctl(struct super *s);

/*
 * A step of the launch has failed: it is told like a failure of init's own, unless
 * that came first: what it said before it ended says why.
 */
static void note_failure(struct super *s)
{
	struct outcome *o = &s->j->out;
	siginfo_t info = {.si_pid = 0};
	struct pollfd fd = {.fd = s->ctl, .events = POLLIN};

	bool dead = waitid(P_PID, (id_t)s->launch.init, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
		    info.si_pid == s->launch.init;
	while (!o->have_failure && fd.fd >= 0 && poll(&fd, 1, dead ? 0 : LAST_WORDS_MS) > 0) {
		on_ctl(s);
		fd.fd = s->ctl;
	}
	if (!o->have_failure)
		o->failure = s->launch.failure;
	if (!o->have_failure && s->ctl < 0) { /* it ended without a word */
		o->failure = (struct report){.stage = STAGE_EXEC};
		(void)snprintf(o->failure.text, sizeof(o->failure.text),
			       "sandglass-core ended at once (install it again)");
	}
	o->have_failure = true;
}

int job_release_core(struct job *j, struct err *e)
{
	AUTO_BUF bytes = BUF_INIT(MAX_PLAN_BYTES);
	struct super *s = j->super;

	(void)buf_reserve(&bytes, USUAL_PLAN_BYTES);
	if (plan_encode(&j->plan, &bytes, e) < 0 || write_sealed(s->plan, &bytes, e) < 0)
		return -1;
	if (j->out.have_failure)
		return 0;
	if (has_namespaces(j) ? launch_release(&s->launch, s->ctl) < 0 : leaf_enter(&s->launch) < 0)
		note_failure(s);
	s->first_part = j->plan.mount_count;
	return 0;
}

static int release_more(struct super *s, struct err *e)
{
	struct job *j = s->j;
	AUTO_BUF bytes = BUF_INIT(MAX_PLAN_BYTES);

	(void)buf_reserve(&bytes, USUAL_MORE_BYTES);
	AUTO_FD int fd = memfd_create("more", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return err_sys(e, "memfd_create");
	if (plan_encode_more(j->plan.mounts + s->first_part, j->plan.mount_count - s->first_part,
			     &bytes, e) < 0 ||
	    write_sealed(fd, &bytes, e) < 0)
		return -1;
	if (launch_release_more(&s->launch, s->ctl, fd) < 0)
		note_failure(s);
	return 0;
}

static int add_relay(struct super *s, int from, int to, struct capture *c, struct err *e)
{
	if (s->relays == MAX_RELAYS || !relay_init(&s->relay[s->relays], from, to, c))
		return err_set(e, ERR_INTERNAL, "out of memory");
	s->relay[s->relays].hide.c = s->j->censor;
	s->relays++;
	return 0;
}

/* A terminal of the caller is read and written so that neither ever blocks us. */
static int never_blocks(int fd)
{
	int again = terminal_reopen(fd);

	return again < 0 ? fd : high(again);
}

/* What the caller gives: stdin. */
static int add_input(struct super *s, int to, bool to_pty, struct err *e)
{
	bool terminal = isatty(STDIN_FILENO);

	if (add_relay(s, terminal ? never_blocks(STDIN_FILENO) : STDIN_FILENO, to, NULL, e) < 0)
		return -1;
	struct relay *r = &s->relay[s->relays - 1];
	r->is_input = true;
	r->from_terminal = terminal;
	r->by_line = terminal && !to_pty && terminal_is_by_line();
	r->to_pty = to_pty;
	r->close_to = !to_pty;
	return 0;
}

/* A pipe of ours; `mine` is the end that stays here. */
static int make_pipe(int fd, int *ret_theirs, int *ret_mine, struct err *e)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	*ret_theirs = high(ends[fd == 0 ? 0 : 1]);
	*ret_mine = high(ends[fd == 0 ? 1 : 0]);
	if (*ret_theirs < 0 || *ret_mine < 0)
		return err_sys(e, "pipe");
	return 0;
}

static int wire_one(struct super *s, int fd, struct err *e)
{
	struct job *j = s->j;
	int mine = -1;

	switch (j->io.way[fd]) {
	case STDIO_PASS:
	case STDIO_FILE:
		s->child_fd[fd] = fd;
		return 0;
	case STDIO_NULL:
	case STDIO_PTY: /* core puts its pty there */
		s->child_fd[fd] = high(open("/dev/null", O_RDWR | O_CLOEXEC));
		return s->child_fd[fd] < 0 ? err_sys(e, "/dev/null") : 0;
	case STDIO_RELAY:
	case STDIO_CAPTURE:
		break;
	}
	if (fd == 2 && j->io.one_output) {
		s->child_fd[2] = fcntl(s->child_fd[1], F_DUPFD_CLOEXEC, FD_SAFE);
		return s->child_fd[2] < 0 ? err_sys(e, "dup") : 0;
	}
	if (make_pipe(fd, &s->child_fd[fd], &mine, e) < 0)
		return -1;
	if (fd == 0) {
		(void)fcntl(mine, F_SETFL, O_WRONLY | O_NONBLOCK);
		return add_input(s, mine, false, e);
	}
	bool keep = j->io.way[fd] == STDIO_CAPTURE;
	if (add_relay(s, mine, keep ? -1 : fd, keep ? &j->capture[fd - 1] : NULL, e) < 0)
		return -1;
	struct relay *r = &s->relay[s->relays - 1];
	r->log = &j->log[fd - 1];
	if (!keep && r->chunk == PIPE_BUF)
		r->to = never_blocks(fd);
	return 0;
}

static int wire(struct super *s, struct err *e)
{
	for (int fd = 0; fd <= 2; fd++)
		if (wire_one(s, fd, e) < 0)
			return -1;
	return 0;
}

/* Core without a namespace. */
static int spawn_bare(struct super *s, const char *core, int their_ctl, struct err *e)
{
	char *argv[] = {(char *)(uintptr_t) "sandglass-core", (char *)(uintptr_t) "bare", NULL};
	char *envp[] = {NULL};
	posix_spawn_file_actions_t acts;

	if (posix_spawn_file_actions_init(&acts) != 0)
		return err_set(e, ERR_INTERNAL, "out of memory");
	int rc = 0;
	for (int fd = 0; fd <= 2 && rc == 0; fd++)
		rc = posix_spawn_file_actions_adddup2(&acts, s->child_fd[fd], fd);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(&acts, s->plan, CORE_FD_PLAN);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(&acts, their_ctl, CORE_FD_CTL);
	if (rc == 0)
		rc = posix_spawn(&s->launch.init, core, &acts, NULL, argv, envp);
	(void)posix_spawn_file_actions_destroy(&acts);
	errno = rc;
	return rc ? err_sys(e, "start sandglass-core") : 0;
}

static int spawn_core(struct super *s, int their_ctl, struct err *e)
{
	const struct launch_fds fds = {.stdio = {s->child_fd[0], s->child_fd[1], s->child_fd[2]},
				       .plan = s->plan,
				       .ctl = their_ctl,
				       .uid = s->j->uid_fd};
	char path[PATH_TEXT];

	if (beside_find("sandglass-core", path, e) < 0)
		return -1;
	if (leaf_make(&s->launch) < 0) {
		failure_explain(s->j, &s->launch.failure, e);
		return -1;
	}
	if (!has_namespaces(s->j))
		return spawn_bare(s, path, their_ctl, e);
	if (launch_start(&s->launch, path, &fds) < 0) {
		failure_explain(s->j, &s->launch.failure, e);
		return -1;
	}
	return 0;
}

static void begin(struct super *s)
{
	if (launch_begin(&s->launch, s->ctl) < 0)
		note_failure(s);
	else if (s->j->who.root)
		idmap_start_holder(&s->launch); /* most likely needed */
}

static void take_signals(struct super *s)
{
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(told); i++) {
		struct sigaction old;
		/* What the caller ignores (nohup) stays ignored. */
		if (sigaction(told[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			(void)sigaddset(&set, told[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(passed); i++)
		(void)sigaddset(&set, passed[i]);
	(void)sigaddset(&set, SIGWINCH);
	(void)sigaddset(&set, SIGTSTP);
	(void)sigaddset(&set, SIGCONT);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	struct sigaction ign = {.sa_handler = SIG_IGN};
	(void)sigaction(SIGPIPE, &ign, NULL);
	(void)sigaction(SIGTTOU, &ign, NULL);
	(void)sigaction(SIGXFSZ, &ign, NULL); /* the write fails instead, and is reported */
	(void)sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	s->signals = high(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

static void order(const struct super *s, enum order_kind kind, uint32_t value)
{
	struct order o = {.kind = kind, .value = value};

	if (s->ctl >= 0)
		(void)send(s->ctl, &o, sizeof(o), MSG_NOSIGNAL); /* gone: its reports tell */
}

/*
 * We were told to stop, or `by`, a signal, has stopped the command: then nobody
 * inside will go on with it, and the caller's shell is to have its prompt.
 */
static void stop_here(struct super *s, int by)
{
	pid_t job = tcgetpgrp(STDIN_FILENO);

	order(s, ORDER_STOP, 0);
	terminal_leave(&s->terminal);
	/* A key is for the whole job: with a pipeline or a script around us, for those too. */
	bool stopped = (!by || job >= 0) && terminal_stop(by && job == getpgrp());
	if (s->pty >= 0)
		terminal_enter(&s->terminal, s->pty);
	/* What stops itself where nobody can continue it stays so, as it would without us. */
	if (stopped || !by || by == SIGTSTP)
		order(s, ORDER_CONT, 0);
}

/* Init keeps the deadlines; should it be kept from that, so do we, a little later. */
static void set_backstop(struct super *s, uint64_t distance_ms)
{
	uint64_t at = clock_deadline(clock_mono_ms(), distance_ms);

	at = clock_deadline(at, s->j->limits.grace_ms);
	at = clock_deadline(at, BACKSTOP_MS);
	if (at < s->kill_ms)
		s->kill_ms = at;
}

/* Core has ended before its socket did; who waits for it does so at the end. */
static void on_child(struct super *s)
{
	siginfo_t info = {.si_pid = 0};

	if (s->launch.init && s->gone_ms == LIMIT_NONE &&
	    waitid(P_PID, (id_t)s->launch.init, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	    info.si_pid == s->launch.init)
		s->gone_ms = clock_deadline(clock_mono_ms(), BACKSTOP_MS);
}

static void on_backstop(struct super *s)
{
	uint64_t now = clock_mono_ms();

	if (now >= s->kill_ms) {
		s->kill_ms = LIMIT_NONE;
		s->j->out.backstop = true;
		if (s->launch.init)
			(void)kill(s->launch.init, SIGKILL);
	}
	if (s->ctl >= 0 && now >= s->gone_ms) {
		(void)close(s->ctl);
		s->ctl = -1;
		s->over_ms = now;
	}
}

static void on_signal(struct super *s, int sig)
{
	for (size_t i = 0; i < ARRAY_LEN(told); i++) {
		if (sig != told[i])
			continue;
		/* Told twice: without the rest of the grace. */
		order(s, s->j->out.told_signal ? ORDER_KILL : ORDER_END, (uint32_t)sig);
		if (!s->j->out.told_signal)
			s->j->out.told_signal = sig;
		set_backstop(s, 0);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(passed); i++)
		if (sig == passed[i])
			order(s, ORDER_SIGNAL, (uint32_t)sig);
	if (sig == SIGCHLD)
		on_child(s);
	if (sig == SIGTSTP)
		stop_here(s, 0);
	if (sig == SIGCONT && s->pty >= 0)
		terminal_enter(&s->terminal, s->pty);
	if (sig == SIGWINCH && s->pty >= 0)
		terminal_copy_size(s->pty);
	if (sig == SIGWINCH && s->pty < 0)
		order(s, ORDER_SIGNAL, SIGWINCH);
}

static void take_pty(struct super *s, int fd)
{
	struct err ignored = {0};

	s->pty = high(fd);
	int copy = fcntl(s->pty, F_DUPFD_CLOEXEC, FD_SAFE);
	(void)fcntl(s->pty, F_SETFL, O_RDWR | O_NONBLOCK);
	terminal_copy_size(s->pty);
	terminal_copy_settings(s->pty);
	terminal_enter(&s->terminal, s->pty);
	if (copy >= 0 && add_input(s, s->pty, true, &ignored) == 0 &&
	    add_relay(s, copy, never_blocks(STDOUT_FILENO), NULL, &ignored) == 0)
		s->relay[s->relays - 1].log = &s->j->log[0];
	order(s, ORDER_TTY, 0);
}

/* The caller's side is gone: to the command as if its terminal were. */
static void hang_up(struct super *s)
{
	for (size_t i = 0; i < s->relays; i++) {
		struct relay *r = &s->relay[i];
		r->close_to |= r->is_input;
		r->n = r->is_input ? r->at : r->n;
		relay_end(r);
	}
	s->pty = -1; /* closed with the input */
	/* The kernel tells only the leader of the session, which is init. */
	order(s, ORDER_SIGNAL, SIGHUP);
	order(s, ORDER_SIGNAL, SIGCONT);
}

static void close_all(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		(void)close(fds[i]);
}

/* Takes what comes with it. */
static void take_report(struct super *s, const struct report *r, const int *fds, size_t n)
{
	struct outcome *o = &s->j->out;

	if (r->kind == REPORT_PTY && n == 1 && s->pty < 0 && (s->j->plan.n.flags & PLAN_TTY)) {
		take_pty(s, fds[0]);
		return;
	}
	if (r->kind == REPORT_EGRESS && job_has_egress(s->j)) {
		egress_hand_on(&s->j->egress, r, fds, n);
		return;
	}
	close_all(fds, n);

	switch ((enum report_kind)r->kind) {
	case REPORT_FAIL:
		if (!o->have_failure)
			o->failure = *r;
		o->have_failure = true;
		return;
	case REPORT_PTY:
	case REPORT_EGRESS:
		return;
	case REPORT_EXEC:
		o->exec = *r;
		o->have_exec_error = true;
		return;
	case REPORT_EXIT:
		o->exit = *r;
		o->have_exit = true;
		/* While the kernel takes the sandbox down. */
		if ((r->flags & REPORT_ALONE) && s->j->guard)
			guard_early(s->j->guard);
		return;
	case REPORT_USAGE:
		return;
	case REPORT_STOP:
		stop_here(s, r->status);
		return;
	}
}

/* Core is gone. Where it was killed it has left its orphans to us. */
static void end_orphans(struct super *s)
{
	int status = 0;

	if (!s->reaper || !s->launch.init)
		return;
	if (RETRY_EINTR(waitpid(s->launch.init, &status, 0)) == s->launch.init)
		s->launch.init = 0;
	(void)tree_end(END_MS, NULL, NULL);
}

static void on_ctl(struct super *s)
{
	struct report r;
	struct iovec iov = {.iov_base = &r, .iov_len = sizeof(r)};
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(MAX_REPORT_SOCKETS * sizeof(int))];
	} control;
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	int fds[MAX_REPORT_SOCKETS];
	size_t count = 0;

	ssize_t n = recvmsg(s->ctl, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	/* ECONNRESET: an order was not read any more; the reports before the end come after it. */
	if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET))
		return;
	if (n <= 0) {
		(void)close(s->ctl);
		s->ctl = -1;
		end_orphans(s);
		s->over_ms = clock_mono_ms() + MAX_DRAIN_MS;
		return;
	}
	const struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(c), count * sizeof(int));
	}
	if (n != sizeof(r)) {
		close_all(fds, count);
		return;
	}
	if (r.kind != REPORT_EGRESS)
		r.text[sizeof(r.text) - 1] = '\0';
	take_report(s, &r, fds, count);
}

/* Output that is still to come. Input does not keep us. */
static bool has_output(const struct super *s)
{
	for (size_t i = 0; i < s->relays; i++) {
		const struct relay *r = &s->relay[i];
		if (!r->is_input && (r->from >= 0 || r->n > r->at))
			return true;
	}
	return false;
}

/* Output that a reader has not taken yet. He may be slow, but not for one who wants us to end. */
static bool is_held_up(const struct super *s)
{
	bool held = false;

	for (size_t i = 0; i < s->relays; i++)
		held |= !s->relay[i].is_input && s->relay[i].n > s->relay[i].at;
	return held && !s->j->out.told_signal;
}

/* The session's keeper speaks, or is gone: either way the call is to end. */
static void on_keeper(struct super *s)
{
	if (job_session_step(s->j->in))
		return;
	order(s, s->j->in->ctl < 0 ? ORDER_KILL : ORDER_END, SIGTERM);
	set_backstop(s, 0);
}

#define TURN_FDS 5
struct turn {
	struct pollfd fds[TURN_FDS + MAX_RELAYS];
	size_t used[MAX_RELAYS]; /* entries of each relay, behind the first ones */
	size_t n, relays;
};

/* Waits for whatever comes next, at most until something is due. False: cannot wait. */
static bool wait_for_turn(struct super *s, struct turn *t)
{
	uint64_t now = clock_mono_ms();
	uint64_t until = s->kill_ms < s->gone_ms ? s->kill_ms : s->gone_ms;

	if (job_has_egress(s->j) && s->j->egress.ready_ms < until)
		until = s->j->egress.ready_ms;
	if (s->ctl < 0 && is_held_up(s))
		s->over_ms = now + MAX_DRAIN_MS; /* counts from when he goes on */
	if (s->ctl < 0)
		until = is_held_up(s) ? LIMIT_NONE : s->over_ms;
	t->fds[0] = (struct pollfd){.fd = s->ctl, .events = POLLIN};
	t->fds[1] = (struct pollfd){.fd = s->signals, .events = POLLIN};
	t->fds[2] =
		(struct pollfd){.fd = s->j->guard ? guard_fd(s->j->guard) : -1, .events = POLLIN};
	t->fds[3] = (struct pollfd){.fd = s->j->in ? s->j->in->ctl : -1, .events = POLLIN};
	t->fds[4] = (struct pollfd){.fd = job_has_egress(s->j) ? s->j->egress.ctl : -1,
				    .events = POLLIN};
	t->n = TURN_FDS;
	t->relays = s->relays; /* a pty adds to them */
	for (size_t i = 0; i < t->relays; i++) {
		struct relay *r = &s->relay[i];
		uint64_t again = relay_say_end(r, now);
		bool was_away = r->away;
		t->used[i] = relay_poll(r, &t->fds[t->n]);
		t->n += t->used[i];
		if (r->away) /* somebody may bring us to the front */
			again = clock_deadline(now, FOREGROUND_MS);
		else if (was_away && r->to_pty && s->pty >= 0)
			terminal_enter(&s->terminal, s->pty);
		until = again < until ? again : until;
	}
	return poll(t->fds, t->n, clock_poll_timeout(now, until)) >= 0 || errno == EINTR;
}

static void take_turn(struct super *s, const struct turn *t)
{
	struct signalfd_siginfo info;
	size_t at = TURN_FDS;

	if (t->fds[2].revents)
		guard_step(s->j->guard);
	if (t->fds[3].revents)
		on_keeper(s);
	if (t->fds[4].revents && egress_step(&s->j->egress))
		order(s, ORDER_EGRESS, 0);
	for (size_t i = 0; i < t->relays; i++) {
		relay_step(&s->relay[i], &t->fds[at], t->used[i]);
		at += t->used[i];
	}
	for (size_t i = 0; s->pty >= 0 && i < t->relays; i++)
		if (s->relay[i].gone)
			hang_up(s);
	while (t->fds[1].revents && read(s->signals, &info, sizeof(info)) == sizeof(info))
		on_signal(s, (int)info.ssi_signo);
	if (t->fds[0].revents)
		on_ctl(s);
	on_backstop(s);
}

static void loop(struct super *s)
{
	struct turn t;

	while (s->ctl >= 0 || (has_output(s) && (is_held_up(s) || clock_mono_ms() < s->over_ms))) {
		if (!wait_for_turn(s, &t))
			return;
		take_turn(s, &t);
		if (job_has_egress(s->j) && egress_has_failed(&s->j->egress, clock_mono_ms()))
			return; /* the command has not begun, and does not */
		/* The exit is the last that init says. */
		if (s->j->out.have_exit && !has_output(s))
			return;
	}
}

/* Where the command stopped reading the file at stdin, the next reader goes on. */
static void give_back_offset(const struct job *j)
{
	if (j->io.way[0] != STDIO_FILE || !j->out.have_exit)
		return;
	long long at = strtoll(j->out.exit.text, NULL, 10);
	if (at >= 0)
		(void)lseek(0, (off_t)at, SEEK_SET);
}

/* What is opened from here on has a safe number at once. */
static int reserve_low(void)
{
	int fd = -1;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd < FD_SAFE);
	return fd < 0 ? -1 : close(fd);
}

static int begin_egress(struct job *j, struct err *e)
{
	AUTO_FD int secrets = -1;

	if (j->secrets.n) {
		secrets = secrets_file(&j->secrets.rendered, e);
		if (secrets < 0)
			return -1;
	}
	const struct egress_files files = {.secrets = secrets, .spent = -1};
	return egress_begin(&j->egress, &j->req->egress, &files, e);
}

static int start(struct super *s, struct err *e)
{
	struct job *j = s->j;
	int pair[2];

	if (reserve_low() < 0)
		return err_sys(e, "/dev/null");
	if (wire(s, e) < 0)
		return -1;
	/* Where our caller gave us children of its own, they are not ours to end. */
	if (job_is_rung(j) && waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD)
		s->reaper = prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
	s->plan = high(memfd_create("plan", MFD_CLOEXEC | MFD_ALLOW_SEALING));
	if (s->plan < 0)
		return err_sys(e, "memfd_create");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socketpair");
	s->ctl = high(pair[0]);
	if (j->in) {
		s->launch.session = &j->in->ns;
		s->launch.given = TAKE_FD(j->in->tree);
	}
	AUTO_FD int theirs = high(pair[1]);
	take_signals(s);
	if (s->ctl < 0 || theirs < 0 || s->signals < 0)
		return err_sys(e, "descriptors");
	if (j->uid_fd >= 0)
		j->uid_fd = high(j->uid_fd);
	if (job_has_egress(j) && begin_egress(j, e) < 0)
		return -1;
	if (spawn_core(s, theirs, e) < 0)
		return -1;
	(void)close(TAKE_FD(theirs)); /* its end shows here */
	if (has_namespaces(j))
		begin(s);
	if (j->in)
		job_session_started(j, s->launch.init);
	for (int fd = 0; fd <= 2; fd++)
		if (s->child_fd[fd] > 2)
			(void)close(s->child_fd[fd]);
	return 0;
}

int job_start(struct job *j, struct err *e)
{
	j->super = calloc(1, sizeof(*j->super));
	if (!j->super)
		return err_set(e, ERR_INTERNAL, "out of memory");
	*j->super = (struct super){.j = j,
				   .plan = -1,
				   .ctl = -1,
				   .signals = -1,
				   .launch = {.p = &j->plan,
					      .given = -1,
					      .user_ns = -1,
					      .mount_ns = -1},
				   .pty = -1,
				   .over_ms = LIMIT_NONE,
				   .kill_ms = LIMIT_NONE,
				   .gone_ms = LIMIT_NONE,
				   .child_fd = {-1, -1, -1}};
	return start(j->super, e);
}

static void end(struct super *s)
{
	if (s->ctl >= 0)
		(void)close(s->ctl);
	if (job_has_egress(s->j))
		egress_stop(&s->j->egress);
	launch_wait(&s->launch, &s->j->out.usage);
	s->j->out.have_usage = true;
	if (s->reaper)
		(void)tree_end(END_MS, NULL, NULL);
	for (size_t i = 0; i < s->relays; i++)
		relay_release(&s->relay[i]);
	if (s->plan >= 0)
		(void)close(s->plan);
	if (s->signals >= 0)
		(void)close(s->signals);
	s->j->super = NULL;
	free(s);
}

void job_abort(struct job *j)
{
	if (j->super)
		end(j->super);
	if (job_has_egress(j))
		egress_finish(&j->egress);
	agentroot_remove(&j->root);
}

int job_run(struct job *j, struct err *e)
{
	struct super *s = j->super;
	uint64_t begin = clock_mono_ms();

	for (int i = 0; i < 2; i++)
		capture_init(&j->capture[i], j->limits.value[LIMIT_OUTPUT]);
	if (!has_namespaces(j))
		order(s, ORDER_PLAN, PLAN_VERSION);
	else if (!j->out.have_failure && release_more(s, e) < 0)
		return -1;
	if (j->guard)
		guard_attach(j->guard, &s->launch);
	set_backstop(s, j->limits.value[LIMIT_WALL]);
	/* For the audit log, now that the sandbox is busy with its own start. */
	struct err ignored = {0};
	if (job_hash_policy(j, j->policy_sha256, &ignored) < 0)
		j->policy_sha256[0] = '\0';
	if (!j->out.have_failure)
		loop(s);
	terminal_leave(&s->terminal);
	give_back_offset(j);
	if (j->in)
		job_session_flush(j->in);
	if (j->guard)
		guard_attach(j->guard, NULL); /* nothing is put back any more */
	end(s);
	if (j->guard)
		guard_end(j->guard);
	if (job_has_egress(j))
		egress_finish(&j->egress);
	later_let_go();
	agentroot_remove(&j->root);
	for (size_t i = 0; i < j->plan.cgroup_count; i++)
		cgroups_remove(j->plan.cgroups[i].dir); /* if core could not any more */
	j->out.wall_ms = clock_mono_ms() - begin;
	if (job_has_egress(j) && j->egress.failure.code != ERR_NONE && !j->out.have_failure) {
		*e = j->egress.failure;
		return -1;
	}
	return 0;
}

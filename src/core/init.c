/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pid 1 of the sandbox, or (danger-full-access, Landlock alone) a subreaper
 * outside of any namespace: starts the command, reaps, keeps the deadlines, carries out the
 * front's orders, and ends the whole tree. Its own end is the tree's end, since
 * the kernel kills a pid namespace with its first process.
 *
 * Why it is safe: it has no capability and no secret, cannot be traced (not
 * dumpable, and the command is in a Landlock domain), reads nothing that the
 * command writes but /proc, and leaves when the front is gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/tree.h"
#include "core/core.h"

#define NEVER UINT64_MAX

enum phase {
	PHASE_RUN,   /* the command runs */
	PHASE_END,   /* TERM was sent, KILL comes at `deadline_ms` */
	PHASE_DRAIN, /* the command has ended, others have until `deadline_ms` */
};

struct init {
	struct core *c;
	enum phase phase;
	pid_t tool;
	bool tool_done;
	bool held; /* stopped by an order */
	bool bare; /* no pid namespace */
	int status;
	uint32_t flags;
	uint64_t wall_ms;     /* when the wall time is over */
	uint64_t deadline_ms; /* of the phase */
	struct watch watch;
	bool more;                /* children that have ended are still to be reaped */
	bool has_tty, has_egress; /* what the command cannot start without is ready */
};

/* Reaped in one turn: a tree that ends and starts processes without end must not hold us up. */
#define MAX_REAPS 64
/* How long KILL is repeated for what has no namespace to die with. */
#define END_MS 5000u

/* A deadline `distance` from now; UINT64_MAX stays never. */
static uint64_t after(uint64_t distance)
{
	return distance > NEVER / 2 ? NEVER : clock_mono_ms() + distance;
}

static void signal_all(const struct init *in, int sig)
{
	if (in->bare)
		tree_signal(sig);
	else
		(void)kill(-1, sig); /* everything in this pid namespace but init */
}

/* TERM and friends reach a stopped process only when it goes on. */
static void end_tree(struct init *in, int sig)
{
	if (in->phase == PHASE_END)
		return;
	in->phase = PHASE_END;
	in->deadline_ms = after(in->c->p->n.grace_ms);
	signal_all(in, sig);
	signal_all(in, SIGCONT);
}

static uint64_t last_pid(void)
{
	char text[128];
	unsigned long pid = 0;

	(void)file_read_text(AT_FDCWD, "/proc/loadavg", text, sizeof(text));
	/* Behind the last blank: the pid created last, in the reader's pid namespace (proc_loadavg(5)). */
	const char *last = strrchr(text, ' ');
	return last && sscanf(last, "%lu", &pid) == 1 ? pid : 0;
}

/*
 * Whether a name or an address that is not the sandbox's own was looked for: ipOutNoRoutes
 * of RFC 2011, udpNoPorts of RFC 4113 (nothing answers at the resolver's port).
 */
static bool has_sought_way(void)
{
	char text[4096];
	unsigned long routes = 0;
	unsigned long ports = 0;

	(void)file_read_text(AT_FDCWD, "/proc/self/net/snmp", text, sizeof(text));
	/* Each table is a line of names, then one of numbers. */
	const char *ip = strstr(text, "\nIp: ");
	const char *udp = strstr(text, "\nUdp: ");
	udp = udp ? strstr(udp + 1, "\nUdp: ") : NULL;
	if (ip && sscanf(ip, " Ip: %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lu", &routes) != 1)
		routes = 0;
	if (udp && sscanf(udp, " Udp: %*s %lu", &ports) != 1)
		ports = 0;
	return routes || ports;
}

static void add_disk(const struct init *in, struct report *r)
{
	struct statfs s;

	if (in->c->sand_fd < 0 || fstatfs(in->c->sand_fd, &s) < 0)
		return;
	r->disk_bytes = (uint64_t)(s.f_blocks - s.f_bfree) * (uint64_t)s.f_bsize;
	r->inodes = (uint64_t)(s.f_files - s.f_ffree);
	if (s.f_blocks && s.f_bfree == 0)
		r->flags |= REPORT_DISK;
	if (s.f_files && s.f_ffree == 0)
		r->flags |= REPORT_INODES;
}

static void note_tool(void *self, pid_t pid, int status)
{
	struct init *in = self;

	if (pid != in->tool)
		return;
	in->tool_done = true;
	in->status = status;
}

/* Without namespaces nothing but this ends them all. */
static void end_rung(struct init *in)
{
	if (in->c->p->n.flags & PLAN_LANDLOCK)
		(void)tree_end(END_MS, note_tool, in);
}

static _Noreturn void finish(struct init *in)
{
	end_rung(in);
	struct report r = {.kind = REPORT_EXIT, .status = in->status, .flags = in->flags};

	r.landlock = (uint32_t)in->c->landlock_abi;
	r.flags |= in->c->lost | (r.landlock ? 0u : (uint32_t)REPORT_NO_LANDLOCK);
	struct rusage u;
	off_t at = in->c->p->n.flags & PLAN_STDIN_FILE ? lseek(STDIN_FILENO, 0, SEEK_CUR) : -1;

	if (getrusage(RUSAGE_CHILDREN, &u) == 0)
		r.cpu_ms = watch_cpu_ms(&u);
	if (r.cpu_ms >= in->c->p->n.cpu_ms)
		r.flags |= REPORT_CPU;
	r.peak_memory_bytes = (uint64_t)u.ru_maxrss * 1024u;
	if (in->watch.peak_bytes > r.peak_memory_bytes)
		r.peak_memory_bytes = in->watch.peak_bytes;
	uint64_t last = in->bare ? 0 : last_pid();
	/* init, and who made the network namespace */
	uint64_t own = in->c->p->n.flags & PLAN_SESSION ? 1 : 2;
	r.processes = last > own ? last - own : 0;
	add_disk(in, &r);
	if (r.status != 0 && !in->bare &&
	    !(in->c->p->n.flags & (PLAN_SESSION | PLAN_EGRESS | PLAN_LANDLOCK)) && has_sought_way())
		r.flags |= REPORT_NO_WAY;
	(void)snprintf(r.text, sizeof(r.text), "%lld", (long long)at);
	signal_all(in, SIGKILL);
	report_send(&r);
	_exit(0);
}

/* Reaps all that ended. Returns whether anything is left. */
static bool reap(struct init *in)
{
	int status = 0;
	int options = in->c->pty_slave >= 0 ? WNOHANG | WUNTRACED : WNOHANG;
	pid_t pid = 1;

	for (int n = 0; n < MAX_REAPS && pid > 0; n++) {
		pid = waitpid(-1, &status, options);
		if (pid > 0 && WIFSTOPPED(status)) { /* with it the caller's job stops */
			struct report r = {.kind = REPORT_STOP, .status = WSTOPSIG(status)};
			if (pid == in->tool && !in->held && in->phase == PHASE_RUN)
				report_send(&r);
		} else if (pid > 0) {
			note_tool(in, pid, status);
		}
	}
	in->more = pid > 0;
	return pid >= 0;
}

static void on_order(struct init *in)
{
	struct order o;

	ssize_t n = recv(CORE_FD_CTL, &o, sizeof(o), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) { /* the front is gone */
		signal_all(in, SIGKILL);
		end_rung(in);
		_exit(0);
	}
	if (n != sizeof(o))
		return;
	switch ((enum order_kind)o.kind) {
	case ORDER_SIGNAL:
		if (in->tool && !in->tool_done)
			(void)kill(in->tool, (int)o.value);
		break;
	case ORDER_END:
		in->flags |= REPORT_CANCELLED;
		end_tree(in, (int)o.value);
		break;
	case ORDER_KILL:
		in->flags |= REPORT_CANCELLED | REPORT_KILLED;
		in->phase = PHASE_END;
		in->deadline_ms = 0;
		break;
	case ORDER_STOP:
	case ORDER_CONT:
		in->held = o.kind == ORDER_STOP;
		signal_all(in, in->held ? SIGSTOP : SIGCONT);
		break;
	case ORDER_TTY:
		in->has_tty = true;
		break;
	case ORDER_EGRESS:
		in->has_egress = true;
		break;
	case ORDER_PLAN:
		break;
	}
}

/* Over a watched limit there is no grace: the memory is gone now. */
static void on_sample(struct init *in)
{
	const struct plan_numbers *n = &in->c->p->n;

	watch_sample(in->c, &in->watch, clock_mono_ms());
	bool memory = n->memory_bytes != UINT64_MAX && in->watch.peak_bytes > n->memory_bytes;
	bool cpu = n->cpu_ms != UINT64_MAX && in->watch.cpu_ms > n->cpu_ms;
	if (n->pids != UINT64_MAX && in->watch.tasks + (in->tool_done ? 1u : 0u) >= n->pids)
		in->flags |= REPORT_PIDS;
	in->flags |= (memory ? REPORT_MEMORY : 0u) | (cpu ? REPORT_CPU : 0u);
	if (memory)
		signal_all(in, SIGKILL);
	else if (cpu)
		end_tree(in, SIGTERM);
}

static void on_child(struct init *in)
{
	bool left = reap(in);

	if (in->tool_done && !left) {
		/* Orphans become init's children: without a child there is no process. */
		in->flags |= in->c->p->n.flags & PLAN_BARE ? 0u : (uint32_t)REPORT_ALONE;
		finish(in);
	}
	if (in->tool_done && in->phase == PHASE_RUN) {
		if (in->watch.next_ms != NEVER)
			on_sample(in); /* who is still there says what the limits had to hold */
		/* What the command left behind ends with it, politely first. */
		in->phase = PHASE_DRAIN;
		in->deadline_ms = after(in->c->p->n.drain_ms);
		signal_all(in, SIGTERM);
		signal_all(in, SIGCONT);
	}
}

static void on_deadlines(struct init *in)
{
	uint64_t now = clock_mono_ms();

	if (in->phase == PHASE_RUN && now >= in->wall_ms) {
		in->flags |= REPORT_WALL;
		end_tree(in, SIGTERM);
	}
	if (now >= in->watch.next_ms)
		on_sample(in);
	if (in->phase == PHASE_RUN || now < in->deadline_ms)
		return;
	if (in->phase == PHASE_END)
		in->flags |= REPORT_KILLED;
	signal_all(in, SIGKILL);
	for (int tries = 0; tries < 200 && !in->tool_done; tries++) {
		static const struct timespec pause = {.tv_nsec = 1000000};
		(void)reap(in);
		if (!in->tool_done)
			(void)nanosleep(&pause, NULL);
	}
	if (!in->tool_done)
		in->status = SIGKILL;
	finish(in);
}

static int timeout_ms(const struct init *in)
{
	uint64_t next = in->phase == PHASE_RUN ? in->wall_ms : in->deadline_ms;

	if (in->more)
		return 0;
	if (in->watch.next_ms < next)
		next = in->watch.next_ms;
	if (next == NEVER)
		return -1;
	uint64_t now = clock_mono_ms();
	uint64_t left = next > now ? next - now : 0;
	return left > 3600000 ? 3600000 : (int)left;
}

static _Noreturn void loop(struct init *in, int signal_fd)
{
	struct pollfd fds[] = {
		{.fd = CORE_FD_CTL, .events = POLLIN},
		{.fd = signal_fd, .events = POLLIN},
	};

	for (;;) {
		if (poll(fds, 2, timeout_ms(in)) < 0 && errno != EINTR)
			_exit(125);
		if (fds[1].revents || in->more) {
			struct signalfd_siginfo info;
			(void)!read(signal_fd, &info,
				    sizeof(info)); /* one SIGCHLD stands for many */
			on_child(in);
		}
		if (fds[0].revents)
			on_order(in);
		on_deadlines(in);
	}
}

/*
 * vfork: the command's process runs in our memory, while we stand still, until
 * its execve; it takes everything as const and nothing foreign runs before.
 * Sanitizers want memory of its own.
 */
#ifdef SANDGLASS_SANITIZED
#define spawn_fork() fork()
#else
#define spawn_fork() vfork()
#endif

/* Until the front has made ready what the command finds, or wants the end of it all. */
static void wait_for_front(struct init *in)
{
	struct pollfd fd = {.fd = CORE_FD_CTL, .events = POLLIN};

	in->has_tty = in->c->pty_slave < 0;
	in->has_egress = !(in->c->p->n.flags & PLAN_EGRESS);
	while ((!in->has_tty || !in->has_egress) && in->phase == PHASE_RUN) {
		if (poll(&fd, 1, -1) < 0 && errno != EINTR)
			_exit(125);
		on_order(in);
	}
	if (in->phase != PHASE_RUN) { /* nothing was started: as if it had ended at once */
		in->status = SIGKILL;
		finish(in);
	}
}

static _Noreturn void start(struct init *in)
{
	struct core *c = in->c;
	sigset_t mask;

	(void)sigfillset(&mask);
	(void)sigprocmask(SIG_SETMASK, &mask, NULL);
	(void)sigemptyset(&mask);
	(void)sigaddset(&mask, SIGCHLD);
	int signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signal_fd < 0)
		core_die(STAGE_FORK, errno, "signalfd");

	bool open = c->p->n.flags & PLAN_BARE; /* full access */
	c->landlock_abi = open ? 0 : landlock_version();
	wait_for_front(in);
	in->wall_ms = after(c->p->n.wall_ms);
	in->watch.next_ms = !open && watch_needed(c) ? after(WATCH_FIRST_MS) : NEVER;
	in->tool = spawn_fork();
	if (in->tool < 0)
		core_die(STAGE_FORK, errno, "fork");
	if (in->tool == 0)
		tool_run(c);
	/* The command's descriptors are the command's: init keeps none open. */
	if (!(c->p->n.flags & PLAN_STDIN_FILE))
		(void)close(STDIN_FILENO);
	(void)close(STDOUT_FILENO);
	(void)close(STDERR_FILENO);
	loop(in, signal_fd);
}

_Noreturn void init_run(struct core *c)
{
	struct init in = {.c = c, .deadline_ms = NEVER};

	if (getpid() != 1)
		core_die(STAGE_CLONE, 0, "init is not pid 1");
	start(&in);
}

_Noreturn void bare_run(struct core *c)
{
	struct init in = {.c = c, .deadline_ms = NEVER, .bare = true};

	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		core_die(STAGE_FORK, errno, "subreaper");
	if (c->p->n.flags & PLAN_LANDLOCK) {
		/* The front's end is seen at the pair; to die with it would leave the tree alone. */
		if (prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0) < 0 ||
		    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
			core_die(STAGE_PARENT, errno, "PDEATHSIG");
		if (!tree_works())
			core_die(STAGE_FORK, errno, "pidfd");
		if (c->p->n.flags & PLAN_TTY)
			devices_open_pty(c);
	}
	start(&in);
}

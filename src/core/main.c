/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandglass-core: takes a sealed plan, builds the boundary, runs one command in
 * it, reports. Started by the front with an empty environment and the
 * descriptors of enum core_fd; of no use to anybody else.
 *
 *   front ── plan, orders ──► launcher ── clone3 ──► init (pid 1) ── vfork ─► command
 *
 * With the argument `early` init is cloned before the plan is there, which hides
 * the cost of the namespaces behind the front's work; a v2 cgroup, into which a
 * child is best born, needs the plan first.
 *
 * The launcher stays outside: it writes the id maps, keeps the cgroups, waits
 * for init and cleans up. Its death kills init (PDEATHSIG and a held pair).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/core.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* The plan must be sealed: what was decoded cannot change under us. */
static void read_plan(struct plan *ret)
{
	struct err e = {0};
	struct stat st;

	if (fcntl(CORE_FD_PLAN, F_GET_SEALS) != SEALS)
		core_die(STAGE_PLAN, 0, "the plan is not a sealed memfd");
	if (fstat(CORE_FD_PLAN, &st) < 0 || st.st_size <= 0 || st.st_size > MAX_PLAN_BYTES)
		core_die(STAGE_PLAN, errno, "size of the plan");
	void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, CORE_FD_PLAN, 0);
	if (bytes == MAP_FAILED)
		core_die(STAGE_PLAN, errno, "map the plan");
	if (plan_decode(bytes, (size_t)st.st_size, ret, &e) < 0)
		core_die(STAGE_PLAN, 0, e.msg);
	(void)close(CORE_FD_PLAN);
}

/*
 * The front starts us before it has made up its plan, so that both work at once.
 * No order: it has decided against it.
 */
static void wait_for_plan(void)
{
	struct order o = {0};
	ssize_t n = 0;

	do
		n = recv(CORE_FD_CTL, &o, sizeof(o), 0);
	while (n < 0 && errno == EINTR);
	if (n != sizeof(o) || o.kind != ORDER_PLAN)
		_exit(125);
	if (o.value != PLAN_VERSION)
		core_die(STAGE_PLAN, 0, "sandglass and sandglass-core are of different versions");
}

/* Ends with the front, and is not the child of another process by now. */
static void follow_front(void)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		core_die(STAGE_PARENT, errno, "PDEATHSIG");
	/* Signals of the caller's terminal go to the front, which decides. */
	if (setsid() < 0)
		core_die(STAGE_PARENT, errno, "setsid");
}

static _Noreturn void child_run(struct core *c, struct plan *plan)
{
	/* Set again after the change of ids, which clears it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		core_die(STAGE_PARENT, errno, "PDEATHSIG");
	(void)close(CORE_FD_AGAIN); /* the launcher's alone */
	ns_set_up_net();
	if (!handover_receive(c))
		_exit(125);
	if (!plan->argc) /* cloned before it was there */
		read_plan(plan);
	bool root = plan->n.flags & PLAN_ROOT;
	if ((plan->n.flags & PLAN_STDIN_FILE) && !root) {
		int fd = stdio_reopen_file(c);
		if (dup2(fd, STDIN_FILENO) < 0)
			core_die(STAGE_STDIN, errno, "stdin");
		(void)close(fd);
	}
	ns_enter_ids(c);
	ns_set_names(c);
	ns_set_counters(c); /* after the last namespace */
	mount_build(c);
	mount_pivot(c);
	if (plan->n.flags & PLAN_TTY)
		devices_open_pty(c);
	ns_new_keyring();
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		core_die(STAGE_CAPS, errno, "dumpable");
	caps_drop(c);
	init_run(c);
}

/* Init has ended: what it cost, and whether it could say how the command ended. */
static void report_usage(struct core *c, pid_t init)
{
	struct report r = {.kind = REPORT_USAGE};
	struct rusage u;

	int status = again_wait(c, init, &u);
	r.status = status;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		r.flags |= REPORT_INIT_DIED;
	r.cpu_ms = watch_cpu_ms(&u);
	cgroup_finish(c, &r);
	report_send(&r);
}

/* What only the host's root can open, for init. */
static void open_as_root(struct core *c, int *ret_stdin)
{
	c->trees = calloc(c->p->mount_count + 1, sizeof(*c->trees));
	if (!c->trees)
		core_die(STAGE_BIND, ENOMEM, "trees");
	mount_open_trees(c);
	if (c->p->n.flags & PLAN_STDIN_FILE)
		*ret_stdin = stdio_reopen_file(c);
}

static pid_t clone_init(struct core *c, struct plan *plan)
{
	int sync[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sync) < 0)
		core_die(STAGE_CLONE, errno, "socketpair");
	pid_t init = ns_clone(c);
	if (init == 0) {
		(void)close(sync[0]);
		c->sync_fd = sync[1];
		child_run(c, plan);
	}
	(void)close(sync[1]);
	c->sync_fd = sync[0];
	return init;
}

int main(int argc, char **argv)
{
	struct plan plan = {.argc = 0};
	struct core c = {.p = &plan,
			 .sync_fd = -1,
			 .user_ns = -1,
			 .mount_ns = -1,
			 .root_fd = -1,
			 .dir_fd = -1,
			 .sand_fd = -1,
			 .shm_fd = -1,
			 .pty_slave = -1};
	int stdin_fd = -1;
	pid_t init = 0;

	(void)sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	follow_front();
	if (argc > 1 && strcmp(argv[1], "early") == 0)
		init = clone_init(&c, &plan);
	if (init && geteuid() == 0)
		ns_start_holder(&c); /* most likely needed; killed below if not */
	wait_for_plan();
	read_plan(&plan);
	if ((uint32_t)getppid() != plan.n.parent_pid)
		core_die(STAGE_PARENT, 0, "started by somebody else than the plan says");
	if (plan.n.flags & (PLAN_BARE | PLAN_LANDLOCK))
		bare_run(&c);

	cgroup_make(&c);
	if (!init)
		init = clone_init(&c, &plan);
	if (plan.n.flags & PLAN_ROOT)
		open_as_root(&c, &stdin_fd);
	if (c.holder) /* not needed after all */
		ns_end_holder(&c);
	ns_write_maps(&c, init);
	cgroup_enter(&c, init);
	again_open(&c, init);
	handover_send(&c, stdin_fd);
	ns_reap_holder(&c);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	for (int fd = 0; fd <= 2; fd++)
		(void)close(fd); /* the command's ends, not ours */
	report_usage(&c, init);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandglass-core: the first process of a sandbox. Takes a sealed plan, builds
 * the boundary, runs one command in it, reports. Started by the front (launch.c)
 * with an empty environment and the descriptors of enum core_fd; of no use to
 * anybody else.
 *
 *   front ── plan, mounts, orders ──► init (pid 1) ── vfork ─► command
 *
 * `init` (`egress`, if the plan will have a way out) is born in its user, mount, pid and uts namespaces before the plan is
 * there, and makes those that need no plan meanwhile. `join` is the same in a
 * session, whose network namespace it is born in. `bare` is for full access
 * and for Landlock alone: no namespace, a subreaper.
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
#include "core/tree.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* The plan must be sealed: what was decoded cannot change under us. */
typedef int decode_fn(const void *bytes, size_t len, struct plan *ret, struct err *e);

static void read_plan(int fd, decode_fn *decode, struct plan *ret)
{
	struct err e = {0};
	struct stat st;

	if (fcntl(fd, F_GET_SEALS) != SEALS)
		core_die(STAGE_PLAN, 0, "the plan is not a sealed memfd");
	if (fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > MAX_PLAN_BYTES)
		core_die(STAGE_PLAN, errno, "size of the plan");
	void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		core_die(STAGE_PLAN, errno, "map the plan");
	if (decode(bytes, (size_t)st.st_size, ret, &e) < 0)
		core_die(STAGE_PLAN, 0, e.msg);
	(void)close(fd);
}

/* The plan of full access comes without a handover. No order: the front has decided against it. */
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

/* Ends with the front. */
static void follow_front(void)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		core_die(STAGE_PARENT, errno, "PDEATHSIG");
	/* Signals of the caller's terminal go to the front, which decides. */
	if (setsid() < 0)
		core_die(STAGE_PARENT, errno, "setsid");
}

/* The ids are mapped by then. No start: the front has decided against it, or is gone. */
static void wait_for_start(struct plan_numbers *ret)
{
	struct start s;
	ssize_t n = 0;

	do
		n = recv(CORE_FD_CTL, &s, sizeof(s), 0);
	while (n < 0 && errno == EINTR);
	if (n != sizeof(s))
		_exit(125);
	if (s.version != PLAN_VERSION)
		core_die(STAGE_PLAN, 0, "sandglass and sandglass-core are of different versions");
	if (!plan_numbers_fit(&s.n) || (s.n.flags & (PLAN_BARE | PLAN_LANDLOCK)))
		core_die(STAGE_PLAN, 0, "numbers that cannot be");
	*ret = s.n;
}

/* What was built on already. */
static bool is_same(const struct plan_numbers *a, const struct plan_numbers *b)
{
	const uint32_t same = PLAN_ROOT | PLAN_SESSION | PLAN_EGRESS;

	return a->uid == b->uid && a->gid == b->gid && a->outer_uid == b->outer_uid &&
	       a->outer_gid == b->outer_gid && a->disk_bytes == b->disk_bytes &&
	       a->inodes == b->inodes && a->shm_bytes == b->shm_bytes &&
	       a->inotify_instances == b->inotify_instances &&
	       a->inotify_watches == b->inotify_watches && (a->flags & same) == (b->flags & same);
}

static _Noreturn void run_init(struct core *c, struct plan *plan, bool joins)
{
	static struct plan more;
	struct plan_numbers n;

	/*
	 * A front that died before PDEATHSIG was set shows as the end of the socket,
	 * which only it holds; getppid() is 0 here either way.
	 */
	if (joins)
		c->net_maker = -1;
	else
		ns_begin_net(c);
	wait_for_start(&n);
	if (joins != !!(n.flags & PLAN_SESSION) || c->has_egress != !!(n.flags & PLAN_EGRESS))
		core_die(STAGE_PLAN, 0, "numbers that cannot be");
	plan->n = n;
	ns_enter_ids(c);
	ns_begin_names();
	ns_set_counters(c);
	mount_begin(c);
	if (!handover_receive(c))
		_exit(125);
	read_plan(CORE_FD_PLAN, plan_decode, plan);
	if (!is_same(&plan->n, &n))
		core_die(STAGE_PLAN, 0, "the plan is not what was begun");
	if ((plan->n.flags & PLAN_STDIN_FILE) && !(plan->n.flags & PLAN_ROOT)) {
		struct report failure;
		int fd = tree_open_stdin(plan, &failure);
		if (fd < 0)
			core_die(failure.stage, failure.sys, failure.text);
		if (dup2(fd, STDIN_FILENO) < 0)
			core_die(STAGE_STDIN, errno, "stdin");
		(void)close(fd);
	}
	ns_set_names(c);
	mount_build(c);
	if (!handover_receive(c))
		_exit(125);
	read_plan(c->plan_fd, plan_decode_more, &more);
	c->more = &more;
	mount_build_more(c);
	if (!joins)
		ns_end_net(c);
	if (plan->n.flags & PLAN_EGRESS)
		wayout_open(c);
	mount_pivot(c);
	if (plan->n.flags & PLAN_TTY)
		devices_open_pty(c);
	ns_new_keyring();
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		core_die(STAGE_CAPS, errno, "dumpable");
	caps_drop(c);
	init_run(c);
}

static _Noreturn void run_bare(struct core *c, struct plan *plan)
{
	wait_for_plan();
	read_plan(CORE_FD_PLAN, plan_decode, plan);
	if ((uint32_t)getppid() != plan->n.parent_pid)
		core_die(STAGE_PARENT, 0, "started by somebody else than the plan says");
	if (!(plan->n.flags & (PLAN_BARE | PLAN_LANDLOCK)))
		core_die(STAGE_PLAN, 0, "the plan wants namespaces");
	for (size_t i = 0; i < plan->cgroup_count; i++)
		c->pids_counted |= plan->cgroups[i].role == CGROUP_V1_PIDS ||
				   plan->cgroups[i].role == CGROUP_V2;
	bare_run(c);
}

int main(int argc, char **argv)
{
	struct plan plan = {.argc = 0};
	struct core c = {.p = &plan,
			 .plan_fd = -1,
			 .net_fd = -1,
			 .root_fd = -1,
			 .dir_fd = -1,
			 .sand_fd = -1,
			 .shm_fd = -1,
			 .pty_slave = -1};

	(void)sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	follow_front();
	if (argc == 2 && strcmp(argv[1], "bare") == 0)
		run_bare(&c, &plan);
	bool joins = argc == 2 && strcmp(argv[1], "join") == 0;
	c.has_egress = argc == 2 && strcmp(argv[1], "egress") == 0;
	if (argc != 2 || (strcmp(argv[1], "init") != 0 && !joins && !c.has_egress) || getpid() != 1)
		core_die(STAGE_PARENT, 0, "sandglass-core is started by sandglass");
	run_init(&c, &plan, joins);
}

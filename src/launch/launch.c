/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the namespaces and their first process, and lets it go on.
 *
 * The child shares our memory until its execve (or has a copy, where it is
 * born in a v2 cgroup, which only clone3 can do): it moves descriptors, keeps
 * the capabilities of its new user namespace over the execve (as ambient ones:
 * no id is mapped yet, so nobody is root there), and starts core with an empty
 * environment. It writes nothing of ours but what it reports.
 */
#include "launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/capability.h>

#include "base/base.h"
#include "base/file.h"
#include "base/later.h"
#include "core/core.h"
#include "core/sys.h"
#include "core/tree.h"

#define STACK_BYTES 16384u
#define CAP_WORDS 2

int launch_fail(struct launch *l, enum stage stage, int sys, const char *text)
{
	l->failure = (struct report){.kind = REPORT_FAIL, .stage = stage, .sys = sys};
	strncpy(l->failure.text, text, sizeof(l->failure.text) - 1);
	return -1;
}

/* All that the new user namespace gives is handed through the execve; core drops it. */
static int keep_caps(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[CAP_WORDS];

	if (syscall(SYS_capget, &head, data) < 0)
		return -1;
	for (int i = 0; i < CAP_WORDS; i++)
		data[i].inheritable = data[i].permitted;
	if (syscall(SYS_capset, &head, data) < 0)
		return -1;
	/* What core needs before it gives up everything. */
	static const int caps[] = {CAP_SYS_ADMIN, CAP_NET_ADMIN,    CAP_SETUID,       CAP_SETGID,
				   CAP_SETPCAP,   CAP_SYS_RESOURCE, CAP_DAC_OVERRIDE, CAP_FOWNER,
				   CAP_CHOWN,     CAP_MKNOD,        CAP_SYS_CHROOT};
	for (size_t i = 0; i < ARRAY_LEN(caps); i++)
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, caps[i], 0, 0) < 0)
			return -1;
	return 0;
}

static int move_fds(const struct launch_fds *f)
{
	for (int fd = 0; fd <= 2; fd++)
		if (dup2(f->stdio[fd], fd) < 0)
			return -1;
	if (dup2(f->plan, CORE_FD_PLAN) < 0 || (f->uid >= 0 && dup2(f->uid, CORE_FD_UID) < 0))
		return -1;
	return 0;
}

int newborn_run(void *arg)
{
	const struct newborn *b = arg;
	char *argv[] = {(char *)(uintptr_t) "sandglass-core", (char *)(uintptr_t)b->how, NULL};
	char *envp[] = {NULL};
	struct report r = {.kind = REPORT_FAIL, .stage = STAGE_CLONE};

	/* The front's socket first: a failure is reported on it. */
	if (dup2(b->fds->ctl, CORE_FD_CTL) < 0)
		_exit(125);
	if (keep_caps() < 0) {
		strncpy(r.text, "ambient capabilities", sizeof(r.text) - 1);
	} else if (move_fds(b->fds) < 0) {
		strncpy(r.text, "descriptors", sizeof(r.text) - 1);
	} else {
		(void)execve(b->core, argv, envp);
		r.stage = STAGE_EXEC;
		strncpy(r.text, b->core, sizeof(r.text) - 1);
	}
	r.sys = errno;
	report_send(&r);
	_exit(125);
}

/* A copy of our memory: where clone(2) has no room for the flag, and for sanitizers. */
static pid_t clone_copy(struct newborn *b, int cgroup)
{
	struct clone_args a = {.flags = LAUNCH_NAMESPACES, .exit_signal = SIGCHLD};

	if (cgroup >= 0) {
		a.flags |= CLONE_INTO_CGROUP;
		a.cgroup = (uint64_t)cgroup;
	}
	long pid = sys_clone3(&a);
	if (pid == 0)
		_exit(newborn_run(b));
	return (pid_t)pid;
}

static pid_t clone_shared(struct newborn *b)
{
#ifdef SANDGLASS_SANITIZED
	return clone_copy(b, -1);
#else
	static _Alignas(16) char stack[STACK_BYTES];

	return clone(newborn_run, stack + sizeof(stack),
		     CLONE_VM | CLONE_VFORK | LAUNCH_NAMESPACES | SIGCHLD, b);
#endif
}

int launch_start(struct launch *l, const char *core, const struct launch_fds *fds)
{
	struct newborn b = {core, l->p->n.flags & PLAN_EGRESS ? "egress" : "init", fds};
	bool failed = false;

	AUTO_FD int cgroup = leaf_open_v2(l, &failed);
	if (failed)
		return -1;
	if (l->session)
		return session_start(l, core, fds, cgroup);
	l->init = cgroup >= 0 ? clone_copy(&b, cgroup) : clone_shared(&b);
	if (l->init < 0) {
		l->init = 0;
		return launch_fail(l, STAGE_CLONE, errno, "make namespaces");
	}
	return 0;
}

static int write_map(pid_t pid, const char *file, uint32_t inside, uint32_t outside)
{
	char path[64];
	char line[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	(void)snprintf(line, sizeof(line), "%u %u 1\n", inside, outside);
	return file_write_text(path, line);
}

/*
 * One id each. An ordinary user may map only itself and must first give up
 * setgroups(2) (user_namespaces(7)).
 */
int launch_write_maps(const struct plan_numbers *n, pid_t pid, const char **ret_file)
{
	char path[64];

	*ret_file = "setgroups";
	(void)snprintf(path, sizeof(path), "/proc/%d/setgroups", (int)pid);
	if (!(n->flags & PLAN_ROOT) && file_write_text(path, "deny") < 0)
		return -1;
	*ret_file = "uid_map";
	if (write_map(pid, "uid_map", n->uid, n->outer_uid) < 0)
		return -1;
	*ret_file = "gid_map";
	return write_map(pid, "gid_map", n->gid, n->outer_gid);
}

static int write_maps(struct launch *l)
{
	const char *file = NULL;

	/* In a user's session its parent has: only that is in the right namespace. */
	if (l->session && l->session->user >= 0)
		return 0;
	return launch_write_maps(&l->p->n, l->init, &file) < 0
		       ? launch_fail(l, STAGE_MAPS, errno, file)
		       : 0;
}

static int open_ns(struct launch *l, const char *name, int *ret)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)l->init, name);
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	/* Not where core's code, in a child of ours, takes a descriptor for its own. */
	*ret = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, CORE_FD_END);
	return *ret < 0 ? launch_fail(l, STAGE_CLONE, errno, path) : 0;
}

/*
 * For pins and masks that may have to be put back. Where they are is not known yet,
 * but once init has taken its ids it cannot be looked at any more.
 */
static int open_namespaces(struct launch *l)
{
	return open_ns(l, "user", &l->user_ns) < 0 || open_ns(l, "mnt", &l->mount_ns) < 0 ? -1 : 0;
}

int launch_begin(struct launch *l, int ctl)
{
	struct start s = {.version = PLAN_VERSION, .n = l->p->n};

	if (write_maps(l) < 0 || leaf_enter(l) < 0 || open_namespaces(l) < 0)
		return -1;
	/* Init is gone already: what it reported before says why. */
	if (RETRY_EINTR(send(ctl, &s, sizeof(s), MSG_NOSIGNAL)) < 0 && errno != EPIPE &&
	    errno != ECONNRESET)
		return launch_fail(l, STAGE_CLONE, errno, "start init");
	return 0;
}

int launch_release(struct launch *l, int ctl)
{
	AUTO_FD int stdin_fd = -1;
	bool root = l->p->n.flags & PLAN_ROOT;

	if ((root || l->given >= 0) && idmap_open_trees(l) < 0)
		return -1;
	idmap_end_holder(l); /* if it was not needed after all */
	if (root && (l->p->n.flags & PLAN_STDIN_FILE)) {
		stdin_fd = tree_open_stdin(l->p, &l->failure);
		if (stdin_fd < 0)
			return -1;
	}
	if (handover_send(l, ctl, stdin_fd, true) < 0)
		return -1;
	idmap_reap_holder(l);
	return 0;
}

int launch_release_more(struct launch *l, int ctl, int plan)
{
	if ((l->p->n.flags & PLAN_ROOT) && idmap_open_trees(l) < 0)
		return -1;
	idmap_end_holder(l);
	idmap_reap_holder(l);
	return handover_send(l, ctl, plan, false);
}

/*
 * When somebody outside replaces a file by rename, the kernel drops the mounts
 * that stood on it, in every namespace. A child of ours enters the sandbox's
 * user and mount namespaces and pins or covers what lies at the path now, by the same code
 * as at the start: it keeps no right of the host that the command could take
 * over, is not in the command's pid namespace, and ends at once.
 */
static int pin_there(const struct launch *l, const struct plan_mount *m)
{
	struct core c = {.p = l->p, .dir_fd = -1};

	(void)close(CORE_FD_CTL); /* not core's here: nothing is reported on it */
	/* Of the user namespace first, whose capabilities the other takes: setns(2). */
	if (setns(l->user_ns, CLONE_NEWUSER) < 0 || setns(l->mount_ns, CLONE_NEWNS) < 0)
		return errno;
	ns_enter_ids(&c);
	c.root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (c.root_fd < 0)
		return errno;
	return m->kind == MOUNT_MASK ? mount_mask_again(&c, m) : mount_pin(&c, m);
}

int launch_pin_again(const struct launch *l, uint32_t mount)
{
	int status = 0;

	if (mount >= l->p->mount_count || l->p->mounts[mount].kind < MOUNT_MASK || l->mount_ns < 0)
		return EINVAL;
	pid_t child = fork();
	if (child == 0)
		_exit(pin_there(l, &l->p->mounts[mount]) & 0xff);
	if (child < 0 || RETRY_EINTR(waitpid(child, &status, 0)) != child || !WIFEXITED(status))
		return EIO;
	return WEXITSTATUS(status);
}

/* Init does not have to take its mounts down before it can be waited for. */
static void let_go(struct launch *l)
{
	if (l->user_ns >= 0)
		(void)close(l->user_ns);
	if (l->mount_ns >= 0)
		later_close(l->mount_ns);
	l->user_ns = l->mount_ns = -1;
}

void launch_wait(struct launch *l, struct report *usage)
{
	struct rusage u = {.ru_maxrss = 0};
	int status = 0;

	*usage = (struct report){.kind = REPORT_USAGE};
	let_go(l);
	idmap_end_holder(l);
	idmap_reap_holder(l);
	handover_drop(l);
	if (l->init && RETRY_EINTR(wait4(l->init, &status, 0, &u)) == l->init) {
		usage->status = status;
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			usage->flags |= REPORT_INIT_DIED;
		usage->cpu_ms = watch_cpu_ms(&u);
	}
	l->init = 0;
	leaf_finish(l, usage);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What init and the command give up: capabilities (both), resource limits and
 * Landlock (the command). Nothing here can widen anything: every call only
 * takes away, and each failure ends the process before the command runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/capability.h>

#include "base/base.h"
#include "base/file.h"
#include "base/landlock_abi.h"
#include "core/core.h"
#include "core/sys.h"

/*
 * Empties the bounding, ambient and all other sets; then no execve can give one
 * back. Without a namespace of its own an ordinary process may not empty the
 * bounding set, and no_new_privs alone keeps it from being of use.
 */
void caps_drop(const struct core *c)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}};

	for (unsigned long cap = 0; prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0; cap++)
		;
	if (errno != EINVAL && !(errno == EPERM && (c->p->n.flags & PLAN_LANDLOCK)))
		core_die(STAGE_CAPS, errno, "bounding set");
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		core_die(STAGE_CAPS, errno, "ambient set");
	if (syscall(SYS_capset, &head, data) < 0)
		core_die(STAGE_CAPS, errno, "capset");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		core_die(STAGE_CAPS, errno, "no_new_privs");
}

static void limit(int resource, uint64_t soft, uint64_t hard)
{
	struct rlimit now;

	if (getrlimit(resource, &now) < 0)
		core_die(STAGE_RLIMIT, errno, "getrlimit");
	if (now.rlim_max != RLIM_INFINITY && hard > now.rlim_max)
		hard = now.rlim_max;
	now.rlim_cur = soft < hard ? soft : hard;
	now.rlim_max = hard;
	if (setrlimit(resource, &now) < 0)
		core_die(STAGE_RLIMIT, errno, "setrlimit");
}

static void quarter(int resource)
{
	struct rlimit now;

	if (getrlimit(resource, &now) < 0)
		core_die(STAGE_RLIMIT, errno, "getrlimit");
	if (now.rlim_max != RLIM_INFINITY)
		limit(resource, now.rlim_max / 4, now.rlim_max / 4);
}

/* At most half of what the caller may have: the rest is for the caller. */
static void limit_processes(uint64_t most)
{
	struct rlimit now;

	if (getrlimit(RLIMIT_NPROC, &now) < 0)
		core_die(STAGE_RLIMIT, errno, "getrlimit");
	if (now.rlim_cur != RLIM_INFINITY && now.rlim_cur / 2 < most)
		most = now.rlim_cur / 2;
	limit(RLIMIT_NPROC, most, most);
}

/*
 * RLIMIT_NPROC counts per user namespace and uid since Linux 5.14, so it bounds
 * this sandbox alone. RLIMIT_CORE is 1, not 0: 0 still starts a piped core
 * handler on the host (core(5)).
 */
void rlimit_apply(const struct core *c)
{
	const struct plan_numbers *n = &c->p->n;

	limit(RLIMIT_CORE, 1, 1);
	if (n->flags & PLAN_BARE)
		return;
	/* Charged to the caller's uid on the host too: a quarter, so that the host keeps the rest. */
	quarter(RLIMIT_SIGPENDING);
	quarter(RLIMIT_MSGQUEUE);
	/* A cgroup counts refusals, which this does not: where there is one it goes first. */
	if (n->pids != UINT64_MAX && !c->pids_counted)
		limit_processes(n->pids + 1); /* init counts too */
	/* The tree's time is watched; this catches a single process in between. */
	if (n->cpu_ms != UINT64_MAX)
		limit(RLIMIT_CPU, n->cpu_ms / 1000 + 2, n->cpu_ms / 1000 + 5);
}

static void add_rule(int ruleset, int fd, const struct stat *st, const char *path, uint64_t rights)
{
	struct landlock_path rule = {
		.access = S_ISDIR(st->st_mode) ? rights : rights & LANDLOCK_FILE_RIGHTS,
		.fd = fd,
	};
	if (syscall(SYS_LANDLOCK_ADD_RULE, ruleset, LANDLOCK_PATH_RULE, &rule, 0) < 0)
		core_die(STAGE_LANDLOCK, errno, path);
}

static void allow(int ruleset, const char *path, uint64_t rights)
{
	struct stat st;

	AUTO_FD int fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		if (errno == ENOENT)
			return; /* what is not in the view needs no rule */
		core_die(STAGE_LANDLOCK, errno, path);
	}
	add_rule(ruleset, fd, &st, path, rights);
}

/*
 * Without namespaces a bind is a rule on the host's own path, opened with the
 * command's ids. No ioctl on devices in directories: nothing is mounted nodev.
 */
static void allow_bind(int ruleset, const struct plan_mount *m, uint64_t all)
{
	struct stat st;
	uint64_t rights = all & (m->flags & MOUNT_WRITE ? ~0ull : LANDLOCK_READ);

	AUTO_FD int fd = open(m->src, O_PATH | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		if (m->flags & MOUNT_OPTIONAL)
			return;
		core_die(STAGE_BIND, errno, m->src);
	}
	if ((m->flags & MOUNT_IDENT) && (st.st_dev != m->dev || st.st_ino != m->ino))
		core_die(STAGE_IDENT, 0, m->src);
	if (S_ISDIR(st.st_mode))
		rights &= ~LANDLOCK_IOCTL_DEV;
	add_rule(ruleset, fd, &st, m->src, rights);
}

int landlock_version(void)
{
	int abi = (int)syscall(SYS_LANDLOCK_CREATE, NULL, 0, LANDLOCK_VERSION_FLAG);

	return abi < 0 ? 0 : abi;
}

/* Descriptor 0 may be a file from outside the view: what it can do stays possible by name. */
static void allow_stdin(int ruleset)
{
	struct stat st;

	if (fstat(STDIN_FILENO, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	struct landlock_path rule = {.access = LANDLOCK_READ_FILE, .fd = STDIN_FILENO};
	if (syscall(SYS_LANDLOCK_ADD_RULE, ruleset, LANDLOCK_PATH_RULE, &rule, 0) < 0)
		core_die(STAGE_LANDLOCK, errno, "stdin");
}

static void restrict_self(int ruleset)
{
	if (syscall(SYS_LANDLOCK_RESTRICT, ruleset, 0) < 0)
		core_die(STAGE_LANDLOCK, errno, "restrict");
}

static void allow_writable(int ruleset, const struct plan *p, uint64_t rights)
{
	for (size_t i = 0; i < p->mount_count; i++)
		if (p->mounts[i].kind == MOUNT_BIND && (p->mounts[i].flags & MOUNT_WRITE))
			allow(ruleset, p->mounts[i].dst, rights);
}

/*
 * The same view a second time: read and execute everywhere, write where a mount
 * is writable, no device or set of devices to be made, no signal and no
 * abstract socket out of the domain. Rule paths are opened after the root was
 * built: a rule belongs to an inode, not to a name.
 */
void landlock_apply(const struct core *c)
{
	/* /tmp and /var/tmp are one directory, so one rule. */
	static const char *const writable[] = {"/sand", "/tmp", "/dev/shm", "/dev/mqueue"};
	struct landlock_ruleset rs = {0};
	bool rung = c->p->n.flags & PLAN_LANDLOCK;
	int abi = c->landlock_abi;

	if (!abi && rung)
		core_die(STAGE_LANDLOCK, ENOSYS, "Landlock");
	if (!abi)
		return; /* reported; mounts and DAC hold the view without it */
	rs.fs = landlock_fs_rights(abi);
	rs.net = rung && abi >= LANDLOCK_ABI_NET ? LANDLOCK_TCP : 0;
	rs.scoped = abi >= LANDLOCK_ABI_SCOPES ? LANDLOCK_SCOPES : 0;
	size_t size = abi >= LANDLOCK_ABI_SCOPES ? sizeof(rs)
		      : abi >= LANDLOCK_ABI_NET  ? offsetof(struct landlock_ruleset, scoped)
						 : sizeof(rs.fs);
	AUTO_FD int fd = (int)syscall(SYS_LANDLOCK_CREATE, &rs, size, 0);
	if (fd < 0)
		core_die(STAGE_LANDLOCK, errno, "ruleset");

	uint64_t all = rs.fs & ~LANDLOCK_NEVER;
	for (size_t i = 0; rung && i < c->p->mount_count; i++)
		allow_bind(fd, &c->p->mounts[i], all);
	if (rung) {
		restrict_self(fd);
		return;
	}
	allow(fd, "/", rs.fs & LANDLOCK_READ);
	allow(fd, "/dev", rs.fs & (LANDLOCK_READ | LANDLOCK_WRITE_NODE));
	allow(fd, "/proc", rs.fs & (LANDLOCK_READ | LANDLOCK_WRITE_NODE));
	for (size_t i = 0; i < sizeof(writable) / sizeof(writable[0]); i++)
		allow(fd, writable[i], all);
	allow_writable(fd, c->p, all);
	if (c->more)
		allow_writable(fd, c->more, all);
	allow_stdin(fd);
	restrict_self(fd);
}

/*
 * As the host's root the command becomes the ids of the plan, which are never
 * 0. Else it keeps its caller's, who may be root of a user namespace, but never
 * of one in which 0 stands for the host's. The groups of an ordinary user stay.
 */
void rung_enter_ids(const struct core *c)
{
	const struct plan_numbers *n = &c->p->n;
	char text[64];
	unsigned int outside = 0;

	ns_new_keyring();
	if (n->flags & PLAN_ROOT) {
		if (setgroups(0, NULL) < 0 ||
		    setresgid(n->outer_gid, n->outer_gid, n->outer_gid) < 0 ||
		    setresuid(n->outer_uid, n->outer_uid, n->outer_uid) < 0)
			core_die(STAGE_IDS, errno, "become the session's ids");
	} else if (geteuid() == 0 || getuid() == 0) {
		(void)file_read_text(AT_FDCWD, "/proc/self/uid_map", text, sizeof(text));
		if (sscanf(text, "%*u %u", &outside) != 1 || outside == 0)
			core_die(STAGE_IDS, EPERM, "the command would be root");
	}
	/* After the change of ids, which clears it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		core_die(STAGE_IDS, errno, "PDEATHSIG");
}

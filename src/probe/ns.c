/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows about namespaces, mounts and cgroups. Where a row may mount for real it
 * first leaves the host's mount namespace for a private copy.
 */
#include "rows.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/base.h"
#include "probe/sys.h"

#define NEWTIME 0x00000080L /* CLONE_NEWTIME */

static bool own_mounts(struct finding *f)
{
	long rc = unshare(CLONE_NEWNS);
	tried(f, "unshare(mount)", rc, BY_FILTER);
	if (rc < 0)
		return false;
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static void new_mount_calls(struct finding *f, const char *dir)
{
	uint64_t attr[4] = {1 /* MOUNT_ATTR_RDONLY */, 0, 0, 0};
	long fd = syscall(NR_open_tree, AT_FDCWD, dir, 1 /* OPEN_TREE_CLONE */ | O_CLOEXEC);
	tried(f, "open_tree", fd, BY_FILTER);
	if (fd >= 0)
		(void)close((int)fd);
	fd = syscall(NR_fsopen, "tmpfs", 1 /* FSOPEN_CLOEXEC */);
	tried(f, "fsopen", fd, BY_FILTER);
	if (fd >= 0)
		(void)close((int)fd);
	tried(f, "fspick", syscall(NR_fspick, AT_FDCWD, dir, 1), BY_FILTER);
	tried(f, "fsconfig", syscall(NR_fsconfig, -1, 6, 0, 0, 0), BY_FILTER);
	tried(f, "fsmount", syscall(NR_fsmount, -1, 0, 0), BY_FILTER);
	tried(f, "move_mount", syscall(NR_move_mount, -1, "", -1, "", 0), BY_FILTER);
	tried(f, "mount_setattr", syscall(NR_mount_setattr, AT_FDCWD, dir, 0, attr, sizeof(attr)),
	      BY_FILTER);
	tried(f, "open_tree_attr", syscall(NR_open_tree_attr, AT_FDCWD, dir, 1, attr, sizeof(attr)),
	      BY_FILTER);
}

static void change_root(struct finding *f, void *dir)
{
	tried(f, "chroot", chroot(dir), BY_FILTER);
}

/* Only on a directory of its own, so that it does no harm where it may mount. */
static void row_mount(struct finding *f)
{
	char dir[4096];
	if (!scratch_path(dir, sizeof(dir), scratch_dir()) || mkdir(dir, 0700) < 0) {
		cannot(f, "no directory in %s: %s", scratch_dir(), errno_text(errno));
		return;
	}
	(void)own_mounts(f);
	long rc = mount("none", dir, "tmpfs", MS_NOSUID | MS_NODEV, "size=4k");
	tried(f, "mount", rc, BY_FILTER);
	tried(f, "remount", mount(NULL, dir, NULL, MS_REMOUNT | MS_BIND | MS_NOEXEC, NULL),
	      BY_FILTER);
	tried(f, "bind", mount(dir, dir, NULL, MS_BIND, NULL), BY_FILTER);
	new_mount_calls(f, dir);
	/* As often as something was mounted, and once more. */
	for (int i = 0; i < 3; i++)
		tried(f, "umount2", umount2(dir, MNT_DETACH), BY_FILTER);
	guarded(f, "chroot", change_root, dir);
	/* Busy for who may do it. */
	tried(f, "pivot_root", syscall(SYS_pivot_root, "/", "/"), BY_FILTER);
	(void)rmdir(dir);
}

/* Takes every mount away that it can: what was below may be what a mask hid. */
static void umount_all(struct finding *f, const char *prefix, unsigned int refusals)
{
	static char mounts[256 * 1024];
	if (read_text("/proc/self/mounts", mounts, sizeof(mounts)) < 0) {
		tried(f, "/proc/self/mounts", -1, BY_FILE);
		return;
	}
	for (char *line = mounts, *next; *line; line = next) {
		char path[1024], what[MAX_WHAT];
		next = strchr(line, '\n');
		next = next ? next + 1 : line + strlen(line);
		if (sscanf(line, "%*s %1023s", path) != 1)
			continue;
		(void)snprintf(what, sizeof(what), "%s %.40s", prefix, path);
		tried(f, what, umount2(path, MNT_DETACH), refusals);
	}
}

static void umount_nested(struct finding *f, void *arg)
{
	(void)arg;
	long rc = unshare(CLONE_NEWUSER | CLONE_NEWNS);
	tried(f, "unshare(user,mount)", rc, BY_FILTER | BY_LIMIT);
	/* What the outer namespace mounted is locked together: EINVAL. */
	if (rc == 0)
		umount_all(f, "nested", BY_FILTER | BY_TYPE);
}

static void row_unmask(struct finding *f)
{
	const char *mask = arg("mask");
	bool own = own_mounts(f);
	if (mask)
		tried(f, "umount2 mask", umount2(mask, MNT_DETACH), BY_FILTER | BY_FILE);
	/* The host's own mounts are not touched by who could really take them away. */
	if (!own && !has_cap(CAP_SYS_ADMIN))
		umount_all(f, "umount", BY_FILTER);
	guarded(f, "nested", umount_nested, NULL);
	char text[64];
	if (arg("canary") && read_text(arg("canary"), text, sizeof(text)) > 0)
		reached(f, "behind the mask: %.40s", text);
}

static void clone_child(struct finding *f, const char *what, long pid, unsigned int refusals)
{
	if (pid == 0)
		_exit(0);
	tried(f, what, pid, refusals);
	if (pid > 0)
		(void)waitpid((pid_t)pid, NULL, __WALL);
}

static const struct {
	const char *name;
	long flag;
} kinds[] = {
	{"user", CLONE_NEWUSER},     {"mount", CLONE_NEWNS}, {"pid", CLONE_NEWPID},
	{"net", CLONE_NEWNET},       {"ipc", CLONE_NEWIPC},  {"uts", CLONE_NEWUTS},
	{"cgroup", CLONE_NEWCGROUP}, {"time", NEWTIME},
};

static void unshare_one(struct finding *f, void *arg)
{
	const size_t i = *(const size_t *)arg;
	char what[MAX_WHAT];
	(void)snprintf(what, sizeof(what), "unshare(%s)", kinds[i].name);
	tried(f, what, syscall(SYS_unshare, kinds[i].flag), BY_FILTER | BY_LIMIT);
	(void)snprintf(what, sizeof(what), "unshare(user,%s)", kinds[i].name);
	tried(f, what, syscall(SYS_unshare, kinds[i].flag | CLONE_NEWUSER), BY_FILTER | BY_LIMIT);
	(void)snprintf(what, sizeof(what), "unshare(%s)/high", kinds[i].name);
	tried(f, what, syscall(SYS_unshare, kinds[i].flag | HIGH_BIT),
	      BY_FILTER | BY_LIMIT | BY_TYPE); /* the kernel knows no such flag: EINVAL */
}

static void row_nested(struct finding *f)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		char what[MAX_WHAT];
		guarded(f, kinds[i].name, unshare_one, &i);
		if (kinds[i].flag == NEWTIME)
			continue; /* its bit is a signal number to clone */
		/* The argument that differs in place between architectures is 0 in both. */
		(void)snprintf(what, sizeof(what), "clone(%s)", kinds[i].name);
		clone_child(f, what, syscall(SYS_clone, kinds[i].flag | SIGCHLD, 0, 0, 0, 0),
			    BY_FILTER | BY_LIMIT);
		(void)snprintf(what, sizeof(what), "clone(user,%s)", kinds[i].name);
		clone_child(f, what,
			    syscall(SYS_clone, CLONE_NEWUSER | kinds[i].flag | SIGCHLD, 0, 0, 0, 0),
			    BY_FILTER | BY_LIMIT);
		(void)snprintf(what, sizeof(what), "clone(%s)/high", kinds[i].name);
		clone_child(f, what,
			    syscall(SYS_clone, HIGH_BIT | kinds[i].flag | SIGCHLD, 0, 0, 0, 0),
			    BY_FILTER | BY_LIMIT);
	}
}

/* A filter cannot read the struct, so the call itself must be unknown. */
static void row_clone3(struct finding *f)
{
	uint64_t args[8] = {CLONE_NEWUSER, 0, 0, 0, SIGCHLD, 0, 0, 0};
	clone_child(f, "clone3(user)", syscall(NR_clone3, args, sizeof(args)), BY_FILTER);
	args[0] = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET;
	clone_child(f, "clone3(user,mount,net)", syscall(NR_clone3, args, sizeof(args)), BY_FILTER);
	args[0] = 0;
	clone_child(f, "clone3()", syscall(NR_clone3, args, sizeof(args)), BY_FILTER);
}

static void row_setns(struct finding *f)
{
	static const char *const names[] = {"user", "mnt", "pid",    "net",
					    "ipc",  "uts", "cgroup", "pid_for_children"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char path[64], what[MAX_WHAT];
		for (int init = 0; init < 2; init++) {
			(void)snprintf(path, sizeof(path), "/proc/%s/ns/%s", init ? "1" : "self",
				       names[i]);
			AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
			(void)snprintf(what, sizeof(what), "%.40s", path + 6);
			if (fd < 0)
				tried(f, what, fd, BY_FILE);
			else /* joining the own user namespace is refused to everybody */
				tried(f, what, setns(fd, 0), BY_FILTER | BY_TYPE);
		}
	}
	long pidfd = syscall(NR_pidfd_open, 1, 0);
	if (pidfd >= 0)
		tried(f, "setns(pidfd 1)", setns((int)pidfd, CLONE_NEWNS | CLONE_NEWNET),
		      BY_FILTER);
}

/* The namespaces of this process against a list of the host's. */
static void row_shared(struct finding *f)
{
	static const char *const names[] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char path[64], link[64];
		(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", names[i]);
		ssize_t n = readlink(path, link, sizeof(link) - 1);
		if (n < 0) {
			tried(f, names[i], -1, BY_FILE);
			continue;
		}
		link[n] = '\0';
		bool same = strstr(arg("ns"), link);
		judged(f, names[i], same ? 0 : ENOENT, same);
	}
}

static void join_cgroup(struct finding *f, const char *file)
{
	char what[MAX_WHAT];
	(void)snprintf(what, sizeof(what), "%.46s", file);
	AUTO_FD int fd = open(file, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		tried(f, what, -1, BY_FILE);
	else
		tried(f, what, write(fd, "0\n", 2), BY_FILE | BY_TYPE);
}

static void row_cgroup(struct finding *f)
{
	static const char *const roots[] = {"/sys/fs/cgroup",         "/sys/fs/cgroup/unified",
					    "/sys/fs/cgroup/pids",    "/sys/fs/cgroup/memory",
					    "/sys/fs/cgroup/freezer", "/sys/fs/cgroup/systemd"};
	static const char *const files[] = {"cgroup.procs", "../cgroup.procs", "tasks"};
	char path[4096];
	for (size_t i = 0; i < ARRAY_LEN(roots); i++)
		for (size_t j = 0; j < ARRAY_LEN(files); j++)
			if (join(path, sizeof(path), roots[i], files[j]))
				join_cgroup(f, path);
	if (arg("cgroup"))
		join_cgroup(f, arg("cgroup"));
}

static const struct row rows[] = {
	{"ns-03", "mount", row_mount, 0, NULL,
	 "every call of the mount family, chroot and pivot_root"},
	{"ns-04", "unmask", row_unmask, 0, NULL,
	 "umount of every mount, also from a nested user and mount namespace"},
	{"nested-userns", NULL, row_nested, 0, NULL,
	 "unshare and clone of every kind of namespace, with and without a user namespace"},
	{"sc-03", "clone3", row_clone3, 0, NULL, "clone3 with namespace flags in its struct"},
	{"setns", NULL, row_setns, 0, NULL, "setns to the namespaces of pid 1 and of itself"},
	{"ns-shared", NULL, row_shared, 0, "ns", "compares its namespaces with the host's"},
	{"ns-15", "cgroup", row_cgroup, 0, NULL, "moves itself to a cgroup further up"},
};
const struct row_table rows_ns = {rows, ARRAY_LEN(rows)};

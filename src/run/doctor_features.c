/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The features, one function each. A test runs in a child and tells by its exit
 * status, which is an errno; nothing of it stays.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/file.h"
#include "policy/state.h"
#include "run/beside.h"
#include "run/cgroups.h"
#include "run/doctor.h"
#include "run/job.h"

#include <linux/sched.h>
#include <linux/seccomp.h>

/* Calls without a name in libc; numbers from 424 on are the same everywhere. */
enum {
	NR_PIDFD_SEND_SIGNAL = 424,
	NR_OPEN_TREE = 428,
	NR_MOVE_MOUNT,
	NR_FSOPEN,
	NR_FSCONFIG,
	NR_FSMOUNT,
	NR_PIDFD_OPEN = 434,
	NR_OPENAT2 = 437,
	NR_MOUNT_SETATTR = 442,
};

#define FSCONFIG_STRING 1
#define FSCONFIG_CREATE 6
#define TREE_CLONE 1
#define ATTR_IDMAP 0x100000
#define ALL_NAMESPACES \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWCGROUP)

/* The child's verdict: 0, or an errno. Like fork: it goes on on a copy of this stack. */
static int in_child(int (*test)(void), uint64_t flags)
{
	int status = 0;

	long pid = syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid < 0)
		return errno;
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		_exit(test ? test() : 0);
	}
	if (RETRY_EINTR(waitpid((pid_t)pid, &status, 0)) < 0)
		return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

static int in_fork(int (*test)(void))
{
	return in_child(test, 0);
}

static struct finding *add(struct findings *f, const char *name, bool needed, int sys)
{
	struct finding *n = &f->v[f->n < MAX_FINDINGS ? f->n++ : MAX_FINDINGS - 1];

	*n = (struct finding){.name = name, .needed = needed, .available = sys == 0};
	if (sys)
		(void)snprintf(n->why, sizeof(n->why), "%s", strerror(sys));
	return n;
}

static void mend(struct finding *n, const char *text)
{
	if (!n->available)
		(void)snprintf(n->mend, sizeof(n->mend), "%s", text);
}

static void fact(struct finding *n, const char *name, int64_t number)
{
	if (n->fact_count < DOCTOR_FACTS)
		n->facts[n->fact_count++] = (struct fact){.name = name, .number = number};
}

static void fact_bool(struct finding *n, const char *name, bool yes)
{
	fact(n, name, yes);
	n->facts[n->fact_count - 1].is_bool = true;
}

static void fact_text(struct finding *n, const char *name, const char *text)
{
	fact(n, name, 0);
	n->facts[n->fact_count - 1].text = text;
}

/* The number in a small file; -1: none. */
static int64_t number_in(const char *path)
{
	char text[64];
	long long value = -1;

	(void)file_read_text(AT_FDCWD, path, text, sizeof(text));
	return sscanf(text, "%lld", &value) == 1 ? value : -1;
}

static bool in_container(void)
{
	return access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0 ||
	       getenv("container") != NULL;
}

/* The profile that lies beside this program, for the command that loads it. */
static void name_profile(char *ret, size_t len)
{
	char self[PATH_TEXT];
	char path[PATH_TEXT + 64];

	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[n > 0 ? n : 0] = '\0';
	char *slash = strrchr(self, '/');
	*(slash ? slash : self) = '\0';
	(void)snprintf(path, sizeof(path), "%s/../share/sandglass/apparmor/sandglass", self);
	(void)snprintf(ret, len,
		       "install -m 644 %s /etc/apparmor.d/sandglass && apparmor_parser -r "
		       "/etc/apparmor.d/sandglass (as root)",
		       access(path, R_OK) == 0 ? path : "share/apparmor/sandglass");
}

/* Why namespaces are refused, by what the kernel shows; the commands are for root. */
static void mend_namespaces(struct finding *n)
{
	static const char container[] =
		"in a container its engine refuses them: docker run --security-opt "
		"seccomp=FILE with clone3, unshare, mount and pivot_root allowed, and "
		"--security-opt systempaths=unconfined; in Kubernetes hostUsers: false and "
		"procMount: Unmasked";

	if (n->available)
		return;
	if (number_in("/proc/sys/user/max_user_namespaces") == 0)
		mend(n, "sysctl -w user.max_user_namespaces=10000 (as root); to keep it: "
			"/etc/sysctl.d/90-userns.conf");
	else if (number_in("/proc/sys/kernel/unprivileged_userns_clone") == 0)
		mend(n, "sysctl -w kernel.unprivileged_userns_clone=1 (as root); to keep it: "
			"/etc/sysctl.d/90-userns.conf");
	else if (number_in("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1)
		name_profile(n->mend, sizeof(n->mend));
	else if (in_container() || prctl(PR_GET_SECCOMP) == 2)
		mend(n, container);
	else
		mend(n,
		     "a kernel with CONFIG_USER_NS, CONFIG_PID_NS, CONFIG_NET_NS, CONFIG_IPC_NS, "
		     "CONFIG_UTS_NS and CONFIG_CGROUPS (zgrep _NS= /proc/config.gz)");
}

/* As AppArmor and others have it: the namespace is made, and nothing in it allowed. */
static int test_rights(void)
{
	if (unshare(CLONE_NEWNET) < 0 || sethostname("sandglass", 9) < 0)
		return errno;
	return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ? errno : 0;
}

static int test_proc(void)
{
	int fs = (int)syscall(NR_FSOPEN, "proc", 0);

	if (fs < 0 || syscall(NR_FSCONFIG, fs, FSCONFIG_CREATE, NULL, NULL, 0) < 0)
		return errno;
	return syscall(NR_FSMOUNT, fs, 0, 0) < 0 ? errno : 0;
}

static void add_namespaces(struct findings *f)
{
	static const struct {
		const char *name;
		uint64_t flags;
		int (*test)(void);
	} each[] = {
		{"user_namespaces", 0, NULL},
		{"mount_namespace", CLONE_NEWNS, NULL},
		{"pid_namespace", CLONE_NEWPID, NULL},
		{"net_namespace", CLONE_NEWNET, NULL},
		{"ipc_uts_cgroup_namespaces", CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP, NULL},
		{"namespace_rights", CLONE_NEWNS | CLONE_NEWUTS, test_rights},
	};

	for (size_t i = 0; i < ARRAY_LEN(each); i++) {
		int sys = in_child(each[i].test, CLONE_NEWUSER | each[i].flags);
		mend_namespaces(add(f, each[i].name, true, sys));
	}
	bool user = f->v[f->n - ARRAY_LEN(each)].available;
	struct finding *n = add(f, "new_proc", true, in_child(test_proc, ALL_NAMESPACES));
	if (!user)
		mend_namespaces(n);
	if (!user)
		return;
	mend(n, "parts of this host's /proc are covered: docker run --security-opt "
		"systempaths=unconfined; in Kubernetes procMount: Unmasked");
}

/* Each call with arguments that only a kernel that has it can judge. */
static int test_mount_api(void)
{
	static const long calls[] = {NR_OPEN_TREE, NR_MOVE_MOUNT, NR_FSOPEN,       NR_FSCONFIG,
				     NR_FSMOUNT,   NR_OPENAT2,    NR_MOUNT_SETATTR};

	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		if (syscall(calls[i], -1, NULL, -1, NULL, 0) < 0 && errno == ENOSYS)
			return ENOSYS;
	int fd = (int)syscall(NR_OPEN_TREE, AT_FDCWD, "/", O_CLOEXEC);
	return fd < 0 ? errno : 0;
}

static int test_seccomp(void)
{
	uint32_t action = SECCOMP_RET_ERRNO;

	return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) < 0 ? errno : 0;
}

static int test_pidfd(void)
{
	int fd = (int)syscall(NR_PIDFD_OPEN, getpid(), 0);

	return fd < 0 || syscall(NR_PIDFD_SEND_SIGNAL, fd, 0, NULL, 0) < 0 ? errno : 0;
}

static int test_pty(void)
{
	int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);

	return fd < 0 ? errno : 0;
}

static int test_landlock(void)
{
	return landlock_abi() ? 0 : errno;
}

/* From which ABI on Landlock holds what; landlock(7). */
static void add_landlock(struct findings *f)
{
	static const struct {
		unsigned int abi;
		const char *what;
	} since[] = {{2, "moves between directories"},
		     {3, "truncate"},
		     {4, "TCP"},
		     {5, "ioctl on devices"},
		     {6, "signals and abstract sockets"}};
	struct finding *n = add(f, "landlock", false, in_fork(test_landlock));
	unsigned int abi = landlock_abi();

	fact(n, "abi", abi);
	mend(n, "Linux 5.13 or later with landlock in the boot parameter lsm= (cat "
		"/sys/kernel/security/lsm); in a container its seccomp profile must allow "
		"landlock_create_ruleset and its kin");
	for (size_t i = 0; abi && i < ARRAY_LEN(since); i++)
		if (abi < since[i].abi) {
			size_t at = strlen(n->why);
			(void)snprintf(n->why + at, sizeof(n->why) - at, "%s%s",
				       at ? ", " : "not held before a later ABI: ", since[i].what);
		}
}

static void add_kernel(struct findings *f)
{
	mend(add(f, "mount_api", true, in_fork(test_mount_api)),
	     "Linux 5.13 or later; in a container its seccomp profile must allow open_tree, "
	     "move_mount, fsopen, fsconfig, fsmount, mount_setattr and openat2");
	mend(add(f, "seccomp", true, in_fork(test_seccomp)), "a kernel with CONFIG_SECCOMP_FILTER");
	add_landlock(f);
	mend(add(f, "pidfd", false, in_fork(test_pidfd)),
	     "Linux 5.3 or later; needed by isolation landlock; in a container its seccomp "
	     "profile must allow pidfd_open and pidfd_send_signal");
	mend(add(f, "pty", false, in_fork(test_pty)),
	     "mount -o remount,ptmxmode=0666 /dev/pts (as root); without it no terminals");
}

static const char *fs_name(const char *path, bool *ret_network)
{
	static const struct {
		unsigned long magic;
		const char *name;
		bool network;
	} known[] = {
		{0xef53, "ext4", false},        {0x58465342, "xfs", false},
		{0x9123683e, "btrfs", false},   {0x01021994, "tmpfs", false},
		{0x794c7630, "overlay", false}, {0x2fc12fc1, "zfs", false},
		{0xf2f52010, "f2fs", false},    {0x6969, "nfs", true},
		{0xff534d42, "cifs", true},     {0xfe534d42, "smb2", true},
		{0x01021997, "9p", true},       {0x65735546, "fuse", true},
		{0x00c36400, "ceph", true},     {0x5346414f, "afs", true},
	};
	struct statfs s;

	*ret_network = false;
	if (statfs(path, &s) < 0)
		return "?";
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (known[i].magic == ((unsigned long)s.f_type & 0xffffffff)) {
			*ret_network = known[i].network;
			return known[i].name;
		}
	return "other";
}

static _Noreturn void wait_forever(void)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	for (;;)
		(void)pause();
}

/* A copy of the working directory with a map of its own, as a source gets as root. */
static int try_idmap(void)
{
	char path[64];
	struct {
		uint64_t set, clear, propagation, userns_fd;
	} attr = {.set = ATTR_IDMAP};

	long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid < 0)
		return errno;
	if (pid == 0)
		wait_forever();
	int sys = 0;
	(void)snprintf(path, sizeof(path), "/proc/%ld/uid_map", pid);
	sys = file_write_text(path, "0 1879100000 1\n") < 0 ? errno : 0;
	(void)snprintf(path, sizeof(path), "/proc/%ld/gid_map", pid);
	if (!sys && file_write_text(path, "0 1879100000 1\n") < 0)
		sys = errno;
	(void)snprintf(path, sizeof(path), "/proc/%ld/ns/user", pid);
	int ns = open(path, O_RDONLY | O_CLOEXEC);
	int tree = (int)syscall(NR_OPEN_TREE, AT_FDCWD, ".", TREE_CLONE | O_CLOEXEC);
	attr.userns_fd = (uint64_t)ns;
	if (!sys && (ns < 0 || tree < 0 ||
		     syscall(NR_MOUNT_SETATTR, tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0))
		sys = errno;
	(void)kill((pid_t)pid, SIGKILL);
	return sys;
}

static void add_idmap(struct findings *f, const struct caller *who)
{
	bool network = false;
	struct finding *n =
		add(f, "idmapped_mounts", false, who->root ? in_fork(try_idmap) : EPERM);

	fact_text(n, "filesystem", fs_name(".", &network));
	if (!who->root)
		(void)snprintf(n->why, sizeof(n->why), "for root only, and only root needs them");
	else if (!n->available)
		mend(n,
		     "a source on ext4, xfs or btrfs (Linux 5.12 to 5.15) or, from Linux 6.3 on, "
		     "tmpfs; here --mode read-only, or a source that belongs to a user");
}

/* Own maps, so that files can be made on a tmpfs of our own. */
static int map_self(uid_t uid, gid_t gid)
{
	char text[32];

	(void)file_write_text("/proc/self/setgroups", "deny");
	(void)snprintf(text, sizeof(text), "0 %u 1\n", (unsigned int)uid);
	if (file_write_text("/proc/self/uid_map", text) < 0)
		return errno;
	(void)snprintf(text, sizeof(text), "0 %u 1\n", (unsigned int)gid);
	return file_write_text("/proc/self/gid_map", text) < 0 ? errno : 0;
}

static int try_overlay(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return errno;
	int sys = map_self(uid, gid);
	if (sys)
		return sys;
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", "/tmp", "tmpfs", 0, NULL) < 0 || mkdir("/tmp/l", 0700) < 0 ||
	    mkdir("/tmp/u", 0700) < 0 || mkdir("/tmp/w", 0700) < 0 || mkdir("/tmp/m", 0700) < 0 ||
	    mount("none", "/tmp/m", "overlay", 0,
		  "userxattr,lowerdir=/tmp/l,upperdir=/tmp/u,workdir=/tmp/w") < 0)
		return errno;
	return 0;
}

static void add_overlay(struct findings *f)
{
	struct finding *n = add(f, "overlayfs", false, in_fork(try_overlay));

	if (in_child(NULL, CLONE_NEWUSER) != 0) {
		mend_namespaces(n);
		return;
	}
	mend(n,
	     "Linux 5.11 or later with CONFIG_OVERLAY_FS: modprobe overlay (as root); for review "
	     "of changes, which this version does not have");
}

static void add_cgroup(struct findings *f, const struct caller *who)
{
	static const char *const kinds[] = {"none", "hybrid", "v2"};
	static struct cgroups g;

	cgroups_find(&g);
	struct finding *n = add(f, "cgroup", false, 0);
	n->available = g.kind != CGROUP_KIND_NONE;
	fact_text(n, "kind", kinds[g.kind]);
	fact_bool(n, "memory", g.memory);
	fact_bool(n, "pids", g.pids);
	fact_bool(n, "cpu", g.cpu);
	fact_bool(n, "freezer",
		  g.kind == CGROUP_KIND_V2 || access("/sys/fs/cgroup/freezer", W_OK) == 0);
	if (n->available)
		return;
	(void)snprintf(n->why, sizeof(n->why), "memory is watched, --cpus is not to be had");
	mend(n, who->root && cgroups_are_v2()
			? "echo '+memory +pids +cpu' > /sys/fs/cgroup/cgroup.subtree_control"
		: cgroups_are_v2()
			? "systemd-run --user --scope -p Delegate=yes sandglass …"
			: "run as root, or boot with systemd.unified_cgroup_hierarchy=1 and use "
			  "systemd-run --user --scope -p Delegate=yes sandglass …");
}

/* A quarter of the instances and half of the watches are a sandbox's. */
static void add_inotify(struct findings *f)
{
	int64_t instances = number_in("/proc/sys/fs/inotify/max_user_instances");
	int64_t watches = number_in("/proc/sys/fs/inotify/max_user_watches");
	struct finding *n = add(f, "inotify", false, instances < 0 ? ENOSYS : 0);

	fact(n, "instances", instances);
	fact(n, "watches", watches);
	if (!n->available || (instances >= 128 && watches >= 8192))
		return;
	n->available = false;
	(void)snprintf(n->why, sizeof(n->why), "%lld instances and %lld watches for each user",
		       (long long)instances, (long long)watches);
	mend(n,
	     "sysctl -w fs.inotify.max_user_instances=512 fs.inotify.max_user_watches=524288 (as "
	     "root)");
}

/* Its nearest directory that exists: nothing is made here. */
static void add_state(struct findings *f, const struct caller *who)
{
	static char path[PATH_TEXT];
	struct stat st;
	bool network = false;
	struct finding *n = add(f, "state_directory", false, 0);
	char there[PATH_TEXT];

	state_home(who, path);
	(void)snprintf(there, sizeof(there), "%s", path);
	while (stat(there, &st) < 0 && strrchr(there, '/') > there)
		*strrchr(there, '/') = '\0';
	fact_text(n, "path", path);
	fact_text(n, "filesystem", fs_name(there, &network));
	errno = ENOTDIR;
	n->available = !network && S_ISDIR(st.st_mode) && access(there, W_OK | X_OK) == 0;
	if (n->available)
		return;
	(void)snprintf(n->why, sizeof(n->why), "%s",
		       network ? "a file system of the network keeps no locks that can be relied on"
			       : strerror(errno));
	mend(n, "export SANDGLASS_HOME=DIR, a directory of your own on a local file system");
}

static void read_all(int fd, char *text, size_t len)
{
	size_t n = 0;

	for (ssize_t got = 1; got > 0 && n + 1 < len; n += got > 0 ? (size_t)got : 0)
		got = RETRY_EINTR(read(fd, text + n, len - 1 - n));
	while (n && text[n - 1] == '\n')
		n--;
	text[n] = '\0';
}

bool doctor_spawn(const char *path, const char *const *argv, char **env, char *text, size_t len)
{
	posix_spawn_file_actions_t acts;
	int ends[2];
	pid_t pid = 0;
	int status = 0;

	text[0] = '\0';
	if (pipe2(ends, O_CLOEXEC) < 0 || posix_spawn_file_actions_init(&acts) != 0)
		return false;
	(void)posix_spawn_file_actions_addopen(&acts, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	(void)posix_spawn_file_actions_adddup2(&acts, ends[1], STDERR_FILENO);
	int rc = posix_spawn(&pid, path, &acts, NULL, (char **)(uintptr_t)argv, env);
	(void)posix_spawn_file_actions_destroy(&acts);
	(void)close(ends[1]);
	read_all(ends[0], text, len);
	(void)close(ends[0]);
	if (rc != 0 || RETRY_EINTR(waitpid(pid, &status, 0)) < 0)
		return false;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* What it links is told by the loader. */
static void try_main(struct finding *n, const char *path)
{
	static const char *const words[] = {"sandglass-main", "schema", "result", NULL};

	n->available = doctor_spawn(path, words, environ, n->why, sizeof(n->why));
	mend(n, "apt-get install libfyaml0 libsqlite3-0 libjansson4 libpcre2-8-0 libsodium23 "
		"(Debian), or the package that the line names; "
		"without it no policy files and no sessions");
	if (n->available)
		n->why[0] = '\0';
}

/* The programs that belong to this one. */
static void add_programs(struct findings *f)
{
	char path[PATH_TEXT];
	struct err e = {0};

	struct finding *n = add(f, "core", true, 0);
	n->available = beside_find("sandglass-core", path, &e) == 0;
	if (!n->available)
		(void)snprintf(n->why, sizeof(n->why), "%s", e.msg);
	mend(n, e.hint);
	n = add(f, "main", false, 0);
	if (beside_find("sandglass-main", path, &e) == 0) {
		try_main(n, path);
		return;
	}
	n->available = false;
	(void)snprintf(n->why, sizeof(n->why), "%s", e.msg);
	mend(n, e.hint);
}

void doctor_features(const struct caller *who, struct findings *ret)
{
	ret->n = 0;
	add_programs(ret);
	add_namespaces(ret);
	add_kernel(ret);
	add_cgroup(ret, who);
	add_idmap(ret, who);
	add_overlay(ret);
	add_inotify(ret);
	add_state(ret, who);
}

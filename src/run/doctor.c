/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tries each feature on its own, in a child that ends at once, and then a whole
 * sandbox. Says what is there, and for what is missing how to mend it.
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
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "run/job.h"

#include <linux/sched.h>
#include <linux/seccomp.h>

struct feature {
	const char *name;
	bool needed; /* no sandbox without it */
	const char *mend;
	int (*test)(void); /* 0, or an errno; run in a child */
};

static int clone_flags(uint64_t flags)
{
	struct clone_args a = {.flags = CLONE_NEWUSER | flags, .exit_signal = SIGCHLD};

	long pid = syscall(SYS_clone3, &a, sizeof(a));
	if (pid < 0)
		return errno;
	if (pid == 0)
		_exit(0);
	(void)RETRY_EINTR(waitpid((pid_t)pid, NULL, 0));
	return 0;
}

static int test_user(void)
{
	return clone_flags(0);
}

static int test_mount(void)
{
	return clone_flags(CLONE_NEWNS);
}

static int test_pid(void)
{
	return clone_flags(CLONE_NEWPID);
}

static int test_net(void)
{
	return clone_flags(CLONE_NEWNET);
}

static int test_ipc(void)
{
	return clone_flags(CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP);
}

static int test_seccomp(void)
{
	uint32_t action = SECCOMP_RET_ERRNO;

	return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) < 0 ? errno : 0;
}

static int test_landlock(void)
{
	return syscall(444 /* landlock_create_ruleset */, NULL, 0, 1 /* version */) < 1 ? errno : 0;
}

static int test_mount_api(void)
{
	int fd = (int)syscall(SYS_open_tree, AT_FDCWD, "/", O_CLOEXEC);

	if (fd < 0)
		return errno;
	/* mount_setattr(2), Linux 5.12: a size of 0 is EINVAL where the call exists. */
	return syscall(442, fd, "", AT_EMPTY_PATH, NULL, 0) < 0 && errno == ENOSYS ? ENOSYS : 0;
}

static int test_pty(void)
{
	int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);

	return fd < 0 ? errno : 0;
}

static const struct feature features[] = {
	{"user_namespaces", true,
	 "sysctl user.max_user_namespaces=10000; on Ubuntu an AppArmor profile for "
	 "sandglass-core with `userns,`; in a container allow them to it",
	 test_user},
	{"mount_namespace", true, "allow user and mount namespaces (container: seccomp profile)",
	 test_mount},
	{"pid_namespace", true, "allow pid namespaces", test_pid},
	{"net_namespace", true, "allow network namespaces", test_net},
	{"ipc_uts_cgroup_namespaces", true, "allow ipc, uts and cgroup namespaces", test_ipc},
	{"mount_api", true, "Linux 5.12 or later", test_mount_api},
	{"seccomp", true, "a kernel with CONFIG_SECCOMP_FILTER", test_seccomp},
	{"landlock", false, "Linux 5.13 or later with landlock in the `lsm=` list", test_landlock},
	{"pty", false, "mount devpts with ptmxmode=0666", test_pty},
};

/* In a child, so that nothing of a test stays. */
static int try(const struct feature *f)
{
	int status = 0;

	pid_t pid = fork();
	if (pid < 0)
		return errno;
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		_exit(f->test());
	}
	if (RETRY_EINTR(waitpid(pid, &status, 0)) < 0)
		return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

/* The real thing: a sandbox without a source that runs /bin/true. */
static bool try_sandbox(char *text, size_t len)
{
	char *argv[] = {(char *)(uintptr_t) "sandglass",
			(char *)(uintptr_t) "run",
			(char *)(uintptr_t) "--no-source",
			(char *)(uintptr_t) "--quiet",
			(char *)(uintptr_t) "--",
			(char *)(uintptr_t) "/bin/true",
			NULL};
	posix_spawn_file_actions_t acts;
	int ends[2];
	pid_t pid = 0;
	int status = 0;
	size_t n = 0;

	text[0] = '\0';
	if (pipe2(ends, O_CLOEXEC) < 0 || posix_spawn_file_actions_init(&acts) != 0)
		return false;
	(void)posix_spawn_file_actions_adddup2(&acts, ends[1], STDERR_FILENO);
	int rc = posix_spawn(&pid, "/proc/self/exe", &acts, NULL, argv, environ);
	(void)posix_spawn_file_actions_destroy(&acts);
	(void)close(ends[1]);
	for (ssize_t got = 1; got > 0 && n + 1 < len; n += got > 0 ? (size_t)got : 0)
		got = RETRY_EINTR(read(ends[0], text + n, len - 1 - n));
	(void)close(ends[0]);
	text[n] = '\0';
	while (n && text[n - 1] == '\n')
		text[--n] = '\0';
	if (rc != 0 || RETRY_EINTR(waitpid(pid, &status, 0)) < 0)
		return false;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

struct finding {
	int sys[ARRAY_LEN(features)];
	bool sandbox;
	char sandbox_text[2048];
	struct cgroups cgroups;
	int landlock_abi;
	struct caller who;
};

static bool able(const struct finding *f)
{
	for (size_t i = 0; i < ARRAY_LEN(features); i++)
		if (features[i].needed && f->sys[i])
			return false;
	return f->sandbox;
}

static const char *cgroup_kind(const struct finding *f)
{
	static const char *const kinds[] = {"none", "hybrid", "v2"};

	return kinds[f->cgroups.kind];
}

static const char *cgroup_mend(const struct finding *f)
{
	if (f->cgroups.kind == CGROUP_KIND_NONE && f->who.root && cgroups_are_v2())
		return "echo '+memory +pids +cpu' > /sys/fs/cgroup/cgroup.subtree_control";
	return f->cgroups.kind != CGROUP_KIND_NONE
		       ? NULL
		       : "run as root, or in a systemd scope: systemd-run --user --scope -p Delegate=yes …";
}

static void write_json(const struct finding *f, struct buf *out)
{
	struct json j = JSON_INIT(out);
	struct utsname u;

	json_obj_begin(&j);
	json_kv_uint(&j, "version", 1);
	json_kv_str(&j, "sandglass", SANDGLASS_VERSION);
	json_kv_str(&j, "kernel", uname(&u) == 0 ? u.release : NULL);
	json_kv_bool(&j, "able", able(f));
	json_kv_str(&j, "runs_as", f->who.root ? "session-uid" : "caller-in-user-namespace");
	json_key(&j, "features");
	json_obj_begin(&j);
	for (size_t i = 0; i < ARRAY_LEN(features); i++) {
		json_key(&j, features[i].name);
		json_obj_begin(&j);
		json_kv_bool(&j, "available", f->sys[i] == 0);
		json_kv_bool(&j, "needed", features[i].needed);
		json_kv_str(&j, "detail", f->sys[i] ? strerror(f->sys[i]) : NULL);
		json_kv_str(&j, "mend", f->sys[i] ? features[i].mend : NULL);
		if (strcmp(features[i].name, "landlock") == 0)
			json_kv_int(&j, "abi", f->landlock_abi);
		json_obj_end(&j);
	}
	json_key(&j, "cgroup");
	json_obj_begin(&j);
	json_kv_bool(&j, "available", f->cgroups.kind != CGROUP_KIND_NONE);
	json_kv_bool(&j, "needed", false);
	json_kv_str(&j, "kind", cgroup_kind(f));
	json_kv_bool(&j, "memory", f->cgroups.memory);
	json_kv_bool(&j, "pids", f->cgroups.pids);
	json_kv_bool(&j, "cpu", f->cgroups.cpu);
	json_kv_str(&j, "mend", cgroup_mend(f));
	json_obj_end(&j);
	json_key(&j, "idmapped_mounts");
	json_obj_begin(&j);
	json_kv_bool(&j, "available", f->who.root && f->sys[0] == 0);
	json_kv_bool(&j, "needed", false);
	json_kv_str(&j, "detail",
		    f->who.root ? "on file systems that allow it" : "root only; not needed");
	json_obj_end(&j);
	json_key(&j, "sandbox");
	json_obj_begin(&j);
	json_kv_bool(&j, "available", f->sandbox);
	json_kv_bool(&j, "needed", true);
	json_key(&j, "detail");
	json_text(&j, f->sandbox_text, strlen(f->sandbox_text));
	json_obj_end(&j);
	json_obj_end(&j);
	json_obj_end(&j);
	(void)buf_char(out, '\n');
}

static void write_text(const struct finding *f, struct buf *out)
{
	for (size_t i = 0; i < ARRAY_LEN(features); i++) {
		(void)buf_printf(out, "%-8s %-26s",
				 f->sys[i] ? features[i].needed ? "MISSING" : "no" : "yes",
				 features[i].name);
		if (strcmp(features[i].name, "landlock") == 0 && !f->sys[i])
			(void)buf_printf(out, " ABI %d", f->landlock_abi);
		if (f->sys[i])
			(void)buf_printf(out, " %s; to mend: %s", strerror(f->sys[i]),
					 features[i].mend);
		(void)buf_char(out, '\n');
	}
	(void)buf_printf(out, "%-8s %-26s", f->cgroups.kind ? "yes" : "no", "cgroup");
	if (f->cgroups.kind)
		(void)buf_printf(out, " %s:%s%s%s\n", cgroup_kind(f),
				 f->cgroups.memory ? " memory" : "", f->cgroups.pids ? " pids" : "",
				 f->cgroups.cpu ? " cpu" : "");
	else
		(void)buf_printf(out, " memory is watched, --cpus is not to be had; to mend: %s\n",
				 cgroup_mend(f));
	(void)buf_printf(out, "%-8s %-26s %s\n", "", "runs as",
			 f->who.root ? "a session uid of its own, never root"
				     : "you, in a user namespace without capabilities");
	(void)buf_printf(out, "%-8s %-26s %s\n", f->sandbox ? "yes" : "MISSING", "a whole sandbox",
			 f->sandbox ? "/bin/true ran in one" : f->sandbox_text);
}

int doctor_write(bool json, struct buf *out, struct err *e)
{
	static struct finding f;
	char cwd[PATH_TEXT];

	if (caller_init(&f.who, environ, cwd, e) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(features); i++)
		f.sys[i] = try(&features[i]);
	f.landlock_abi = (int)syscall(444, NULL, 0, 1);
	if (f.landlock_abi < 0)
		f.landlock_abi = 0;
	cgroups_find(&f.cgroups);
	f.sandbox = try_sandbox(f.sandbox_text, sizeof(f.sandbox_text));
	if (json)
		write_json(&f, out);
	else
		write_text(&f, out);
	if (buf_check(out, "the report", ERR_INTERNAL, e) < 0)
		return -1;
	return able(&f) ? 1 : 0;
}

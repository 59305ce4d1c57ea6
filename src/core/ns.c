/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Namespaces: one clone3 for those that init must be born in, the others made
 * by init itself; id maps, the counters of the user namespace, loopback, names,
 * keyring. Every function here runs before any foreign code exists; the plan
 * only supplies ids, which the decoder has checked are not 0, and a host name.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/keyctl.h>

#include "base/base.h"
#include "base/file.h"
#include "core/core.h"
#include "core/sys.h"

/* Needs clone3(2). With user namespaces switched off: EPERM, ENOSPC or EUSERS. */
pid_t ns_clone(const struct core *c)
{
	struct clone_args a = {
		.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS,
		.exit_signal = SIGCHLD,
	};

	AUTO_FD int cgroup = cgroup_open_v2(c);
	if (cgroup >= 0) {
		a.flags |= CLONE_INTO_CGROUP;
		a.cgroup = (uint64_t)cgroup;
	}
	long pid = sys_clone3(&a);
	if (pid < 0)
		core_die(STAGE_CLONE, errno, "make namespaces");
	return (pid_t)pid;
}

static void write_map(pid_t pid, const char *file, uint32_t inside, uint32_t outside)
{
	char path[64];
	char line[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	(void)snprintf(line, sizeof(line), "%u %u 1\n", inside, outside);
	if (file_write_text(path, line) < 0)
		core_die(STAGE_MAPS, errno, file);
}

/*
 * The launcher writes the maps of its child: one id each. An ordinary user may
 * map only itself and must first give up setgroups(2) (user_namespaces(7)).
 */
void ns_write_maps(const struct core *c, pid_t child)
{
	char path[64];

	if (!(c->p->n.flags & PLAN_ROOT)) {
		(void)snprintf(path, sizeof(path), "/proc/%d/setgroups", (int)child);
		if (file_write_text(path, "deny") < 0)
			core_die(STAGE_MAPS, errno, "setgroups");
	}
	write_map(child, "uid_map", c->p->n.uid, c->p->n.outer_uid);
	write_map(child, "gid_map", c->p->n.gid, c->p->n.outer_gid);
}

/*
 * In init, after the maps exist: become the mapped id, which keeps the
 * capabilities of the new namespace because no id 0 is involved. PDEATHSIG is
 * set last, since a change of ids clears it (prctl(2)).
 */
void ns_enter_ids(const struct core *c)
{
	const struct plan_numbers *n = &c->p->n;

	if ((n->flags & PLAN_ROOT) && setgroups(0, NULL) < 0)
		core_die(STAGE_IDS, errno, "drop groups");
	if (setresgid(n->gid, n->gid, n->gid) < 0 || setresuid(n->uid, n->uid, n->uid) < 0)
		core_die(STAGE_IDS, errno, "become the session's ids");
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		core_die(STAGE_IDS, errno, "PDEATHSIG");
	/* A fresh pid namespace shows a living launcher as parent 0, a dead one too: ask the pair. */
}

/*
 * Identity but for two ids: where `from` is on disk `to` appears, and what `to`
 * itself owns on disk (nothing should) appears as nobody's.
 */
static void idmap_text(char *out, size_t len, uint32_t from, uint32_t to)
{
	uint32_t low = from < to ? from : to;
	uint32_t high = from < to ? to : from;
	size_t n = 0;

	if (low)
		n += (size_t)snprintf(out + n, len - n, "0 0 %u\n", low);
	n += (size_t)snprintf(out + n, len - n, "%u %u 1\n", from, to);
	if (high - low > 1)
		n += (size_t)snprintf(out + n, len - n, "%u %u %u\n", low + 1, low + 1,
				      high - low - 1);
	(void)snprintf(out + n, len - n, "%u %u %u\n", high + 1, high + 1, UINT32_MAX - high - 1);
}

static int idmap_write(pid_t pid, const char *file, uint32_t from, uint32_t to)
{
	char path[64];
	char text[256];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	idmap_text(text, sizeof(text), from, to);
	return file_write_text(path, text);
}

/* A process that holds a fresh user namespace, and nothing else, until it is killed. */
void ns_start_holder(struct core *c)
{
	struct clone_args a = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
	pid_t launcher = getpid();

	long pid = sys_clone3(&a);
	if (pid < 0)
		return; /* tried again, and then told, if it is needed */
	if (pid == 0) {
		(void)sys_close_range(0, UINT32_MAX, 0);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		while (getppid() == launcher)
			(void)pause();
		_exit(0);
	}
	c->holder = (pid_t)pid;
}

/* Killed now, reaped when there is time: its end is nobody's to wait for. */
void ns_end_holder(struct core *c)
{
	ns_reap_holder(c);
	if (c->holder)
		(void)kill(c->holder, SIGKILL);
	c->ended = c->holder;
	c->holder = 0;
}

void ns_reap_holder(struct core *c)
{
	while (c->ended && waitpid(c->ended, NULL, 0) < 0 && errno == EINTR)
		;
	c->ended = 0;
}

/*
 * A user namespace that exists only as the map of the source's mounts: its
 * owner on disk appears as the session's uid, everybody else as themselves, so
 * the command writes files that belong to the owner and is a stranger to
 * everything else. As root only. Returns the namespace's descriptor.
 */
int ns_make_idmap(struct core *c, uint32_t owner_uid, uint32_t owner_gid)
{
	char path[64];

	if (!c->holder)
		ns_start_holder(c);
	if (!c->holder)
		core_die(STAGE_CLONE, errno, "make the map's user namespace");
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)c->holder);
	int fd = idmap_write(c->holder, "uid_map", owner_uid, c->p->n.outer_uid) < 0 ||
				 idmap_write(c->holder, "gid_map", owner_gid, c->p->n.outer_gid) < 0
			 ? -1
			 : open(path, O_RDONLY | O_CLOEXEC);
	int saved = errno;
	ns_end_holder(c);
	if (fd < 0)
		core_die(STAGE_MAPS, saved, "the map of the source's owner");
	return fd;
}

/*
 * Kernel objects that are charged to the caller's uid on the host are capped
 * below the caller's own limit, so that the host's share stays free
 * (namespaces(7), inotify(7), /proc/sys/user). Uses the host's /proc, which is
 * still there; where that is read-only the loss is reported.
 */
void ns_set_counters(struct core *c)
{
	char text[16];
	bool lost = false;

	/* Without a user namespace of its own nobody here can make any other. */
	lost |= file_write_text("/proc/sys/user/max_user_namespaces", "0") < 0;
	if (c->p->n.inotify_instances) {
		(void)snprintf(text, sizeof(text), "%u", c->p->n.inotify_instances);
		lost |= file_write_text("/proc/sys/user/max_inotify_instances", text) < 0;
	}
	if (c->p->n.inotify_watches) {
		(void)snprintf(text, sizeof(text), "%u", c->p->n.inotify_watches);
		lost |= file_write_text("/proc/sys/user/max_inotify_watches", text) < 0;
	}
	/* In our own network namespace a low port means nothing: let servers have them. */
	(void)file_write_text("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
	if (lost)
		c->lost |= REPORT_NO_SYSCTL;
}

/*
 * A network namespace takes longer to make than all others together: init does
 * it while the plan is still on its way. It starts with loopback down.
 */
void ns_set_up_net(void)
{
	struct ifreq r = {.ifr_name = "lo"};

	if (unshare(CLONE_NEWNET) < 0)
		core_die(STAGE_CLONE, errno, "network namespace");
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		core_die(STAGE_NET, errno, "socket");
	r.ifr_flags = IFF_UP | IFF_RUNNING;
	if (ioctl(fd, SIOCSIFFLAGS, &r) < 0)
		core_die(STAGE_NET, errno, "loopback up");
	(void)close(fd);
}

void ns_set_names(const struct core *c)
{
	/*
	 * The root of a cgroup namespace is where its maker stands, so init makes
	 * it itself, after the launcher has moved it. The file system of message
	 * queues belongs to the ids that its ipc namespace was made with.
	 */
	if (unshare(CLONE_NEWCGROUP | CLONE_NEWIPC) < 0)
		core_die(STAGE_UTS, errno, "cgroup and ipc namespaces");
	if (sethostname(c->p->hostname, strlen(c->p->hostname)) < 0)
		core_die(STAGE_UTS, errno, "host name");
	if (setdomainname("", 0) < 0)
		core_die(STAGE_UTS, errno, "domain name");
}

/* The caller's session keyring is inherited by fork; the new one is empty. */
void ns_new_keyring(void)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
		core_die(STAGE_KEYRING, errno, "session keyring");
}

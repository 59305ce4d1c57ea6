/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Namespaces that init makes itself, being born in the others; the counters of
 * the user namespace, loopback, names, keyring. Every function here runs before any foreign code exists; the plan
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

#define NET_STACK_BYTES 16384u

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
	if (lost)
		c->lost |= REPORT_NO_SYSCTL;
}

/* A network namespace starts with loopback down. */
static void set_up_net(void)
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

/*
 * In our own network namespace a low port means nothing: let servers have them. An echo reaches
 * nobody but itself: let the command send one without a privilege (icmp(7), ping_group_range).
 */
static void open_net(const struct core *c)
{
	char range[32];

	(void)file_write_text("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
	(void)snprintf(range, sizeof(range), "%u %u", c->p->n.gid, c->p->n.gid);
	(void)file_write_text("/proc/sys/net/ipv4/ping_group_range", range);
}

static int make_net(void *arg)
{
	struct core *c = arg;

	set_up_net();
	if (c->has_egress)
		wayout_begin(c);
	c->net_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (c->net_fd < 0)
		core_die(STAGE_NET, errno, "/proc/self/ns/net");
	return 0;
}

/*
 * A network namespace takes longer to make than all others together, and nothing
 * waits for it: a second process, which shares our memory and descriptors, makes
 * it while we build the root. Its calls do not fail (errno is shared too), or the
 * sandbox ends. Sanitizers want memory of its own: there it is made here.
 */
void ns_begin_net(struct core *c)
{
#ifdef SANDGLASS_SANITIZED
	(void)make_net;
	set_up_net();
	if (c->has_egress)
		wayout_begin(c);
	c->net_maker = -1;
#else
	static _Alignas(16) char stack[NET_STACK_BYTES];

	c->net_maker = clone(make_net, stack + sizeof(stack), CLONE_VM | CLONE_FILES | SIGCHLD, c);
	if (c->net_maker < 0)
		core_die(STAGE_CLONE, errno, "network namespace");
#endif
}

void ns_end_net(struct core *c)
{
	int status = 0;

	if (c->net_maker < 0) {
		open_net(c);
		return;
	}
	if (RETRY_EINTR(waitpid(c->net_maker, &status, 0)) < 0 || status != 0)
		_exit(125); /* it has told why */
	if (setns(c->net_fd, CLONE_NEWNET) < 0)
		core_die(STAGE_NET, errno, "enter the network namespace");
	(void)close(c->net_fd);
	open_net(c);
}

void ns_begin_names(void)
{
	/*
	 * The root of a cgroup namespace is where its maker stands, so init makes
	 * it itself, after it was moved. The file system of message
	 * queues belongs to the ids that its ipc namespace was made with.
	 */
	if (unshare(CLONE_NEWCGROUP | CLONE_NEWIPC) < 0)
		core_die(STAGE_UTS, errno, "cgroup and ipc namespaces");
}

void ns_set_names(const struct core *c)
{
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

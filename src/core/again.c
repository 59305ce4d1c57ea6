/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launcher's wait. When somebody outside replaces a file by rename, the
 * kernel drops the mounts that stood on it, in every namespace: the front sees
 * the new name and asks here for its pin, by index of the plan.
 *
 * Why it is safe: only the front holds the other end; what is mounted is what
 * lies at the pin's own path, by the same code as at the start. The work is done
 * by a child that enters the sandbox's user and mount namespaces: it keeps no
 * right of the host that the command could take over, is not in the command's
 * pid namespace, and ends at once. The namespaces were opened before init took
 * its ids and became undumpable.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "core/core.h"
#include "core/sys.h"

static int open_ns(pid_t pid, const char *name)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		core_die(STAGE_CLONE, errno, path);
	return fd;
}

void again_open(struct core *c, pid_t init)
{
	bool pins = false;

	for (size_t i = 0; i < c->p->mount_count && !pins; i++)
		pins = c->p->mounts[i].kind == MOUNT_PIN;
	if (!pins || fcntl(CORE_FD_AGAIN, F_GETFD) < 0)
		return;
	c->user_ns = open_ns(init, "user");
	c->mount_ns = open_ns(init, "mnt");
}

/* Needs setns(2): of the user namespace first, whose capabilities the other takes. */
static int pin_there(struct core *c, const struct plan_mount *m)
{
	if (setns(c->user_ns, CLONE_NEWUSER) < 0 || setns(c->mount_ns, CLONE_NEWNS) < 0)
		return errno;
	ns_enter_ids(c);
	c->dir_fd = -1;
	c->root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return c->root_fd < 0 ? errno : mount_pin(c, m);
}

static void pin_again(struct core *c, struct again *a)
{
	int status = 0;

	if (a->mount >= c->p->mount_count || c->p->mounts[a->mount].kind != MOUNT_PIN) {
		a->sys = EINVAL;
		return;
	}
	pid_t child = fork();
	if (child == 0)
		_exit(pin_there(c, &c->p->mounts[a->mount]) & 0xff);
	if (child < 0 || RETRY_EINTR(waitpid(child, &status, 0)) != child || !WIFEXITED(status))
		a->sys = EIO;
	else
		a->sys = WEXITSTATUS(status);
}

/* Answers the front until it has no more to ask or init has ended. */
static void serve(struct core *c, int init_fd)
{
	struct pollfd fds[] = {
		{.fd = init_fd, .events = POLLIN},
		{.fd = CORE_FD_AGAIN, .events = POLLIN},
	};
	struct again a;

	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return;
		if (fds[0].revents)
			return;
		if (!fds[1].revents)
			continue;
		ssize_t n = recv(CORE_FD_AGAIN, &a, sizeof(a), MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return;
		if (n != sizeof(a))
			continue;
		pin_again(c, &a);
		(void)send(CORE_FD_AGAIN, &a, sizeof(a), MSG_NOSIGNAL);
	}
}

/* Returns the wait status of init. */
int again_wait(struct core *c, pid_t init, struct rusage *ret)
{
	int status = 0;

	if (c->mount_ns >= 0) {
		AUTO_FD int init_fd = sys_pidfd_open(init);
		if (init_fd >= 0)
			serve(c, init_fd);
	}
	while (wait4(init, &status, 0, ret) < 0)
		if (errno != EINTR)
			core_die(STAGE_FORK, errno, "wait for init");
	return status;
}

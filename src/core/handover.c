/* SPDX-License-Identifier: Apache-2.0 */
#include "core/handover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "core/core.h"

/* One message; false: the front is gone, or has decided against it. */
static bool receive_one(struct handover *h, int *fds)
{
	struct iovec iov = {.iov_base = h, .iov_len = sizeof(*h)};
	union handover_control control;
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	ssize_t n = 0;

	do
		n = recvmsg(CORE_FD_CTL, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n == sizeof(*h) && h->version != PLAN_VERSION)
		core_die(STAGE_PLAN, 0, "sandglass and sandglass-core are of different versions");
	if (n != sizeof(*h) || h->count > HANDOVER_FDS || (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return false;
	const struct cmsghdr *head = CMSG_FIRSTHDR(&m);
	size_t got = head ? (head->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
	if (got != h->count)
		return false;
	if (got)
		memcpy(fds, CMSG_DATA(head), got * sizeof(int));
	return true;
}

/* Waits for a part of the plan; its descriptors come by index. */
bool handover_receive(struct core *c)
{
	static struct handover h;
	int fds[HANDOVER_FDS];

	if (!c->trees) {
		c->trees = malloc(MAX_PLAN_MOUNTS * sizeof(*c->trees));
		if (!c->trees)
			return false;
		memset(c->trees, 0xff, MAX_PLAN_MOUNTS * sizeof(*c->trees)); /* all -1 */
	}
	do {
		if (!receive_one(&h, fds))
			return false;
		for (uint32_t i = 0; i < h.count; i++) {
			if (h.index[i] < MAX_PLAN_MOUNTS)
				c->trees[h.index[i]] = fds[i];
			else if (h.index[i] == HANDOVER_PLAN)
				c->plan_fd = fds[i];
			else if (h.index[i] != HANDOVER_STDIN || dup2(fds[i], STDIN_FILENO) < 0 ||
				 close(fds[i]) < 0)
				return false;
		}
	} while (!h.last);
	c->pids_counted = h.pids_counted;
	return true;
}

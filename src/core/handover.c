/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the front to init over the control socket, first of all: "the plan is
 * complete, the maps are written, go on", and as root the mount trees (and
 * stdin) that only root could open.
 * Both ends are ours; a message that is not as expected ends init.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "core/core.h"
#include "core/launch.h"

#define MAX_FDS 200u /* SCM_MAX_FD is 253: unix(7) */
#define INDEX_STDIN UINT32_MAX
#define INDEX_PLAN (UINT32_MAX - 1) /* the second part of the plan */

struct handover {
	uint32_t version; /* PLAN_VERSION */
	uint32_t last;    /* of this part */
	uint32_t pids_counted;
	uint32_t count;
	uint32_t index[MAX_FDS]; /* of the mount each descriptor is for */
};

union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(MAX_FDS * sizeof(int))];
};

static int send_one(int ctl, struct handover *h, const int *fds)
{
	struct iovec iov = {.iov_base = h, .iov_len = sizeof(*h)};
	union control control = {.room = {0}};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	if (h->count) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(h->count * sizeof(int));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(h->count * sizeof(int));
		memcpy(CMSG_DATA(&control.head), fds, h->count * sizeof(int));
	}
	ssize_t n = RETRY_EINTR(sendmsg(ctl, &m, MSG_NOSIGNAL));
	h->count = 0;
	return n < 0 ? -1 : 0;
}

int handover_send(struct launch *l, int ctl, int extra, bool is_stdin)
{
	struct handover h = {.version = PLAN_VERSION, .pids_counted = l->pids_counted};
	int fds[MAX_FDS] = {0};
	int rc = 0;

	for (size_t i = 0; l->trees && i < l->p->mount_count && rc == 0; i++) {
		if (l->trees[i] < 0)
			continue;
		h.index[h.count] = (uint32_t)i;
		fds[h.count++] = l->trees[i];
		if (h.count == MAX_FDS - 1)
			rc = send_one(ctl, &h, fds);
	}
	if (extra >= 0) {
		h.index[h.count] = is_stdin ? INDEX_STDIN : INDEX_PLAN;
		fds[h.count++] = extra;
	}
	h.last = 1;
	if (rc == 0)
		rc = send_one(ctl, &h, fds);
	int saved = errno;
	for (size_t i = 0; l->trees && i < l->p->mount_count; i++)
		if (l->trees[i] >= 0)
			(void)close(l->trees[i]);
	free(l->trees);
	l->trees = NULL;
	/* Init is gone already: what it reported before says why. */
	return rc < 0 && saved != EPIPE && saved != ECONNRESET
		       ? launch_fail(l, STAGE_CLONE, saved, "release init")
		       : 0;
}

/* One message; false: the front is gone, or has decided against it. */
static bool receive_one(struct handover *h, int *fds)
{
	struct iovec iov = {.iov_base = h, .iov_len = sizeof(*h)};
	union control control;
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
	if (n != sizeof(*h) || h->count > MAX_FDS || (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
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
	int fds[MAX_FDS];

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
			else if (h.index[i] == INDEX_PLAN)
				c->plan_fd = fds[i];
			else if (h.index[i] != INDEX_STDIN || dup2(fds[i], STDIN_FILENO) < 0 ||
				 close(fds[i]) < 0)
				return false;
		}
	} while (!h.last);
	c->pids_counted = h.pids_counted;
	return true;
}

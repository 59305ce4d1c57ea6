/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the launcher to init over their pair: "the maps are written, go on",
 * and as root the mount trees (and stdin) that only the launcher could open.
 * Both ends are ours; a message that is not as expected ends init.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/core.h"

#define MAX_FDS 200u /* SCM_MAX_FD is 253: unix(7) */
#define INDEX_STDIN UINT32_MAX

struct handover {
	uint32_t last; /* nothing follows */
	uint32_t pids_counted;
	uint32_t count;
	uint32_t index[MAX_FDS]; /* of the mount each descriptor is for */
};

union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(MAX_FDS * sizeof(int))];
};

static void send_one(const struct core *c, struct handover *h, const int *fds)
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
	while (sendmsg(c->sync_fd, &m, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			core_die(STAGE_CLONE, errno, "release init");
	for (uint32_t i = 0; i < h->count; i++)
		(void)close(fds[i]);
	h->count = 0;
}

void handover_send(const struct core *c, int stdin_fd)
{
	struct handover h = {.pids_counted = c->pids_counted};
	int fds[MAX_FDS] = {0};

	for (size_t i = 0; c->trees && i < c->p->mount_count; i++) {
		if (c->trees[i] < 0)
			continue;
		h.index[h.count] = (uint32_t)i;
		fds[h.count++] = c->trees[i];
		if (h.count == MAX_FDS - 1)
			send_one(c, &h, fds);
	}
	if (stdin_fd >= 0) {
		h.index[h.count] = INDEX_STDIN;
		fds[h.count++] = stdin_fd;
	}
	h.last = 1;
	send_one(c, &h, fds);
}

/* One message; false: the launcher is gone. */
static bool receive_one(const struct core *c, struct handover *h, int *fds)
{
	struct iovec iov = {.iov_base = h, .iov_len = sizeof(*h)};
	union control control;
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	ssize_t n = 0;

	do
		n = recvmsg(c->sync_fd, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
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

/* Waits for the release. The plan must be read afterwards; descriptors come by index. */
bool handover_receive(struct core *c)
{
	static struct handover h;
	int fds[MAX_FDS];

	c->trees = malloc(MAX_PLAN_MOUNTS * sizeof(*c->trees));
	if (!c->trees)
		return false;
	memset(c->trees, 0xff, MAX_PLAN_MOUNTS * sizeof(*c->trees)); /* all -1 */
	do {
		if (!receive_one(c, &h, fds))
			return false;
		for (uint32_t i = 0; i < h.count; i++) {
			if (h.index[i] == INDEX_STDIN) {
				if (dup2(fds[i], STDIN_FILENO) < 0)
					return false;
				(void)close(fds[i]);
			} else if (h.index[i] < MAX_PLAN_MOUNTS) {
				c->trees[h.index[i]] = fds[i];
			}
		}
	} while (!h.last);
	c->pids_counted = h.pids_counted;
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "core/handover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "launch/launch.h"

static int send_one(int ctl, struct handover *h, const int *fds)
{
	struct iovec iov = {.iov_base = h, .iov_len = sizeof(*h)};
	union handover_control control = {.room = {0}};
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

void handover_drop(struct launch *l)
{
	for (size_t i = 0; l->trees && i < l->p->mount_count; i++)
		if (l->trees[i] >= 0)
			(void)close(l->trees[i]);
	free(l->trees);
	l->trees = NULL;
}

int handover_send(struct launch *l, int ctl, int extra, bool is_stdin)
{
	struct handover h = {.version = PLAN_VERSION, .pids_counted = l->pids_counted};
	int fds[HANDOVER_FDS] = {0};
	int rc = 0;

	for (size_t i = 0; l->trees && i < l->p->mount_count && rc == 0; i++) {
		if (l->trees[i] < 0)
			continue;
		h.index[h.count] = (uint32_t)i;
		fds[h.count++] = l->trees[i];
		if (h.count == HANDOVER_FDS - 1)
			rc = send_one(ctl, &h, fds);
	}
	if (extra >= 0) {
		h.index[h.count] = is_stdin ? HANDOVER_STDIN : HANDOVER_PLAN;
		fds[h.count++] = extra;
	}
	h.last = 1;
	if (rc == 0)
		rc = send_one(ctl, &h, fds);
	int saved = errno;
	handover_drop(l);
	/* Init is gone already: what it reported before says why. */
	return rc < 0 && saved != EPIPE && saved != ECONNRESET
		       ? launch_fail(l, STAGE_CLONE, saved, "release init")
		       : 0;
}

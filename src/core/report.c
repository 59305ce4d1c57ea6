/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports to the front: one datagram each on CORE_FD_CTL. Needs send(2) and
 * sendmsg(2), no memory, no state; safe between fork and exec. The socket is
 * closed for the command (close_range), so only core speaks on it.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/core.h"

void report_send(const struct report *r)
{
	/* If the front is gone nobody needs the report: its end of file ends the tree. */
	while (send(CORE_FD_CTL, r, sizeof(*r), MSG_NOSIGNAL) < 0 && errno == EINTR)
		;
}

_Noreturn void core_die(enum stage stage, int sys, const char *text)
{
	struct report r = {.kind = REPORT_FAIL, .stage = stage, .sys = sys};

	strncpy(r.text, text, sizeof(r.text) - 1);
	report_send(&r);
	_exit(125);
}

void report_fds(const struct report *r, const int *fds, size_t n)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)r, .iov_len = sizeof(*r)};
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(MAX_REPORT_SOCKETS * sizeof(int))];
	} control = {0};
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = CMSG_SPACE(n * sizeof(int)),
	};

	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(&control.head), fds, n * sizeof(int));
	while (sendmsg(CORE_FD_CTL, &m, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			core_die(STAGE_PTY, errno, "hand over descriptors");
}

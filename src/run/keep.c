/* SPDX-License-Identifier: Apache-2.0 */
#include "run/keep.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "store/session.h"

int keep_connect(int dir, int *ret, struct err *e)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};

	/* A session's path may be longer than a socket's name. */
	(void)snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/" SESSION_SOCKET, dir);
	AUTO_FD int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_sys(e, "socket");
	if (RETRY_EINTR(connect(fd, (struct sockaddr *)&at, sizeof(at))) < 0) {
		if (errno != ENOENT && errno != ECONNREFUSED)
			return err_sys(e, "connect to the session's keeper");
		(void)err_set(e, ERR_NOT_FOUND, "nobody keeps this session any more");
		return err_hint(e, "its changes are still there: sandglass diff, apply, discard; "
				   "sandglass gc ends it");
	}
	*ret = TAKE_FD(fd);
	return 0;
}

int keep_send(int ctl, const void *p, size_t n, const int *fds, size_t count)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)p, .iov_len = n};
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(KEEP_FDS * sizeof(int))];
	} control = {.room = {0}};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	if (count) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.head), fds, count * sizeof(int));
	}
	return RETRY_EINTR(sendmsg(ctl, &m, MSG_NOSIGNAL)) < 0 ? -1 : 0;
}

long keep_receive(int ctl, void *p, size_t n, int *fds, size_t count, int flags)
{
	struct iovec iov = {.iov_base = p, .iov_len = n};
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(KEEP_FDS * sizeof(int))];
	} control;
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};

	for (size_t i = 0; i < count; i++)
		fds[i] = -1;
	ssize_t got = RETRY_EINTR(recvmsg(ctl, &m, flags | MSG_CMSG_CLOEXEC));
	const struct cmsghdr *c = got < 0 ? NULL : CMSG_FIRSTHDR(&m);
	size_t there = c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS
			       ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int)
			       : 0;
	for (size_t i = 0; i < there; i++) {
		int fd = -1;
		memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
		if (i < count)
			fds[i] = fd;
		else
			(void)close(fd);
	}
	return got;
}

static int tell_with(int ctl, const struct keep_request *q, const int *out, size_t n, struct err *e)
{
	struct keep_request full = *q;

	full.version = KEEP_VERSION;
	if (keep_send(ctl, &full, sizeof(full), out, n) < 0)
		return err_sys(e, "ask the session's keeper");
	return 0;
}

int keep_tell(int ctl, const struct keep_request *q, int fd, struct err *e)
{
	return tell_with(ctl, q, &fd, fd < 0 ? 0 : 1, e);
}

int keep_ask(int ctl, const struct keep_request *q, int fd, struct keep_answer *ret, int *fds,
	     struct err *e)
{
	return keep_ask_with(ctl, q, &fd, fd < 0 ? 0 : 1, ret, fds, e);
}

int keep_ask_with(int ctl, const struct keep_request *q, const int *out, size_t out_n,
		  struct keep_answer *ret, int *fds, struct err *e)
{
	if (tell_with(ctl, q, out, out_n, e) < 0)
		return -1;
	long n = keep_receive(ctl, ret, sizeof(*ret), fds, fds ? KEEP_FDS : 0, 0);
	if (n < 0)
		return err_sys(e, "the session's keeper");
	if (n != sizeof(*ret) || ret->version != KEEP_VERSION || ret->code >= ERR_CODES)
		return err_set(e, ERR_INTERNAL,
			       "the session's keeper has ended, or is of another version");
	ret->message[sizeof(ret->message) - 1] = ret->hint[sizeof(ret->hint) - 1] = '\0';
	ret->cgroup[sizeof(ret->cgroup) - 1] = '\0';
	if (ret->code == ERR_NONE)
		return 0;
	(void)err_set(e, (enum err_code)ret->code, "%s", ret->message);
	return ret->hint[0] ? err_hint(e, "%s", ret->hint) : -1;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sessionnet.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/file.h"
#include "egress/limit.h"

int session_net_read(int dir, struct egress_set *ret, struct err *e)
{
	AUTO_BUF bytes = BUF_INIT(MAX_EGRESS_BYTES);
	struct stat st;

	AUTO_FD int fd = openat(dir, SESSION_NET, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		*ret = (struct egress_set){0};
		return 0;
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "the session's network");
	if (!S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > (off_t)MAX_EGRESS_BYTES ||
	    buf_reserve(&bytes, (size_t)st.st_size) < 0 ||
	    RETRY_EINTR(read(fd, bytes.p, (size_t)st.st_size)) != st.st_size)
		return err_set(e, ERR_INTERNAL, "the session's network is not as it was written");
	return egress_set_decode(bytes.p, (size_t)st.st_size, ret, e);
}

int session_net_write(int dir, const struct egress_set *s, struct err *e)
{
	static const char draft[] = SESSION_NET ".new";
	AUTO_BUF bytes = BUF_INIT(MAX_EGRESS_BYTES);

	if (egress_set_encode(s, &bytes, e) < 0)
		return -1;
	AUTO_FD int fd =
		openat(dir, draft, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || RETRY_EINTR(write(fd, bytes.p, bytes.n)) != (ssize_t)bytes.n ||
	    renameat(dir, draft, dir, SESSION_NET) < 0)
		return err_sys(e, "write the session's network");
	return 0;
}

int session_net_spent(int dir, struct err *e)
{
	const struct egress_spent none = {0};
	struct stat st;

	/* Above the numbers of the proxy's descriptors. */
	AUTO_FD int fd =
		file_fd_above(openat(dir, "spent", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600),
			      EGRESS_FD_SPENT + 1);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "what the session has spent of its network");
	/* Written, not only made longer: the proxy cannot run out of space then. */
	if (st.st_size == 0 && RETRY_EINTR(write(fd, &none, sizeof(none))) != (ssize_t)sizeof(none))
		return err_sys(e, "what the session has spent of its network");
	return TAKE_FD(fd);
}

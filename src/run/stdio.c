/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides from fstat(2) alone. A descriptor can do more than read and write:
 * change its file's mode, be opened again with more rights through
 * /proc/self/fd, lead to a directory tree or into the host's network. So only
 * what cannot (pipes, the harmless devices) is handed over.
 */
#include "run/stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

static const char *const names[] = {"stdin", "stdout", "stderr"};

unsigned int stdio_fill(void)
{
	unsigned int closed = 0;

	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		closed |= 1u << fd;
		/* The lowest free number is fd, since those below are open. */
		(void)open("/dev/null", O_RDWR);
	}
	return closed;
}

/* null, zero, full, random, urandom: devices.txt of the kernel, major 1. */
static bool is_harmless_device(const struct stat *st)
{
	static const unsigned int minors[] = {3, 5, 7, 8, 9};

	for (size_t i = 0; i < sizeof(minors) / sizeof(minors[0]); i++)
		if (st->st_rdev == makedev(1, minors[i]))
			return true;
	return false;
}

static bool is_anonymous_pipe(int fd)
{
	struct statfs s;

	return fstatfs(fd, &s) == 0 && s.f_type == PIPEFS_MAGIC;
}

/* Finds the name of a regular file at stdin, if it still has one. */
static bool find_file(struct stdio *io, const struct stat *st)
{
	struct stat named;
	int flags = fcntl(STDIN_FILENO, F_GETFL);

	ssize_t n = readlink("/proc/self/fd/0", io->file_path, sizeof(io->file_path) - 1);
	if (n <= 0 || io->file_path[0] != '/' || flags < 0 || (flags & O_ACCMODE) == O_WRONLY)
		return false;
	io->file_path[n] = '\0';
	if (lstat(io->file_path, &named) < 0 || named.st_dev != st->st_dev ||
	    named.st_ino != st->st_ino)
		return false;
	io->file = *st;
	return true;
}

static int refuse(struct err *e, int fd, const char *what)
{
	(void)err_set(e, ERR_POLICY_DENIED, "%s is %s", names[fd], what);
	return err_hint(e, "give the command a file, a pipe or /dev/null instead");
}

/*
 * A socket belongs to the host's network for good: from inside it could be
 * connected to somewhere else, bound to a name there, asked for its interfaces.
 * So a connected stream is relayed and anything else refused.
 */
static int plan_socket(struct stdio *io, int fd, struct err *e)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);
	int type = 0;
	socklen_t type_len = sizeof(type);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) < 0 ||
	    getpeername(fd, (struct sockaddr *)&peer, &len) < 0 ||
	    (type != SOCK_STREAM && type != SOCK_SEQPACKET))
		return refuse(e, fd, "a socket that is not a connected stream");
	io->way[fd] = STDIO_RELAY;
	return 0;
}

static int plan_one(struct stdio *io, int fd, bool json, struct err *e)
{
	struct stat st;
	int flags = fcntl(fd, F_GETFL);

	if (fstat(fd, &st) < 0 || flags < 0)
		return err_sys(e, "%s", names[fd]);
	if (S_ISDIR(st.st_mode))
		return refuse(e, fd, "a directory");
	if (flags & O_PATH)
		return refuse(e, fd, "a descriptor without access (O_PATH)");
	if (fd > 0 && json) {
		io->way[fd] = STDIO_CAPTURE;
		return 0;
	}
	if (S_ISFIFO(st.st_mode)) {
		io->way[fd] = is_anonymous_pipe(fd) ? STDIO_PASS : STDIO_RELAY;
		return 0;
	}
	if (S_ISSOCK(st.st_mode))
		return plan_socket(io, fd, e);
	if (S_ISREG(st.st_mode)) {
		io->way[fd] = fd == 0 && find_file(io, &st) ? STDIO_FILE : STDIO_RELAY;
		return 0;
	}
	if (S_ISCHR(st.st_mode) && is_harmless_device(&st)) {
		io->way[fd] = STDIO_PASS;
		return 0;
	}
	if (S_ISCHR(st.st_mode) && isatty(fd)) {
		io->way[fd] = STDIO_RELAY;
		return 0;
	}
	return refuse(e, fd,
		      S_ISBLK(st.st_mode) ? "a block device"
					  : "not a kind of file that is handed in");
}

/* Devices have no order to keep. */
static bool is_one_output(const struct stdio *io)
{
	struct stat out;
	struct stat err;

	return io->way[1] == STDIO_RELAY && io->way[2] == STDIO_RELAY && fstat(1, &out) == 0 &&
	       fstat(2, &err) == 0 && out.st_dev == err.st_dev && out.st_ino == err.st_ino &&
	       !(S_ISCHR(out.st_mode) && is_harmless_device(&out));
}

int stdio_plan(unsigned int closed, bool json, bool tty, bool bare, struct stdio *ret,
	       struct err *e)
{
	struct stdio io = {.one_output = false};

	for (int fd = 0; fd <= 2; fd++) {
		if (closed & (1u << fd))
			io.way[fd] = fd > 0 && json ? STDIO_CAPTURE : STDIO_NULL;
		else if (plan_one(&io, fd, json, e) < 0)
			return -1;
		if (tty && io.way[fd] != STDIO_CAPTURE)
			io.way[fd] = STDIO_PTY;
		if (bare && io.way[fd] != STDIO_CAPTURE && io.way[fd] != STDIO_NULL)
			io.way[fd] = STDIO_PASS;
	}
	io.one_output = is_one_output(&io);
	*ret = io;
	return 0;
}

void stdio_keep_output(struct stdio *io)
{
	for (int fd = 1; fd <= 2; fd++)
		if (io->way[fd] == STDIO_PASS || io->way[fd] == STDIO_NULL)
			io->way[fd] = STDIO_RELAY;
	io->one_output = is_one_output(io);
}

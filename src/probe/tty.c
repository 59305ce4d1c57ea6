/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows about terminals: typing into the caller's, reaching others.
 */
#include "rows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/base.h"
#include "probe/sys.h"

#define REQ_TIOCSTI 0x5412L
#define REQ_TIOCLINUX 0x541cL
#define LINUX_PASTE 3
#define LINUX_FOREGROUND 12

static void push_byte(struct finding *f, const char *name, int fd, long request)
{
	char what[MAX_WHAT];
	/* A byte that a line-reading program keeps as text. */
	long rc = syscall(SYS_ioctl, fd, request, "i");
	(void)snprintf(what, sizeof(what), "%s/%#lx", name, (unsigned long)request);
	tried(f, what, rc, BY_FILTER | BY_TYPE | BY_FILE);
}

static void push_everywhere(struct finding *f, long request)
{
	static const char *const names[] = {"stdin", "stdout", "stderr"};
	for (int fd = 0; fd < 3; fd++)
		push_byte(f, names[fd], fd, request);
	AUTO_FD int tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (tty < 0)
		tried(f, "open /dev/tty", -1, BY_FILE);
	else
		push_byte(f, "/dev/tty", tty, request);
}

static void row_push(struct finding *f)
{
	push_everywhere(f, REQ_TIOCSTI);
}

static void row_push_high(struct finding *f)
{
	push_everywhere(f, REQ_TIOCSTI | HIGH_BIT);
	push_everywhere(f, WORD(0xdead000000000000UL) | REQ_TIOCSTI);
}

/* Once with the subcommand that needs privilege and once with one that needs none. */
static void console_request(struct finding *f, const char *name, int fd)
{
	static const char subs[] = {LINUX_PASTE, LINUX_FOREGROUND};
	for (size_t i = 0; i < ARRAY_LEN(subs); i++) {
		char what[MAX_WHAT], arg_bytes[16] = {subs[i]};
		long rc = syscall(SYS_ioctl, fd, REQ_TIOCLINUX, arg_bytes);
		(void)snprintf(what, sizeof(what), "%s/%d", name, subs[i]);
		tried(f, what, rc, BY_FILTER | BY_TYPE);
		(void)memset(arg_bytes, 0, sizeof(arg_bytes));
		arg_bytes[0] = subs[i];
		rc = syscall(SYS_ioctl, fd, REQ_TIOCLINUX | HIGH_BIT, arg_bytes);
		(void)snprintf(what, sizeof(what), "%s/%d/high", name, subs[i]);
		tried(f, what, rc, BY_FILTER | BY_TYPE);
	}
}

static void row_paste(struct finding *f)
{
	static const char *const names[] = {"stdin", "stdout", "stderr"};
	for (int fd = 0; fd < 3; fd++)
		console_request(f, names[fd], fd);
	static const char *const ttys[] = {"/dev/tty", "/dev/tty0", "/dev/tty1"};
	for (size_t i = 0; i < ARRAY_LEN(ttys); i++) {
		AUTO_FD int fd = open(ttys[i], O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (fd < 0)
			tried(f, ttys[i], -1, BY_FILE);
		else
			console_request(f, ttys[i], fd);
	}
}

/* Opens a terminal of the host and writes to it. */
static void row_host_terminal(struct finding *f)
{
	const char *path = arg("tty");
	static const char text[] = "typed by the probe\n";
	AUTO_FD int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	tried(f, "open", fd, BY_FILE);
	if (fd >= 0 && write(fd, text, sizeof(text) - 1) > 0)
		note(f, "wrote to %s", path);
	struct stat st;
	char other[4096];
	/* The same terminal by its number, made anew or found among ours. */
	if (stat(path, &st) == 0 && S_ISCHR(st.st_mode) &&
	    scratch_path(other, sizeof(other), scratch_dir())) {
		long rc = mknod(other, S_IFCHR | 0600, st.st_rdev);
		tried(f, "mknod", rc, BY_FILE);
		if (rc == 0)
			(void)unlink(other);
	}
}

static const struct row rows[] = {
	{"tty-01", "tiocsti", row_push, 0, NULL,
	 "ioctl TIOCSTI on stdin, stdout, stderr and /dev/tty"},
	{"tty-02", "tiocsti-high", row_push_high, 0, NULL,
	 "the same with bits above the 32 that the kernel reads"},
	{"tty-03", "tioclinux", row_paste, 0, NULL,
	 "ioctl TIOCLINUX (paste; foreground console) on every terminal, plain and with high bits"},
	{"host-terminal", NULL, row_host_terminal, 0, "tty", "open another terminal of the host"},
};
const struct row_table rows_tty = {rows, ARRAY_LEN(rows)};

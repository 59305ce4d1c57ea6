/* SPDX-License-Identifier: Apache-2.0 */
#include "run/terminal.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

bool terminal_is_ours(int fd)
{
	/* None: it controls no job of this session, so no shell will stop us for using it. */
	pid_t job = tcgetpgrp(fd);

	return job < 0 || job == getpgrp();
}

bool terminal_is_keyed(int fd)
{
	struct termios t;

	return tcgetattr(fd, &t) == 0 && !(t.c_lflag & ICANON);
}

bool terminal_is_by_line(void)
{
	struct stat st;

	if (!terminal_is_keyed(STDIN_FILENO))
		return true;
	if (tcgetpgrp(STDIN_FILENO) < 0) /* nobody's controlling terminal: no pager's either */
		return false;
	return (fstat(STDOUT_FILENO, &st) == 0 && S_ISFIFO(st.st_mode)) ||
	       (fstat(STDERR_FILENO, &st) == 0 && S_ISFIFO(st.st_mode));
}

int terminal_reopen(int fd)
{
	char link[32];

	if (!isatty(fd))
		return -1;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return open(link, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
}

void terminal_copy_size(int pty)
{
	struct winsize size;

	for (int fd = 0; fd <= 2; fd++) {
		if (ioctl(fd, TIOCGWINSZ, &size) < 0)
			continue;
		(void)ioctl(pty, TIOCSWINSZ, &size);
		return;
	}
}

void terminal_copy_settings(int pty)
{
	struct termios t;

	for (int fd = 0; fd <= 2; fd++) {
		if (tcgetattr(fd, &t) < 0)
			continue;
		(void)tcsetattr(pty, TCSANOW, &t);
		return;
	}
}

void terminal_enter(struct terminal *t, int pty)
{
	struct termios now;

	if (!terminal_is_ours(STDIN_FILENO))
		return;
	terminal_copy_size(pty);
	if (tcgetattr(STDIN_FILENO, &now) < 0)
		return;
	/* After a stop the shell may have made it its own again. */
	if (!t->raw || (now.c_lflag & ICANON))
		t->saved = now;
	cfmakeraw(&now);
	t->raw = tcsetattr(STDIN_FILENO, TCSANOW, &now) == 0;
}

void terminal_leave(struct terminal *t)
{
	/* What a terminal answered too late must not reach the caller's shell as keys. */
	if (t->raw && terminal_is_ours(STDIN_FILENO))
		(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &t->saved);
	t->raw = false;
}

bool terminal_stop(bool job)
{
	sigset_t stop;
	sigset_t pending;

	(void)sigemptyset(&stop);
	(void)sigaddset(&stop, SIGTSTP);
	(void)kill(job ? 0 : getpid(), SIGTSTP);
	/* Here we stand still. The kernel lets no job stop that nobody could continue. */
	(void)sigprocmask(SIG_UNBLOCK, &stop, NULL);
	(void)sigprocmask(SIG_BLOCK, &stop, NULL);
	/* Blocked in this program, so it is still to be seen; a stop takes older ones away. */
	return sigpending(&pending) == 0 && sigismember(&pending, SIGCONT) == 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child of init that becomes the command: last restrictions, then execve.
 * Each step only takes away. It still holds CORE_FD_CTL to report a failed
 * execve; every descriptor above 2 is close-on-exec by then.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "core/core.h"
#include "core/sys.h"

#define CLOSE_RANGE_ON_EXEC 4u /* CLOSE_RANGE_CLOEXEC, Linux 5.11 */
#define HEAD_BYTES 256

static void reset_signals(void)
{
	sigset_t none;

	for (int s = 1; s < NSIG; s++) {
		struct sigaction sa = {.sa_handler = SIG_DFL};
		(void)sigaction(s, &sa, NULL); /* KILL, STOP and libc's own cannot be set */
	}
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static void take_terminal(const struct core *c)
{
	if (!(c->p->n.flags & PLAN_TTY))
		return;
	if (setpgid(0, 0) < 0 || tcsetpgrp(c->pty_slave, getpid()) < 0)
		core_die(STAGE_PTY, errno, "foreground of the terminal");
	for (int fd = 0; fd <= 2; fd++)
		if (dup2(c->pty_slave, fd) < 0)
			core_die(STAGE_PTY, errno, "stdio");
}

static const char *env_value(char *const *envp, const char *name)
{
	size_t n = strlen(name);

	for (; *envp; envp++)
		if (strncmp(*envp, name, n) == 0 && (*envp)[n] == '=')
			return *envp + n + 1;
	return NULL;
}

/* First bytes of the file, for telling why it would not run. */
static size_t read_head(const char *path, char *head)
{
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, head, HEAD_BYTES - 1);

	head[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

/* As execvp(3) does: a file without a known format that looks like text is a shell script. */
static void try_as_script(const struct core *c, const char *path)
{
	char head[HEAD_BYTES];
	size_t n = read_head(path, head);

	errno = ENOEXEC;
	if (!n || memchr(head, 0, n) || head[0] == '\x7f')
		return;
	char **argv = calloc(c->p->argc + 2, sizeof(*argv));
	if (!argv) {
		errno = ENOMEM;
		return;
	}
	argv[0] = (char *)"/bin/sh";
	argv[1] = (char *)(uintptr_t)path;
	for (size_t i = 1; i < c->p->argc; i++)
		argv[i + 1] = c->p->argv[i];
	(void)execve(argv[0], argv, c->p->envp);
	free(argv);
	errno = ENOEXEC;
}

/* execve failed: what and why. `text` is the path, then what its #! line names. */
static _Noreturn void exec_failed(const char *path, int sys, bool found)
{
	struct report r = {.kind = REPORT_EXEC, .stage = STAGE_EXEC, .sys = sys};
	char head[HEAD_BYTES];

	r.status = found ? 126 : 127;
	strncpy(r.text, path, sizeof(r.text) - HEAD_BYTES - 2);
	if (found && sys == ENOENT && read_head(path, head) > 2 && head[0] == '#' &&
	    head[1] == '!') {
		size_t at = strlen(r.text) + 1;
		head[strcspn(head, "\n")] = '\0';
		strncpy(r.text + at, head + 2, sizeof(r.text) - at - 1);
	}
	report_send(&r);
	_exit(r.status);
}

/*
 * A 32-bit program of this processor would start and then be killed at its
 * first system call, which the filter knows only in the 64-bit form.
 */
static bool is_foreign_word_size(const char *path)
{
#ifdef __x86_64__
	char head[HEAD_BYTES];

	return read_head(path, head) > 19 &&
	       memcmp(head,
		      "\x7f"
		      "ELF\x01",
		      5) == 0 &&
	       (head[18] == 3 /* EM_386 */ || head[18] == 62 /* EM_X86_64: x32 */) && head[19] == 0;
#else
	(void)path;
	return false;
#endif
}

static void exec_path(const struct core *c, const char *path)
{
	if (is_foreign_word_size(path)) {
		errno = ENOEXEC;
		return;
	}
	(void)execve(path, c->p->argv, c->p->envp);
	if (errno == ENOEXEC)
		try_as_script(c, path);
}

/* A name without a slash: along the command's PATH. */
static _Noreturn void exec_search(const struct core *c, const char *name)
{
	const char *dirs = env_value(c->p->envp, "PATH");
	char path[MAX_PLAN_PATH];
	int denied = 0;

	if (!dirs)
		dirs = "/usr/local/bin:/usr/bin:/bin";
	while (*dirs) {
		size_t n = strcspn(dirs, ":");
		if (n + strlen(name) + 2 < sizeof(path)) {
			(void)snprintf(path, sizeof(path), "%.*s/%s", n ? (int)n : 1,
				       n ? dirs : ".", name);
			exec_path(c, path);
			if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
				exec_failed(path, errno, true);
			if (errno == ENOENT && faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0)
				exec_failed(path, ENOENT, true);
			if (errno == EACCES && faccessat(AT_FDCWD, path, F_OK, 0) == 0)
				denied = 1;
		}
		dirs += n;
		dirs += *dirs == ':';
	}
	exec_failed(name, denied ? EACCES : ENOENT, denied);
}

_Noreturn void tool_run(const struct core *c)
{
	const char *name = c->p->argv[0];

	take_terminal(c); /* while SIGTTOU is blocked */
	reset_signals();
	if (!(c->p->n.flags & PLAN_TTY) && setsid() < 0)
		core_die(STAGE_FORK, errno, "setsid");
	if (c->p->n.flags & PLAN_LANDLOCK)
		rung_enter_ids(c);
	if (chdir(c->p->cwd) < 0)
		core_die(STAGE_CWD, errno, c->p->cwd);
	rlimit_apply(c);
	if (sys_close_range(3, UINT32_MAX, CLOSE_RANGE_ON_EXEC) < 0)
		core_die(STAGE_FORK, errno, "close_range");
	if (c->p->n.flags & PLAN_LANDLOCK)
		caps_drop(c); /* init has none elsewhere */
	if (!(c->p->n.flags & PLAN_BARE)) {
		landlock_apply(c);
		seccomp_load(c);
	}

	if (!strchr(name, '/'))
		exec_search(c, name);
	exec_path(c, name);
	int sys = errno;
	exec_failed(name, sys, sys != ENOTDIR && faccessat(AT_FDCWD, name, F_OK, 0) == 0);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "review/gitbox.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

#define READ_BYTES 65536u
#define MAX_SAID 700 /* bytes of its stderr that a message tells, from the end */

static int spawn(const char *sandglass, char **env, const char *script, const int fds[3],
		 pid_t *ret)
{
	static const char *const words[] = {
		"sandglass", "run", "--quiet", "--no-tty", "--no-source", "--timeout", "30m", "-c",
	};
	char *argv[ARRAY_LEN(words) + 2] = {NULL};
	posix_spawn_file_actions_t acts;
	posix_spawnattr_t attr;
	sigset_t pipe_set;

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		argv[i] = (char *)(uintptr_t)words[i];
	argv[ARRAY_LEN(words)] = (char *)(uintptr_t)script;
	if (posix_spawn_file_actions_init(&acts) != 0)
		return ENOMEM;
	if (posix_spawnattr_init(&attr) != 0) {
		(void)posix_spawn_file_actions_destroy(&acts);
		return ENOMEM;
	}
	(void)sigemptyset(&pipe_set);
	(void)posix_spawnattr_setsigmask(&attr, &pipe_set);
	(void)sigaddset(&pipe_set, SIGPIPE);
	(void)posix_spawnattr_setsigdefault(&attr, &pipe_set);
	(void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	int rc = 0;
	for (int i = 0; i < 3 && rc == 0; i++)
		rc = posix_spawn_file_actions_adddup2(&acts, fds[i], i);
	/* The caller's directory may be one that no sandbox is started from. */
	if (rc == 0)
		rc = posix_spawn_file_actions_addchdir_np(&acts, "/");
	if (rc == 0)
		rc = posix_spawn(ret, sandglass, &acts, &attr, argv, env);
	(void)posix_spawnattr_destroy(&attr);
	(void)posix_spawn_file_actions_destroy(&acts);
	return rc;
}

int gitbox_start(const char *sandglass, char **env, const char *script, struct gitbox *ret,
		 struct err *e)
{
	int in[2];
	int out[2];

	if (pipe2(in, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	AUTO_FD int in_read = in[0];
	AUTO_FD int in_write = in[1];
	if (pipe2(out, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	AUTO_FD int out_read = out[0];
	AUTO_FD int out_write = out[1];
	AUTO_FD int said = memfd_create("sandglass git", MFD_CLOEXEC);
	AUTO_FREE char *bytes = malloc(READ_BYTES);
	if (said < 0 || !bytes)
		return err_sys(e, "memory for git");
	struct gitbox g = {.bytes = bytes};
	errno = spawn(sandglass, env, script, (int[]){in_read, out_write, said}, &g.pid);
	if (errno)
		return err_sys(e, "start %s", sandglass);
	g.to = TAKE_FD(in_write);
	g.from = TAKE_FD(out_read);
	g.said = TAKE_FD(said);
	bytes = NULL;
	*ret = g;
	return 0;
}

int gitbox_write(struct gitbox *g, const void *p, size_t n, struct err *e)
{
	const char *at = p;

	while (n) {
		ssize_t some = RETRY_EINTR(write(g->to, at, n));
		if (some < 0)
			return err_sys(e, "write to git");
		at += some;
		n -= (size_t)some;
	}
	return 0;
}

void gitbox_written(struct gitbox *g)
{
	if (g->to >= 0)
		(void)close(g->to);
	g->to = -1;
}

static int fill(struct gitbox *g, struct err *e)
{
	ssize_t n = RETRY_EINTR(read(g->from, g->bytes, READ_BYTES));

	if (n < 0)
		return err_sys(e, "read from git");
	g->at = 0;
	g->n = (size_t)n;
	return n > 0;
}

ssize_t gitbox_read(struct gitbox *g, void *p, size_t n, struct err *e)
{
	if (g->at == g->n) {
		int more = fill(g, e);
		if (more <= 0)
			return more;
	}
	if (n > g->n - g->at)
		n = g->n - g->at;
	memcpy(p, g->bytes + g->at, n);
	g->at += n;
	return (ssize_t)n;
}

ssize_t gitbox_text(struct gitbox *g, char *ret, size_t cap, struct err *e)
{
	for (size_t n = 0; n < cap; n++) {
		int more = g->at < g->n ? 1 : fill(g, e);
		if (more < 0)
			return -1;
		if (more == 0)
			return err_set(e, ERR_INTERNAL, "git ended before its answer did");
		ret[n] = g->bytes[g->at++];
		if (!ret[n])
			return (ssize_t)n;
	}
	return err_set(e, ERR_INTERNAL, "git answered with a name that is too long");
}

/* The last lines that it said: the front's own error is the very last. */
static int failed(int said, int status, struct err *e)
{
	char text[MAX_SAID + 1];
	off_t size = lseek(said, 0, SEEK_END);
	off_t from = size > MAX_SAID ? size - MAX_SAID : 0;
	ssize_t n = size > 0 ? pread(said, text, MAX_SAID, from) : 0;

	while (n > 0 && text[n - 1] == '\n')
		n--;
	text[n > 0 ? n : 0] = '\0';
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	(void)err_set(e, code == 125 ? ERR_SANDBOX_UNAVAILABLE : ERR_INTERNAL,
		      "git in its sandbox ended with status %d: %s", code, text);
	return err_hint(e, "`sandglass run --no-source git --version` must work");
}

int gitbox_end(struct gitbox *g, bool stop, struct err *e)
{
	int status = 0;

	gitbox_written(g);
	(void)close(g->from);
	if (stop)
		(void)kill(g->pid, SIGTERM);
	(void)RETRY_EINTR(waitpid(g->pid, &status, 0));
	free(g->bytes);
	int rc = !stop && status != 0 ? failed(g->said, status, e) : 0;
	(void)close(g->said);
	*g = (struct gitbox){.to = -1, .from = -1, .said = -1};
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "review/boxed.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/path.h"

#define PUMP_BYTES 65536u
#define MAX_BOXED_ARGS 4096

/* Where `sandglass` is: beside this program, or in ../../bin of it. */
static int find_front(char ret[PATH_TEXT], struct err *e)
{
	char dir[PATH_TEXT];
	ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 1);

	if (n <= 0)
		return err_sys(e, "readlink /proc/self/exe");
	dir[n] = '\0';
	for (int up = 0; up < 3; up++) {
		char *slash = strrchr(dir, '/');
		if (!slash)
			break;
		*slash = '\0';
		if (up == 1)
			continue;
		if (path_join(dir, up ? "bin/sandglass" : "sandglass", ret, PATH_TEXT, e) < 0)
			return -1;
		if (access(ret, X_OK) == 0)
			return 0;
	}
	return err_set(e, ERR_SANDBOX_UNAVAILABLE, "sandglass is not where it was installed");
}

static int spawn(const struct boxed *b, int in, int out, pid_t *ret, struct err *e)
{
	static const char *const head[] = {"sandglass", "run", "--quiet", "--no-tty",
					   "--timeout", "5m",  "--mode",  "read-only",
					   "--output",  "none"};
	const char *argv[MAX_BOXED_ARGS + 16];
	char front[PATH_TEXT];
	size_t n = ARRAY_LEN(head);
	posix_spawn_file_actions_t acts;

	if (find_front(front, e) < 0)
		return -1;
	memcpy(argv, head, sizeof(head));
	if (b->source) {
		argv[n++] = "--source";
		argv[n++] = b->source;
	} else {
		argv[n++] = "--no-source";
	}
	argv[n++] = "-c";
	argv[n++] = b->script;
	for (size_t i = 0; b->args && b->args[i]; i++) {
		if (i == MAX_BOXED_ARGS)
			return err_set(e, ERR_ARG_LIMIT, "more than %d arguments", MAX_BOXED_ARGS);
		argv[n++] = b->args[i];
	}
	argv[n] = NULL;
	if (posix_spawn_file_actions_init(&acts) != 0)
		return err_set(e, ERR_INTERNAL, "out of memory");
	int rc = posix_spawn_file_actions_adddup2(&acts, in, 0);
	rc = rc ? rc : posix_spawn_file_actions_adddup2(&acts, out, 1);
	rc = rc ? rc : posix_spawn_file_actions_addopen(&acts, 2, "/dev/null", O_WRONLY, 0);
	rc = rc ? rc
		: posix_spawn(ret, front, &acts, NULL, (char *const *)(uintptr_t)argv, environ);
	(void)posix_spawn_file_actions_destroy(&acts);
	errno = rc;
	return rc ? err_sys(e, "start %s", front) : 0;
}

struct pump {
	const struct boxed *b;
	size_t part;
	off_t at; /* in the part */
	char bytes[PUMP_BYTES];
	size_t from, n; /* of `bytes`, still to be written */
	uint64_t got;
};

/* More bytes to write; false: none are left. */
static bool refill(struct pump *p)
{
	while (p->part < p->b->in_n) {
		const struct boxed_part *part = &p->b->in[p->part];
		ssize_t n = 0;
		if (part->fd >= 0) {
			n = pread(part->fd, p->bytes, sizeof(p->bytes), p->at);
		} else {
			size_t left = strlen(part->text) - (size_t)p->at;
			n = (ssize_t)(left < sizeof(p->bytes) ? left : sizeof(p->bytes));
			memcpy(p->bytes, part->text + p->at, (size_t)n);
		}
		if (n > 0) {
			p->at += n;
			p->from = 0;
			p->n = (size_t)n;
			return true;
		}
		p->part++;
		p->at = 0;
	}
	return false;
}

/* Closes *to when all is written or nobody reads. */
static void feed(struct pump *p, int *to)
{
	if (!p->n && !refill(p)) {
		base_close_fd(to);
		*to = -1;
		return;
	}
	ssize_t n = write(*to, p->bytes + p->from, p->n);
	if (n > 0) {
		p->from += (size_t)n;
		p->n -= (size_t)n;
	} else if (errno != EAGAIN && errno != EINTR) {
		base_close_fd(to);
		*to = -1;
	}
}

/* False: the end, or too much. */
static bool drain(struct pump *p, int from, int out, bool *good)
{
	char bytes[PUMP_BYTES];
	ssize_t n = RETRY_EINTR(read(from, bytes, sizeof(bytes)));

	if (n <= 0)
		return false;
	p->got += (uint64_t)n;
	*good = p->got <= p->b->max_out && write(out, bytes, (size_t)n) == n;
	return *good;
}

static bool pump(const struct boxed *b, int *to, int from, int out)
{
	static struct pump p;
	bool good = true;

	p = (struct pump){.b = b};
	(void)fcntl(*to, F_SETFL, O_NONBLOCK);
	for (;;) {
		struct pollfd fds[2] = {{.fd = from, .events = POLLIN},
					{.fd = *to, .events = POLLOUT}};
		if (RETRY_EINTR(poll(fds, 2, -1)) < 0)
			return false;
		if (*to >= 0 && fds[1].revents)
			feed(&p, to);
		if (fds[0].revents && !drain(&p, from, out, &good))
			return good;
	}
}

static int run_to_end(const struct boxed *b, int out, struct err *e)
{
	int in[2];
	int back[2];
	pid_t pid = -1;
	int status = 0;

	if (pipe2(in, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	if (pipe2(back, O_CLOEXEC) < 0) {
		(void)close(in[0]);
		(void)close(in[1]);
		return err_sys(e, "pipe");
	}
	int rc = spawn(b, in[0], back[1], &pid, e);
	(void)close(in[0]);
	(void)close(back[1]);
	bool good = rc == 0 && pump(b, &in[1], back[0], out);
	base_close_fd(&in[1]);
	(void)close(back[0]);
	if (rc < 0)
		return -1;
	if (!good)
		(void)kill(pid, SIGTERM);
	if (RETRY_EINTR(waitpid(pid, &status, 0)) < 0)
		return err_sys(e, "wait for a sandbox");
	if (!good)
		return err_set(e, ERR_OUTPUT_LIMIT, "a sandbox of ours wrote more than expected");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return err_set(e, ERR_SANDBOX_UNAVAILABLE, "a sandbox of ours ended with %s %d",
		       WIFEXITED(status) ? "status" : "signal",
		       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

int boxed_run(const struct boxed *b, int *ret_out, struct err *e)
{
	AUTO_FD int out = memfd_create("sandglass-out", MFD_CLOEXEC);
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigaction old;

	if (out < 0 || sigaction(SIGPIPE, &ignore, &old) < 0)
		return err_sys(e, "memfd_create");
	int rc = run_to_end(b, out, e);
	(void)sigaction(SIGPIPE, &old, NULL);
	if (rc < 0)
		return -1;
	if (lseek(out, 0, SEEK_SET) < 0)
		return err_sys(e, "lseek");
	*ret_out = TAKE_FD(out);
	return 0;
}

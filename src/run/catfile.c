/* SPDX-License-Identifier: Apache-2.0 */
/*
 * git runs in our own sandbox, since a repository's configuration is not ours to
 * trust; its answers are data of known length and are hashed again.
 */
#include "run/catfile.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/sha1.h"
#include "base/sha256.h"

#define READ_BYTES 65536u
#define ANSWER_MS 10000u

bool object_name(const char *type, const void *content, size_t n, unsigned int bytes,
		 struct inventory_oid *ret)
{
	char head[64];
	int len = snprintf(head, sizeof(head), "%s %zu", type, n);

	*ret = (struct inventory_oid){.bytes = (uint8_t)bytes};
	if (len < 0 || (size_t)len >= sizeof(head))
		return false;
	size_t head_n = (size_t)len + 1; /* with the NUL */
	if (bytes == 20) {
		struct sha1 s;
		sha1_init(&s);
		sha1_add(&s, head, head_n);
		sha1_add(&s, content, n);
		sha1_end(&s, ret->oid);
		return true;
	}
	char *all = malloc(head_n + n + 1);
	if (!all)
		return false;
	memcpy(all, head, head_n);
	if (n)
		memcpy(all + head_n, content, n);
	sha256(all, head_n + n, ret->oid);
	free(all);
	return true;
}

/* sandglass run --mode read-only --source WORK git -C WORK cat-file --batch */
static bool spawn(struct catfile *c, const char *work, char **env, int in, int out)
{
	static const char *const words[] = {
		"sandglass", "run", "--quiet",  "--no-tty", "--mode", "read-only",
		"--timeout", "60s", "--source", "",         "git",    "--no-replace-objects",
		"-C",        "",    "cat-file", "--batch",  NULL,
	};
	char *argv[ARRAY_LEN(words)];
	posix_spawn_file_actions_t acts;
	posix_spawnattr_t attr;
	sigset_t none;

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		argv[i] = (char *)(uintptr_t)words[i];
	argv[9] = argv[13] = (char *)(uintptr_t)work;
	if (posix_spawn_file_actions_init(&acts) != 0)
		return false;
	if (posix_spawnattr_init(&attr) != 0) {
		(void)posix_spawn_file_actions_destroy(&acts);
		return false;
	}
	(void)sigemptyset(&none);
	(void)posix_spawnattr_setsigmask(&attr, &none);
	(void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	bool good = posix_spawn_file_actions_adddup2(&acts, in, 0) == 0 &&
		    posix_spawn_file_actions_adddup2(&acts, out, 1) == 0 &&
		    posix_spawn_file_actions_addopen(&acts, 2, "/dev/null", O_WRONLY, 0) == 0 &&
		    posix_spawn(&c->pid, "/proc/self/exe", &acts, &attr, argv, env) == 0;
	(void)posix_spawnattr_destroy(&attr);
	(void)posix_spawn_file_actions_destroy(&acts);
	return good;
}

/* The caller's environment and the mark: it asks git for nothing itself. NULL: no memory. */
static char **with_mark(char **caller)
{
	static char mark[] = CATFILE_MARK "=1";
	size_t n = 0;

	while (caller[n])
		n++;
	char **env = malloc((n + 2) * sizeof(*env));
	if (!env)
		return NULL;
	memcpy(env, caller, n * sizeof(*env));
	env[n] = mark;
	env[n + 1] = NULL;
	return env;
}

bool catfile_start(struct catfile *c, const char *work, char **caller)
{
	int in[2];
	int out[2];

	*c = (struct catfile){.to = -1, .from = -1};
	c->bytes = malloc(READ_BYTES);
	if (!c->bytes || pipe2(in, O_CLOEXEC) < 0) {
		free(c->bytes);
		return false;
	}
	if (pipe2(out, O_CLOEXEC) < 0) {
		(void)close(in[0]);
		(void)close(in[1]);
		free(c->bytes);
		return false;
	}
	AUTO_FREE char **env = with_mark(caller);
	bool good = env && spawn(c, work, env, in[0], out[1]);
	(void)close(in[0]);
	(void)close(out[1]);
	c->to = in[1];
	c->from = out[0];
	c->until_ms = clock_deadline(clock_mono_ms(), ANSWER_MS);
	if (!good)
		catfile_end(c);
	return good;
}

void catfile_end(struct catfile *c)
{
	if (c->to >= 0)
		(void)close(c->to);
	if (c->from >= 0)
		(void)close(c->from);
	if (c->pid > 0) {
		(void)kill(c->pid, SIGTERM);
		(void)RETRY_EINTR(waitpid(c->pid, NULL, 0));
	}
	free(c->bytes);
	free(c->object);
	*c = (struct catfile){.to = -1, .from = -1};
}

/* More of the answer. False: the end, or too late. */
static bool fill(struct catfile *c)
{
	struct pollfd fd = {.fd = c->from, .events = POLLIN};

	if (RETRY_EINTR(poll(&fd, 1, clock_poll_timeout(clock_mono_ms(), c->until_ms))) <= 0)
		return false;
	ssize_t n = RETRY_EINTR(read(c->from, c->bytes, READ_BYTES));
	c->at = 0;
	c->n = n > 0 ? (size_t)n : 0;
	return n > 0;
}

static bool take_line(struct catfile *c, char *ret, size_t cap)
{
	for (size_t len = 0; len + 1 < cap;) {
		if (c->at == c->n && !fill(c))
			return false;
		char b = c->bytes[c->at++];
		if (b == '\n') {
			ret[len] = '\0';
			return true;
		}
		ret[len++] = b;
	}
	return false;
}

static bool take_bytes(struct catfile *c, char *ret, size_t n)
{
	while (n) {
		if (c->at == c->n && !fill(c))
			return false;
		size_t some = c->n - c->at < n ? c->n - c->at : n;
		memcpy(ret, c->bytes + c->at, some);
		c->at += some;
		ret += some;
		n -= some;
	}
	return true;
}

static bool ask(struct catfile *c, const struct inventory_oid *oid)
{
	char line[2 * sizeof(oid->oid) + 2];
	size_t n = 0;

	for (size_t i = 0; i < oid->bytes; i++)
		n += (size_t)snprintf(line + n, sizeof(line) - n, "%02x", oid->oid[i]);
	line[n++] = '\n';
	/* SIGPIPE is ignored by who supervises a call. */
	return RETRY_EINTR(write(c->to, line, n)) == (ssize_t)n;
}

bool catfile_get(struct catfile *c, const struct inventory_oid *oid)
{
	struct inventory_oid is;
	char line[256];
	char name[80];
	size_t size = 0;
	char end = 0;

	/* "NAME TYPE SIZE", the content and a line's end, or "NAME missing" (git-cat-file(1)). */
	if (c->pid <= 0 || !ask(c, oid) || !take_line(c, line, sizeof(line)) ||
	    sscanf(line, "%79s %15s %zu", name, c->type, &size) != 3 || size > MAX_OBJECT_BYTES)
		return false;
	free(c->object);
	c->object = malloc(size + 1);
	if (!c->object || !take_bytes(c, c->object, size) || !take_bytes(c, &end, 1))
		return false;
	c->object[size] = '\0';
	c->size = size;
	return object_name(c->type, c->object, size, oid->bytes, &is) &&
	       memcmp(is.oid, oid->oid, oid->bytes) == 0;
}

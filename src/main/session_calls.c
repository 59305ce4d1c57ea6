/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `session calls` and `session logs`: results and logs of a session. Logs are the
 * command's bytes; results are ours.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/term.h"
#include "cli/verbs.h"
#include "core/sys.h"
#include "main/call_line.h"
#include "main/session_parts.h"
#include "run/keep.h"

#define LOG_BLOCK 65536
#define MAX_SHOWN_BLOCK ((size_t)8 * LOG_BLOCK) /* escaped, a byte is at most four */
#define BENEATH (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)
#define MAX_CALLS 65536u

struct one_call {
	char id[UUID_TEXT];
	struct timespec when;
	bool ended;
};

struct calls {
	struct one_call *v;
	size_t n;
};

static int by_time(const void *a, const void *b)
{
	const struct one_call *x = a;
	const struct one_call *y = b;

	return x->when.tv_sec != y->when.tv_sec    ? (x->when.tv_sec < y->when.tv_sec ? -1 : 1)
	       : x->when.tv_nsec < y->when.tv_nsec ? -1
						   : x->when.tv_nsec > y->when.tv_nsec;
}

/* Files named after a call, with that ending. */
static void add_calls(int dir, const char *place, const char *end, bool ended, struct calls *c)
{
	struct stat st;

	int fd = sys_openat2(dir, place, O_RDONLY | O_DIRECTORY | O_CLOEXEC, BENEATH);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	for (struct dirent *at = d ? readdir(d) : NULL; at && c->n < MAX_CALLS; at = readdir(d)) {
		char id[UUID_TEXT] = "";
		bool known = false;
		if (strlen(at->d_name) != UUID_TEXT - 1 + strlen(end) ||
		    strcmp(at->d_name + UUID_TEXT - 1, end) != 0)
			continue;
		memcpy(id, at->d_name, UUID_TEXT - 1);
		if (!uuid_valid(id) || fstatat(fd, at->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		for (size_t i = 0; i < c->n && !known; i++)
			known = strcmp(c->v[i].id, id) == 0;
		struct one_call *more = known ? NULL : realloc(c->v, (c->n + 1) * sizeof(*c->v));
		if (!more)
			continue;
		c->v = more;
		memcpy(c->v[c->n].id, id, UUID_TEXT);
		c->v[c->n].when = st.st_mtim;
		c->v[c->n++].ended = ended;
	}
	if (d)
		(void)closedir(d);
	else if (fd >= 0)
		(void)close(fd);
}

static void find_calls(int dir, struct calls *ret)
{
	*ret = (struct calls){.n = 0};
	add_calls(dir, "results", ".json", true, ret);
	add_calls(dir, "root/logs", ".out", false, ret);
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_time);
}

/* A file whole, appended; false: it is not there, or no file. */
bool session_add_file(int dir, const char *path, struct buf *out)
{
	char block[65536];
	struct stat st;

	AUTO_FD int fd = sys_openat2(dir, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC, BENEATH);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	for (ssize_t n = read(fd, block, sizeof(block)); n > 0; n = read(fd, block, sizeof(block)))
		if (buf_add(out, block, (size_t)n) < 0)
			return false;
	return true;
}

static void put_call(const struct picked *p, const struct one_call *call, bool json,
		     struct buf *out)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "results/%s.json", call->id);
	if (json) {
		if (!call->ended || !session_add_file(p->dir, path, out))
			(void)buf_printf(out,
					 "{\"session\":\"%s\",\"call\":\"%s\",\"running\":true}",
					 p->rec.id, call->id);
		return;
	}
	AUTO_BUF result = BUF_INIT((size_t)1 << 30);
	if (call->ended && session_add_file(p->dir, path, &result))
		call_line(call->id, &result, out);
	else
		(void)buf_printf(out, "%s  %s\n", call->id, call->ended ? "ended" : "running");
}

int session_calls(const struct session_caller *c, const struct session_options *o, char **operands)
{
	AUTO_BUF out = BUF_INIT((size_t)1 << 30);
	struct picked p;
	struct calls calls = {.n = 0};
	struct err e = {0};

	int rc = session_pick(&c->who, operands[0], &p, &e);
	if (rc == 0)
		find_calls(p.dir, &calls);
	if (o->json)
		(void)buf_char(&out, '[');
	for (size_t i = 0; i < calls.n; i++) {
		if (o->json && i)
			(void)buf_char(&out, ',');
		put_call(&p, &calls.v[i], o->json, &out);
	}
	if (o->json)
		(void)buf_str(&out, "]\n");
	free(calls.v);
	session_let_go(&p);
	if (rc == 0)
		rc = buf_check(&out, "the list of calls", ERR_INTERNAL, &e);
	if (rc == 0)
		rc = cli_write(STDOUT_FILENO, out.p ? out.p : "", out.n, &e);
	return rc < 0 ? cli_fail(&e, 2) : 0;
}

static int pick_call(const struct picked *p, const char *text, char ret[UUID_TEXT], bool *ret_ended,
		     struct err *e)
{
	struct calls calls;
	const struct one_call *found = NULL;

	find_calls(p->dir, &calls);
	for (size_t i = 0; i < calls.n; i++)
		if (!text || strncmp(calls.v[i].id, text, strlen(text)) == 0)
			found = &calls.v[i];
	if (found) {
		memcpy(ret, found->id, UUID_TEXT);
		*ret_ended = found->ended;
	}
	free(calls.v);
	if (found)
		return 0;
	(void)(text ? err_set(e, ERR_NOT_FOUND, "no call `%s` in this session", text)
		    : err_set(e, ERR_NOT_FOUND, "nothing was run in this session"));
	return err_hint(e, "sandglass session calls %.8s", p->rec.id);
}

/* A part of a log. At a terminal only its line ends and tabs move anything. */
static int say(const char *p, size_t n, struct err *e)
{
	AUTO_BUF out = BUF_INIT(MAX_SHOWN_BLOCK);

	if (!isatty(STDOUT_FILENO))
		return cli_write(STDOUT_FILENO, p, n, e);
	for (size_t i = 0; i < n; i++) {
		size_t from = i;
		while (i < n && p[i] != '\n' && p[i] != '\t')
			i++;
		(void)term_escape(&out, p + from, i - from);
		if (i < n)
			(void)buf_char(&out, p[i]);
	}
	return cli_write(STDOUT_FILENO, out.p ? out.p : "", out.n, e);
}

/* As much of a log as is there now, in pieces that end with a line where they can. */
static int pour(int fd, uint64_t bytes, struct err *e)
{
	char block[LOG_BLOCK];
	off_t at = 0;

	while (bytes) {
		size_t want = bytes < sizeof(block) ? (size_t)bytes : sizeof(block);
		ssize_t n = RETRY_EINTR(pread(fd, block, want, at));
		if (n < 0)
			return err_sys(e, "the log");
		if (n == 0)
			return 0; /* it was cut */
		const char *end =
			(size_t)n == sizeof(block) ? memrchr(block, '\n', (size_t)n) : NULL;
		size_t some = end ? (size_t)(end - block) + 1 : (size_t)n;
		if (say(block, some, e) < 0)
			return -1;
		at += (off_t)some;
		bytes -= some;
	}
	return 0;
}

static int follow(const struct picked *p, const char *id, int fd, struct err *e)
{
	static const struct timespec tenth = {.tv_nsec = 100000000};
	char path[128];
	char block[LOG_BLOCK];

	(void)snprintf(path, sizeof(path), "results/%s.json", id);
	for (bool ended = false;;) {
		ssize_t n = read(fd, block, sizeof(block));
		if (n > 0 && say(block, (size_t)n, e) < 0)
			return -1;
		if (n > 0)
			continue;
		if (ended)
			return 0;
		ended = faccessat(p->dir, path, F_OK, 0) == 0 || !session_is_kept(p->dir);
		if (!ended)
			(void)nanosleep(&tenth, NULL);
	}
}

static int tell_log(const struct picked *p, const char *text, const struct session_options *o,
		    struct err *e)
{
	char id[UUID_TEXT];
	char path[128];
	bool ended = false;
	struct stat st;

	if (pick_call(p, text, id, &ended, e) < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "root/logs/%s.%s", id, o->err ? "err" : "out");
	AUTO_FD int fd = sys_openat2(p->dir, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC, BENEATH);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(e, ERR_NOT_FOUND, "call %s has no log: nothing was started", id);
	if (o->follow && !ended)
		return follow(p, id, fd, e);
	return pour(fd, (uint64_t)st.st_size, e);
}

int session_logs(const struct session_caller *c, const struct session_options *o, char **operands)
{
	struct picked p;
	struct err e = {0};

	int rc = session_pick(&c->who, operands[0], &p, &e);
	if (rc == 0)
		rc = tell_log(&p, operands[1], o, &e);
	session_let_go(&p);
	return rc < 0 ? cli_fail(&e, 2) : 0;
}

int session_keep_changes(const char *id)
{
	char *argv[] = {(char *)(uintptr_t) "sandglass-main", (char *)(uintptr_t) "export",
			(char *)(uintptr_t) "--at-end", (char *)(uintptr_t)id, NULL};
	pid_t pid = -1;
	int status = 0;

	if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ) != 0 ||
	    RETRY_EINTR(waitpid(pid, &status, 0)) < 0)
		return -1;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cmds.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "stats.h"

#define MAX_PROVE_MS 20000

static int text_read(const char *path, char **ret, struct err *e)
{
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "open %s", path);
	AUTO_FREE char *text = calloc(1, MAX_CMDS_FILE + 1);
	if (!text)
		return err_sys(e, "read %s", path);
	size_t n = 0;
	for (;;) {
		ssize_t got = RETRY_EINTR(read(fd, text + n, MAX_CMDS_FILE + 1 - n));
		if (got < 0)
			return err_sys(e, "read %s", path);
		if (got == 0)
			break;
		n += (size_t)got;
		if (n > MAX_CMDS_FILE)
			return err_set(e, ERR_CONFIG_INVALID, "%s is larger than %d bytes", path,
				       MAX_CMDS_FILE);
	}
	if (memchr(text, 0, n))
		return err_set(e, ERR_CONFIG_INVALID, "%s holds a zero byte", path);
	*ret = TAKE(text);
	return 0;
}

/* Takes one word off *pos, in place: unquoting never makes it longer. */
static int word_next(char **pos, char **ret, struct err *e)
{
	char *in = *pos + strspn(*pos, " \t");
	char *out = in, *word = in;
	char quote = 0;
	if (!*in) {
		*ret = NULL;
		return 0;
	}
	for (; *in && (quote || (*in != ' ' && *in != '\t')); in++) {
		if (quote ? *in == quote : (*in == '\'' || *in == '"'))
			quote = quote ? 0 : *in;
		else if (*in == '\\' && quote != '\'' && in[1])
			*out++ = *++in;
		else
			*out++ = *in;
	}
	if (quote)
		return err_set(e, ERR_CONFIG_INVALID, "a %c is not closed", quote);
	*pos = *in ? in + 1 : in;
	*out = 0;
	*ret = word;
	return 0;
}

static int line_parse(char *line, struct cmd *ret, struct err *e)
{
	char *tab = strchr(line, '\t');
	if (!tab || tab == line)
		return err_set(e, ERR_CONFIG_INVALID, "expected NAME, a tab, and a command");
	*tab = 0;
	*ret = (struct cmd){.name = line};
	char *pos = tab + 1;
	size_t n = 0;
	for (;;) {
		char *word = NULL;
		if (word_next(&pos, &word, e))
			return -1;
		if (!word)
			break;
		if (n == MAX_WORDS)
			return err_set(e, ERR_CONFIG_INVALID, "more than %d words", MAX_WORDS);
		ret->argv[n++] = word;
	}
	if (!n)
		return err_set(e, ERR_CONFIG_INVALID, "%s has no command", ret->name);
	return 0;
}

static int cmds_parse(struct cmds *c, struct err *e)
{
	unsigned number = 0;
	for (char *line = c->text, *next; line; line = next) {
		number++;
		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		if (!*line || *line == '#')
			continue;
		if (c->n == MAX_CMDS)
			return err_set(e, ERR_CONFIG_INVALID, "more than %d commands", MAX_CMDS);
		if (line_parse(line, &c->v[c->n], e))
			return err_wrap(e, "line %u", number);
		if (cmds_find(c, c->v[c->n].name) != c->n)
			return err_set(e, ERR_CONFIG_INVALID, "line %u: a second %s", number,
				       c->v[c->n].name);
		c->n++;
	}
	if (!c->n)
		return err_set(e, ERR_CONFIG_INVALID, "no command");
	return 0;
}

int cmds_read(const char *path, struct cmds *ret, struct err *e)
{
	struct cmds c = {0};
	if (text_read(path, &c.text, e))
		return -1;
	c.v = calloc(MAX_CMDS, sizeof(*c.v));
	if (!c.v) {
		(void)err_sys(e, "read %s", path);
		cmds_release(&c);
		return -1;
	}
	if (cmds_parse(&c, e)) {
		(void)err_wrap(e, "%s", path);
		cmds_release(&c);
		return -1;
	}
	*ret = c;
	return 0;
}

void cmds_release(struct cmds *c)
{
	free(c->v);
	free(c->text);
	*c = (struct cmds){0};
}

size_t cmds_find(const struct cmds *c, const char *name)
{
	size_t i = 0;
	while (i < c->n && strcmp(c->v[i].name, name) != 0)
		i++;
	return i;
}

/* One descriptor for all runs: opening it is not part of what is measured. */
static int null_fd(struct err *e)
{
	static int fd = -1;
	if (fd < 0) {
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (fd < 0)
			return err_sys(e, "open /dev/null");
	}
	return fd;
}

int cmd_start(const struct cmd *c, enum cmd_io io, pid_t *ret, int *ret_out, struct err *e)
{
	int null = null_fd(e);
	if (null < 0)
		return -1;
	int pipe_fds[2] = {-1, -1};
	if (io == CMD_IO_STDOUT && pipe2(pipe_fds, O_CLOEXEC))
		return err_sys(e, "pipe");
	AUTO_FD int out_read = pipe_fds[0];
	AUTO_FD int out_write = pipe_fds[1];
	posix_spawn_file_actions_t fa;
	int rc = posix_spawn_file_actions_init(&fa);
	if (rc == 0) {
		rc = posix_spawn_file_actions_adddup2(&fa, null, 0);
		rc = rc ? rc
			: posix_spawn_file_actions_adddup2(&fa,
							   io == CMD_IO_STDOUT ? out_write : null,
							   1);
		if (io != CMD_IO_STDERR)
			rc = rc ? rc : posix_spawn_file_actions_adddup2(&fa, null, 2);
		rc = rc ? rc : posix_spawnp(ret, c->argv[0], &fa, NULL, c->argv, environ);
		(void)posix_spawn_file_actions_destroy(&fa); /* frees memory, cannot fail */
	}
	if (rc) {
		errno = rc;
		return err_sys(e, "start %s (%s)", c->name, c->argv[0]);
	}
	if (ret_out)
		*ret_out = TAKE_FD(out_read);
	return 0;
}

static uint64_t timeval_us(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000ULL + (uint64_t)t.tv_usec;
}

int cmd_wait(pid_t pid, struct cmd_run *ret, struct err *e)
{
	int ws = 0;
	struct rusage ru;
	if (RETRY_EINTR(wait4(pid, &ws, 0, &ru)) != pid)
		return err_sys(e, "wait");
	*ret = (struct cmd_run){
		.cpu_us = timeval_us(ru.ru_utime) + timeval_us(ru.ru_stime),
		.maxrss_kib = (uint64_t)ru.ru_maxrss,
		.status = WIFEXITED(ws) ? WEXITSTATUS(ws) : 128 + WTERMSIG(ws),
	};
	return 0;
}

int cmd_measure(const struct cmd *c, struct cmd_run *ret, struct err *e)
{
	pid_t pid = 0;
	uint64_t began = now_ns();
	if (cmd_start(c, CMD_IO_NULL, &pid, NULL, e) || cmd_wait(pid, ret, e))
		return -1;
	ret->wall_ns = now_ns() - began;
	return 0;
}

/* A command that hangs must not hang us: ends it after MAX_PROVE_MS. */
static int prove_once(const struct cmd *c, enum cmd_io io, int *ret_status, struct err *e)
{
	struct cmd_run run = {0};
	pid_t pid = 0;
	if (cmd_start(c, io, &pid, NULL, e))
		return -1;
	AUTO_FD int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return err_sys(e, "pidfd_open");
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int ended = RETRY_EINTR(poll(&p, 1, MAX_PROVE_MS));
	if (ended != 1)
		(void)kill(pid, SIGKILL); /* our child, not reaped yet */
	if (cmd_wait(pid, &run, e))
		return -1;
	if (ended != 1)
		return err_set(e, ERR_INTERNAL, "%s did not end within %d s", c->name,
			       MAX_PROVE_MS / 1000);
	*ret_status = run.status;
	return 0;
}

int cmd_prove(const struct cmd *c, struct err *e)
{
	int status = 0;
	if (prove_once(c, CMD_IO_NULL, &status, e))
		return -1;
	if (status == 0)
		return 0;
	if (prove_once(c, CMD_IO_STDERR, &status, e))
		return -1;
	return err_set(e, ERR_INTERNAL, "%s ends with status %d", c->name, status);
}

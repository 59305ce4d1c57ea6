/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values are in buffers that have all their room from the start, and are wiped: none is
 * left in memory that was given back.
 */
#include "run/secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "policy/secret.h"

#define MAX_RAW 12000u /* of a value: in base64 it still fits into a header */
#define MAX_SECRET_WORDS 64
#define FD_SAFE 8

static int unavailable(const struct secret_rule *s, struct err *e, const char *why,
		       const char *what)
{
	(void)err_set(e, ERR_SECRET_UNAVAILABLE, "secret `%s`: %s%s%s", s->name, why,
		      what ? ": " : "", what ? what : "");
	return err_hint(e, "named in %.400s", s->origin);
}

/* What a command or a file has at its end is no part of it. */
static void cut_newline(struct buf *b)
{
	while (b->n && (b->p[b->n - 1] == '\n' || b->p[b->n - 1] == '\r'))
		b->p[--b->n] = '\0';
}

static int from_file(const struct secret_rule *s, const char *path, const struct caller *who,
		     struct buf *ret, struct err *e)
{
	char full[PATH_TEXT];
	struct stat st;

	if (path[0] == '~' && !who->home)
		return unavailable(s, e, "no home is known", NULL);
	if (path[0] == '~') {
		if (path_join(who->home, path + 2, full, sizeof(full), e) < 0)
			return -1;
		path = full;
	}
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0)
		return unavailable(s, e, path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return unavailable(s, e, path, "no regular file");
	if (st.st_mode & S_IWOTH)
		return unavailable(s, e, path, "anybody can write it");
	ssize_t n = read(fd, ret->p, MAX_RAW + 1);
	if (n < 0)
		return unavailable(s, e, path, strerror(errno));
	ret->n = (size_t)n;
	ret->p[ret->n] = '\0';
	return 0;
}

/* Reads until the end, the cap or the deadline. False: it took too long. */
static bool read_all(int fd, struct buf *ret)
{
	uint64_t until = clock_deadline(clock_mono_ms(), SECRET_COMMAND_MS);

	while (ret->n <= MAX_RAW) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		if (poll(&p, 1, clock_poll_timeout(clock_mono_ms(), until)) == 0)
			return false;
		ssize_t n = RETRY_EINTR(read(fd, ret->p + ret->n, MAX_RAW + 1 - ret->n));
		if (n <= 0)
			break;
		ret->n += (size_t)n;
	}
	ret->p[ret->n] = '\0';
	return true;
}

static int spawn_command(char **argv, char **env, int out, pid_t *ret)
{
	posix_spawn_file_actions_t acts;
	posix_spawnattr_t attr;
	sigset_t none;
	sigset_t all;

	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	if (posix_spawn_file_actions_init(&acts) != 0)
		return ENOMEM;
	if (posix_spawnattr_init(&attr) != 0) {
		(void)posix_spawn_file_actions_destroy(&acts);
		return ENOMEM;
	}
	(void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
						      POSIX_SPAWN_SETSIGDEF);
	(void)posix_spawnattr_setsigmask(&attr, &none);
	(void)posix_spawnattr_setsigdefault(&attr, &all);
	int rc = posix_spawn_file_actions_addopen(&acts, 0, "/dev/null", O_RDONLY, 0);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(&acts, out, 1);
	if (rc == 0 && !argv[0])
		rc = ENOENT;
	if (rc == 0)
		rc = posix_spawnp(ret, argv[0], &acts, &attr, argv, env);
	(void)posix_spawnattr_destroy(&attr);
	(void)posix_spawn_file_actions_destroy(&acts);
	return rc;
}

/* Ends within what is left of the time; else it is killed with all of its group. */
static int wait_for(pid_t pid, bool in_time, int *ret_status)
{
	uint64_t until = clock_deadline(clock_mono_ms(), in_time ? 1000 : 0);

	for (;;) {
		pid_t got = RETRY_EINTR(waitpid(pid, ret_status, in_time ? WNOHANG : 0));
		if (got == pid)
			return 0;
		if (got < 0)
			return -1;
		if (clock_mono_ms() >= until)
			break;
		(void)poll(NULL, 0, 10);
	}
	(void)kill(-pid, SIGKILL);
	return (int)RETRY_EINTR(waitpid(pid, ret_status, 0)) == pid ? 0 : -1;
}

static int from_command(const struct secret_rule *s, const char *command, char **env,
			struct buf *ret, struct err *e)
{
	AUTO_FREE char *copy = strdup(command);
	char *argv[MAX_SECRET_WORDS + 1] = {NULL};
	char *save = NULL;
	size_t n = 0;
	int pair[2];
	int status = 0;
	pid_t pid = 0;
	char why[64];

	if (!copy)
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (char *w = strtok_r(copy, " ", &save); w && n < MAX_SECRET_WORDS;
	     w = strtok_r(NULL, " ", &save))
		argv[n++] = w;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	AUTO_FD int in = pair[0];
	AUTO_FD int out = file_fd_above(pair[1], FD_SAFE);
	int rc = spawn_command(argv, env, out, &pid);
	(void)close(TAKE_FD(out));
	if (rc != 0)
		return unavailable(s, e, argv[0], strerror(rc));
	bool in_time = read_all(in, ret);
	if (!in_time)
		(void)kill(-pid, SIGKILL);
	rc = wait_for(pid, in_time, &status);
	if (!in_time)
		return unavailable(s, e, argv[0], "took longer than 10s");
	if (rc == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (rc == 0 && WIFEXITED(status))
		(void)snprintf(why, sizeof(why), "ended with status %d", WEXITSTATUS(status));
	else
		(void)snprintf(why, sizeof(why), "was ended by a signal");
	return unavailable(s, e, argv[0], why);
}

static int fetch(const struct secret_rule *s, const struct caller *who, struct buf *ret,
		 struct err *e)
{
	if (strncmp(s->from, "env:", 4) == 0) {
		const char *value = caller_env(who, s->from + 4);
		if (!value)
			return unavailable(s, e, s->from + 4, "the variable is not set");
		size_t n = strlen(value);
		if (n > MAX_RAW)
			return unavailable(s, e, "longer than a header can be", NULL);
		memcpy(ret->p, value, n + 1);
		ret->n = n;
	} else if (strncmp(s->from, "file:", 5) == 0) {
		if (from_file(s, s->from + 5, who, ret, e) < 0)
			return -1;
	} else if (from_command(s, s->from + strlen("command:"), who->env, ret, e) < 0) {
		return -1;
	}
	cut_newline(ret);
	if (ret->n > MAX_RAW)
		return unavailable(s, e, "longer than a header can be", NULL);
	if (ret->n == 0)
		return unavailable(s, e, "its value is empty", NULL);
	for (size_t i = 0; i < ret->n; i++)
		if ((unsigned char)ret->p[i] < 0x20 || (unsigned char)ret->p[i] > 0x7e)
			return unavailable(s, e, "its value is not one line of ASCII", NULL);
	return 0;
}

static void wipe(struct buf *b)
{
	if (b->p)
		explicit_bzero(b->p, b->cap);
	buf_release(b);
}

static int add_hosts(struct egress_secrets *s, const struct secret_rule *rule, struct err *e)
{
	char text[MAX_EGRESS_HOST_TEXT + 1];

	for (const char *p = rule->hosts; *p;) {
		size_t n = strcspn(p, " ");
		(void)snprintf(text, sizeof(text), "%.*s", (int)n, p);
		if (egress_secrets_host(s, text, e) < 0)
			return -1;
		p += n + (p[n] == ' ');
	}
	return 0;
}

static int add_one(struct secret_values *v, const struct secret_rule *s, const char *session,
		   const struct buf *value, struct err *e)
{
	char field[MAX_SECRET_FIELD + 1];
	char placeholder[SECRET_PLACEHOLDER_TEXT];
	struct buf rendered = BUF_INIT(MAX_SECRET_VALUE);
	size_t n = 0;

	const char *name = secret_field(s, &n);
	(void)snprintf(field, sizeof(field), "%.*s", (int)n, name);
	secret_placeholder(session, s->name, placeholder);
	int rc = secret_render(s, value->p, value->n, &rendered, e);
	if (rc == 0)
		rc = egress_secrets_add(&v->rendered, s->name, placeholder, field,
					buf_cstr(&rendered), s->plain, e);
	wipe(&rendered);
	if (rc == 0)
		rc = egress_secrets_raw(&v->rendered, value->p, e);
	if (rc < 0 || add_hosts(&v->rendered, s, e) < 0)
		return -1;
	v->name[v->n] = strdup(s->name);
	v->raw[v->n] = strdup(value->p);
	v->n++;
	return v->name[v->n - 1] && v->raw[v->n - 1] ? 0
						     : err_set(e, ERR_INTERNAL, "out of memory");
}

/* A core file of ours would lie in the project, with all values in it. */
static void forget_core(void)
{
	struct rlimit none;

	if (getrlimit(RLIMIT_CORE, &none) == 0) {
		none.rlim_cur = 0;
		(void)setrlimit(RLIMIT_CORE, &none);
	}
}

int secrets_fetch(const struct request *req, const struct caller *who, const char *session,
		  struct secret_values *ret, struct err *e)
{
	const struct secret_rule *chosen[MAX_EGRESS_SECRETS];
	size_t n = 0;
	int rc = secrets_chosen(req, chosen, &n, e);

	if (n)
		forget_core();
	for (size_t i = 0; i < n && rc == 0; i++) {
		struct buf value = BUF_INIT(2 * MAX_RAW);
		rc = buf_reserve(&value, MAX_RAW + 1) < 0
			     ? err_set(e, ERR_INTERNAL, "out of memory")
			     : fetch(chosen[i], who, &value, e);
		if (rc == 0)
			rc = add_one(ret, chosen[i], session, &value, e);
		wipe(&value);
	}
	if (rc < 0)
		secrets_release(ret);
	return rc;
}

void secrets_release(struct secret_values *v)
{
	egress_secrets_release(&v->rendered);
	for (size_t i = 0; i < v->n; i++) {
		if (v->raw[i])
			explicit_bzero(v->raw[i], strlen(v->raw[i]));
		free(v->raw[i]);
		free(v->name[i]);
	}
	v->n = 0;
}

int secrets_file(const struct egress_secrets *s, struct err *e)
{
	struct buf bytes = BUF_INIT(MAX_SECRETS_BYTES);
	size_t at = 0;

	AUTO_FD int fd =
		file_fd_above(memfd_create("secrets", MFD_CLOEXEC | MFD_ALLOW_SEALING), FD_SAFE);
	if (fd < 0)
		return err_sys(e, "memfd_create");
	int rc = buf_reserve(&bytes, MAX_SECRETS_BYTES);
	if (rc == 0)
		rc = egress_secrets_encode(s, &bytes, e);
	while (rc == 0 && at < bytes.n) {
		ssize_t n = write(fd, bytes.p + at, bytes.n - at);
		if (n < 0)
			rc = err_sys(e, "write the secrets");
		else
			at += (size_t)n;
	}
	wipe(&bytes);
	if (rc < 0)
		return -1;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0 ||
	    lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(e, "seal the secrets");
	return TAKE_FD(fd);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A compiled policy is used only if what it was made from is, to the last stat,
 * what is there now. Neither the cache nor sandglass-main is believed: both go
 * through the decoder, and a cache that is not plainly ours is not read at all.
 */
#include "run/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "policy/apply.h"
#include "policy/inputs.h"
#include "run/beside.h"
#include "store/cache.h"

#define TRIES 3 /* a file that changes between check and use is read again so often */
#define MAX_ARGS (24 + 2 * STRLIST_MAX)

struct load {
	struct policy_where where;
	struct policy_inputs inputs;
	const struct request *req;
	const struct source *src;
	char program[PATH_TEXT];
	int cache_dir;  /* -1: none that is ours alone */
	char cache[48]; /* the name in it */
	struct buf key;
};

/* One file for each source and choice of options, so that edits replace what is old. */
static int name_cache(struct load *l, struct err *e)
{
	AUTO_BUF name = BUF_INIT(MAX_COMPILED_KEY);
	unsigned char digest[SHA256_BYTES];
	char hex[33];

	(void)buf_str(&name, l->src->given ? l->src->path : "");
	for (size_t i = 0; i < POLICY_INPUTS; i++) {
		(void)buf_char(&name, '\0');
		(void)buf_str(&name, l->inputs.in[i].path);
	}
	for (size_t i = 0; i < l->req->profile.n; i++) {
		(void)buf_char(&name, '\0');
		(void)buf_str(&name, l->req->profile.v[i]);
	}
	if (buf_check(&name, "the names of policies", ERR_CONFIG_INVALID, e) < 0)
		return -1;
	sha256(name.p, name.n, digest);
	for (size_t i = 0; i < 16; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	(void)snprintf(l->cache, sizeof(l->cache), "policy-%s", hex);
	return 0;
}

static bool read_all(int fd, struct buf *out)
{
	char chunk[16384];

	for (;;) {
		ssize_t n = RETRY_EINTR(read(fd, chunk, sizeof(chunk)));
		if (n < 0 || (n > 0 && buf_add(out, chunk, (size_t)n) < 0))
			return false;
		if (n == 0)
			return true;
	}
}

/* What was compiled from exactly these inputs. */
static bool fits(const struct load *l, const struct compiled *c)
{
	return c->key_bytes == l->key.n && memcmp(c->key, l->key.p, l->key.n) == 0;
}

static bool from_cache(const struct load *l, struct call_policy *p)
{
	struct err ignored = {0};
	AUTO_FD int fd = -1;

	if (l->cache_dir < 0 || !cache_find(l->cache_dir, l->cache, MAX_COMPILED_BYTES, &fd))
		return false;
	buf_clear(&p->bytes);
	if (!read_all(fd, &p->bytes) ||
	    compiled_decode(p->bytes.p, p->bytes.n, &p->compiled, &ignored) < 0)
		return false;
	if (!p->compiled.failed && fits(l, &p->compiled))
		return true;
	compiled_release(&p->compiled);
	return false;
}

static char *arg(const char *s)
{
	return (char *)(uintptr_t)s;
}

/* The arguments of sandglass-main; all that it needs to know, since its environment is empty. */
static void make_args(const struct load *l, char *argv[MAX_ARGS])
{
	size_t n = 0;

	argv[n++] = arg("sandglass-main");
	argv[n++] = arg("compile");
	argv[n++] = arg("--state");
	argv[n++] = arg(l->where.state);
	argv[n++] = arg("--user");
	argv[n++] = arg(l->where.user);
	if (l->where.home) {
		argv[n++] = arg("--home");
		argv[n++] = arg(l->where.home);
	}
	if (l->src->given) {
		argv[n++] = arg("--source");
		argv[n++] = arg(l->src->path);
	}
	if (l->inputs.in[INPUT_FILE].path[0]) {
		argv[n++] = arg("--policy");
		argv[n++] = arg(l->inputs.in[INPUT_FILE].path);
	}
	for (size_t i = 0; i < l->req->profile.n; i++) {
		argv[n++] = arg("--profile");
		argv[n++] = arg(l->req->profile.v[i]);
	}
	argv[n] = NULL;
}

static int start_main(const struct load *l, pid_t *ret_pid, int *ret_fd, struct err *e)
{
	char *argv[MAX_ARGS];
	char *envp[] = {NULL};
	posix_spawn_file_actions_t acts;
	int ends[2];

	make_args(l, argv);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	int rc = posix_spawn_file_actions_init(&acts);
	if (rc == 0) {
		rc = posix_spawn_file_actions_adddup2(&acts, ends[1], 1);
		if (rc == 0)
			rc = posix_spawn_file_actions_addopen(&acts, 0, "/dev/null", O_RDONLY, 0);
		if (rc == 0)
			rc = posix_spawn(ret_pid, l->program, &acts, NULL, argv, envp);
		(void)posix_spawn_file_actions_destroy(&acts);
	}
	(void)close(ends[1]);
	if (rc != 0) {
		(void)close(ends[0]);
		errno = rc;
		return err_sys(e, "start sandglass-main");
	}
	*ret_fd = ends[0];
	return 0;
}

static int from_main(struct load *l, struct call_policy *p, struct err *e)
{
	pid_t pid = -1;
	int status = 0;
	AUTO_FD int fd = -1;

	if (start_main(l, &pid, &fd, e) < 0)
		return -1;
	buf_clear(&p->bytes);
	bool good = read_all(fd, &p->bytes);
	(void)RETRY_EINTR(waitpid(pid, &status, 0));
	if (good && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return compiled_decode(p->bytes.p, p->bytes.n, &p->compiled, e);
	if (WIFEXITED(status) && WEXITSTATUS(status) == BESIDE_NO_LIBRARY)
		return beside_no_library("sandglass-main", e);
	(void)err_set(e, ERR_INTERNAL, "sandglass-main could not compile the policy (%s %d)",
		      WIFSIGNALED(status) ? "signal" : "status",
		      WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return err_hint(e, "`sandglass policy check` tries the same; nothing runs without it");
}

static int look(struct load *l, struct err *e)
{
	if (policy_inputs_find(&l->where, l->src, l->req->policy, &l->req->profile, &l->inputs, e) <
	    0)
		return -1;
	if (!policy_inputs_any(&l->inputs))
		return 0;
	if (!l->program[0] && beside_find("sandglass-main", l->program, e) < 0)
		return -1;
	policy_inputs_more(&l->inputs, l->program);
	buf_clear(&l->key);
	return policy_inputs_key(&l->inputs, &l->key, e) < 0 ? -1 : 1;
}

/* Until what was compiled is what is there. */
static int compile(struct load *l, struct call_policy *p, struct err *e)
{
	for (int i = 0; i < TRIES; i++) {
		if (from_main(l, p, e) < 0)
			return -1;
		if (fits(l, &p->compiled)) {
			if (!p->compiled.failed && l->cache_dir >= 0 &&
			    policy_inputs_settled(&l->inputs, clock_wall_ms()))
				cache_put(l->cache_dir, l->cache, p->bytes.p, p->bytes.n);
			return 0;
		}
		compiled_release(&p->compiled);
		int some = look(l, e);
		if (some <= 0)
			return some;
	}
	(void)err_set(e, ERR_CONFLICT, "policy files change while they are read");
	return err_hint(e, "try again when nothing writes them any more");
}

int policy_load(struct call_policy *p, struct request *req, const struct caller *who,
		const struct source *src, struct err *e)
{
	struct load l;

	l.req = req;
	l.src = src;
	l.program[0] = '\0';
	l.cache_dir = -1;
	l.key = BUF_INIT(MAX_COMPILED_KEY);
	p->there = false;
	p->fresh = p->read = false;
	p->bytes = BUF_INIT(MAX_COMPILED_BYTES);
	policy_where(who, &l.where);
	int some = look(&l, e);
	if (some > 0 && name_cache(&l, e) < 0)
		some = -1;
	if (some > 0) {
		l.cache_dir = cache_open(who);
		p->fresh = !from_cache(&l, p);
		if (p->fresh && compile(&l, p, e) < 0)
			some = -1;
	}
	buf_release(&l.key);
	if (l.cache_dir >= 0)
		(void)close(l.cache_dir);
	p->there = some > 0;
	if (p->there && p->compiled.failed) {
		*e = p->compiled.error;
		some = -1;
	}
	p->read = some >= 0;
	policy_apply(req, some > 0 ? &p->compiled : NULL);
	return some < 0 ? -1 : 0;
}

int policy_load_snapshot(struct call_policy *p, struct request *req, int dir, struct err *e)
{
	struct stat st;

	p->there = false;
	p->bytes = BUF_INIT(MAX_COMPILED_BYTES);
	AUTO_FD int fd = openat(dir, "policy", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		policy_apply(req, NULL);
		return 0;
	}
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !read_all(fd, &p->bytes))
		return err_set(e, ERR_INTERNAL, "the session's policy cannot be read");
	if (compiled_decode(p->bytes.p, p->bytes.n, &p->compiled, e) < 0)
		return -1;
	p->there = true;
	policy_apply(req, &p->compiled);
	return 0;
}

void policy_release(struct call_policy *p)
{
	if (p->there)
		compiled_release(&p->compiled);
	buf_release(&p->bytes);
	p->there = false;
}

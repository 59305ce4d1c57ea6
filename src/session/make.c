/* SPDX-License-Identifier: Apache-2.0 */
#include "session/make.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/sha256.h"
#include "policy/environment.h"
#include "policy/gitid.h"
#include "policy/network.h"
#include "run/policy.h"
#include "run/secretkeep.h"
#include "run/session.h"
#include "run/uidlock.h"
#include "session/keeper.h"
#include "session/repo.h"
#include "session/state.h"
#include "store/remove.h"

/* All that is decided before anything is made. */
struct making {
	struct request *req, options; /* options: as they were given, for the record */
	const struct caller *who;
	struct source src;
	struct call_policy policy;
	struct refused refused;
	struct keeper_fds held;
};

/* What each call would refuse is refused before there is a session. */
static int check_words(struct request *req, struct err *e)
{
	for (size_t i = 0; i < req->env.n; i++)
		if (environment_check_name(req->env.v[i], strcspn(req->env.v[i], "="), e) < 0)
			return err_wrap(e, "--env");
	return network_of(req, &req->egress, e);
}

static int check(struct making *m, struct err *e)
{
	static struct view view; /* 1 MiB of lists */

	if (source_locate(m->req, m->who, &m->src, e) < 0 ||
	    policy_load(&m->policy, m->req, m->who, &m->src, e) < 0 || check_words(m->req, e) < 0 ||
	    (m->who->root && uidlock_check(e) < 0) || refused_init(m->who, &m->refused, e) < 0 ||
	    source_check(&m->src, &m->refused, e) < 0)
		return -1;
	int rc = view_grants(&view, m->req, m->who, &m->refused, &m->src, e);
	view_release(&view);
	if (rc < 0)
		return -1;
	if (m->src.given && access(m->src.path, R_OK | X_OK) < 0)
		return err_set(e, ERR_POLICY_DENIED, "source %s: %s", m->src.path, strerror(errno));
	return 0;
}

static int decide_lease(const struct request *req, struct session_record *rec, struct err *e)
{
	rec->ttl_ms = req->ttl_ms == LIMIT_UNSET ? SESSION_TTL_MS : req->ttl_ms;
	rec->max_ms = SESSION_MAX_MS;
	if (rec->ttl_ms <= rec->max_ms)
		return 0;
	(void)err_set(e, ERR_CONFIG_INVALID, "--ttl: a lease is at most 24h");
	return err_hint(e, "sandglass session renew, within those");
}

static int decide_options(struct making *m, struct session_record *rec, struct err *e)
{
	AUTO_BUF out = BUF_INIT(MAX_SESSION_RECORD / 2);
	size_t n = 0;

	if (options_put(&m->options, m->who, &out, e) < 0)
		return -1;
	size_t bytes = out.n;
	rec->bytes = out.n ? buf_take(&out) : NULL;
	for (size_t i = 0; i < bytes; i += strlen(rec->bytes + i) + 1)
		n++;
	rec->options = calloc(n + 1, sizeof(*rec->options));
	if (!rec->options || (bytes && !rec->bytes))
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (size_t i = 0; i < bytes; i += strlen(rec->bytes + i) + 1)
		rec->options[rec->option_count++] = rec->bytes + i;
	return 0;
}

static int decide_ids(struct making *m, struct session_record *rec, struct err *e)
{
	rec->root = m->who->root;
	rec->caller_uid = m->who->uid;
	rec->uid = m->who->uid;
	rec->gid = m->who->gid;
	if (!rec->root)
		return rec->uid
			       ? 0
			       : err_set(e, ERR_UNSUPPORTED,
					 "a session in a user namespace whose caller is root there");
	m->held.uid = uidlock_take(&rec->uid, e);
	rec->gid = rec->uid;
	return m->held.uid < 0 ? -1 : 0;
}

static int decide(struct making *m, struct session_record *rec, struct err *e)
{
	const struct request *req = m->req;
	unsigned char digest[SHA256_BYTES];

	if (check(m, e) < 0 || decide_lease(req, rec, e) < 0 || decide_ids(m, rec, e) < 0 ||
	    decide_options(m, rec, e) < 0)
		return -1;
	rec->created_ns = clock_wall_ms() * 1000000;
	rec->disk_bytes = req->disk_bytes == LIMIT_UNSET ? SESSION_DISK_BYTES : req->disk_bytes;
	rec->inodes = req->inodes == LIMIT_UNSET ? SESSION_INODES : req->inodes;
	rec->writes = req->writes == WRITES_DIRECT ? SESSION_DIRECT
		      : req->copy                  ? SESSION_COPY
						   : SESSION_OVERLAY;
	if (m->policy.there) {
		sha256(m->policy.bytes.p, m->policy.bytes.n, digest);
		for (size_t i = 0; i < SHA256_BYTES; i++)
			(void)snprintf(rec->policy_sha256 + 2 * i, 3, "%02x", digest[i]);
	}
	if (!m->src.given)
		return 0;
	memcpy(rec->source, m->src.path, sizeof(rec->source));
	rec->dev = m->src.st.st_dev;
	rec->ino = m->src.st.st_ino;
	rec->owner_uid = m->src.st.st_uid;
	rec->owner_gid = m->src.st.st_gid;
	repo_look(rec);
	return 0;
}

static int check_name(const char *name, struct err *e)
{
	size_t n = strlen(name);

	for (const char *p = name; *p; p++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-",
			    *p))
			n = 0;
	if (n && n <= SESSION_NAME_MAX && name[0] != '-' && name[0] != '.')
		return 0;
	return err_set(e, ERR_CONFIG_INVALID,
		       "--name: at most %d letters, digits, `.`, `_` and `-`, not first",
		       SESSION_NAME_MAX);
}

/* An id that nobody had before. SESSION_ID of the environment counts if it is one. */
static int take_id(struct making *m, struct session_record *rec, struct err *e)
{
	const char *wanted = m->req->id ? m->req->id : caller_env(m->who, "SESSION_ID");
	struct state_session as = {.caller_uid = rec->caller_uid, .created_ns = rec->created_ns};
	struct state *state = NULL;

	if (m->req->name && check_name(m->req->name, e) < 0)
		return -1;
	if (!m->req->id && wanted && !uuid_valid(wanted))
		wanted = NULL;
	if (m->req->name)
		(void)snprintf(rec->name, sizeof(rec->name), "%s", m->req->name);
	memcpy(as.name, rec->name, sizeof(as.name));
	memcpy(as.source, rec->source, sizeof(as.source));
	as.lease_end_ns = rec->created_ns + (int64_t)rec->ttl_ms * 1000000;
	if (state_open(m->who, &state, e) < 0)
		return -1;
	int rc = state_new_id(state, wanted, &as, rec->id, e);
	state_close(state);
	return rc;
}

static int put_file(int dir, const char *name, const void *p, size_t n, struct err *e)
{
	AUTO_FD int fd =
		openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, p, n) != (ssize_t)n)
		return err_sys(e, "write %s of the session", name);
	return 0;
}

static int put_files(struct making *m, const struct session_record *rec, int dir, struct err *e)
{
	static struct view view;
	AUTO_BUF list = BUF_INIT(8u << 20);
	struct guard *g = NULL;

	view.rules = true;
	int rc = gitid_add(&view, m->who, &m->src, e);
	if (rc == 0 && view.home_config)
		rc = put_file(dir, "gitconfig", view.home_config, strlen(view.home_config), e);
	view_release(&view);
	if (rc == 0 && m->policy.there)
		rc = put_file(dir, "policy", m->policy.bytes.p, m->policy.bytes.n, e);
	if (rc == 0 && rec->writes == SESSION_COPY)
		rc = session_masks(m->req, m->who, &m->src, rec->id, &list, &g, e);
	guard_free(g);
	(void)unlinkat(dir, SESSION_MASKED, 0);
	return rc == 0 && list.n ? put_file(dir, SESSION_MASKED, list.p, list.n, e) : rc;
}

static int make_dir(struct making *m, const char *id, int *ret, struct err *e)
{
	char home[PATH_TEXT];
	char path[PATH_TEXT + UUID_TEXT];

	if (session_home(m->who, home, e) < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "%s/%s", home, id);
	if (mkdir(path, 0700) < 0)
		return err_sys(e, "make %s", path);
	if (session_open(m->who, id, ret, e) < 0)
		return -1;
	return keeper_lock(*ret, &m->held.lock, e);
}

/*
 * The id, the directory and the lock in it, under the lock over all of them: what has an id
 * and neither held lock nor record is left from a killed process, and swept.
 */
static int claim(struct making *m, struct made *ret, bool *taken, struct err *e)
{
	AUTO_FD int all = -1;

	if (keeper_lock_all(m->who, &all, e) < 0 || take_id(m, &ret->rec, e) < 0)
		return -1;
	*taken = true;
	return make_dir(m, ret->rec.id, &ret->dir, e);
}

/* Where the file systems do not allow an overlay, a copy is as good, and slower. */
static int start(struct making *m, struct made *made, struct err *e)
{
	struct session_record *rec = &made->rec;

	/* What somebody changes from here on may not be what the session has seen. */
	rec->base_ns = keeper_now_ns();
	if (keeper_make_places(made->dir, rec, e) < 0)
		return -1;
	if (keeper_start(m->who, made->dir, rec, &m->held, true, e) == 0)
		return 0;
	if (rec->writes != SESSION_OVERLAY || !rec->source[0] || e->code != ERR_INTERNAL)
		return -1;
	made->fell_back = true;
	memcpy(made->why, e->msg, sizeof(made->why));
	rec->writes = SESSION_COPY;
	if (put_file(made->dir, WHY_COPY, made->why, strlen(made->why), e) < 0 ||
	    put_files(m, rec, made->dir, e) < 0 || keeper_make_places(made->dir, rec, e) < 0)
		return -1;
	return keeper_start(m->who, made->dir, rec, &m->held, true, e);
}

/* Fetched here and now; what they become later is not this session's. */
static int take_secrets(struct making *m, const char *id, struct err *e)
{
	struct secret_files files;

	if (secrets_fetch_files(m->req, m->who, id, &files, e) < 0)
		return -1;
	m->held.secrets = files.rendered;
	m->held.values = files.values;
	return 0;
}

int session_make(struct request *req, const struct caller *who, struct made *ret, struct err *e)
{
	struct making m = {.req = req, .options = *req, .who = who, .held = {-1, -1, -1, -1}};

	*ret = (struct made){.dir = -1};
	int rc = decide(&m, &ret->rec, e);
	bool made = false;
	if (rc == 0 && claim(&m, ret, &made, e) < 0) {
		bool full = !made && (e->code == ERR_CONFLICT || e->code == ERR_BUSY);
		if (full)
			keeper_reconcile(who); /* a name or a place that a killed one has left */
		rc = full ? claim(&m, ret, &made, e) : -1;
	}
	if (rc == 0)
		rc = put_files(&m, &ret->rec, ret->dir, e);
	if (rc == 0)
		rc = take_secrets(&m, ret->rec.id, e);
	if (rc == 0)
		rc = start(&m, ret, e);
	if (rc < 0 && made && ret->dir >= 0)
		keeper_remove(who, ret->dir, &ret->rec);
	const int held[] = {m.held.uid, m.held.lock, m.held.secrets, m.held.values};
	for (size_t i = 0; i < ARRAY_LEN(held); i++)
		base_close_fd(&held[i]);
	egress_set_release(&req->egress);
	policy_release(&m.policy);
	if (rc < 0)
		made_release(ret);
	return rc;
}

void made_release(struct made *m)
{
	session_record_release(&m->rec);
	if (m->dir >= 0)
		(void)close(m->dir);
	m->dir = -1;
}

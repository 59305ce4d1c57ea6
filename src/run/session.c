/* SPDX-License-Identifier: Apache-2.0 */
#include "run/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "base/base.h"
#include "base/clock.h"
#include "run/beside.h"
#include "store/sessionnet.h"

#define MAX_MASKS_BYTES (8u << 20)
#define FLUSH_MS 500u     /* for the last words of a proxy */
#define STEPS_AT_ONCE 256 /* of what the keeper has said; then others have their turn */

int session_masks(const struct request *req, const struct caller *who, const struct source *src,
		  const char *id, struct buf *out, struct guard **ret_guard, struct err *e)
{
	static struct view scratch; /* 1 MiB of lists */
	struct gitlink none = {.found = false};
	struct request quiet = *req;
	struct guard_order o = {.req = &quiet,
				.who = who,
				.src = src,
				.link = &none,
				.view = &scratch,
				.session = id};

	/* Only looked through: nothing is pinned, nothing is watched. */
	quiet.mode = MODE_READ_ONLY;
	*ret_guard = NULL;
	if (!src->given)
		return 0;
	if (view_bind(&scratch, src->path, NULL, MOUNT_DIRECTORY, NULL, e) < 0 ||
	    guard_begin(&o, ret_guard, e) < 0)
		return -1;
	for (size_t i = 0; i < scratch.n; i++) {
		const struct plan_mount *m = &scratch.mounts[i];
		if (m->kind != MOUNT_MASK || !path_is_below(src->path, m->dst) ||
		    strcmp(src->path, m->dst) == 0)
			continue;
		(void)buf_char(out, m->flags & MOUNT_EMPTY ? 'e' : 'h');
		(void)buf_add(out, m->dst + strlen(src->path) + 1,
			      strlen(m->dst + strlen(src->path) + 1) + 1);
	}
	view_release(&scratch);
	return buf_check(out, "the list of masks", ERR_CONFIG_INVALID, e);
}

void session_masked_json(int dir, struct json *o)
{
	AUTO_BUF list = BUF_INIT(MAX_MASKS_BYTES);
	char block[4096];

	AUTO_FD int fd = openat(dir, SESSION_MASKED, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	for (ssize_t n = fd < 0 ? 0 : read(fd, block, sizeof(block)); n > 0;
	     n = read(fd, block, sizeof(block)))
		(void)buf_add(&list, block, (size_t)n);
	(void)buf_cstr(&list); /* its end is one of a string, whatever the file is */
	json_arr_begin(o);
	for (size_t at = 0; !list.failed && at < list.n; at += strlen(list.p + at) + 1) {
		json_obj_begin(o);
		json_key(o, "path");
		json_text(o, list.p + at + 1, strlen(list.p + at + 1));
		json_kv_str(o, "as", list.p[at] == 'e' ? "empty" : "unreadable");
		json_obj_end(o);
	}
	json_arr_end(o);
}

/* One whose keeper was killed: as it stands, with a new one. */
static int start_keeper(const char *id, char **env, struct err *e)
{
	char program[PATH_TEXT];
	char *argv[] = {(char *)(uintptr_t) "sandglass-main", (char *)(uintptr_t) "session",
			(char *)(uintptr_t) "keep", (char *)(uintptr_t)id, NULL};
	pid_t pid = -1;
	int status = 0;

	if (beside_find("sandglass-main", program, e) < 0)
		return -1;
	int rc = posix_spawn(&pid, program, NULL, NULL, argv, env);
	errno = rc;
	if (rc)
		return err_sys(e, "start sandglass-main");
	(void)RETRY_EINTR(waitpid(pid, &status, 0));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	(void)err_set(e, ERR_LEASE_EXPIRED, "nobody keeps session %s any more", id);
	return err_hint(e, "its changes are still there: sandglass diff %.8s, apply, discard", id);
}

int job_session_find(struct job_session *s, const struct caller *who, const char *text,
		     struct err *e)
{
	char id[UUID_TEXT];
	char home[PATH_TEXT];

	*s = (struct job_session){.dir = -1, .ctl = -1, .tree = -1, .ns = {-1, -1, -1}};
	struct request any = request_of_nothing();
	struct source here = {.given = false};
	struct err ignored = {0};

	if (strcmp(text, "@last") == 0)
		(void)!source_locate(&any, who, &here, &ignored);
	if (session_find(who, text, here.given ? here.path : NULL, id, e) < 0 ||
	    session_home(who, home, e) < 0 || session_open(who, id, &s->dir, e) < 0 ||
	    session_read(s->dir, &s->rec, e) < 0)
		return -1;
	if ((size_t)snprintf(s->root, sizeof(s->root), "%s/%s/root", home, id) >= sizeof(s->root))
		return err_set(e, ERR_CONFIG_INVALID, "the path of session %s is too long", id);
	if (keep_connect(s->dir, &s->ctl, e) == 0)
		return 0;
	if (e->code != ERR_NOT_FOUND || start_keeper(id, who->env, e) < 0)
		return -1;
	return keep_connect(s->dir, &s->ctl, e);
}

int session_rules_add(int dir, struct egress_set *s, size_t own, struct err *e)
{
	AUTO_EGRESS_SET net = {0};

	egress_set_cut(s, own);
	if (session_net_read(dir, &net, e) < 0)
		return -1;
	if (egress_set_join(s, &net, e) == 0)
		return 0;
	egress_set_cut(s, own);
	return -1;
}

/* The session's own rules, for a keeper that does not know them yet. */
static int own_rules_file(const struct job_session *s, struct err *e)
{
	AUTO_EGRESS_SET own = {0};

	if (egress_set_copy(s->rules, &own, e) < 0)
		return -1;
	egress_set_cut(&own, s->own_rules);
	return egress_file(&own, e);
}

static int send_list(struct job *j, const struct buf *list, struct keep_answer *a, int *fds,
		     struct err *e)
{
	struct job_session *s = j->in;
	struct keep_request q = {.kind = KEEP_BEGIN, .flags = s->detached ? KEEP_DETACHED : 0u};

	AUTO_FD int fd = memfd_create("masks", MFD_CLOEXEC);
	if (fd < 0 || (list->n && write(fd, list->p, list->n) != (ssize_t)list->n))
		return err_sys(e, "the list of masks");
	memcpy(q.call, j->call, UUID_TEXT);
	j->egress = (struct egress){.set = s->rules, .ctl = -1, .ready_ms = LIMIT_NONE};
	s->later = &j->egress;
	if (!egress_set_opens(s->rules))
		return keep_ask(s->ctl, &q, fd, a, fds, e);
	AUTO_FD int rules = own_rules_file(s, e);
	if (rules < 0)
		return -1;
	const int both[] = {fd, rules};
	s->egress = &j->egress;
	return keep_ask_with(s->ctl, &q, both, ARRAY_LEN(both), a, fds, e);
}

/* The certificate of the session's proxy, as it is now. */
static int take_authority(struct job *j, int fd, struct err *e)
{
	char pem[MAX_EGRESS_CA_BYTES];

	ssize_t n = pread(fd, pem, sizeof(pem) - 1, 0);
	if (n <= 0)
		return err_set(e, ERR_INTERNAL, "the session's keeper gave no certificate");
	pem[n] = '\0';
	j->egress.authority = strdup(pem);
	return j->egress.authority ? 0 : err_set(e, ERR_INTERNAL, "out of memory");
}

int job_session_enter(struct job *j, struct err *e)
{
	AUTO_BUF list = BUF_INIT(MAX_MASKS_BYTES);
	struct job_session *s = j->in;
	struct keep_answer a;
	int fds[KEEP_FDS];
	size_t n = 2;

	if (job_session_is_held(j) &&
	    session_masks(j->req, &j->who, &j->src, j->session, &list, &s->masks, e) < 0)
		return -1;
	if (send_list(j, &list, &a, fds, e) < 0)
		return -1;
	s->no_redirect = a.flags & KEEP_NO_REDIRECT;
	s->ns.pid = fds[0];
	s->ns.net = fds[1];
	if (a.flags & KEEP_HAS_USER)
		s->ns.user = fds[n++];
	if (a.flags & KEEP_HAS_TREE)
		s->tree = fds[n++];
	AUTO_FD int authority = a.flags & KEEP_HAS_AUTHORITY ? fds[n++] : -1;
	if (authority >= 0 && take_authority(j, authority, e) < 0)
		return -1;
	if (job_session_is_held(j) && s->tree < 0)
		return err_set(e, ERR_INTERNAL, "the session's keeper gave no tree");
	if (a.cgroup[0]) {
		(void)snprintf(s->cgroup_dir, sizeof(s->cgroup_dir), "%s/call-%s", a.cgroup,
			       j->call);
		s->cgroup =
			(struct plan_cgroup){.role = cgroups_are_v2() ? CGROUP_V2 : CGROUP_FREEZER,
					     .dir = s->cgroup_dir};
	}
	return 0;
}

static int open_beneath(int dir, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					  RESOLVE_NO_MAGICLINKS};

	return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

/* `path` below root/tmp, with all on the way to it. */
static void make_target(const struct job_session *s, const char *path, bool is_dir)
{
	char part[PATH_TEXT];
	int dir = open_beneath(s->dir, "root/tmp");

	for (const char *at = path; dir >= 0 && *at;) {
		size_t n = strcspn(at, "/");
		bool last = !at[n];
		memcpy(part, at, n);
		part[n] = '\0';
		int rc = last && !is_dir ? mknodat(dir, part, S_IFREG | 0644, 0)
					 : mkdirat(dir, part, 0755);
		if (rc == 0 && s->rec.root)
			(void)!fchownat(dir, part, s->rec.uid, s->rec.gid, AT_SYMLINK_NOFOLLOW);
		int next = last ? -1 : open_beneath(dir, part);
		(void)close(dir);
		dir = next;
		at += n + !last;
	}
	if (dir >= 0)
		(void)close(dir);
}

void job_session_make_targets(struct job *j)
{
	for (size_t i = 0; i < j->view.n; i++) {
		const struct plan_mount *m = &j->view.mounts[i];
		const char *below = strncmp(m->dst, "/tmp/", 5) == 0       ? m->dst + 5
				    : strncmp(m->dst, "/var/tmp/", 9) == 0 ? m->dst + 9
									   : NULL;
		if (below && m->kind == MOUNT_BIND)
			make_target(j->in, below, m->flags & MOUNT_DIRECTORY);
	}
}

void job_session_started(struct job *j, pid_t init)
{
	struct keep_request q = {.kind = KEEP_INIT};
	struct err ignored = {0};

	AUTO_FD int fd = (int)syscall(434 /* pidfd_open */, init, 0);
	if (fd >= 0)
		(void)!keep_tell(j->in->ctl, &q, fd, &ignored);
}

static void take_event(struct job_session *s, const struct keep_event *v)
{
	struct err ignored = {0}; /* then some rules are called unknown */

	s->egress = s->later;
	if (v->v.generation != s->generation && s->rules)
		(void)!session_rules_add(s->dir, s->rules, s->own_rules, &ignored);
	s->generation = v->v.generation;
	egress_note(s->egress, &v->v);
}

/* What was asked for is answered behind all that was to be said. */
void job_session_flush(struct job_session *s)
{
	struct keep_request q = {.kind = KEEP_EGRESS};
	uint64_t until = clock_deadline(clock_mono_ms(), FLUSH_MS);
	struct err ignored = {0};

	if (!s->egress || s->ctl < 0 || keep_tell(s->ctl, &q, -1, &ignored) < 0)
		return;
	while (s->ctl >= 0 && !s->flushed && clock_mono_ms() < until) {
		struct pollfd fd = {.fd = s->ctl, .events = POLLIN};
		if (poll(&fd, 1, clock_poll_timeout(clock_mono_ms(), until)) > 0)
			(void)job_session_step(s);
	}
}

/* False: the call has to end. *ret_more: there was something, and there may be more. */
static bool step(struct job_session *s, bool *ret_more)
{
	union {
		struct keep_answer a;
		struct keep_event v;
	} got;

	long n = keep_receive(s->ctl, &got, sizeof(got), NULL, 0, MSG_DONTWAIT);
	if (n == sizeof(got.v) && got.v.version == KEEP_VERSION && got.v.kind == KEEP_EGRESS) {
		take_event(s, &got.v);
		return true;
	}
	struct keep_answer a = got.a;
	if (n == sizeof(a) && a.version == KEEP_VERSION && a.kind == KEEP_EGRESS) {
		s->flushed = true;
		return true;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		*ret_more = false;
		return true;
	}
	if (n == sizeof(a) && a.version == KEEP_VERSION && a.kind == KEEP_END &&
	    a.code < ERR_CODES) {
		s->told = (enum err_code)a.code;
		a.message[sizeof(a.message) - 1] = '\0';
		memcpy(s->why, a.message, sizeof(s->why));
		return false;
	}
	if (n == sizeof(a) && a.version == KEEP_VERSION && a.kind == KEEP_WARN) {
		s->near |= a.flags;
		a.message[sizeof(a.message) - 1] = '\0';
		memcpy(s->near_why, a.message, sizeof(s->near_why));
		return true;
	}
	(void)close(s->ctl);
	s->ctl = -1;
	if (s->told == ERR_NONE) {
		s->told = ERR_LEASE_EXPIRED;
		(void)snprintf(s->why, sizeof(s->why), "the session's keeper has ended");
	}
	return false;
}

bool job_session_step(struct job_session *s)
{
	bool more = true;

	for (int i = 0; i < STEPS_AT_ONCE && more && s->ctl >= 0; i++)
		if (!step(s, &more))
			return false;
	return true;
}

const char *job_session_log_name(const struct job *j, size_t which, char ret[CALL_LOG_TEXT])
{
	(void)snprintf(ret, CALL_LOG_TEXT, "logs/%s.%s", j->call, which ? "err" : "out");
	return ret;
}

int job_session_open_logs(struct job *j, struct err *e)
{
	char name[CALL_LOG_TEXT];

	AUTO_FD int root = open_beneath(j->in->dir, "root");
	for (size_t i = 0; i < 2; i++)
		if (call_log_open(&j->log[i], root, job_session_log_name(j, i, name), e) < 0)
			return -1;
	return 0;
}

/* A command that has one place for both outputs says everything on stdout. */
static bool said(const struct job *j, const char *text)
{
	return call_log_says(&j->log[1], text) ||
	       (!j->log[1].tail_n && call_log_says(&j->log[0], text));
}

const char *job_session_hint(const struct job *j)
{
	if (!j->in || j->status == 0 || !job_session_is_held(j))
		return NULL;
	if (j->link.found && said(j, "Read-only file system"))
		return "the git directory of this source lies elsewhere and is read-only in a "
		       "session: make one over the repository's main work tree, or use sandglass run";
	if (j->in->rec.root || j->in->rec.writes != SESSION_OVERLAY)
		return NULL;
	if (said(j, "hardlink different from source"))
		return "a user's overlay gives a linked file of the source another inode: "
		       "git clone --no-hardlinks, or sandglass session new --copy";
	if (said(j, "Invalid cross-device link") || said(j, "EXDEV"))
		return "a user's overlay cannot rename a directory of the source: "
		       "sandglass session new --copy";
	return NULL;
}

void job_session_release(struct job_session *s)
{
	const int fds[] = {s->dir, s->ctl, s->tree, s->ns.user, s->ns.pid, s->ns.net};

	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
	guard_free(s->masks);
	session_record_release(&s->rec);
	*s = (struct job_session){.dir = -1, .ctl = -1, .tree = -1, .ns = {-1, -1, -1}};
}

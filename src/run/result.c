/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result object: CONTRACT §4. Everything foreign goes through json_text(),
 * which escapes what a terminal would obey.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "run/job.h"
#include "run/session.h"

static const char *signal_name(int sig)
{
	static const struct {
		int sig;
		const char *name;
	} names[] = {
		{SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"},
		{SIGILL, "SIGILL"},   {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"},
		{SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},   {SIGKILL, "SIGKILL"},
		{SIGUSR1, "SIGUSR1"}, {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"},
		{SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"},
		{SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"}, {SIGSYS, "SIGSYS"},
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (names[i].sig == sig)
			return names[i].name;
	return "SIGRT";
}

/* What the policy says, without what differs at each run. */
int job_hash_policy(const struct job *j, char ret[JOB_HASH_TEXT], struct err *e)
{
	AUTO_BUF bytes = BUF_INIT(MAX_PLAN_BYTES);
	struct plan p = j->plan;
	unsigned char digest[SHA256_BYTES];
	char *none[] = {(char *)(uintptr_t) "-", NULL};

	p.n.parent_pid = p.n.outer_uid = p.n.outer_gid = 0;
	p.n.rows = p.n.cols = 0;
	p.n.stdin_dev = p.n.stdin_ino = 0;
	p.n.flags &= ~(uint32_t)(PLAN_STDIN_FILE | PLAN_TTY);
	p.n.uid = p.n.gid = 0;
	p.stdin_path = "";
	p.cgroup_count = 0;
	p.argv = none;
	p.argc = 1;
	p.envc = 0;
	/* Files of our own hold ids; paths and rights are what a policy is. */
	size_t n = 0;
	struct plan_mount *mounts = calloc(p.mount_count + 1, sizeof(*mounts));
	if (!mounts)
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (size_t i = 0; i < p.mount_count; i++) {
		/* What is pinned or masked is what happens to be there. */
		if (p.mounts[i].kind == MOUNT_PIN || p.mounts[i].kind == MOUNT_MASK)
			continue;
		/* A name that is another one at each run, with rights that never differ. */
		if (job_is_rung(j) && path_is_below(j->root.path, p.mounts[i].dst))
			continue;
		mounts[n] = p.mounts[i];
		if (mounts[n].kind == MOUNT_FILE)
			mounts[n].src_len = 0;
		n++;
	}
	p.mounts = mounts;
	p.mount_count = n;
	int rc = plan_encode(&p, &bytes, e);
	free(mounts);
	if (rc < 0)
		return -1;
	if (j->guard)
		guard_put_rules(j->guard, &bytes);
	/* Where a rule is from makes no difference to what it allows. */
	for (size_t i = 0; i < j->req->egress.n; i++) {
		const struct egress_entry *r = &j->req->egress.v[i];
		(void)buf_printf(&bytes, "%s %s\n", egress_list_names[r->rule.list], r->text);
	}
	if (buf_check(&bytes, "the policy", ERR_INTERNAL, e) < 0)
		return -1;
	sha256(bytes.p, bytes.n, digest);
	for (size_t i = 0; i < SHA256_BYTES; i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", digest[i]);
	return 0;
}

static void write_exit(const struct job *j, struct json *o)
{
	bool ran = j->out.have_exit && !j->out.have_exec_error && !j->out.have_failure;
	int st = j->out.exit.status;

	json_key(o, "exit");
	json_obj_begin(o);
	json_kv_int(o, "status", j->status);
	if (ran && WIFEXITED(st))
		json_kv_int(o, "code", WEXITSTATUS(st));
	else
		json_kv_null(o, "code");
	if (ran && WIFSIGNALED(st))
		json_kv_str(o, "signal", signal_name(WTERMSIG(st)));
	else
		json_kv_null(o, "signal");
	json_obj_end(o);
}

static void write_error(const struct job *j, struct json *o)
{
	json_key(o, "error");
	if (j->error.code == ERR_NONE) {
		json_nil(o);
		return;
	}
	json_obj_begin(o);
	json_kv_str(o, "code", err_code_name(j->error.code));
	json_kv_str(o, "kind", err_kind_name(err_code_kind(j->error.code)));
	json_key(o, "message");
	json_text(o, j->error.msg, strlen(j->error.msg));
	json_key(o, "hint");
	if (j->error.hint[0])
		json_text(o, j->error.hint, strlen(j->error.hint));
	else
		json_nil(o);
	json_kv_null(o, "retry_after_ms");
	json_kv_null(o, "approval");
	json_obj_end(o);
}

static void write_limits_hit(const struct job *j, struct json *o)
{
	static const struct {
		uint32_t flag;
		const char *name;
	} hits[] = {
		{REPORT_WALL, "wall"}, {REPORT_CPU, "cpu_time"}, {REPORT_MEMORY, "memory"},
		{REPORT_PIDS, "pids"}, {REPORT_DISK, "disk"},    {REPORT_INODES, "inodes"},
	};
	uint32_t flags = j->out.exit.flags | j->out.usage.flags;

	json_key(o, "limits_hit");
	json_arr_begin(o);
	for (size_t i = 0; i < ARRAY_LEN(hits); i++)
		if (flags & hits[i].flag)
			json_str(o, hits[i].name);
	json_arr_end(o);
}

/* Of the session, while the call ran: it has not reached them. */
static void write_limits_near(const struct job *j, struct json *o)
{
	json_key(o, "limits_near");
	json_arr_begin(o);
	if (j->in && (j->in->near & KEEP_NEAR_DISK))
		json_str(o, "disk");
	if (j->in && (j->in->near & KEEP_NEAR_INODES))
		json_str(o, "inodes");
	if (j->in && (j->in->near & KEEP_NEAR_ALL))
		json_str(o, "all_sessions");
	json_arr_end(o);
}

static void write_usage(const struct job *j, struct json *o)
{
	const struct outcome *out = &j->out;
	uint64_t cpu = out->usage.cpu_ms > out->exit.cpu_ms ? out->usage.cpu_ms : out->exit.cpu_ms;
	uint64_t peak = out->usage.peak_memory_bytes ? out->usage.peak_memory_bytes
						     : out->exit.peak_memory_bytes;

	json_key(o, "usage");
	json_obj_begin(o);
	json_kv_uint(o, "wall_ms", out->wall_ms);
	json_kv_uint(o, "cpu_ms", cpu);
	json_kv_uint(o, "peak_memory_bytes", peak);
	json_kv_uint(o, "processes", out->exit.processes);
	json_kv_uint(o, "egress_bytes", j->egress.up + j->egress.down);
	json_kv_uint(o, "disk_bytes", out->exit.disk_bytes);
	json_kv_uint(o, "inodes", out->exit.inodes);
	json_obj_end(o);
}

static void write_not_enforced(const struct job *j, struct json *o)
{
	uint32_t lost = j->out.exit.flags;

	json_key(o, "not_enforced");
	json_arr_begin(o);
	if (j->req->mode == MODE_FULL_ACCESS)
		json_str(o, "boundary");
	for (size_t i = 0; i < LIMITS; i++)
		if (j->limits.value[i] != LIMIT_NONE && j->limits.grade[i] == GRADE_NONE)
			json_str(o, limit_names[i]);
	if (lost & REPORT_NO_LANDLOCK)
		json_str(o, "landlock");
	if (lost & REPORT_NO_SYSCTL)
		json_str(o, "user-counters");
	if ((lost & REPORT_NO_REDIRECT) || (j->in && j->in->no_redirect))
		json_str(o, "network-redirect");
	for (size_t i = 0; job_is_rung(j) && rung_lost(j->out.exit.landlock, i); i++)
		json_str(o, rung_lost(j->out.exit.landlock, i));
	const struct guard *masks = j->in ? j->in->masks : NULL;
	for (size_t i = 0; j->guard && guard_lost(j->guard, i); i++)
		json_str(o, guard_lost(j->guard, i));
	for (size_t i = 0; masks && guard_lost(masks, i); i++)
		json_str(o, guard_lost(masks, i));
	if (j->unrecorded)
		json_str(o, "audit");
	json_arr_end(o);
}

static void write_enforced(const struct job *j, struct json *o)
{
	static const char *const always[] =
		{"user",         "mount",        "pid",    "ipc", "uts", "net", "cgroup-namespace",
		 "capabilities", "no_new_privs", "seccomp"};
	static const char *const rung[] = {"ipc", "net", "capabilities", "no_new_privs", "seccomp"};
	bool bare = j->req->mode == MODE_FULL_ACCESS;
	bool is_rung = job_is_rung(j);
	uint32_t lost = j->out.exit.flags;

	json_key(o, "enforced");
	json_arr_begin(o);
	if (j->out.have_exit && !j->out.have_failure && !bare) {
		for (size_t i = 0; i < (is_rung ? ARRAY_LEN(rung) : ARRAY_LEN(always)); i++)
			json_str(o, is_rung ? rung[i] : always[i]);
		if (!(lost & REPORT_NO_LANDLOCK))
			json_str(o, "landlock");
		if (!is_rung && !(lost & REPORT_NO_SYSCTL))
			json_str(o, "user-counters");
		if (j->plan.cgroup_count)
			json_str(o, "cgroup");
		if (job_has_egress(j) || (j->in && j->in->egress))
			json_str(o, "egress");
	}
	json_arr_end(o);
}

static void write_grades(const struct job *j, struct json *o)
{
	static const char *const names[] = {"not-enforced", "watched", "kernel"};

	json_key(o, "limits");
	json_obj_begin(o);
	for (size_t i = 0; i < LIMITS; i++) {
		if (j->limits.value[i] == LIMIT_NONE)
			continue;
		json_key(o, limit_names[i]);
		json_obj_begin(o);
		json_kv_uint(o, "value", j->limits.value[i]);
		json_kv_str(o, "grade", names[j->limits.grade[i]]);
		json_kv_bool(o, "asked", j->limits.asked[i]);
		json_obj_end(o);
	}
	json_obj_end(o);
}

static void put_text(struct json *o, const char *key, const char *text)
{
	json_key(o, key);
	if (text)
		json_text(o, text, strlen(text));
	else
		json_nil(o);
}

/* Of the proxy: each target and rule once. */
static void write_egress_denials(const struct job *j, struct json *o)
{
	const struct egress_rows *d = &j->egress.denied;

	for (size_t i = 0; i < d->n; i++) {
		const struct egress_said *said = &d->v[i].said;
		json_obj_begin(o);
		json_kv_str(o, "op", egress_op_name(d->v[i].op));
		put_text(o, "target", said->target[0] ? said->target : NULL);
		put_text(o, "rule", said->rule);
		put_text(o, "hint", said->hint[0] ? said->hint : NULL);
		json_kv_str(o, "kind", "terminal");
		json_kv_uint(o, "count", d->v[i].count);
		json_obj_end(o);
	}
	if (!d->more && !j->egress.died && !j->egress.closed)
		return;
	json_obj_begin(o);
	json_kv_str(o, "op", "connect");
	json_kv_null(o, "target");
	json_kv_str(o, "rule",
		    j->egress.closed ? "network.default"
		    : j->egress.died ? "network.proxy"
				     : "network");
	json_kv_str(o, "hint",
		    j->egress.closed ? EGRESS_CLOSED_HINT
		    : j->egress.died ? EGRESS_DIED_HINT
				     : EGRESS_MORE_HINT);
	json_kv_str(o, "kind", "terminal");
	json_kv_uint(o, "count", d->more ? d->more : 1);
	json_obj_end(o);
}

static void write_denials(const struct job *j, struct json *o)
{
	const struct guard_denial *d = NULL;
	size_t n = j->guard ? guard_denials(j->guard, &d) : 0;

	json_key(o, "denials");
	json_arr_begin(o);
	for (size_t i = 0; i < n; i++) {
		json_obj_begin(o);
		json_kv_str(o, "op", d[i].op);
		put_text(o, "target", d[i].target);
		json_kv_str(o, "rule", d[i].rule);
		put_text(o, "hint", d[i].hint);
		json_kv_str(o, "kind", "terminal");
		json_kv_uint(o, "count", d[i].count);
		json_obj_end(o);
	}
	write_egress_denials(j, o);
	if (job_session_hint(j)) {
		json_obj_begin(o);
		json_kv_str(o, "op", "rename");
		json_kv_null(o, "target");
		json_kv_str(o, "rule", "overlay");
		json_kv_str(o, "hint", job_session_hint(j));
		json_kv_str(o, "kind", "terminal");
		json_kv_uint(o, "count", 1);
		json_obj_end(o);
	}
	if (j->wanted) {
		char hint[JOB_HINT_TEXT];
		json_obj_begin(o);
		json_kv_str(o, "op", "privilege");
		json_kv_str(o, "target", j->wanted);
		json_kv_str(o, "rule", "no_new_privs");
		json_kv_str(o, "hint", job_wanted_hint(j, hint));
		json_kv_str(o, "kind", "terminal");
		json_kv_uint(o, "count", 1);
		json_obj_end(o);
	}
	if (j->missed.profile) {
		char hint[MISSED_TEXT];
		json_obj_begin(o);
		json_kv_str(o, "op", "read");
		put_text(o, "target", j->missed.path);
		json_kv_str(o, "rule", "view.home");
		put_text(o, "hint", missed_hint(&j->missed, hint));
		json_kv_str(o, "kind", "terminal");
		json_kv_uint(o, "count", 1);
		json_obj_end(o);
	}
	json_arr_end(o);
}

/* Direct: the changes are in the source, and nobody has counted them. */
static void write_changes(const struct job *j, struct json *o)
{
	static const char *const actions[] = {
		[GUARD_QUARANTINED] = "quarantined",
		[GUARD_REPROTECTED] = "reprotected",
		[GUARD_REPLACED] = "replaced",
		[GUARD_STUCK] = "stuck",
		[GUARD_MASK_REAPPLIED] = "mask.reapplied",
		[GUARD_MASK_LOST] = "mask.lost",
		[GUARD_MASK_MOVED] = "mask.moved",
		[GUARD_MASK_TRACKED] = "mask.tracked",
	};
	const struct guard_flag *f = NULL;
	size_t n = j->guard ? guard_flags(j->guard, &f) : 0;

	json_key(o, "changes");
	json_obj_begin(o);
	json_kv_null(o, "added");
	json_kv_null(o, "modified");
	json_kv_null(o, "deleted");
	json_key(o, "flagged");
	json_arr_begin(o);
	for (size_t i = 0; i < n; i++) {
		json_obj_begin(o);
		put_text(o, "path", f[i].path);
		json_kv_str(o, "level", "high");
		json_kv_str(o, "action", actions[f[i].action]);
		put_text(o, "reason", f[i].why);
		put_text(o, "moved_to", f[i].moved_to);
		put_text(o, "restore", f[i].restore);
		json_obj_end(o);
	}
	json_arr_end(o);
	json_obj_end(o);
}

/* Which files the policy is from, and what of them did not count. */
static void write_policy(const struct job *j, struct json *o)
{
	static const char *const layers[POLICY_LAYERS] = {"built-in", "user", "project",
							  "profile",  "file", "option"};
	const struct compiled *c = &j->policy.compiled;
	char hex[2 * SHA256_BYTES + 1];

	json_key(o, "policy");
	json_arr_begin(o);
	for (size_t i = 0; j->policy.there && i < c->file_count; i++) {
		for (size_t k = 0; k < SHA256_BYTES; k++)
			(void)snprintf(hex + 2 * k, 3, "%02x", c->files[i].sha256[k]);
		json_obj_begin(o);
		json_kv_str(o, "layer", layers[c->files[i].layer]);
		put_text(o, "path", c->files[i].path);
		json_kv_str(o, "sha256", hex);
		json_kv_bool(o, "trusted", c->files[i].trusted);
		json_obj_end(o);
	}
	json_arr_end(o);
	json_key(o, "ignored");
	json_arr_begin(o);
	for (size_t i = 0; j->policy.there && i < c->note_count; i++)
		json_text(o, c->notes[i], strlen(c->notes[i]));
	json_arr_end(o);
}

static void write_masked(const struct job *j, struct json *o)
{
	struct guard_mask m;

	json_key(o, "masked");
	if (j->in && job_session_is_held(j)) {
		session_masked_json(j->in->dir, o);
		return;
	}
	json_arr_begin(o);
	for (size_t i = 0; j->guard && guard_masked(j->guard, i, &m); i++) {
		json_obj_begin(o);
		put_text(o, "path", m.path);
		json_kv_str(o, "as", m.empty ? "empty" : "unreadable");
		json_obj_end(o);
	}
	json_arr_end(o);
}

static void write_sandbox(const struct job *j, struct json *o)
{
	json_key(o, "sandbox");
	json_obj_begin(o);
	json_kv_str(o, "isolation",
		    j->req->mode == MODE_FULL_ACCESS ? "none"
		    : job_is_rung(j)                 ? "landlock"
						     : "namespace");
	json_kv_str(o, "mode", mode_name(j->req->mode));
	json_kv_str(o, "writes", j->in ? session_writes_names[j->in->rec.writes] : "direct");
	json_key(o, "source");
	if (j->src.given)
		json_text(o, j->src.path, strlen(j->src.path));
	else
		json_nil(o);
	json_kv_uint(o, "landlock", j->out.exit.landlock);
	json_kv_str(o, "runs_as", j->runs_as);
	write_enforced(j, o);
	write_not_enforced(j, o);
	write_grades(j, o);
	write_masked(j, o);
	write_policy(j, o);
	json_kv_str(o, "policy_sha256", j->policy_sha256[0] ? j->policy_sha256 : NULL);
	json_obj_end(o);
}

static void write_stream(const struct job *j, size_t which, struct json *o)
{
	static const char *const keys[] = {"stdout", "stderr"};
	char file[CALL_LOG_TEXT];

	json_key(o, keys[which]);
	capture_json(&j->capture[which], j->censor,
		     j->log[which].open ? job_session_log_name(j, which, file) : NULL, o);
}

static void write_argv(const struct job *j, struct json *o)
{
	char **shown = censor_argv(j->censor, j->argv);

	json_arr_begin(o);
	for (size_t i = 0; shown && shown[i]; i++)
		json_text(o, shown[i], strlen(shown[i]));
	json_arr_end(o);
	censor_release_argv(shown, j->argv);
}

int result_write(const struct job *j, struct buf *out, struct err *e)
{
	struct json o = JSON_INIT(out);
	char when[CLOCK_TEXT];
	uint64_t wall = j->limits.value[LIMIT_WALL];

	json_obj_begin(&o);
	json_kv_uint(&o, "version", 1);
	json_kv_str(&o, "session", j->session);
	json_kv_str(&o, "call", j->call);
	json_kv_null(&o, "tool");
	json_key(&o, "argv");
	write_argv(j, &o);
	bool none = j->req->mode == MODE_FULL_ACCESS || !job_agent_root(j)[0];
	json_key(&o, "agent_root");
	if (none)
		json_nil(&o);
	else
		json_text(&o, job_agent_root(j), strlen(job_agent_root(j)));
	json_kv_null(&o, "graph");
	if (wall == LIMIT_NONE || !wall)
		json_kv_null(&o, "deadline");
	else
		json_kv_str(&o, "deadline",
			    clock_rfc3339(clock_wall_ms() - (int64_t)j->out.wall_ms + (int64_t)wall,
					  when));
	json_kv_bool(&o, "ok", j->error.code == ERR_NONE && j->status == 0);
	write_exit(j, &o);
	write_error(j, &o);
	write_stream(j, 0, &o);
	write_stream(j, 1, &o);
	write_denials(j, &o);
	write_limits_hit(j, &o);
	write_limits_near(j, &o);
	write_usage(j, &o);
	write_changes(j, &o);
	write_sandbox(j, &o);
	json_kv_uint(&o, "depth_left", DEPTH_LEFT);
	json_obj_end(&o);
	return json_finish(&o, ERR_OUTPUT_LIMIT, e);
}

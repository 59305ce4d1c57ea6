/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the audit log gets of a call: one append when it is over.
 */
#include "run/record.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "audit/audit.h"
#include "audit/settings.h"
#include "base/base.h"
#include "base/clock.h"
#include "run/recordegress.h"
#include "run/session.h"

#define ROW_FIELDS 4

#define WORD(k, v)                                          \
	{                                                   \
		.key = (k), .kind = AUDIT_WORD, .text = (v) \
	}
#define PATH(k, v)                                          \
	{                                                   \
		.key = (k), .kind = AUDIT_PATH, .text = (v) \
	}
#define TEXT(k, v)                                          \
	{                                                   \
		.key = (k), .kind = AUDIT_TEXT, .text = (v) \
	}
#define UINT(k, v)                                       \
	{                                                \
		.key = (k), .kind = AUDIT_UINT, .u = (v) \
	}

/* A list, with the fields of its rows. */
struct rows {
	struct audit_row row[MAX_AUDIT_ROWS];
	struct audit_field field[MAX_AUDIT_ROWS][ROW_FIELDS];
	size_t n; /* may be more than there is room for */
};

static void add(struct rows *r, const struct audit_field *fields, size_t n)
{
	if (r->n < MAX_AUDIT_ROWS) {
		memcpy(r->field[r->n], fields, n * sizeof(*fields));
		r->row[r->n] = (struct audit_row){.fields = r->field[r->n], .count = n};
	}
	r->n++;
}

static struct audit_field list(const char *key, const struct rows *r)
{
	return (struct audit_field){.key = key, .kind = AUDIT_LIST, .rows = r->row, .count = r->n};
}

static const char *isolation_of(const struct job *j)
{
	return j->req->mode == MODE_FULL_ACCESS ? "none"
	       : job_is_rung(j)                 ? "landlock"
						: "namespace";
}

static const char *or_null(const char *text)
{
	return text && text[0] ? text : NULL;
}

/* Allowed is what was started; what could not be started was not decided about. */
static void decide(const struct job *j, struct audit_event *v)
{
	bool started = j->out.have_exit || j->out.have_exec_error;

	v->decision = started ? "allow" : j->error.code == ERR_POLICY_DENIED ? "deny" : NULL;
	v->rule = started ? "default" : j->error.code == ERR_POLICY_DENIED ? "boundary" : NULL;
}

static void denials(const struct job *j, struct rows *r)
{
	const struct guard_denial *d = NULL;
	size_t n = j->guard ? guard_denials(j->guard, &d) : 0;

	for (size_t i = 0; i < n; i++) {
		const struct audit_field f[] = {WORD("op", d[i].op), PATH("target", d[i].target),
						WORD("rule", d[i].rule), UINT("count", d[i].count)};
		add(r, f, ARRAY_LEN(f));
	}
	if (j->wanted) {
		const struct audit_field f[] = {WORD("op", "privilege"), TEXT("target", j->wanted),
						WORD("rule", "no_new_privs"), UINT("count", 1)};
		add(r, f, ARRAY_LEN(f));
	}
	if (j->missed.profile) {
		const struct audit_field f[] = {WORD("op", "read"), PATH("target", j->missed.path),
						WORD("rule", "view.home"), UINT("count", 1)};
		add(r, f, ARRAY_LEN(f));
	}
}

static void flags(const struct job *j, struct rows *r)
{
	const struct guard_flag *g = NULL;
	size_t n = j->guard ? guard_flags(j->guard, &g) : 0;

	for (size_t i = 0; i < n; i++) {
		const struct audit_field f[] = {PATH("path", g[i].path), TEXT("why", g[i].why),
						PATH("moved_to", g[i].moved_to)};
		add(r, f, ARRAY_LEN(f));
	}
}

static struct audit_field code_of(const struct job *j)
{
	int st = j->out.exit.status;
	bool ran = j->out.have_exit && !j->out.have_exec_error && !j->out.have_failure;

	if (ran && WIFEXITED(st))
		return (struct audit_field)UINT("code", (uint64_t)WEXITSTATUS(st));
	if (ran && WIFSIGNALED(st))
		return (struct audit_field)UINT("signal", (uint64_t)WTERMSIG(st));
	return (struct audit_field){.key = "code", .kind = AUDIT_NULL};
}

/* The files of a policy that was read anew. */
static void files(const struct compiled *c, struct rows *r, char hex[][AUDIT_HASH_TEXT])
{
	static const char *const layers[POLICY_LAYERS] = {"built-in", "user", "project",
							  "profile",  "file", "option"};

	for (size_t i = 0; i < c->file_count && i < MAX_COMPILED_FILES; i++) {
		audit_hex(c->files[i].sha256, SHA256_BYTES, hex[i]);
		const struct audit_field f[] = {
			WORD("layer", layers[c->files[i].layer]),
			PATH("path", c->files[i].path),
			WORD("sha256", hex[i]),
			{.key = "trusted", .kind = AUDIT_BOOL, .b = c->files[i].trusted},
		};
		add(r, f, ARRAY_LEN(f));
	}
}

/* What the user's policy says about the log, which every writer follows from now on. */
static int follow_policy(const struct job *j, struct err *e)
{
	const struct compiled *c = &j->policy.compiled;
	struct audit_settings s = {.kept_ms = AUDIT_KEPT_MS};

	if (!j->policy.read)
		return 0;
	if (j->policy.there) {
		s.pseudonyms = c->pseudonyms;
		if (c->audit_kept_ms != LIMIT_UNSET)
			s.kept_ms = c->audit_kept_ms;
	}
	return audit_settings_put(&j->who, &s, e);
}

int job_record(const struct job *j, struct err *e)
{
	static struct rows denied, flagged, read; /* too much for a stack */
	char hex[MAX_COMPILED_FILES][AUDIT_HASH_TEXT];
	struct audit_event v[MAX_AUDIT_EVENTS];
	size_t n = 0;

	if (follow_policy(j, e) < 0)
		return -1;
	denied.n = flagged.n = read.n = 0;
	denials(j, &denied);
	flags(j, &flagged);
	const struct audit_event common = {
		.session = or_null(j->session),
		.call = or_null(j->call),
		.policy_sha256 = or_null(j->policy_sha256),
	};
	if (j->policy.there && j->policy.fresh)
		files(&j->policy.compiled, &read, hex);
	const struct audit_field load[] = {list("files", &read)};
	if (read.n) {
		v[n] = common;
		v[n].event = "policy.load";
		v[n].data = load;
		v[n++].data_count = ARRAY_LEN(load);
	}
	char **given = j->argv ? j->argv : j->req->argv;
	char **argv = censor_argv(j->censor, given);
	const struct audit_field start[] = {
		{.key = "argv", .kind = AUDIT_ARGV, .argv = argv},
		PATH("cwd", j->cwd[0] ? j->cwd : j->who.cwd),
		PATH("source", j->src.given ? j->src.path : NULL),
		WORD("mode", mode_name(j->req->mode)),
		WORD("writes", j->in ? session_writes_names[j->in->rec.writes] : "direct"),
		WORD("isolation", isolation_of(j)),
		WORD("runs_as", j->runs_as),
		WORD("approval", NULL),
		WORD("grant", NULL),
	};
	v[n] = common;
	v[n].event = "call.start";
	v[n].time_ms = j->began_ms;
	decide(j, &v[n]);
	v[n].data = start;
	v[n++].data_count = ARRAY_LEN(start);
	n += record_egress(j, &common, v + n);
	const struct audit_field end[] = {
		UINT("status", (uint64_t)j->status),
		code_of(j),
		WORD("error", j->error.code ? err_code_name(j->error.code) : NULL),
		UINT("wall_ms", j->out.wall_ms),
		UINT("processes", j->out.exit.processes),
		UINT("egress_up", j->egress.up),
		UINT("egress_down", j->egress.down),
		list("denials", &denied),
		list("flagged", &flagged),
	};
	v[n] = common;
	v[n].event = "call.end";
	decide(j, &v[n]);
	v[n].data = end;
	v[n++].data_count = ARRAY_LEN(end);
	int rc = audit_append(&j->who, v, n, 0, e);
	censor_release_argv(argv, given);
	return rc;
}

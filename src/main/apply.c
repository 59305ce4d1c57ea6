/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sandglass apply`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/audit.h"
#include "base/base.h"
#include "base/json.h"
#include "base/term.h"
#include "cli/apply_options.h"
#include "cli/verbs.h"
#include "main/apply_pick.h"
#include "main/hold.h"
#include "main/review_operands.h"
#include "main/review_verbs.h"
#include "review/apply.h"
#include "run/job.h"

#define MAX_SAID_BYTES ((size_t)256 << 20)

static const char *const recovered_names[] = {NULL, "forward", "back"};

struct verb_state {
	struct caller who;
	char cwd[PATH_TEXT];
	struct apply_options o;
	struct review_operands ops;
	struct hold hold;
	struct apply a;
	struct review_named named;
};

/* Paths can be read only when the changes are known. */
static int pick_paths(void *self, struct apply *a, struct err *e)
{
	struct verb_state *s = self;

	if (review_name(&s->who, &s->ops, &a->changes, &s->named, e) < 0)
		return -1;
	a->paths = s->named.p;
	a->path_count = s->named.n;
	return 0;
}

static void left_json(struct json *j, const char *key, size_t n, const char *first)
{
	json_key(j, key);
	json_obj_begin(j);
	json_kv_uint(j, "count", n);
	json_key(j, "first");
	if (first)
		json_text(j, first, strlen(first));
	else
		json_nil(j);
	json_obj_end(j);
}

static void paths_json(struct json *j, const char *key, const struct apply *a,
		       bool (*is)(const struct apply *a, size_t i), size_t most)
{
	json_key(j, key);
	json_arr_begin(j);
	for (size_t i = 0; a->choices && i < a->changes.n && most; i++) {
		if (!is(a, i))
			continue;
		json_text(j, a->changes.v[i].path, strlen(a->changes.v[i].path));
		most--;
	}
	json_arr_end(j);
}

static bool is_merged(const struct apply *a, size_t i)
{
	return a->choices[i].yes && a->choices[i].merged;
}

static void refs_json(struct json *j, const struct apply *a)
{
	json_key(j, "refs");
	json_arr_begin(j);
	for (size_t i = 0; a->commits.moved && i < a->commits.n; i++) {
		json_obj_begin(j);
		json_kv_str(j, "name", a->commits.v[i].name);
		json_kv_str(j, "before", a->commits.v[i].before);
		json_kv_str(j, "after", a->commits.v[i].after);
		json_obj_end(j);
	}
	json_arr_end(j);
}

static int say_json(const struct verb_state *s, const struct err *failed, int status)
{
	AUTO_BUF out = BUF_INIT(MAX_SAID_BYTES);
	struct json j = JSON_INIT(&out);
	const struct apply *a = &s->a;
	struct err e = {0};

	json_obj_begin(&j);
	json_kv_uint(&j, "version", 1);
	json_kv_str(&j, "session", s->ops.id[0] ? s->ops.id : NULL);
	json_kv_bool(&j, "ok", status == 0);
	review_error_json(&j, failed);
	json_kv_uint(&j, "added", a->files_done ? a->added : 0);
	json_kv_uint(&j, "modified", a->files_done ? a->modified : 0);
	json_kv_uint(&j, "deleted", a->files_done ? a->deleted : 0);
	json_kv_uint(&j, "conflict_count", a->conflicts);
	paths_json(&j, "conflicts", a, apply_is_conflict, APPLY_CONFLICTS_SHOWN);
	paths_json(&j, "markers", a, is_merged, SIZE_MAX);
	json_key(&j, "left");
	json_obj_begin(&j);
	left_json(&j, "masked", a->left.masked, a->left.masked_at);
	left_json(&j, "special", a->left.special, a->left.special_at);
	left_json(&j, "git", a->left.git, a->left.git_at);
	left_json(&j, "kept", a->left.kept + a->engine.kept,
		  a->left.kept ? a->left.kept_at : a->engine.kept_at);
	json_obj_end(&j);
	refs_json(&j, a);
	json_kv_str(&j, "recovered", recovered_names[a->recovered]);
	json_kv_bool(&j, "unclean", s->hold.unclean);
	json_obj_end(&j);
	if (json_finish(&j, ERR_INTERNAL, &e) < 0)
		return cli_fail(&e, 2);
	(void)buf_char(&out, '\n');
	return cli_write(STDOUT_FILENO, buf_cstr(&out), out.n, &e) < 0 ? cli_fail(&e, 2) : status;
}

static void say_left(struct buf *out, size_t n, const char *first, const char *what)
{
	if (!n)
		return;
	(void)buf_printf(out, "left out: %zu %s, ", n, what);
	(void)term_escape(out, first ? first : "", first ? strlen(first) : 0);
	(void)buf_str(out, n > 1 ? " and others\n" : "\n");
}

static void say_paths(struct buf *out, const struct apply *a, const char *word,
		      bool (*is)(const struct apply *a, size_t i), size_t most)
{
	for (size_t i = 0; a->choices && i < a->changes.n && most; i++) {
		if (!is(a, i))
			continue;
		(void)buf_printf(out, "%s: ", word);
		(void)term_escape(out, a->changes.v[i].path, strlen(a->changes.v[i].path));
		(void)buf_char(out, '\n');
		most--;
	}
}

static void say_notes(const struct verb_state *s, struct buf *out)
{
	const struct apply *a = &s->a;

	if (s->hold.unclean)
		(void)buf_str(out, "unclean: " UNCLEAN_TEXT "\n");
	if (a->recovered != RECOVERED_NOTHING)
		(void)buf_printf(out, "an apply that was killed was %s first\n",
				 a->recovered == RECOVERED_FORWARD ? "finished" : "undone");
	say_paths(out, a, "conflict", apply_is_conflict, APPLY_CONFLICTS_SHOWN);
	say_paths(out, a, "markers", is_merged, SIZE_MAX);
	if (a->commits.index_stays)
		(void)buf_str(out, "the index has changes of its own and was left as it is\n");
	say_left(out, a->left.masked, a->left.masked_at, "masked");
	say_left(out, a->left.special, a->left.special_at, "neither file, link nor directory");
	say_left(out, a->left.git, a->left.git_at, "in a git directory and not named exactly");
	say_left(out, a->left.kept, a->left.kept_at, "not removed since something in it stays");
	say_left(out, a->engine.kept, a->engine.kept_at, "not removed since it has something new");
}

static int say_text(const struct verb_state *s, const struct err *failed, int status)
{
	AUTO_BUF notes = BUF_INIT(MAX_SAID_BYTES);
	AUTO_BUF out = BUF_INIT(1u << 20);
	struct err e = {0};

	if (review_say_session(&s->ops) < 0)
		return 2;
	say_notes(s, &notes);
	if (cli_write(STDERR_FILENO, buf_cstr(&notes), notes.n, &e) < 0)
		return cli_fail(&e, 2);
	if (failed)
		return cli_fail(failed, status);
	(void)buf_printf(&out, "applied: %zu added, %zu modified, %zu deleted\n", s->a.added,
			 s->a.modified, s->a.deleted);
	for (size_t i = 0; i < s->a.commits.n; i++) {
		const struct moved_ref *m = &s->a.commits.v[i];
		(void)buf_str(&out, "moved: ");
		(void)term_escape(&out, m->name, strlen(m->name));
		(void)buf_printf(&out, " to %.12s\n", m->after);
	}
	return cli_write(STDOUT_FILENO, buf_cstr(&out), out.n, &e) < 0 ? cli_fail(&e, 2) : status;
}

static bool is_no(const struct err *e)
{
	return e->code == ERR_CONFLICT || e->code == ERR_NOT_FOUND;
}

/* What was done, in the log, whether all of it could be done or not. Nothing was done: nothing is said. */
static int note(const struct verb_state *s, struct err *e)
{
	const struct apply *a = &s->a;
	struct audit_field refs[MAX_AUDIT_ROWS][3];
	struct audit_row rows[MAX_AUDIT_ROWS];
	size_t most = a->commits.n < MAX_AUDIT_ROWS ? a->commits.n : MAX_AUDIT_ROWS;
	size_t n = a->commits.moved ? most : 0;
	size_t files = a->files_done ? a->added + a->modified + a->deleted : 0;

	if (!files && !n && a->recovered == RECOVERED_NOTHING)
		return 0;
	for (size_t i = 0; i < n; i++) {
		const struct moved_ref *m = &a->commits.v[i];
		refs[i][0] =
			(struct audit_field){.key = "name", .kind = AUDIT_WORD, .text = m->name};
		refs[i][1] = (struct audit_field){.key = "before",
						  .kind = AUDIT_WORD,
						  .text = m->before};
		refs[i][2] =
			(struct audit_field){.key = "after", .kind = AUDIT_WORD, .text = m->after};
		rows[i] = (struct audit_row){.fields = refs[i], .count = 3};
	}
	const struct audit_field data[] = {
		{.key = "source", .kind = AUDIT_PATH, .text = s->ops.rec.source},
		{.key = "paths", .kind = AUDIT_UINT, .u = files},
		{.key = "added", .kind = AUDIT_UINT, .u = files ? a->added : 0},
		{.key = "modified", .kind = AUDIT_UINT, .u = files ? a->modified : 0},
		{.key = "deleted", .kind = AUDIT_UINT, .u = files ? a->deleted : 0},
		{.key = "markers", .kind = AUDIT_UINT, .u = files ? a->markers : 0},
		{.key = "refs", .kind = AUDIT_LIST, .rows = rows, .count = n},
		{.key = "refs_not_moved",
		 .kind = AUDIT_UINT,
		 .u = files && !a->commits.moved ? a->commits.n : 0},
		{.key = "recovered", .kind = AUDIT_WORD, .text = recovered_names[a->recovered]},
	};
	if (review_note(&s->who, &s->ops, "apply", data, ARRAY_LEN(data), e) < 0)
		return err_wrap(e, "it was applied, but is not in the audit log");
	return 0;
}

static int apply(struct verb_state *s, int argc, char **argv, struct err *e)
{
	if (s->o.patch && apply_pick_check(e) < 0)
		return -1;
	if (caller_init(&s->who, environ, s->cwd, e) < 0 ||
	    review_operands(&s->who, argc, argv, &s->ops, e) < 0 ||
	    hold_session(s->ops.session, &s->ops.rec, HOLD_CHANGE, &s->hold, e) < 0)
		return -1;
	s->a.session = s->ops.session;
	s->a.rec = &s->ops.rec;
	s->a.merge = s->o.merge;
	s->a.name = pick_paths;
	s->a.pick = s->o.patch ? apply_pick : NULL;
	s->a.self = s;
	int rc = apply_session(&s->a, e);
	struct err unsaid = {0};
	if (note(s, &unsaid) < 0 && rc == 0)
		rc = (*e = unsaid, -1);
	return rc;
}

int main_apply(int argc, char **argv)
{
	static struct verb_state s;
	struct err e = {0};
	int first = 0;

	s = (struct verb_state){.ops = {.session = -1},
				.hold = HOLD_NONE,
				.a = {.journal = {.dir = -1},
				      .commits = {.bundle = -1},
				      .review = {.upper = -1, .masks = -1, .source = -1}}};
	if (opt_parse(apply_usage.options, apply_usage.option_count, argc, argv, &s.o, &first, &e) <
	    0)
		return cli_fail(&e, 2);
	if (s.o.help)
		return usage_show(&apply_usage, 2);
	int rc = apply(&s, argc - first, argv + first, &e);
	int status = rc < 0 ? (is_no(&e) ? 1 : 2) : s.a.markers ? 1 : 0;
	status = s.o.json ? say_json(&s, rc < 0 ? &e : NULL, status)
			  : say_text(&s, rc < 0 ? &e : NULL, status);
	apply_release(&s.a);
	hold_end(&s.hold);
	review_operands_release(&s.ops);
	review_named_release(&s.named);
	return status;
}

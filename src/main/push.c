/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sandglass push`: the second human step. What can refuse is asked first, then the commit is
 * made, then the checks run over it, then a person says yes, then exactly that commit is
 * pushed.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audit/audit.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/term.h"
#include "cli/promote.h"
#include "cli/verbs.h"
#include "main/gitrun.h"
#include "main/verbs.h"
#include "policy/gitid.h"
#include "review/applied.h"
#include "review/branch.h"
#include "review/change.h"
#include "review/flags.h"

#define MAX_SHOWN_BYTES ((size_t)4 << 20)
#define MAX_SHOWN_FLAGS 200u
#define ANSWER_NO 1
#define NOT_DONE 2

struct push {
	const struct push_options *o;
	struct chosen session;
	struct review review; /* source -1: not open */
	struct source src;
	struct refused refused;
	struct repo repo;
	struct set policy;
	struct workshop shop;
	struct git_identity who;
	struct applied applied;
	struct commit_paths paths;
	size_t touched; /* paths that somebody changed since they were applied */
	char branch[MAX_BRANCH + 1];
	char message[MAX_COMMIT_MESSAGE];
	struct commit_head head;
	struct git_made made;
	struct buf checks; /* what they came to, for the person */
	struct buf flags;  /* what to look at first */
	bool no;           /* the answer is no; else it could not be done */
	bool pushed;
};

/* Exit status 1 instead of 2. */
static int says_no(struct push *p)
{
	p->no = true;
	return -1;
}

static int need_person(const struct push *p, struct err *e)
{
	(void)p;
	if (isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
		return 0;
	(void)err_set(e, ERR_UNSUPPORTED, "a push needs a person at a terminal");
	return err_hint(e, "signed approvals come with rules and approvals; until then run it in a "
			   "terminal");
}

static int find_source(struct push *p, struct err *e)
{
	const struct session_record *r = &p->session.rec;

	if (r->writes == SESSION_DIRECT) {
		(void)err_set(e, ERR_UNSUPPORTED, "session %s wrote to the source at once",
			      p->session.id);
		return err_hint(e, "nothing was held for review: commit and push with git");
	}
	if (review_open(p->session.dir, r, &p->review, e) < 0)
		return -1;
	p->src.given = true;
	memcpy(p->src.path, r->source, sizeof(p->src.path));
	if (fstat(p->review.source, &p->src.st) < 0)
		return err_sys(e, "%s", r->source);
	if (!r->head[0]) {
		(void)err_set(e, ERR_NOT_FOUND, "%s had no commit when the session began",
			      r->source);
		return err_hint(e, "commit something first; a branch needs a parent");
	}
	return refused_init(&p->session.who, &p->refused, e);
}

static int check_remote(struct push *p, struct err *e)
{
	const struct session_record *r = &p->session.rec;
	struct repo_remote now;
	const char *local = NULL;
	char clean[PATH_TEXT];
	char then[REPO_URL_TEXT];
	char after[REPO_URL_TEXT];

	if (repo_find(&p->src, &p->session.who, &p->refused, &p->repo, e) < 0)
		return -1;
	if (!r->remote_url[0]) {
		(void)err_set(e, ERR_NOT_FOUND, "%s had no remote when the session began",
			      r->source);
		return err_hint(e, "git remote add, and a new session");
	}
	repo_remote(&p->repo, r->remote, r->branch, &now);
	if (strcmp(now.url, r->remote_url) != 0) {
		(void)err_set(e, ERR_CONFLICT,
			      "the remote %s was %.300s when the session began and is %.300s now",
			      r->remote, remote_shown(r->remote_url, then, sizeof(then)),
			      now.url[0] ? remote_shown(now.url, after, sizeof(after))
					 : "not there");
		(void)err_hint(e, "put it back if it was not you: git remote set-url");
		return says_no(p);
	}
	if (remote_check(r->remote_url, &local, e) < 0)
		return -1;
	if (local &&
	    (local[0] != '/' || !path_lexical(local, clean) || path_is_below(r->source, clean))) {
		char full[2 * PATH_TEXT];
		(void)snprintf(full, sizeof(full), "%s/%s", r->source, local);
		if (local[0] == '/' || !path_lexical(full, clean) ||
		    path_is_below(r->source, clean))
			return err_set(e, ERR_POLICY_DENIED,
				       "the remote %s lies in the source, where a session writes",
				       remote_shown(r->remote_url, then, sizeof(then)));
	}
	return 0;
}

static int protected(struct push *p, const char *pattern, const char *from, struct err *e)
{
	if (!branch_matches(pattern, p->branch))
		return 0;
	(void)err_set(e, ERR_POLICY_DENIED, "the branch %s is protected: %s (%s)", p->branch,
		      pattern, from);
	return err_hint(e, "push to another one and let it be reviewed: --branch NAME");
}

static int check_branch(struct push *p, struct err *e)
{
	if (p->o->branch && branch_check(p->o->branch, e) < 0)
		return -1;
	(void)snprintf(p->branch, sizeof(p->branch), "%s%s", p->o->branch ? "" : "sandglass/",
		       p->o->branch ? p->o->branch : p->session.id);
	if (chosen_policy(&p->session, &p->policy, e) < 0)
		return -1;
	for (size_t i = 0; default_protected[i]; i++)
		if (protected(p, default_protected[i], "built-in", e) < 0)
			return -1;
	for (size_t i = 0; i < p->policy.protected_count; i++) {
		const struct set_name *n = &p->policy.protected[i];
		AUTO_BUF origin = BUF_INIT(PATH_TEXT + 64);
		set_origin(&(struct origin){.layer = n->from, .at = n->v->at}, &origin);
		if (protected(p, n->v->name, buf_cstr(&origin), e) < 0)
			return -1;
	}
	return 0;
}

static bool name_is_good(const char *text)
{
	return text[0] && !strpbrk(text, "<>\n\r") && strlen(text) < MAX_GIT_IDENTITY;
}

static int find_person(struct push *p, struct err *e)
{
	gitid_read(&p->session.who, &p->who);
	if (name_is_good(p->who.name) && name_is_good(p->who.email))
		return 0;
	(void)err_set(e, ERR_CONFIG_INVALID, "who you are is not in your git configuration");
	return err_hint(e, "git config --global user.name NAME; git config --global user.email "
			   "ADDRESS");
}

static int find_paths(struct push *p, struct err *e)
{
	if (applied_read(p->session.dir, &p->applied, e) < 0)
		return -1;
	AUTO_FREE const char **names = calloc(p->applied.n + 1, sizeof(*names));
	if (!names)
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (size_t i = 0; i < p->applied.n; i++)
		names[i] = p->applied.v[i].path;
	if (commit_paths_find(p->review.source, names, p->applied.n, &p->paths, e) < 0)
		return -1;
	for (size_t i = 0; i < p->paths.n; i++) {
		const struct commit_path *c = &p->paths.v[i];
		const struct applied_entry *a = applied_find(&p->applied, c->path);
		if (!a)
			continue;
		p->touched += c->found.mode ? a->dev != c->found.dev || a->ino != c->found.ino ||
						      a->ctime_ns != c->found.ctime_ns
					    : a->ino != 0;
	}
	if (p->paths.n)
		return 0;
	(void)err_set(e, ERR_NOT_FOUND, "nothing that git could commit was applied of session %s",
		      p->session.id);
	(void)err_hint(e, "sandglass apply %s comes first", p->session.id);
	return says_no(p);
}

static int look_at_remote(struct push *p, struct err *e)
{
	struct remote_view view;

	if (remote_look(&p->shop, p->session.rec.remote_url, p->branch, &view, e) < 0)
		return -1;
	if (view.head[0] && strcasecmp(view.head, p->branch) == 0) {
		(void)err_set(e, ERR_POLICY_DENIED,
			      "the branch %s is protected: the remote's HEAD names it", p->branch);
		return err_hint(e, "push to another one and let it be reviewed: --branch NAME");
	}
	if (!view.has_branch)
		return 0;
	(void)err_set(e, ERR_CONFLICT, "the remote has a branch %s already", p->branch);
	(void)err_hint(e, "a push makes a new one: --branch NAME");
	return says_no(p);
}

static int write_message(struct push *p, struct err *e)
{
	char made[256];
	AUTO_BUF out = BUF_INIT(sizeof(p->message) - 1);
	const struct session_record *r = &p->session.rec;

	(void)snprintf(made, sizeof(made), "Changes of session %s",
		       r->name[0] ? r->name : p->session.id);
	if (commit_message(p->o->message ? p->o->message : made, p->session.id, r->policy_sha256,
			   p->who.name, p->who.email, &out, e) < 0)
		return -1;
	memcpy(p->message, out.p, out.n + 1);
	p->head = (struct commit_head){.parent = r->head,
				       .name = p->who.name,
				       .email = p->who.email,
				       .time_s = clock_wall_ms() / 1000,
				       .message = p->message};
	return 0;
}

/*
 * What a reviewer should look at first, of the files as they are now. What the parent had is
 * not known here, so all of a file counts as new: better one flag too many.
 */
static int find_flags(struct push *p, struct err *e)
{
	struct changes all = {.v = calloc(p->paths.n + 1, sizeof(*all.v))};
	struct flags flags = {.v = NULL};

	if (!all.v)
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (size_t i = 0; i < p->paths.n; i++) {
		const struct commit_path *c = &p->paths.v[i];
		const struct node *f = &c->found;
		if (!f->mode)
			continue;
		all.v[all.n++] = (struct change){.path = c->path,
						 .after = {.mode = f->mode,
							   .size = f->size,
							   .dev = f->dev,
							   .ino = f->ino,
							   .ctime_ns = f->ctime_ns,
							   .mtime_ns = f->mtime_ns,
							   .tree = SIDE_SOURCE,
							   .where = c->path}};
	}
	int rc = flags_find(&p->review, &all, &flags, e);
	for (size_t i = 0; rc == 0 && i < flags.n && i < MAX_SHOWN_FLAGS; i++) {
		const struct flag *f = &flags.v[i];
		(void)buf_printf(&p->flags, "  %-6s %-18s ", flag_level_names[f->level], f->kind);
		(void)term_escape(&p->flags, f->change->path, strlen(f->change->path));
		(void)buf_printf(&p->flags, "%s%s\n", f->detail[0] ? ": " : "", f->detail);
	}
	if (rc == 0 && flags.n + flags.more > MAX_SHOWN_FLAGS)
		(void)buf_printf(&p->flags, "  and %zu more\n",
				 flags.n + flags.more - MAX_SHOWN_FLAGS);
	flags_release(&flags);
	free(all.v);
	return rc;
}

static int make_commit(struct push *p, struct err *e)
{
	if (git_ignored(&p->shop, p->head.parent, &p->paths, e) < 0 || find_flags(p, e) < 0 ||
	    git_make(&p->shop, &p->head, p->review.source, &p->paths, &p->made, e) < 0)
		return -1;
	if (p->made.gitlinks) {
		(void)err_set(e, ERR_UNSUPPORTED, "the commit would change %zu submodules",
			      p->made.gitlinks);
		return err_hint(e, "commit those with git");
	}
	if (p->made.stat[0])
		return 0;
	(void)err_set(e, ERR_NOT_FOUND, "what was applied is in %s already", p->head.parent);
	return says_no(p);
}

/* Lines of foreign text, each made safe and set in. */
static void put_lines(struct buf *out, const char *text, const char *indent)
{
	for (size_t n = 0; *text; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		(void)buf_str(out, indent);
		(void)term_escape(out, text, n);
		(void)buf_char(out, '\n');
	}
}

static int check_failed(struct push *p, const struct layer_check *check, const struct child *c,
			struct err *e)
{
	AUTO_BUF out = BUF_INIT(MAX_SHOWN_BYTES);
	int status = WIFEXITED(c->status) ? WEXITSTATUS(c->status) : 128 + WTERMSIG(c->status);

	(void)buf_printf(&out, "sandglass: the check %s said last:\n", check->name);
	put_lines(&out, c->tail, "  ");
	if (cli_write(STDERR_FILENO, buf_cstr(&out), out.n, e) < 0)
		return -1;
	if (status == 124)
		(void)err_set(e, ERR_TOOL_TIMEOUT, "the check %s took too long", check->name);
	else
		(void)err_set(e, ERR_CONFLICT, "the check %s failed with status %d", check->name,
			      status);
	(void)err_hint(e, "nothing was pushed; what it said is above");
	return says_no(p);
}

static int run_check(struct push *p, size_t i, struct err *e)
{
	const struct layer_check *check = p->policy.checks[i].v;
	char dir[PATH_TEXT + 64];
	char name[32];
	char timeout[NUM_TEXT];
	struct child c;
	size_t n = 0;

	(void)snprintf(name, sizeof(name), "check-%zu", i);
	if (git_checkout(&p->shop, p->made.commit, name, dir, e) < 0)
		return -1;
	const char *words[] = {"sandglass", "run",
			       "--quiet",   "--no-tty",
			       "--writes",  "direct",
			       "--source",  dir,
			       "--timeout", duration_format(check->timeout_ms, timeout),
			       "--"};
	AUTO_FREE char **argv = calloc(ARRAY_LEN(words) + check->run_count + 1, sizeof(*argv));
	if (!argv)
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (; n < ARRAY_LEN(words); n++)
		argv[n] = (char *)(uintptr_t)words[n];
	for (size_t k = 0; k < check->run_count; k++)
		argv[n++] = (char *)(uintptr_t)check->run[k];
	c = (struct child){.path = p->shop.front,
			   .argv = argv,
			   .env = p->shop.git_env,
			   .cwd = dir,
			   .in = -1,
			   .out = -1};
	uint64_t begin = clock_mono_ms();
	if (child_run(&p->shop.attend, &c, e) < 0)
		return -1;
	if (!WIFEXITED(c.status) || WEXITSTATUS(c.status) != 0)
		return check_failed(p, check, &c, e);
	(void)buf_printf(&p->checks, "  %s: passed in %s\n", check->name,
			 duration_format(clock_mono_ms() - begin, timeout));
	return 0;
}

static void field(struct buf *out, const char *name, const char *value)
{
	(void)buf_printf(out, "%-9s", name);
	(void)term_escape(out, value, strlen(value));
	(void)buf_char(out, '\n');
}

static void show(const struct push *p, struct buf *out)
{
	const struct session_record *r = &p->session.rec;
	char name[UUID_TEXT + SESSION_NAME_MAX + 2];
	char remote[REPO_URL_TEXT + REPO_REMOTE_TEXT + 2];
	char url[REPO_URL_TEXT];

	(void)snprintf(name, sizeof(name), "%s %s", p->session.id, r->name);
	(void)snprintf(remote, sizeof(remote), "%s %s",
		       remote_shown(r->remote_url, url, sizeof(url)), r->remote);
	field(out, "session", name);
	field(out, "remote", remote);
	field(out, "branch", p->branch);
	field(out, "parent", p->head.parent);
	field(out, "tree", p->made.tree);
	field(out, "commit", p->made.commit);
	(void)buf_str(out, "message\n");
	put_lines(out, p->message, "  ");
	(void)buf_str(out, p->policy.check_count ? "checks\n" : "checks   none are asked for\n");
	(void)buf_str(out, buf_cstr(&p->checks));
	(void)buf_str(out, "changes\n");
	put_lines(out, p->made.stat, "  ");
	if (p->flags.n)
		(void)buf_printf(out, "look at\n%s", buf_cstr(&p->flags));
	if (p->paths.ignored)
		(void)buf_printf(out, "  left out, since git ignores them: %zu\n",
				 p->paths.ignored);
	if (p->paths.foreign)
		(void)buf_printf(out, "  left out, since they are in another repository: %zu\n",
				 p->paths.foreign);
	if (p->touched)
		(void)buf_printf(out, "  changed in the source since they were applied: %zu\n",
				 p->touched);
}

static int ask(struct push *p, struct err *e)
{
	AUTO_BUF out = BUF_INIT(MAX_SHOWN_BYTES);
	char line[64];

	AUTO_FD int tty = open("/dev/tty", O_RDWR | O_CLOEXEC);
	if (tty < 0)
		return need_person(p, e) < 0 ? -1 : err_sys(e, "open /dev/tty");
	show(p, &out);
	(void)buf_str(&out, "Push this? Type yes to go on: ");
	if (buf_check(&out, "what would be pushed", ERR_ARG_LIMIT, e) < 0 ||
	    cli_write(tty, out.p, out.n, e) < 0 ||
	    attend_ask(&p->shop.attend, tty, line, sizeof(line), e) < 0)
		return -1;
	if (strcmp(line, "yes") == 0 || strcmp(line, "y") == 0)
		return 0;
	(void)err_set(e, ERR_POLICY_DENIED, "not confirmed: nothing was pushed");
	return says_no(p);
}

/* An answer is on the disk before anything follows from it. Who approved is said of what was approved. */
static int note(const struct push *p, const char *decision, const char *outcome, struct err *e)
{
	const struct session_record *r = &p->session.rec;
	const struct audit_field data[] = {
		{.key = "source", .kind = AUDIT_PATH, .text = r->source},
		{.key = "remote", .kind = AUDIT_URL, .text = r->remote_url},
		{.key = "branch", .kind = AUDIT_WORD, .text = p->branch},
		{.key = "parent", .kind = AUDIT_WORD, .text = p->head.parent},
		{.key = "tree", .kind = AUDIT_WORD, .text = p->made.tree},
		{.key = "commit", .kind = AUDIT_WORD, .text = p->made.commit},
		{.key = "approved_by",
		 .kind = AUDIT_NAME,
		 .text = strcmp(decision, "allow") == 0 ? p->who.email : NULL},
		{.key = "outcome", .kind = AUDIT_WORD, .text = outcome},
	};
	const struct audit_event event = {.event = "push",
					  .session = p->session.id,
					  .policy_sha256 =
						  r->policy_sha256[0] ? r->policy_sha256 : NULL,
					  .decision = decision,
					  .data = data,
					  .data_count = ARRAY_LEN(data)};

	return audit_append(&p->session.who, &event, 1, AUDIT_SYNC, e);
}

static int decide_and_push(struct push *p, struct err *e)
{
	struct err ignored = {0};

	if (ask(p, e) < 0) {
		if (p->no)
			(void)note(p, "deny", "refused", &ignored);
		return -1;
	}
	if (note(p, "allow", "begun", e) < 0)
		return -1;
	if (remote_push(&p->shop, p->session.rec.remote_url, p->made.commit, p->branch, e) < 0) {
		(void)note(p, "allow", "failed", &ignored);
		return says_no(p);
	}
	p->pushed = true;
	return note(p, "allow", "pushed", e);
}

static int push(struct push *p, const char *id, char **env, struct err *e)
{
	if (need_person(p, e) < 0 || choose_session(id, env, &p->session, e) < 0)
		return -1;
	chosen_tell(&p->session, "push");
	if (find_source(p, e) < 0 || check_branch(p, e) < 0 || check_remote(p, e) < 0 ||
	    find_person(p, e) < 0 || find_paths(p, e) < 0)
		return -1;
	int rc = workshop_open(&p->shop, &p->session, &p->repo, e);
	if (rc == 0)
		rc = look_at_remote(p, e);
	if (rc == 0)
		rc = write_message(p, e);
	if (rc == 0)
		rc = make_commit(p, e);
	for (size_t i = 0; rc == 0 && i < p->policy.check_count; i++)
		rc = run_check(p, i, e);
	if (rc == 0)
		rc = decide_and_push(p, e);
	workshop_close(&p->shop);
	return rc;
}

static int tell(const struct push *p, struct err *e)
{
	AUTO_BUF out = BUF_INIT(MAX_SHOWN_BYTES);
	char url[REPO_URL_TEXT];
	struct json j = JSON_INIT(&out);

	if (!p->o->json) {
		(void)buf_printf(&out, "pushed %s to %s\n", p->made.commit, p->branch);
		return cli_write(STDOUT_FILENO, out.p, out.n, e);
	}
	json_obj_begin(&j);
	json_kv_uint(&j, "version", 1);
	json_kv_str(&j, "session", p->session.id);
	json_kv_bool(&j, "pushed", p->pushed);
	json_key(&j, "remote");
	(void)remote_shown(p->session.rec.remote_url, url, sizeof(url));
	json_text(&j, url, strlen(url));
	json_key(&j, "branch");
	json_text(&j, p->branch, strlen(p->branch));
	json_kv_str(&j, "parent", p->head.parent);
	json_kv_str(&j, "tree", p->made.tree);
	json_kv_str(&j, "commit", p->made.commit);
	json_kv_uint(&j, "checks", p->policy.check_count);
	json_kv_uint(&j, "ignored", p->paths.ignored);
	json_kv_uint(&j, "foreign", p->paths.foreign);
	json_obj_end(&j);
	if (json_finish(&j, ERR_INTERNAL, e) < 0 || buf_char(&out, '\n') < 0)
		return -1;
	return cli_write(STDOUT_FILENO, out.p, out.n, e);
}

/* With --json the error is the document. */
static int fail(const struct push *p, const struct err *e)
{
	AUTO_BUF out = BUF_INIT(65536);
	struct json j = JSON_INIT(&out);
	struct err ignored = {0};

	if (p->o->json) {
		json_obj_begin(&j);
		json_kv_uint(&j, "version", 1);
		json_kv_bool(&j, "pushed", p->pushed);
		json_key(&j, "error");
		json_obj_begin(&j);
		json_kv_str(&j, "code", err_code_name(e->code));
		json_kv_str(&j, "kind", err_kind_name(err_code_kind(e->code)));
		json_kv_str(&j, "message", e->msg);
		json_kv_str(&j, "hint", e->hint[0] ? e->hint : NULL);
		json_obj_end(&j);
		json_obj_end(&j);
		if (json_finish(&j, ERR_INTERNAL, &ignored) == 0 && buf_char(&out, '\n') == 0)
			(void)cli_write(STDOUT_FILENO, out.p, out.n, &ignored);
	}
	return cli_fail(e, p->no ? ANSWER_NO : NOT_DONE);
}

int main_push(int argc, char **argv)
{
	static struct push p;
	struct push_options o = {.json = false};
	struct err e = {0};
	int first = 0;

	p = (struct push){.o = &o,
			  .session = {.dir = -1},
			  .review = {.upper = -1, .masks = -1, .source = -1},
			  .checks = BUF_INIT(65536),
			  .flags = BUF_INIT((size_t)1 << 20)};
	if (opt_parse(push_usage.options, push_usage.option_count, argc, argv, &o, &first, &e) < 0)
		return fail(&p, &e);
	if (o.help)
		return usage_show(&push_usage, NOT_DONE);
	if (argc - first > 1) {
		(void)err_set(&e, ERR_CONFIG_INVALID, "`push` takes one session");
		(void)err_hint(&e, "options come before it");
		return fail(&p, &e);
	}
	int rc = push(&p, first < argc ? argv[first] : NULL, environ, &e);
	if (rc == 0)
		rc = tell(&p, &e);
	int status = rc == 0 ? 0 : fail(&p, &e);
	git_made_release(&p.made);
	commit_paths_release(&p.paths);
	applied_release(&p.applied);
	buf_release(&p.checks);
	buf_release(&p.flags);
	set_release(&p.policy);
	review_close(&p.review);
	chosen_release(&p.session);
	return status;
}

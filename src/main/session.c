/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `session` but exec, and `gc`.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/term.h"
#include "cli/run_options.h"
#include "cli/session_options.h"
#include "cli/verbs.h"
#include "core/sys.h"
#include "main/session_parts.h"
#include "main/verbs.h"
#include "policy/state.h"
#include "review/recover.h"
#include "run/keep.h"
#include "run/session.h"
#include "run/uidlock.h"
#include "session/copy.h"
#include "session/keeper.h"
#include "session/lease.h"
#include "session/make.h"
#include "session/state.h"
#include "session/told.h"
#include "session/usage.h"

#define BENEATH (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)
#define MAX_TEXT ((size_t)1 << 26)
#define MAX_TOLD 10u /* things that were not copied */

static const char *const states[] = {"active", "paused", "ending"};

int session_caller(struct session_caller *c, struct err *e)
{
	return caller_init(&c->who, environ, c->cwd, e);
}

/* The session that a verb's first operand names. */
int session_pick(const struct caller *who, const char *text, struct picked *ret, struct err *e)
{
	struct request req = request_of_nothing();
	struct source src = {.given = false};
	struct err ignored = {0};

	*ret = (struct picked){.dir = -1, .ctl = -1};
	if (strcmp(text, "@last") == 0)
		(void)!source_locate(&req, who, &src, &ignored);
	if (session_find(who, text, src.given ? src.path : NULL, ret->id, e) < 0 ||
	    session_open(who, ret->id, &ret->dir, e) < 0)
		return -1;
	if (session_read(ret->dir, &ret->rec, e) < 0)
		return -1;
	ret->kept = keep_connect(ret->dir, &ret->ctl, &ignored) == 0;
	return 0;
}

void session_let_go(struct picked *p)
{
	session_record_release(&p->rec);
	if (p->dir >= 0)
		(void)close(p->dir);
	if (p->ctl >= 0)
		(void)close(p->ctl);
}

static int put(const struct buf *out)
{
	struct err e = {0};

	if (buf_check(out, "the answer", ERR_INTERNAL, &e) < 0 ||
	    cli_write(STDOUT_FILENO, out->p ? out->p : "", out->n, &e) < 0)
		return cli_fail(&e, 2);
	return 0;
}

/* What is known of one: from its keeper, else from what that has left. */
struct seen {
	const char *state;
	uint64_t lease_ms, most_ms, bytes, inodes;
	uint32_t calls;
};

static void look(struct picked *p, struct seen *ret)
{
	struct keep_request q = {.kind = KEEP_STATUS};
	struct keep_answer a;
	struct err ignored = {0};
	struct usage_of used;
	struct lease l;

	*ret = (struct seen){.state = "unclean"};
	if (p->kept && keep_ask(p->ctl, &q, -1, &a, NULL, &ignored) == 0) {
		*ret = (struct seen){.state = a.state < ARRAY_LEN(states) ? states[a.state] : "?",
				     .lease_ms = a.lease_ms,
				     .most_ms = a.most_ms,
				     .bytes = a.bytes,
				     .inodes = a.inodes,
				     .calls = a.calls};
		return;
	}
	usage_measure(p->dir, NULL, &used);
	ret->bytes = used.bytes;
	ret->inodes = used.inodes;
	if (lease_read(p->dir, &l, &ignored) < 0)
		return;
	int64_t left = l.end_ns / 1000000 - clock_wall_ms();
	ret->lease_ms = left > 0 ? (uint64_t)left : 0;
	if (left <= 0)
		ret->state = "expired";
}

/* Why it is a copy, and what of the source is not in it. */
static void write_copied(const struct picked *p, struct json *o)
{
	AUTO_BUF why = BUF_INIT(MAX_TEXT);
	AUTO_BUF left = BUF_INIT(MAX_TEXT);

	json_key(o, "why_copy");
	if (session_add_file(p->dir, WHY_COPY, &why))
		json_text(o, why.p ? why.p : "", why.n);
	else
		json_nil(o);
	json_key(o, "not_copied");
	json_arr_begin(o);
	if (session_add_file(p->dir, COPY_LEFT, &left))
		for (size_t at = 0; at < left.n; at += strlen(left.p + at) + 1)
			json_text(o, left.p + at + 1, strlen(left.p + at + 1));
	json_arr_end(o);
}

/* On stderr, for the person who has made it. */
static void tell_copied(const struct made *m)
{
	AUTO_BUF left = BUF_INIT(MAX_TEXT);
	AUTO_BUF out = BUF_INIT(MAX_TEXT);
	struct err ignored = {0};
	size_t n = 0;

	if (m->fell_back) {
		(void)buf_str(&out, "sandglass: writes: copy, since there can be no overlay: ");
		(void)term_escape(&out, m->why, strlen(m->why));
		(void)buf_char(&out, '\n');
	}
	(void)session_add_file(m->dir, COPY_LEFT, &left);
	for (size_t at = 0; at < left.n; at += strlen(left.p + at) + 1) {
		if (n++ >= MAX_TOLD)
			continue;
		(void)buf_str(&out, "sandglass: not copied: ");
		(void)term_escape(&out, left.p + at + 1, strlen(left.p + at + 1));
		(void)buf_char(&out, '\n');
	}
	if (n > MAX_TOLD)
		(void)buf_printf(&out, "sandglass: not copied: and %zu more\n", n - MAX_TOLD);
	if (out.n && cli_write(STDERR_FILENO, out.p, out.n, &ignored) < 0)
		return; /* `show` tells it again */
}

static void write_seen(struct picked *p, const struct seen *s, struct json *o)
{
	const struct session_record *r = &p->rec;
	char when[CLOCK_TEXT];

	json_obj_begin(o);
	json_kv_str(o, "id", r->id);
	json_kv_str(o, "name", r->name[0] ? r->name : NULL);
	json_kv_str(o, "state", s->state);
	json_kv_bool(o, "kept", p->kept);
	json_key(o, "source");
	if (r->source[0])
		json_text(o, r->source, strlen(r->source));
	else
		json_nil(o);
	json_kv_str(o, "writes", session_writes_names[r->writes]);
	write_copied(p, o);
	json_key(o, "masked");
	session_masked_json(p->dir, o);
	json_kv_str(o, "created", clock_rfc3339(r->created_ns / 1000000, when));
	json_kv_uint(o, "ttl_ms", r->ttl_ms);
	json_kv_uint(o, "lease_left_ms", s->lease_ms);
	json_kv_uint(o, "lease_most_ms", s->most_ms);
	json_kv_uint(o, "calls", s->calls);
	json_kv_uint(o, "bytes", s->bytes);
	json_kv_uint(o, "inodes", s->inodes);
	json_kv_str(o, "head", r->head[0] ? r->head : NULL);
	json_key(o, "branch");
	if (r->branch[0])
		json_text(o, r->branch, strlen(r->branch));
	else
		json_nil(o);
	json_kv_str(o, "policy_sha256", r->policy_sha256[0] ? r->policy_sha256 : NULL);
	json_key(o, "network");
	session_net_json(p, o);
	session_secrets_json(p, o);
	json_obj_end(o);
}

/* What comes behind the name, whose column is as wide as the longest one needs. */
static void write_row(const struct picked *p, const struct seen *s, struct buf *out)
{
	char left[NUM_TEXT];
	char size[NUM_TEXT];
	uint64_t mib = s->bytes >> 20 << 20;

	(void)buf_printf(out, "%-8s %9s  %8s  %5u  ", s->state,
			 duration_format(s->lease_ms / 1000 * 1000, left),
			 size_format(mib ? mib : s->bytes >> 10 << 10, size), s->calls);
	(void)term_escape(out, p->rec.source[0] ? p->rec.source : "-",
			  strlen(p->rec.source[0] ? p->rec.source : "-"));
	(void)buf_char(out, '\0');
}

int session_each(const struct caller *who, session_item *item, void *self)
{
	char home[PATH_TEXT];
	struct err e = {0};
	int rc = 0;

	if (session_home(who, home, &e) < 0)
		return cli_fail(&e, 2);
	DIR *d = opendir(home);
	for (struct dirent *at = d ? readdir(d) : NULL; at && rc == 0; at = readdir(d)) {
		struct picked p;
		struct err why = {0};
		if (!uuid_valid(at->d_name))
			continue;
		if (session_pick(who, at->d_name, &p, &why) == 0)
			rc = item(self, &p);
		else if (why.code != ERR_NOT_FOUND) /* of another version, or damaged */
			(void)dprintf(STDERR_FILENO,
				      "sandglass: session %s: %s; sandglass session destroy "
				      "--discard %s\n",
				      at->d_name, why.msg, at->d_name);
		session_let_go(&p);
	}
	if (d)
		(void)closedir(d);
	return rc;
}

struct listing {
	bool json;
	struct json o;
	struct buf out;
	struct buf rows; /* of each: beginning of the id, name, the rest, with a NUL each */
	int width;       /* of the longest name */
};

static int list_one(void *self, struct picked *p)
{
	struct listing *l = self;
	struct seen s;

	look(p, &s);
	if (l->json) {
		write_seen(p, &s, &l->o);
		return 0;
	}
	const char *name = p->rec.name[0] ? p->rec.name : "-";
	if ((int)strlen(name) > l->width)
		l->width = (int)strlen(name);
	(void)buf_printf(&l->rows, "%.8s%c%s%c", p->rec.id, '\0', name, '\0');
	write_row(p, &s, &l->rows);
	return 0;
}

static void put_rows(struct listing *l)
{
	(void)buf_printf(&l->out, "%-8s  %-*s  %-8s %9s  %8s  %5s  %s\n", "ID", l->width, "NAME",
			 "STATE", "LEASE", "SIZE", "CALLS", "SOURCE");
	for (size_t at = 0; !l->rows.failed && at < l->rows.n;) {
		const char *id = l->rows.p + at;
		const char *name = id + strlen(id) + 1;
		const char *rest = name + strlen(name) + 1;
		(void)buf_printf(&l->out, "%-8s  %-*s  %s\n", id, l->width, name, rest);
		at = (size_t)(rest - l->rows.p) + strlen(rest) + 1;
	}
}

static int list(const struct session_caller *c, const struct session_options *o, char **operands)
{
	struct listing l = {.json = o->json,
			    .out = BUF_INIT(MAX_TEXT),
			    .rows = BUF_INIT(MAX_TEXT / 2),
			    .width = 16};

	(void)operands;
	l.o = (struct json){.out = &l.out};
	if (o->json)
		json_arr_begin(&l.o);
	int rc = session_each(&c->who, list_one, &l);
	if (!o->json)
		put_rows(&l);
	if (o->json)
		json_arr_end(&l.o);
	if (o->json)
		(void)buf_char(&l.out, '\n');
	if (rc == 0)
		rc = put(&l.out);
	buf_release(&l.rows);
	buf_release(&l.out);
	return rc;
}

static int tell_one(struct picked *p, bool json)
{
	AUTO_BUF out = BUF_INIT(MAX_TEXT);
	struct json o = JSON_INIT(&out);
	char left[NUM_TEXT];
	char when[CLOCK_TEXT];
	struct seen s;

	look(p, &s);
	if (json) {
		write_seen(p, &s, &o);
		(void)buf_char(&out, '\n');
		return put(&out);
	}
	(void)buf_printf(&out, "id       %s\nname     %s\nstate    %s\nsource   ", p->rec.id,
			 p->rec.name[0] ? p->rec.name : "-", s.state);
	(void)term_escape(&out, p->rec.source, strlen(p->rec.source));
	(void)buf_printf(&out, "\nwrites   %s\nmade     %s\nlease    %s left",
			 session_writes_names[p->rec.writes],
			 clock_rfc3339(p->rec.created_ns / 1000000, when),
			 duration_format(s.lease_ms / 1000 * 1000, left));
	(void)buf_printf(&out, ", at most %s\n", duration_format(s.most_ms / 1000 * 1000, left));
	(void)buf_printf(&out, "size     %llu bytes, %llu files\ncalls    %u\n",
			 (unsigned long long)s.bytes, (unsigned long long)s.inodes, s.calls);
	session_net_lines(p, &out);
	session_secrets_lines(p, &out);
	return put(&out);
}

static int show(const struct session_caller *c, const struct session_options *o, char **operands)
{
	struct picked p;
	struct err e = {0};

	int status = session_pick(&c->who, operands[0], &p, &e) < 0 ? cli_fail(&e, 2)
								    : tell_one(&p, o->json);
	session_let_go(&p);
	return status;
}

/* What only the keeper can do; then how the session stands. */
static int ask(const struct session_caller *c, const struct session_options *o, char **operands,
	       struct keep_request *q)
{
	struct keep_answer a;
	struct picked p;
	struct err e = {0};

	int rc = session_pick(&c->who, operands[0], &p, &e);
	if (rc == 0 && !p.kept)
		rc = keep_connect(p.dir, &p.ctl, &e);
	if (rc == 0 && q->kind == KEEP_RENEW && !q->value)
		q->value = p.rec.ttl_ms;
	if (rc == 0)
		rc = keep_ask(p.ctl, q, -1, &a, NULL, &e);
	int status = rc < 0 ? cli_fail(&e, 2) : o->json ? tell_one(&p, true) : 0;
	session_let_go(&p);
	return status;
}

static int renew(const struct session_caller *c, const struct session_options *o, char **operands)
{
	struct keep_request q = {.kind = KEEP_RENEW, .value = o->ttl_ms};

	return ask(c, o, operands, &q);
}

static int pause_it(const struct session_caller *c, const struct session_options *o,
		    char **operands)
{
	struct keep_request q = {.kind = KEEP_PAUSE};

	return ask(c, o, operands, &q);
}

static int resume_it(const struct session_caller *c, const struct session_options *o,
		     char **operands)
{
	struct keep_request q = {.kind = KEEP_RESUME};

	return ask(c, o, operands, &q);
}

static int reset(const struct session_caller *c, const struct session_options *o, char **operands)
{
	struct keep_request q = {.kind = KEEP_RESET};

	return ask(c, o, operands, &q);
}

static int stop(const struct session_caller *c, const struct session_options *o, char **operands)
{
	struct keep_request q = {.kind = KEEP_STOP};

	(void)snprintf(q.call, sizeof(q.call), "%s", operands[1]);
	return ask(c, o, operands, &q);
}

/* Without a keeper nothing runs and nothing is mounted: what is left is files. */
static int destroy_left(const struct session_caller *c, struct picked *p, bool discard,
			struct err *e)
{
	AUTO_FD int lock = -1;

	if (keeper_lock(p->dir, &lock, e) < 0 || review_recover(&c->who, p->dir, &p->rec, e) < 0)
		return -1;
	if (!discard && session_keep_changes(p->rec.id) < 0) {
		(void)err_set(e, ERR_INTERNAL,
			      "its changes could not be kept, so it was not removed");
		return err_hint(e, "sandglass export %.8s says why; --discard throws them away",
				p->rec.id);
	}
	session_told(&c->who, &p->rec, "session.destroy",
		     discard ? "no keeper; changes discarded" : "no keeper");
	keeper_remove(&c->who, p->dir, &p->rec);
	return 0;
}

/* Whether there is anything in the layer that holds changes: a look, not a review. */
static bool holds_something(const struct picked *p)
{
	return file_has_entries(p->dir, "upper") || file_has_entries(p->dir, "copy");
}

/* Where the changes are, or that they are nowhere. */
static int tell_destroyed(const struct session_caller *c, const struct picked *p,
			  const struct session_options *o, bool held)
{
	AUTO_BUF out = BUF_INIT(MAX_TEXT);
	struct json j = JSON_INIT(&out);
	char home[PATH_TEXT];
	char path[PATH_TEXT + UUID_TEXT + 16];
	struct err ignored = {0};

	state_home(&c->who, home);
	(void)snprintf(path, sizeof(path), "%s/artifacts/%s", home, p->rec.id);
	bool kept = access(path, F_OK) == 0;
	if (o->json) {
		json_obj_begin(&j);
		json_kv_str(&j, "id", p->rec.id);
		json_kv_bool(&j, "destroyed", true);
		json_kv_bool(&j, "discarded", o->discard);
		json_key(&j, "artifacts");
		if (kept)
			json_text(&j, path, strlen(path));
		else
			json_nil(&j);
		json_obj_end(&j);
		(void)buf_char(&out, '\n');
		return put(&out);
	}
	if (o->discard && !held)
		return 0;
	if (!o->discard && !kept)
		return 0;
	(void)buf_str(&out,
		      o->discard ? "sandglass: what it held is dropped" : "sandglass: kept in ");
	if (!o->discard)
		(void)term_escape(&out, path, strlen(path));
	(void)buf_char(&out, '\n');
	(void)!cli_write(STDERR_FILENO, out.p, out.n, &ignored);
	return 0;
}

/* Nothing is known of it but its id, in full, and that nobody keeps it. */
static int destroy_unread(const struct session_caller *c, struct picked *p, struct err *e)
{
	memcpy(p->rec.id, p->id, UUID_TEXT);
	return destroy_left(c, p, true, e);
}

static int destroy(const struct session_caller *c, const struct session_options *o, char **operands)
{
	struct keep_request q = {.kind = KEEP_DESTROY, .value = o->discard};
	struct keep_answer a;
	struct picked p;
	struct err e = {0};

	int rc = session_pick(&c->who, operands[0], &p, &e);
	bool held = rc == 0 && p.rec.source[0] && holds_something(&p);
	if (rc == 0 && p.kept)
		rc = keep_ask(p.ctl, &q, -1, &a, NULL, &e);
	else if (rc == 0)
		rc = destroy_left(c, &p, o->discard, &e);
	else if (p.dir >= 0 && o->discard && strcmp(operands[0], p.id) == 0)
		rc = destroy_unread(c, &p, &e);
	int status = rc < 0 ? cli_fail(&e, 2) : tell_destroyed(c, &p, o, held);
	session_let_go(&p);
	return status;
}

static int new (int argc, char **argv)
{
	static struct request req;
	struct session_caller c;
	struct made m;
	struct err e = {0};

	if (session_new_parse(argc, argv, &req, &e) < 0)
		return cli_fail(&e, 2);
	if (req.help)
		return usage_show(&session_new_usage, 2);
	if (session_caller(&c, &e) < 0 || session_make(&req, &c.who, &m, &e) < 0)
		return cli_fail(&e, 2);
	return session_tell_made(&m, req.json);
}

int session_tell_made(struct made *m, bool json)
{
	if (!json)
		tell_copied(m);
	struct picked p = {.dir = m->dir, .ctl = -1, .kept = true, .rec = m->rec};
	int status = 0;
	if (json)
		status = keep_connect(p.dir, &p.ctl, &(struct err){0}) < 0 ? 2 : tell_one(&p, true);
	else
		(void)printf("%s\n", m->rec.id);
	if (p.ctl >= 0)
		(void)close(p.ctl);
	made_release(m);
	return fflush(stdout) ? 2 : status;
}

/* What `run --review` asks for, with all options of `run`. */
int session_new_for_run(int argc, char **argv)
{
	static struct request req;
	struct session_caller c;
	struct made m;
	struct err e = {0};

	if (run_options_parse(argc, argv, &req, &e) < 0)
		return cli_fail(&e, 2);
	req.writes = WRITES_OVERLAY;
	if (session_caller(&c, &e) < 0 || session_make(&req, &c.who, &m, &e) < 0)
		return cli_fail(&e, 2);
	return session_tell_made(&m, false);
}

/* For a session whose keeper was killed, of this boot. Not for people. */
static int keep(const char *id)
{
	struct session_caller c;
	struct picked p;
	struct lease l;
	struct err e = {0};
	struct keeper_fds held = {-1, -1, -1, -1};

	int rc = session_caller(&c, &e) < 0 ? -1 : session_pick(&c.who, id, &p, &e);
	if (rc == 0)
		rc = lease_read(p.dir, &l, &e);
	if (rc == 0 && lease_is_unclean(p.dir))
		rc = err_set(&e, ERR_LEASE_EXPIRED, LEASE_UNCLEAN);
	else if (rc == 0 && l.end_ns / 1000000 <= clock_wall_ms())
		rc = err_set(&e, ERR_LEASE_EXPIRED, "the session's lease is over");
	if (rc == 0 && p.rec.root)
		rc = (held.uid = uidlock_take_this(p.rec.uid, &e)) < 0 ? -1 : 0;
	if (rc == 0)
		rc = keeper_lock(p.dir, &held.lock, &e);
	if (rc == 0)
		rc = keeper_start(&c.who, p.dir, &p.rec, &held, false, &e);
	return rc < 0 ? cli_fail(&e, 2) : 0;
}

static const struct {
	const struct usage *usage;
	int least, most; /* operands */
	const char *takes;
	int (*run)(const struct session_caller *c, const struct session_options *o,
		   char **operands);
} subs[] = {
	{&session_list_usage, 0, 0, "no argument", list},
	{&session_show_usage, 1, 1, "one session", show},
	{&session_calls_usage, 1, 1, "one session", session_calls},
	{&session_logs_usage, 1, 2, "a session and at most one call", session_logs},
	{&session_stop_usage, 2, 2, "a session and a call", stop},
	{&session_net_usage, 1, 1, "one session", session_net},
	{&session_renew_usage, 1, 1, "one session", renew},
	{&session_pause_usage, 1, 1, "one session", pause_it},
	{&session_resume_usage, 1, 1, "one session", resume_it},
	{&session_reset_usage, 1, 1, "one session", reset},
	{&session_destroy_usage, 1, 1, "one session", destroy},
};

static int run_sub(size_t i, int argc, char **argv)
{
	const struct usage *u = subs[i].usage;
	struct session_options o = {.json = false};
	struct session_caller c;
	struct err e = {0};
	int first = 0;

	if (opt_parse(u->options, u->option_count, argc, argv, &o, &first, &e) < 0)
		return cli_fail(&e, 2);
	if (o.help)
		return usage_show(u, 2);
	int given = argc - first;
	if (given < subs[i].least || given > subs[i].most) {
		(void)err_set(&e, ERR_CONFIG_INVALID, "`session %s` takes %s", u->name,
			      subs[i].takes);
		if (given > subs[i].most && subs[i].most && argv[first + subs[i].most][0] == '-')
			(void)err_hint(&e, "options come before the session");
		else if (given && given < subs[i].least)
			(void)err_hint(&e, "`sandglass session calls %.40s` lists them",
				       argv[first]);
		else if (subs[i].least)
			(void)err_hint(&e, "`sandglass session list` has them; @last is the newest "
					   "of this project");
		return cli_fail(&e, 2);
	}
	char *operands[] = {given > 0 ? argv[first] : NULL, given > 1 ? argv[first + 1] : NULL};
	return session_caller(&c, &e) < 0 ? cli_fail(&e, 2) : subs[i].run(&c, &o, operands);
}

int main_session(int argc, char **argv)
{
	if (argc == 0 || strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)
		return usage_show(&session_usage, 2);
	if (strcmp(argv[0], "keep") == 0 && argc == 2)
		return keep(argv[1]);
	if (strcmp(argv[0], "for-run") == 0)
		return session_new_for_run(argc - 1, argv + 1);
	const struct usage *u = usage_sub(&session_usage, argv[0]);
	if (!u)
		return usage_unknown(&session_usage, argv[0]);
	if (u == &session_new_usage)
		return new (argc - 1, argv + 1);
	for (size_t i = 0; i < ARRAY_LEN(subs); i++)
		if (subs[i].usage == u)
			return run_sub(i, argc - 1, argv + 1);
	return usage_show(&session_usage, 2);
}

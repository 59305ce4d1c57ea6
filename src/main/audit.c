/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sandglass audit`: verify, query, tail, export. Only reads.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "audit/place.h"
#include "audit/settings.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/term.h"
#include "chain/filter.h"
#include "chain/log.h"
#include "chain/show.h"
#include "chain/verify.h"
#include "cli/audit_options.h"
#include "cli/verbs.h"
#include "main/session_parts.h"
#include "main/verbs.h"
#include "run/job.h"

#define OUT_BYTES ((size_t)1 << 26)
#define FLUSH_BYTES 65536u
#define TAIL_LINES 10u

/* What every one of the verbs has. */
struct audit {
	const struct audit_options *o;
	struct caller who;
	char cwd[PATH_TEXT];
	char actor[64];
	struct pseudonyms hidden;
	struct filter filter;
	struct chain_log log;
	struct buf out;
	uint64_t strange;        /* lines that are none of the log's */
	uint64_t given;          /* lines that fitted */
	char session[UUID_TEXT]; /* the one that a name means */
};

static int flush(struct audit *a, size_t above, struct err *e)
{
	if (buf_check(&a->out, "a line", ERR_INTERNAL, e) < 0)
		return -1;
	if (a->out.n <= above)
		return 0;
	if (cli_write(STDOUT_FILENO, a->out.p, a->out.n, e) < 0)
		return -1;
	buf_clear(&a->out);
	return 0;
}

/* Each line that fits; `put` gets it whole. */
static int each(struct audit *a,
		void (*put)(struct audit *a, const struct log_line *l, const struct record *r),
		struct err *e)
{
	struct log_line l;
	struct record r;
	int rc = 0;

	while ((rc = chain_log_next(&a->log, &l, e)) > 0) {
		struct err why = {0};
		if (l.torn && l.last_file && !l.too_long)
			break;
		if (record_parse(l.p, l.n, &r, &why) < 0) {
			a->strange++;
			continue;
		}
		if (filter_fits(&a->filter, &r)) {
			put(a, &l, &r);
			a->given++;
		}
		record_release(&r);
		if (flush(a, FLUSH_BYTES, e) < 0)
			return -1;
	}
	return rc < 0 ? -1 : flush(a, 0, e);
}

static void put_text(struct audit *a, const struct log_line *l, const struct record *r)
{
	(void)l;
	show_text(r, &a->out);
}

static void put_line(struct audit *a, const struct log_line *l, const struct record *r)
{
	(void)r;
	(void)buf_add(&a->out, l->p, l->n);
	(void)buf_char(&a->out, '\n');
}

static void put_csv(struct audit *a, const struct log_line *l, const struct record *r)
{
	(void)l;
	show_csv(r, &a->out);
}

/* An element of the one document. */
static void put_element(struct audit *a, const struct log_line *l, const struct record *r)
{
	(void)r;
	if (a->given)
		(void)buf_char(&a->out, ',');
	(void)buf_add(&a->out, l->p, l->n);
}

static int tell_strange(const struct audit *a)
{
	if (a->strange)
		(void)fprintf(stderr,
			      "sandglass: %" PRIu64 " lines are not the log's own: "
			      "see `sandglass audit verify`\n",
			      a->strange);
	return 0;
}

static int query(struct audit *a, struct err *e)
{
	if (a->o->json)
		(void)buf_str(&a->out, "{\"events\":[");
	if (each(a, a->o->json ? put_element : put_text, e) < 0)
		return -1;
	if (a->o->json)
		(void)buf_printf(&a->out, "],\"not_of_the_log\":%" PRIu64 "}\n", a->strange);
	if (flush(a, 0, e) < 0)
		return -1;
	if (!a->o->json && !a->given)
		(void)fprintf(stderr, "sandglass: no line of the log fits\n");
	return a->o->json ? 0 : tell_strange(a);
}

static int export(struct audit *a, struct err *e)
{
	if (a->o->format == AUDIT_FORMAT_CSV)
		show_csv_head(&a->out);
	if (each(a, a->o->format == AUDIT_FORMAT_CSV ? put_csv : put_line, e) < 0)
		return -1;
	return tell_strange(a);
}

/* Until it is ended by a signal. */
static int follow(struct audit *a, struct err *e)
{
	char events[4096] __attribute__((aligned(8)));
	char path[64];

	AUTO_FD int fd = inotify_init1(IN_CLOEXEC);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", a->log.dir);
	if (fd < 0 || inotify_add_watch(fd, path, IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0)
		return err_sys(e, "inotify");
	for (;;) {
		if (chain_log_again(&a->log, e) < 0 || each(a, put_text, e) < 0)
			return -1;
		if (RETRY_EINTR(read(fd, events, sizeof(events))) < 0)
			return err_sys(e, "inotify");
	}
}

static int tail(struct audit *a, struct err *e)
{
	if (chain_log_tail(&a->log, a->o->lines, e) < 0 || each(a, put_text, e) < 0)
		return -1;
	return a->o->follow ? follow(a, e) : tell_strange(a);
}

static int find_heads(const struct audit *a, const char *file, struct chain_heads *ret,
		      struct err *e)
{
	if (!a->o->heads)
		return 0;
	if (!file) {
		if (chain_heads_find(ret, &a->who, e) < 0)
			return -1;
	} else {
		AUTO_FD int fd = open(file, O_RDONLY | O_CLOEXEC);
		char shown[512];
		if (fd < 0)
			return err_sys(e, "%s",
				       term_escape_cut(shown, sizeof(shown), file, strlen(file)));
		if (chain_heads_add(ret, fd, file, e) < 0)
			return -1;
	}
	if (ret->n)
		return 0;
	(void)err_set(e, ERR_NOT_FOUND, "no heads were kept: there is nothing to compare with");
	return err_hint(e, "without --heads the chain alone is looked at");
}

static void verdict_text(const struct verify *v, bool heads, struct buf *out)
{
	if (!v->intact && v->file[0])
		(void)buf_printf(out, "not intact: %s:%" PRIu64 ": seq ", v->file, v->number);
	else if (!v->intact)
		(void)buf_str(out, "not intact: seq ");
	if (!v->intact && v->seq)
		(void)buf_printf(out, "%" PRIu64 ": ", v->seq);
	else if (!v->intact)
		(void)buf_str(out, "unknown: ");
	if (!v->intact) {
		(void)term_escape(out, v->why, strlen(v->why));
		(void)buf_char(out, '\n');
		return;
	}
	if (v->lines)
		(void)buf_printf(out,
				 "intact: %" PRIu64 " lines in %zu files, seq %" PRIu64
				 " to %" PRIu64 ", head %s\n",
				 v->lines, v->files, v->first_seq, v->last_seq, v->hash);
	else
		(void)buf_str(out, "intact: the log is empty\n");
	if (v->swept)
		(void)buf_str(out, "what was before it was deleted by retention\n");
	if (v->torn)
		(void)buf_printf(out,
				 "%" PRIu64 " bytes at its end are of a writer that was killed, "
				 "or still writes\n",
				 v->torn);
	if (heads)
		(void)buf_printf(out, "heads: %zu are in it, %zu are from before it begins\n",
				 v->heads, v->older);
}

static int verdict_json(const struct verify *v, struct buf *out, struct err *e)
{
	struct json o = JSON_INIT(out);

	json_obj_begin(&o);
	json_kv_bool(&o, "intact", v->intact);
	json_kv_uint(&o, "lines", v->lines);
	json_kv_uint(&o, "files", v->files);
	json_kv_uint(&o, "first_seq", v->first_seq);
	json_kv_uint(&o, "last_seq", v->last_seq);
	json_kv_str(&o, "head", v->lines ? v->hash : NULL);
	json_kv_bool(&o, "swept", v->swept);
	json_kv_uint(&o, "torn_bytes", v->torn);
	json_kv_uint(&o, "heads", v->heads);
	json_kv_uint(&o, "heads_older", v->older);
	json_key(&o, "bad");
	if (v->intact) {
		json_nil(&o);
	} else {
		json_obj_begin(&o);
		json_kv_str(&o, "file", v->file[0] ? v->file : NULL);
		json_kv_uint(&o, "line", v->number);
		json_kv_uint(&o, "seq", v->seq);
		json_key(&o, "why");
		json_text(&o, v->why, strlen(v->why));
		json_obj_end(&o);
	}
	json_obj_end(&o);
	(void)buf_char(out, '\n');
	return json_finish(&o, ERR_INTERNAL, e);
}

/* 0, 1 or -1. */
static int verify(struct audit *a, const char *file, struct err *e)
{
	struct chain_heads heads = {.n = 0};
	struct verify v;

	int rc = find_heads(a, file, &heads, e);
	if (rc == 0)
		rc = chain_verify(&a->log, a->o->heads ? &heads : NULL, &v, e);
	chain_heads_release(&heads);
	if (rc < 0)
		return -1;
	if (!a->o->json)
		verdict_text(&v, a->o->heads, &a->out);
	else if (verdict_json(&v, &a->out, e) < 0)
		return -1;
	if (flush(a, 0, e) < 0)
		return -1;
	return v.intact ? 0 : 1;
}

static bool is_decision(const char *word)
{
	return strcmp(word, "allow") == 0 || strcmp(word, "ask") == 0 || strcmp(word, "deny") == 0;
}

/* The newest session of that name in the log; it need not live any more. */
static int find_in_log(struct audit *a, const char *name, struct err *e)
{
	AUTO_CHAIN_LOG log = CHAIN_LOG_NONE;
	struct log_line l;
	struct record r;
	int rc = 0;

	if (chain_log_open(&a->who, &log, e) < 0)
		return -1;
	while ((rc = chain_log_next(&log, &l, e)) > 0) {
		struct err why = {0};
		if (record_parse(l.p, l.n, &r, &why) < 0)
			continue;
		if (filter_begins_session(&r, name) && uuid_valid(r.session))
			memcpy(a->session, r.session, UUID_TEXT);
		record_release(&r);
	}
	return rc;
}

/* A session that lives, by whatever names it; else by its name of then, or the beginning of its id. */
static int find_session(struct audit *a, const char *text, struct err *e)
{
	struct picked p;
	struct err why = {0};
	char shown[128];

	int rc = session_pick(&a->who, text, &p, &why);
	memcpy(a->session, rc == 0 ? p.id : "", rc == 0 ? UUID_TEXT : 1);
	session_let_go(&p);
	if (rc < 0 && text[0] != '@' && find_in_log(a, text, e) < 0)
		return -1;
	if (a->session[0])
		a->filter.session = a->session;
	if (a->session[0] || strspn(text, "0123456789abcdef-") == strlen(text))
		return 0;
	(void)err_set(e, ERR_NOT_FOUND, "--session: no session `%s` lives, or is in the log",
		      term_escape_cut(shown, sizeof(shown), text, strlen(text)));
	return err_hint(e,
			"sandglass session list, or sandglass audit query --event session.create");
}

/* What the options say, checked. */
static int set_filter(struct audit *a, struct err *e)
{
	const struct audit_options *o = a->o;
	int64_t now = clock_wall_ms();

	if (o->decision && !is_decision(o->decision))
		return err_set(e, ERR_CONFIG_INVALID, "`%s` is no decision: allow, ask or deny",
			       o->decision);
	a->filter = (struct filter){.session = o->session,
				    .event = o->event,
				    .decision = o->decision,
				    .host = o->host,
				    .path = o->path,
				    .tool = o->tool,
				    .actor = o->actor};
	if ((o->event && filter_event(o->event, e) < 0) ||
	    (o->session && find_session(a, o->session, e) < 0))
		return -1;
	if ((o->since && filter_when(o->since, now, a->filter.since, e) < 0) ||
	    (o->until && filter_when(o->until, now, a->filter.until, e) < 0))
		return -1;
	struct err ignored = {0};
	a->hidden.home = a->who.home;
	if (pseudonym_key(a->log.dir, false, a->hidden.key, &ignored) == 0)
		a->filter.hidden = &a->hidden;
	return 0;
}

static int run_sub(const struct usage *u, const struct audit_options *o, const char *file)
{
	struct audit a = {.o = o, .log = CHAIN_LOG_NONE, .out = BUF_INIT(OUT_BYTES)};
	struct err e = {0};
	int status = -1;

	if (caller_init(&a.who, environ, a.cwd, &e) == 0 &&
	    chain_log_open(&a.who, &a.log, &e) == 0 && set_filter(&a, &e) == 0)
		status = u == &audit_verify_usage  ? verify(&a, file, &e)
			 : u == &audit_query_usage ? query(&a, &e)
			 : u == &audit_tail_usage  ? tail(&a, &e)
						   : export(&a, &e);
	chain_log_release(&a.log);
	buf_release(&a.out);
	return status < 0 ? cli_fail(&e, 2) : status;
}

int main_audit(int argc, char **argv)
{
	struct audit_options o = {.lines = TAIL_LINES};
	struct err e = {0};
	int first = 0;

	if (argc == 0 || strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)
		return usage_show(&audit_usage, 2);
	const struct usage *u = usage_sub(&audit_usage, argv[0]);
	if (!u)
		return usage_unknown(&audit_usage, argv[0]);
	if (opt_parse(u->options, u->option_count, argc - 1, argv + 1, &o, &first, &e) < 0)
		return cli_fail(&e, 2);
	if (o.help)
		return usage_show(u, 2);
	int given = argc - 1 - first;
	if (given > (u == &audit_verify_usage && o.heads)) {
		(void)err_set(&e, ERR_CONFIG_INVALID, "`audit %s` takes %s", u->name,
			      u == &audit_verify_usage ? "at most one file, with --heads"
						       : "no argument");
		return cli_fail(&e, 2);
	}
	return run_sub(u, &o, given ? argv[1 + first] : NULL);
}

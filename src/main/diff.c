/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sandglass diff`.
 */
#include "main/diff.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/review_options.h"
#include "cli/verbs.h"
#include "policy/source.h"
#include "review/applied.h"
#include "review/gitname.h"
#include "run/beside.h"
#include "run/job.h"
#include "session/lease.h"

#define MAX_JSON_BYTES ((size_t)1 << 30)

static int find_session(const struct caller *who, const char *word, char ret[UUID_TEXT],
			struct err *e)
{
	struct request req = request_of_nothing();
	struct source src;

	if (word && strcmp(word, "@last") != 0)
		return session_find(who, word, NULL, ret, e);
	if (source_locate(&req, who, &src, e) < 0 ||
	    session_find(who, "@last", src.given ? src.path : NULL, ret, e) < 0)
		return -1;
	if (!word)
		(void)dprintf(STDERR_FILENO, "sandglass: session %s (@last)\n", ret);
	return 0;
}

static void count(struct diff *d)
{
	for (size_t i = 0; i < d->c.n; i++) {
		const struct change *c = &d->c.v[i];
		bool file = (c->before.mode && !S_ISDIR(c->before.mode)) ||
			    (c->after.mode && !S_ISDIR(c->after.mode));
		if (!file || c->git || c->masked || d->p.notes[i].renamed_away)
			continue;
		if (d->p.notes[i].rename)
			d->renamed++;
		else if (!c->before.mode || S_ISDIR(c->before.mode))
			d->added++;
		else if (!c->after.mode || S_ISDIR(c->after.mode))
			d->deleted++;
		else
			d->modified++;
	}
}

static unsigned int sink_flags(const struct diff_options *o)
{
	const char *none = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	if (!isatty(STDOUT_FILENO))
		return 0;
	bool plain = o->no_color || (none && none[0]) || (term && strcmp(term, "dumb") == 0);
	return SINK_SAFE | (plain ? 0 : SINK_COLOR);
}

static int show_refs(const struct diff *d, struct sink *out, struct err *e)
{
	AUTO_BUF line = BUF_INIT(4 * MAX_REF_TEXT + 4 * MAX_REF_NAME);

	for (size_t i = 0; i < d->refs.n; i++) {
		const struct ref_move *m = &d->refs.v[i];
		(void)buf_str(&line, "# ref moved, from ");
		(void)gitname_quote(&line, m->was[0] ? m->was : "nothing");
		(void)buf_str(&line, " to ");
		(void)gitname_quote(&line, m->is[0] ? m->is : "nothing");
		(void)buf_str(&line, ": ");
		(void)gitname_quote(&line, m->name);
		(void)buf_char(&line, '\n');
		if (buf_check(&line, "a line", ERR_INTERNAL, e) < 0 ||
		    sink_write(out, line.p, line.n, e) < 0)
			return -1;
		buf_clear(&line);
	}
	return 0;
}

static int show_patch(struct diff *d, struct sink *out, struct err *e)
{
	if ((d->hold.unclean && sink_write(out, UNCLEAN_LINE, sizeof(UNCLEAN_LINE) - 1, e) < 0) ||
	    (d->r.pending[0] && sink_write(out, PENDING_LINE, sizeof(PENDING_LINE) - 1, e) < 0) ||
	    show_refs(d, out, e) < 0 || diff_unseen(d, "# ", out, e) < 0 ||
	    patch_header(&d->p, out, e) < 0)
		return -1;
	hold_end(&d->hold); /* git has all of it: a pager may take its time */
	if (patch_text(&d->p, out, e) < 0)
		return -1;
	return sink_end(out, e);
}

static int show(struct diff *d, const struct diff_options *o, struct err *e)
{
	struct sink out;

	sink_init(&out, STDOUT_FILENO, sink_flags(o));
	if (o->json || o->stat)
		hold_end(&d->hold);
	int rc;
	if (o->json) {
		AUTO_BUF text = BUF_INIT(MAX_JSON_BYTES);
		rc = diff_json(d, &text, e);
		if (rc == 0)
			rc = cli_write(STDOUT_FILENO, buf_cstr(&text), text.n, e);
	} else if (o->stat) {
		rc = diff_stat(d, &out, e);
	} else {
		rc = show_patch(d, &out, e);
	}
	sink_release(&out);
	return rc;
}

static int look(struct diff *d, int session, const struct diff_options *o, struct err *e)
{
	char front[PATH_TEXT];

	if (beside_front(front, e) < 0 || changes_find(&d->r, &d->c, e) < 0)
		return -1;
	d->p = (struct patch){.r = &d->r, .c = &d->c, .sandglass = front, .env = environ};
	int rc = patch_init(&d->p, e);
	if (rc == 0)
		rc = patch_make(&d->p, !o->json && !o->stat, e);
	if (rc == 0)
		rc = refs_find(&d->r, &d->c, &d->refs, e);
	/* What cannot be read of commits keeps nobody from seeing the files. */
	if (rc == 0 &&
	    unseen_find(&d->r, &d->c, d->r.applied, session, &d->unseen, &d->unseen_why) < 0)
		unseen_release(&d->unseen);
	if (rc == 0 && (o->json || o->stat))
		rc = flags_find(&d->r, &d->c, &d->flags, e);
	if (rc == 0) {
		count(d);
		rc = show(d, o, e);
	}
	if (rc == 0)
		rc = patch_end(&d->p, e);
	if (rc == 0)
		rc = o->exit_code && d->c.n ? 1 : 0;
	refs_release(&d->refs);
	flags_release(&d->flags);
	unseen_release(&d->unseen);
	patch_release(&d->p);
	changes_release(&d->c);
	return rc;
}

static int diff(int session, const struct diff_options *o, struct err *e)
{
	struct session_record rec;
	struct applied applied = {.v = NULL};
	struct diff d = {.rec = &rec, .hold = HOLD_NONE};

	if (lease_is_unclean(session))
		(void)dprintf(STDERR_FILENO, "sandglass: " LEASE_UNCLEAN "\n");
	if (session_read(session, &rec, e) < 0)
		return -1;
	int rc = o->at_end ? hold_from_keeper(session, &rec, &d.hold, e)
			   : hold_session(session, &rec, HOLD_READ, &d.hold, e);
	if (rc == 0)
		rc = applied_read(session, &applied, e);
	if (rc == 0)
		rc = review_open(session, &rec, &d.r, e);
	if (rc == 0) {
		d.r.applied = &applied;
		rc = look(&d, session, o, e);
		review_close(&d.r);
	}
	hold_end(&d.hold);
	applied_release(&applied);
	session_record_release(&rec);
	return rc;
}

int main_diff(int argc, char **argv)
{
	struct diff_options o = {.json = false};
	struct caller who;
	char cwd[PATH_TEXT];
	char id[UUID_TEXT];
	struct err e = {0};
	int first = 0;

	if (opt_parse(diff_usage.options, diff_usage.option_count, argc, argv, &o, &first, &e) < 0)
		return cli_fail(&e, 2);
	/* `diff ID --stat` reads as well as `diff --stat ID`. */
	const char *word = first < argc ? argv[first++] : NULL;
	int rest = argc - first;
	if (rest && opt_parse(diff_usage.options, diff_usage.option_count, rest, argv + first, &o,
			      &rest, &e) < 0)
		return cli_fail(&e, 2);
	if (o.help)
		return usage_show(&diff_usage, 2);
	if (first + rest < argc) {
		(void)err_set(&e, ERR_CONFIG_INVALID, "`diff` takes at most one session");
		return cli_fail(&e, 2);
	}
	/* A pager that ends early ends us by write's error; git's pipe must not. */
	(void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	AUTO_FD int session = -1;
	if (caller_init(&who, environ, cwd, &e) < 0 || find_session(&who, word, id, &e) < 0 ||
	    session_open(&who, id, &session, &e) < 0)
		return cli_fail(&e, 2);
	int rc = diff(session, &o, &e);
	return rc < 0 ? cli_fail(&e, 2) : rc;
}

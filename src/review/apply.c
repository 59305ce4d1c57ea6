/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of an apply. Nothing of the source is changed before all of it was
 * decided, compared and written down.
 */
#include "review/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "review/applied.h"
#include "review/merge.h"
#include "review/stage.h"
#include "review/unseen.h"

bool apply_is_conflict(const struct apply *a, size_t i)
{
	return a->choices[i].yes && a->changes.v[i].conflict && a->choices[i].content < 0;
}

static int check_conflicts(struct apply *a, struct err *e)
{
	char text[ERR_MSG_MAX] = "";
	size_t n = 0;

	for (size_t i = 0; i < a->changes.n; i++) {
		if (!apply_is_conflict(a, i) || a->conflicts++ >= APPLY_CONFLICTS_SHOWN)
			continue;
		int len = snprintf(text + n, sizeof(text) - n, "%s%s", n ? ", " : "",
				   a->changes.v[i].path);
		n = len < 0 || (size_t)len >= sizeof(text) - n ? sizeof(text) - 1 : n + (size_t)len;
	}
	if (!a->conflicts)
		return 0;
	(void)err_set(e, ERR_CONFLICT, "%zu path%s changed in the source too: %s", a->conflicts,
		      a->conflicts == 1 ? "" : "s", text);
	return err_hint(e, "nothing was changed; apply the other paths, or all with --merge");
}

static void count(struct apply *a)
{
	for (size_t i = 0; i < a->changes.n; i++) {
		const struct change *ch = &a->changes.v[i];
		if (!a->choices[i].yes)
			continue;
		a->added += !ch->before.mode;
		a->deleted += !ch->after.mode;
		a->modified += ch->before.mode && ch->after.mode;
		a->markers += a->choices[i].merged;
	}
}

static int choose(struct apply *a, struct err *e)
{
	a->choices = choices_new(a->changes.n);
	if (!a->choices)
		return err_set(e, ERR_INTERNAL, "out of memory");
	if (a->name && a->name(a->self, a, e) < 0)
		return -1;
	if (choices_name(&a->changes, a->paths, a->path_count, a->choices, &a->left, e) < 0)
		return -1;
	if (a->pick && a->pick(a->self, a, e) < 0)
		return -1;
	if (choices_complete(&a->changes, a->choices, &a->left, e) < 0)
		return -1;
	if (a->merge && merge_conflicts(a, e) < 0)
		return -1;
	return check_conflicts(a, e);
}

static int write_plan(struct apply *a, struct err *e)
{
	struct err other = {0};

	if (journal_write(&a->journal, false, e) == 0)
		return 0;
	if (journal_end(&a->journal, &other) < 0)
		(void)err_hint(e, "%s", other.msg);
	return -1;
}

/* From the plan on a failure has to be undone. */
static int change_source(struct apply *a, struct err *e)
{
	struct err other = {0};

	if (write_plan(a, e) < 0)
		return -1;
	if (commits_note(&a->journal, &a->commits, e) < 0 || engine_open_up(&a->engine, e) < 0 ||
	    stage_make(&a->engine, &a->review, &a->changes, a->choices, e) < 0 ||
	    engine_sync(&a->engine, e) < 0 || journal_write(&a->journal, true, e) < 0) {
		if (engine_back(&a->engine, &other) < 0)
			(void)err_hint(e, "what it began is undone by the next apply (%s)",
				       other.msg);
		return -1;
	}
	if (engine_forward(&a->engine, e) < 0)
		return -1;
	return engine_finish(&a->engine, e);
}

/* A signal comes through when the source is whole again. */
static int carry_out(struct apply *a, struct err *e)
{
	sigset_t held;
	sigset_t before;

	(void)sigemptyset(&held);
	(void)sigaddset(&held, SIGHUP);
	(void)sigaddset(&held, SIGINT);
	(void)sigaddset(&held, SIGQUIT);
	(void)sigaddset(&held, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &held, &before);
	int rc = change_source(a, e);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return rc;
}

static int apply_open(struct apply *a, int *ret_source, struct err *e)
{
	const struct session_record *rec = a->rec;

	if (owner_init(&a->owner, rec->root, rec->owner_uid, rec->owner_gid, e) < 0 ||
	    review_open(a->session, rec, &a->review, e) < 0)
		return -1;
	*ret_source = a->review.source;
	if (journal_open(a->session, JOURNAL_DIR, &a->journal, e) < 0)
		return -1;
	a->engine = (struct engine){.session = a->session,
				    .upper = rec->root && !a->review.copy ? a->review.upper : -1,
				    .source = *ret_source,
				    .j = &a->journal,
				    .owner = &a->owner,
				    .reader = &a->owner,
				    .base_ns = rec->base_ns,
				    .applied = a->applied};
	if (engine_recover(&a->engine, &a->recovered, e) < 0)
		return -1;
	a->recovered_refs = commits_resume(*ret_source, rec, &a->owner, a->session, &a->journal);
	if (a->recovered_refs && a->recovered == RECOVERED_NOTHING)
		a->recovered = RECOVERED_FORWARD;
	return 0;
}

/* Whoever names paths or picks hunks has not asked for commits. */
static int find_commits(struct apply *a, struct err *e)
{
	bool all = !a->pick;

	for (size_t i = 0; i < a->path_count; i++)
		all = all && !*a->paths[i];
	if (!all)
		return 0;
	if (commits_find(&a->review, &a->changes, a->applied, &a->commits, e) < 0)
		return -1;
	for (size_t i = 0; i < a->commits.n; i++)
		if (a->commits.v[i].conflict) {
			(void)err_set(e, ERR_CONFLICT, "%s was moved in the source too",
				      a->commits.v[i].name);
			return err_hint(e, "nothing was changed; apply paths, without commits");
		}
	return unseen_check_masked(&a->review, &a->changes, &a->commits, a->session, e);
}

int apply_session(struct apply *a, struct err *e)
{
	int source = -1;

	a->review = (struct review){.upper = -1, .masks = -1, .source = -1};
	a->journal.dir = -1;
	a->applied = calloc(1, sizeof(*a->applied));
	if (!a->applied)
		return err_set(e, ERR_INTERNAL, "out of memory");
	if (apply_open(a, &source, e) < 0 || applied_read(a->session, a->applied, e) < 0)
		return -1;
	a->review.applied = a->applied;
	a->review.pending[0] = '\0'; /* it was ended */
	if (changes_find(&a->review, &a->changes, e) < 0 || choose(a, e) < 0 ||
	    find_commits(a, e) < 0 || stage_plan(&a->engine, &a->changes, a->choices, e) < 0)
		return -1;
	count(a);
	if (commits_fetch(&a->review, &a->changes, &a->owner, a->session, &a->commits, e) < 0)
		return -1;
	bool files = a->journal.n;
	if (files ? carry_out(a, e) < 0 : commits_note(&a->journal, &a->commits, e) < 0)
		return -1;
	a->files_done = true;
	if (commits_move(&a->review, &a->owner, a->session, &a->journal, &a->commits, e) == 0)
		return 0;
	return files ? err_wrap(e, "the files were applied, but") : -1;
}

void apply_release(struct apply *a)
{
	choices_free(a->choices, a->changes.n);
	a->choices = NULL;
	changes_release(&a->changes);
	commits_release(&a->commits);
	journal_close(&a->journal);
	free(a->engine.kept_at);
	a->engine.kept_at = NULL;
	if (a->review.source >= 0)
		review_close(&a->review);
	if (a->applied)
		applied_release(a->applied);
	free(a->applied);
	a->applied = NULL;
}

int apply_recover(int session, const struct session_record *rec, enum recovered *ret, struct err *e)
{
	struct owner owner;
	struct journal j;
	struct err gone = {0};
	AUTO_FD int source = -1;
	AUTO_FD int upper = -1;

	*ret = RECOVERED_NOTHING;
	if (faccessat(session, JOURNAL_DIR, F_OK, AT_SYMLINK_NOFOLLOW) < 0 || !rec->source[0])
		return 0;
	if (review_source(rec, &source, &gone) < 0)
		return 0;
	if (owner_init(&owner, rec->root, rec->owner_uid, rec->owner_gid, e) < 0 ||
	    journal_open(session, JOURNAL_DIR, &j, e) < 0)
		return -1;
	if (rec->root && rec->writes == SESSION_OVERLAY)
		upper = openat(session, "upper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct engine en = {.session = session,
			    .source = source,
			    .upper = upper,
			    .j = &j,
			    .owner = &owner,
			    .reader = &owner};
	int rc = engine_recover(&en, ret, e);
	if (rc == 0 && commits_resume(source, rec, &owner, session, &j) &&
	    *ret == RECOVERED_NOTHING)
		*ret = RECOVERED_FORWARD;
	free(en.kept_at);
	journal_close(&j);
	return rc;
}

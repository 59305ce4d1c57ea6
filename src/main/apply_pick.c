/* SPDX-License-Identifier: Apache-2.0 */
#include "main/apply_pick.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/term.h"
#include "cli/verbs.h"
#include "review/hunks.h"
#include "review/sink.h"
#include "review/stage.h"

#define MAX_ANSWER 64

enum answer { YES = 'y', NO = 'n', QUIT = 'q', ALL = 'a', NONE = 'd', HELP = '?' };

static const char help[] = "y - apply it\n"
			   "n - do not apply it\n"
			   "q - quit; neither it nor anything that is left\n"
			   "a - it and all that is left of this file\n"
			   "d - neither it nor anything that is left of this file\n"
			   "? - this text\n";

int apply_pick_check(struct err *e)
{
	if (isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
		return 0;
	(void)err_set(e, ERR_UNSUPPORTED, "apply -p asks a person at a terminal");
	return err_hint(e, "without one, name paths: sandglass apply ID PATH...");
}

static int say(const char *text, size_t n, struct err *e)
{
	return cli_write(STDERR_FILENO, text, n, e);
}

/* The first letter of a line; the end of what is typed is QUIT. */
static enum answer read_answer(void)
{
	char line[MAX_ANSWER] = "";
	char c = 0;

	for (size_t n = 0;;) {
		if (RETRY_EINTR(read(STDIN_FILENO, &c, 1)) <= 0)
			return QUIT;
		if (c == '\n')
			break;
		if (n + 1 < sizeof(line))
			line[n++] = c;
	}
	bool one = line[0] && !line[1];
	return one && strchr("ynqad", line[0]) ? (enum answer)line[0] : HELP;
}

static int ask(const char *question, enum answer *ret, struct err *e)
{
	do {
		AUTO_BUF line = BUF_INIT(4096);
		(void)buf_printf(&line, "%s [y,n,q,a,d,?]? ", question);
		if (say(buf_cstr(&line), line.n, e) < 0)
			return -1;
		*ret = read_answer();
		if (*ret == HELP && say(help, sizeof(help) - 1, e) < 0)
			return -1;
	} while (*ret == HELP);
	return 0;
}

/* Which file comes, whatever its name is. */
static int show_name(const struct change *ch, const char *what, struct err *e)
{
	AUTO_BUF line = BUF_INIT((size_t)1 << 16);

	(void)buf_printf(&line, "%s: ", what);
	(void)term_escape(&line, ch->path, strlen(ch->path));
	(void)buf_str(&line, ch->conflict ? "  (the source changed there too)\n" : "\n");
	return say(buf_cstr(&line), line.n, e);
}

static const char *what_of(const struct change *ch)
{
	return !ch->before.mode                                          ? "new"
	       : !ch->after.mode                                         ? "deleted"
	       : (ch->before.mode & S_IFMT) != (ch->after.mode & S_IFMT) ? "another kind"
	       : S_ISDIR(ch->after.mode)                                 ? "mode of directory"
									 : "changed";
}

static int ask_whole(const struct change *ch, struct choice *x, bool *quit, struct err *e)
{
	enum answer answer = NO;

	if (show_name(ch, what_of(ch), e) < 0 || ask("Apply this change", &answer, e) < 0)
		return -1;
	x->yes = answer == YES || answer == ALL;
	*quit = answer == QUIT;
	return 0;
}

static int show_hunk(const struct hunk *h, struct err *e)
{
	struct sink out;

	sink_init(&out, STDERR_FILENO, SINK_SAFE);
	int rc = sink_write(&out, h->text, h->n, e);
	if (rc == 0)
		rc = sink_end(&out, e);
	sink_release(&out);
	return rc;
}

/* How many of them are taken. */
static int ask_hunks(struct hunks *h, size_t *ret, bool *quit, struct err *e)
{
	enum answer answer = NO;

	for (size_t i = 0; i < h->n; i++) {
		if (answer != ALL && answer != NONE && answer != QUIT &&
		    (show_hunk(&h->v[i], e) < 0 || ask("Apply this hunk", &answer, e) < 0))
			return -1;
		h->v[i].take = answer == YES || answer == ALL;
		*ret += h->v[i].take;
	}
	*quit = answer == QUIT;
	return 0;
}

static int content_of(const struct hunks *h, int before, struct choice *x, struct err *e)
{
	AUTO_BUF out = BUF_INIT(2 * MAX_HUNK_FILE);
	struct stat st;

	if (fstat(before, &st) < 0)
		return err_sys(e, "the source");
	AUTO_FREE char *old = malloc((size_t)st.st_size + 1);
	if (!old || pread(before, old, (size_t)st.st_size, 0) != (ssize_t)st.st_size)
		return err_set(e, ERR_INTERNAL, "the source's file cannot be read");
	AUTO_FD int fd = memfd_create("sandglass-hunks", MFD_CLOEXEC);
	if (hunks_apply(h, old, (size_t)st.st_size, &out, e) < 0)
		return -1;
	if (fd < 0 || (out.n && write(fd, out.p, out.n) != (ssize_t)out.n))
		return err_sys(e, "a file with hunks");
	x->content = TAKE_FD(fd);
	return 0;
}

static int pick_file(struct apply *a, const struct change *ch, struct choice *x, bool *quit,
		     struct err *e)
{
	struct hunks h = {.v = NULL};
	size_t taken = 0;

	owner_enter(&a->owner);
	AUTO_FD int before = change_open(&a->review, &ch->before, e);
	owner_leave(&a->owner);
	AUTO_FD int after = before < 0 ? -1 : stage_content(&a->engine, &a->review, ch, x, e);
	if (after < 0 || hunks_make(before, after, &h, e) < 0)
		return -1;
	int rc = 0;
	if (!h.n) {
		rc = ask_whole(ch, x, quit, e);
	} else {
		rc = show_name(ch, what_of(ch), e);
		if (rc == 0)
			rc = ask_hunks(&h, &taken, quit, e);
		x->yes = rc == 0 && taken;
		/* Of a conflict a person has seen what becomes of the source's own lines. */
		if (rc == 0 && taken && (taken < h.n || ch->conflict))
			rc = content_of(&h, before, x, e);
	}
	hunks_release(&h);
	return rc;
}

/* Goes with something else: a directory with what is in it, what was in one with what replaces that. */
static bool follows(const struct apply *a, size_t i)
{
	const struct changes *c = &a->changes;
	const struct change *ch = &c->v[i];
	size_t from = 0;
	size_t to = 0;
	const struct change *above = choices_above(c, NULL, ch->path, change_replaces_dir);

	if (above) {
		a->choices[i].yes = a->choices[above - c->v].yes;
		return true;
	}
	if (!change_makes_dir(ch) && !change_removes_dir(ch))
		return false;
	choices_below(c, ch->path, &from, &to);
	if (from == to)
		return false;
	a->choices[i].yes = change_removes_dir(ch); /* if nothing of it stays */
	return true;
}

int apply_pick(void *self, struct apply *a, struct err *e)
{
	bool quit = false;

	(void)self;
	for (size_t i = 0; i < a->changes.n; i++) {
		const struct change *ch = &a->changes.v[i];
		struct choice *x = &a->choices[i];
		if (!x->yes)
			continue;
		if (quit) {
			x->yes = false;
			continue;
		}
		if (follows(a, i))
			continue;
		bool file = S_ISREG(ch->before.mode) && S_ISREG(ch->after.mode) &&
			    ch->after.tree == SIDE_UPPER;
		if ((file ? pick_file(a, ch, x, &quit, e) : ask_whole(ch, x, &quit, e)) < 0)
			return err_wrap(e, "%s", ch->path);
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * git never sees the source's or the session's repository: it gets the contents
 * of both sides by `git fast-import` into one that exists for this alone, in a
 * sandbox whose files are memory. No configuration, attributes, hooks or filters
 * of anybody take part.
 */
#include "review/patch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/num.h"
#include "review/gitname.h"

#define COPY_BYTES 65536u
#define MAX_COMMAND (4 * PATH_TEXT + 64)
#define ENTRY_TEXT (PATH_TEXT + 64)

/* What git reads of the caller's is nothing: HOME is the sandbox's own, and empty. */
#define SCRIPT_BEGIN                                                                     \
	"set -e\n"                                                                       \
	"export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_ATTR_NOSYSTEM=1\n" \
	"export GIT_DIR=/sand/tmp/review.git LC_ALL=C\n"                                 \
	"git init -q --bare --template= \"$GIT_DIR\"\n"                                  \
	"git fast-import --quiet --date-format=raw >/dev/null\n"                         \
	"t='-r -M --no-ext-diff --no-textconv --no-color'\n"                             \
	"git diff-tree $t -z --raw --numstat a b\n"                                      \
	"printf '=\\0'\n"
#define SCRIPT_TEXT \
	"git diff-tree $t -p --binary --full-index --src-prefix=a/ --dst-prefix=b/ a b\n"

static bool is_git_type(mode_t mode)
{
	return S_ISREG(mode) || S_ISLNK(mode);
}

static enum patch_why why_not(const struct change *c)
{
	if (c->masked)
		return PATCH_MASKED;
	if (c->git)
		return PATCH_GIT;
	bool any = is_git_type(c->before.mode) || is_git_type(c->after.mode);
	if (!any)
		return S_ISDIR(c->after.mode ? c->after.mode : c->before.mode) ? PATCH_DIRECTORY
									       : PATCH_SPECIAL;
	if (gitname_refused(c->path, S_ISLNK(c->before.mode) || S_ISLNK(c->after.mode)))
		return PATCH_NAME;
	return PATCH_IN;
}

static uint64_t file_size(const struct change_side *s)
{
	return S_ISREG(s->mode) ? s->size : 0;
}

static bool readable(const struct review *r, const struct change_side *s)
{
	struct err ignored = {0};

	if (!S_ISREG(s->mode))
		return true;
	AUTO_FD int fd = change_open(r, s, &ignored);
	return fd >= 0;
}

int patch_init(struct patch *p, struct err *e)
{
	uint64_t bytes = 0;

	p->notes = calloc(p->c->n + 1, sizeof(*p->notes));
	if (!p->notes)
		return err_set(e, ERR_INTERNAL, "out of memory");
	p->in = 0;
	for (size_t i = 0; i < p->c->n; i++) {
		const struct change *c = &p->c->v[i];
		uint64_t before = file_size(&c->before);
		uint64_t after = file_size(&c->after);
		enum patch_why why = why_not(c);
		if (why == PATCH_IN && (before > MAX_PATCH_FILE || after > MAX_PATCH_FILE ||
					before + after > MAX_PATCH_BYTES - bytes))
			why = PATCH_LARGE;
		if (why == PATCH_IN && (!readable(p->r, &c->before) || !readable(p->r, &c->after)))
			why = PATCH_UNREAD;
		if (why == PATCH_IN) {
			bytes += before + after;
			p->in++;
		}
		p->notes[i].why = (uint8_t)why;
	}
	return 0;
}

void patch_release(struct patch *p)
{
	struct err ignored = {0};

	if (p->started)
		(void)gitbox_end(&p->git, true, &ignored);
	p->started = false;
	free(p->notes);
	p->notes = NULL;
}

/* Commands are collected, contents go through as they are. */
struct feed {
	struct patch *p;
	struct buf text;
};

static int send(struct feed *f, struct err *e)
{
	int rc = buf_check(&f->text, "a command to git", ERR_INTERNAL, e);

	if (rc == 0)
		rc = gitbox_write(&f->p->git, buf_cstr(&f->text), f->text.n, e);
	buf_clear(&f->text);
	return rc;
}

/* Exactly `size` bytes: git waits for them. Zeros take the place of what is gone by now. */
static int feed_bytes(struct feed *f, int fd, uint64_t size, bool *shrank, struct err *e)
{
	char bytes[COPY_BYTES];

	while (size) {
		size_t n = size < sizeof(bytes) ? (size_t)size : sizeof(bytes);
		ssize_t some = *shrank ? 0 : RETRY_EINTR(read(fd, bytes, n));
		if (some <= 0) {
			*shrank = true;
			memset(bytes, 0, n);
			some = (ssize_t)n;
		}
		if (gitbox_write(&f->p->git, bytes, (size_t)some, e) < 0)
			return -1;
		size -= (uint64_t)some;
	}
	return 0;
}

static int feed_file(struct feed *f, const struct change_side *s, bool *shrank, struct err *e)
{
	struct err ignored = {0};
	AUTO_FD int fd = change_open(f->p->r, s, &ignored);

	if (fd < 0)
		*shrank = true;
	(void)buf_printf(&f->text, "data %" PRIu64 "\n", s->size);
	if (send(f, e) < 0)
		return -1;
	return feed_bytes(f, fd, s->size, shrank, e);
}

static int feed_link(struct feed *f, const struct change_side *s, bool *shrank, struct err *e)
{
	struct err ignored = {0};
	char target[MAX_LINK_TEXT];
	ssize_t n = change_readlink(f->p->r, s, target, &ignored);

	*shrank = *shrank || n < 0;
	if (n < 0)
		n = 0;
	(void)buf_printf(&f->text, "data %zd\n", n);
	(void)buf_add(&f->text, target, (size_t)n);
	return send(f, e);
}

static int feed_side(struct feed *f, size_t i, const struct change_side *s, struct err *e)
{
	const char *mode = S_ISLNK(s->mode) ? "120000" : s->mode & 0100 ? "100755" : "100644";
	bool shrank = false;

	(void)buf_printf(&f->text, "M %s inline ", mode);
	(void)gitname_quote(&f->text, f->p->c->v[i].path);
	(void)buf_char(&f->text, '\n');
	int rc = S_ISLNK(s->mode) ? feed_link(f, s, &shrank, e) : feed_file(f, s, &shrank, e);
	if (shrank)
		f->p->notes[i].shrank = true;
	(void)buf_char(&f->text, '\n');
	return rc;
}

static void feed_commit(struct feed *f, const char *name, const char *from)
{
	(void)buf_printf(&f->text, "commit refs/heads/%s\ncommitter s <s> 0 +0000\ndata 0\n%s",
			 name, from);
}

/* What was before is taken away first, so that a file can be where a directory was. */
static int feed_after(struct feed *f, struct err *e)
{
	const struct changes *c = f->p->c;

	for (size_t i = 0; i < c->n; i++) {
		if (f->p->notes[i].why != PATCH_IN || !is_git_type(c->v[i].before.mode))
			continue;
		(void)buf_str(&f->text, "D ");
		(void)gitname_quote(&f->text, c->v[i].path);
		(void)buf_char(&f->text, '\n');
		if (send(f, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < c->n; i++) {
		if (f->p->notes[i].why == PATCH_IN && is_git_type(c->v[i].after.mode) &&
		    feed_side(f, i, &c->v[i].after, e) < 0)
			return -1;
	}
	return 0;
}

static int feed(struct patch *p, struct err *e)
{
	struct feed f = {.p = p, .text = BUF_INIT(MAX_COMMAND)};
	int rc = 0;

	(void)buf_str(&f.text, "feature done\n");
	feed_commit(&f, "a", "");
	for (size_t i = 0; i < p->c->n && rc == 0; i++) {
		if (p->notes[i].why == PATCH_IN && is_git_type(p->c->v[i].before.mode))
			rc = feed_side(&f, i, &p->c->v[i].before, e);
	}
	feed_commit(&f, "b", "from refs/heads/a\n");
	if (rc == 0)
		rc = feed_after(&f, e);
	(void)buf_str(&f.text, "done\n");
	if (rc == 0)
		rc = send(&f, e);
	buf_release(&f.text);
	gitbox_written(&p->git);
	return rc;
}

static struct patch_note *note_of(const struct patch *p, const char *path)
{
	const struct change *c = changes_get(p->c, path);

	return c ? &p->notes[c - p->c->v] : NULL;
}

static int unexpected(struct err *e)
{
	return err_set(e, ERR_INTERNAL, "git's list of changes is not as expected");
}

/* ":100644 100644 OID OID R100", then one path or two (git-diff-tree(1), "raw output"). */
static int take_raw(struct patch *p, const char *line, struct err *e)
{
	char one[ENTRY_TEXT];
	char two[ENTRY_TEXT];
	const char *status = strrchr(line, ' ');

	if (!status || gitbox_text(&p->git, one, sizeof(one), e) < 0)
		return status ? -1 : unexpected(e);
	if (status[1] != 'R')
		return 0;
	if (gitbox_text(&p->git, two, sizeof(two), e) < 0)
		return -1;
	struct patch_note *from = note_of(p, one);
	struct patch_note *to = note_of(p, two);
	if (!from || !to)
		return unexpected(e);
	from->renamed_away = true;
	to->rename = true;
	to->from = &p->c->v[from - p->notes];
	return 0;
}

/* "12\t3\tpath", or "12\t3\t", old path, new path; "-" of binaries. */
static int take_numbers(struct patch *p, const char *line, struct err *e)
{
	char path[ENTRY_TEXT];
	struct patch_note n = {.counted = true};
	int at = 0;

	n.binary = strncmp(line, "-\t-\t", 4) == 0;
	if (n.binary)
		at = 4;
	else if (sscanf(line, "%" SCNu64 "\t%" SCNu64 "%n", &n.lines_added, &n.lines_removed,
			&at) != 2 ||
		 line[at++] != '\t')
		return unexpected(e);
	if (line[at])
		(void)snprintf(path, sizeof(path), "%s", line + at);
	else
		for (int names = 0; names < 2; names++) /* the old one, the new one */
			if (gitbox_text(&p->git, path, sizeof(path), e) < 0)
				return -1;
	struct patch_note *to = note_of(p, path);
	if (!to)
		return unexpected(e);
	to->counted = true;
	to->binary = n.binary;
	/* A changed type is a removal and an addition. */
	to->lines_added += n.lines_added;
	to->lines_removed += n.lines_removed;
	return 0;
}

static int take_list(struct patch *p, struct err *e)
{
	char line[ENTRY_TEXT + 64];

	for (;;) {
		if (gitbox_text(&p->git, line, sizeof(line), e) < 0)
			return -1;
		if (strcmp(line, "=") == 0)
			return 0;
		if ((line[0] == ':' ? take_raw(p, line, e) : take_numbers(p, line, e)) < 0)
			return -1;
	}
}

/* What git or the sandbox said tells more than that a pipe broke. */
static int with_git_s_words(struct patch *p, struct err *e)
{
	struct err why = *e;

	p->started = false;
	if (gitbox_end(&p->git, false, e) == 0)
		*e = why;
	return -1;
}

int patch_make(struct patch *p, bool text, struct err *e)
{
	if (!p->in)
		return 0;
	if (gitbox_start(p->sandglass, p->env, text ? SCRIPT_BEGIN SCRIPT_TEXT : SCRIPT_BEGIN,
			 &p->git, e) < 0)
		return -1;
	p->started = true;
	if (feed(p, e) < 0 || take_list(p, e) < 0)
		return with_git_s_words(p, e);
	return 0;
}

int patch_text(struct patch *p, struct sink *out, struct err *e)
{
	char bytes[COPY_BYTES];

	if (!p->started)
		return 0;
	for (;;) {
		ssize_t n = gitbox_read(&p->git, bytes, sizeof(bytes), e);
		if (n < 0)
			return -1;
		if (n == 0)
			return 0;
		if (sink_write(out, bytes, (size_t)n, e) < 0)
			return -1;
	}
}

int patch_end(struct patch *p, struct err *e)
{
	bool started = p->started;

	p->started = false;
	return started ? gitbox_end(&p->git, false, e) : 0;
}

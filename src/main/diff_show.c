/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session's changes as a list for people and as JSON.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/json.h"
#include "base/num.h"
#include "base/term.h"
#include "main/diff.h"

#define MAX_STAT_LINE ((size_t)1 << 16)

static const char *type_word(mode_t mode)
{
	return !mode            ? NULL
	       : S_ISREG(mode)  ? "file"
	       : S_ISDIR(mode)  ? "directory"
	       : S_ISLNK(mode)  ? "symlink"
	       : S_ISFIFO(mode) ? "fifo"
	       : S_ISSOCK(mode) ? "socket"
				: "device";
}

static const char *status_word(const struct change *c, const struct patch_note *n)
{
	return n->rename         ? "renamed"
	       : !c->before.mode ? "added"
	       : !c->after.mode  ? "deleted"
				 : "modified";
}

static const char *const why_words[] = {
	[PATCH_IN] = NULL,         [PATCH_DIRECTORY] = "directory", [PATCH_GIT] = "git",
	[PATCH_MASKED] = "masked", [PATCH_SPECIAL] = "special",     [PATCH_NAME] = "name",
	[PATCH_LARGE] = "large",   [PATCH_UNREAD] = "unreadable",
};

static void json_side(struct json *j, const char *key, const struct change_side *s)
{
	char mode[8];

	json_key(j, key);
	if (!s->mode) {
		json_nil(j);
		return;
	}
	json_obj_begin(j);
	json_kv_str(j, "type", type_word(s->mode));
	(void)snprintf(mode, sizeof(mode), "%04o", s->mode & 07777u);
	json_kv_str(j, "mode", mode);
	json_kv_uint(j, "size", S_ISDIR(s->mode) ? 0 : s->size);
	json_obj_end(j);
}

static void json_path(struct json *j, const char *key, const char *path)
{
	json_key(j, key);
	if (path)
		json_text(j, path, strlen(path));
	else
		json_nil(j);
}

static void json_file(struct json *j, const struct change *c, const struct patch_note *n)
{
	json_obj_begin(j);
	json_path(j, "path", c->path);
	json_kv_str(j, "status", status_word(c, n));
	json_path(j, "from", n->from ? n->from->path : NULL);
	json_side(j, "before", &c->before);
	json_side(j, "after", &c->after);
	json_kv_bool(j, "in_patch", n->why == PATCH_IN);
	json_kv_str(j, "why_not", why_words[n->why]);
	json_kv_bool(j, "masked", c->masked);
	json_kv_bool(j, "git", c->git);
	json_kv_bool(j, "conflict", c->conflict);
	json_key(j, "lines");
	if (n->counted && !n->binary) {
		json_obj_begin(j);
		json_kv_uint(j, "added", n->lines_added);
		json_kv_uint(j, "removed", n->lines_removed);
		json_obj_end(j);
	} else {
		json_nil(j);
	}
	json_obj_end(j);
}

static void json_refs(struct json *j, const struct refs *r)
{
	json_key(j, "refs");
	json_arr_begin(j);
	for (size_t i = 0; i < r->n; i++) {
		json_obj_begin(j);
		json_path(j, "ref", r->v[i].name);
		json_path(j, "old", r->v[i].was[0] ? r->v[i].was : NULL);
		json_path(j, "new", r->v[i].is[0] ? r->v[i].is : NULL);
		json_obj_end(j);
	}
	json_arr_end(j);
	json_kv_uint(j, "more_refs", r->more);
}

static void json_flags(struct json *j, const struct flags *f)
{
	json_key(j, "flagged");
	json_arr_begin(j);
	for (size_t i = 0; i < f->n; i++) {
		json_obj_begin(j);
		json_path(j, "path", f->v[i].change->path);
		json_kv_str(j, "level", flag_level_names[f->v[i].level]);
		json_kv_str(j, "kind", f->v[i].kind);
		json_path(j, "detail", f->v[i].detail[0] ? f->v[i].detail : NULL);
		json_obj_end(j);
	}
	json_arr_end(j);
	json_kv_uint(j, "more_flagged", f->more);
}

static void json_unseen(struct json *j, const struct diff *d)
{
	json_key(j, "commit_only");
	json_arr_begin(j);
	for (size_t i = 0; i < d->unseen.n; i++) {
		json_obj_begin(j);
		json_path(j, "ref", d->unseen.v[i].ref);
		json_path(j, "path", d->unseen.v[i].path);
		json_obj_end(j);
	}
	json_arr_end(j);
	json_kv_uint(j, "more_commit_only", d->unseen.more);
	json_path(j, "commits_unread", d->unseen_why.code ? d->unseen_why.msg : NULL);
}

int diff_json(const struct diff *d, struct buf *out, struct err *e)
{
	struct json j = JSON_INIT(out);

	json_obj_begin(&j);
	json_kv_uint(&j, "version", 1);
	json_kv_str(&j, "session", d->rec->id);
	json_path(&j, "source", d->rec->source);
	json_key(&j, "changes");
	json_obj_begin(&j);
	json_kv_uint(&j, "added", d->added);
	json_kv_uint(&j, "modified", d->modified);
	json_kv_uint(&j, "deleted", d->deleted);
	json_kv_uint(&j, "renamed", d->renamed);
	json_refs(&j, &d->refs);
	json_flags(&j, &d->flags);
	json_unseen(&j, d);
	json_key(&j, "conflicts");
	json_arr_begin(&j);
	for (size_t i = 0; i < d->c.n; i++) {
		if (d->c.v[i].conflict)
			json_text(&j, d->c.v[i].path, strlen(d->c.v[i].path));
	}
	json_arr_end(&j);
	json_kv_bool(&j, "unclean", d->hold.unclean);
	json_kv_bool(&j, "interrupted", d->r.pending[0]);
	json_kv_uint(&j, "too_deep", d->c.deep);
	json_kv_uint(&j, "unreadable", d->c.unread);
	json_obj_end(&j);
	json_key(&j, "files");
	json_arr_begin(&j);
	for (size_t i = 0; i < d->c.n; i++) {
		/* The renamed entry names it. */
		if (!d->p.notes[i].renamed_away)
			json_file(&j, &d->c.v[i], &d->p.notes[i]);
	}
	json_arr_end(&j);
	json_obj_end(&j);
	if (json_finish(&j, ERR_ARG_LIMIT, e) < 0)
		return -1;
	(void)buf_char(out, '\n');
	return buf_check(out, "the list of changes", ERR_ARG_LIMIT, e);
}

/* A path in a line of text: what is unsafe, line ends too, is escaped wherever it goes. */
static void put_path(struct buf *out, const char *path)
{
	(void)term_escape(out, path, strlen(path));
}

static void stat_line(struct buf *out, const struct change *c, const struct patch_note *n)
{
	char size[NUM_TEXT];
	mode_t mode = c->after.mode ? c->after.mode : c->before.mode;
	static const char letters[] = {'A', 'D', 'M'};

	(void)buf_printf(out, " %c ",
			 n->rename ? 'R'
				   : letters[!c->before.mode  ? 0
					     : !c->after.mode ? 1
							      : 2]);
	if (n->from) {
		put_path(out, n->from->path);
		(void)buf_str(out, " -> ");
	}
	put_path(out, c->path);
	if (S_ISDIR(mode))
		(void)buf_char(out, '/');
	else if (!S_ISREG(mode))
		(void)buf_printf(out, " (%s)", type_word(mode));
	if (n->counted && !n->binary && (n->lines_added || n->lines_removed))
		(void)buf_printf(out, "  +%" PRIu64 " -%" PRIu64, n->lines_added, n->lines_removed);
	else if (n->why == PATCH_LARGE || n->binary)
		(void)buf_printf(out, "  binary, %s", size_format(c->after.size, size));
	if (c->before.mode && c->after.mode && !S_ISLNK(c->after.mode) &&
	    (c->before.mode & 07777) != (c->after.mode & 07777))
		(void)buf_printf(out, "  mode %04o to %04o", c->before.mode & 07777u,
				 c->after.mode & 07777u);
	if (n->why > PATCH_DIRECTORY)
		(void)buf_printf(out, "  not in the patch: %s", why_words[n->why]);
	if (c->conflict)
		(void)buf_str(out, "  CONFLICT");
	(void)buf_char(out, '\n');
}

static void stat_ref(struct buf *out, const struct ref_move *m)
{
	(void)buf_str(out, " ref    ");
	put_path(out, m->name);
	(void)buf_str(out, "  ");
	put_path(out, m->was[0] ? m->was : "nothing");
	(void)buf_str(out, " -> ");
	put_path(out, m->is[0] ? m->is : "nothing");
	(void)buf_char(out, '\n');
}

static void stat_flag(struct buf *out, const struct flag *f)
{
	(void)buf_printf(out, " %-6s %-18s ", flag_level_names[f->level], f->kind);
	put_path(out, f->change->path);
	if (f->detail[0])
		(void)buf_printf(out, "  (%s)", f->detail);
	(void)buf_char(out, '\n');
}

int diff_unseen(const struct diff *d, const char *before, struct sink *out, struct err *e)
{
	AUTO_BUF line = BUF_INIT(MAX_STAT_LINE);

	if (d->unseen_why.code) {
		(void)buf_printf(&line,
				 "%sthe session's commits could not be looked into: ", before);
		(void)term_escape(&line, d->unseen_why.msg, strlen(d->unseen_why.msg));
		(void)buf_char(&line, '\n');
	}
	for (size_t i = 0; i < d->unseen.n; i++) {
		(void)buf_printf(&line, "%sin a commit only: ", before);
		put_path(&line, d->unseen.v[i].path);
		(void)buf_str(&line, "  (");
		put_path(&line, d->unseen.v[i].ref);
		(void)buf_str(&line, ")\n");
		if (buf_check(&line, "a line", ERR_INTERNAL, e) < 0 ||
		    sink_write(out, line.p, line.n, e) < 0)
			return -1;
		buf_clear(&line);
	}
	if (d->unseen.more)
		(void)buf_printf(&line, "%sand %zu more in commits only\n", before, d->unseen.more);
	return line.n ? sink_write(out, line.p, line.n, e) : 0;
}

int diff_stat(const struct diff *d, struct sink *out, struct err *e)
{
	AUTO_BUF line = BUF_INIT(MAX_STAT_LINE);
	uint64_t added = 0;
	uint64_t removed = 0;
	uint64_t objects = 0;

	if ((d->hold.unclean && sink_write(out, UNCLEAN_LINE, sizeof(UNCLEAN_LINE) - 1, e) < 0) ||
	    (d->r.pending[0] && sink_write(out, PENDING_LINE, sizeof(PENDING_LINE) - 1, e) < 0))
		return -1;
	for (size_t i = 0; i < d->c.n; i++) {
		added += d->p.notes[i].lines_added;
		removed += d->p.notes[i].lines_removed;
		if (d->p.notes[i].renamed_away)
			continue;
		if (commits_is_of_objects(&d->c.v[i])) {
			objects += S_ISREG(d->c.v[i].after.mode);
			continue;
		}
		stat_line(&line, &d->c.v[i], &d->p.notes[i]);
		if (buf_check(&line, "a line", ERR_INTERNAL, e) < 0 ||
		    sink_write(out, line.p, line.n, e) < 0)
			return -1;
		buf_clear(&line);
	}
	if (objects)
		(void)buf_printf(&line, " A .git/objects  %" PRIu64 " objects or packs of git\n",
				 objects);
	(void)buf_printf(&line,
			 " %" PRIu64 " added, %" PRIu64 " modified, %" PRIu64 " deleted, %" PRIu64
			 " renamed; %" PRIu64 " insertions(+), %" PRIu64 " deletions(-)\n",
			 d->added, d->modified, d->deleted, d->renamed, added, removed);
	for (size_t i = 0; i < d->refs.n; i++) {
		if (sink_write(out, buf_cstr(&line), line.n, e) < 0)
			return -1;
		buf_clear(&line);
		stat_ref(&line, &d->refs.v[i]);
	}
	for (size_t i = 0; i < d->flags.n; i++) {
		if (sink_write(out, buf_cstr(&line), line.n, e) < 0)
			return -1;
		buf_clear(&line);
		stat_flag(&line, &d->flags.v[i]);
		if (buf_check(&line, "a line", ERR_INTERNAL, e) < 0)
			return -1;
	}
	if (d->flags.more)
		(void)buf_printf(&line, " and %zu more to look at\n", d->flags.more);
	if (sink_write(out, buf_cstr(&line), line.n, e) < 0 ||
	    diff_unseen(d, " high   ", out, e) < 0)
		return -1;
	return sink_end(out, e);
}

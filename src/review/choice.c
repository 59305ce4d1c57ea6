/* SPDX-License-Identifier: Apache-2.0 */
#include "review/choice.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/path.h"

struct choice *choices_new(size_t n)
{
	struct choice *v = calloc(n + 1, sizeof(*v));

	for (size_t i = 0; v && i < n; i++)
		v[i].content = -1;
	return v;
}

void choices_free(struct choice *v, size_t n)
{
	for (size_t i = 0; v && i < n; i++)
		base_close_fd(&v[i].content);
	free(v);
}

bool change_makes_dir(const struct change *ch)
{
	return S_ISDIR(ch->after.mode) && !S_ISDIR(ch->before.mode);
}

bool change_replaces_dir(const struct change *ch)
{
	return S_ISDIR(ch->before.mode) && ch->after.mode && !S_ISDIR(ch->after.mode);
}

bool change_removes_dir(const struct change *ch)
{
	return S_ISDIR(ch->before.mode) && !ch->after.mode;
}

static bool is_special(const struct change *ch)
{
	return ch->after.mode && !S_ISREG(ch->after.mode) && !S_ISDIR(ch->after.mode) &&
	       !S_ISLNK(ch->after.mode);
}

/* By a path that ends in "/", and by what sorts behind all such. */
static size_t seek_with(const struct changes *c, const char *path, char end)
{
	char text[PATH_TEXT + 2];
	size_t n = strnlen(path, PATH_TEXT);

	memcpy(text, path, n);
	text[n] = end;
	text[n + 1] = '\0';
	return changes_seek(c, text);
}

void choices_below(const struct changes *c, const char *path, size_t *ret_from, size_t *ret_to)
{
	*ret_from = *path ? seek_with(c, path, '/') : 0;
	*ret_to = *path ? seek_with(c, path, '/' + 1) : c->n;
}

static void note(size_t *count, const char **first, const char *path)
{
	if (!(*count)++)
		*first = path;
}

/* Takes one if it may ever be applied. */
static bool take(const struct change *ch, bool exact, struct choice *x, struct left_out *ret)
{
	if (x->yes)
		return true;
	if (ch->masked)
		note(&ret->masked, &ret->masked_at, ch->path);
	else if (is_special(ch))
		note(&ret->special, &ret->special_at, ch->path);
	else if (ch->git && !exact)
		note(&ret->git, &ret->git_at, ch->path);
	else
		x->yes = true;
	x->exact = exact;
	return x->yes;
}

static int name_one(const struct changes *c, const char *path, struct choice *v,
		    struct left_out *ret, struct err *e)
{
	const struct change *ch = *path ? changes_get(c, path) : NULL;
	size_t from = 0;
	size_t to = 0;
	bool any = ch && take(ch, true, &v[ch - c->v], ret);

	if (ch && ch->masked) {
		(void)err_set(e, ERR_POLICY_DENIED, "a masked path is never applied");
		return err_wrap(e, "%s", path);
	}
	choices_below(c, path, &from, &to);
	for (size_t i = from; i < to; i++)
		any = take(&c->v[i], false, &v[i], ret) || any;
	if (any || !*path)
		return 0;
	(void)err_set(e, ERR_NOT_FOUND, "nothing to apply at %s", path);
	if (from < to && c->v[from].git)
		return err_hint(e, "what lies in a git directory is applied only if named exactly");
	return err_hint(e, "`sandglass diff` shows what there is");
}

int choices_name(const struct changes *c, const char *const *paths, size_t n, struct choice *v,
		 struct left_out *ret, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (name_one(c, paths[i], v, ret, e) < 0)
			return -1;
	return n ? 0 : name_one(c, "", v, ret, e);
}

const struct change *choices_above(const struct changes *c, const struct choice *v,
				   const char *path, bool (*is)(const struct change *ch))
{
	char above[PATH_TEXT];

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		size_t n = (size_t)(slash - path);
		if (n >= sizeof(above))
			return NULL;
		memcpy(above, path, n);
		above[n] = '\0';
		const struct change *ch = changes_get(c, above);
		if (ch && (!v || v[ch - c->v].yes) && is(ch))
			return ch;
	}
	return NULL;
}

/* Every new directory on the way comes along, also where it was not named. */
static int take_way(const struct changes *c, size_t i, struct choice *v, struct err *e)
{
	char above[PATH_TEXT];
	const char *path = c->v[i].path;

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		size_t n = (size_t)(slash - path);
		if (n >= sizeof(above))
			break;
		memcpy(above, path, n);
		above[n] = '\0';
		const struct change *ch = changes_get(c, above);
		if (!ch || !change_makes_dir(ch))
			continue;
		if (ch->masked) {
			(void)err_set(e, ERR_POLICY_DENIED, "it lies in a masked path");
			return err_wrap(e, "%s", path);
		}
		v[ch - c->v].yes = true;
	}
	return 0;
}

static bool all_below(const struct changes *c, const char *path, const struct choice *v,
		      const char **ret_stays)
{
	size_t from = 0;
	size_t to = 0;

	choices_below(c, path, &from, &to);
	for (size_t i = from; i < to; i++) {
		if (c->v[i].before.mode && !v[i].yes) {
			*ret_stays = c->v[i].path;
			return false;
		}
	}
	return true;
}

/* What replaces a directory takes all along that was in it. */
static int take_replaced(const struct changes *c, size_t i, struct choice *v, struct left_out *ret,
			 struct err *e)
{
	const char *stays = NULL;
	size_t from = 0;
	size_t to = 0;

	choices_below(c, c->v[i].path, &from, &to);
	for (size_t k = from; k < to; k++)
		(void)take(&c->v[k], false, &v[k], ret);
	if (all_below(c, c->v[i].path, v, &stays))
		return 0;
	(void)err_set(e, ERR_CONFLICT, "it would take the place of a directory in which %s stays",
		      stays);
	return err_wrap(e, "%s", c->v[i].path);
}

/* What was renamed without being read is still the source's old entry: that must not go alone. */
static int check_renamed(const struct changes *c, size_t i, const struct choice *v, struct err *e)
{
	const struct change_side *after = &c->v[i].after;

	if (v[i].yes || !after->mode || after->tree != SIDE_SOURCE || !after->where)
		return 0;
	const struct change *from = changes_get(c, after->where);
	if (!from || from == &c->v[i] || !v[from - c->v].yes)
		return 0;
	(void)err_set(e, ERR_CONFLICT, "it was renamed to %s, which is not applied with it",
		      c->v[i].path);
	(void)err_wrap(e, "%s", from->path);
	return err_hint(e, "name both");
}

int choices_complete(const struct changes *c, struct choice *v, struct left_out *ret, struct err *e)
{
	const char *stays = NULL;

	for (size_t i = 0; i < c->n; i++) {
		if (v[i].yes && (take_way(c, i, v, e) < 0 || (change_replaces_dir(&c->v[i]) &&
							      take_replaced(c, i, v, ret, e) < 0)))
			return -1;
	}
	/* Deepest first: a directory sorts before what is in it. */
	for (size_t i = c->n; i-- > 0;) {
		if (v[i].yes && change_removes_dir(&c->v[i]) &&
		    !all_below(c, c->v[i].path, v, &stays)) {
			v[i].yes = false;
			note(&ret->kept, &ret->kept_at, c->v[i].path);
		}
	}
	for (size_t i = 0; i < c->n; i++)
		if (check_renamed(c, i, v, e) < 0)
			return -1;
	return 0;
}

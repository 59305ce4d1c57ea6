/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In an overlay, what stands in the upper layer at a path is moved out of it, by one
 * rename, and then removed. A copy is brought back by what apply.c does, the other
 * way round: its journal is another one, and the copy is what is changed.
 */
#include "review/discard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/base.h"
#include "base/path.h"
#include "review/choice.h"
#include "review/engine.h"
#include "review/layer.h"
#include "review/names.h"
#include "review/stage.h"
#include "store/remove.h"

struct discard {
	const struct session_record *rec;
	struct review review;
	struct changes changes;
	struct journal journal;
	const char *const *paths;
	size_t n;
	unsigned int trashed;
};

static int nothing_at(const char *path, struct err *e)
{
	(void)err_set(e, ERR_NOT_FOUND, "nothing to discard at %s", path);
	return err_hint(e, "`sandglass diff` shows what there is");
}

/* How many changes there are at a path and below it. */
static size_t count_at(const struct changes *c, const char *path)
{
	size_t from = 0;
	size_t to = 0;

	choices_below(c, path, &from, &to);
	return to - from + (*path && changes_get(c, path) ? 1 : 0);
}

/* A directory of the upper layer that lets the source's of the same name through. */
static bool is_open(const struct discard *d, int dir)
{
	return layer_opaque(d->review.root, dir, NULL) != OPAQUE_YES &&
	       (!d->review.root || fgetxattr(dir, OP_REDIRECT, NULL, 0) < 0);
}

/* All that the path lies in is such a directory. */
static int check_way(const struct discard *d, const char *path, struct err *e)
{
	char above[PATH_TEXT];

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		size_t n = (size_t)(slash - path);
		if (n >= sizeof(above))
			return err_set(e, ERR_ARG_LIMIT, "a path is too long");
		memcpy(above, path, n);
		above[n] = '\0';
		AUTO_FD int dir = layer_open_upper(d->review.upper, above, O_RDONLY | O_DIRECTORY);
		if (dir < 0 && errno == ENOENT)
			return 0;
		if (dir >= 0 && is_open(d, dir))
			continue;
		(void)err_set(e, ERR_UNSUPPORTED,
			      "the session removed, renamed or replaced %s as a whole", above);
		(void)err_wrap(e, "%s", path);
		return err_hint(e, "discard %s", above);
	}
	return 0;
}

/* Out of the layer by one rename. A directory's owner may have taken all rights away, and we are that. */
static int move_out(struct discard *d, int dir, const char *name, struct err *e)
{
	char trash[64];

	(void)snprintf(trash, sizeof(trash), JOURNAL_TRASH "%u", d->trashed++);
	struct opened parent = open_up(dir, "");
	struct opened self = open_up(dir, name);
	int rc = renameat(dir, name, d->journal.dir, trash);
	int saved = errno;
	if (rc < 0)
		close_up(&self);
	else if (self.fd >= 0)
		(void)close(self.fd);
	close_up(&parent);
	errno = saved;
	return rc < 0 && errno != ENOENT ? err_sys(e, "take out what the session has") : 0;
}

static int discard_path(struct discard *d, const char *path, struct err *e)
{
	char parent[PATH_TEXT] = "";
	const char *slash = strrchr(path, '/');

	if (slash)
		memcpy(parent, path, (size_t)(slash - path));
	parent[slash ? slash - path : 0] = '\0';
	AUTO_FD int dir = layer_open_upper(d->review.upper, parent, O_RDONLY | O_DIRECTORY);
	if (dir < 0)
		return errno == ENOENT ? 0 : err_sys(e, "%s", path);
	return move_out(d, dir, slash ? slash + 1 : path, e);
}

/* All that is in the layer; its top is what the source's is. */
static int discard_all(struct discard *d, struct err *e)
{
	struct stat source;
	struct stat upper;
	int rc = 0;

	AUTO_FD int fd = openat(d->review.upper, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *top = fd < 0 ? NULL : fdopendir(fcntl(fd, F_DUPFD_CLOEXEC, 3));
	if (!top)
		return err_sys(e, "what the session has");
	for (struct dirent *at = readdir(top); at && rc == 0; at = readdir(top))
		if (!path_is_dots(at->d_name))
			rc = move_out(d, fd, at->d_name, e);
	(void)closedir(top);
	if (rc == 0 && fstat(d->review.source, &source) == 0 && fstat(fd, &upper) == 0 &&
	    (source.st_mode & 01777) != (upper.st_mode & 07777) &&
	    fchmod(fd, source.st_mode & 01777) < 0)
		rc = err_sys(e, "what the session has");
	return rc;
}

static int discard_overlay(struct discard *d, struct err *e)
{
	for (size_t i = 0; i < d->n; i++)
		if (*d->paths[i] && check_way(d, d->paths[i], e) < 0)
			return -1;
	for (size_t i = 0; i < d->n; i++)
		if ((*d->paths[i] ? discard_path(d, d->paths[i], e) : discard_all(d, e)) < 0)
			return -1;
	journal_sweep(&d->journal);
	return fsync(d->review.upper) < 0 ? err_sys(e, "what the session has") : 0;
}

/* The same list seen from the other end. */
static void turn_round(struct changes *c)
{
	for (size_t i = 0; i < c->n; i++) {
		struct change_side side = c->v[i].before;
		c->v[i].before = c->v[i].after;
		c->v[i].after = side;
	}
}

static void choose(const struct discard *d, struct choice *v, struct discarded *ret)
{
	for (size_t k = 0; k < d->n; k++) {
		size_t from = 0;
		size_t to = 0;
		const char *path = d->paths[k];
		const struct change *at = *path ? changes_get(&d->changes, path) : NULL;
		choices_below(&d->changes, path, &from, &to);
		if (at)
			v[at - d->changes.v].yes = !at->masked;
		for (size_t i = from; i < to; i++) {
			v[i].yes = !d->changes.v[i].masked;
			ret->masked += d->changes.v[i].masked;
		}
	}
}

static int carry_out(struct discard *d, struct engine *en, const struct choice *v, struct err *e)
{
	struct err other = {0};

	if (stage_plan(en, &d->changes, v, e) < 0)
		return -1;
	if (!d->journal.n)
		return 0;
	if (journal_write(&d->journal, false, e) < 0 || engine_open_up(en, e) < 0 ||
	    stage_make(en, &d->review, &d->changes, v, e) < 0 || engine_sync(en, e) < 0 ||
	    journal_write(&d->journal, true, e) < 0) {
		if (engine_back(en, &other) < 0)
			(void)err_hint(e, "what it began is undone next time (%s)", other.msg);
		return -1;
	}
	return engine_forward(en, e) < 0 ? -1 : engine_finish(en, e);
}

static int discard_copy(struct discard *d, struct engine *en, struct discarded *ret, struct err *e)
{
	struct left_out ignored = {0};
	struct choice *v = choices_new(d->changes.n);

	if (!v)
		return err_set(e, ERR_INTERNAL, "out of memory");
	turn_round(&d->changes);
	choose(d, v, ret);
	int rc = choices_complete(&d->changes, v, &ignored, e);
	if (rc == 0)
		rc = carry_out(d, en, v, e);
	choices_free(v, d->changes.n);
	return rc;
}

static int discard_found(struct discard *d, struct engine *en, struct discarded *ret, struct err *e)
{
	static const char *const everything[] = {""};

	if (!d->n) {
		d->paths = everything;
		d->n = 1;
	}
	for (size_t i = 0; i < d->n; i++) {
		size_t n = count_at(&d->changes, d->paths[i]);
		if (!n && *d->paths[i])
			return nothing_at(d->paths[i], e);
		ret->paths += n;
	}
	return d->review.copy ? discard_copy(d, en, ret, e) : discard_overlay(d, e);
}

int discard_session(int session, const struct session_record *rec, discard_name *name, void *self,
		    struct discarded *ret, struct err *e)
{
	struct discard d = {.rec = rec};
	struct owner owner;
	struct owner writer;
	*ret = (struct discarded){.paths = 0};
	if (owner_init(&owner, rec->root, rec->owner_uid, rec->owner_gid, e) < 0 ||
	    owner_init(&writer, rec->root, rec->uid, rec->gid, e) < 0 ||
	    journal_open(session, JOURNAL_DISCARD, &d.journal, e) < 0)
		return -1;
	if (review_open(session, rec, &d.review, e) < 0) {
		journal_close(&d.journal);
		return -1;
	}
	struct engine en = {.session = -1,
			    .source = d.review.upper,
			    .upper = -1,
			    .j = &d.journal,
			    .owner = &writer,
			    .reader = &owner};
	int rc = engine_recover(&en, &ret->recovered, e);
	if (rc == 0)
		rc = changes_find(&d.review, &d.changes, e);
	if (rc == 0)
		rc = name(self, &d.changes, &d.paths, &d.n, e);
	if (rc == 0)
		rc = discard_found(&d, &en, ret, e);
	free(en.kept_at);
	changes_release(&d.changes);
	review_close(&d.review);
	journal_close(&d.journal);
	return rc;
}

int discard_recover(int session, const struct session_record *rec, enum recovered *ret,
		    struct err *e)
{
	struct owner writer;
	struct journal j;
	AUTO_FD int layer = openat(session, rec->writes == SESSION_COPY ? "copy" : "upper",
				   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	*ret = RECOVERED_NOTHING;
	if (layer < 0 || faccessat(session, JOURNAL_DISCARD, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (owner_init(&writer, rec->root, rec->uid, rec->gid, e) < 0 ||
	    journal_open(session, JOURNAL_DISCARD, &j, e) < 0)
		return -1;
	struct engine en = {.session = -1, .source = layer, .upper = -1, .j = &j, .owner = &writer};
	int rc = engine_recover(&en, ret, e);
	free(en.kept_at);
	journal_close(&j);
	return rc;
}

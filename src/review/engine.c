/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why it is safe: directories are opened beneath the source without following
 * links and looked up again after each exchange; a name of ours is random; what
 * was taken out of a name stays beside it until all others were exchanged too.
 */
#include "review/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/base.h"
#include "review/applied.h"
#include "review/names.h"

/* A link stands where a directory was: what lies in that is ours to clean up, so wait for it. */
#define PATIENT_TRIES 400u
#define FEW_OPS 64 /* up to here, fsync of each; above, one syncfs */

/* An op at work: its directory, its name in it, and its random name there. */
struct spot {
	int dir;
	const char *name;
	char temp[JOURNAL_TEMP];
	struct node cur, waiting; /* what is at the two names */
};

#define AUTO_SPOT __attribute__((cleanup(spot_close))) struct spot

static void spot_close(const struct spot *s)
{
	base_close_fd(&s->dir);
}

static int moved(const struct op *op, struct err *e)
{
	(void)err_set(e, ERR_CONFLICT, "the source changed meanwhile");
	(void)err_wrap(e, "%s", op->path);
	return err_hint(e, "nothing was changed; look at `sandglass diff` and try again");
}

static int failed(const struct op *op, struct err *e)
{
	(void)err_sys(e, "the source");
	return err_wrap(e, "%s", op->path);
}

/* What stands at the op's names now. */
static bool spot_open(const struct engine *en, size_t i, struct spot *ret)
{
	*ret = (struct spot){.dir = -1};
	journal_temp(en->j, i, ret->temp);
	for (unsigned int tries = 0; tries < (en->patient ? PATIENT_TRIES : 1); tries++) {
		ret->dir = beneath_parent(en->source, en->j->ops[i].path, &ret->name);
		if (ret->dir >= 0 || (errno != ELOOP && errno != ENOTDIR))
			break;
		(void)usleep(tries < PATIENT_TRIES / 2 ? 0 : 1000);
	}
	if (ret->dir < 0)
		return false;
	names_settle(ret->dir, ret->temp);
	return node_in(ret->dir, ret->name, &ret->cur) &&
	       node_in(ret->dir, ret->temp, &ret->waiting);
}

/* The directory is still where the path leads to. */
static bool spot_stands(const struct engine *en, const struct op *op, const struct spot *s)
{
	const char *name = NULL;
	struct stat a;
	struct stat b;

	AUTO_FD int again = beneath_parent(en->source, op->path, &name);
	return again >= 0 && fstat(again, &a) == 0 && fstat(s->dir, &b) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static bool is_inside(void *self, int dir, const char *name, const char *path)
{
	const struct op *op = journal_find(self, OP_INSIDE, path);
	struct node n;

	return op && node_in(dir, name, &n) && node_unwritten(&n, &op->old);
}

static bool is_noted(void *self, int dir, const char *name, const char *path)
{
	(void)dir;
	(void)name;
	return journal_find(self, OP_NOTE, path) != NULL;
}

/* What is at `name` is what the plan was made for; a directory with all that is in it. */
static bool is_old(const struct engine *en, const struct op *op, int dir, const char *name)
{
	struct node n;

	if (!node_in(dir, name, &n) || !node_unwritten(&n, &op->old))
		return false;
	return !S_ISDIR(n.mode) || names_walk(dir, name, op->path, is_inside, en->j);
}

static int put_forward(struct engine *en, size_t i, struct err *e)
{
	const struct op *op = &en->j->ops[i];
	AUTO_SPOT s;

	if (!spot_open(en, i, &s))
		return moved(op, e);
	if (node_same(&s.cur, &op->made))
		return 0; /* before a kill */
	if (!node_same(&s.waiting, &op->made) || !node_untouched(&s.cur, &op->old) ||
	    (op->old.mode && !is_old(en, op, s.dir, s.name)))
		return moved(op, e);
	int rc =
		op->old.mode ? names_swap(s.dir, s.temp, s.name) : names_put(s.dir, s.temp, s.name);
	if (rc < 0 && (errno == EEXIST || errno == ENOENT))
		return moved(op, e);
	if (rc < 0)
		return failed(op, e);
	if (op->old.mode && !is_old(en, op, s.dir, s.temp)) {
		/* It came in between the look and the exchange, and goes back to its place. */
		(void)names_swap(s.dir, s.temp, s.name);
		return moved(op, e);
	}
	if (spot_stands(en, op, &s))
		return 0;
	(void)(op->old.mode ? names_swap(s.dir, s.temp, s.name) : names_put(s.dir, s.name, s.temp));
	(void)names_remove(s.dir, s.temp);
	return moved(op, e);
}

static int delete_forward(struct engine *en, size_t i, struct err *e)
{
	const struct op *op = &en->j->ops[i];
	AUTO_SPOT s;

	if (!spot_open(en, i, &s))
		return moved(op, e);
	if (!s.cur.mode && node_same(&s.waiting, &op->old))
		return 0; /* before a kill */
	if (!node_untouched(&s.cur, &op->old))
		return moved(op, e);
	if (renameat(s.dir, s.name, s.dir, s.temp) < 0)
		return errno == ENOENT ? moved(op, e) : failed(op, e);
	if (is_old(en, op, s.dir, s.temp) && spot_stands(en, op, &s))
		return 0;
	(void)names_put(s.dir, s.temp, s.name);
	return moved(op, e);
}

/* All that was taken out is still as it was: nobody wrote into it by an open descriptor. */
static int look_again(struct engine *en, struct err *e)
{
	for (size_t i = 0; i < en->j->n; i++) {
		const struct op *op = &en->j->ops[i];
		AUTO_SPOT s = {.dir = -1};
		if (op->kind != OP_DELETE && (op->kind != OP_PUT || !op->old.mode))
			continue;
		if (!spot_open(en, i, &s) || !is_old(en, op, s.dir, s.temp))
			return moved(op, e);
	}
	return 0;
}

static int exchange_all(struct engine *en, struct err *e)
{
	for (size_t i = 0; i < en->j->n; i++) {
		int rc = en->j->ops[i].kind == OP_PUT      ? put_forward(en, i, e)
			 : en->j->ops[i].kind == OP_DELETE ? delete_forward(en, i, e)
							   : 0;
		if (rc < 0)
			return -1;
	}
	return look_again(en, e);
}

int engine_forward(struct engine *en, struct err *e)
{
	struct err other = {0};

	owner_enter(en->owner);
	int rc = exchange_all(en, e);
	owner_leave(en->owner);
	if (rc == 0 && engine_sync(en, e) == 0 && journal_mark_done(en->j, e) == 0)
		return 0;
	if (journal_mark_back(en->j, &other) < 0 || engine_back(en, &other) < 0)
		(void)err_hint(e, "and it could not be put back (%s); the next apply tries again",
			       other.msg);
	return -1;
}

static void keep(struct engine *en, const char *path)
{
	if (!en->kept++)
		en->kept_at = strdup(path);
}

/* What can be undone there; what became a link or a file on the way stays, and is told. */
static bool open_back(struct engine *en, size_t i, struct spot *ret)
{
	if (spot_open(en, i, ret))
		return true;
	if (errno == ELOOP || errno == ENOTDIR)
		keep(en, en->j->ops[i].path);
	return false;
}

static void put_back(struct engine *en, size_t i)
{
	const struct op *op = &en->j->ops[i];
	AUTO_SPOT s;

	if (!open_back(en, i, &s))
		return;
	bool ours = op->made.mode && node_unwritten(&s.cur, &op->made);
	bool has_old = op->old.mode && node_same(&s.waiting, &op->old);
	if (ours && S_ISDIR(s.cur.mode) && !names_walk(s.dir, s.name, op->path, is_noted, en->j))
		return; /* somebody has put something into it */
	if (ours && has_old) {
		(void)names_swap(s.dir, s.temp, s.name);
	} else if (ours && !op->old.mode) {
		(void)renameat(s.dir, s.name, s.dir, s.temp);
		/* Two names of one file stay both, rename(2). */
		if (node_in(s.dir, s.name, &s.cur) && node_same(&s.cur, &op->made))
			(void)unlinkat(s.dir, s.name, 0);
	} else if (!s.cur.mode && has_old) {
		(void)names_put(s.dir, s.temp, s.name);
	}
	(void)names_remove(s.dir, s.temp);
}

static void delete_back(struct engine *en, size_t i)
{
	const struct op *op = &en->j->ops[i];
	AUTO_SPOT s;

	if (!open_back(en, i, &s))
		return;
	if (!node_same(&s.waiting, &op->old))
		return;
	/* Somebody's new file at the name stays, and then the old one goes as it was to. */
	if (names_put(s.dir, s.temp, s.name) < 0 && errno == EEXIST)
		(void)unlinkat(s.dir, s.temp, 0);
}

/* The directory at the op's path, if it is the one of the plan; else -1. */
static int op_directory(const struct engine *en, const struct op *op, struct stat *ret)
{
	AUTO_FD int fd = beneath_open(en->source, op->path, O_PATH | O_DIRECTORY);

	if (fd < 0 || fstat(fd, ret) < 0)
		return -1;
	struct node n = node_of(ret);
	return node_same(&n, &op->old) ? TAKE_FD(fd) : -1;
}

static int mode_of_op(const struct engine *en, const struct op *op, mode_t mode)
{
	struct stat st;
	AUTO_FD int fd = op_directory(en, op, &st);

	if (fd < 0 || (st.st_mode & 07777) == mode)
		return 0;
	return names_chmod(fd, mode);
}

int engine_open_up(struct engine *en, struct err *e)
{
	int rc = 0;

	owner_enter(en->owner);
	for (size_t i = 0; i < en->j->n && rc == 0; i++) {
		const struct op *op = &en->j->ops[i];
		if (op->kind == OP_MODE && (op->old.mode & 0700) != 0700 &&
		    mode_of_op(en, op, (op->old.mode & 07777) | 0700) < 0)
			rc = failed(op, e);
	}
	owner_leave(en->owner);
	return rc;
}

int engine_back(struct engine *en, struct err *e)
{
	journal_drop_refs(en->j);
	en->patient = true;
	owner_enter(en->owner);
	for (size_t i = en->j->n; i-- > 0;) {
		if (en->j->ops[i].kind == OP_PUT)
			put_back(en, i);
		else if (en->j->ops[i].kind == OP_DELETE)
			delete_back(en, i);
	}
	for (size_t i = en->j->n; i-- > 0;)
		if (en->j->ops[i].kind == OP_MODE)
			(void)mode_of_op(en, &en->j->ops[i], en->j->ops[i].old.mode & 07777);
	owner_leave(en->owner);
	en->patient = false;
	if (engine_sync(en, e) < 0)
		return -1;
	if (!en->kept || en->last)
		return journal_end(en->j, e);
	return err_set(e, ERR_CONFLICT, "a link stands where the directory of %s was",
		       en->kept_at ? en->kept_at : "a file");
}

static void remove_old(struct engine *en)
{
	for (size_t i = 0; i < en->j->n; i++) {
		const struct op *op = &en->j->ops[i];
		AUTO_SPOT s = {.dir = -1};
		if ((op->kind != OP_PUT && op->kind != OP_DELETE) || !spot_open(en, i, &s) ||
		    !s.waiting.mode)
			continue;
		if (!names_remove(s.dir, s.temp))
			keep(en, op->path);
	}
	/* Deepest first: a directory sorts before what is in it. */
	for (size_t i = en->j->n; i-- > 0;) {
		const struct op *op = &en->j->ops[i];
		AUTO_SPOT s = {.dir = -1};
		if (op->kind == OP_RMDIR && spot_open(en, i, &s) && node_same(&s.cur, &op->old) &&
		    unlinkat(s.dir, s.name, AT_REMOVEDIR) < 0)
			keep(en, op->path);
	}
}

static int final_modes(struct engine *en, struct err *e)
{
	for (size_t i = en->j->n; i-- > 0;) {
		const struct op *op = &en->j->ops[i];
		if (op->kind == OP_MODE && mode_of_op(en, op, op->mode) < 0)
			return failed(op, e);
	}
	return 0;
}

/* The identities that are there now, each path once. */
static int note_applied(struct engine *en, struct err *e)
{
	size_t n = 0;
	struct node at;
	AUTO_FREE struct applied_entry *v = calloc(en->j->n + 1, sizeof(*v));

	if (!v)
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (size_t i = 0; i < en->j->n; i++) {
		const char *path = en->j->ops[i].path;
		if (n && strcmp(v[n - 1].path, path) == 0)
			continue;
		if (!node_at(en->source, path, &at))
			continue; /* it is somebody else's by now */
		if (!at.mode) {
			at = en->j->ops[i].old;
			at.ctime_ns = 0;
		}
		v[n++] = (struct applied_entry){.path = path,
						.dev = at.dev,
						.ino = at.ino,
						.ctime_ns = at.ctime_ns};
	}
	return applied_add(en->session, v, n, e);
}

/*
 * A renamed directory of the session leads to the source's old one. Now that the source has it
 * at the new name too, it is to lead there; the old one may be gone.
 */
static void lead_to_new(const struct engine *en)
{
	for (size_t i = 0; en->upper >= 0 && i < en->j->n; i++) {
		const struct op *op = &en->j->ops[i];
		char value = 0;
		if (op->kind != OP_NOTE || op->mode != OP_WHOLE)
			continue;
		AUTO_FD int fd = beneath_open(en->upper, op->path, O_RDONLY | O_DIRECTORY);
		if (fd < 0)
			continue;
		if (fgetxattr(fd, OP_OPAQUE, &value, sizeof(value)) == 1 && value == 'y')
			(void)fremovexattr(fd, OP_OPAQUE);
		(void)fremovexattr(fd, OP_REDIRECT);
	}
}

int engine_finish(struct engine *en, struct err *e)
{
	en->patient = true;
	owner_enter(en->owner);
	remove_old(en);
	en->patient = false;
	int rc = final_modes(en, e);
	owner_leave(en->owner);
	lead_to_new(en);
	if (rc < 0 || (en->session >= 0 && note_applied(en, e) < 0) || engine_sync(en, e) < 0)
		return -1;
	return journal_end(en->j, e);
}

/* A directory that changes, and a file that came into it. */
static int sync_path(const struct engine *en, const struct op *op)
{
	const char *name = NULL;
	AUTO_FD int parent = beneath_parent(en->source, op->path, &name);
	AUTO_FD int dir = parent < 0 ? -1 : openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* One that we may not read is as durable as the file system makes it. */
	return dir >= 0 && fsync(dir) < 0 && errno != EINVAL ? -1 : 0;
}

bool engine_is_few(const struct engine *en)
{
	return en->j->n <= FEW_OPS;
}

int engine_sync(struct engine *en, struct err *e)
{
	if (!engine_is_few(en))
		return syncfs(en->source) < 0 ? err_sys(e, "write the source to its disk") : 0;
	for (size_t i = 0; i < en->j->n; i++)
		if (en->j->ops[i].kind != OP_NOTE && en->j->ops[i].kind != OP_INSIDE &&
		    sync_path(en, &en->j->ops[i]) < 0)
			return failed(&en->j->ops[i], e);
	return 0;
}

int engine_recover(struct engine *en, enum recovered *ret, struct err *e)
{
	*ret = RECOVERED_NOTHING;
	if (journal_read(en->j, e) < 0)
		return -1;
	if (!en->j->n)
		return 0;
	if (!en->j->ready || en->j->back) {
		*ret = RECOVERED_BACK;
		en->last = true;
		return engine_back(en, e);
	}
	*ret = RECOVERED_FORWARD;
	if (!en->j->done && engine_forward(en, e) < 0)
		return -1;
	return engine_finish(en, e);
}

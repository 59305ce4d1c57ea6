/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why it is safe: what is read was opened by review/change.h, and only if the
 * session could read it too; what is written is new (O_EXCL) at a random name,
 * as the owner, in a directory opened beneath the source. No set-id bit, no
 * extended attribute and no capability of a file is copied from the session; a
 * file that is replaced leaves its user attributes and its access list to the new one.
 */
#include "review/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/base.h"
#include "base/nameset.h"
#include "base/path.h"
#include "review/names.h"

/* What is known of a directory: its mode changes, it was looked at. */
enum { SEEN_MODE = 1, SEEN_PARENT = 2 };
#define KEPT_BITS 01777u /* of a mode: no set-id */
#define COPY_BYTES ((size_t)1 << 20)
#define MAX_NAMES_BYTES 65536u /* of a file's attributes that are kept */
#define MAX_VALUE_BYTES 65536u
#define ACCESS_LIST "system.posix_acl_access"

static struct node node_of_side(const struct change_side *s)
{
	return (struct node){
		.mode = s->mode,
		.dev = s->dev,
		.ino = s->ino,
		.size = s->size,
		.mtime_ns = s->mtime_ns,
		.ctime_ns = s->ctime_ns,
	};
}

static struct op op_of(const struct change *ch, enum op_kind kind)
{
	return (struct op){.kind = (uint8_t)kind,
			   .path = ch->path,
			   .old = node_of_side(&ch->before)};
}

static enum op_kind kind_of(const struct changes *c, const struct choice *v,
			    const struct change *ch)
{
	if (choices_above(c, v, ch->path, change_makes_dir))
		return OP_NOTE;
	if (choices_above(c, v, ch->path, change_replaces_dir))
		return OP_INSIDE;
	if (!ch->after.mode)
		return S_ISDIR(ch->before.mode) ? OP_RMDIR : OP_DELETE;
	return S_ISDIR(ch->before.mode) && S_ISDIR(ch->after.mode) ? OP_MODE : OP_PUT;
}

struct known {
	const struct changes *c;
	const struct choice *v;
};

static bool is_known(void *self, int dir, const char *name, const char *path)
{
	const struct known *k = self;
	const struct change *ch = changes_get(k->c, path);

	(void)dir;
	(void)name;
	return ch && k->v[ch - k->c->v].yes;
}

/* A directory is to go: nothing is in it but what goes too. */
static int check_rmdir(const struct engine *en, const struct changes *c, const struct choice *v,
		       const struct change *ch, struct err *e)
{
	struct known k = {.c = c, .v = v};

	if (names_walk(en->source, ch->path, ch->path, is_known, &k))
		return 0;
	(void)err_set(e, ERR_CONFLICT, "it holds what the session did not know of");
	return err_wrap(e, "%s", ch->path);
}

static int no_room(struct err *e)
{
	return err_set(e, ERR_ARG_LIMIT, "more than %u changes", MAX_JOURNAL_OPS);
}

static int add_parent(struct engine *en, const char *path, struct op *op, struct err *e)
{
	char *kept = strdup(path); /* the journal's path must live as long as the changes */

	if (!kept || !journal_keep(en->j, kept)) {
		free(kept);
		return err_set(e, ERR_INTERNAL, "out of memory");
	}
	op->path = kept;
	return journal_add(en->j, op) ? 0 : no_room(e);
}

/* Nobody but us has made, renamed or removed a name in it since the session began. */
static bool is_as_we_left_it(const struct engine *en, const char *path, const struct node *n)
{
	const struct applied_entry *x = en->applied ? applied_find(en->applied, path) : NULL;

	if (!en->applied)
		return false;
	return n->ctime_ns < en->base_ns ||
	       (x && x->dev == n->dev && x->ino == n->ino && x->ctime_ns == n->ctime_ns);
}

/* The directory that names come and go in has to let its owner do that. */
static int open_parent(struct engine *en, struct nameset *seen, const char *path, struct err *e)
{
	char parent[PATH_TEXT];
	uint32_t had = 0;
	struct node n;
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;

	if (len >= sizeof(parent))
		return 0;
	memcpy(parent, len ? path : JOURNAL_TOP, len ? len : 1);
	parent[len ? len : 1] = '\0';
	if (nameset_get(seen, parent, &had) && (had & SEEN_PARENT))
		return 0;
	if (!nameset_put(seen, parent, had | SEEN_PARENT))
		return err_set(e, ERR_INTERNAL, "out of memory");
	if (!node_at(en->source, parent, &n) || !S_ISDIR(n.mode))
		return 0;
	struct op open = {.kind = OP_MODE, .old = n, .mode = n.mode & 07777};
	if (len && (n.mode & 0700) != 0700 && !(had & SEEN_MODE) &&
	    add_parent(en, parent, &open, e) < 0)
		return -1;
	struct op note = {.kind = OP_NOTE, .old = n};
	return is_as_we_left_it(en, parent, &n) ? add_parent(en, parent, &note, e) : 0;
}

/* All that the session changed at the path and below it is chosen. */
static bool is_whole(const struct changes *c, const struct choice *v, const char *path)
{
	const struct change *ch = changes_get(c, path);
	size_t from = 0;
	size_t to = 0;

	if (ch && !v[ch - c->v].yes)
		return false;
	choices_below(c, path, &from, &to);
	while (from < to && v[from].yes)
		from++;
	return from == to;
}

struct redirects {
	struct engine *en;
	const struct changes *c;
	const struct choice *v;
	bool full;
};

static bool add_whole(struct redirects *r, const char *path, size_t n)
{
	char *kept = strndup(path, n);
	struct op op = {.kind = OP_NOTE, .mode = OP_WHOLE, .path = kept};

	if (!kept || !journal_keep(r->en->j, kept)) {
		free(kept);
		return false;
	}
	return journal_add(r->en->j, &op);
}

/* Nothing of the source shows through a directory of that name. */
static bool is_opaque(int upper, const char *path, size_t n)
{
	char value = 0;
	AUTO_FREE char *dir = strndup(path, n);
	AUTO_FD int fd = dir ? beneath_open(upper, dir, O_RDONLY | O_DIRECTORY) : -1;

	return fd >= 0 && fgetxattr(fd, OP_OPAQUE, &value, sizeof(value)) == 1 && value == 'y';
}

/*
 * A directory of the upper layer whose lower part is elsewhere in the source. It is to be
 * found by its own name, for which all that it lies in must be open to the source.
 */
static bool note_redirect(void *self, int dir, const char *name, const char *path)
{
	struct redirects *r = self;
	const char *below = path + 1; /* names_walk() of "" puts a slash before */
	const char *first = NULL;
	AUTO_FD int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || fgetxattr(fd, OP_REDIRECT, NULL, 0) <= 0)
		return true;
	for (const char *s = strchr(below, '/'); s; s = strchr(s + 1, '/'))
		if (!first && is_opaque(r->en->upper, below, (size_t)(s - below)))
			first = s;
	AUTO_FREE char *top = first ? strndup(below, (size_t)(first - below)) : strdup(below);
	if (!top || !is_whole(r->c, r->v, top))
		return true;
	for (const char *s = first; s && !r->full; s = strchr(s + 1, '/'))
		r->full = !add_whole(r, below, (size_t)(s - below));
	r->full = r->full || !add_whole(r, below, strlen(below));
	return !r->full;
}

static int plan_redirects(struct engine *en, const struct changes *c, const struct choice *v,
			  struct err *e)
{
	struct redirects r = {.en = en, .c = c, .v = v};

	/* One that cannot be read now is noted by the next apply. */
	if (en->upper >= 0)
		(void)names_walk(en->upper, "", "", note_redirect, &r);
	journal_sort(en->j);
	return r.full ? no_room(e) : 0;
}

static int plan_all(struct engine *en, const struct changes *c, const struct choice *v,
		    struct err *e)
{
	for (size_t i = 0; i < c->n; i++) {
		if (!v[i].yes)
			continue;
		const struct change *ch = &c->v[i];
		struct op op = op_of(ch, kind_of(c, v, ch));
		if (op.kind == OP_MODE)
			op.mode = (ch->after.mode & KEPT_BITS) | (ch->before.mode & S_ISGID);
		/* What replaces a directory is compared with all that is in it when it is exchanged. */
		if (op.kind == OP_RMDIR && !choices_above(c, v, ch->path, change_removes_dir) &&
		    check_rmdir(en, c, v, ch, e) < 0)
			return -1;
		if (!journal_add(en->j, &op))
			return no_room(e);
	}
	journal_sort(en->j);
	return 0;
}

int stage_plan(struct engine *en, const struct changes *c, const struct choice *v, struct err *e)
{
	struct nameset seen = {.n = 0};

	owner_enter(en->owner);
	int rc = plan_all(en, c, v, e);
	for (size_t i = 0; i < en->j->n && rc == 0; i++)
		if (en->j->ops[i].kind == OP_MODE &&
		    !nameset_put(&seen, en->j->ops[i].path, SEEN_MODE))
			rc = err_set(e, ERR_INTERNAL, "out of memory");
	for (size_t i = 0; i < c->n && rc == 0; i++) {
		if (!v[i].yes || (S_ISDIR(c->v[i].before.mode) && S_ISDIR(c->v[i].after.mode)) ||
		    choices_above(c, v, c->v[i].path, change_makes_dir))
			continue;
		rc = open_parent(en, &seen, c->v[i].path, e);
	}
	owner_leave(en->owner);
	nameset_release(&seen);
	journal_sort(en->j);
	/* What changes nothing in the source changes nothing here either. */
	return rc == 0 && en->j->n ? plan_redirects(en, c, v, e) : rc;
}

/* The session could read it: its own, or open to it. Else a command could have root read for it. */
static bool session_reads(const struct review *r, const struct stat *st)
{
	if (!r->root || st->st_uid == r->rec->uid || (st->st_mode & S_IROTH))
		return true;
	return st->st_gid == r->rec->gid && (st->st_mode & S_IRGRP);
}

/* The content that is to be written. */
int stage_content(const struct engine *en, const struct review *r, const struct change *ch,
		  const struct choice *x, struct err *e)
{
	struct stat st;

	if (x->content >= 0)
		return fcntl(x->content, F_DUPFD_CLOEXEC, 3);
	bool source = ch->after.tree == SIDE_SOURCE;
	if (source)
		owner_enter(en->reader);
	AUTO_FD int fd = change_open(r, &ch->after, e);
	if (source)
		owner_leave(en->reader);
	if (fd < 0)
		return -1;
	if (!source && (fstat(fd, &st) < 0 || !session_reads(r, &st)))
		return err_set(e, ERR_POLICY_DENIED, "the session has it, but could not read it");
	return TAKE_FD(fd);
}

/* n bytes from `at` on, by the kernel where it can. */
static bool copy_range(int from, int to, off_t at, off_t end)
{
	while (at < end) {
		loff_t in = at;
		loff_t out = at;
		size_t want = (size_t)(end - at) < COPY_BYTES ? (size_t)(end - at) : COPY_BYTES;
		ssize_t n = copy_file_range(from, &in, to, &out, want, 0);
		if (n < 0 && errno != EINVAL && errno != EXDEV && errno != EOPNOTSUPP &&
		    errno != ENOSYS && errno != EPERM)
			return false;
		if (n < 0) {
			static char bytes[COPY_BYTES];
			n = pread(from, bytes, want, at);
			if (n > 0)
				n = pwrite(to, bytes, (size_t)n, at);
			if (n < 0)
				return false;
		}
		if (n == 0)
			return true; /* it became shorter: seen by its size afterwards */
		at += n;
	}
	return true;
}

/* With its holes. */
static bool copy_data(int from, int to, off_t size)
{
	if (ioctl(to, FICLONE, from) == 0)
		return true;
	for (off_t at = 0; at < size;) {
		off_t data = lseek(from, at, SEEK_DATA);
		if (data < 0 && errno == ENXIO)
			break;
		off_t hole = data < 0 ? size : lseek(from, data, SEEK_HOLE);
		if (data < 0)
			data = at;
		if (hole < 0 || hole > size)
			hole = size;
		if (!copy_range(from, to, data, hole))
			return false;
		at = hole;
	}
	return ftruncate(to, size) == 0;
}

static bool same_times(const struct stat *a, const struct stat *b)
{
	struct node x = node_of(a);
	struct node y = node_of(b);

	return node_untouched(&x, &y);
}

/* On the disk by itself only if there are few: of many engine_sync() writes all at once. */
/* Attributes of the file that it takes the place of: those that people set, and the access list. */
static int keep_attributes(int dir, const char *old, int to, struct err *e)
{
	static char names[MAX_NAMES_BYTES];
	static char value[MAX_VALUE_BYTES];
	struct stat st;

	if (!old || fstatat(dir, old, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return 0;
	AUTO_FD int fd = openat(dir, old, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : flistxattr(fd, names, sizeof(names));
	if (n < 0 && errno != ENOTSUP)
		return err_sys(e, "the attributes of the file that is replaced");
	for (const char *at = names; n > 0 && at < names + n; at += strlen(at) + 1) {
		if (strncmp(at, "user.", 5) != 0 && strcmp(at, ACCESS_LIST) != 0)
			continue;
		ssize_t len = fgetxattr(fd, at, value, sizeof(value));
		if (len < 0 || (fsetxattr(to, at, value, (size_t)len, 0) < 0 && errno != ENOTSUP))
			return err_sys(e, "keep the attribute %s", at);
	}
	return 0;
}

static int write_file(int dir, const char *const names[2], int from, const struct change *ch,
		      gid_t gid, bool few, struct err *e)
{
	struct stat before;
	struct stat after;
	struct stat st;

	AUTO_FD int to =
		openat(dir, names[0], O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0 || fstat(from, &before) < 0 || fstat(to, &st) < 0)
		return err_sys(e, "make a file");
	if (!copy_data(from, to, before.st_size))
		return err_sys(e, "write a file");
	if (fstat(from, &after) < 0 || !same_times(&before, &after))
		return err_set(e, ERR_CONFLICT, "the session writes to it right now");
	/* A group that the old file has stays if its owner may give it; before the mode, which it clears. */
	if (gid != (gid_t)-1 && gid != st.st_gid)
		(void)fchown(to, (uid_t)-1, gid);
	/* Before the mode, whose group bits bound the list. */
	if (keep_attributes(dir, names[1], to, e) < 0)
		return -1;
	if (fchmod(to, ch->after.mode & KEPT_BITS) < 0 || (few && fsync(to) < 0))
		return err_sys(e, "write a file");
	return 0;
}

static int make_link(const struct review *r, int dir, const char *name, const struct change *ch,
		     const struct owner *owner, struct err *e)
{
	char target[MAX_LINK_TEXT];

	if (change_readlink(r, &ch->after, target, e) < 0)
		return -1;
	owner_enter(owner);
	int rc = symlinkat(target, dir, name);
	owner_leave(owner);
	return rc < 0 ? err_sys(e, "make a link") : 0;
}

static gid_t group_of(int dir, const char *old)
{
	struct stat st;

	return old && fstatat(dir, old, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)
		       ? st.st_gid
		       : (gid_t)-1;
}

/* One entry at `name` of an open directory; `old` is the name that it is for there, NULL: that one. */
static int make_entry(const struct engine *en, const struct review *r, const struct change *ch,
		      const struct choice *x, int dir, const char *const names[2], struct err *e)
{
	if (S_ISLNK(ch->after.mode))
		return make_link(r, dir, names[0], ch, en->owner, e);
	if (S_ISDIR(ch->after.mode)) {
		owner_enter(en->owner);
		int rc = mkdirat(dir, names[0], 0700);
		owner_leave(en->owner);
		return rc < 0 ? err_sys(e, "make a directory") : 0;
	}
	AUTO_FD int from = stage_content(en, r, ch, x, e);
	if (from < 0)
		return -1;
	owner_enter(en->owner);
	int rc = write_file(dir, names, from, ch, group_of(dir, names[1]), engine_is_few(en), e);
	owner_leave(en->owner);
	return rc;
}

/* A new directory keeps the set-group bit that its parent gives it here: that is not the session's. */
static int set_mode(int top, const char *path, mode_t mode)
{
	struct stat st;
	AUTO_FD int fd = beneath_open(top, path, O_PATH | O_DIRECTORY);

	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	return names_chmod(fd, (mode & KEPT_BITS) | (st.st_mode & S_ISGID));
}

/* A new directory, at `temp` of `dir`, with all that was chosen in it. */
static int make_tree(const struct engine *en, const struct review *r, const struct changes *c,
		     const struct choice *v, const struct change *ch, int top, struct err *e)
{
	size_t from = 0;
	size_t to = 0;
	size_t skip = strlen(ch->path) + 1;
	int rc = 0;

	choices_below(c, ch->path, &from, &to);
	for (size_t i = from; i < to; i++) {
		const char *names[2] = {NULL, NULL};
		if (!v[i].yes || !c->v[i].after.mode)
			continue;
		owner_enter(en->owner);
		AUTO_FD int dir = beneath_parent(top, c->v[i].path + skip, &names[0]);
		owner_leave(en->owner);
		rc = dir < 0 ? err_sys(e, "a new directory")
			     : make_entry(en, r, &c->v[i], &v[i], dir, names, e);
		if (rc < 0)
			return err_wrap(e, "%s", c->v[i].path);
	}
	owner_enter(en->owner);
	for (size_t i = to; i-- > from && rc == 0;)
		if (v[i].yes && S_ISDIR(c->v[i].after.mode))
			rc = set_mode(top, c->v[i].path + skip, c->v[i].after.mode);
	if (rc == 0)
		rc = set_mode(top, "", ch->after.mode);
	owner_leave(en->owner);
	return rc < 0 ? err_sys(e, "the mode of a directory") : 0;
}

static int make_one(struct engine *en, const struct review *r, const struct changes *c,
		    const struct choice *v, size_t i, struct err *e)
{
	struct op *op = &en->j->ops[i];
	const struct change *ch = changes_get(c, op->path);
	char temp[JOURNAL_TEMP];
	const char *names[2] = {temp, NULL};
	int rc = 0;

	journal_temp(en->j, i, temp);
	owner_enter(en->owner);
	AUTO_FD int dir = beneath_parent(en->source, op->path, &names[1]);
	owner_leave(en->owner);
	if (dir < 0 || !ch)
		return err_sys(e, "the source");
	if (make_entry(en, r, ch, &v[ch - c->v], dir, names, e) < 0)
		return -1;
	owner_enter(en->owner);
	AUTO_FD int top =
		S_ISDIR(ch->after.mode) ? beneath_open(dir, temp, O_PATH | O_DIRECTORY) : -1;
	owner_leave(en->owner);
	if (S_ISDIR(ch->after.mode))
		rc = top < 0 ? err_sys(e, "a new directory") : make_tree(en, r, c, v, ch, top, e);
	if (rc == 0 && !node_in(dir, temp, &op->made))
		rc = err_sys(e, "a new file");
	return rc;
}

/* Signals are held back while something is under way; this one waits. */
static bool told_to_stop(void)
{
	static const int told[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
	sigset_t waiting;
	bool any = false;

	if (sigpending(&waiting) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(told); i++)
		any = any || sigismember(&waiting, told[i]) == 1;
	return any;
}

int stage_make(struct engine *en, const struct review *r, const struct changes *c,
	       const struct choice *v, struct err *e)
{
	for (size_t i = 0; i < en->j->n; i++) {
		if (told_to_stop())
			return err_set(e, ERR_CANCELLED, "told to stop by a signal");
		if (en->j->ops[i].kind == OP_PUT && make_one(en, r, c, v, i, e) < 0)
			return err_wrap(e, "%s", en->j->ops[i].path);
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Begin and end. What existed when the call began is trusted; everything at a
 * protected name that has come since is judged, and moved unless it may stay.
 * Should this process be killed, the next start over the same place makes up for
 * the end: a counter of calls that began says so, and the inventory that was
 * saved before.
 */
#include "run/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "run/guard_parts.h"

#define TICK_NS 20000000 /* file systems take the time of the last tick */
#define KILLED_NS 200000000

void guard_lose(struct guard *g, const char *what)
{
	for (size_t i = 0; i < g->lost_count; i++)
		if (strcmp(g->lost[i], what) == 0)
			return;
	if (g->lost_count < ARRAY_LEN(g->lost))
		g->lost[g->lost_count++] = what;
}

const char *guard_lost(const struct guard *g, size_t i)
{
	return i < g->lost_count ? g->lost[i] : NULL;
}

const char *guard_shown(const struct guard *g, const char *path)
{
	if (g->src->given && path_is_below(g->src->path, path) && strcmp(g->src->path, path) != 0)
		return path + strlen(g->src->path) + 1;
	return path;
}

const char *guard_as_option(const struct guard *g, const char *path)
{
	const char *cwd = g->who->cwd;

	return cwd && g->src->given && strcmp(cwd, g->src->path) == 0 ? guard_shown(g, path) : path;
}

void guard_tell(struct guard *g, const char *path, enum guard_action action, const char *why,
		const char *moved_to)
{
	AUTO_BUF restore = BUF_INIT(65536);

	for (size_t i = 0; i < g->flag_count && !moved_to; i++)
		if (g->flags[i].action == action &&
		    strcmp(g->flags[i].path, guard_shown(g, path)) == 0)
			return; /* told already */
	struct guard_flag *more = realloc(g->flags, (g->flag_count + 1) * sizeof(*more));

	if (!more)
		return;
	g->flags = more;
	struct guard_flag *f = &g->flags[g->flag_count++];
	*f = (struct guard_flag){.path = strdup(guard_shown(g, path)), .action = action};
	(void)snprintf(f->why, sizeof(f->why), "%s", why);
	if (!moved_to)
		return;
	quarantine_restore(&restore, moved_to, path);
	f->moved_to = strdup(moved_to);
	f->restore = buf_take(&restore);
}

void guard_deny(struct guard *g, const char *path, const char *hint, unsigned int count)
{
	struct guard_denial *more = realloc(g->denials, (g->denial_count + 1) * sizeof(*more));

	if (!more)
		return;
	g->denials = more;
	g->denials[g->denial_count++] =
		(struct guard_denial){.op = "write",
				      .rule = "protected",
				      .target = strdup(guard_shown(g, path)),
				      .hint = strdup(hint),
				      .count = count};
}

size_t guard_flags(const struct guard *g, const struct guard_flag **ret)
{
	*ret = g->flags;
	return g->flag_count;
}

size_t guard_denials(const struct guard *g, const struct guard_denial **ret)
{
	*ret = g->denials;
	return g->denial_count;
}

void guard_identity(char ret[40], uint64_t dev, uint64_t ino)
{
	(void)snprintf(ret, 40, "%llx:%llx", (unsigned long long)dev, (unsigned long long)ino);
}

/*
 * A grant of a path lifts that path. One of a protected directory (`.git`,
 * `.vscode`) lifts what lies in it too; one of an ordinary directory does not.
 */
bool guard_is_lifted(const struct guard *g, const char *path)
{
	static const struct protect_dir tree = {.place = PLACE_TREE, .role = ROLE_NONE};
	static const struct protect_dir git = {.place = PLACE_GIT, .role = ROLE_GITDIR};

	for (size_t i = 0; i < g->view->grant_count; i++) {
		const struct grant *gr = &g->view->grants[i];
		if (!gr->write || gr->linked)
			continue;
		if (strcmp(gr->path, path) == 0)
			return true;
		const char *name = strrchr(gr->path, '/');
		if (name && path_is_below(gr->path, path) &&
		    (protect_name(tree, "", name + 1) != PROTECT_NONE ||
		     (strcmp(name + 1, "hooks") == 0 &&
		      protect_name(git, "", name + 1) != PROTECT_NONE &&
		      nameset_get(&g->known, gr->path, NULL))))
			return true;
	}
	return false;
}

struct guard_root *guard_root_of(struct guard *g, const char *path)
{
	struct guard_root *best = NULL;

	for (size_t i = 0; i < g->root_count; i++)
		if (path_is_below(g->roots[i].path, path) &&
		    (!best || strlen(g->roots[i].path) > strlen(best->path)))
			best = &g->roots[i];
	return best;
}

/* A command can take its owner's, our, right to enter a directory away. */
static void let_in(struct guard *g, int fd)
{
	char self[64];
	struct stat st;

	if (fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 0100) ||
	    g->opened_count == MAX_GUARD_OPENED)
		return;
	int keep = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (keep < 0)
		return;
	g->opened[g->opened_count++] = (struct guard_opened){keep, st.st_mode & 07777};
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", keep);
	(void)chmod(self, (st.st_mode & 07777) | 0700);
}

bool guard_is_gone(int sys)
{
	return sys == ENOENT || sys == ENOTDIR || sys == ELOOP;
}

void guard_give_back_modes(struct guard *g)
{
	char self[64];

	while (g->opened_count) {
		const struct guard_opened *o = &g->opened[--g->opened_count];
		(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", o->fd);
		(void)chmod(self, o->mode);
		(void)close(o->fd);
	}
}

int guard_open_parent(const struct guard_root *r, const char *path, const char **ret_name)
{
	const char *rest = path + strlen(r->path);
	int fd = fcntl(r->fd, F_DUPFD_CLOEXEC, 3);

	while (*rest == '/')
		rest++;
	/* Name by name: paths may be longer than one call takes, and no link is followed. */
	for (const char *slash = strchr(rest, '/'); slash && fd >= 0; slash = strchr(rest, '/')) {
		char name[1024];
		size_t n = (size_t)(slash - rest);
		if (n >= sizeof(name)) {
			(void)close(fd);
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(name, rest, n);
		name[n] = '\0';
		int next = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0 && errno == EACCES) {
			let_in(r->g, fd);
			next = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		}
		int saved = errno;
		(void)close(fd);
		errno = saved;
		fd = next;
		rest = slash + 1;
	}
	*ret_name = rest;
	if (fd >= 0 && geteuid() != 0)
		let_in(r->g, fd); /* what is in it is looked at next */
	return fd;
}

void guard_take(struct guard *g, struct guard_root *r, const char *path, const char *why)
{
	const char *name = NULL;
	char to[PATH_TEXT];

	AUTO_FD int dir = guard_open_parent(r, path, &name);
	if (dir < 0) {
		/* Its directory has gone, and it with it; or it is there and we cannot get at it. */
		if (!guard_is_gone(errno))
			guard_tell(g, path, GUARD_STUCK, strerror(errno), NULL);
		return;
	}
	char *above = strndup(path, (size_t)(name - path) - 1);
	bool taken = above && quarantine_take(&g->quarantine, dir, above, name, to);
	int sys = errno;
	free(above);
	if (taken)
		guard_tell(g, path, GUARD_QUARANTINED, why, to);
	else if (sys != ENOENT)
		guard_tell(g, path, GUARD_STUCK, strerror(sys), NULL);
}

struct guard_root *guard_add_root(struct guard *g, const char *path, struct protect_dir kind)
{
	struct stat st;

	if (g->root_count == MAX_GUARD_ROOTS) {
		guard_lose(g, "protection-of-grants");
		return NULL;
	}
	struct guard_root *r = &g->roots[g->root_count];
	*r = (struct guard_root){.g = g, .kind = kind, .lock = -1, .alone = true};
	r->fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r->fd < 0 || fstat(r->fd, &st) < 0) {
		if (r->fd >= 0)
			(void)close(r->fd);
		return NULL; /* core will say what is wrong with it */
	}
	(void)snprintf(r->path, sizeof(r->path), "%s", path);
	(void)snprintf(r->file, sizeof(r->file), "%llx-%llx", (unsigned long long)st.st_dev,
		       (unsigned long long)st.st_ino);
	g->root_count++;
	return r;
}

/* Unless it lies in one that is guarded already. */
static void add_root(struct guard *g, const char *path, struct protect_dir kind)
{
	const struct guard_root *r = guard_root_of(g, path);

	if (!r || r->quiet)
		(void)guard_add_root(g, path, kind);
}

static void find_roots(struct guard *g)
{
	static const struct protect_dir tree = {.place = PLACE_TREE, .role = ROLE_NONE};
	static const struct protect_dir git = {.place = PLACE_GIT, .role = ROLE_GITDIR};

	if (g->src->given)
		add_root(g, g->src->path, tree);
	if (g->root_count)
		g->roots[0].quiet = g->read_only;
	for (size_t i = 0; i < g->view->grant_count; i++) {
		const struct grant *gr = &g->view->grants[i];
		if (gr->write && S_ISDIR(gr->st.st_mode))
			add_root(g, gr->path, gr->linked ? git : tree);
	}
}

bool guard_put_path(const struct guard_root *r, const struct inventory *inv,
		    const struct inventory_find *f, struct buf *out)
{
	buf_clear(out);
	(void)buf_str(out, r->path);
	(void)buf_char(out, '/');
	inventory_path(inv, f, out);
	return !out->failed;
}

void guard_put_dir(const struct guard_root *r, const struct inventory *inv, uint32_t dir,
		   struct buf *out)
{
	buf_clear(out);
	(void)buf_str(out, r->path);
	if (inv->dirs[dir].parent != INVENTORY_NONE)
		(void)buf_char(out, '/');
	inventory_dir_path(inv, dir, out);
}

/* What exists now is known from here on. */
static bool learn(struct guard *g, struct guard_root *r)
{
	AUTO_BUF path = BUF_INIT(64u << 20);
	char identity[40];
	bool good = true;

	for (uint32_t i = 0; i < r->before.find_count; i++) {
		const struct inventory_find *f = &r->before.finds[i];
		guard_identity(identity, f->dev, f->ino);
		if (guard_put_path(r, &r->before, f, &path) &&
		    nameset_get(&r->suspects, buf_cstr(&path), NULL))
			continue;
		good &= guard_put_path(r, &r->before, f, &path) &&
			nameset_put(&g->known, buf_cstr(&path), i) &&
			nameset_put(&g->same, identity, 1);
	}
	for (uint32_t i = 0; i < r->before.dir_count; i++) {
		const struct inventory_dir *d = &r->before.dirs[i];
		if (d->role == ROLE_GITDIR && d->given == ROLE_NONE) {
			guard_put_dir(r, &r->before, i, &path);
			good &= nameset_put(&g->layouts, buf_cstr(&path), 1);
		}
		if (d->role != ROLE_GITDIR && d->role != ROLE_OBJECTS)
			continue;
		guard_identity(identity, d->dev, d->ino);
		good &= nameset_put(&g->gitdirs, identity, 1);
	}
	return good;
}

const char *guard_root_name(const struct guard_root *r)
{
	const char *slash = strrchr(r->path, '/');

	return slash && slash[1] ? slash + 1 : "/";
}

/* A call over this place was killed: what has come since it began is judged now. */
static int make_up(struct guard *g, struct guard_root *r, struct err *e)
{
	int64_t begin_ns = g->begin_ns;

	if (!learn(g, r))
		return err_set(e, ERR_INTERNAL, "out of memory");
	g->begin_ns = 0; /* when that call began is not known: whatever is new is its work */
	guard_clean(g, (size_t)(r - g->roots), (size_t)(r - g->roots) + 1);
	g->begin_ns = begin_ns;
	nameset_release(&g->known);
	nameset_release(&g->same);
	nameset_release(&g->gitdirs);
	nameset_release(&g->layouts);
	if (r->have_after) {
		inventory_release(&r->before);
		r->before = r->after;
		r->after = (struct inventory){.read = 0};
		r->have_after = false;
	}
	return 0;
}

static bool is_worth_saving(const struct inventory *inv, const struct inventory *old)
{
	return !inv->full && !inv->hits_full &&
	       (inv->read > 16 || inv->read > inv->dir_count / 50 || !old ||
		inv->find_count != old->find_count || inv->hit_count != old->hit_count ||
		inv->pattern_count != old->pattern_count || inv->inside_count != old->inside_count);
}

/*
 * Another call is running here: what is new since the inventory that was saved
 * before it may be its work, whatever place it has by the time either ends.
 */
static void suspect(struct guard_root *r, const struct inventory *old)
{
	AUTO_BUF path = BUF_INIT(64u << 20);
	struct nameset was = {.n = 0};

	for (uint32_t i = 0; i < old->find_count; i++)
		if (guard_put_path(r, old, &old->finds[i], &path))
			(void)nameset_put(&was, buf_cstr(&path), 1);
	for (uint32_t i = 0; i < r->before.find_count; i++)
		if (guard_put_path(r, &r->before, &r->before.finds[i], &path) &&
		    !nameset_get(&was, buf_cstr(&path), NULL))
			(void)nameset_put(&r->suspects, buf_cstr(&path), 1);
	nameset_release(&was);
}

static struct inventory_root root_of(const struct guard *g, const struct guard_root *r)
{
	return (struct inventory_root){.fd = r->fd,
				       .kind = r->kind,
				       .name = guard_root_name(r),
				       .path = r->path,
				       .ask = &g->masks.ask};
}

static int refuse_full(const struct guard_root *r, struct err *e)
{
	(void)err_set(e, ERR_SANDBOX_UNAVAILABLE,
		      "%s has too many directories or protected names (or some that cannot be "
		      "opened): not all of them can be guarded",
		      r->path);
	return err_hint(e, "use a source that is smaller");
}

/* In a place that a command cannot write nothing is protected: only what is masked counts. */
static void forget_finds(struct inventory *inv)
{
	inv->find_count = 0;
	for (uint32_t i = 0; i < inv->dir_count; i++)
		inv->dirs[i].finds = inv->dirs[i].find = 0;
}

/*
 * A source that is read-only inside. What is kept for it is what calls that write
 * start from: written only while there is none, and if none has been meanwhile.
 */
static int begin_quiet(struct guard *g, struct guard_root *r, int state, struct err *e)
{
	struct inventory old = {.read = 0};
	struct stat then = {.st_ino = 0};
	struct stat now = {.st_ino = 0};
	bool have = state >= 0 && inventory_load(state, r->file, &old);
	bool same = false;

	(void)fstatat(state, r->file, &then, 0);
	struct inventory_root root = root_of(g, r);
	if (inventory_scan(&root, have ? &old : NULL, 0, &r->before, &same, e) < 0)
		return -1;
	if (same) {
		r->before = old;
		forget_finds(&r->before);
		return 0;
	}
	if (state >= 0 && is_worth_saving(&r->before, have ? &old : NULL)) {
		AUTO_FD int lock = guard_state_lock(r, state);
		(void)fstatat(state, r->file, &now, 0);
		if (guard_is_idle(lock) && now.st_ino == then.st_ino)
			inventory_save(state, r->file, &r->before);
	}
	inventory_release(&old);
	if (r->before.full)
		return refuse_full(r, e);
	forget_finds(&r->before);
	return 0;
}

int guard_scan_again(struct guard *g, struct err *e)
{
	for (size_t i = 0; i < g->root_count; i++) {
		struct guard_root *r = &g->roots[i];
		struct inventory_root root = root_of(g, r);
		struct inventory now;
		if (inventory_scan(&root, &r->before, 0, &now, NULL, e) < 0)
			return -1;
		inventory_release(&r->before);
		r->before = now;
		if (now.full)
			return refuse_full(r, e);
		if (r->quiet)
			forget_finds(&r->before);
	}
	return 0;
}

static int begin_root(struct guard *g, struct guard_root *r, int state, struct err *e)
{
	struct inventory old = {.read = 0};
	if (r->quiet)
		return begin_quiet(g, r, state, e);
	bool killed = state >= 0 && guard_begin_count(r, state);
	bool have = state >= 0 && inventory_load(state, r->file, &old);
	int rc = 0;

	r->killed = killed;
	if (killed && have) {
		/* Its tree ends with it, by the kernel, but not before we get here. */
		(void)nanosleep(&(struct timespec){.tv_nsec = KILLED_NS}, NULL);
		r->before = old;
		rc = make_up(g, r, e);
		old = r->before;
		r->before = (struct inventory){.read = 0};
	}
	bool same = false;
	struct inventory_root root = root_of(g, r);
	if (rc == 0)
		rc = inventory_scan(&root, have ? &old : NULL, 0, &r->before, &same, e);
	if (same) {
		r->before = old;
		r->before.read = 0;
		return 0;
	}
	if (rc == 0 && r->before.full)
		rc = refuse_full(r, e);
	if (rc == 0 && have && !r->alone && !old.full)
		suspect(r, &old);
	if (rc == 0 && state >= 0 && r->alone && is_worth_saving(&r->before, have ? &old : NULL))
		inventory_save(state, r->file, &r->before);
	inventory_release(&old);
	return rc;
}

/* A `.git` file that was not followed: git inside finds no repository, and why. */
static void tell_link(struct guard *g)
{
	AUTO_BUF hint = BUF_INIT(16384);
	char path[PATH_TEXT + 8];

	if (!g->link->why[0])
		return;
	(void)snprintf(path, sizeof(path), "%s/.git", g->src->path);
	(void)buf_printf(&hint,
			 "the git directory that .git names is not shown inside, so git finds no "
			 "repository there: %s; --write DIR grants it",
			 g->link->why);
	guard_deny(g, path, buf_cstr(&hint), 1);
	if (g->denial_count) {
		g->denials[g->denial_count - 1].op = "read";
		g->denials[g->denial_count - 1].rule = "git-link";
	}
}

int guard_begin(const struct guard_order *o, struct guard **ret, struct err *e)
{
	struct guard *g = calloc(1, sizeof(*g));
	struct timespec now;

	*ret = NULL;
	if (!g)
		return err_set(e, ERR_INTERNAL, "out of memory");
	g->who = o->who;
	g->src = o->src;
	g->view = o->view;
	g->link = o->link;
	g->idmap = o->idmap ? (uint32_t)MOUNT_IDMAP : 0;
	g->inotify = -1;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	g->begin_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - TICK_NS;
	g->read_only = o->req->mode != MODE_WORKSPACE_WRITE;
	quarantine_init(&g->quarantine, o->who, o->session);
	find_roots(g);
	int rc = masks_begin(g, o->req, e);
	if (rc == 0 && !g->root_count && g->link->why[0] == '\0' && !masks_have_rules(g)) {
		guard_free(g);
		return 0;
	}
	AUTO_FD int state = guard_open_state(g);
	if (!g->read_only)
		guard_read_links(g, state);
	masked_load(g, state);
	for (size_t i = 0; i < g->root_count && rc == 0; i++)
		rc = begin_root(g, &g->roots[i], state, e);
	for (size_t i = 0; i < g->root_count && rc == 0; i++)
		guard_open_repos(g, &g->roots[i]);
	if (rc == 0)
		rc = masks_add(g, e);
	masked_save(g, state); /* should this process be killed, the next knows them */
	for (size_t i = 0; i < g->root_count && rc == 0; i++) {
		if (!learn(g, &g->roots[i]))
			rc = err_set(e, ERR_INTERNAL, "out of memory");
	}
	for (size_t i = 0; i < g->root_count && rc == 0; i++)
		if (!g->roots[i].quiet)
			rc = guard_add_pins(g, &g->roots[i], e);
	if (rc < 0) {
		guard_free(g);
		return -1;
	}
	guard_watch_begin(g);
	tell_link(g);
	*ret = g;
	return 0;
}

void guard_attach(struct guard *g, const struct launch *launch)
{
	g->launch = launch;
}

/* A configuration that git tried to write, and that is as it was. */
static void deny_locks(struct guard *g)
{
	AUTO_BUF hint = BUF_INIT(16384);
	struct stat st;
	char identity[40];
	uint32_t i = 0;

	for (size_t k = 0; k < g->locks.cap; k++) {
		const char *path = g->locks.v[k];
		struct guard_root *r = path ? guard_root_of(g, path) : NULL;
		if (!r || !nameset_get(&g->known, path, &i) || lstat(path, &st) < 0)
			continue;
		guard_identity(identity, st.st_dev, st.st_ino);
		if (!nameset_get(&g->same, identity, NULL))
			continue; /* the host has written it */
		buf_clear(&hint);
		(void)buf_printf(&hint,
				 "git wanted to write its configuration %s, which stays as it is "
				 "in direct mode: --write %s allows that; --review holds changes "
				 "for review instead",
				 guard_shown(g, path), guard_as_option(g, path));
		guard_deny(g, path, buf_cstr(&hint), g->locks.value[k]);
	}
}

void guard_end(struct guard *g)
{
	AUTO_FD int state = guard_open_state(g);

	guard_step(g);
	g->quarantine.live = false;
	guard_watch_end(g);
	masked_end(g, state);
	guard_find_links(g, state);
	guard_clean(g, 0, g->root_count);
	for (size_t i = 0; i < g->root_count; i++)
		tracked_remember(g, &g->roots[i]);
	guard_settle_dangling(g);
	guard_give_back_modes(g);
	deny_locks(g);
	tracked_deny(g);
	for (size_t i = 0; i < g->root_count; i++) {
		struct guard_root *r = &g->roots[i];
		if (r->quiet)
			continue;
		bool last = guard_end_count(r);
		if (last && state >= 0 && r->have_after && is_worth_saving(&r->after, &r->before))
			inventory_save(state, r->file, &r->after);
	}
}

static void free_flags(struct guard *g)
{
	for (size_t i = 0; i < g->flag_count; i++) {
		free(g->flags[i].path);
		free(g->flags[i].moved_to);
		free(g->flags[i].restore);
	}
	for (size_t i = 0; i < g->denial_count; i++) {
		free(g->denials[i].target);
		free(g->denials[i].hint);
	}
	free(g->flags);
	free(g->denials);
}

void guard_free(struct guard *g)
{
	if (!g)
		return;
	guard_watch_end(g);
	guard_give_back_modes(g);
	for (size_t i = 0; i < g->root_count; i++) {
		struct guard_root *r = &g->roots[i];
		if (r->lock >= 0)
			(void)guard_end_count(r); /* nothing was run */
		(void)close(r->fd);
		inventory_release(&r->before);
		inventory_release(&r->after);
		nameset_release(&r->gitdirs_after);
		nameset_release(&r->suspects);
	}
	for (size_t i = 0; i < g->repo_count; i++) {
		if (g->repos[i].index >= 0)
			(void)close(g->repos[i].index);
		free(g->repos[i].packed);
	}
	nameset_release(&g->pins);
	nameset_release(&g->known);
	nameset_release(&g->same);
	nameset_release(&g->gitdirs);
	nameset_release(&g->layouts);
	nameset_release(&g->loose);
	nameset_release(&g->put_back);
	nameset_release(&g->dangling);
	nameset_release(&g->relative);
	nameset_release(&g->inside);
	nameset_release(&g->locks);
	quarantine_release(&g->quarantine);
	masks_release(g);
	free_flags(g);
	free(g->tips);
	free(g);
}

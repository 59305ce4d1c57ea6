/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Masked files are known by what they are (device, inode, time of birth), from
 * call to call, in a file beside the inventory: renamed, by a command or on the
 * host, they stay masked. And what git tracks is asked here; what it tracks only
 * because a command said so does not count.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "policy/gitindex.h"
#include "policy/maskname.h"
#include "run/catfile.h"
#include "run/guard_parts.h"

#define MAX_KNOWN 1024u
#define MAX_MASKED_BYTES (4u << 20)

bool masked_identity(int dir, const char *path, struct stat *ret, int64_t *ret_born_ns)
{
	/* statx(2), which not every C library has: the mask, and btime at byte 80. */
	uint64_t words[32] = {0};
	int64_t sec = 0;
	uint32_t nsec = 0;

	if (fstatat(dir, path, ret, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	*ret_born_ns = 0;
	if (syscall(SYS_statx, dir, path, AT_SYMLINK_NOFOLLOW, 0x800 /* STATX_BTIME */, words) <
		    0 ||
	    !((uint32_t)words[0] & 0x800))
		return true;
	memcpy(&sec, (const char *)words + 80, sizeof(sec));
	memcpy(&nsec, (const char *)words + 88, sizeof(nsec));
	*ret_born_ns = sec * 1000000000 + nsec;
	return true;
}

/* Numbers of devices change from boot to boot; a number and a birth together do not recur. */
struct mask_known *masked_find(struct guard *g, uint64_t dev, uint64_t ino, int64_t born_ns)
{
	for (size_t i = 0; i < g->masks.known_count; i++) {
		struct mask_known *k = &g->masks.known[i];
		if (k->ino == ino && k->born_ns == born_ns && (born_ns || k->dev == dev))
			return k;
	}
	return NULL;
}

static struct mask_known *add_known(struct guard *g)
{
	struct masks *m = &g->masks;

	if (m->known_count == m->known_cap) {
		size_t cap = m->known_cap ? m->known_cap * 2 : 32;
		struct mask_known *more = realloc(m->known, cap * sizeof(*more));
		if (!more)
			return NULL;
		m->known = more;
		m->known_cap = cap;
	}
	m->known[m->known_count] = (struct mask_known){.dev = 0};
	return &m->known[m->known_count++];
}

static void free_known(struct mask_known *k)
{
	free(k->rule);
	free(k->path);
}

/* In the place of an old one, or as a new one: NULL. False: no memory, and all is as it was. */
static bool put_known(struct guard *g, struct mask_known *k, const struct mask_known *file,
		      const char *rule, const char *path)
{
	char *own_rule = strdup(rule);
	char *own_path = strdup(path);

	if (own_rule && own_path && !k)
		k = add_known(g);
	if (!own_rule || !own_path || !k) {
		free(own_rule);
		free(own_path);
		return false;
	}
	free_known(k);
	*k = *file;
	k->rule = own_rule;
	k->path = own_path;
	return true;
}

void masked_remember(struct guard *g, const struct mask *m)
{
	struct mask_known *k = masked_find(g, m->dev, m->ino, m->born_ns);

	if (!m->ino)
		return;
	if (k && strcmp(k->path, m->path) == 0 && strcmp(k->rule, m->rule) == 0) {
		k->found = true;
		return;
	}
	const struct mask_known file = {.dev = m->dev,
					.ino = m->ino,
					.born_ns = m->born_ns,
					.found = true};
	if (put_known(g, k, &file, m->rule, m->path))
		g->masks.changed = true;
}

/* "k DEV INO BIRTH RULE", PATH, or "t", PATH: each ended by NUL. */
static bool take_record(struct guard *g, const char *head, const char *path)
{
	unsigned long long dev = 0;
	unsigned long long ino = 0;
	long long born = 0;
	int n = 0;

	if (!path_is_clean(path))
		return false;
	if (strcmp(head, "t") == 0)
		return nameset_put(&g->masks.inside, path, 1);
	if (sscanf(head, "k %llx %llx %lld %n", &dev, &ino, &born, &n) != 3 || !n || !head[n])
		return false;
	if (masked_find(g, dev, ino, born))
		return true;
	const struct mask_known file = {.dev = dev, .ino = ino, .born_ns = born};
	return put_known(g, NULL, &file, head + n, path);
}

static void file_name(const struct guard_root *r, char ret[64])
{
	(void)snprintf(ret, 64, "%s.masked", r->file);
}

static void load_root(struct guard *g, const struct guard_root *r, int state)
{
	char name[64];
	struct stat st;

	file_name(r, name);
	AUTO_FD int fd = openat(state, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid())
		return;
	AUTO_FREE char *text = guard_read_file(fd, &st, MAX_MASKED_BYTES);
	const char *at = text;
	const char *end = text ? text + st.st_size : NULL;
	while (text && at < end) {
		const char *path = at + strlen(at) + 1;
		if (path >= end || !take_record(g, at, path))
			return; /* not as it was written: what is left is unknown */
		at = path + strlen(path) + 1;
	}
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void masked_load(struct guard *g, int state)
{
	struct masks *m = &g->masks;

	for (size_t i = 0; state >= 0 && i < g->root_count; i++)
		load_root(g, &g->roots[i], state);
	if (!m->known_count)
		return;
	m->inos = calloc(m->known_count, sizeof(*m->inos));
	if (!m->inos)
		return;
	for (size_t i = 0; i < m->known_count; i++)
		m->inos[i] = m->known[i].ino;
	qsort(m->inos, m->known_count, sizeof(*m->inos), by_number);
	m->ask.inos = m->known_count;
	m->ask.ino = m->inos;
}

/* A file that was replaced where it lay, or that nobody has seen for long. */
static bool is_worth_keeping(const struct guard *g, const struct mask_known *k, size_t kept)
{
	if (k->found)
		return true;
	return kept < MAX_KNOWN && !nameset_get(&g->masks.at, k->path, NULL);
}

static void save_root(struct guard *g, struct guard_root *r, int state)
{
	const struct masks *m = &g->masks;
	AUTO_BUF out = BUF_INIT(MAX_MASKED_BYTES);
	char name[64];
	char temporary[96];
	size_t kept = 0;

	for (size_t i = m->known_count; i-- > 0;) { /* the newest are last */
		const struct mask_known *k = &m->known[i];
		if (guard_root_of(g, k->path) != r || !is_worth_keeping(g, k, kept))
			continue;
		kept++;
		(void)buf_printf(&out, "k %llx %llx %lld %s", (unsigned long long)k->dev,
				 (unsigned long long)k->ino, (long long)k->born_ns, k->rule);
		(void)buf_char(&out, '\0');
		(void)buf_add(&out, k->path, strlen(k->path) + 1);
	}
	for (size_t i = 0; i < m->inside.cap; i++) {
		if (!m->inside.v[i] || guard_root_of(g, m->inside.v[i]) != r)
			continue;
		(void)buf_add(&out, "t", 2);
		(void)buf_add(&out, m->inside.v[i], strlen(m->inside.v[i]) + 1);
	}
	file_name(r, name);
	if (out.failed || !out.n)
		return;
	(void)snprintf(temporary, sizeof(temporary), "%s.%d", name, (int)getpid());
	int fd = openat(state, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
			0600);
	if (fd < 0)
		return;
	bool good = write(fd, out.p, out.n) == (ssize_t)out.n;
	good = close(fd) == 0 && good;
	if (!good || renameat(state, temporary, state, name) < 0)
		(void)unlinkat(state, temporary, 0);
}

/* What other calls have added meanwhile is kept. */
void masked_save(struct guard *g, int state)
{
	if (state < 0 || !g->masks.changed)
		return;
	for (size_t i = 0; i < g->root_count; i++) {
		AUTO_FD int lock = guard_state_lock(&g->roots[i], state);
		load_root(g, &g->roots[i], state);
		save_root(g, &g->roots[i], state);
	}
	g->masks.changed = false;
}

/* Where the file is by now that was masked at a path: "" if it has no name any more. */
static void find_moved(const struct mask *m, char ret[PATH_TEXT])
{
	char self[64];

	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", m->fd);
	ssize_t n = readlink(self, ret, PATH_TEXT - 1);
	ret[n > 0 ? n : 0] = '\0';
}

static void end_one(struct guard *g, struct mask *m)
{
	struct mask now = *m;
	char path[PATH_TEXT];
	char why[2 * PATH_TEXT];
	struct stat st;

	if (m->again) {
		(void)snprintf(
			why, sizeof(why),
			"something new took its place while the call ran, %u times; masked again "
			"each time, but in between the command could read it",
			m->again);
		guard_tell(g, m->path, m->sys ? GUARD_MASK_LOST : GUARD_MASK_REAPPLIED,
			   m->sys ? strerror(m->sys) : why, NULL);
	}
	bool here = masked_identity(AT_FDCWD, m->path, &st, &now.born_ns);
	if (here && st.st_ino == m->ino && now.born_ns == m->born_ns)
		return;
	if (here) { /* another file by now, masked in its turn */
		now.dev = st.st_dev;
		now.ino = st.st_ino;
		masked_remember(g, &now);
	}
	if (m->fd < 0)
		return;
	find_moved(m, path);
	now = *m;
	now.path = path;
	if (!path_is_clean(path) || !guard_root_of(g, path) || strcmp(path, m->path) == 0 ||
	    !masked_identity(AT_FDCWD, path, &st, &now.born_ns) || st.st_ino != m->ino ||
	    now.born_ns != m->born_ns)
		return;
	masked_remember(g, &now);
	(void)snprintf(why, sizeof(why), "moved while the call ran; it stays masked at %s",
		       guard_shown(g, path));
	guard_tell(g, m->path, GUARD_MASK_MOVED, why, NULL);
}

void masked_end(struct guard *g, int state)
{
	for (size_t i = 0; i < g->masks.n; i++)
		end_one(g, &g->masks.v[i]);
	masked_note_index(g);
	masked_save(g, state);
}

/* Reads an index; what is told is an absolute path. */
struct reading {
	const char *work;
	struct nameset *candidates; /* those that are there get value 1 */
	struct nameset *names;      /* or NULL: what looks like a secret is put there */
	struct nameset *also;       /* and what is in here; NULL: nothing */
	bool unread;                /* git may understand it, we do not */
};

static bool take_entry(void *self, const struct gitindex_entry *e)
{
	struct reading *r = self;
	AUTO_BUF path = BUF_INIT(2 * PATH_TEXT);
	char parent[PATH_TEXT] = "";
	char name[PATH_TEXT];

	if (buf_printf(&path, "%s/", r->work) < 0 || buf_add(&path, e->path, e->path_len) < 0)
		return true;
	if (r->candidates) {
		if (nameset_get(r->candidates, buf_cstr(&path), NULL))
			(void)nameset_put(r->candidates, buf_cstr(&path), 1);
		return true;
	}
	const char *last = strrchr(path.p, '/');
	(void)snprintf(name, sizeof(name), "%s", last + 1);
	const char *above = last;
	while (above > path.p && above[-1] != '/')
		above--;
	(void)snprintf(parent, sizeof(parent), "%.*s", (int)(last - above), above);
	if (mask_name(parent, name) != MASK_NAME_NONE ||
	    (r->also && nameset_get(r->also, buf_cstr(&path), NULL)))
		(void)nameset_put(r->names, buf_cstr(&path), 1);
	return true;
}

/* Whether it is split. */
static bool read_bytes(struct reading *r, const char *bytes, size_t n)
{
	bool split = false;
	struct err ignored = {0};

	if (!bytes || (gitindex_each(bytes, n, 20, take_entry, r, &split, &ignored) < 0 &&
		       gitindex_each(bytes, n, 32, take_entry, r, &split, &ignored) < 0)) {
		r->unread = true;
		return false;
	}
	return split;
}

static void read_index(struct reading *r, const char *git, int fd, const struct stat *st)
{
	AUTO_FREE char *bytes = fd < 0 ? NULL : guard_read_file(fd, st, MAX_GIT_INDEX);

	if (fd < 0 || !read_bytes(r, bytes, (size_t)st->st_size))
		return;
	/* A split index: the rest is in a file beside it. All of them are read: one is the right one. */
	DIR *d = opendir(git);
	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
		struct stat shared;
		if (strncmp(e->d_name, "sharedindex.", 12) != 0)
			continue;
		AUTO_FD int in = guard_open_file(git, e->d_name, &shared);
		AUTO_FREE char *text = in < 0 ? NULL : guard_read_file(in, &shared, MAX_GIT_INDEX);
		if (in >= 0)
			(void)read_bytes(r, text, (size_t)shared.st_size);
	}
	if (d)
		(void)closedir(d);
}

/* The source can be a part of a work tree: then the index lies above it. */
static void read_outer(const struct reading *r, const struct guard_root *root)
{
	char dir[PATH_TEXT];
	char git[PATH_TEXT + 8];
	struct stat st;

	(void)snprintf(dir, sizeof(dir), "%s", root->path);
	for (char *slash = strrchr(dir, '/'); slash; slash = strrchr(dir, '/')) {
		(void)snprintf(git, sizeof(git), "%s/.git", dir);
		if (lstat(git, &st) == 0) {
			AUTO_FD int fd = guard_open_file(git, "index", &st);
			struct reading outer = *r;
			outer.work = dir;
			read_index(&outer, git, fd, &st);
			return;
		}
		*slash = '\0';
	}
}

static bool has_repo(const struct guard *g, const struct guard_root *root)
{
	for (size_t i = 0; i < g->repo_count; i++)
		if (strcmp(g->repos[i].work, root->path) == 0)
			return true;
	return false;
}

/*
 * What a command has put into the index counts once a commit of a person has it. So
 * does what was masked before, under whatever name: an index is a file that a
 * command can write, in a repository of its own too.
 */
static void drop_inside(struct guard *g, struct nameset *candidates, const struct nameset *known)
{
	for (size_t i = 0; i < candidates->cap; i++) {
		const char *path = candidates->v[i];
		if (!path || !candidates->value[i] ||
		    (!nameset_get(&g->masks.inside, path, NULL) && !nameset_get(known, path, NULL)))
			continue;
		struct tracked_file file = {.path = path};
		if (caller_env(g->who, CATFILE_MARK)) { /* for a look at objects it stays masked */
			candidates->value[i] = 0;
			continue;
		}
		for (size_t k = 0; k < g->repo_count; k++)
			if (g->repos[k].work[0] && path_is_below(g->repos[k].work, path) &&
			    (!file.work || strlen(g->repos[k].work) > strlen(file.work)))
				file.work = g->repos[k].work;
		if (file.work)
			tracked_find(g, &file, 1);
		candidates->value[i] = file.known;
	}
}

void masked_tracked(struct guard *g, struct nameset *candidates, const struct nameset *known)
{
	struct reading r = {.candidates = candidates};

	for (size_t i = 0; i < g->repo_count; i++) {
		const struct guard_repo *repo = &g->repos[i];
		r.work = repo->work;
		if (repo->work[0])
			read_index(&r, repo->git, repo->index, &repo->index_st);
	}
	for (size_t i = 0; i < g->root_count; i++)
		if (!has_repo(g, &g->roots[i]))
			read_outer(&r, &g->roots[i]);
	drop_inside(g, candidates, known);
}

#define TRACKED_NOW                                                                         \
	"git tracks it now, with what it reads as inside: a commit on the host would hold " \
	"its real content; git rm --cached -f ends that"

static void tell_unread(struct guard *g, const struct guard_repo *repo)
{
	AUTO_BUF path = BUF_INIT(2 * PATH_TEXT);

	(void)buf_printf(&path, "%s/index", repo->git);
	guard_tell(g, buf_cstr(&path), GUARD_MASK_TRACKED,
		   "it cannot be read by us: git may track a masked file now", NULL);
}

void masked_note_index(struct guard *g)
{
	for (size_t i = 0; i < g->repo_count; i++) {
		const struct guard_repo *repo = &g->repos[i];
		struct nameset old = {.n = 0};
		struct nameset now = {.n = 0};
		struct reading r = {.work = repo->work, .names = &old, .also = &g->masks.at};
		struct stat st;
		AUTO_FD int fd = guard_open_index(repo, &st);
		if (fd < 0)
			continue;
		read_index(&r, repo->git, repo->index, &repo->index_st);
		r.names = &now;
		r.unread = false;
		read_index(&r, repo->git, fd, &st);
		if (r.unread && g->masks.n)
			tell_unread(g, repo);
		for (size_t k = 0; k < now.cap; k++) {
			if (!now.v[k] || nameset_get(&old, now.v[k], NULL))
				continue;
			if (nameset_get(&g->masks.at, now.v[k], NULL))
				guard_tell(g, now.v[k], GUARD_MASK_TRACKED, TRACKED_NOW, NULL);
			if (!nameset_get(&g->masks.inside, now.v[k], NULL) &&
			    nameset_put(&g->masks.inside, now.v[k], 1))
				g->masks.changed = true;
		}
		nameset_release(&old);
		nameset_release(&now);
	}
}

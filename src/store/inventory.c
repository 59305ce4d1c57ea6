/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk. It goes by descriptor and relative names, in a stack of its own, so
 * that neither depth nor the length of a path has a limit that a command could
 * hide behind. Reads directories and refs; writes nothing.
 */
#include "store/inventory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/path.h"
#include "store/hits.h"
#include "store/stats.h"

#define MAX_RELATIVE 2048u /* bytes of a name below a base; then a new base is opened */
#define RACY_NS 2000000000
#define READ_BYTES 32768u
#define NO_MODE ((mode_t)-1)
#define SEARCH_MISSES 64u /* then a child is looked for only where it most likely is */
#define MAX_NAME 1024u    /* NAME_MAX is 255, some file systems have more */

struct frame {
	uint32_t old, dir; /* in the old inventory and in the new one */
	uint32_t next;     /* unchanged: the next old child */
	uint32_t guess;    /* read anew: the old child that probably comes next */
	size_t names, at;  /* read anew: children's names in the arena; where we are */
	size_t path_len;   /* of the path before this directory was added */
	int base;          /* to be closed when it is left, -1: none */
	size_t base_len;   /* the path's length at the base that was in use before */
	int base_before;
	mode_t mode;         /* to be given back, NO_MODE: nothing was changed */
	unsigned int misses; /* names that the old directory did not have */
	bool fresh;          /* read anew */
};

struct scan {
	const struct inventory *old;
	struct inventory *out;
	const struct stats *stats; /* of the old inventory's directories */
	struct hits *hits;
	struct buf path, names;
	struct frame *stack;
	size_t depth, cap;
	size_t dir_cap, find_cap, hit_cap, tip_cap, text_cap;
	int base; /* paths are relative to it, from base_len on */
	size_t base_len;
	uint64_t root_dev;
	int64_t now_ns;
	bool trusted; /* the file system's times */
	unsigned int flags;
	bool memory; /* ran out of it */
};

static int64_t ns(struct timespec t)
{
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Room for one more of an array. */
static bool grow(void **p, size_t *cap, size_t n, size_t size)
{
	if (n < *cap)
		return true;
	size_t next = *cap ? *cap * 2 : 256;
	void *more = realloc(*p, next * size);
	if (!more)
		return false;
	*p = more;
	*cap = next;
	return true;
}

static uint32_t add_text(struct scan *s, const char *name)
{
	size_t n = strlen(name) + 1;

	if (s->out->text_count + n > MAX_INVENTORY_TEXT) {
		s->out->full = true;
		return INVENTORY_NONE;
	}
	while (s->out->text_count + n > s->text_cap) {
		size_t next = s->text_cap ? s->text_cap * 2 : 16384;
		char *more = realloc(s->out->text, next);
		if (!more) {
			s->memory = true;
			return INVENTORY_NONE;
		}
		s->out->text = more;
		s->text_cap = next;
	}
	uint32_t at = s->out->text_count;
	memcpy(s->out->text + at, name, n);
	s->out->text_count += (uint32_t)n;
	return at;
}

static const char *below_base(const struct scan *s)
{
	const char *p = buf_cstr(&s->path) + s->base_len;

	return *p == '/' ? p + 1 : *p ? p : ".";
}

static struct inventory_find *add_find(struct scan *s, uint32_t dir, const char *name,
				       enum protect_class class, unsigned char type,
				       const struct stat *st)
{
	struct inventory *out = s->out;

	if (out->find_count == MAX_INVENTORY_FINDS) {
		out->full = true;
		return NULL;
	}
	uint32_t text = add_text(s, name);
	if (text == INVENTORY_NONE)
		return NULL; /* full, or no memory, is noted */
	if (!grow((void **)&out->finds, &s->find_cap, out->find_count, sizeof(*out->finds))) {
		s->memory = true;
		return NULL;
	}
	struct inventory_find *f = &out->finds[out->find_count++];
	*f = (struct inventory_find){.dev = st->st_dev,
				     .ino = st->st_ino,
				     .dir = dir,
				     .name = text,
				     .class = (uint8_t) class,
				     .type = type};
	out->dirs[dir].finds++;
	return f;
}

static void add_hit(struct scan *s, uint32_t dir, const char *name,
		    const struct inventory_hit *like)
{
	struct inventory *out = s->out;

	if (out->hit_count == MAX_INVENTORY_HITS) {
		out->hits_full = true;
		return;
	}
	uint32_t text = add_text(s, name);
	if (text == INVENTORY_NONE)
		return;
	if (!grow((void **)&out->hits, &s->hit_cap, out->hit_count, sizeof(*out->hits))) {
		s->memory = true;
		return;
	}
	struct inventory_hit *h = &out->hits[out->hit_count++];
	*h = *like;
	h->dir = dir;
	h->name = text;
	out->dirs[dir].hits++;
}

/* Whether it is to be masked, or may be: then it is kept. */
static void try_hit(struct scan *s, int fd, uint32_t dir, const struct dirent64 *d,
		    unsigned char type)
{
	const struct inventory_dir *in = &s->out->dirs[dir];
	struct hits_name n = {.place = in->place,
			      .dir = buf_cstr(&s->path),
			      .own = s->out->text + in->name,
			      .name = d->d_name,
			      .type = type,
			      .ino = d->d_ino};
	struct inventory_hit h = {.bits = hits_bits(s->hits, &n), .type = type};
	struct stat st;

	if (!h.bits || fstatat(fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	h.dev = st.st_dev;
	h.ino = st.st_ino;
	add_hit(s, dir, d->d_name, &h);
}

static void add_tip(struct scan *s, uint32_t dir, const struct inventory_oid *oid)
{
	struct inventory *out = s->out;

	if (out->tip_count == MAX_INVENTORY_TIPS)
		return; /* fewer tips, fewer files that may stay */
	if (!grow((void **)&out->tips, &s->tip_cap, out->tip_count, sizeof(*out->tips))) {
		s->memory = true;
		return;
	}
	out->tips[out->tip_count++] = *oid;
	out->dirs[dir].tips++;
}

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool inventory_oid_parse(const char *text, size_t n, struct inventory_oid *ret)
{
	size_t digits = 0;

	while (digits < n && hex(text[digits]) >= 0)
		digits++;
	if ((digits != 40 && digits != 64) ||
	    (digits < n && text[digits] != '\n' && text[digits] != ' ' && text[digits] != '\0'))
		return false;
	*ret = (struct inventory_oid){.bytes = (uint8_t)(digits / 2)};
	for (size_t i = 0; i < digits / 2; i++)
		ret->oid[i] = (uint8_t)(hex(text[2 * i]) * 16 + hex(text[2 * i + 1]));
	return true;
}

static void read_ref(struct scan *s, int fd, uint32_t dir, const char *name)
{
	struct inventory_oid oid;
	char text[80];

	AUTO_FD int ref = openat(fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = ref >= 0 ? read(ref, text, sizeof(text)) : -1;
	if (n > 0 && inventory_oid_parse(text, (size_t)n, &oid))
		add_tip(s, dir, &oid);
}

/* Ordinary files, most of what there is, are not kept: whatever the layout makes of the directory. */
static bool may_count(const struct scan *s, uint32_t dir, const char *name, unsigned char type)
{
	const struct inventory_dir *d = &s->out->dirs[dir];
	const char *own = s->out->text + d->name;
	struct protect_dir as = {.place = d->place, .role = d->given};
	struct protect_dir git = {.place = d->place, .role = ROLE_GITDIR};

	return type == DT_DIR || type == DT_LNK || d->given == ROLE_REFS ||
	       protect_name(as, own, name) != PROTECT_NONE ||
	       protect_name(git, own, name) != PROTECT_NONE;
}

/* What was read of a directory: names one after the other, each behind its type. */
static bool collect(struct scan *s, int fd, uint32_t dir, unsigned int *ret_layout)
{
	static _Alignas(struct dirent64) char bytes[READ_BYTES];
	struct stat st;

	*ret_layout = 0;
	for (;;) {
		long n = syscall(SYS_getdents64, fd, bytes, sizeof(bytes));
		if (n <= 0)
			return n == 0;
		for (long at = 0; at < n;) {
			const struct dirent64 *d = (const struct dirent64 *)(bytes + at);
			unsigned char type = d->d_type;
			at += d->d_reclen;
			if (path_is_dots(d->d_name) || strlen(d->d_name) >= MAX_NAME)
				continue;
			if (type == DT_UNKNOWN) /* not every file system tells */
				type = fstatat(fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0
					       ? (unsigned char)DT_REG
					       : (unsigned char)IFTODT(st.st_mode);
			try_hit(s, fd, dir, d, type);
			*ret_layout |= protect_layout_bit(d->d_name);
			if (!may_count(s, dir, d->d_name, type))
				continue;
			if (buf_char(&s->names, (char)type) < 0 ||
			    buf_add(&s->names, d->d_name, strlen(d->d_name) + 1) < 0) {
				s->out->full = true;
				return false;
			}
		}
	}
}

static enum protect_class classify(const struct inventory_dir *d, const char *own, const char *name,
				   unsigned char type)
{
	/* A git directory by its layout is still what it is to the one that it lies in. */
	const uint8_t roles[] = {d->role, d->given};
	size_t n = d->given == d->role ? 1 : 2;
	enum protect_class c = PROTECT_NONE;

	/* What only holds git directories has names of theirs, not git's. */
	for (size_t i = 0; i < n && c == PROTECT_NONE; i++)
		c = protect_name((struct protect_dir){.place = d->place,
						      .role = roles[i] == ROLE_MODULES
								      ? (uint8_t)ROLE_NONE
								      : roles[i]},
				 own, name);
	if (c == PROTECT_NONE && type == DT_LNK &&
	    (d->place == PLACE_GIT || d->place == PLACE_INNER || d->role != ROLE_NONE))
		c = PROTECT_LINK;
	return c;
}

/* What the directory `name` in `d` is, if it is to be walked. */
static bool child_of(const struct inventory_dir *d, enum protect_class c, const char *name,
		     struct protect_dir *ret)
{
	if (c == PROTECT_TOOL || c == PROTECT_HOOKS) {
		*ret = (struct protect_dir){.place = PLACE_INNER, .role = ROLE_NONE};
		return true;
	}
	/* By its layout, and by what it is to the one around it; of objects the other way. */
	bool objects = d->given == ROLE_OBJECTS;
	struct protect_dir first = {.place = d->place, .role = objects ? d->given : d->role};
	struct protect_dir second = {.place = d->place, .role = objects ? d->role : d->given};
	struct protect_dir other;
	if ((c != PROTECT_NONE && c != PROTECT_GIT) || !protect_child(first, name, ret))
		return false;
	if (ret->role == ROLE_NONE && d->given != ROLE_NONE && d->given != d->role &&
	    protect_child(second, name, &other))
		*ret = other;
	return true;
}

/* Or because a pattern names it. */
static bool is_walked(const struct scan *s, const struct inventory_dir *d, enum protect_class c,
		      const char *name, struct protect_dir *ret)
{
	if (child_of(d, c, name, ret))
		return true;
	*ret = (struct protect_dir){.place = PLACE_NAMED};
	return hits_enter(s->hits, name);
}

/*
 * Sorts what was read: finds and tips are kept, names of directories to walk stay
 * in the arena from `start` on, all else goes.
 */
static void sort_out(struct scan *s, int fd, uint32_t dir, size_t start)
{
	struct stat st;
	size_t keep = start;

	for (size_t at = start; at < s->names.n;) {
		unsigned char type = (unsigned char)s->names.p[at];
		char *name = s->names.p + at + 1;
		size_t len = strlen(name) + 1;
		const struct inventory_dir *d = &s->out->dirs[dir];
		struct protect_dir child;
		at += 1 + len;
		enum protect_class c = classify(d, s->out->text + d->name, name, type);
		if (c != PROTECT_NONE && fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			(void)add_find(s, dir, name, c, (unsigned char)IFTODT(st.st_mode), &st);
		if (type == DT_REG && s->out->dirs[dir].role == ROLE_REFS)
			read_ref(s, fd, dir, name);
		d = &s->out->dirs[dir];
		if (type == DT_DIR && is_walked(s, d, c, name, &child)) {
			memmove(s->names.p + keep, name, len);
			keep += len;
		}
	}
	s->names.n = keep;
}

/*
 * With INVENTORY_FORCE a directory of ours that denies us something is opened up
 * as long as we are in it. Returns the mode that it had, NO_MODE: as it is; then
 * *ret_handle is open on it.
 */
static mode_t open_up(const struct scan *s, const char *path, int *ret_handle)
{
	struct stat st;
	char self[64];

	if (!(s->flags & INVENTORY_FORCE) || geteuid() == 0)
		return NO_MODE;
	AUTO_FD int handle = openat(s->base, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (handle < 0 || fstat(handle, &st) < 0 || st.st_uid != geteuid() ||
	    (st.st_mode & 0500) == 0500)
		return NO_MODE;
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", handle);
	if (chmod(self, (st.st_mode & 07777) | 0700) < 0)
		return NO_MODE;
	*ret_handle = TAKE_FD(handle);
	return st.st_mode & 07777;
}

/* What is at the path. False: it could not be read whole. */
static bool read_dir(struct scan *s, uint32_t dir)
{
	unsigned int layout = 0;
	size_t start = s->names.n;
	struct inventory_dir *d = &s->out->dirs[dir];
	bool was_full = s->out->full;

	AUTO_FD int fd = openat(s->base, below_base(s),
				O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		/* What is closed to us is so to a command, or it is opened up at the end. */
		s->out->full |=
			errno != EACCES && errno != ENOENT && errno != ENOTDIR && errno != ELOOP;
		return false;
	}
	s->out->read++;
	s->out->full = false;
	bool whole = collect(s, fd, dir, &layout);
	/* Objects and refs make a git directory wherever they lie, even below another one's. */
	if (protect_layout_is_git(layout) && d->given != ROLE_REMOTES && d->place != PLACE_INNER &&
	    d->place != PLACE_NAMED)
		d->role = ROLE_GITDIR;
	sort_out(s, fd, dir, start);
	whole = whole && !s->out->full;
	s->out->full |= was_full;
	return whole;
}

static bool is_same(const struct scan *s, uint32_t old, const struct stats *st,
		    struct protect_dir kind)
{
	const struct inventory_dir *o = &s->old->dirs[old];
	int64_t last = st->mtime_ns > st->ctime_ns ? st->mtime_ns : st->ctime_ns;

	return s->trusted && st->dev == s->root_dev && o->dev == st->dev && o->ino == st->ino &&
	       o->mtime_ns == st->mtime_ns && o->ctime_ns == st->ctime_ns &&
	       o->place == kind.place && o->given == kind.role && last + RACY_NS < o->read_ns;
}

static void copy_known(struct scan *s, uint32_t old, uint32_t dir)
{
	const struct inventory_dir *o = &s->old->dirs[old];

	s->out->dirs[dir].role = o->role;
	s->out->dirs[dir].read_ns = o->read_ns;
	for (uint32_t i = o->find; i < o->find + o->finds; i++) {
		const struct inventory_find *f = &s->old->finds[i];
		struct stat st = {.st_dev = f->dev, .st_ino = f->ino};
		(void)add_find(s, dir, s->old->text + f->name, (enum protect_class)f->class,
			       f->type, &st);
	}
	for (uint32_t i = o->hit; i < o->hit + o->hits; i++)
		add_hit(s, dir, s->old->text + s->old->hits[i].name, &s->old->hits[i]);
	for (uint32_t i = o->tip; i < o->tip + o->tips; i++)
		add_tip(s, dir, &s->old->tips[i]);
}

/* The path grows too long for one call, or a mode will have to be given back: go on from here. */
static void rebase(struct scan *s, struct frame *f)
{
	f->base_before = s->base;
	f->base_len = s->base_len;
	if (s->path.n - s->base_len < MAX_RELATIVE && f->base < 0)
		return;
	int fd = f->base >= 0 ? f->base
			      : openat(s->base, below_base(s),
				       O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		s->out->full = true; /* what is below is not listed */
		return;
	}
	f->base = s->base = fd;
	s->base_len = s->path.n;
}

static void leave(struct scan *s)
{
	struct frame *f = &s->stack[--s->depth];

	s->out->dirs[f->dir].size = s->out->dir_count - f->dir;
	if (f->base >= 0 && f->mode != NO_MODE) {
		char self[64];
		(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", f->base);
		(void)chmod(self, f->mode); /* as it was */
	}
	if (f->base >= 0)
		(void)close(f->base);
	s->base = f->base_before;
	s->base_len = f->base_len;
	s->path.n = f->path_len;
	if (s->path.p)
		s->path.p[s->path.n] = '\0';
	if (f->fresh)
		s->names.n = f->names;
}

/* The directory at the path: listed, and a frame for what lies in it. */
static void enter(struct scan *s, uint32_t parent, uint32_t old, const char *name,
		  struct protect_dir kind, size_t path_len)
{
	struct inventory *out = s->out;
	struct stats st;
	bool known = old != INVENTORY_NONE && s->stats && s->stats[old].ino;

	if (known)
		st = s->stats[old];
	errno = ENOTDIR;
	if ((!known && !stats_one(s->base, below_base(s), &st)) ||
	    out->dir_count == MAX_INVENTORY_DIRS) {
		/* Gone by now is nothing to list; anything else is. */
		out->full |= (errno != ENOENT && errno != ENOTDIR) ||
			     out->dir_count == MAX_INVENTORY_DIRS;
		s->path.n = path_len;
		s->path.p[path_len] = '\0';
		return;
	}
	uint32_t text = add_text(s, name);
	if (text == INVENTORY_NONE && !s->memory) {
		s->path.n = path_len;
		s->path.p[path_len] = '\0';
		return;
	}
	if (text == INVENTORY_NONE ||
	    !grow((void **)&out->dirs, &s->dir_cap, out->dir_count, sizeof(*out->dirs)) ||
	    !grow((void **)&s->stack, &s->cap, s->depth, sizeof(*s->stack))) {
		s->memory = true;
		return;
	}
	uint32_t dir = out->dir_count++;
	out->dirs[dir] = (struct inventory_dir){.dev = st.dev,
						.ino = st.ino,
						.mtime_ns = st.mtime_ns,
						.ctime_ns = st.ctime_ns,
						.parent = parent,
						.name = text,
						.size = 1,
						.find = out->find_count,
						.hit = out->hit_count,
						.tip = out->tip_count,
						.place = kind.place,
						.given = kind.role,
						.role = kind.role};
	struct frame *f = &s->stack[s->depth++];
	*f = (struct frame){.old = old,
			    .dir = dir,
			    .path_len = path_len,
			    .names = s->names.n,
			    .base = -1,
			    .mode = NO_MODE};
	f->at = f->names;
	f->next = f->guess = old == INVENTORY_NONE ? INVENTORY_NONE : old + 1;
	if (old != INVENTORY_NONE && is_same(s, old, &st, kind)) {
		copy_known(s, old, dir);
	} else {
		f->fresh = true;
		f->mode = open_up(s, below_base(s), &f->base);
		/* What could not be read whole is read again next time. */
		out->dirs[dir].read_ns = read_dir(s, dir) ? s->now_ns : 0;
	}
	rebase(s, f);
}

static bool is_child(const struct scan *s, uint32_t old, uint32_t i)
{
	return i < old + s->old->dirs[old].size;
}

/* The old inventory's entry for a child, most likely where we guess. */
static uint32_t find_old(const struct scan *s, struct frame *f, const char *name)
{
	if (f->old == INVENTORY_NONE || !s->old)
		return INVENTORY_NONE;
	for (int round = 0; round < 2; round++) {
		uint32_t i = round == 0 ? f->guess : f->old + 1;
		for (; is_child(s, f->old, i); i += s->old->dirs[i].size) {
			if (strcmp(s->old->text + s->old->dirs[i].name, name) == 0) {
				f->guess = i + s->old->dirs[i].size;
				return i;
			}
			if (f->misses >
			    SEARCH_MISSES) /* renamed by the thousand: all is read anew */
				return INVENTORY_NONE;
		}
	}
	f->misses++;
	return INVENTORY_NONE;
}

/* The next directory below the one on top of the stack. False: that was all. */
static bool next_child(struct scan *s)
{
	struct frame *f = &s->stack[s->depth - 1];
	const struct inventory_dir *d = &s->out->dirs[f->dir];
	struct protect_dir child = {.place = d->place};
	size_t path_len = s->path.n;
	uint32_t old = INVENTORY_NONE;
	char name[MAX_NAME];

	if (f->fresh) {
		if (f->at >= s->names.n)
			return false;
		size_t n = strlen(s->names.p + f->at) + 1;
		memcpy(name, s->names.p + f->at, n);
		f->at += n;
		old = find_old(s, f, name);
	} else {
		if (!s->old || !is_child(s, f->old, f->next))
			return false;
		old = f->next;
		f->next += s->old->dirs[old].size;
		memcpy(name, s->old->text + s->old->dirs[old].name,
		       strlen(s->old->text + s->old->dirs[old].name) + 1);
	}
	if (f->fresh) {
		enum protect_class c = classify(d, s->out->text + d->name, name, DT_DIR);
		if (!is_walked(s, d, c, name, &child))
			return true;
	} else if (s->old) { /* as its directory is what it was, so is it to it */
		child = (struct protect_dir){.place = s->old->dirs[old].place,
					     .role = s->old->dirs[old].given};
	}
	if ((s->path.n && buf_char(&s->path, '/') < 0) || buf_str(&s->path, name) < 0) {
		s->memory = true;
		return false;
	}
	enter(s, f->dir, old, name, child, path_len);
	return true;
}

/* File systems whose directories change mtime and ctime with every entry, by the kernel's clock. */
static bool has_true_times(int fd)
{
	static const unsigned long types[] = {
		0xef53,     /* ext2, ext3, ext4 */
		0x58465342, /* xfs */
		0x9123683e, /* btrfs */
		0x01021994, /* tmpfs */
		0x794c7630, /* overlayfs */
		0xf2f52010, /* f2fs */
		0x2fc12fc1, /* zfs */
		0xca451a4e, /* bcachefs */
	};
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if ((unsigned long)fs.f_type == types[i])
			return true;
	return false;
}

static void walk(struct scan *s, const char *name, struct protect_dir kind)
{
	bool again = s->old && s->old->dir_count;

	enter(s, INVENTORY_NONE, again ? 0 : INVENTORY_NONE, name, kind, 0);
	while (s->depth && !s->memory)
		if (!next_child(s))
			leave(s);
	while (s->depth)
		leave(s);
}

/* Whether every directory of the old inventory is what it was: then so is all in them. */
static bool is_all_same(const struct scan *s, struct protect_dir kind)
{
	if (!s->old || !s->stats || !s->old->dir_count)
		return false;
	for (uint32_t i = 0; i < s->old->dir_count; i++) {
		const struct inventory_dir *d = &s->old->dirs[i];
		struct protect_dir as = {.place = d->place, .role = d->given};
		if (!s->stats[i].ino || !is_same(s, i, &s->stats[i], i ? as : kind))
			return false;
	}
	return true;
}

/* Room for as much as there was, so that the arrays do not grow step by step. */
static void reserve(struct scan *s)
{
	struct inventory *out = s->out;
	size_t n = s->old ? s->old->dir_count + 64u : 0;

	if (!n)
		return;
	out->dirs = malloc(n * sizeof(*out->dirs));
	out->text = malloc(s->old->text_count + 4096u);
	s->dir_cap = out->dirs ? n : 0;
	s->text_cap = out->text ? s->old->text_count + 4096u : 0;
}

int inventory_scan(const struct inventory_root *root, const struct inventory *old,
		   unsigned int flags, struct inventory *ret, bool *ret_same, struct err *e)
{
	struct timespec now;
	struct stat st;

	*ret = (struct inventory){.read = 0};
	if (fstat(root->fd, &st) < 0)
		return err_sys(e, "look at %s", root->name);
	(void)clock_gettime(CLOCK_REALTIME, &now);
	const struct inventory_ask *ask = root->ask;
	struct hits hits = {.n = 0};
	/* Full: not a list of everything. */
	bool known = old && !old->full && !(ask && ask->all) && hits_have(old, ask);
	struct scan s = {.old = known ? old : NULL,
			 .hits = &hits,
			 .out = ret,
			 .path = BUF_INIT(64u << 20),
			 .names = BUF_INIT(MAX_INVENTORY_TEXT),
			 .base = root->fd,
			 .root_dev = st.st_dev,
			 .now_ns = ns(now),
			 .trusted = has_true_times(root->fd),
			 .flags = flags};
	AUTO_FREE struct stats *stats = s.old ? stats_all(root->fd, old) : NULL;
	s.stats = stats;
	if (ret_same) {
		*ret_same = is_all_same(&s, root->kind);
		if (*ret_same)
			return 0;
	}
	s.memory = !hits_merge(ret, old, ask);
	int rc = s.memory ? 0 : hits_init(&hits, root, ret, e);
	if (rc < 0) {
		inventory_release(ret);
		return -1;
	}
	reserve(&s);
	if (buf_str(&s.path, "/") < 0)
		s.memory = true; /* nothing is walked */
	buf_clear(&s.path);
	if (!s.memory)
		walk(&s, root->name, root->kind);
	ret->inside_full = old && old->inside_full;
	for (uint32_t i = 0; old && i < old->inside_count; i++)
		s.memory |= !inventory_add_inside(ret, &old->inside[i]);
	buf_release(&s.path);
	buf_release(&s.names);
	hits_release(&hits);
	free(s.stack);
	if (!s.memory)
		return 0;
	inventory_release(ret);
	return err_set(e, ERR_INTERNAL, "out of memory");
}

void inventory_release(struct inventory *inv)
{
	free(inv->dirs);
	free(inv->finds);
	free(inv->hits);
	free(inv->patterns);
	free(inv->tips);
	free(inv->inside);
	free(inv->text);
	*inv = (struct inventory){.read = 0};
}

bool inventory_add_inside(struct inventory *inv, const struct inventory_oid *oid)
{
	if (!inv->inside) {
		inv->inside = malloc(MAX_INVENTORY_INSIDE * sizeof(*inv->inside));
		if (!inv->inside)
			return false;
	}
	if (inv->inside_count == MAX_INVENTORY_INSIDE) {
		inv->inside_full = true; /* nothing is forgotten: then nothing is trusted */
		return true;
	}
	inv->inside[inv->inside_count++] = *oid;
	return true;
}

const char *inventory_name(const struct inventory *inv, const struct inventory_find *find)
{
	return inv->text + find->name;
}

void inventory_dir_path(const struct inventory *inv, uint32_t dir, struct buf *out)
{
	size_t len = 0;

	for (uint32_t d = dir; inv->dirs[d].parent != INVENTORY_NONE; d = inv->dirs[d].parent)
		len += strlen(inv->text + inv->dirs[d].name) + 1;
	if (!len || buf_reserve(out, len) < 0)
		return;
	char *end = out->p + out->n + len - 1; /* the first name has no slash before it */
	out->n += len - 1;
	*end = '\0';
	for (uint32_t d = dir; inv->dirs[d].parent != INVENTORY_NONE; d = inv->dirs[d].parent) {
		const char *name = inv->text + inv->dirs[d].name;
		size_t n = strlen(name);
		end -= n;
		memcpy(end, name, n);
		if (inv->dirs[inv->dirs[d].parent].parent != INVENTORY_NONE)
			*--end = '/';
	}
}

void inventory_path(const struct inventory *inv, const struct inventory_find *find, struct buf *out)
{
	inventory_dir_path(inv, find->dir, out);
	if (inv->dirs[find->dir].parent != INVENTORY_NONE)
		(void)buf_char(out, '/');
	(void)buf_str(out, inventory_name(inv, find));
}

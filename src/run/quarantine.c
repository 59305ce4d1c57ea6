/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving by descriptor: the directory that something is taken from is open, the
 * name is never followed, and the place it goes to is nobody else's. A sandbox
 * may still be running: it can only make the move fail or find itself moved.
 */
#include "run/quarantine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "base/utf8.h"
#include "policy/state.h"
#include "store/remove.h"

#define COPY_BYTES 65536u
#define MAX_DEPTH 100 /* of a copied tree; deeper is not copied */
#define MAX_TRIES 10000u
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1u
#endif

void quarantine_init(struct quarantine *q, const struct caller *who, const char *session)
{
	char home[PATH_TEXT];

	*q = (struct quarantine){.fd = -1};
	state_home(who, home);
	if (snprintf(q->path, sizeof(q->path), "%s/quarantine/%s", home, session) >=
	    (int)sizeof(q->path))
		q->path[0] = '\0';
}

void quarantine_release(struct quarantine *q)
{
	if (q->fd >= 0)
		(void)close(q->fd);
	q->fd = -1;
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

struct session {
	char name[256];
	int64_t at;
};

static int by_age(const void *a, const void *b)
{
	const struct session *x = a;
	const struct session *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* The oldest sessions go, so that the whole stays bounded. */
static void sweep(int all, const char *own)
{
	struct session *list = calloc(2 * MAX_QUARANTINE_SESSIONS, sizeof(*list));
	struct stat st;
	size_t n = 0;

	int fd = openat(all, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 && list ? fdopendir(fd) : NULL;
	for (struct dirent *e = d ? readdir(d) : NULL; e && n < 2 * MAX_QUARANTINE_SESSIONS;
	     e = readdir(d)) {
		if (e->d_name[0] == '.' || strcmp(e->d_name, own) == 0 ||
		    fstatat(all, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		(void)snprintf(list[n].name, sizeof(list[n].name), "%s", e->d_name);
		list[n++].at = (int64_t)st.st_mtim.tv_sec;
	}
	if (list && n > MAX_QUARANTINE_SESSIONS) {
		qsort(list, n, sizeof(*list), by_age);
		for (size_t i = 0; i < n - MAX_QUARANTINE_SESSIONS; i++)
			remove_tree(all, list[i].name);
	}
	if (d)
		(void)closedir(d);
	else if (fd >= 0)
		(void)close(fd);
	free(list);
}

static bool open_session(struct quarantine *q)
{
	char path[PATH_TEXT];

	if (q->fd >= 0)
		return true;
	memcpy(path, q->path, sizeof(path));
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		bool good = mkdir(path, 0700) == 0 || errno == EEXIST;
		*p = '/';
		if (!good)
			return false;
	}
	char *slash = strrchr(path, '/');
	if (!slash || (mkdir(path, 0700) < 0 && errno != EEXIST))
		return false;
	q->fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	*slash = '\0';
	AUTO_FD int all = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (all >= 0)
		sweep(all, slash + 1);
	return q->fd >= 0;
}

/* A directory of its own for each thing: names never meet. */
static int make_place(struct quarantine *q, char ret[PATH_TEXT])
{
	char number[16];

	for (unsigned int tries = 0; tries < MAX_TRIES; tries++) {
		(void)snprintf(number, sizeof(number), "%u", ++q->next);
		if (mkdirat(q->fd, number, 0700) == 0) {
			if (snprintf(ret, PATH_TEXT, "%s/%s", q->path, number) >= PATH_TEXT)
				return -1;
			return openat(q->fd, number,
				      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		}
		if (errno != EEXIST)
			return -1;
	}
	return -1;
}

static bool copy_bytes(struct quarantine *q, int from, int to)
{
	static char bytes[COPY_BYTES];

	for (;;) {
		ssize_t n = RETRY_EINTR(read(from, bytes, sizeof(bytes)));
		if (n <= 0)
			return n == 0;
		q->bytes += (uint64_t)n;
		if (q->bytes > MAX_QUARANTINE_BYTES || write(to, bytes, (size_t)n) != n)
			return false;
	}
}

static void copy_owner(int fd, const struct stat *st)
{
	struct timespec times[2] = {st->st_atim, st->st_mtim};

	if (geteuid() == 0)
		(void)fchown(fd, st->st_uid, st->st_gid);
	(void)fchmod(fd, st->st_mode & 0777);
	(void)futimens(fd, times);
}

static bool copy_one(struct quarantine *q, int dir, const char *name, int to, int depth);
static bool copy_open(struct quarantine *q, int fd, int to, const char *name, const struct stat *st,
		      int depth);

static bool copy_dir(struct quarantine *q, int fd, int to, const char *name, const struct stat *st,
		     int depth)
{
	bool good = mkdirat(to, name, 0700) == 0;

	AUTO_FD int into = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	DIR *d = good && into >= 0 && own >= 0 ? fdopendir(own) : NULL;
	if (!d) {
		if (own >= 0)
			(void)close(own);
		return false;
	}
	for (struct dirent *e = readdir(d); e && good; e = readdir(d))
		if (!is_dots(e->d_name))
			good = copy_one(q, dirfd(d), e->d_name, into, depth + 1);
	(void)closedir(d);
	copy_owner(into, st);
	return good;
}

static bool copy_link(int dir, const char *name, int to)
{
	char text[PATH_TEXT];
	ssize_t n = readlinkat(dir, name, text, sizeof(text) - 1);

	if (n <= 0)
		return false;
	text[n] = '\0';
	return symlinkat(text, to, name) == 0;
}

/* Files, directories, links and fifos. */
static bool copy_one(struct quarantine *q, int dir, const char *name, int to, int depth)
{
	struct stat st;

	if (++q->entries > MAX_QUARANTINE_ENTRIES || depth > MAX_DEPTH ||
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	if (S_ISLNK(st.st_mode))
		return copy_link(dir, name, to);
	if (S_ISFIFO(st.st_mode))
		return mkfifoat(to, name, st.st_mode & 0777) == 0;
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return false; /* a socket or device is nothing that can be copied */
	struct opened o = open_up(dir, name);
	AUTO_FD int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool good = fd >= 0 && copy_open(q, fd, to, name, &st, depth);
	close_up(&o);
	return good;
}

/* `st` has the mode that it will have again. */
static bool copy_open(struct quarantine *q, int fd, int to, const char *name, const struct stat *st,
		      int depth)
{
	if (S_ISDIR(st->st_mode))
		return copy_dir(q, fd, to, name, st, depth);
	AUTO_FD int into =
		openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (into < 0 || !copy_bytes(q, fd, into))
		return false;
	copy_owner(into, st);
	return true;
}

static int rename_new(int from, const char *name, int to, const char *as)
{
	struct stat st;

	int rc = (int)syscall(SYS_renameat2, from, name, to, as, RENAME_NOREPLACE);
	if (rc == 0 || errno != EINVAL) /* not every file system can */
		return rc;
	if (fstatat(to, as, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		errno = EEXIST;
		return -1;
	}
	return renameat(from, name, to, as);
}

/* renameat(2) that replaces nothing, if need be after the thing's own mode allows it. */
static bool move(int from, const char *name, int to, const char *as)
{
	if (rename_new(from, name, to, as) == 0)
		return true;
	if (errno != EACCES && errno != EPERM)
		return false;
	/* Moving a directory elsewhere writes its `..`. */
	struct opened o = open_up(from, name);
	bool good = rename_new(from, name, to, as) == 0;
	int saved = errno;
	close_up(&o);
	errno = saved;
	return good;
}

/* A name that nobody runs, and that nobody can have taken before. */
static bool move_aside(int dir, const char *name, char aside[64])
{
	uint64_t random[2];

	for (int tries = 0; tries < 16; tries++) {
		if (getrandom(random, sizeof(random), 0) != sizeof(random))
			return false;
		(void)snprintf(aside, 64, "sandglass-quarantine-%016llx%016llx",
			       (unsigned long long)random[0], (unsigned long long)random[1]);
		if (move(dir, name, dir, aside))
			return true;
		if (errno != EEXIST)
			return false;
	}
	return false;
}

/*
 * Another file system: first out of the way, then copied. What is too large to be
 * copied, or cannot be, stays under that name.
 */
static bool take_across(struct quarantine *q, int dir, const char *dir_path, const char *name,
			int place, char to[PATH_TEXT])
{
	char aside[64];

	if (!move_aside(dir, name, aside))
		return false;
	/* While a command runs it could put things into what we copied and then remove. */
	if (place >= 0 && !q->live && copy_one(q, dir, aside, place, 0)) {
		(void)renameat(place, aside, place, name);
		remove_tree(dir, aside);
		size_t n = strlen(to);
		(void)snprintf(to + n, PATH_TEXT - n, "/%s", name);
		return true;
	}
	if (place >= 0)
		remove_tree(place, aside);
	(void)snprintf(to, PATH_TEXT, "%s/%s", dir_path, aside);
	return true;
}

static bool take(struct quarantine *q, int dir, const char *dir_path, const char *name,
		 char ret_to[PATH_TEXT])
{
	char to[PATH_TEXT] = "";

	AUTO_FD int place = q->path[0] && open_session(q) ? make_place(q, to) : -1;
	if (place >= 0 && move(dir, name, place, name)) {
		if (snprintf(ret_to, PATH_TEXT, "%s/%s", to, name) >= PATH_TEXT)
			(void)snprintf(ret_to, PATH_TEXT, "%s", to);
		return true;
	}
	if (place >= 0 && errno != EXDEV) {
		int saved = errno;
		(void)rmdir(to);
		errno = saved;
		if (errno == ENOENT)
			return false;
	}
	if (!take_across(q, dir, dir_path, name, place, to))
		return false;
	memcpy(ret_to, to, sizeof(to));
	return true;
}

bool quarantine_take(struct quarantine *q, int dir, const char *dir_path, const char *name,
		     char ret_to[PATH_TEXT])
{
	struct opened o = open_up(dir, "");
	bool good = take(q, dir, dir_path, name, ret_to);
	int saved = errno;

	close_up(&o);
	errno = saved;
	return good;
}

static bool is_plain(const char *s)
{
	for (size_t left = strlen(s); left;) {
		uint32_t cp = 0;
		size_t n = utf8_decode(s, left, &cp);
		if (!n || utf8_is_unsafe(cp) || cp < 0x20)
			return false;
		s += n;
		left -= n;
	}
	return true;
}

static void put_plain(struct buf *out, const char *s)
{
	(void)buf_char(out, '\'');
	for (; *s; s++) {
		if (*s == '\'')
			(void)buf_str(out, "'\\''");
		else
			(void)buf_char(out, *s);
	}
	(void)buf_char(out, '\'');
}

/* Bytes that cannot be shown as they are go through printf(1); the dot keeps a last newline. */
static void put_octal(struct buf *out, char variable, const char *s)
{
	(void)buf_printf(out, "%c=$(printf '", variable);
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (c > 0x20 && c < 0x7f && !strchr("\\'%\"", c))
			(void)buf_char(out, (char)c);
		else
			(void)buf_printf(out, "\\%03o", c);
	}
	(void)buf_str(out, ".'); ");
}

void quarantine_restore(struct buf *out, const char *from, const char *to)
{
	bool plain_from = is_plain(from);
	bool plain_to = is_plain(to);

	if (!plain_from)
		put_octal(out, 'f', from);
	if (!plain_to)
		put_octal(out, 't', to);
	(void)buf_str(out, "mv -nT -- ");
	if (plain_from)
		put_plain(out, from);
	else
		(void)buf_str(out, "\"${f%.}\"");
	(void)buf_char(out, ' ');
	if (plain_to)
		put_plain(out, to);
	else
		(void)buf_str(out, "\"${t%.}\"");
}

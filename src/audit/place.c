/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the log lies. What the file `head` says of the chain is believed of one thing
 * only: which file is the newest. All else is read from the log, whose last line is found
 * from its end, so that an append costs the same however long the log is.
 */
#include "audit/place.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/settings.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/term.h"
#include "policy/state.h"

#define FIRST_LOOK 4096u
#define LOCK_STEP_MS 2
#define HEAD_BYTES (20 + 1 + AUDIT_HASH_TEXT - 1 + 1 + AUDIT_FILE_TEXT - 1 + 1)
#define SHOWN 512

void audit_path(const struct caller *who, char ret[PATH_TEXT])
{
	const char *named = caller_env(who, "SANDGLASS_HOME");
	char home[PATH_TEXT];

	if (who->uid == 0 && !(named && named[0] == '/')) {
		(void)snprintf(ret, PATH_TEXT, "/var/log/sandglass");
		return;
	}
	state_home(who, home);
	size_t n = strnlen(home, PATH_TEXT - sizeof("/audit"));
	memcpy(ret, home, n);
	memcpy(ret + n, "/audit", sizeof("/audit"));
}

static int check(const struct stat *st, bool is_dir, const char *what, struct err *e)
{
	char shown[SHOWN];

	if (is_dir ? S_ISDIR(st->st_mode) : S_ISREG(st->st_mode) && st->st_nlink == 1)
		if (st->st_uid == geteuid() && !(st->st_mode & 0022))
			return 0;
	(void)err_set(e, ERR_POLICY_DENIED, "audit log: %s is not yours alone",
		      term_escape_cut(shown, sizeof(shown), what, strlen(what)));
	return err_hint(e, "it must belong to you, and nobody else may write it");
}

int audit_place_open(const struct caller *who, bool make, struct audit_place *p, struct err *e)
{
	char path[PATH_TEXT];
	char shown[SHOWN];
	struct stat st;
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

	audit_path(who, path);
	(void)term_escape_cut(shown, sizeof(shown), path, strlen(path));
	AUTO_FD int dir = open(path, flags);
	if (dir < 0 && errno == ENOENT && make) {
		if (!file_make_dirs(path, 0700) || (mkdir(path, 0700) < 0 && errno != EEXIST))
			return err_sys(e, "audit log: make %s", shown);
		dir = open(path, flags);
	}
	if (dir < 0 && errno == ENOENT && !make)
		return err_set(e, ERR_NOT_FOUND, "there is no audit log: %s", shown);
	if (dir < 0 || fstat(dir, &st) < 0)
		return err_sys(e, "audit log: %s", shown);
	if (check(&st, true, path, e) < 0)
		return -1;
	p->dir = TAKE_FD(dir);
	return 0;
}

int audit_file_open(int dir, const char *name, int flags, struct err *e)
{
	struct stat st;

	AUTO_FD int fd = openat(dir, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "audit log: %s", name);
	if (check(&st, false, name, e) < 0)
		return -1;
	return TAKE_FD(fd);
}

/*
 * The lock is waited for in short steps, because a blocking flock() has no deadline
 * and nothing else tells when it is free.
 */
int audit_place_lock(struct audit_place *p, struct err *e)
{
	uint64_t deadline = clock_deadline(clock_mono_ms(), AUDIT_LOCK_MS);

	p->lock = audit_file_open(p->dir, AUDIT_HEAD, O_RDWR | O_CREAT, e);
	if (p->lock < 0)
		return -1;
	while (flock(p->lock, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_sys(e, "audit log: lock");
		if (clock_mono_ms() >= deadline)
			return err_set(e, ERR_BUSY, "audit log: another process holds its lock");
		(void)poll(NULL, 0, LOCK_STEP_MS);
	}
	return 0;
}

void audit_place_release(struct audit_place *p)
{
	if (p->file >= 0)
		(void)close(p->file);
	if (p->lock >= 0)
		(void)close(p->lock);
	if (p->dir >= 0)
		(void)close(p->dir);
	*p = AUDIT_PLACE_NONE;
}

bool audit_is_day(const char *name)
{
	static const char form[] = "0000-00-00.jsonl";

	if (strlen(name) != sizeof(form) - 1)
		return false;
	for (size_t i = 0; form[i]; i++)
		if (form[i] == '0' ? name[i] < '0' || name[i] > '9' : name[i] != form[i])
			return false;
	return true;
}

void audit_day(int64_t now_ms, char ret[AUDIT_FILE_TEXT])
{
	char when[CLOCK_TEXT];

	(void)clock_rfc3339(now_ms, when);
	when[10] = '\0';
	(void)snprintf(ret, AUDIT_FILE_TEXT, "%.10s.jsonl", when);
}

static bool is_further(const char *day, const char *than, int sign)
{
	int order = strcmp(day, than);

	return sign > 0 ? order > 0 : order < 0;
}

/* Of all days on one side of `limit` the furthest from it: the newest (sign 1), the oldest (-1). */
static bool choose(int dir, const char *limit, int sign, char ret[AUDIT_FILE_TEXT])
{
	bool found = false;
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);

	if (!d) {
		if (copy >= 0)
			(void)close(copy);
		return false;
	}
	for (struct dirent *de = readdir(d); de; de = readdir(d)) {
		if (!audit_is_day(de->d_name) || (limit && !is_further(limit, de->d_name, sign)) ||
		    (found && !is_further(de->d_name, ret, sign)))
			continue;
		memcpy(ret, de->d_name, AUDIT_FILE_TEXT);
		found = true;
	}
	(void)closedir(d);
	return found;
}

bool audit_newest(int dir, const char *before, char ret[AUDIT_FILE_TEXT])
{
	return choose(dir, before, 1, ret);
}

bool audit_oldest(int dir, const char *after, char ret[AUDIT_FILE_TEXT])
{
	return choose(dir, after, -1, ret);
}

/* The last line that ends within the n bytes at p: its beginning and end; false: more is needed. */
static bool find_line(const char *p, size_t n, bool whole, size_t *ret_begin, size_t *ret_end)
{
	const char *end = memrchr(p, '\n', n);

	if (!end) {
		*ret_begin = *ret_end = 0;
		return whole;
	}
	const char *begin = memrchr(p, '\n', (size_t)(end - p));
	if (!begin && !whole)
		return false;
	*ret_begin = begin ? (size_t)(begin - p) + 1 : 0;
	*ret_end = (size_t)(end - p) + 1;
	return true;
}

int audit_last(int fd, const char *name, uint64_t size, struct audit_head *ret, uint64_t *ret_end,
	       struct err *e)
{
	AUTO_BUF more = BUF_INIT((size_t)MAX_AUDIT_EVENTS * MAX_AUDIT_LINE);
	char first[FIRST_LOOK]; /* most lines are in it */
	char *tail = first;
	size_t begin = 0;
	size_t end = 0;
	uint64_t look = sizeof(first);

	for (;; look *= 8) {
		if (look > size)
			look = size;
		if (look > sizeof(first)) {
			if (look > more.max || buf_reserve(&more, look) < 0)
				return err_set(e, ERR_INTERNAL,
					       "audit log: %s ends in no line of ours", name);
			tail = more.p;
		}
		if (pread(fd, tail, look, (off_t)(size - look)) != (ssize_t)look)
			return err_sys(e, "audit log: read %s", name);
		if (find_line(tail, look, look == size, &begin, &end))
			break;
	}
	*ret_end = size - look + end;
	*ret = (struct audit_head){.seq = 0};
	memcpy(ret->file, name, strnlen(name, AUDIT_FILE_TEXT - 1));
	if (end == begin)
		return 0;
	if (audit_line_tip(tail + begin, end - begin - 1, &ret->seq, ret->hash))
		return 0;
	(void)err_set(e, ERR_INTERNAL, "audit log: the last line of %s is not one of ours", name);
	return err_hint(e, "`sandglass audit verify` says more; the file can be moved away");
}

/* Opens a day's file; if it holds a line, that is the end of the chain. -1, 0 none, 1 found. */
static int try_day(struct audit_place *p, const char *name, bool make, struct err *e)
{
	struct audit_head last;
	struct stat st;
	uint64_t end = 0;

	if (p->file >= 0)
		(void)close(p->file);
	p->file = audit_file_open(p->dir, name, O_RDWR | O_APPEND | (make ? O_CREAT : 0), e);
	if (p->file < 0 || fstat(p->file, &st) < 0)
		return p->file < 0 ? -1 : err_sys(e, "audit log: %s", name);
	memcpy(p->name, name, strnlen(name, AUDIT_FILE_TEXT - 1) + 1);
	p->size = (uint64_t)st.st_size;
	if (audit_last(p->file, name, p->size, &last, &end, e) < 0)
		return -1;
	if (end < p->size) { /* of a writer that was killed */
		if (ftruncate(p->file, (off_t)end) < 0)
			return err_sys(e, "audit log: cut %s", name);
		p->torn += p->size - end;
		memcpy(p->torn_of, p->name, sizeof(p->torn_of));
		p->size = end;
	}
	if (!last.seq)
		return 0;
	p->chain.seq = last.seq;
	memcpy(p->chain.hash, last.hash, sizeof(last.hash));
	return 1;
}

/* Which file the head names; "" if it says nothing that could be. */
static void head_file(const struct audit_place *p, char ret[AUDIT_FILE_TEXT])
{
	char text[HEAD_BYTES + 1];

	ret[0] = '\0';
	if (pread(p->lock, text, HEAD_BYTES, 0) != HEAD_BYTES || text[HEAD_BYTES - 1] != '\n')
		return;
	text[HEAD_BYTES - 1] = '\0';
	const char *name = text + HEAD_BYTES - AUDIT_FILE_TEXT;
	if (audit_is_day(name))
		memcpy(ret, name, AUDIT_FILE_TEXT);
}

/* The newest file with a line in it, wherever that is. */
static int scan(struct audit_place *p, struct err *e)
{
	char name[AUDIT_FILE_TEXT];
	char before[AUDIT_FILE_TEXT];
	int rc = 0;

	p->chain.seq = 0;
	memcpy(p->chain.hash, audit_no_hash, sizeof(p->chain.hash));
	for (bool some = audit_newest(p->dir, NULL, name); some && rc == 0;
	     some = audit_newest(p->dir, before, name)) {
		rc = try_day(p, name, false, e);
		memcpy(before, name, sizeof(before));
	}
	return rc < 0 ? -1 : 0;
}

int audit_place_day(struct audit_place *p, int64_t now_ms, struct err *e)
{
	char today[AUDIT_FILE_TEXT];
	char newest[AUDIT_FILE_TEXT];
	struct err ignored = {0};

	audit_day(now_ms, today);
	head_file(p, newest);
	/* A clock that went back writes on where it was: the names are in the order of the chain. */
	if (newest[0] && strcmp(newest, today) >= 0 && try_day(p, newest, false, &ignored) == 1)
		return 0;
	if (scan(p, e) < 0)
		return -1;
	if (audit_newest(p->dir, NULL, newest) && strcmp(newest, today) >= 0)
		memcpy(today, newest, sizeof(today));
	if (p->file >= 0 && strcmp(p->name, today) == 0)
		return 0;
	struct audit_chain chain = p->chain;
	int rc = try_day(p, today, true, e);
	if (rc == 0)
		p->chain = chain;
	p->fresh = rc == 0 && p->size == 0;
	return rc < 0 ? -1 : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "chain/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/place.h"
#include "base/base.h"
#include "base/clock.h"

#define CHUNK 65536u
#define LOCK_STEP_MS 2

static int by_name(const void *a, const void *b)
{
	const struct log_file *x = a;
	const struct log_file *y = b;

	return strcmp(x->name, y->name);
}

static int add(struct chain_log *log, const char *name, struct err *e)
{
	struct stat st;

	if (log->count >= MAX_LOG_FILES)
		return err_set(e, ERR_ARG_LIMIT, "the audit log has more than %u files",
			       MAX_LOG_FILES);
	if (fstatat(log->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_sys(e, "audit log: %s", name);
	struct log_file *more = realloc(log->files, (log->count + 1) * sizeof(*more));
	if (!more)
		return err_set(e, ERR_INTERNAL, "out of memory");
	log->files = more;
	more[log->count] = (struct log_file){.size = (uint64_t)st.st_size};
	memcpy(more[log->count++].name, name, AUDIT_FILE_TEXT);
	return 0;
}

static int list(struct chain_log *log, struct err *e)
{
	int rc = 0;
	int copy = openat(log->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);

	if (!d) {
		if (copy >= 0)
			(void)close(copy);
		return err_sys(e, "audit log");
	}
	log->count = 0;
	for (struct dirent *de = readdir(d); de && rc == 0; de = readdir(d))
		if (audit_is_day(de->d_name))
			rc = add(log, de->d_name, e);
	(void)closedir(d);
	if (log->count)
		qsort(log->files, log->count, sizeof(*log->files), by_name);
	return rc;
}

/* Sizes while nobody writes. A copy of a log may have no lock, and then nobody writes. */
static int list_locked(struct chain_log *log, struct err *e)
{
	uint64_t deadline = clock_deadline(clock_mono_ms(), AUDIT_LOCK_MS);

	AUTO_FD int lock =
		openat(log->dir, AUDIT_HEAD, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	while (lock >= 0 && flock(lock, LOCK_SH | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_sys(e, "audit log: lock");
		if (clock_mono_ms() >= deadline)
			return err_set(e, ERR_BUSY, "audit log: another process holds its lock");
		(void)poll(NULL, 0, LOCK_STEP_MS);
	}
	return list(log, e);
}

int chain_log_open(const struct caller *who, struct chain_log *ret, struct err *e)
{
	AUTO_AUDIT_PLACE place = AUDIT_PLACE_NONE;

	if (audit_place_open(who, false, &place, e) < 0)
		return -1;
	AUTO_CHAIN_LOG log = CHAIN_LOG_NONE;
	log.dir = TAKE_FD(place.dir);
	log.bytes = BUF_INIT((size_t)MAX_AUDIT_LINE + 2 * CHUNK);
	if (list_locked(&log, e) < 0)
		return -1;
	*ret = log;
	log = CHAIN_LOG_NONE;
	return 0;
}

void chain_log_release(struct chain_log *log)
{
	if (log->fd >= 0)
		(void)close(log->fd);
	if (log->dir >= 0)
		(void)close(log->dir);
	free(log->files);
	buf_release(&log->bytes);
	*log = CHAIN_LOG_NONE;
}

/* Bytes are moved to the front only when it is worth it. */
static void compact(struct chain_log *log)
{
	if (!log->from)
		return;
	memmove(log->bytes.p, log->bytes.p + log->from, log->bytes.n - log->from);
	log->bytes.n -= log->from;
	log->bytes.p[log->bytes.n] = '\0';
	log->from = 0;
}

/* More bytes of this file. 0: there are no more. */
static int fill(struct chain_log *log, struct err *e)
{
	const struct log_file *f = &log->files[log->at];
	char chunk[CHUNK];
	uint64_t left = f->size - log->done;

	if (!left)
		return 0;
	compact(log);
	ssize_t n = RETRY_EINTR(read(log->fd, chunk, left < CHUNK ? (size_t)left : CHUNK));
	if (n < 0)
		return err_sys(e, "audit log: read %s", f->name);
	if (n == 0) /* cut since we looked */
		log->files[log->at].size = log->done;
	log->done += (uint64_t)n;
	if (n && buf_add(&log->bytes, chunk, (size_t)n) < 0)
		return err_set(e, ERR_INTERNAL, "out of memory");
	return n > 0;
}

static int begin_file(struct chain_log *log, struct err *e)
{
	struct err why = {0};

	log->fd = audit_file_open(log->dir, log->files[log->at].name, O_RDONLY, &why);
	if (log->fd < 0 && why.sys == ENOENT) { /* deleted as a whole since we looked */
		log->files[log->at].size = 0;
		return 0;
	}
	if (log->fd < 0)
		*e = why;
	return log->fd < 0 ? -1 : 0;
}

static void end_file(struct chain_log *log)
{
	if (log->fd >= 0)
		(void)close(log->fd);
	log->fd = -1;
	log->at++;
	log->done = log->line = 0;
	buf_clear(&log->bytes);
	log->from = 0;
}

static int give(struct chain_log *log, size_t n, bool torn, struct log_line *ret)
{
	*ret = (struct log_line){
		.p = buf_cstr(&log->bytes) + log->from,
		.n = n,
		.file = log->files[log->at].name,
		.number = ++log->line,
		.torn = torn,
		.last_file = log->at + 1 == log->count,
		.too_long = n >= MAX_AUDIT_LINE,
	};
	log->from += n + !torn;
	if (ret->too_long) { /* what is behind it nobody can trust either */
		log->done = log->files[log->at].size;
		log->from = log->bytes.n;
	}
	return 1;
}

int chain_log_next(struct chain_log *log, struct log_line *ret, struct err *e)
{
	while (log->at < log->count) {
		if (log->fd < 0 && log->files[log->at].size && begin_file(log, e) < 0)
			return -1;
		size_t left = log->bytes.n - log->from;
		const char *begin = buf_cstr(&log->bytes) + log->from;
		const char *end = left ? memchr(begin, '\n', left) : NULL;
		if (end || left >= MAX_AUDIT_LINE)
			return give(log, end ? (size_t)(end - begin) : left, !end, ret);
		int rc = fill(log, e);
		if (rc < 0)
			return -1;
		if (rc > 0)
			continue;
		if (left)
			return give(log, left, true, ret);
		if (log->at + 1 == log->count)
			return 0; /* the newest stays open: more may come */
		end_file(log);
	}
	return 0;
}

/* Newlines of a file. */
static int count(struct chain_log *log, size_t at, uint64_t *ret, struct err *e)
{
	char chunk[CHUNK];

	AUTO_FD int fd = audit_file_open(log->dir, log->files[at].name, O_RDONLY, e);
	if (fd < 0)
		return -1;
	*ret = 0;
	for (uint64_t left = log->files[at].size; left;) {
		ssize_t n = RETRY_EINTR(read(fd, chunk, left < CHUNK ? (size_t)left : CHUNK));
		if (n < 0)
			return err_sys(e, "audit log: read %s", log->files[at].name);
		if (n == 0)
			break;
		for (ssize_t i = 0; i < n; i++)
			*ret += chunk[i] == '\n';
		left -= (uint64_t)n;
	}
	return 0;
}

int chain_log_tail(struct chain_log *log, uint64_t lines, struct err *e)
{
	uint64_t seen = 0;
	struct log_line skipped;

	for (log->at = log->count; log->at > 0 && seen < lines;) {
		uint64_t n = 0;
		if (count(log, --log->at, &n, e) < 0)
			return -1;
		seen += n;
	}
	if (log->at == log->count && log->count) /* none of them */
		log->at = log->count - 1;
	if (!lines && log->count && count(log, log->at, &seen, e) < 0)
		return -1;
	for (; seen > lines; seen--)
		if (chain_log_next(log, &skipped, e) < 0)
			return -1;
	return 0;
}

int chain_log_again(struct chain_log *log, struct err *e)
{
	char name[AUDIT_FILE_TEXT] = "";

	if (log->at < log->count)
		memcpy(name, log->files[log->at].name, sizeof(name));
	if (list_locked(log, e) < 0)
		return -1;
	log->at = 0;
	while (name[0] && log->at + 1 < log->count && strcmp(log->files[log->at].name, name) < 0)
		log->at++;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appends to the log. All lines of an append are made in memory first and written by one
 * write(2) to a file that was opened to append; what was written only in part is cut off
 * again under the same lock.
 */
#include "audit/audit.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/place.h"
#include "audit/settings.h"
#include "audit/sweep.h"
#include "base/base.h"
#include "base/clock.h"

#define ACTOR_TEXT 64

static void actor_of(const struct caller *who, char ret[ACTOR_TEXT])
{
	const struct passwd *pw = getpwuid(who->uid);

	if (pw)
		(void)snprintf(ret, ACTOR_TEXT, "%s", pw->pw_name);
	else
		(void)snprintf(ret, ACTOR_TEXT, "uid %u", (unsigned int)who->uid);
}

static int torn_line(struct audit_place *p, struct buf *out, struct err *e)
{
	const struct audit_field data[] = {
		{.key = "file", .kind = AUDIT_WORD, .text = p->torn_of},
		{.key = "bytes", .kind = AUDIT_UINT, .u = p->torn},
	};
	const struct audit_event v = {.event = "audit.torn",
				      .data = data,
				      .data_count = ARRAY_LEN(data)};

	return audit_line(&p->chain, &v, out, e);
}

/* A file size limit must not end who only wanted to run a command. */
static ssize_t write_once(int fd, const void *p, size_t n)
{
	struct sigaction before;
	const struct sigaction ignore = {.sa_handler = SIG_IGN};

	bool held = sigaction(SIGXFSZ, &ignore, &before) == 0;
	ssize_t wrote = RETRY_EINTR(write(fd, p, n));
	int saved = errno;
	if (held)
		(void)sigaction(SIGXFSZ, &before, NULL);
	errno = saved;
	return wrote;
}

static int write_all(struct audit_place *p, const struct buf *out, bool sync, struct err *e)
{
	ssize_t n = write_once(p->file, out->p, out->n);

	if (n != (ssize_t)out->n) {
		int saved = n < 0 ? errno : ENOSPC;
		/* If that fails too, the next writer sees a torn line. */
		(void)ftruncate(p->file, (off_t)p->size);
		errno = saved;
		return err_sys(e, "audit log: write %s", p->name);
	}
	if (sync && (fdatasync(p->file) < 0 || (p->fresh && fsync(p->dir) < 0)))
		return err_sys(e, "audit log: sync %s", p->name);
	return 0;
}

/* For speed and for people; the log itself counts, so nothing depends on this write. */
static void note_head(const struct audit_place *p)
{
	char text[128];
	int n = snprintf(text, sizeof(text), "%020llu %s %s\n", (unsigned long long)p->chain.seq,
			 p->chain.hash, p->name);

	(void)!pwrite(p->lock, text, (size_t)n, 0);
}

int audit_place_write(struct audit_place *p, const struct caller *who, const struct audit_event *v,
		      size_t n, unsigned int flags, struct err *e)
{
	AUTO_BUF out = BUF_INIT((size_t)MAX_AUDIT_EVENTS * MAX_AUDIT_LINE);
	struct pseudonyms hidden = {.home = who->home};
	struct redact_secrets secrets;
	char actor[ACTOR_TEXT];
	struct audit_settings s;

	assert(n <= MAX_AUDIT_EVENTS);
	actor_of(who, actor);
	if (audit_settings_read(p->dir, &s, e) < 0)
		return -1;
	hidden.actor = actor;
	if (s.pseudonyms && pseudonym_key(p->dir, true, hidden.key, e) < 0)
		return -1;
	p->chain.actor = actor;
	redact_secrets_find(who->env, &secrets);
	p->chain.secrets = &secrets;
	p->chain.hidden = s.pseudonyms ? &hidden : NULL;
	int rc = p->torn ? torn_line(p, &out, e) : 0;
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = audit_line(&p->chain, &v[i], &out, e);
	p->chain.hidden = NULL;
	p->chain.secrets = NULL;
	p->chain.actor = NULL;
	if (rc < 0 || write_all(p, &out, flags & AUDIT_SYNC, e) < 0)
		return -1;
	p->size += out.n;
	p->torn = 0;
	note_head(p);
	return 0;
}

static int open_to_write(const struct caller *who, struct audit_place *p, struct err *e)
{
	int64_t now = clock_wall_ms();

	if (audit_place_open(who, true, p, e) < 0 || audit_place_lock(p, e) < 0)
		return -1;
	if (audit_place_day(p, now, e) < 0)
		return -1;
	p->chain.now_ms = now;
	return 0;
}

int audit_append(const struct caller *who, const struct audit_event *v, size_t n,
		 unsigned int flags, struct err *e)
{
	AUTO_AUDIT_PLACE p = AUDIT_PLACE_NONE;
	struct audit_swept swept;
	struct err ignored = {0};

	if (open_to_write(who, &p, e) < 0 || audit_place_write(&p, who, v, n, flags, e) < 0)
		return -1;
	bool fresh = p.fresh;
	audit_place_release(&p);
	/* Once a day, by who writes first; `gc` says what keeps it from that. */
	if (fresh)
		(void)!audit_sweep(who, false, &swept, &ignored);
	return 0;
}

int audit_head_get(const struct caller *who, struct audit_head *ret, struct err *e)
{
	AUTO_AUDIT_PLACE p = AUDIT_PLACE_NONE;

	if (open_to_write(who, &p, e) < 0)
		return -1;
	/* What was cut is said by who cut it. */
	if (p.torn && audit_place_write(&p, who, NULL, 0, 0, e) < 0)
		return -1;
	*ret = (struct audit_head){.seq = p.chain.seq};
	memcpy(ret->hash, p.chain.hash, sizeof(ret->hash));
	memcpy(ret->file, p.name, sizeof(ret->file));
	return 0;
}

#define MAX_HEAD_FILE 65536

int audit_head_put(const struct caller *who, int dir, struct err *e)
{
	struct audit_head head;
	char text[128];
	struct stat st;

	if (audit_head_get(who, &head, e) < 0)
		return -1;
	AUTO_FD int fd =
		openat(dir, AUDIT_HEAD_FILE,
		       O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_sys(e, AUDIT_HEAD_FILE);
	/* The newest witnesses all that the others do. */
	if (st.st_size > MAX_HEAD_FILE && ftruncate(fd, 0) < 0)
		return err_sys(e, AUDIT_HEAD_FILE);
	int n = snprintf(text, sizeof(text), "%llu %s\n", (unsigned long long)head.seq, head.hash);
	if (write(fd, text, (size_t)n) != n || fsync(fd) < 0)
		return err_sys(e, AUDIT_HEAD_FILE);
	return 0;
}

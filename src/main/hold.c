/* SPDX-License-Identifier: Apache-2.0 */
#include "main/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "run/keep.h"
#include "session/lease.h"

#define CALL_SHOWN 8u /* of a call's id */
#define TRIES 200u    /* of 10 ms: what only reads is soon over */

static const struct timespec pause_10ms = {.tv_nsec = 10000000};

static bool lock_soon(int fd, int how, unsigned int tries)
{
	while (flock(fd, how | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK || !--tries)
			return false;
		(void)nanosleep(&pause_10ms, NULL);
	}
	return true;
}

/* Its layers are never synced, and the keeper that mounted them was of another boot. */
static bool is_unclean(int session)
{
	struct err ignored = {0};
	struct lease l;
	char boot[LEASE_BOOT];

	lease_boot(boot);
	return lease_read(session, &l, &ignored) == 0 && strcmp(l.boot, boot) != 0;
}

static int take_lock(int session, const struct session_record *rec, enum hold_kind kind, int *ret,
		     struct err *e)
{
	AUTO_FD int fd = openat(session, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, "session %s", rec->id);
	if (!lock_soon(fd, kind == HOLD_CHANGE ? LOCK_EX : LOCK_SH, TRIES)) {
		(void)err_set(e, ERR_BUSY,
			      "another diff, apply, discard or export of session %s is under way",
			      rec->id);
		return err_hint(e, "try again when it has ended");
	}
	*ret = TAKE_FD(fd);
	return 0;
}

/* Nobody keeps it: nobody begins to, either. */
static int take_place(int session, const struct session_record *rec, int *ret, struct err *e)
{
	AUTO_FD int fd =
		openat(session, SESSION_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(e, "the session's lock");
	/* Who looks whether it is held has it for a moment. */
	if (!lock_soon(fd, LOCK_SH, TRIES / 10)) {
		(void)err_set(e, ERR_BUSY, "session %s begins or ends right now", rec->id);
		return err_hint(e, "try again in a moment");
	}
	*ret = TAKE_FD(fd);
	return 0;
}

/* The keeper names calls that run, by their beginnings, behind the colon: what ends the first. */
static int say_stop(const struct session_record *rec, struct err *e)
{
	const char *at = strrchr(e->msg, ':');
	const char *call = at ? at + 1 + strspn(at + 1, " ") : "";
	size_t n = strspn(call, "0123456789abcdef");

	if (e->code != ERR_BUSY || n != CALL_SHOWN)
		return -1;
	return err_hint(e, "wait for its end, or end it: sandglass session stop %.8s %.*s", rec->id,
			(int)n, call);
}

int hold_from_keeper(int session, const struct session_record *rec, struct hold *ret, struct err *e)
{
	*ret = HOLD_NONE;
	ret->unclean = is_unclean(session);
	return take_lock(session, rec, HOLD_READ, &ret->lock, e);
}

int hold_session(int session, const struct session_record *rec, enum hold_kind kind,
		 struct hold *ret, struct err *e)
{
	struct keep_request q = {.kind = KEEP_HOLD, .flags = kind == HOLD_READ ? KEEP_FREEZE : 0u};
	static struct keep_answer answer;
	struct err nobody = {0};
	struct hold h = HOLD_NONE;

	*ret = h;
	int rc = take_lock(session, rec, kind, &h.lock, e);
	if (rc == 0 && keep_connect(session, &h.ctl, &nobody) == 0)
		rc = keep_ask(h.ctl, &q, -1, &answer, NULL, e) < 0 ? say_stop(rec, e) : 0;
	else if (rc == 0 && nobody.code == ERR_NOT_FOUND)
		rc = take_place(session, rec, &h.kept, e);
	else if (rc == 0)
		rc = (*e = nobody, -1);
	if (rc < 0)
		hold_end(&h);
	else
		*ret = h;
	ret->unclean = is_unclean(session);
	return rc;
}

void hold_end(struct hold *h)
{
	base_close_fd(&h->ctl);
	base_close_fd(&h->kept);
	base_close_fd(&h->lock);
	h->ctl = h->kept = h->lock = -1;
}

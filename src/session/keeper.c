/* SPDX-License-Identifier: Apache-2.0 */
#include "session/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/file.h"
#include "core/sys.h"
#include "review/recover.h"
#include "run/keep.h"
#include "session/detach.h"
#include "session/egress.h"
#include "session/freezer.h"
#include "session/layers.h"
#include "session/lease.h"
#include "session/masks.h"
#include "session/room.h"
#include "session/tell.h"
#include "session/told.h"
#include "session/usage.h"
#include "store/remove.h"

#define MAX_PEERS 128
#define WAIT_MS 10000u                  /* that a call waits for an apply or a diff to end */
#define END_MS 8000u                    /* that calls have to end: their grace, 5 s, and a little */
#define SAMPLE_MS 100u                  /* between looks at what is used, at least */
#define SAMPLE_SHARE 20u                /* and at most a twentieth of the time is spent on them */
#define STEP_BYTES ((uint64_t)64 << 20) /* written, by whomever: a look at all is due */

struct peer {
	int fd; /* -1: free */
	bool is_call, detached, told;
	bool leaves;                /* it waits for the last word of the proxy */
	struct egress_backlog said; /* by the proxy, and not read yet */
	bool holds, freezes;        /* a review is at work over the session */
	struct keep_request asked;  /* a call that waits for the end of that */
	int asked_fd;
	uint32_t warned;  /* KEEP_NEAR_* that it knows of */
	uint64_t wait_ms; /* until then; 0: none waits */
	char call[UUID_TEXT];
	int init; /* pidfd of its first process; -1: not said yet */
	ino_t pid_ns;
};

#define NO_PEER ((struct peer){.fd = -1, .init = -1, .asked_fd = -1})

struct keeper {
	const struct caller *who;
	struct session_record *rec;
	int dir, lock, uid_fd, listener, signals;
	struct layers layers;
	struct session_egress egress;
	struct lease lease;
	uint64_t end_ms, most_ms; /* of the lease, since boot */
	struct peer peers[MAX_PEERS];
	struct usage_of used;
	uint64_t sample_ms, walk_ms; /* when to look again, at free space and at all */
	uint64_t left;               /* free space at the last look at all */
	uint64_t others;             /* bytes of the other sessions, likewise */
	char cgroup[sizeof(((struct keep_answer *)0)->cgroup)];
	bool mounted, masks;
	bool masked; /* a call has said what is to be masked since the layers were made */
	bool over;
};

int64_t keeper_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME_COARSE, &now); /* the one that file systems read */
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Goes on while the machine sleeps: a lease is a time of day. */
static uint64_t boot_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static size_t calls_of(const struct keeper *k)
{
	size_t n = 0;

	for (size_t i = 0; i < MAX_PEERS; i++)
		n += k->peers[i].fd >= 0 && k->peers[i].is_call;
	return n;
}

static bool is_held(const struct keeper *k, bool frozen)
{
	for (size_t i = 0; i < MAX_PEERS; i++)
		if (k->peers[i].fd >= 0 && (frozen ? k->peers[i].freezes : k->peers[i].holds))
			return true;
	return false;
}

/* Calls stand still while the session is paused or somebody reads what they write. */
static int freeze_or_thaw(const struct keeper *k, struct err *e)
{
	return freezer_set(k->cgroup, k->lease.state == KEEP_PAUSED || is_held(k, true), e);
}

static void save_lease(struct keeper *k)
{
	struct err ignored = {0};
	int64_t now = clock_wall_ms();
	uint64_t boot = boot_ms();

	k->lease.end_ns = (now + (int64_t)k->end_ms - (int64_t)boot) * 1000000;
	k->lease.most_ns = (now + (int64_t)k->most_ms - (int64_t)boot) * 1000000;
	(void)!lease_write(k->dir, &k->lease, &ignored); /* gc finds the one before */
}

/* At most to the end that was set when the session began. */
static void renew(struct keeper *k, uint64_t ms)
{
	uint64_t now = boot_ms();

	k->end_ms = k->most_ms > now && ms < k->most_ms - now ? now + ms : k->most_ms;
	save_lease(k);
}

/* By a call: never less than somebody has asked for. */
static void extend(struct keeper *k)
{
	if (boot_ms() + k->rec->ttl_ms > k->end_ms)
		renew(k, k->rec->ttl_ms);
}

static void drop(struct keeper *k, struct peer *p)
{
	bool was_call = p->is_call;
	bool froze = p->freezes;

	(void)close(p->fd);
	if (p->init >= 0)
		(void)close(p->init);
	base_close_fd(&p->asked_fd);
	egress_backlog_release(&p->said);
	*p = NO_PEER;
	if (was_call && !calls_of(k)) /* of calls that have ended nothing goes on to leave */
		session_egress_tell(&k->egress, EGRESS_ORDER_RESET);
	if (was_call && k->lease.state == KEEP_ACTIVE)
		extend(k);
	if (froze)
		(void)!freeze_or_thaw(k, &(struct err){0});
}

static void fill(const struct keeper *k, struct keep_answer *a)
{
	uint64_t now = boot_ms();

	a->version = KEEP_VERSION;
	a->state = k->lease.state;
	a->calls = (uint32_t)calls_of(k);
	a->lease_ms = k->lease.state == KEEP_PAUSED ? k->lease.left_ms
		      : k->end_ms > now             ? k->end_ms - now
						    : 0;
	a->most_ms = k->most_ms > now ? k->most_ms - now : 0;
	a->bytes = k->used.bytes;
	a->inodes = k->used.inodes;
	(void)snprintf(a->cgroup, sizeof(a->cgroup), "%s", k->cgroup);
}

static void answer(const struct keeper *k, const struct peer *p, uint32_t kind, const struct err *e,
		   const int *fds, size_t count, uint32_t flags)
{
	struct keep_answer a = {.kind = kind, .flags = flags, .code = e ? (uint32_t)e->code : 0};

	fill(k, &a);
	if (e) {
		(void)snprintf(a.message, sizeof(a.message), "%s", e->msg);
		(void)snprintf(a.hint, sizeof(a.hint), "%s", e->hint);
	}
	(void)keep_send(p->fd, &a, sizeof(a), fds, count);
}

/* The call is told to end; its front does it. */
static void end_call(const struct keeper *k, struct peer *p, enum err_code code, const char *why)
{
	struct err e = {0};

	if (p->told)
		return;
	p->told = true;
	(void)err_set(&e, code, "%s", why);
	answer(k, p, KEEP_END, &e, NULL, 0, 0);
}

/* Waits for the ends of all calls, as long as they may take; then they are ended by the kernel. */
static void end_calls(struct keeper *k, enum err_code code, const char *why)
{
	uint64_t until = clock_mono_ms() + END_MS;
	struct pollfd fds[MAX_PEERS];

	for (size_t i = 0; i < MAX_PEERS; i++)
		if (k->peers[i].fd >= 0 && k->peers[i].is_call)
			end_call(k, &k->peers[i], code, why);
	while (calls_of(k) && clock_mono_ms() < until) {
		for (size_t i = 0; i < MAX_PEERS; i++)
			fds[i] = (struct pollfd){.fd = k->peers[i].is_call ? k->peers[i].fd : -1,
						 .events = POLLRDHUP};
		(void)poll(fds, MAX_PEERS, clock_poll_timeout(clock_mono_ms(), until));
		for (size_t i = 0; i < MAX_PEERS; i++)
			if (fds[i].fd >= 0 && (fds[i].revents & (POLLHUP | POLLRDHUP | POLLERR)))
				drop(k, &k->peers[i]);
	}
}

/* The list comes in a file of the caller's own memory. */
static int read_masks(int fd, struct buf *ret, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)MAX_MASKS_LIST)
		return err_set(e, ERR_INTERNAL, "no list of masks");
	size_t n = (size_t)st.st_size;
	if (buf_reserve(ret, n + 1) < 0 || pread(fd, ret->p, n, 0) != (ssize_t)n)
		return err_set(e, ERR_INTERNAL, "the list of masks");
	ret->n = n;
	ret->p[n] = '\0';
	return masks_check(ret->p, n) ? 0
				      : err_set(e, ERR_INTERNAL, "a list of masks that cannot be");
}

static int take_masks(struct keeper *k, const struct buf *list, struct err *e)
{
	bool any = false;

	if (masks_write(k->dir, k->rec, list->p, list->n, &any, e) < 0 ||
	    masks_swap(k->dir, e) < 0 || masks_keep(k->dir, list->p, list->n, e) < 0)
		return -1;
	k->masks = any;
	k->masked = true;
	masks_tell_git(k->dir, k->rec, list->p, list->n);
	return 0;
}

/* Nothing can be masked under calls that run: what is new is not shown, nor are they ended. */
static int check_masks(const struct keeper *k, const struct buf *list, struct err *e)
{
	AUTO_BUF kept = BUF_INIT(MAX_MASKS_LIST);

	if (masks_kept(k->dir, &kept, e) < 0)
		return -1;
	const char *missing = masks_missing(&kept, list->p, list->n);
	if (!missing)
		return 0;
	(void)err_set(e, ERR_BUSY, "%s is new, and cannot be masked while other calls run",
		      missing);
	return err_hint(e, "sandglass session stop %.8s CALL, or --read %s", k->rec->id, missing);
}

/* With nobody inside what the host has changed meanwhile is taken in. */
static int make_ready(struct keeper *k, int fd, bool alone, struct err *e)
{
	AUTO_BUF list = BUF_INIT(MAX_MASKS_LIST + 1);

	if (!session_is_overlay(k->rec))
		return 0;
	if (fd >= 0 && read_masks(fd, &list, e) < 0)
		return -1;
	if (!alone)
		return fd < 0 || !k->masked ? 0 : check_masks(k, &list, e);
	if (fd >= 0 && take_masks(k, &list, e) < 0)
		return -1;
	k->mounted = false;
	if (layers_mount(&k->layers, k->masks, e) < 0)
		return -1;
	k->mounted = true;
	masks_clear(k->dir);
	return 0;
}

/* Nobody sees the source before it is known what of it is hidden. */
static int check_masked(const struct keeper *k, struct err *e)
{
	if (!session_is_overlay(k->rec) || k->masked)
		return 0;
	(void)err_set(e, ERR_BUSY, "a call of before the reset has not ended yet");
	return err_hint(e, "sandglass session calls %s", k->rec->id);
}

static int check_active(const struct keeper *k, struct err *e)
{
	if (k->lease.state == KEEP_PAUSED) {
		(void)err_set(e, ERR_BUSY, "the session is paused");
		return err_hint(e, "sandglass session resume %s", k->rec->id);
	}
	if (k->lease.state != KEEP_ACTIVE)
		return err_set(e, ERR_LEASE_EXPIRED, "the session is at its end");
	return 0;
}

static int check_room(const struct keeper *k, struct err *e)
{
	return room_check(k->rec, &k->used, k->others, e);
}

static void measure(struct keeper *k)
{
	struct usage_of most = {.bytes = k->rec->disk_bytes, .inodes = k->rec->inodes};

	usage_measure(k->dir, &most, &k->used);
}

/* What is used, if it is time for that or much was written since. */
static void look_at_usage(struct keeper *k, uint64_t begin, uint64_t left)
{
	ino_t ns[MAX_PEERS];
	size_t n = 0;

	if (begin < k->walk_ms && k->left < left + STEP_BYTES)
		return;
	for (size_t i = 0; i < MAX_PEERS; i++)
		if (k->peers[i].fd >= 0 && k->peers[i].is_call && k->peers[i].pid_ns)
			ns[n++] = k->peers[i].pid_ns;
	measure(k);
	usage_add_unlinked(ns, n, &k->used);
	room_say(k->dir, k->rec, k->used.bytes);
	k->others = room_others(k->dir, k->rec->id);
	k->walk_ms = boot_ms() + (boot_ms() - begin) * SAMPLE_SHARE;
	k->left = left;
}

/* What was found once is asked anew: since then something may have been thrown away. */
static int find_room(struct keeper *k, struct err *e)
{
	struct err before = {0};

	/* Calls that are shorter than a sample are counted, too. */
	look_at_usage(k, boot_ms(), usage_free(k->dir));
	if (check_room(k, &before) == 0)
		return 0;
	k->others = room_others(k->dir, k->rec->id);
	measure(k);
	room_say(k->dir, k->rec, k->used.bytes);
	return check_room(k, e);
}

/* Each call hears once of each limit that it is near. */
static void warn(struct keeper *k)
{
	struct err why = {0};
	uint32_t near = room_near(k->rec, &k->used, k->others, &why);

	for (size_t i = 0; i < MAX_PEERS && near; i++) {
		struct peer *p = &k->peers[i];
		if (p->fd < 0 || !p->is_call || !(near & ~p->warned))
			continue;
		p->warned |= near;
		answer(k, p, KEEP_WARN, &why, NULL, 0, near);
	}
}

static void tell_calls(void *self, const struct egress_event *v)
{
	struct keeper *k = self;

	for (size_t i = 0; i < MAX_PEERS; i++)
		if (k->peers[i].fd >= 0 && k->peers[i].is_call)
			tell_event(k->peers[i].fd, &k->peers[i].said, v);
}

/* What waits for fronts that read again, and behind it the answer to one that leaves. */
static void go_on_telling(struct keeper *k)
{
	for (size_t i = 0; i < MAX_PEERS; i++) {
		struct peer *p = &k->peers[i];
		if (p->fd < 0 || !tell_flush(p->fd, &p->said) || !p->leaves)
			continue;
		p->leaves = false;
		answer(k, p, KEEP_EGRESS, NULL, NULL, 0, 0);
	}
}

static void begin_call(struct keeper *k, struct peer *p, const struct keep_request *q, int fd)
{
	struct err e = {0};
	int fds[KEEP_FDS];
	size_t n = 0;
	int tree = -1;

	if (p->is_call || !uuid_valid(q->call))
		return (void)(err_set(&e, ERR_INTERNAL, "a call of no name"),
			      answer(k, p, q->kind, &e, NULL, 0, 0));
	bool has_tree = k->rec->writes != SESSION_DIRECT && k->rec->source[0];
	if (check_active(k, &e) < 0 || find_room(k, &e) < 0 ||
	    keeper_mend_places(k->dir, k->rec, &e) < 0 || make_ready(k, fd, !calls_of(k), &e) < 0 ||
	    check_masked(k, &e) < 0 || session_egress_ready(&k->egress, &k->layers, &e) < 0 ||
	    (has_tree && layers_tree(&k->layers, &tree, &e) < 0)) {
		answer(k, p, q->kind, &e, NULL, 0, 0);
		return;
	}
	fds[n++] = k->layers.pidns;
	fds[n++] = k->layers.net;
	if (k->layers.user >= 0)
		fds[n++] = k->layers.user;
	if (tree >= 0)
		fds[n++] = tree;
	if (k->egress.authority >= 0)
		fds[n++] = k->egress.authority;
	uint32_t flags = (k->layers.user >= 0 ? KEEP_HAS_USER : 0u) |
			 (tree >= 0 ? KEEP_HAS_TREE : 0u) |
			 (k->egress.authority >= 0 ? KEEP_HAS_AUTHORITY : 0u) |
			 (k->egress.no_redirect ? KEEP_NO_REDIRECT : 0u);
	p->is_call = true;
	p->detached = q->flags & KEEP_DETACHED;
	memcpy(p->call, q->call, UUID_TEXT);
	extend(k);
	k->sample_ms = boot_ms() + SAMPLE_MS;
	answer(k, p, q->kind, NULL, fds, n, flags);
	warn(k);
	if (tree >= 0)
		(void)close(tree);
}

static int being_reviewed(const struct keeper *k, struct err *e)
{
	(void)err_set(e, ERR_BUSY, "a diff, an apply or a discard of session %s is under way",
		      k->rec->id);
	return err_hint(e, "try again when it has ended");
}

/* A call that would change what somebody reads or applies waits. */
static void begin_or_wait(struct keeper *k, struct peer *p, const struct keep_request *q, int *fd)
{
	if (!is_held(k, false) || p->is_call || p->wait_ms)
		return begin_call(k, p, q, *fd);
	p->asked = *q;
	p->asked_fd = *fd;
	p->wait_ms = boot_ms() + WAIT_MS;
	*fd = -1;
}

static void end_waits(struct keeper *k)
{
	bool held = is_held(k, false);
	uint64_t now = boot_ms();
	struct err e = {0};

	for (size_t i = 0; i < MAX_PEERS; i++) {
		struct peer *p = &k->peers[i];
		if (p->fd < 0 || !p->wait_ms || (held && now < p->wait_ms))
			continue;
		int fd = p->asked_fd;
		p->wait_ms = 0;
		p->asked_fd = -1;
		if (!held)
			begin_call(k, p, &p->asked, fd);
		else if (being_reviewed(k, &e) < 0)
			answer(k, p, p->asked.kind, &e, NULL, 0, 0);
		base_close_fd(&fd);
	}
}

/* "CALL, CALL and 2 more" */
static void name_calls(const struct keeper *k, char *ret, size_t len)
{
	size_t n = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < MAX_PEERS; i++) {
		if (k->peers[i].fd < 0 || !k->peers[i].is_call || n++ >= 2)
			continue;
		(void)snprintf(ret + strlen(ret), len - strlen(ret), "%s%.8s", n > 1 ? ", " : "",
			       k->peers[i].call);
	}
	if (n > 2)
		(void)snprintf(ret + strlen(ret), len - strlen(ret), " and %zu more", n - 2);
}

static int hold(struct keeper *k, struct peer *p, const struct keep_request *q, struct err *e)
{
	char names[128];
	size_t calls = calls_of(k);

	if (p->is_call || p->holds)
		return err_set(e, ERR_INTERNAL, "a hold of a call");
	p->holds = true;
	p->freezes = calls && (q->flags & KEEP_FREEZE) && k->cgroup[0];
	if (!calls || (p->freezes && freeze_or_thaw(k, e) == 0))
		return 0;
	p->holds = p->freezes = false;
	if (k->cgroup[0])
		(void)!freeze_or_thaw(k, &(struct err){0});
	name_calls(k, names, sizeof(names));
	(void)err_set(e, ERR_BUSY, "%zu call%s of session %s run%s: %s", calls,
		      calls == 1 ? "" : "s", k->rec->id, calls == 1 ? "s" : "", names);
	return err_hint(e, "wait for its end, or end it: sandglass session stop %s CALL",
			k->rec->id);
}

static int pause_all(struct keeper *k, struct err *e)
{
	uint64_t now = boot_ms();

	if (k->lease.state == KEEP_PAUSED)
		return 0;
	if (check_active(k, e) < 0)
		return -1;
	if (!k->cgroup[0]) {
		(void)err_set(
			e, ERR_LIMIT_UNAVAILABLE,
			"this host gives us no freezer (cgroup v2), so nothing can be paused");
		return err_hint(e, "sandglass doctor says what is missing");
	}
	if (freezer_set(k->cgroup, true, e) < 0) {
		(void)!freezer_set(k->cgroup, false, &(struct err){0});
		return -1;
	}
	session_egress_tell(&k->egress, EGRESS_ORDER_STILL);
	k->lease.left_ms = k->end_ms > now ? k->end_ms - now : 0;
	k->lease.state = KEEP_PAUSED;
	save_lease(k);
	session_told(k->who, k->rec, "session.pause", NULL);
	return 0;
}

/* A paused session's lease does not run; its end for good does. */
static int resume_all(struct keeper *k, struct err *e)
{
	if (k->lease.state != KEEP_PAUSED)
		return k->lease.state == KEEP_ACTIVE ? 0 : check_active(k, e);
	k->lease.state = KEEP_ACTIVE;
	if (freeze_or_thaw(k, e) < 0) {
		k->lease.state = KEEP_PAUSED;
		return -1;
	}
	session_egress_tell(&k->egress, EGRESS_ORDER_GO);
	renew(k, k->lease.left_ms);
	session_told(k->who, k->rec, "session.resume", NULL);
	return 0;
}

static int stop_call(struct keeper *k, const char *call, struct err *e)
{
	for (size_t i = 0; i < MAX_PEERS; i++) {
		struct peer *p = &k->peers[i];
		if (p->fd < 0 || !p->is_call || strncmp(p->call, call, strlen(call)) != 0)
			continue;
		end_call(k, p, ERR_CANCELLED, "the call was stopped");
		return 0;
	}
	(void)err_set(e, ERR_NOT_FOUND, "no call `%s` runs in this session", call);
	return err_hint(e, "sandglass session calls %s", k->rec->id);
}

static int start_layers(struct keeper *k, struct err *e)
{
	k->mounted = k->masks = k->masked = false;
	if (layers_start(&k->layers, k->dir, k->rec, e) < 0)
		return -1;
	if (session_is_overlay(k->rec) && layers_mount(&k->layers, false, e) < 0)
		return -1;
	k->mounted = true;
	return 0;
}

static void kill_all(struct keeper *k)
{
	if (k->cgroup[0])
		freezer_kill(k->cgroup);
	session_egress_end(&k->egress);
	layers_end(&k->layers);
}

static int reset(struct keeper *k, struct err *e)
{
	if (check_active(k, e) < 0)
		return -1;
	if (is_held(k, false))
		return being_reviewed(k, e);
	if (review_recover(k->who, k->dir, k->rec, e) < 0)
		return -1;
	end_calls(k, ERR_CANCELLED, "the session was reset");
	kill_all(k);
	session_told(k->who, k->rec, "session.reset", NULL);
	k->rec->base_ns = keeper_now_ns();
	if (keeper_make_places(k->dir, k->rec, e) < 0)
		return -1;
	k->rec->copied_ns = keeper_now_ns();
	if (session_write_base(k->dir, k->rec, e) < 0)
		return -1;
	return start_layers(k, e);
}

/* In a process of its own, which may take its time and read hostile files. */
static bool keep_changes(const struct keeper *k)
{
	char *argv[] = {(char *)(uintptr_t) "sandglass-main", (char *)(uintptr_t) "export",
			(char *)(uintptr_t) "--at-end", k->rec->id, NULL};
	pid_t pid = -1;
	int status = 0;

	if (k->rec->writes == SESSION_DIRECT || !k->rec->source[0])
		return true;
	if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, k->who->env) != 0)
		return false;
	return RETRY_EINTR(waitpid(pid, &status, 0)) == pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 0;
}

/* Frozen, so that what is kept is of one moment; then everything ends. */
static bool end_session(struct keeper *k, enum err_code code, const char *why, bool keep)
{
	struct err ignored = {0};

	k->lease.state = KEEP_ENDING;
	save_lease(k);
	session_told(k->who, k->rec,
		     code == ERR_LEASE_EXPIRED ? "session.expire" : "session.destroy",
		     keep ? NULL : "changes discarded");
	bool frozen = code == ERR_LEASE_EXPIRED && k->cgroup[0] &&
		      freezer_set(k->cgroup, true, &ignored) == 0;
	if (!frozen)
		end_calls(k, code, why);
	if (!frozen)
		kill_all(k);
	/* An apply that was killed is finished first: its journal is all there is of it. */
	bool whole = review_recover(k->who, k->dir, k->rec, &ignored) == 0;
	bool kept = whole && (!keep || keep_changes(k));
	for (size_t i = 0; frozen && i < MAX_PEERS; i++)
		if (k->peers[i].fd >= 0 && k->peers[i].is_call)
			end_call(k, &k->peers[i], code, why);
	if (frozen)
		kill_all(k);
	if (frozen)
		end_calls(k, code, why);
	if (kept)
		keeper_remove(k->who, k->dir, k->rec);
	k->over = true;
	return kept;
}

static int destroy(struct keeper *k, bool discard, struct err *e)
{
	if (is_held(k, false))
		return being_reviewed(k, e);
	if (end_session(k, ERR_CANCELLED, "the session was destroyed", !discard))
		return 0;
	(void)err_set(e, ERR_INTERNAL, "its changes could not be kept, so it was not removed");
	return err_hint(e, "sandglass export %s says why; destroy --discard throws them away",
			k->rec->id);
}

/* What is not a call. */
static int carry_out(struct keeper *k, const struct keep_request *q, struct err *e)
{
	switch ((enum keep_kind)q->kind) {
	case KEEP_STATUS:
		measure(k);
		return 0;
	case KEEP_RENEW:
		if (check_active(k, e) < 0)
			return -1;
		renew(k, q->value);
		session_told(k->who, k->rec, "session.renew", NULL);
		return 0;
	case KEEP_PAUSE:
		return pause_all(k, e);
	case KEEP_RESUME:
		return resume_all(k, e);
	case KEEP_STOP:
		return stop_call(k, q->call, e);
	case KEEP_RESET:
		return reset(k, e);
	case KEEP_DESTROY:
		return destroy(k, q->value == 1, e);
	case KEEP_BEGIN:
	case KEEP_INIT:
	case KEEP_END:
	case KEEP_HOLD:
	case KEEP_EGRESS:
	case KEEP_WARN:
	case KEEP_NET:
	case KEEP_SECRETS:
	case KEEP_KINDS:
		break;
	}
	return err_set(e, ERR_UNSUPPORTED, "the session's keeper does not know that");
}

/* Also while the session is paused: what stands still can be closed off. */
static int change_net(struct keeper *k, const struct keep_request *q, int base, int more,
		      struct err *e)
{
	if (k->lease.state != KEEP_PAUSED && check_active(k, e) < 0)
		return -1;
	if (session_egress_take(&k->egress, base, e) < 0 ||
	    session_egress_change(&k->egress, &k->layers, more, q->flags & KEEP_ANEW, e) < 0)
		return -1;
	session_told(k->who, k->rec, "policy.change", "session net");
	return 0;
}

static void take_secrets(struct keeper *k, const struct peer *p, int *fd, int *values)
{
	struct err e = {0};
	int rc = session_egress_secrets(&k->egress, fd, values, &e);

	answer(k, p, KEEP_SECRETS, rc < 0 ? &e : NULL, &k->egress.values, k->egress.values >= 0, 0);
}

static void on_request(struct keeper *k, struct peer *p)
{
	struct keep_request q;
	struct err e = {0};
	int fds[2];

	long n = keep_receive(p->fd, &q, sizeof(q), fds, 2, MSG_DONTWAIT);
	int fd = fds[0];
	AUTO_FD int rules = fds[1];
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != sizeof(q) || q.version != KEEP_VERSION) {
		drop(k, p);
	} else if (q.kind == KEEP_BEGIN) {
		q.call[UUID_TEXT - 1] = '\0';
		if (session_egress_take(&k->egress, rules, &e) == 0)
			begin_or_wait(k, p, &q, &fd);
		else
			answer(k, p, q.kind, &e, NULL, 0, 0);
	} else if (q.kind == KEEP_HOLD) {
		int rc = hold(k, p, &q, &e);
		answer(k, p, q.kind, rc < 0 ? &e : NULL, NULL, 0, 0);
	} else if (q.kind == KEEP_EGRESS) {
		session_egress_tell(&k->egress, EGRESS_ORDER_TALLY);
		p->leaves = true;
	} else if (q.kind == KEEP_NET) {
		int rc = change_net(k, &q, fd, rules, &e);
		answer(k, p, q.kind, rc < 0 ? &e : NULL, NULL, 0, 0);
	} else if (q.kind == KEEP_SECRETS) {
		take_secrets(k, p, &fd, &rules);
	} else if (q.kind == KEEP_INIT) {
		if (p->is_call && p->init < 0 && fd >= 0) {
			p->init = fd;
			p->pid_ns = usage_pid_ns(fd);
			fd = -1;
		}
	} else {
		q.call[UUID_TEXT - 1] = '\0';
		int rc = carry_out(k, &q, &e);
		answer(k, p, q.kind, rc < 0 ? &e : NULL, NULL, 0, 0);
	}
	if (fd >= 0)
		(void)close(fd);
}

static void on_peer(struct keeper *k)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	AUTO_FD int fd = accept4(k->listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0 ||
	    (who.uid != geteuid() && who.uid != 0))
		return;
	for (size_t i = 0; i < MAX_PEERS; i++)
		if (k->peers[i].fd < 0) {
			k->peers[i] = NO_PEER;
			k->peers[i].fd = TAKE_FD(fd);
			return;
		}
}

/* Over a limit: what writes is ended, what is there stays for review. */
static void end_writers(struct keeper *k, const struct err *e)
{
	bool frozen = k->cgroup[0] && freezer_set(k->cgroup, true, &(struct err){0}) == 0;

	for (size_t i = 0; i < MAX_PEERS; i++)
		if (k->peers[i].fd >= 0 && k->peers[i].is_call)
			end_call(k, &k->peers[i], e->code, e->msg);
	/* No grace: what it writes until then is not there. */
	for (size_t i = 0; i < MAX_PEERS; i++)
		if (k->peers[i].init >= 0)
			(void)syscall(SYS_pidfd_send_signal, k->peers[i].init, SIGKILL, NULL, 0);
	if (frozen || k->cgroup[0])
		(void)!freeze_or_thaw(k, &(struct err){0});
}

static void on_sample(struct keeper *k)
{
	uint64_t begin = boot_ms();
	uint64_t left = usage_free(k->dir);
	struct err e = {0};

	k->sample_ms = begin + SAMPLE_MS;
	/* First, for the walk takes its time. */
	if (left < USAGE_FLOOR_BYTES) {
		(void)err_set(&e, ERR_DISK_LIMIT,
			      "less than %llu MiB are left on the host where sessions lie",
			      (unsigned long long)(USAGE_FLOOR_BYTES >> 20));
	} else {
		look_at_usage(k, begin, left);
		(void)!check_room(k, &e);
	}
	if (e.code != ERR_NONE)
		end_writers(k, &e);
	else
		warn(k);
}

static uint64_t next_ms(const struct keeper *k)
{
	uint64_t next = k->lease.state == KEEP_PAUSED ? k->most_ms : k->end_ms;

	if (calls_of(k) && k->lease.state == KEEP_ACTIVE && k->sample_ms < next)
		next = k->sample_ms;
	for (size_t i = 0; i < MAX_PEERS; i++)
		if (k->peers[i].fd >= 0 && k->peers[i].wait_ms && k->peers[i].wait_ms < next)
			next = k->peers[i].wait_ms;
	return next;
}

/* What time alone brings: the end of the lease, a look at what the calls have taken. */
static void keep_time(struct keeper *k)
{
	uint64_t now = boot_ms();

	if (now >= (k->lease.state == KEEP_PAUSED ? k->most_ms : k->end_ms))
		(void)end_session(k, ERR_LEASE_EXPIRED, "the session's lease is over", true);
	else if (calls_of(k) && k->lease.state == KEEP_ACTIVE && now >= k->sample_ms)
		on_sample(k);
}

static short peer_events(const struct peer *p)
{
	return egress_backlog_waits(&p->said) ? POLLIN | POLLOUT : POLLIN;
}

static void loop(struct keeper *k)
{
	struct pollfd fds[MAX_PEERS + 3];

	while (!k->over) {
		for (size_t i = 0; i < MAX_PEERS; i++)
			fds[i] = (struct pollfd){.fd = k->peers[i].fd,
						 .events = peer_events(&k->peers[i])};
		fds[MAX_PEERS] = (struct pollfd){.fd = k->listener, .events = POLLIN};
		fds[MAX_PEERS + 1] = (struct pollfd){.fd = k->layers.ctl, .events = POLLRDHUP};
		fds[MAX_PEERS + 2] =
			(struct pollfd){.fd = session_egress_fd(&k->egress), .events = POLLIN};
		(void)poll(fds, MAX_PEERS + 3, clock_poll_timeout(boot_ms(), next_ms(k)));
		session_egress_step(&k->egress);
		for (size_t i = 0; i < MAX_PEERS && !k->over; i++)
			if (fds[i].fd >= 0 && fds[i].fd == k->peers[i].fd &&
			    (fds[i].revents & ~POLLOUT))
				on_request(k, &k->peers[i]);
		go_on_telling(k);
		if (!k->over && fds[MAX_PEERS].revents)
			on_peer(k);
		if (!k->over)
			end_waits(k);
		if (k->over)
			return;
		if (fds[MAX_PEERS + 1].fd == k->layers.ctl &&
		    (fds[MAX_PEERS + 1].revents & (POLLHUP | POLLERR)))
			return; /* the holder was killed: nothing runs any more; who comes next begins anew */
		keep_time(k);
	}
}

static int listen_at(struct keeper *k, struct err *e)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};

	(void)snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/" SESSION_SOCKET,
		       k->dir);
	(void)unlinkat(k->dir, SESSION_SOCKET, 0);
	k->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t was = umask(0077);
	int rc = k->listener < 0 ? -1 : bind(k->listener, (struct sockaddr *)&at, sizeof(at));
	(void)umask(was);
	if (rc < 0 || listen(k->listener, MAX_PEERS) < 0)
		return err_sys(e, "the keeper's socket");
	return 0;
}

static void begin_lease(struct keeper *k, bool fresh)
{
	struct lease before;
	struct err ignored = {0};
	uint64_t now = boot_ms();

	k->most_ms = now + k->rec->max_ms;
	k->end_ms = now + k->rec->ttl_ms;
	if (!fresh && lease_read(k->dir, &before, &ignored) == 0) {
		int64_t wall = clock_wall_ms();
		int64_t most = before.most_ns / 1000000 - wall;
		k->most_ms = now + (most > 0 ? (uint64_t)most : 0);
	}
	if (k->end_ms > k->most_ms)
		k->end_ms = k->most_ms;
	lease_boot(k->lease.boot);
	k->lease.state = KEEP_ACTIVE;
	save_lease(k);
}

static int begin(struct keeper *k, bool fresh, struct err *e)
{
	freezer_make(k->rec->id, k->cgroup, sizeof(k->cgroup));
	if (start_layers(k, e) < 0 || listen_at(k, e) < 0)
		return -1;
	if (k->rec->writes == SESSION_COPY && fresh)
		k->rec->copied_ns = keeper_now_ns();
	if (fresh && session_write(k->dir, k->rec, e) < 0)
		return -1;
	begin_lease(k, fresh);
	if (fresh)
		session_told(k->who, k->rec, "session.create", NULL);
	return 0;
}

/* What the process that waits for us reads. */
struct word {
	struct err e;
	bool good;
};

static _Noreturn void keep(const struct caller *who, int dir, struct session_record *rec,
			   const struct keeper_fds *held, bool fresh, int tell)
{
	static struct keeper k;
	struct word w = {.good = false};
	int *const mine[] = {&k.dir, &k.uid_fd,         &k.lock,
			     &tell,  &k.egress.secrets, &k.egress.values};

	k = (struct keeper){.who = who,
			    .rec = rec,
			    .dir = dir,
			    .uid_fd = held->uid,
			    .lock = held->lock,
			    .listener = -1,
			    .egress = {.tell = tell_calls,
				       .self = &k,
				       .secrets = held->secrets,
				       .values = held->values,
				       .authority = -1},
			    .layers = {.ctl = -1, .user = -1, .pidns = -1, .net = -1}};
	for (size_t i = 0; i < MAX_PEERS; i++)
		k.peers[i] = NO_PEER;
	detach(mine, ARRAY_LEN(mine));
	k.egress.dir = k.dir;
	w.good = begin(&k, fresh, &w.e) == 0;
	(void)!write(tell, &w, sizeof(w));
	(void)close(tell);
	if (w.good)
		loop(&k);
	layers_end(&k.layers);
	_exit(0);
}

int keeper_start(const struct caller *who, int dir, struct session_record *rec,
		 const struct keeper_fds *held, bool fresh, struct err *e)
{
	struct word w;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	pid_t pid = fork();
	if (pid == 0)
		keep(who, dir, rec, held, fresh, ends[1]);
	(void)close(ends[1]);
	ssize_t n = pid < 0 ? -1 : RETRY_EINTR(read(ends[0], &w, sizeof(w)));
	(void)close(ends[0]);
	if (n != sizeof(w))
		return err_set(e, ERR_INTERNAL, "the session's keeper has not started");
	if (w.good)
		return 0;
	(void)RETRY_EINTR(waitpid(pid, NULL, 0));
	*e = w.e;
	return -1;
}

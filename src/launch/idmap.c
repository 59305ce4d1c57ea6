/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As root: the source's mounts are id-mapped by a user namespace that exists
 * for nothing else, held by a process that does nothing else.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/file.h"
#include "core/sys.h"
#include "core/tree.h"
#include "launch/launch.h"

#define STACK_BYTES 4096u

/*
 * Identity but for two ids: where `from` is on disk `to` appears, and what `to`
 * itself owns on disk (nothing should) appears as nobody's.
 */
static void idmap_text(char *out, size_t len, uint32_t from, uint32_t to)
{
	uint32_t low = from < to ? from : to;
	uint32_t high = from < to ? to : from;
	size_t n = 0;

	if (low)
		n += (size_t)snprintf(out + n, len - n, "0 0 %u\n", low);
	n += (size_t)snprintf(out + n, len - n, "%u %u 1\n", from, to);
	if (high - low > 1)
		n += (size_t)snprintf(out + n, len - n, "%u %u %u\n", low + 1, low + 1,
				      high - low - 1);
	(void)snprintf(out + n, len - n, "%u %u %u\n", high + 1, high + 1, UINT32_MAX - high - 1);
}

static int idmap_write(pid_t pid, const char *file, uint32_t from, uint32_t to)
{
	char path[64];
	char text[256];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	idmap_text(text, sizeof(text), from, to);
	return file_write_text(path, text);
}

/* Held until it is killed. It shares our memory and writes none of it. */
static int hold(void *parent)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	while (getppid() == *(const pid_t *)parent)
		(void)pause();
	return 0;
}

/* A process that holds a fresh user namespace, and nothing else, until it is killed. */
void idmap_start_holder(struct launch *l)
{
	static pid_t self;

	self = getpid();
#ifdef SANDGLASS_SANITIZED
	struct clone_args a = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
	long pid = sys_clone3(&a);
	if (pid == 0)
		_exit(hold(&self));
#else
	static _Alignas(16) char stack[STACK_BYTES];
	long pid = clone(hold, stack + sizeof(stack),
			 CLONE_VM | CLONE_FILES | CLONE_NEWUSER | SIGCHLD, &self);
#endif
	l->holder = pid > 0 ? (pid_t)pid : 0; /* else tried again, and then told, if it is needed */
}

/* Killed now, reaped when there is time: its end is nobody's to wait for. */
void idmap_end_holder(struct launch *l)
{
	if (!l->holder)
		return;
	idmap_reap_holder(l);
	(void)kill(l->holder, SIGKILL);
	l->ended = l->holder;
	l->holder = 0;
}

void idmap_reap_holder(struct launch *l)
{
	while (l->ended && waitpid(l->ended, NULL, 0) < 0 && errno == EINTR)
		;
	l->ended = 0;
}

/*
 * A user namespace that exists only as the map of the source's mounts: its
 * owner on disk appears as the session's uid, everybody else as themselves, so
 * the command writes files that belong to the owner and is a stranger to
 * everything else. As root only. Returns the namespace's descriptor, or -1.
 */
int idmap_make(struct launch *l, uint32_t owner_uid, uint32_t owner_gid)
{
	char path[64];

	if (!l->holder)
		idmap_start_holder(l);
	if (!l->holder)
		return launch_fail(l, STAGE_CLONE, errno, "make the map's user namespace");
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)l->holder);
	int fd = idmap_write(l->holder, "uid_map", owner_uid, l->p->n.outer_uid) < 0 ||
				 idmap_write(l->holder, "gid_map", owner_gid, l->p->n.outer_gid) < 0
			 ? -1
			 : open(path, O_RDONLY | O_CLOEXEC);
	int saved = errno;
	idmap_end_holder(l);
	if (fd < 0)
		return launch_fail(l, STAGE_MAPS, saved, "the map of the source's owner");
	return fd;
}

/*
 * One map serves the mounts of one owner. What the system reads init opens itself,
 * for an ordinary user all but what is given.
 */
int idmap_open_trees(struct launch *l)
{
	const struct plan_mount *mapped = NULL;
	bool root = l->p->n.flags & PLAN_ROOT;
	AUTO_FD int idmap_fd = -1;

	l->trees = malloc((l->p->mount_count + 1) * sizeof(*l->trees));
	if (!l->trees)
		return launch_fail(l, STAGE_BIND, ENOMEM, "trees");
	for (size_t i = 0; i < l->p->mount_count; i++)
		l->trees[i] = -1;
	for (size_t i = l->opened; i < l->p->mount_count; i++) {
		const struct plan_mount *m = &l->p->mounts[i];
		if (m->kind == MOUNT_BIND && (m->flags & MOUNT_GIVEN))
			l->trees[i] = TAKE_FD(l->given);
		if (m->kind != MOUNT_BIND || mount_is_plain(m) || (m->flags & MOUNT_GIVEN) || !root)
			continue;
		if ((m->flags & MOUNT_IDMAP) && !(mapped && mapped->owner_uid == m->owner_uid &&
						  mapped->owner_gid == m->owner_gid)) {
			if (idmap_fd >= 0)
				(void)close(idmap_fd);
			idmap_fd = idmap_make(l, m->owner_uid, m->owner_gid);
			if (idmap_fd < 0)
				return -1;
			mapped = m;
		}
		l->trees[i] = tree_open(m, idmap_fd, &l->failure);
		if (l->trees[i] == TREE_FAILED)
			return -1;
	}
	l->opened = l->p->mount_count;
	return 0;
}

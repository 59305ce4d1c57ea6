/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directories of a session: made, emptied, removed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/file.h"
#include "base/path.h"
#include "session/copy.h"
#include "session/freezer.h"
#include "session/keeper.h"
#include "session/state.h"
#include "store/remove.h"

static int make(int dir, const char *path, mode_t mode, const struct session_record *rec,
		struct err *e)
{
	if (mkdirat(dir, path, 0700) < 0)
		return err_sys(e, "make %s of the session", path);
	AUTO_FD int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fchmod(fd, mode) < 0 || (rec->root && fchown(fd, rec->uid, rec->gid) < 0))
		return err_sys(e, "%s of the session", path);
	return 0;
}

/* As the source's own top is seen through it. */
static int make_upper(int dir, const struct session_record *rec, struct err *e)
{
	struct stat st;

	if (stat(rec->source, &st) < 0)
		return err_sys(e, "%s", rec->source);
	if (make(dir, "upper", st.st_mode & 0777, rec, e) < 0)
		return -1;
	if (utimensat(dir, "upper", (const struct timespec[]){st.st_atim, st.st_mtim},
		      AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "upper of the session");
	return make(dir, "work", 0700, rec, e);
}

/* The caller's name, e-mail and default branch for git, worked out when the session was made. */
static int put_gitconfig(int dir, const struct session_record *rec, struct err *e)
{
	char text[8192];

	AUTO_FD int from = openat(dir, "gitconfig", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n = from < 0 ? 0 : read(from, text, sizeof(text));
	if (n <= 0)
		return 0;
	AUTO_FD int to = openat(dir, "root/home/.gitconfig",
				O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (to < 0 || write(to, text, (size_t)n) != n ||
	    (rec->root && fchown(to, rec->uid, rec->gid) < 0))
		return err_sys(e, "the session's .gitconfig");
	return 0;
}

static const struct {
	const char *path;
	mode_t mode;
} places[] = {
	{"root", 0700},      {"root/home", 0700}, {"root/cache", 0700},
	{"root/logs", 0700}, {"root/tmp", 01777}, {"root/workspace", 0700},
};

int keeper_mend_places(int dir, const struct session_record *rec, struct err *e)
{
	struct stat st;

	for (size_t i = 1; i < ARRAY_LEN(places); i++) {
		if (fstatat(dir, places[i].path, &st, AT_SYMLINK_NOFOLLOW) == 0) {
			if (S_ISDIR(st.st_mode))
				continue;
			if (unlinkat(dir, places[i].path, 0) < 0)
				return err_sys(e, "%s of the session", places[i].path);
		}
		if (make(dir, places[i].path, places[i].mode, rec, e) < 0)
			return -1;
	}
	return 0;
}

int keeper_make_places(int dir, const struct session_record *rec, struct err *e)
{
	static const char *const parts[] = {"upper", "work", "copy",   "mnt",
					    "masks", "root", "results"};

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		remove_tree(dir, parts[i]);
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (make(dir, places[i].path, places[i].mode, rec, e) < 0)
			return -1;
	if (mkdirat(dir, "results", 0700) < 0)
		return err_sys(e, "make results of the session");
	if (put_gitconfig(dir, rec, e) < 0)
		return -1;
	if (session_is_overlay(rec))
		return mkdirat(dir, "mnt", 0700) < 0 ? err_sys(e, "make mnt of the session")
						     : make_upper(dir, rec, e);
	return rec->writes == SESSION_COPY && rec->source[0] ? copy_source(dir, rec, e) : 0;
}

/* Whether anything but record and lock is still there. */
static bool is_left(int dir)
{
	bool left = false;

	AUTO_FD int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(fcntl(copy, F_DUPFD_CLOEXEC, 3));
	for (struct dirent *at = d ? readdir(d) : NULL; at; at = readdir(d))
		left |= !path_is_dots(at->d_name) && strcmp(at->d_name, SESSION_RECORD) != 0 &&
			strcmp(at->d_name, SESSION_LOCK) != 0;
	if (d)
		(void)closedir(d);
	return left;
}

void keeper_remove(const struct caller *who, int dir, const struct session_record *rec)
{
	char home[PATH_TEXT];
	char cgroup[PATH_TEXT];
	struct state *state = NULL;
	struct err ignored = {0};

	freezer_make(rec->id, cgroup, sizeof(cgroup));
	if (cgroup[0]) {
		freezer_kill(cgroup);
		freezer_remove(cgroup);
	}
	/* The record goes last: what has none is swept without a question. */
	AUTO_FD int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(fcntl(copy, F_DUPFD_CLOEXEC, 3));
	for (struct dirent *at = d ? readdir(d) : NULL; at; at = readdir(d))
		if (!path_is_dots(at->d_name) && strcmp(at->d_name, SESSION_RECORD) != 0 &&
		    strcmp(at->d_name, SESSION_LOCK) != 0)
			remove_tree(dir, at->d_name);
	if (d)
		(void)closedir(d);
	if (is_left(dir))
		return; /* gc comes again */
	(void)unlinkat(dir, SESSION_RECORD, 0);
	(void)unlinkat(dir, SESSION_LOCK, 0);
	if (session_home(who, home, &ignored) == 0) {
		AUTO_FD int sessions = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (sessions >= 0)
			(void)unlinkat(sessions, rec->id, AT_REMOVEDIR);
	}
	if (state_open(who, &state, &ignored) == 0) {
		(void)!state_gone(state, rec->id, &ignored);
		state_close(state);
	}
}

int keeper_lock(int dir, int *ret, struct err *e)
{
	static const struct timespec pause = {.tv_nsec = 5000000};

	AUTO_FD int fd = openat(dir, SESSION_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(e, "the session's lock");
	/* Who only looks whether it is held has it for a moment (session_is_kept()). */
	for (int tries = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; tries++) {
		if (tries == 20)
			return err_set(e, ERR_BUSY, "the session is held by another process");
		(void)nanosleep(&pause, NULL);
	}
	*ret = TAKE_FD(fd);
	return 0;
}

int keeper_lock_all(const struct caller *who, int *ret, struct err *e)
{
	char home[PATH_TEXT];
	char path[PATH_TEXT + 8];

	if (session_home(who, home, e) < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "%s/.lock", home);
	if (!file_make_dirs(path, 0700))
		return err_sys(e, "make %s", home);
	AUTO_FD int all = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (all < 0 || RETRY_EINTR(flock(all, LOCK_EX)) < 0)
		return err_sys(e, "lock %s", home);
	*ret = TAKE_FD(all);
	return 0;
}

/* Under the lock over all nobody is between an id and the lock of its directory. */
static void reconcile_one(const struct caller *who, struct state *state,
			  const struct state_session *row)
{
	struct session_record rec = {.uid = 0};
	struct err ignored = {0};
	AUTO_FD int all = -1;
	AUTO_FD int dir = -1;
	AUTO_FD int lock = -1;

	if (keeper_lock_all(who, &all, &ignored) < 0)
		return;
	if (session_open(who, row->id, &dir, &ignored) < 0) {
		(void)!state_gone(state, row->id, &ignored);
		return;
	}
	if (faccessat(dir, SESSION_RECORD, F_OK, 0) == 0 || keeper_lock(dir, &lock, &ignored) < 0)
		return;
	(void)close(all); /* what is removed can be much */
	all = -1;
	memcpy(rec.id, row->id, sizeof(rec.id));
	keeper_remove(who, dir, &rec);
}

void keeper_reconcile(const struct caller *who)
{
	struct state_list list;
	struct state *state = NULL;
	struct err ignored = {0};

	if (state_open(who, &state, &ignored) < 0)
		return;
	if (state_list(state, &list, &ignored) == 0) {
		for (size_t i = 0; i < list.n; i++)
			reconcile_one(who, state, &list.v[i]);
		state_list_release(&list);
	}
	state_close(state);
}

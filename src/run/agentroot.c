/* SPDX-License-Identifier: Apache-2.0 */
#include "run/agentroot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/path.h"
#include "policy/rung.h"
#include "policy/state.h"
#include "store/remove.h"
#include "store/session.h"

#define LOCK "lock"

/* A session's directory and all in it. */
static void remove_session(int sessions, const char *id)
{
	AUTO_FD int fd = openat(sessions, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fcntl(fd, F_DUPFD_CLOEXEC, 3));

	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
		if (!path_is_dots(e->d_name) && strcmp(e->d_name, LOCK) != 0)
			remove_tree(fd, e->d_name);
	if (d)
		(void)closedir(d);
	/* The lock goes last: until then nobody takes the directory for another's. */
	if (fd >= 0)
		(void)unlinkat(fd, LOCK, 0);
	(void)unlinkat(sessions, id, AT_REMOVEDIR);
}

/* What killed processes left: nobody holds its lock. Called with the lock over all of them. */
static void sweep(int sessions)
{
	char path[NAME_MAX + 16];
	DIR *d = fdopendir(openat(sessions, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));

	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
		(void)snprintf(path, sizeof(path), "%s/" SESSION_RECORD, e->d_name);
		/* One with a record is a session, which its keeper ends. */
		if (!uuid_valid(e->d_name) || faccessat(sessions, path, F_OK, 0) == 0)
			continue;
		(void)snprintf(path, sizeof(path), "%s/" LOCK, e->d_name);
		AUTO_FD int fd = openat(sessions, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
		bool unused = fd < 0 ? errno == ENOENT : flock(fd, LOCK_EX | LOCK_NB) == 0;
		if (unused)
			remove_session(sessions, e->d_name);
	}
	if (d)
		(void)closedir(d);
}

/* mkdir -p. Searchable by all as root, since another uid has to get through. */
static int make_all(char *path, mode_t mode, struct err *e)
{
	for (char *p = path + 1;; p++) {
		if (*p && *p != '/')
			continue;
		char was = *p;
		*p = '\0';
		int rc =
			mkdir(path, mode) == 0 || errno == EEXIST ? 0 : err_sys(e, "make %s", path);
		*p = was;
		if (rc < 0 || !was)
			return rc;
	}
}

/*
 * As root another uid has to get through. The default place is ours to open, not
 * what is in it; a directory that a person named has the mode that they gave it.
 */
static int let_through(const struct caller *who, const char *path, struct err *e)
{
	struct stat st;

	AUTO_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (geteuid() != 0 || fd < 0 || fstat(fd, &st) < 0 || (st.st_mode & 0001))
		return 0;
	if (!caller_env(who, "SANDGLASS_HOME") && st.st_uid == 0)
		return fchmod(fd, (st.st_mode & 07777) | 0011) < 0 ? err_sys(e, "chmod %s", path)
								   : 0;
	(void)err_set(e, ERR_CONFIG_INVALID, "%s lets nobody but its owner through to AGENT_ROOT",
		      path);
	return err_hint(e, "chmod o+x %s, or another SANDGLASS_HOME", path);
}

static int make_dirs(const struct agentroot *a, int session, uid_t uid, gid_t gid, struct err *e)
{
	char path[64] = "root";

	for (size_t i = 0; i <= RUNG_DIRS; i++) {
		if (i)
			(void)snprintf(path, sizeof(path), "root/%s", rung_dirs[i - 1]);
		if (mkdirat(session, path, 0700) < 0 ||
		    (geteuid() == 0 && fchownat(session, path, uid, gid, AT_SYMLINK_NOFOLLOW) < 0))
			return err_sys(e, "make %s/%s", a->path, path);
	}
	return 0;
}

static int make_locked(struct agentroot *a, const char *id, const char *other, uid_t uid, gid_t gid,
		       struct err *e)
{
	mode_t mode = geteuid() == 0 ? 0711 : 0700;
	size_t n = strlen(a->path);

	sweep(a->sessions);
	if (mkdirat(a->sessions, id, mode) < 0) {
		id = other;
		if (errno != EEXIST || mkdirat(a->sessions, id, mode) < 0)
			return err_sys(e, "make %s/%s", a->path, id);
	}
	memcpy(a->id, id, UUID_TEXT);
	AUTO_FD int fd = openat(a->sessions, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	a->lock =
		fd < 0 ? -1
		       : openat(fd, LOCK, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (a->lock < 0 || flock(a->lock, LOCK_EX | LOCK_NB) < 0)
		return err_sys(e, "lock %s/%s", a->path, id);
	if (make_dirs(a, fd, uid, gid, e) < 0)
		return -1;
	(void)snprintf(a->path + n, sizeof(a->path) - n, "/%s/root", id);
	return 0;
}

int agentroot_make(struct agentroot *a, const struct caller *who, const char *id, const char *other,
		   uid_t uid, gid_t gid, struct err *e)
{
	char home[PATH_TEXT];

	*a = (struct agentroot){.sessions = -1, .lock = -1};
	state_home(who, home);
	if (strlen(home) + UUID_TEXT + 32 >= sizeof(a->path))
		return err_set(e, ERR_CONFIG_INVALID, "SANDGLASS_HOME is too long");
	if (path_join(home, "sessions", a->path, sizeof(a->path), e) < 0 ||
	    make_all(a->path, geteuid() == 0 ? 0711 : 0700, e) < 0)
		return -1;
	if (let_through(who, home, e) < 0 || let_through(who, a->path, e) < 0)
		return -1;
	a->sessions = open(a->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (a->sessions < 0)
		return err_sys(e, "open %s", a->path);
	AUTO_FD int all =
		openat(a->sessions, ".lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (all < 0 || RETRY_EINTR(flock(all, LOCK_EX)) < 0)
		return err_sys(e, "lock %s", a->path);
	return make_locked(a, id, other, uid, gid, e);
}

int agentroot_write(const struct agentroot *a, const char *name, const char *text, uid_t uid,
		    gid_t gid, struct err *e)
{
	char path[sizeof(a->path) + 64];

	(void)snprintf(path, sizeof(path), "%s/home/%s", a->path, name);
	AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	size_t n = strlen(text);
	if (fd < 0 || write(fd, text, n) != (ssize_t)n ||
	    (geteuid() == 0 && fchown(fd, uid, gid) < 0))
		return err_sys(e, "write %s", path);
	return 0;
}

void agentroot_remove(struct agentroot *a)
{
	if (a->sessions >= 0 && a->id[0])
		remove_session(a->sessions, a->id);
	if (a->lock >= 0)
		(void)close(a->lock);
	if (a->sessions >= 0)
		(void)close(a->sessions);
	a->sessions = a->lock = -1; /* the path stays, for the result */
}

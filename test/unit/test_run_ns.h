/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of what reads the host's own places (/etc, /run, /sys/fs/cgroup):
 * the test's process, which is one of its own, gets a mount namespace where
 * these can be what the test wants. Needs root or user namespaces.
 */
#pragma once

#include <sched.h>
#include <sys/mount.h>

#include "test_policy_place.h"

static inline void ns_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	ck_assert_msg(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "%s: %s",
		      path, strerror(errno));
	(void)close(fd);
}

/* Root in it either way, and all that was mounted is ours to cover. */
static inline void ns_enter(void)
{
	unsigned int uid = getuid();
	unsigned int gid = getgid();
	char map[64];

	if (uid == 0) {
		ck_assert_msg(unshare(CLONE_NEWNS) == 0, "needs mount namespaces: %s",
			      strerror(errno));
	} else {
		ck_assert_msg(unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0,
			      "needs user namespaces: %s", strerror(errno));
		ns_write("/proc/self/setgroups", "deny");
		snprintf(map, sizeof(map), "0 %u 1\n", uid);
		ns_write("/proc/self/uid_map", map);
		snprintf(map, sizeof(map), "0 %u 1\n", gid);
		ns_write("/proc/self/gid_map", map);
	}
	ck_assert_int_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
}

/* The directory or file `name` of this place appears at `where`. */
static inline void ns_cover(const char *name, const char *where)
{
	ck_assert_msg(mount(at("%s", name), where, NULL, MS_BIND, NULL) == 0, "%s: %s", where,
		      strerror(errno));
}

static const char *ns_read_only_at;

static inline void ns_read_only(const char *where)
{
	ck_assert_msg(mount(where, where, NULL, MS_BIND, NULL) == 0 &&
			      mount(NULL, where, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) == 0,
		      "%s: %s", where, strerror(errno));
	ns_read_only_at = where;
}

/* A directory that is a mount point in this namespace could not be removed. */
static inline void ns_close(void)
{
	if (ns_read_only_at)
		(void)umount2(ns_read_only_at, MNT_DETACH);
	place_close();
}

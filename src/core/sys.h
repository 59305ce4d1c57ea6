/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls that the C library does not wrap, and constants that Debian 12's
 * kernel headers (6.1) lack. Numbers from 424 up are the same on every
 * architecture.
 */
#pragma once

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/openat2.h>
#include <linux/sched.h>

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

/* open_tree(2), move_mount(2), fsopen(2), mount_setattr(2): linux/mount.h clashes with libc. */
enum {
	TREE_CLONE = 1,
	TREE_CLOEXEC = O_CLOEXEC,
	MOVE_FROM_EMPTY = 0x4,
	FS_OPEN_CLOEXEC = 1,
	FS_MOUNT_CLOEXEC = 1,
	FS_CONFIG_FLAG = 0,
	FS_CONFIG_STRING = 1,
	FS_CONFIG_CREATE = 6,
	ATTR_RDONLY = 0x1,
	ATTR_NOSUID = 0x2,
	ATTR_NODEV = 0x4,
	ATTR_NOEXEC = 0x8,
	ATTR_IDMAP = 0x100000,
};

struct attr {
	uint64_t set, clear, propagation, userns_fd;
};

static inline int sys_open_tree(int dir, const char *path, unsigned int flags)
{
	return (int)syscall(SYS_open_tree, dir, path, flags);
}

/* STATX_ATTR_MOUNT_ROOT (Linux 5.8), in the second word of struct statx. */
static inline int sys_is_mount_point(int dir, const char *path)
{
	uint64_t words[32];

	return syscall(SYS_statx, dir, path, AT_SYMLINK_NOFOLLOW, 0, words) == 0 &&
	       (words[1] & 0x2000);
}

static inline int sys_move_mount(int from, const char *from_path, int to, const char *to_path,
				 unsigned int flags)
{
	return (int)syscall(SYS_move_mount, from, from_path, to, to_path, flags);
}

static inline int sys_fsopen(const char *fs, unsigned int flags)
{
	return (int)syscall(SYS_fsopen, fs, flags);
}

static inline int sys_fsconfig(int fd, unsigned int cmd, const char *key, const char *value)
{
	return (int)syscall(SYS_fsconfig, fd, cmd, key, value, 0);
}

static inline int sys_fsmount(int fd, unsigned int flags, unsigned int attrs)
{
	return (int)syscall(SYS_fsmount, fd, flags, attrs);
}

static inline int sys_mount_setattr(int dir, const char *path, unsigned int flags,
				    const struct attr *a)
{
	return (int)syscall(442, dir, path, flags, a, sizeof(*a));
}

static inline int sys_pivot_root(const char *new_root, const char *put_old)
{
	return (int)syscall(SYS_pivot_root, new_root, put_old);
}

static inline int sys_openat2(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = {.flags = flags, .resolve = resolve};

	return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

/* Like fork: the child returns 0 on a copy of this stack. */
static inline long sys_clone3(const struct clone_args *args)
{
	return syscall(SYS_clone3, args, sizeof(*args));
}

static inline int sys_pidfd_open(pid_t pid)
{
	return (int)syscall(434, pid, 0);
}

static inline int sys_close_range(unsigned int first, unsigned int last, unsigned int flags)
{
	return (int)syscall(436, first, last, flags);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths of the host as detached mounts, with their attributes set while nobody
 * can see them. An ordinary user's are opened by init, root's by the front, in
 * the host's mount namespace, where it can reach what its user can.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "core/sys.h"
#include "core/tree.h"

#define ATTR_PLAIN (ATTR_NOSUID | ATTR_NODEV)

static int fail(struct report *r, enum stage stage, int sys, const char *text)
{
	*r = (struct report){.kind = REPORT_FAIL, .stage = stage, .sys = sys};
	strncpy(r->text, text, sizeof(r->text) - 1);
	return TREE_FAILED;
}

/* Writable, or with a map: attributes of its own. The system's are set together, later. */
static int set_attrs(int tree, const struct plan_mount *m, int idmap_fd, struct report *r)
{
	struct attr a = {.set = ATTR_PLAIN, .propagation = MS_PRIVATE};

	if (!(m->flags & MOUNT_WRITE))
		a.set |= ATTR_RDONLY;
	if (sys_mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &a) < 0)
		return fail(r, STAGE_BIND, errno, m->src);
	if (!(m->flags & MOUNT_IDMAP) || idmap_fd < 0)
		return 0;
	struct attr map = {.set = ATTR_IDMAP, .userns_fd = (uint64_t)idmap_fd};
	if (sys_mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &map) == 0)
		return 0;
	/*
	 * Something mounted below it is on a file system without id-mapping: what
	 * is written there would belong to the session's uid, so nothing is.
	 */
	if (sys_mount_setattr(tree, "", AT_EMPTY_PATH, &map) < 0)
		return fail(r, STAGE_IDMAP, errno, m->src);
	struct attr ro = {.set = ATTR_RDONLY};
	struct attr rw = {.clear = ATTR_RDONLY};
	if (sys_mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &ro) < 0 ||
	    ((m->flags & MOUNT_WRITE) && sys_mount_setattr(tree, "", AT_EMPTY_PATH, &rw) < 0))
		return fail(r, STAGE_BIND, errno, m->src);
	return 0;
}

int tree_open(const struct plan_mount *m, int idmap_fd, struct report *failure)
{
	struct stat st;

	AUTO_FD int fd =
		sys_open_tree(AT_FDCWD, m->src,
			      TREE_CLONE | TREE_CLOEXEC | AT_RECURSIVE | AT_SYMLINK_NOFOLLOW);
	if (fd < 0)
		return m->flags & MOUNT_OPTIONAL ? (int)TREE_NONE
						 : fail(failure, STAGE_BIND, errno, m->src);
	if (m->flags & MOUNT_IDENT) {
		if (fstat(fd, &st) < 0)
			return fail(failure, STAGE_BIND, errno, m->src);
		if (st.st_dev != m->dev || st.st_ino != m->ino)
			return fail(failure, STAGE_IDENT, 0, m->src);
	}
	if (!(m->flags & MOUNT_SYSTEM) && set_attrs(fd, m, idmap_fd, failure) < 0)
		return TREE_FAILED;
	return TAKE_FD(fd);
}

/*
 * A regular file as stdin: its descriptor would let the command change the
 * file's mode, times and attributes, and open it again for writing through
 * /proc/self/fd. So the same file is opened once more through a read-only mount
 * of its own. The path is only a way to find it: device and inode decide.
 */
int tree_open_stdin(const struct plan *p, struct report *failure)
{
	struct attr a = {.set = ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV | ATTR_NOEXEC,
			 .propagation = MS_PRIVATE};
	char link[48];
	struct stat st;

	AUTO_FD int tree = sys_open_tree(AT_FDCWD, p->stdin_path,
					 TREE_CLONE | TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	if (tree < 0 || fstat(tree, &st) < 0)
		return fail(failure, STAGE_STDIN, errno, p->stdin_path);
	if (st.st_dev != p->n.stdin_dev || st.st_ino != p->n.stdin_ino || !S_ISREG(st.st_mode))
		return fail(failure, STAGE_IDENT, 0, p->stdin_path);
	if (sys_mount_setattr(tree, "", AT_EMPTY_PATH, &a) < 0)
		return fail(failure, STAGE_STDIN, errno, p->stdin_path);
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", tree);
	AUTO_FD int fd = open(link, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || lseek(fd, lseek(STDIN_FILENO, 0, SEEK_CUR), SEEK_SET) < 0)
		return fail(failure, STAGE_STDIN, errno, p->stdin_path);
	return TAKE_FD(fd);
}

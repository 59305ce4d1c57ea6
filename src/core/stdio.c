/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A regular file as stdin: its descriptor would let the command change the
 * file's mode, times and attributes, and open it again for writing through
 * /proc/self/fd. So the same file is opened once more through a read-only mount
 * of its own. The path is only a way to find it: device and inode decide.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "core/core.h"
#include "core/sys.h"

int stdio_reopen_file(const struct core *c)
{
	const struct plan *p = c->p;
	struct attr a = {.set = ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV | ATTR_NOEXEC,
			 .propagation = MS_PRIVATE};
	char link[48];
	struct stat st;

	AUTO_FD int tree = sys_open_tree(AT_FDCWD, p->stdin_path,
					 TREE_CLONE | TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	if (tree < 0 || fstat(tree, &st) < 0)
		core_die(STAGE_STDIN, errno, p->stdin_path);
	if (st.st_dev != p->n.stdin_dev || st.st_ino != p->n.stdin_ino || !S_ISREG(st.st_mode))
		core_die(STAGE_IDENT, 0, p->stdin_path);
	if (sys_mount_setattr(tree, "", AT_EMPTY_PATH, &a) < 0)
		core_die(STAGE_STDIN, errno, p->stdin_path);
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", tree);
	AUTO_FD int fd = open(link, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || lseek(fd, lseek(STDIN_FILENO, 0, SEEK_CUR), SEEK_SET) < 0)
		core_die(STAGE_STDIN, errno, p->stdin_path);
	return TAKE_FD(fd);
}

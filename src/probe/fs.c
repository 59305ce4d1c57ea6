/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows about files of the host that are visible but not ours to change.
 */
#include "rows.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/base.h"
#include "probe/sys.h"

#define REQ_GETFLAGS 0x80086601UL
#define REQ_SETFLAGS 0x40086602UL
#define REQ_FSGETXATTR 0x801c581fUL
#define REQ_FSSETXATTR 0x401c5820UL
#define FLAG_NODUMP 0x40
#define AT_EXCHANGE 2L /* RENAME_EXCHANGE */

/* Without --set file= only what is there already is written again. */
static void row_metadata(struct finding *f)
{
	const char *file = arg("file") ? arg("file") : "/etc/passwd";
	struct stat st;
	if (stat(file, &st) < 0) {
		cannot(f, "%s: %s", file, errno_text(errno));
		return;
	}
	struct timespec times[2] = {st.st_atim, st.st_mtim};
	tried(f, "chmod", chmod(file, st.st_mode & 07777), BY_FILE);
	tried(f, "fchmodat2", syscall(NR_fchmodat2, AT_FDCWD, file, st.st_mode & 0777, 0),
	      BY_FILE | BY_FILTER);
	tried(f, "chown", chown(file, st.st_uid, st.st_gid), BY_FILE);
	tried(f, "utimensat", utimensat(AT_FDCWD, file, times, 0), BY_FILE);
	tried(f, "truncate", truncate(file, st.st_size), BY_FILE);
	AUTO_FD int fd = open(file, O_WRONLY | O_APPEND | O_CLOEXEC);
	tried(f, "open", fd, BY_FILE);
	if (!arg("file"))
		return;
	static const struct timespec epoch[2] = {{0, 0}, {0, 0}};
	struct {
		uint64_t value;
		uint32_t size, flags;
	} at = {(uint64_t)(uintptr_t) "1", 1, 0};
	char other[PATH_MAX];
	int n = snprintf(other, sizeof(other), "%s.probe", file);
	if (n < 0 || (size_t)n >= sizeof(other))
		return;
	tried(f, "utimensat 0", utimensat(AT_FDCWD, file, epoch, 0), BY_FILE);
	tried(f, "setxattr", setxattr(file, "user.probe", "1", 1, 0), BY_FILE);
	tried(f, "setxattrat",
	      syscall(NR_setxattrat, AT_FDCWD, file, 0, "user.probe", &at, sizeof(at)),
	      BY_FILE | BY_FILTER);
	tried(f, "link", link(file, other), BY_FILE);
	tried(f, "unlink", unlink(other), BY_FILE);
	tried(f, "rename", rename(file, other), BY_FILE | BY_BUSY); /* busy: a mount point */
	tried(f, "rename back", rename(other, file), BY_FILE);
}

static void set_flags(struct finding *f, int fd)
{
	long flags = 0;
	unsigned char attr[28];
	if (ioctl(fd, (int)REQ_GETFLAGS, &flags) == 0) {
		long set = flags | FLAG_NODUMP;
		long rc = ioctl(fd, (int)REQ_SETFLAGS, &set);
		tried(f, "FS_IOC_SETFLAGS", rc, BY_FILE);
		if (rc == 0)
			(void)ioctl(fd, (int)REQ_SETFLAGS, &flags);
	}
	if (ioctl(fd, (int)REQ_FSGETXATTR, attr) == 0)
		tried(f, "FS_IOC_FSSETXATTR", ioctl(fd, (int)REQ_FSSETXATTR, attr), BY_FILE);
}

/* What an old Landlock does not cover; the mounts must. */
static void row_truncate(struct finding *f)
{
	const char *file = arg("file");
	struct stat st;
	AUTO_FD int fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		cannot(f, "%s: %s", file, errno_text(errno));
		return;
	}
	tried(f, "truncate", truncate(file, st.st_size), BY_FILE);
	set_flags(f, fd);
	note(f, "Landlock ABI %ld", syscall(NR_landlock_create_ruleset, NULL, 0, 1));
}

/* Moves and links from a read-only place to a writable one of the same file system. */
static void row_reparent(struct finding *f)
{
	const char *from = arg("ro"), *dir = arg("rw");
	char to[PATH_MAX], proc[64];
	if (!dir || !scratch_path(to, sizeof(to), dir)) {
		cannot(f, "needs --set rw=DIR");
		return;
	}
	const unsigned int by = BY_FILE | BY_FILTER;
	tried(f, "link", link(from, to), by);
	(void)unlink(to);
	AUTO_FD int fd = open(from, O_PATH | O_CLOEXEC);
	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	tried(f, "linkat fd", linkat(AT_FDCWD, proc, AT_FDCWD, to, AT_SYMLINK_FOLLOW), by);
	(void)unlink(to);
	tried(f, "linkat empty", linkat(fd, "", AT_FDCWD, to, AT_EMPTY_PATH), by);
	(void)unlink(to);
	AUTO_FD int own = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	long rc = syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, AT_EXCHANGE);
	tried(f, "exchange", rc, by);
	if (rc == 0)
		(void)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, AT_EXCHANGE);
	(void)unlink(to);
	rc = rename(from, to);
	tried(f, "rename", rc, by);
	if (rc == 0)
		(void)rename(to, from);
}

static void use_device(struct finding *f, const char *dir, mode_t mode, dev_t dev, const char *what)
{
	char path[PATH_MAX], byte[512];
	if (!scratch_path(path, sizeof(path), dir))
		return;
	long rc = mknod(path, mode | 0600, dev);
	tried(f, what, rc, BY_FILE | BY_FILTER);
	if (rc < 0)
		return;
	AUTO_FD int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	note(f, "%s: read %zd", what, fd < 0 ? -1 : read(fd, byte, sizeof(byte)));
	(void)unlink(path);
}

static void row_mknod(struct finding *f)
{
	struct stat root;
	const char *const dirs[] = {scratch_dir(), "."};
	dev_t disk = stat("/", &root) == 0 && major(root.st_dev) ? root.st_dev : makedev(254, 0);
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		use_device(f, dirs[i], S_IFBLK, disk, "block");
		use_device(f, dirs[i], S_IFCHR, makedev(1, 5), "zero");
		use_device(f, dirs[i], S_IFCHR, 0, "whiteout");
	}
}

/* A device node that lies in a granted tree. */
static void row_node(struct finding *f)
{
	char byte;
	AUTO_FD int fd = open(arg("node"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	tried(f, "open", fd, BY_FILE);
	if (fd >= 0)
		note(f, "read %zd", read(fd, &byte, 1));
}

/* A fifo of the host in a granted tree is a way to talk to whoever reads it. */
static void row_fifo(struct finding *f)
{
	static const char text[] = "written by the probe\n";
	AUTO_FD int out = open(arg("fifo"), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	tried(f, "open for writing", out, BY_FILE);
	if (out >= 0)
		tried(f, "write", write(out, text, sizeof(text) - 1), BY_FILE);
}

/* Overlay's private attributes and whiteouts, which would confuse a later merge. */
static void row_overlay(struct finding *f)
{
	char path[PATH_MAX];
	if (!scratch_path(path, sizeof(path), ".") || mkdir(path, 0700) < 0) {
		cannot(f, "cannot make a directory here: %s", errno_text(errno));
		return;
	}
	tried(f, "trusted.overlay.opaque", setxattr(path, "trusted.overlay.opaque", "y", 1, 0),
	      BY_FILE | BY_TYPE);
	(void)rmdir(path);
	use_device(f, ".", S_IFCHR, 0, "whiteout");
}

static void row_devices(struct finding *f)
{
	static const char *const nodes[] = {
		"/dev/mem",          "/dev/kmsg",    "/dev/port",         "/dev/vda",
		"/dev/sda",          "/dev/nvme0n1", "/dev/fuse",         "/dev/kvm",
		"/dev/net/tun",      "/dev/vsock",   "/dev/vhost-vsock",  "/dev/userfaultfd",
		"/dev/loop0",        "/dev/hwrng",   "/dev/loop-control", "/dev/btrfs-control",
		"/dev/uinput",       "/dev/console", "/dev/tty0",         "/dev/tty1",
		"/dev/ttyS0",        "/dev/vcs",     "/dev/dri/card0",    "/dev/mapper/control",
		"/dev/input/event0", "/dev/autofs",  "/dev/cuse",         "/dev/vfio/vfio",
	};
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
		AUTO_FD int fd = open(nodes[i], O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		tried(f, nodes[i], fd, BY_FILE);
	}
}

/* While it is held, a host program that opens the file for writing blocks. */
static void row_lease(struct finding *f)
{
	char path[PATH_MAX] = "";
	const char *file = arg("file");
	AUTO_FD int fd =
		file ? open(file, O_RDONLY | O_CLOEXEC) : scratch_file(path, sizeof(path), ".");
	if (fd < 0) {
		cannot(f, "no file to lease: %s", errno_text(errno));
		return;
	}
	if (!file) { /* a read lease needs that nobody has it open for writing */
		(void)close(fd);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	const unsigned int by = BY_FILTER | BY_FILE;
	tried(f, "F_SETLEASE", fcntl(fd, F_SETLEASE, F_RDLCK), by);
	tried(f, "F_SETLEASE write", fcntl(fd, F_SETLEASE, F_WRLCK), by);
	tried(f, "F_SETLEASE high", syscall(SYS_fcntl, fd, F_SETLEASE | HIGH_BIT, F_RDLCK), by);
	AUTO_FD int dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unsigned int deleg[2] = {0, F_RDLCK};
	/* Directory delegations: unknown to older kernels, EINVAL. */
	tried(f, "F_SETDELEG", syscall(SYS_fcntl, dir, 1024 + 16, deleg), by | BY_TYPE);
	hold_here();
	if (!file)
		(void)unlink(path);
}

static const struct row rows[] = {
	{"fs-02", "metadata", row_metadata, 0, NULL,
	 "mode, owner, times, size, attributes and names of a visible host file (--set file=)"},
	{"fs-10", "mknod", row_mknod, 0, NULL, "makes block, character and whiteout nodes"},
	{"device-node", NULL, row_node, 0, "node", "opens a device node in a granted tree"},
	{"fifo", NULL, row_fifo, 0, "fifo", "writes to a fifo in a granted tree"},
	{"fs-15", "overlay-names", row_overlay, 0, NULL, "overlay's whiteouts and attributes"},
	{"devices", NULL, row_devices, 0, NULL, "opens device nodes of the host"},
	{"fs-21", "reparent", row_reparent, 0, "ro",
	 "link and rename from a read-only place (--set ro=) to a writable one (--set rw=)"},
	{"fs-22", "truncate", row_truncate, 0, "file",
	 "truncate and flag ioctls on a visible host file"},
	{"lease", NULL, row_lease, 0, NULL, "F_SETLEASE on a file of the source"},
};
const struct row_table rows_fs = {rows, ARRAY_LEN(rows)};

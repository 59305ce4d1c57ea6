/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows about descriptors that the caller left open.
 */
#include "rows.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/base.h"
#include "probe/sys.h"

#define FD_LIMIT 4096
#define REQ_GETFLAGS 0x80086601UL
#define REQ_SETFLAGS 0x40086602UL
#define FLAG_NODUMP 0x40

/* The row's process opened nothing yet, so all above 2 came from outside. */
static void row_inherited(struct finding *f)
{
	unsigned int n = 0;
	for (int fd = 3; fd < FD_LIMIT; fd++) {
		char path[64], target[256], what[MAX_WHAT];
		if (fcntl(fd, F_GETFD) < 0)
			continue;
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		ssize_t got = readlink(path, target, sizeof(target) - 1);
		target[got < 0 ? 0 : got] = '\0';
		(void)snprintf(what, sizeof(what), "fd %d", fd);
		judged(f, what, 0, true);
		note(f, "%d is %.60s", fd, target);
		n++;
	}
	judged(f, "3..4095", n ? 0 : EBADF, n > 0);
}

static void read_beneath(struct finding *f, int fd, const char *what)
{
	static const char *const ups[] = {"../../../../../../../../etc/shadow", "etc/shadow"};
	char text[64];
	for (size_t i = 0; i < ARRAY_LEN(ups) + 1; i++) {
		const char *path = i < ARRAY_LEN(ups) ? ups[i] : arg("canary");
		AUTO_FD int in = path ? openat(fd, path, O_RDONLY | O_CLOEXEC) : -1;
		ssize_t n = in < 0 ? -1 : read(in, text, sizeof(text) - 1);
		if (n > 0)
			reached(f, "%s: %zd bytes of %s", what, n, path);
	}
}

static void row_fchdir(struct finding *f)
{
	for (int fd = 0; fd < FD_LIMIT; fd++) {
		char what[MAX_WHAT];
		if (fchdir(fd) < 0) {
			if (fd < 3 || (errno != EBADF && errno != ENOTDIR)) {
				(void)snprintf(what, sizeof(what), "fchdir %d", fd);
				tried(f, what, -1, BY_TYPE | BY_FILE);
			}
			continue;
		}
		(void)snprintf(what, sizeof(what), "fchdir %d", fd);
		judged(f, what, 0, true);
		read_beneath(f, AT_FDCWD, what);
	}
}

static void row_directory(struct finding *f)
{
	for (int fd = 0; fd < 3; fd++) {
		char what[MAX_WHAT];
		(void)snprintf(what, sizeof(what), "openat(%d)", fd);
		AUTO_FD int dir = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (dir < 0) {
			tried(f, what, -1, BY_TYPE | BY_FILE);
			continue;
		}
		judged(f, what, 0, true);
		read_beneath(f, dir, what);
	}
}

static void reopen(struct finding *f, const char *what, const char *path, int flags,
		   unsigned int refusals)
{
	AUTO_FD int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);
	tried(f, what, fd, refusals);
	char text[64];
	ssize_t n = 0;
	if (fd >= 0 && (flags & O_ACCMODE) != O_WRONLY) {
		n = pread(fd, text, 60, 0);
		if (n < 0 && errno == ESPIPE)
			n = read(fd, text, 60);
	}
	if (n > 0) {
		text[n] = '\0';
		note(f, "%s read: %.40s", what, text);
	}
}

/* Metadata through the descriptor itself. The canary is the test's: the changes are real. */
static void change_metadata(struct finding *f, int fd, const struct stat *st)
{
	static const struct timespec epoch[2] = {{0, 0}, {0, 0}};
	const unsigned int by = BY_FILE | BY_FILTER | BY_TYPE;
	tried(f, "fchmod", fchmod(fd, (st->st_mode & 0777) ^ 1), by);
	tried(f, "fchown", fchown(fd, st->st_uid, st->st_gid), by);
	tried(f, "futimens", futimens(fd, epoch), by);
	tried(f, "fsetxattr", fsetxattr(fd, "user.probe", "1", 1, 0), by);
	long flags = 0;
	if (ioctl(fd, (int)REQ_GETFLAGS, &flags) == 0) {
		long set = flags | FLAG_NODUMP;
		tried(f, "FS_IOC_SETFLAGS", ioctl(fd, (int)REQ_SETFLAGS, &set), by);
	}
	tried(f, "F_SETLEASE", fcntl(fd, F_SETLEASE, F_RDLCK), by | BY_LIMIT);
}

static void link_from(struct finding *f, int fd, const char *proc)
{
	char path[4096];
	if (!scratch_path(path, sizeof(path), "."))
		return;
	long rc = linkat(AT_FDCWD, proc, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
	tried(f, "linkat /proc", rc, BY_FILE | BY_FILTER);
	if (rc == 0)
		(void)unlink(path);
	rc = linkat(fd, "", AT_FDCWD, path, AT_EMPTY_PATH);
	tried(f, "linkat empty", rc, BY_FILE | BY_FILTER);
	if (rc == 0)
		(void)unlink(path);
}

static void row_stdin_file(struct finding *f)
{
	struct stat st;
	const unsigned int by = BY_FILE | BY_FILTER;
	if (fstat(0, &st) < 0 || !S_ISREG(st.st_mode)) {
		cannot(f, "stdin is no regular file");
		return;
	}
	if ((fcntl(0, F_GETFL) & O_ACCMODE) != O_RDONLY)
		reached(f, "stdin is open for more than reading");
	reopen(f, "O_WRONLY", "/proc/self/fd/0", O_WRONLY, by);
	reopen(f, "O_RDWR", "/proc/self/fd/0", O_RDWR, by);
	reopen(f, "O_APPEND", "/dev/stdin", O_WRONLY | O_APPEND, by);
	reopen(f, "thread-self", "/proc/thread-self/fd/0", O_RDWR, by);
	reopen(f, "/dev/fd/0", "/dev/fd/0", O_RDWR, by);
	tried(f, "write", write(0, "x", 1), BY_TYPE | by);
	tried(f, "ftruncate", ftruncate(0, st.st_size), BY_TYPE | by);
	tried(f, "truncate", truncate("/proc/self/fd/0", st.st_size), by);
	tried(f, "chmod /proc", chmod("/proc/self/fd/0", (st.st_mode & 0777) ^ 1), by);
	change_metadata(f, 0, &st);
	link_from(f, 0, "/proc/self/fd/0");
}

static void row_stdout_file(struct finding *f)
{
	struct stat st;
	const unsigned int by = BY_FILE | BY_FILTER;
	if (fstat(1, &st) < 0) {
		cannot(f, "no stdout");
		return;
	}
	if (!S_ISREG(st.st_mode)) {
		judged(f, "stdout is no file", EBADF, false);
		return;
	}
	reopen(f, "O_RDONLY", "/proc/self/fd/1", O_RDONLY, by);
	reopen(f, "O_RDWR", "/dev/stdout", O_RDWR, by);
	change_metadata(f, 1, &st);
	link_from(f, 1, "/proc/self/fd/1");
}

/* The other end of a pipe, by opening it again. */
static void row_pipe(struct finding *f)
{
	struct stat st;
	for (int fd = 0; fd < 3; fd++) {
		char path[64], what[MAX_WHAT];
		int mode = fcntl(fd, F_GETFL) & O_ACCMODE;
		if (fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode))
			continue;
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		(void)snprintf(what, sizeof(what), "pipe %d", fd);
		reopen(f, what, path, mode == O_RDONLY ? O_WRONLY : O_RDONLY, BY_FILE);
	}
	if (f->attempts == 0)
		cannot(f, "neither stdin, stdout nor stderr is a pipe");
}

static void row_exe(struct finding *f)
{
	static const char *const paths[] = {"/proc/1/exe", "/proc/self/exe"};
	char target[256];
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		AUTO_FD int fd = open(paths[i], O_WRONLY | O_CLOEXEC);
		tried(f, paths[i] + 6, fd, BY_FILE | BY_BUSY);
	}
	/* A handle for later, when nobody runs the program any more. */
	AUTO_FD int handle = open("/proc/1/exe", O_PATH | O_CLOEXEC);
	tried(f, "O_PATH 1/exe", handle, BY_FILE);
	ssize_t n = readlink("/proc/1/exe", target, sizeof(target) - 1);
	tried(f, "readlink 1/exe", n, BY_FILE);
}

static void row_o_path(struct finding *f)
{
	const char *file = arg("file") ? arg("file") : "/etc/passwd";
	char path[64], byte;
	AUTO_FD int handle = open(file, O_PATH | O_CLOEXEC);
	if (handle < 0) {
		cannot(f, "%s: %s", file, errno_text(errno));
		return;
	}
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", handle);
	AUTO_FD int fd = open(path, O_RDWR | O_CLOEXEC);
	tried(f, "O_RDWR", fd, BY_FILE);
	if (fd >= 0 && pread(fd, &byte, 1, 0) == 1 && pwrite(fd, &byte, 1, 0) == 1)
		note(f, "wrote to %s", file);
	AUTO_FD int append = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	tried(f, "O_APPEND", append, BY_FILE);
	struct stat st;
	if (fstat(handle, &st) < 0)
		return;
	tried(f, "truncate", truncate(path, st.st_size), BY_FILE);
	tried(f, "chmod", chmod(path, st.st_mode & 07777), BY_FILE);
	tried(f, "fchmodat2", syscall(NR_fchmodat2, handle, "", st.st_mode & 0777, AT_EMPTY_PATH),
	      BY_FILE | BY_FILTER);
}

static const struct row rows[] = {
	{"fd-01", "inherited-fds", row_inherited, 0, NULL, "descriptors above 2"},
	{"fd-02", "fchdir", row_fchdir, 0, NULL,
	 "fchdir to every descriptor, then ../../etc/shadow"},
	{"stdin-directory", NULL, row_directory, 0, NULL, "openat below stdin, stdout and stderr"},
	{"stdin-file-more-access", NULL, row_stdin_file, 0, NULL,
	 "opens stdin's file again for writing; its mode, times, attributes, links, leases"},
	{"stdout-file-more-access", NULL, row_stdout_file, 0, NULL,
	 "opens stdout's file again for reading; its mode, times, attributes, links, leases"},
	{"pipe-more-access", NULL, row_pipe, 0, NULL,
	 "opens the pipes that are stdin, stdout, stderr again, for the other direction"},
	{"fd-03", "exe", row_exe, 0, NULL, "/proc/1/exe and /proc/self/exe for writing or later"},
	{"fd-04", "o-path", row_o_path, 0, NULL,
	 "an O_PATH descriptor of a host file (--set file=) opened again for writing"},
};
const struct row_table rows_fd = {rows, ARRAY_LEN(rows)};

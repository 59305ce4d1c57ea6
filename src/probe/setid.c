/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows about set-id bits and file capabilities: every call that can make one.
 * What counts is the file afterwards, not the answer of the call.
 */
#include "rows.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "base/base.h"
#include "probe/sys.h"

#define JUNK WORD(0xabcd00000000UL) /* above the bits that the kernel reads */

/* Makes the file at path, or changes it, so that it has the mode. */
struct maker {
	const char *name;
	long (*make)(const char *path, long mode);
	bool exists; /* the file is made before, with mode 0700 */
	bool dir;    /* it is a directory */
};

static long call_fchmod(const char *path, long mode)
{
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	return syscall(SYS_fchmod, fd, mode);
}

static long call_fchmodat(const char *path, long mode)
{
	return syscall(SYS_fchmodat, AT_FDCWD, path, mode);
}

static long call_fchmodat_proc(const char *path, long mode)
{
	char proc[64];
	AUTO_FD int fd = open(path, O_PATH | O_CLOEXEC);
	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	return syscall(SYS_fchmodat, AT_FDCWD, proc, mode);
}

static long call_fchmodat2(const char *path, long mode)
{
	return syscall(NR_fchmodat2, AT_FDCWD, path, mode, 0);
}

static long call_fchmodat2_empty(const char *path, long mode)
{
	AUTO_FD int fd = open(path, O_PATH | O_CLOEXEC);
	return syscall(NR_fchmodat2, fd, "", mode, AT_EMPTY_PATH);
}

static long closed(long fd)
{
	if (fd >= 0)
		(void)close((int)fd);
	return fd;
}

static long call_openat(const char *path, long mode)
{
	return closed(syscall(SYS_openat, AT_FDCWD, path, O_CREAT | O_EXCL | O_WRONLY, mode));
}

static long call_openat_flags(const char *path, long mode)
{
	return closed(
		syscall(SYS_openat, AT_FDCWD, path, HIGH_BIT | O_CREAT | O_EXCL | O_WRONLY, mode));
}

static long call_openat2(const char *path, long mode)
{
	uint64_t how[3] = {O_CREAT | O_EXCL | O_WRONLY, (uint64_t)mode & 07777, 0};
	return closed(syscall(NR_openat2, AT_FDCWD, path, how, sizeof(how)));
}

static long call_mknodat(const char *path, long mode)
{
	return syscall(SYS_mknodat, AT_FDCWD, path, S_IFREG | mode, 0);
}

static long call_mknodat_plain(const char *path, long mode)
{
	return syscall(SYS_mknodat, AT_FDCWD, path, mode, 0); /* type 0 is a regular file too */
}

static long call_mkfifo(const char *path, long mode)
{
	return syscall(SYS_mknodat, AT_FDCWD, path, S_IFIFO | mode, 0);
}

static long call_mkdirat(const char *path, long mode)
{
	long rc = syscall(SYS_mkdirat, AT_FDCWD, path, mode);
	return rc < 0 ? rc : syscall(SYS_fchmodat, AT_FDCWD, path, mode);
}

static long call_tmpfile(const char *path, long mode)
{
	char dir[PATH_MAX], proc[64];
	(void)snprintf(dir, sizeof(dir), "%s", path);
	char *slash = strrchr(dir, '/');
	if (slash)
		*slash = '\0';
	long fd = syscall(SYS_openat, AT_FDCWD, dir, O_TMPFILE | O_WRONLY, mode);
	AUTO_FD int own = (int)fd;
	if (own < 0)
		return -1;
	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", own);
	return linkat(AT_FDCWD, proc, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

static long call_tmpfile_fchmod(const char *path, long mode)
{
	char dir[PATH_MAX], proc[64];
	(void)snprintf(dir, sizeof(dir), "%s", path);
	char *slash = strrchr(dir, '/');
	if (slash)
		*slash = '\0';
	AUTO_FD int fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0700);
	if (fd < 0 || syscall(SYS_fchmod, fd, mode) < 0)
		return -1;
	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, proc, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

#ifdef SYS_chmod /* calls that newer architectures never had */
static long call_chmod(const char *path, long mode)
{
	return syscall(SYS_chmod, path, mode);
}

static long call_creat(const char *path, long mode)
{
	return closed(syscall(SYS_creat, path, mode));
}

static long call_open(const char *path, long mode)
{
	return closed(syscall(SYS_open, path, O_CREAT | O_EXCL | O_WRONLY, mode));
}

static long call_mknod(const char *path, long mode)
{
	return syscall(SYS_mknod, path, S_IFREG | mode, 0);
}

static long call_mkdir(const char *path, long mode)
{
	long rc = syscall(SYS_mkdir, path, mode);
	return rc < 0 ? rc : syscall(SYS_chmod, path, mode);
}
#endif

#ifdef __x86_64__
/* chmod by the entry of 32-bit programs, whose numbers differ. */
static long call_chmod32(const char *path, long mode)
{
	char *low = mmap(NULL, PATH_MAX, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	if (low == MAP_FAILED)
		return -1;
	(void)snprintf(low, PATH_MAX, "%s", path);
	long rc = entry32(15, (long)low, mode);
	(void)munmap(low, PATH_MAX);
	if (rc >= 0)
		return rc;
	errno = (int)-rc;
	return -1;
}
#endif

static const struct maker makers[] = {
	{"fchmod", call_fchmod, true, false},
	{"fchmodat", call_fchmodat, true, false},
	{"fchmodat /proc", call_fchmodat_proc, true, false},
	{"fchmodat2", call_fchmodat2, true, false},
	{"fchmodat2 empty", call_fchmodat2_empty, true, false},
	{"openat", call_openat, false, false},
	{"openat flags", call_openat_flags, false, false},
	{"openat2", call_openat2, false, false},
	{"mknodat", call_mknodat, false, false},
	{"mknodat 0", call_mknodat_plain, false, false},
	{"mkfifo", call_mkfifo, false, false},
	{"mkdirat", call_mkdirat, false, true},
	{"O_TMPFILE", call_tmpfile, false, false},
	{"O_TMPFILE fchmod", call_tmpfile_fchmod, false, false},
#ifdef SYS_chmod
	{"chmod", call_chmod, true, false},
	{"creat", call_creat, false, false},
	{"open", call_open, false, false},
	{"mknod", call_mknod, false, false},
	{"mkdir", call_mkdir, false, true},
#endif
#ifdef __x86_64__
	{"chmod int80", call_chmod32, true, false},
#endif
};

struct attempt_args {
	const struct maker *maker;
	const char *dir;
	long mode;
};

static void make_one(struct finding *f, void *arg_ptr)
{
	const struct attempt_args *a = arg_ptr;
	char path[PATH_MAX], what[MAX_WHAT];
	struct stat st;
	if (!scratch_path(path, sizeof(path), a->dir))
		return;
	if (a->maker->exists) {
		AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
		if (fd < 0) {
			note(f, "%s: %s", a->dir, errno_text(errno));
			return;
		}
	}
	(void)snprintf(what, sizeof(what), "%s %lo", a->maker->name,
		       (unsigned long)a->mode & 07777);
	long rc = a->maker->make(path, a->mode);
	int err = rc < 0 ? errno : ENODATA; /* done, but without the bit */
	if (lstat(path, &st) == 0) {
		bool bit = st.st_mode & (S_ISUID | S_ISGID);
		judged(f, what, bit ? 0 : err, bit);
	} else {
		judged(f, what, err, false);
	}
	if (arg_num("keep", 0))
		return;
	if (a->maker->dir)
		(void)rmdir(path);
	else
		(void)unlink(path);
}

#ifdef __x86_64__
static void enter32(struct finding *f, void *arg)
{
	(void)f;
	(void)call_chmod32("", *(const long *)arg);
}
#endif

/* Under some hypervisors the entry of 32-bit programs is an illegal instruction, for everybody. */
static bool is_there(struct finding *f, const struct maker *m)
{
#ifdef __x86_64__
	long mode = 0;
	if (m->make != call_chmod32)
		return true;
	int status = in_child(enter32, f, &mode);
	return status < 0 || !WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV;
#else
	(void)f;
	(void)m;
	return true;
#endif
}

static void row_setid(struct finding *f)
{
	static const long modes[] = {04755, 02755, 06711 | JUNK};
	const char *const dirs[] = {".", scratch_dir()};
	(void)umask(0);
	for (size_t d = 0; d < ARRAY_LEN(dirs); d++) {
		for (size_t i = 0; i < ARRAY_LEN(makers); i++) {
			if (!is_there(f, &makers[i])) {
				note(f, "%s: no such entry", makers[i].name);
				continue;
			}
			for (size_t m = 0; m < ARRAY_LEN(modes); m++) {
				struct attempt_args a = {&makers[i], dirs[d], modes[m]};
				guarded(f, makers[i].name, make_one, &a);
			}
		}
	}
}

/* Revision 2, permitted CAP_SETUID and CAP_SYS_ADMIN, effective. */
static const unsigned char cap_v2[20] = {1, 0, 0, 2, 0x80, 0, 0x20, 0};
/* Revision 3 names the root of a user namespace besides. */
static const unsigned char cap_v3[24] = {1, 0, 0, 3, 0x80, 0, 0x20, 0};

struct xattr_at {
	uint64_t value;
	uint32_t size, flags;
};

static void set_caps(struct finding *f, const char *dir, const void *value, size_t n, int revision)
{
	static const char name[] = "security.capability";
	char path[PATH_MAX], what[4][MAX_WHAT];
	AUTO_FD int fd = scratch_file(path, sizeof(path), dir);
	if (fd < 0) {
		note(f, "%s: %s", dir, errno_text(errno));
		return;
	}
	static const char *const calls[] = {"setxattr", "lsetxattr", "fsetxattr", "setxattrat"};
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		(void)snprintf(what[i], sizeof(what[i]), "%s v%d", calls[i], revision);
	const unsigned int by = BY_FILE | BY_FILTER | BY_TYPE;
	struct xattr_at at = {(uint64_t)(uintptr_t)value, (uint32_t)n, 0};
	tried(f, what[0], setxattr(path, name, value, n, 0), by);
	tried(f, what[1], lsetxattr(path, name, value, n, 0), by);
	tried(f, what[2], fsetxattr(fd, name, value, n, 0), by);
	tried(f, what[3], syscall(NR_setxattrat, AT_FDCWD, path, 0, name, &at, sizeof(at)), by);
	char back[64];
	if (getxattr(path, name, back, sizeof(back)) > 0)
		reached(f, "%s has a file capability", path);
	if (!arg_num("keep", 0))
		(void)unlink(path);
}

static void row_filecaps(struct finding *f)
{
	const char *const dirs[] = {".", scratch_dir()};
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		set_caps(f, dirs[i], cap_v2, sizeof(cap_v2), 2);
		set_caps(f, dirs[i], cap_v3, sizeof(cap_v3), 3);
	}
}

/* A set-id file that is visible must not get a name in a writable place. */
static void row_setid_move(struct finding *f)
{
	char path[PATH_MAX];
	struct stat st;
	const char *from = arg("suid");
	if (!scratch_path(path, sizeof(path), "."))
		return;
	(void)link(from, path);
	bool made = lstat(path, &st) == 0 && st.st_mode & (S_ISUID | S_ISGID);
	judged(f, "link", made ? 0 : EXDEV, made);
	(void)unlink(path);
	long rc = rename(from, path);
	tried(f, "rename", rc, BY_FILE);
	if (rc == 0)
		(void)rename(path, from);
}

static const struct row rows[] = {
	{"set-id", NULL, row_setid, 0, NULL,
	 "chmod, open, creat, mknod, mkdir, O_TMPFILE and their kin with set-id bits"},
	{"file-caps", NULL, row_filecaps, 0, NULL, "security.capability by every xattr call"},
	{"set-id-move", NULL, row_setid_move, 0, "suid",
	 "link and rename of a visible set-id file"},
};
const struct row_table rows_setid = {rows, ARRAY_LEN(rows)};

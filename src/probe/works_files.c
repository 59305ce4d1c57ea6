/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sandbox must leave in working order, part two: files, memory,
 * terminals, queues.
 */
#include "rows.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mqueue.h>
#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <termios.h>
#include <time.h>

#include "base/base.h"
#include "probe/sys.h"

static void names_in(struct finding *f, const char *dir)
{
	char a[PATH_MAX], b[PATH_MAX];
	struct stat st;
	AUTO_FD int fd = scratch_file(a, sizeof(a), dir);
	if (!expect(f, dir, fd >= 0) || !scratch_path(b, sizeof(b), dir))
		return;
	expect(f, "chmod",
	       chmod(a, 0755) == 0 && stat(a, &st) == 0 && (st.st_mode & 07777) == 0755);
	expect(f, "sticky", fchmod(fd, 01644) == 0);
	expect(f, "utimens", futimens(fd, NULL) == 0);
	expect(f, "link", link(a, b) == 0 && stat(a, &st) == 0 && st.st_nlink == 2);
	expect(f, "unlink", unlink(b) == 0);
	expect(f, "rename", rename(a, b) == 0);
	expect(f, "symlink", symlink(b, a) == 0 && stat(a, &st) == 0);
	(void)unlink(a);
	(void)unlink(b);
	expect(f, "mkdir", mkdir(a, 0755) == 0 && rename(a, b) == 0 && rmdir(b) == 0);
	expect(f, "fifo", mkfifo(a, 0600) == 0);
	(void)unlink(a);
	int own = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char proc[64];
	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", own);
	expect(f, "O_TMPFILE", own >= 0 || errno == EOPNOTSUPP);
	if (own >= 0)
		expect(f, "link it", linkat(AT_FDCWD, proc, AT_FDCWD, a, AT_SYMLINK_FOLLOW) == 0);
	base_close_fd(&own);
	(void)unlink(a);
}

static void works_names(struct finding *f)
{
	names_in(f, scratch_dir());
	names_in(f, ".");
}

static void works_locks(struct finding *f)
{
	char path[PATH_MAX];
	AUTO_FD int fd = scratch_file(path, sizeof(path), ".");
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	expect(f, "file", fd >= 0);
	expect(f, "flock", flock(fd, LOCK_EX | LOCK_NB) == 0);
	expect(f, "fcntl", fcntl(fd, F_SETLK, &lock) == 0);
	lock.l_type = F_UNLCK;
	expect(f, "unlock", fcntl(fd, F_SETLK, &lock) == 0);
	lock.l_type = F_WRLCK;
	expect(f, "ofd", fcntl(fd, 37 /* F_OFD_SETLK */, &lock) == 0);
	expect(f, "getlease", fcntl(fd, F_GETLEASE) == F_UNLCK);
	(void)unlink(path);
}

static void works_content(struct finding *f)
{
	char a[PATH_MAX], b[PATH_MAX], text[16] = "";
	AUTO_FD int from = scratch_file(a, sizeof(a), ".");
	AUTO_FD int to = scratch_file(b, sizeof(b), scratch_dir());
	off_t at = 0;
	int ends[2];
	expect(f, "fallocate", posix_fallocate(from, 0, 4096) == 0);
	expect(f, "sendfile", sendfile(to, from, &at, 6) == 6);
	expect(f, "pread", pread(to, text, 6, 6) == 6 && memcmp(text, "probe\n", 6) == 0);
	expect(f, "fsync", fsync(from) == 0 && fdatasync(from) == 0);
	expect(f, "truncate", ftruncate(from, 3) == 0 && truncate(a, 6) == 0);
	expect(f, "pipe", pipe2(ends, O_CLOEXEC) == 0);
	expect(f, "splice", splice(from, &(off_t){0}, ends[1], NULL, 3, 0) == 3);
	char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, from, 0);
	expect(f, "mmap", map != MAP_FAILED && map[0] == 'p');
	struct statvfs vfs;
	expect(f, "statvfs", fstatvfs(from, &vfs) == 0);
	expect(f, "xattr", fsetxattr(from, "user.probe", "1", 1, 0) == 0 || errno == EOPNOTSUPP);
	(void)unlink(a);
	(void)unlink(b);
}

static void works_memory(struct finding *f)
{
	AUTO_FD int fd = memfd_create("probe", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	expect(f, "memfd", fd >= 0 && ftruncate(fd, 4096) == 0);
	expect(f, "seal", fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	unsigned char *code =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	expect(f, "mmap", code != MAP_FAILED);
	expect(f, "exec page", mprotect(code, 4096, PROT_READ | PROT_EXEC) == 0);
	expect(f, "rwx page",
	       mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0) != MAP_FAILED);
	expect(f, "madvise", madvise(code, 4096, MADV_DONTNEED) == 0);
	expect(f, "mremap", mremap(code, 4096, 8192, MREMAP_MAYMOVE) != MAP_FAILED);
	expect(f, "getrandom", getrandom(&(uint64_t){0}, 8, 0) == 8);
	expect(f, "membarrier", syscall(SYS_membarrier, 0, 0, 0) >= 0);
}

static void works_queue(struct finding *f)
{
	char name[64], text[64];
	struct mq_attr attr = {.mq_maxmsg = 4, .mq_msgsize = 32};
	(void)snprintf(name, sizeof(name), "/sandglass-probe.%d", (int)getpid());
	mqd_t q = mq_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600, &attr);
	if (expect(f, "mq_open", q != (mqd_t)-1)) {
		expect(f, "mq_send", mq_send(q, "x", 1, 0) == 0);
		expect(f, "mq_receive", mq_receive(q, text, sizeof(text), NULL) == 1);
		(void)mq_close(q);
		(void)mq_unlink(name);
	}
	int msg = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
	expect(f, "msgget", msg >= 0);
	(void)msgctl(msg, IPC_RMID, NULL);
}

static void works_shared(struct finding *f)
{
	char name[64];
	(void)snprintf(name, sizeof(name), "/sandglass-probe.%d", (int)getpid());
	AUTO_FD int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	expect(f, "shm_open", fd >= 0 && ftruncate(fd, 4096) == 0);
	(void)shm_unlink(name);
	sem_t *sem = sem_open(name, O_CREAT | O_EXCL, 0600, 1);
	expect(f, "sem_open", sem != SEM_FAILED);
	if (sem != SEM_FAILED)
		expect(f, "sem_wait", sem_wait(sem) == 0 && sem_close(sem) == 0);
	(void)sem_unlink(name);
	int shm = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
	char *at = shm >= 0 ? shmat(shm, NULL, 0) : NULL;
	expect(f, "shmget", shm >= 0);
	if (expect(f, "shmat", at && at != (char *)-1) && at)
		at[0] = 1;
	(void)shmctl(shm, IPC_RMID, NULL);
	int set = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);
	expect(f, "semget", set >= 0);
	(void)semctl(set, 0, IPC_RMID);
}

static void works_pty(struct finding *f)
{
	char name[128] = "", byte = 0;
	AUTO_FD int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (!expect(f, "posix_openpt", master >= 0))
		return;
	expect(f, "grant", grantpt(master) == 0 && unlockpt(master) == 0);
	expect(f, "ptsname", ptsname_r(master, name, sizeof(name)) == 0);
	AUTO_FD int slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (!expect(f, "open", slave >= 0))
		return;
	struct winsize size = {24, 80, 0, 0};
	struct termios term;
	expect(f, "size", ioctl(master, TIOCSWINSZ, &size) == 0);
	expect(f, "attributes", tcgetattr(slave, &term) == 0);
	cfmakeraw(&term);
	expect(f, "raw", tcsetattr(slave, TCSANOW, &term) == 0);
	expect(f, "talk", write(slave, "x", 1) == 1 && read(master, &byte, 1) == 1 && byte == 'x');
	expect(f, "session", setsid() > 0 || getsid(0) == getpid());
	expect(f, "controlling terminal", ioctl(slave, TIOCSCTTY, 0) == 0);
	AUTO_FD int tty = open("/dev/tty", O_RDWR | O_CLOEXEC);
	expect(f, "/dev/tty", tty >= 0);
}

static void works_devices(struct finding *f)
{
	static const char *const nodes[] = {"/dev/null",   "/dev/zero",    "/dev/full",
					    "/dev/random", "/dev/urandom", "/dev/ptmx"};
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
		AUTO_FD int fd = open(nodes[i], O_RDWR | O_CLOEXEC | O_NOCTTY);
		AUTO_FD int in = open(nodes[i], O_RDONLY | O_CLOEXEC | O_NOCTTY);
		expect(f, nodes[i], in >= 0 && (fd >= 0 || strstr(nodes[i], "random")));
	}
	AUTO_FD int null = open("/dev/null", O_WRONLY | O_TRUNC | O_CLOEXEC);
	expect(f, "truncate /dev/null", null >= 0 && write(null, "x", 1) == 1);
	AUTO_FD int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	expect(f, "/dev/full is full", write(full, "x", 1) < 0 && errno == ENOSPC);
	expect(f, "/dev/fd", access("/dev/fd/0", F_OK) == 0 || fcntl(0, F_GETFD) < 0);
}

static void works_proc(struct finding *f)
{
	static const char *const files[] = {"/proc/self/status",
					    "/proc/self/maps",
					    "/proc/meminfo",
					    "/proc/cpuinfo",
					    "/proc/stat",
					    "/proc/uptime",
					    "/proc/loadavg",
					    "/proc/version",
					    "/proc/self/mountinfo",
					    "/proc/filesystems",
					    "/proc/sys/kernel/pid_max",
					    "/proc/self/cgroup",
					    "/etc/passwd",
					    "/etc/group",
					    "/etc/hosts",
					    "/etc/nsswitch.conf"};
	char text[512];
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		expect(f, files[i], read_text(files[i], text, sizeof(text)) > 0);
	struct utsname u;
	expect(f, "uname", uname(&u) == 0 && u.nodename[0]);
	expect(f, "clock", clock_gettime(CLOCK_BOOTTIME, &(struct timespec){0}) == 0);
	AUTO_FD int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	expect(f, "own memory", mem >= 0);
}

static const struct row rows[] = {
	{"works-names", NULL, works_names, ROW_WORKS, NULL,
	 "files, links, directories, fifos, ordinary modes"},
	{"works-locks", NULL, works_locks, ROW_WORKS, NULL, "flock, fcntl and ofd locks"},
	{"works-content", NULL, works_content, ROW_WORKS, NULL,
	 "fallocate, sendfile, splice, truncate, mmap, sync"},
	{"works-memory", NULL, works_memory, ROW_WORKS, NULL, "memfd, executable pages, random"},
	{"works-queue", NULL, works_queue, ROW_WORKS, NULL, "message queues of its own"},
	{"works-shared", NULL, works_shared, ROW_WORKS, NULL, "shared memory and semaphores"},
	{"works-pty", NULL, works_pty, ROW_WORKS, NULL, "a pseudo terminal of its own"},
	{"works-devices", NULL, works_devices, ROW_WORKS, NULL, "null, zero, full, random, ptmx"},
	{"works-proc", NULL, works_proc, ROW_WORKS, NULL, "what programs read in /proc and /etc"},
};
const struct row_table rows_works_more = {rows, ARRAY_LEN(rows)};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work: what is run inside a sandbox and outside, to compare. Prints lines
 * `KEY NUMBER`.
 *   work true          nothing: a static program that only starts
 *   work calls         system calls in a loop, ns each, best of several
 *   work files N       N small files made, looked at and removed, us
 *   work make N        N small files made and looked at, which stay: ext4 searches
 *                      long for an inode that was not freed in the last minute
 *   work spawn         this program started and waited for, ns, best of several
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/num.h"
#include "stats.h"

#define LOOPS 2000
#define REPEATS 15
#define MAX_FILES 100000

static char *self; /* how this program was called, to start it again */

static int do_getpid(void)
{
	return syscall(SYS_getpid) > 0 ? 0 : -1;
}

static int do_stat(void)
{
	struct stat st;
	return stat("work-file", &st);
}

static int do_open(void)
{
	int fd = open("work-file", O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -1 : close(fd);
}

static int do_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return fd < 0 ? -1 : close(fd);
}

static int do_spawn(void)
{
	pid_t pid = 0;
	int ws = 0;
	char verb[] = "true", *argv[] = {self, verb, NULL};
	errno = posix_spawn(&pid, self, NULL, NULL, argv, environ);
	if (errno || RETRY_EINTR(waitpid(pid, &ws, 0)) != pid)
		return -1;
	return ws ? -1 : 0;
}

static int loop_measure(const char *key, int (*op)(void), unsigned loops, struct err *e)
{
	uint64_t best = UINT64_MAX;
	for (unsigned r = 0; r < REPEATS; r++) {
		uint64_t began = now_ns();
		for (unsigned i = 0; i < loops; i++) {
			if (op())
				return err_sys(e, "%s", key);
		}
		uint64_t each = (now_ns() - began) / loops;
		best = each < best ? each : best;
	}
	printf("%s %llu\n", key, (unsigned long long)best);
	return 0;
}

static int calls_run(struct err *e)
{
	AUTO_FD int fd = open("work-file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(e, "make work-file");
	int rc = loop_measure("getpid-ns", do_getpid, LOOPS, e) ||
		 loop_measure("stat-ns", do_stat, LOOPS, e) ||
		 loop_measure("open+close-ns", do_open, LOOPS, e) ||
		 loop_measure("socket-ns", do_socket, LOOPS, e);
	if (unlink("work-file") && !rc)
		return err_sys(e, "remove work-file");
	return rc ? -1 : 0;
}

static int file_make(int dir, unsigned i, struct err *e)
{
	char name[32];
	struct stat st;
	(void)snprintf(name, sizeof(name), "f%u", i); /* fits */
	AUTO_FD int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0 || write(fd, "x", 1) != 1)
		return err_sys(e, "make %s", name);
	int made = TAKE_FD(fd);
	if (close(made) || fstatat(dir, name, &st, 0))
		return err_sys(e, "look at %s", name);
	return 0;
}

static int file_remove(int dir, unsigned i, struct err *e)
{
	char name[32];
	(void)snprintf(name, sizeof(name), "f%u", i); /* fits */
	if (unlinkat(dir, name, 0))
		return err_sys(e, "remove %s", name);
	return 0;
}

static int files_in(int dir, unsigned count, int keep, struct err *e)
{
	uint64_t began = now_ns();
	for (unsigned i = 0; i < count; i++) {
		if (file_make(dir, i, e))
			return -1;
	}
	uint64_t made = now_ns();
	printf("create+stat-us %llu\n", (unsigned long long)(made - began) / 1000);
	if (keep)
		return 0;
	for (unsigned i = 0; i < count; i++) {
		if (file_remove(dir, i, e))
			return -1;
	}
	uint64_t removed = now_ns();
	printf("unlink-us %llu\nboth-us %llu\n", (unsigned long long)(removed - made) / 1000,
	       (unsigned long long)(removed - began) / 1000);
	return 0;
}

static int files_run(unsigned count, int keep, struct err *e)
{
	char name[64];
	(void)snprintf(name, sizeof(name), "made-%llu", (unsigned long long)now_ns()); /* fits */
	if (mkdir(name, 0777))
		return err_sys(e, "make %s", name);
	AUTO_FD int dir = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_sys(e, "open %s", name);
	if (files_in(dir, count, keep, e))
		return -1;
	if (!keep && rmdir(name))
		return err_sys(e, "remove %s", name);
	return 0;
}

static int work_run(int argc, char **argv, struct err *e)
{
	uint64_t count = 0;
	if (argc == 2 && strcmp(argv[1], "calls") == 0)
		return calls_run(e);
	if (argc == 2 && strcmp(argv[1], "spawn") == 0)
		return loop_measure("spawn-ns", do_spawn, 20, e);
	int keep = argc == 3 && strcmp(argv[1], "make") == 0;
	if (keep || (argc == 3 && strcmp(argv[1], "files") == 0)) {
		if (num_parse(argv[2], 1, MAX_FILES, &count, e))
			return -1;
		return files_run((unsigned)count, keep, e);
	}
	return err_set(e, ERR_CONFIG_INVALID, "usage: work true|calls|spawn|files N|make N");
}

int main(int argc, char **argv)
{
	struct err e;
	if (argc == 2 && strcmp(argv[1], "true") == 0)
		return 0;
	self = argv[0];
	if (work_run(argc, argv, &e)) {
		(void)fprintf(stderr, "work: %s\n", e.msg);
		return 2;
	}
	return fflush(stdout) ? 2 : 0;
}

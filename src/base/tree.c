/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tree.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"

#define MAX_TREE 65536
/* Deeper than any chain of parents that a table of processes can hold. */
#define CHAIN_STEPS 4096

static pid_t parent_of(pid_t pid)
{
	char path[32];
	char text[512];
	int ppid = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	if (f)
		(void)fclose(f);
	text[n] = '\0';
	const char *paren = strrchr(text, ')');
	return paren && sscanf(paren + 1, " %*c %d", &ppid) == 1 ? ppid : 0;
}

/* One pass over /proc, which goes up by number: who is born meanwhile is met too. */
static size_t pass(pid_t *tree, size_t count, tree_item *each, void *self)
{
	DIR *dir = opendir("/proc");

	if (!dir)
		return count;
	for (struct dirent *d = readdir(dir); d && count < MAX_TREE; d = readdir(dir)) {
		int pid = 0;
		bool known = sscanf(d->d_name, "%d", &pid) != 1 || pid <= 0;
		bool child = false;
		pid_t parent = known ? 0 : parent_of(pid);
		for (size_t i = 0; i < count; i++) {
			known |= tree[i] == pid;
			child |= tree[i] == parent;
		}
		if (known || !child)
			continue;
		tree[count++] = pid;
		each(self, pid);
	}
	(void)closedir(dir);
	return count;
}

void tree_each(tree_item *each, void *self)
{
	static pid_t tree[MAX_TREE];
	size_t count = 1;

	tree[0] = getpid();
	for (size_t before = 0; before != count;) {
		before = count;
		count = pass(tree, count, each, self);
	}
}

static bool is_ours(pid_t pid)
{
	for (int steps = 0; pid > 1 && steps < CHAIN_STEPS; steps++) {
		pid = parent_of(pid);
		if (pid == getpid())
			return true;
	}
	return false;
}

static int send_by(int pidfd, int sig)
{
	return (int)syscall(424 /* pidfd_send_signal */, pidfd, sig, NULL, 0);
}

static int open_pidfd(pid_t pid)
{
	return (int)syscall(434 /* pidfd_open */, pid, 0);
}

bool tree_works(void)
{
	AUTO_FD int fd = open_pidfd(getpid());

	return fd >= 0 && send_by(fd, 0) == 0;
}

static void send_one(void *self, pid_t pid)
{
	const int *sig = self;

	AUTO_FD int fd = open_pidfd(pid);
	int sys = fd < 0 ? errno : 0;
	if (!is_ours(pid)) /* the pid is somebody else's by now */
		return;
	if (fd >= 0 && send_by(fd, *sig) < 0)
		sys = errno;
	/* Without a boundary a filter of the caller's may refuse these; the tree must end all the same. */
	if (sys == ENOSYS || sys == EPERM)
		(void)kill(pid, *sig);
}

void tree_signal(int sig)
{
	tree_each(send_one, &sig);
}

bool tree_end(unsigned int ms, tree_reaped *reaped, void *self)
{
	static const struct timespec pause = {.tv_nsec = 1000000};
	int status = 0;

	for (unsigned int spent = 0;; spent++) {
		pid_t pid = 0;
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
			if (reaped)
				reaped(self, pid, status);
		if (pid < 0)
			return true;
		if (spent >= ms)
			return false;
		tree_signal(SIGKILL);
		(void)nanosleep(&pause, NULL);
	}
}

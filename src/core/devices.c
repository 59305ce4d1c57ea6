/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc, /dev and the pty. Only device nodes that every program may use are
 * bound from the host; /proc is a new instance for the new pid namespace with
 * the parts that speak of the kernel read-only or covered.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "core/core.h"
#include "core/sys.h"

#define ATTR_NODES (ATTR_RDONLY | ATTR_NOSUID | ATTR_NOEXEC)

/*
 * Made while the host's /proc is still mounted: the kernel allows a new procfs
 * in a user namespace only where a fully visible one exists.
 */
void devices_build_proc(struct core *c)
{
	static const char *const none[] = {NULL};
	static const char *const read_only[] = {"/proc/sys", "/proc/fs", "/proc/irq", "/proc/bus"};
	/*
	 * What container engines cover and everybody may read, plus the tables of
	 * keys and kernel addresses. What only root may read (kpagecount, kmsg,
	 * slabinfo …) is refused by its mode: nobody here is the host's root.
	 */
	static const char *const files[] = {
		"/proc/interrupts",  "/proc/kallsyms",      "/proc/kcore",
		"/proc/key-users",   "/proc/keys",          "/proc/latency_stats",
		"/proc/sched_debug", "/proc/sysrq-trigger", "/proc/timer_list",
	};
	static const char *const directories[] = {"/proc/acpi", "/proc/asound", "/proc/scsi"};

	int fd = mount_new_fs("proc", none, ATTR_NOSUID | ATTR_NODEV | ATTR_NOEXEC);
	if (fd < 0)
		core_die(STAGE_PROC, errno, "/proc");
	mount_attach(c, fd, "/proc", true);
	/* All of them become read-only with the rest of the system. */
	for (size_t i = 0; i < ARRAY_LEN(read_only); i++)
		(void)mount_bind_plain(read_only[i] + 1, read_only[i]);
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		(void)mount_bind_plain(".mask-file", files[i]);
	for (size_t i = 0; i < ARRAY_LEN(directories); i++)
		(void)mount_bind_plain(".mask-dir", directories[i]);
}

static const char *const nodes[] = {"/dev/null",   "/dev/zero",    "/dev/full",
				    "/dev/random", "/dev/urandom", "/dev/tty"};

static void link_to(const struct core *c, const char *text, const char *path)
{
	if (symlinkat(text, c->root_fd, path + 1) < 0)
		core_die(STAGE_DEV, errno, path);
}

static void make_dir(const struct core *c, const char *path)
{
	if (mkdirat(c->root_fd, path + 1, 0755) < 0)
		core_die(STAGE_DEV, errno, path);
}

/* Names and file systems; nothing is attached. */
void devices_begin(struct core *c)
{
	static const char *const none[] = {NULL};
	static const char *const pts[] = {"ptmxmode", "0666", "mode", "0620", NULL};
	char size[32];
	const char *const shm[] = {"mode", "1777", "size", size, NULL};

	make_dir(c, "/dev");
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
		if (mknodat(c->root_fd, nodes[i] + 1, S_IFREG, 0) < 0)
			core_die(STAGE_DEV, errno, nodes[i]);
	link_to(c, "/proc/self/fd", "/dev/fd");
	link_to(c, "/proc/self/fd/0", "/dev/stdin");
	link_to(c, "/proc/self/fd/1", "/dev/stdout");
	link_to(c, "/proc/self/fd/2", "/dev/stderr");
	link_to(c, "pts/ptmx", "/dev/ptmx");

	make_dir(c, "/dev/pts");
	c->pts_fd = mount_new_fs("devpts", pts, ATTR_NOSUID | ATTR_NOEXEC);
	if (c->pts_fd < 0)
		core_die(STAGE_DEV, errno, "/dev/pts");
	/* Its name is needed: mq_open(3) works on this file system, and Landlock's rule is on its root. */
	c->mqueue_fd = mount_new_fs("mqueue", none, ATTR_NOSUID | ATTR_NODEV | ATTR_NOEXEC);
	if (c->mqueue_fd >= 0)
		make_dir(c, "/dev/mqueue");
	else if (errno != ENODEV)
		core_die(STAGE_DEV, errno, "/dev/mqueue");
	make_dir(c, "/dev/shm");
	(void)snprintf(size, sizeof(size), "%llu", (unsigned long long)c->p->n.shm_bytes);
	c->shm_fd = mount_new_fs("tmpfs", shm, ATTR_NOSUID | ATTR_NODEV);
	if (c->shm_fd < 0)
		core_die(STAGE_DEV, errno, "/dev/shm");
}

static void attach(const struct core *c, int tree, const char *path)
{
	if (tree >= 0 && sys_move_mount(tree, "", c->root_fd, path + 1, MOVE_FROM_EMPTY) < 0)
		core_die(STAGE_DEV, errno, path);
}

void devices_build(struct core *c)
{
	struct attr a = {.set = ATTR_NODES};

	/* In our own copy of the host's mounts, so that what is bound from there has them. */
	if (sys_mount_setattr(AT_FDCWD, "/dev", AT_RECURSIVE, &a) < 0)
		core_die(STAGE_DEV, errno, "attributes of /dev");
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
		if (!mount_bind_plain(nodes[i], nodes[i]))
			core_die(STAGE_DEV, errno, nodes[i]);
	attach(c, c->pts_fd, "/dev/pts");
	attach(c, c->mqueue_fd, "/dev/mqueue");
	attach(c, c->shm_fd, "/dev/shm");
}

/*
 * A pty of the sandbox's own devpts: the command's terminal has a name inside,
 * the master goes to the front, which relays. The host's terminal stays outside.
 */
void devices_open_pty(struct core *c)
{
	struct winsize size = {.ws_row = (unsigned short)c->p->n.rows,
			       .ws_col = (unsigned short)c->p->n.cols};
	int unlock = 0;

	/* Without namespaces it is the host's, with a name that nobody is granted. */
	bool rung = c->p->n.flags & PLAN_LANDLOCK;
	const char *ptmx = rung ? "/dev/ptmx" : "/dev/pts/ptmx";
	int master = open(ptmx, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (master < 0)
		core_die(STAGE_PTY, errno, ptmx);
	if (ioctl(master, TIOCSPTLCK, &unlock) < 0 || ioctl(master, TIOCSWINSZ, &size) < 0)
		core_die(STAGE_PTY, errno, "prepare the pty");
	c->pty_slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	/* We lead the session: a command whose parent is not in it could not be stopped by a key. */
	if (c->pty_slave < 0 || ioctl(c->pty_slave, TIOCSCTTY, 0) < 0)
		core_die(STAGE_PTY, errno, "open the pty");
	report_fds(&(const struct report){.kind = REPORT_PTY}, &master, 1);
	(void)close(master);
}

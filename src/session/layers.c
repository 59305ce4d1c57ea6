/* SPDX-License-Identifier: Apache-2.0 */
#include "session/layers.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/file.h"
#include "core/sys.h"
#include "core/tree.h"
#include "launch/launch.h"
#include "run/keep.h"
#include "store/remove.h"

#define HOLDER_CTL 3 /* the holder's descriptors */
#define HOLDER_DIR 4
#define HOLDER_TREE 5 /* as root: the source, id-mapped */
#define HOLDER_END 6

enum word { WORD_READY, WORD_MOUNT, WORD_MOUNT_MASKS, WORD_TREE };

struct reply {
	int32_t sys;
	char text[60];
};

/* From here on in the holder. */
static void answer(int sys, const char *text, int fd)
{
	struct reply r = {.sys = sys};

	strncpy(r.text, text, sizeof(r.text) - 1);
	(void)keep_send(HOLDER_CTL, &r, sizeof(r), &fd, fd < 0 ? 0 : 1);
}

static int set_up_net(void)
{
	struct ifreq r = {.ifr_name = "lo"};

	AUTO_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	r.ifr_flags = IFF_UP | IFF_RUNNING;
	if (ioctl(fd, SIOCSIFFLAGS, &r) < 0)
		return -1;
	/* In a network of our own a low port means nothing: let servers have them. */
	(void)file_write_text("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
	return 0;
}

/* The source, where the overlay finds it. */
static int put_lower(const struct session_record *rec)
{
	struct plan_mount m = {.kind = MOUNT_BIND,
			       .flags = MOUNT_IDENT | MOUNT_DIRECTORY,
			       .dev = rec->dev,
			       .ino = rec->ino,
			       .src = rec->source};
	struct report why;
	int tree = HOLDER_TREE;

	if (!rec->root)
		tree = tree_open(&m, -1, &why);
	if (tree < 0) {
		errno = why.sys ? why.sys : ESTALE;
		return -1;
	}
	int rc = sys_move_mount(tree, "", AT_FDCWD, "mnt/lower", MOVE_FROM_EMPTY);
	int saved = errno;
	(void)close(tree);
	errno = saved;
	return rc;
}

/* The descriptor is of the host's mount namespace, where nothing is ours to mount: the same by name. */
static int enter_dir(void)
{
	char path[PATH_TEXT];
	struct stat there;
	struct stat here;

	ssize_t n = readlink("/proc/self/fd/4", path, sizeof(path) - 1);
	if (n <= 0)
		return -1;
	path[n] = '\0';
	/* A mount of its own, which can become the root. */
	if (mount(path, path, NULL, MS_BIND, NULL) < 0 || chdir(path) < 0 ||
	    fstat(HOLDER_DIR, &there) < 0 || stat(".", &here) < 0)
		return -1;
	errno = ESTALE;
	return there.st_dev == here.st_dev && there.st_ino == here.st_ino ? 0 : -1;
}

/*
 * All mounts of the host go, so that none of them is kept busy by a session that has nothing
 * to do with it. Where the root is no mount that can be left (a chroot) they stay.
 */
static void leave_host(void)
{
	if (syscall(SYS_pivot_root, ".", ".") == 0) {
		(void)umount2(".", MNT_DETACH); /* the old root, on top of the new one */
		(void)chdir("/");
	}
}

static const char *prepare(const struct session_record *rec)
{
	struct attr private = {.propagation = MS_PRIVATE};

	if (sys_mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &private) < 0)
		return "make mounts private";
	if (set_up_net() < 0)
		return "loopback up";
	if (enter_dir() < 0)
		return "the session's directory";
	if (!session_is_overlay(rec)) {
		leave_host();
		return NULL;
	}
	if (mount("sandglass", "mnt", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  "size=64k,mode=0700") < 0 ||
	    mkdir("mnt/lower", 0700) < 0 || mkdir("mnt/merged", 0700) < 0)
		return "mount points";
	if (put_lower(rec) < 0)
		return "the source";
	leave_host();
	return NULL;
}

/*
 * `volatile` spares the writes to disk of each unmount, and marks the layer so that
 * it cannot be mounted after a crash of the machine. Within one boot nothing was
 * lost, and the mark is ours to remove (the keeper has compared the boot).
 */
static const char *mount_overlay(const struct session_record *rec, bool masks)
{
	static const char as_root[] = "redirect_dir=on";
	static const char as_user[] = "userxattr";
	char options[256];

	if (umount2("mnt/merged", MNT_DETACH) < 0 && errno != EINVAL)
		return "unmount the overlay";
	AUTO_FD int work = open("work/work", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (work >= 0)
		remove_tree(work, "incompat");
	(void)snprintf(options, sizeof(options),
		       "lowerdir=%smnt/lower,upperdir=upper,workdir=work,volatile,index=off,"
		       "metacopy=off,%s",
		       masks ? "masks:" : "", rec->root ? as_root : as_user);
	if (mount("sandglass", "mnt/merged", "overlay", MS_NOSUID | MS_NODEV, options) < 0)
		return "mount the overlay";
	return NULL;
}

static void give_tree(const struct session_record *rec)
{
	struct attr a = {.set = ATTR_NOSUID | ATTR_NODEV, .propagation = MS_PRIVATE};

	AUTO_FD int tree =
		sys_open_tree(AT_FDCWD, rec->writes == SESSION_COPY ? "copy" : "mnt/merged",
			      TREE_CLONE | TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	if (tree < 0 || sys_mount_setattr(tree, "", AT_EMPTY_PATH, &a) < 0)
		answer(errno, "the session's tree", -1);
	else
		answer(0, "", tree);
}

static _Noreturn void hold(const struct session_record *rec)
{
	const char *failed = prepare(rec);
	uint32_t word = 0;

	answer(failed ? errno : 0, failed ? failed : "", -1);
	if (failed)
		_exit(125);
	for (;;) {
		long n = keep_receive(HOLDER_CTL, &word, sizeof(word), NULL, 0, 0);
		if (n != sizeof(word)) /* the keeper is gone */
			_exit(0);
		if (word == WORD_TREE) {
			give_tree(rec);
			continue;
		}
		failed = mount_overlay(rec, word == WORD_MOUNT_MASKS);
		answer(failed ? errno : 0, failed ? failed : "", -1);
	}
}

static _Noreturn void become_holder(const struct session_record *rec, int ctl, int dir, int tree)
{
	uint32_t word = 0;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)setsid();
	/* Orphans of calls come to us; nobody waits for them. */
	(void)sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	/* Their numbers may be those that are wanted. */
	int high[3] = {fcntl(ctl, F_DUPFD, HOLDER_END), fcntl(dir, F_DUPFD, HOLDER_END),
		       tree < 0 ? -1 : fcntl(tree, F_DUPFD, HOLDER_END)};
	if (high[0] < 0 || high[1] < 0 || dup2(high[0], HOLDER_CTL) < 0 ||
	    dup2(high[1], HOLDER_DIR) < 0 || (tree >= 0 && dup2(high[2], HOLDER_TREE) < 0))
		_exit(125);
	(void)sys_close_range(HOLDER_END, ~0u, 0);
	(void)prctl(PR_SET_NAME, "sandglass-hold", 0, 0, 0);
	/* The ids are mapped. */
	if (keep_receive(HOLDER_CTL, &word, sizeof(word), NULL, 0, 0) != sizeof(word))
		_exit(125);
	hold(rec);
}

/* From here on in the keeper. */
static int open_source(const struct session_record *rec, int *ret, struct err *e)
{
	struct plan p = {.n = {.outer_uid = rec->uid, .outer_gid = rec->gid, .flags = PLAN_ROOT}};
	struct launch l = {.p = &p, .given = -1, .user_ns = -1, .mount_ns = -1};
	struct plan_mount m = {.kind = MOUNT_BIND,
			       .flags = MOUNT_IDENT | MOUNT_DIRECTORY | MOUNT_IDMAP,
			       .dev = rec->dev,
			       .ino = rec->ino,
			       .src = rec->source};

	*ret = -1;
	AUTO_FD int map = idmap_make(&l, rec->owner_uid, rec->owner_gid);
	idmap_reap_holder(&l);
	if (map >= 0)
		*ret = tree_open(&m, map, &l.failure);
	if (*ret >= 0)
		return 0;
	errno = l.failure.sys;
	*ret = -1;
	return err_sys(e, "open the source %s for the overlay", l.failure.text);
}

static int open_ns(pid_t pid, const char *name, int *ret, struct err *e)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, name);
	*ret = open(path, O_RDONLY | O_CLOEXEC);
	return *ret < 0 ? err_sys(e, "%s", path) : 0;
}

/* In an ordinary user's namespace the user is the user. */
static int map_ids(pid_t pid, struct err *e)
{
	const struct plan_numbers n = {.uid = geteuid(),
				       .outer_uid = geteuid(),
				       .gid = getegid(),
				       .outer_gid = getegid()};
	const char *file = NULL;

	return launch_write_maps(&n, pid, &file) < 0 ? err_sys(e, "write %s", file) : 0;
}

static int ask(struct layers *l, enum word w, int *ret_fd, struct err *e)
{
	uint32_t word = w;
	struct reply r = {.sys = 0};
	int fd = -1;

	if (keep_send(l->ctl, &word, sizeof(word), NULL, 0) < 0)
		return err_sys(e, "the session's first process");
	if (keep_receive(l->ctl, &r, sizeof(r), &fd, 1, 0) != sizeof(r))
		return err_set(e, ERR_INTERNAL, "the session's first process has ended");
	if (ret_fd)
		*ret_fd = fd;
	else if (fd >= 0)
		(void)close(fd);
	r.text[sizeof(r.text) - 1] = '\0';
	errno = r.sys;
	return r.sys ? err_sys(e, "%s", r.text) : 0;
}

int layers_start(struct layers *l, int dir, const struct session_record *rec, struct err *e)
{
	struct clone_args a = {.flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET,
			       .exit_signal = SIGCHLD};
	int pair[2];
	int source = -1;

	*l = (struct layers){.ctl = -1, .user = -1, .pidns = -1, .net = -1};
	if (rec->root && session_is_overlay(rec) && open_source(rec, &source, e) < 0)
		return -1;
	AUTO_FD int tree = source;
	if (!rec->root)
		a.flags |= CLONE_NEWUSER;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socketpair");
	l->ctl = pair[0];
	l->pid = (pid_t)sys_clone3(&a);
	if (l->pid == 0)
		become_holder(rec, pair[1], dir, tree);
	(void)close(pair[1]);
	if (l->pid < 0) {
		l->pid = 0;
		return err_sys(e, "make the session's namespaces");
	}
	if (!rec->root && (map_ids(l->pid, e) < 0 || open_ns(l->pid, "user", &l->user, e) < 0))
		return -1;
	if (open_ns(l->pid, "pid", &l->pidns, e) < 0 || open_ns(l->pid, "net", &l->net, e) < 0)
		return -1;
	return ask(l, WORD_READY, NULL, e);
}

int layers_mount(struct layers *l, bool masks, struct err *e)
{
	return ask(l, masks ? WORD_MOUNT_MASKS : WORD_MOUNT, NULL, e);
}

int layers_tree(struct layers *l, int *ret, struct err *e)
{
	return ask(l, WORD_TREE, ret, e);
}

void layers_end(struct layers *l)
{
	if (l->pid)
		(void)kill(l->pid, SIGKILL);
	if (l->pid)
		(void)RETRY_EINTR(waitpid(l->pid, NULL, 0));
	for (size_t i = 0; i < 4; i++) {
		const int fds[] = {l->ctl, l->user, l->pidns, l->net};
		if (fds[i] >= 0)
			(void)close(fds[i]);
	}
	*l = (struct layers){.ctl = -1, .user = -1, .pidns = -1, .net = -1};
}

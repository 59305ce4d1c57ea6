/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sock_diag(7) tells device, inode and the name that it was bound by, of every
 * socket in this network namespace. The name is tried as it stands. A socket may
 * have been bound by a relative name, moved, or linked to a second one since: if
 * its name does not settle where it is, and it is on the device of a granted tree,
 * the trees are walked. Without sock_diag they always are.
 */
#include "run/sockets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>

#include "base/base.h"
#include "base/path.h"

#define MAX_DEVICES 64u
#define MAX_DEPTH 64 /* of a walk; deeper than any project */

struct finder {
	struct view *v;
	const struct source *src;
	bool walk;
	dev_t device[MAX_DEVICES]; /* that granted trees are on; full: every device counts */
	size_t devices;
	dev_t loose[MAX_DEVICES]; /* of sockets whose names do not settle where they are */
	size_t loose_count;       /* over MAX_DEVICES: more than that */
	struct err *e;
};

static bool on_granted_device(const struct finder *f, dev_t dev)
{
	for (size_t i = 0; i < f->devices; i++)
		if (f->device[i] == dev)
			return true;
	return f->devices == MAX_DEVICES;
}

static void add_device(struct finder *f, dev_t dev)
{
	for (size_t i = 0; i < f->devices; i++)
		if (f->device[i] == dev)
			return;
	if (f->devices < MAX_DEVICES)
		f->device[f->devices++] = dev;
}

static bool is_granted(const struct finder *f, const char *path);

/* The mount that a granted tree's root is on: of those above it the deepest. */
struct holder {
	const char *root;
	size_t depth;
	dev_t dev;
};

static void consider(struct holder *h, const char *point, dev_t dev)
{
	size_t depth = strlen(point);

	if (path_is_below(point, h->root) && depth >= h->depth) {
		h->depth = depth;
		h->dev = dev;
	}
}

/* The mounts that hold a granted tree or lie in one, by the kernel's own numbers. */
static void find_devices(struct finder *f)
{
	struct holder holders[MAX_GRANTS + 1];
	char line[2 * PATH_TEXT];
	char point[PATH_TEXT];
	unsigned int major = 0;
	unsigned int minor = 0;
	size_t n = 0;

	if (f->src->given)
		holders[n++] = (struct holder){.root = f->src->path, .dev = f->src->st.st_dev};
	for (size_t i = 0; i < f->v->grant_count; i++)
		holders[n++] = (struct holder){.root = f->v->grants[i].path,
					       .dev = f->v->grants[i].st.st_dev};
	FILE *in = fopen("/proc/self/mountinfo", "re");
	while (in && fgets(line, sizeof(line), in)) {
		/* id, parent, major:minor, root, mount point (proc_pid_mountinfo(5)) */
		if (sscanf(line, "%*s %*s %u:%u %*s %4095s", &major, &minor, point) != 3)
			continue;
		for (size_t i = 0; i < n; i++)
			consider(&holders[i], point, makedev(major, minor));
		if (is_granted(f, point))
			add_device(f, makedev(major, minor));
	}
	if (in)
		(void)fclose(in);
	for (size_t i = 0; i < n; i++)
		add_device(f, holders[i].dev);
}

static int mask(struct finder *f, const char *path)
{
	for (size_t i = 0; i < f->v->n; i++)
		if (f->v->mounts[i].kind == MOUNT_MASK && strcmp(f->v->mounts[i].dst, path) == 0)
			return 0;
	int rc = view_made(f->v, MOUNT_MASK, path, NULL, f->e);
	if (rc == 0)
		f->v->mounts[f->v->n - 1].flags =
			MOUNT_OPTIONAL; /* its owner may remove it any time */
	return rc;
}

static bool is_granted(const struct finder *f, const char *path)
{
	bool granted = f->src->given && path_is_below(f->src->path, path);

	for (size_t i = 0; i < f->v->grant_count; i++)
		granted |= path_is_below(f->v->grants[i].path, path);
	return granted;
}

/*
 * Whether the name settles where the socket is: it is masked there if that is
 * granted. A directory that we may not look into is none that was granted, and
 * what lies in it nobody but its owner can have moved.
 */
static int try_name(struct finder *f, const char *name, ino_t ino, bool *ret_settled)
{
	struct places nowhere = {.n = 0};
	struct resolved r;
	struct err ignored = {0};
	struct stat st;

	*ret_settled = false;
	if (name[0] != '/')
		return 0;
	if (lstat(name, &st) < 0) {
		*ret_settled = errno == EACCES && !is_granted(f, name);
		return 0;
	}
	if (!S_ISSOCK(st.st_mode) || st.st_ino != ino ||
	    resolve_path(name, NULL, &nowhere, &r, &ignored) < 0)
		return 0;
	*ret_settled = st.st_nlink == 1;
	return is_granted(f, r.path) ? mask(f, r.path) : 0;
}

static int take_answer(struct finder *f, const struct nlmsghdr *h)
{
	const struct unix_diag_msg *msg = NLMSG_DATA(h);
	int left = (int)h->nlmsg_len - (int)NLMSG_LENGTH(sizeof(*msg));
	struct unix_diag_vfs vfs = {0};
	char name[sizeof(((struct sockaddr_un *)0)->sun_path) + 1] = "";
	bool settled = false;

	for (const struct rtattr *a = (const struct rtattr *)(msg + 1); RTA_OK(a, left);
	     a = RTA_NEXT(a, left)) {
		size_t n = RTA_PAYLOAD(a);
		if (a->rta_type == UNIX_DIAG_VFS && n >= sizeof(vfs))
			memcpy(&vfs, RTA_DATA(a), sizeof(vfs));
		if (a->rta_type == UNIX_DIAG_NAME && n < sizeof(name)) {
			memcpy(name, RTA_DATA(a), n);
			name[n] = '\0';
		}
	}
	if (!vfs.udiag_vfs_ino)
		return 0;
	int rc = try_name(f, name, vfs.udiag_vfs_ino, &settled);
	/* The kernel's own form of a device number: 12 bits of major, 20 of minor. */
	if (!settled && f->loose_count++ < MAX_DEVICES)
		f->loose[f->loose_count - 1] =
			makedev(vfs.udiag_vfs_dev >> 20, vfs.udiag_vfs_dev & 0xfffff);
	return rc;
}

/* Whether a socket that could be anywhere on its device could be in a granted tree. */
static bool is_loose_one_near(struct finder *f)
{
	if (!f->loose_count)
		return false;
	find_devices(f);
	bool near = f->loose_count > MAX_DEVICES;
	for (size_t i = 0; i < f->loose_count && !near; i++)
		near = on_granted_device(f, f->loose[i]);
	return near;
}

/* Which sockets of this network namespace lie on granted devices. */
static int ask_kernel(struct finder *f)
{
	struct {
		struct nlmsghdr head;
		struct unix_diag_req req;
	} ask = {
		.head = {.nlmsg_len = sizeof(ask),
			 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.req = {.sdiag_family = AF_UNIX,
			.udiag_states = ~0u,
			.udiag_show = UDIAG_SHOW_VFS | UDIAG_SHOW_NAME},
	};
	static _Alignas(struct nlmsghdr) char answer[32768];

	f->walk = true; /* until it has told everything */
	AUTO_FD int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (fd < 0 || send(fd, &ask, sizeof(ask), 0) < 0)
		return 0;
	f->walk = false;
	for (;;) {
		ssize_t n = RETRY_EINTR(recv(fd, answer, sizeof(answer), 0));
		unsigned int left = n > 0 ? (unsigned int)n : 0;
		if (n <= 0) {
			f->walk = true;
			return 0;
		}
		for (const struct nlmsghdr *h = (const struct nlmsghdr *)answer; NLMSG_OK(h, left);
		     h = NLMSG_NEXT(h, left)) {
			f->walk |= h->nlmsg_type == NLMSG_ERROR;
			if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
				return 0;
			if (h->nlmsg_type == SOCK_DIAG_BY_FAMILY && take_answer(f, h) < 0)
				return -1;
		}
	}
}

static unsigned char type_of(int dir, const struct dirent *d)
{
	struct stat st;

	if (d->d_type != DT_UNKNOWN) /* not every file system tells */
		return d->d_type;
	return fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0
		       ? (unsigned char)DT_UNKNOWN
		       : (unsigned char)IFTODT(st.st_mode);
}

/* Below `dir`, mounts included; masks every socket. Takes the descriptor. */
static int walk(struct finder *f, int dir_fd, char *path, size_t len, int depth)
{
	int rc = 0;

	DIR *dir = fdopendir(dir_fd);
	if (!dir) {
		(void)close(dir_fd);
		return 0;
	}
	for (struct dirent *d = readdir(dir); d && rc == 0; d = readdir(dir)) {
		size_t n = strlen(d->d_name);
		if (path_is_dots(d->d_name) || len + n + 2 > PATH_TEXT)
			continue;
		unsigned char type = type_of(dirfd(dir), d);
		if (type != DT_DIR && type != DT_SOCK)
			continue;
		path[len] = '/';
		memcpy(path + len + 1, d->d_name, n + 1);
		if (type == DT_SOCK)
			rc = mask(f, path);
		else if (depth < MAX_DEPTH) {
			int sub = openat(dirfd(dir), d->d_name,
					 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			if (sub >= 0)
				rc = walk(f, sub, path, len + 1 + n, depth + 1);
		}
		path[len] = '\0';
	}
	(void)closedir(dir);
	return rc;
}

static int walk_tree(struct finder *f, const char *root)
{
	char path[PATH_TEXT];

	int fd = open(root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return 0;
	size_t len = strlen(root);
	memcpy(path, root, len + 1);
	return walk(f, fd, path, len, 0);
}

int sockets_mask(struct view *v, const struct source *src, struct err *e)
{
	struct finder f = {.v = v, .src = src, .e = e};

	if (!src->given && !v->grant_count)
		return 0;
	if (ask_kernel(&f) < 0)
		return -1;
	if (!f.walk && !is_loose_one_near(&f))
		return 0;
	if (src->given && walk_tree(&f, src->path) < 0)
		return -1;
	for (size_t i = 0; i < v->grant_count; i++)
		if (walk_tree(&f, v->grants[i].path) < 0)
			return -1;
	return 0;
}

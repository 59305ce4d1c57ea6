/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two sources: the devices and inodes that sock_diag(7) tells; and, to find
 * those on a granted tree's device, the names in /proc/net/unix. A socket may
 * have been bound by a relative name or moved since: if no name led to it, the
 * trees are walked.
 */
#include "run/sockets.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>

#include "base/base.h"

#define MAX_BOUND 1024 /* sockets in files on granted devices; above, all trees are walked */
#define MAX_DEPTH 64   /* of a walk; deeper than any project */

struct finder {
	struct view *v;
	const struct source *src;
	struct place bound[MAX_BOUND]; /* not met yet */
	size_t bound_count;
	bool walk_all;
	struct err *e;
};

static bool on_granted_device(const struct finder *f, dev_t dev)
{
	if (f->src->given && f->src->st.st_dev == dev)
		return true;
	for (size_t i = 0; i < f->v->grant_count; i++)
		if (f->v->grants[i].st.st_dev == dev)
			return true;
	return false;
}

static void forget(struct finder *f, const struct stat *st)
{
	for (size_t i = 0; i < f->bound_count; i++)
		if (f->bound[i].dev == st->st_dev && f->bound[i].ino == st->st_ino)
			f->bound[i--] = f->bound[--f->bound_count];
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

static int try_path(struct finder *f, const char *path)
{
	struct places nowhere = {.n = 0};
	struct resolved r;
	struct err ignored = {0};
	struct stat st;

	if (lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode) ||
	    resolve_path(path, NULL, &nowhere, &r, &ignored) < 0)
		return 0;
	forget(f, &st);
	return is_granted(f, r.path) ? mask(f, r.path) : 0;
}

/* A relative name says nothing about its directory: the granted roots are tried. */
static int try_name(struct finder *f, const char *name)
{
	char path[2 * PATH_TEXT];
	int rc = 0;

	if (name[0] == '/')
		return try_path(f, name);
	if (f->src->given) {
		(void)snprintf(path, sizeof(path), "%s/%s", f->src->path, name);
		rc = try_path(f, path);
	}
	for (size_t i = 0; i < f->v->grant_count && rc == 0; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", f->v->grants[i].path, name);
		rc = try_path(f, path);
	}
	return rc;
}

static int try_names(struct finder *f)
{
	char line[PATH_TEXT];
	int rc = 0;

	FILE *in = fopen("/proc/net/unix", "re");
	if (!in)
		return 0;
	while (rc == 0 && fgets(line, sizeof(line), in)) {
		/* Num RefCount Protocol Flags Type St Inode Path (proc_net(5)); @ is abstract. */
		int at = 0;
		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%*s %*s %*s %*s %*s %*s %*s %n", &at) == EOF || !at ||
		    !line[at] || line[at] == '@')
			continue;
		rc = try_name(f, line + at);
	}
	(void)fclose(in);
	return rc;
}

static void take_answer(struct finder *f, const struct nlmsghdr *h)
{
	const struct unix_diag_msg *msg = NLMSG_DATA(h);
	int left = (int)h->nlmsg_len - (int)NLMSG_LENGTH(sizeof(*msg));

	for (const struct rtattr *a = (const struct rtattr *)(msg + 1); RTA_OK(a, left);
	     a = RTA_NEXT(a, left)) {
		struct unix_diag_vfs vfs;
		if (a->rta_type != UNIX_DIAG_VFS || RTA_PAYLOAD(a) < sizeof(vfs))
			continue;
		memcpy(&vfs, RTA_DATA(a), sizeof(vfs));
		/* The kernel's own form of a device number: 12 bits of major, 20 of minor. */
		dev_t dev = makedev(vfs.udiag_vfs_dev >> 20, vfs.udiag_vfs_dev & 0xfffff);
		if (!on_granted_device(f, dev))
			continue;
		if (f->bound_count == MAX_BOUND)
			f->walk_all = true;
		else
			f->bound[f->bound_count++] = (struct place){dev, vfs.udiag_vfs_ino};
	}
}

/* Which sockets of this network namespace lie on granted devices. False: it does not tell. */
static bool ask_kernel(struct finder *f)
{
	struct {
		struct nlmsghdr head;
		struct unix_diag_req req;
	} ask = {
		.head = {.nlmsg_len = sizeof(ask),
			 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.req = {.sdiag_family = AF_UNIX, .udiag_states = ~0u, .udiag_show = UDIAG_SHOW_VFS},
	};
	static _Alignas(struct nlmsghdr) char answer[32768];

	AUTO_FD int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (fd < 0 || send(fd, &ask, sizeof(ask), 0) < 0)
		return false;
	for (;;) {
		ssize_t n = RETRY_EINTR(recv(fd, answer, sizeof(answer), 0));
		if (n <= 0)
			return false;
		unsigned int left = (unsigned int)n;
		for (const struct nlmsghdr *h = (const struct nlmsghdr *)answer; NLMSG_OK(h, left);
		     h = NLMSG_NEXT(h, left)) {
			if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
				return h->nlmsg_type == NLMSG_DONE;
			if (h->nlmsg_type == SOCK_DIAG_BY_FAMILY)
				take_answer(f, h);
		}
	}
}

/* Below `dir` on its own device; masks every socket. Takes the descriptor. */
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
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0 ||
		    len + n + 2 > PATH_TEXT || (d->d_type != DT_DIR && d->d_type != DT_SOCK))
			continue;
		path[len] = '/';
		memcpy(path + len + 1, d->d_name, n + 1);
		if (d->d_type == DT_SOCK)
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
	if (!src->given && !v->grant_count)
		return 0;
	AUTO_FREE struct finder *f = calloc(1, sizeof(*f));
	if (!f)
		return err_set(e, ERR_INTERNAL, "out of memory");
	f->v = v;
	f->src = src;
	f->e = e;
	if (ask_kernel(f) && !f->bound_count && !f->walk_all)
		return 0;
	if (try_names(f) < 0)
		return -1;
	if (!f->bound_count && !f->walk_all)
		return 0;
	if (src->given && walk_tree(f, src->path) < 0)
		return -1;
	for (size_t i = 0; i < v->grant_count; i++)
		if (walk_tree(f, v->grants[i].path) < 0)
			return -1;
	return 0;
}

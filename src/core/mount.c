/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The new root, assembled by descriptor: every host path becomes a detached
 * copy of its mount tree first, is compared with the file that was meant, gets
 * its attributes while nobody can see it, and is then attached below a
 * descriptor of the new root without following a link.
 *
 * Why a hostile plan or a hostile tree cannot abuse it: targets are resolved
 * inside the new root with RESOLVE_NO_SYMLINKS, directories and files are only
 * ever created on our own tmpfs (checked by device), and all of this happens in
 * a mount namespace of our own that nothing propagates out of.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/core.h"
#include "core/sys.h"

#define RESOLVE_INSIDE (RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)
#define ATTR_PLAIN (ATTR_NOSUID | ATTR_NODEV)

/* A new file system, not attached yet. Options: key, value, …, NULL. */
int mount_new_fs(const char *fs, const char *const *options, unsigned int attrs)
{
	int ctx = sys_fsopen(fs, FS_OPEN_CLOEXEC);
	if (ctx < 0)
		return -1;
	int fd = -1;
	bool good = true;
	for (; good && *options; options += 2)
		good = sys_fsconfig(ctx, FS_CONFIG_STRING, options[0], options[1]) == 0;
	if (good && sys_fsconfig(ctx, FS_CONFIG_CREATE, NULL, NULL) == 0)
		fd = sys_fsmount(ctx, FS_MOUNT_CLOEXEC, attrs);
	int saved = errno;
	(void)close(ctx);
	errno = saved;
	return fd;
}

static bool is_own(const struct core *c, int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (st.st_dev == c->own_dev[0] || st.st_dev == c->own_dev[1]);
}

/* Opens the directory `len` bytes of path long, making what is missing on our own tmpfs. */
static int open_dir(const struct core *c, const char *path, size_t len)
{
	char part[MAX_PLAN_PATH];
	int fd = -1;

	memcpy(part, path, len);
	part[len] = '\0';
	fd = sys_openat2(c->root_fd, len ? part : "/", O_PATH | O_DIRECTORY | O_CLOEXEC,
			 RESOLVE_INSIDE);
	if (fd >= 0 || errno != ENOENT)
		return fd;

	size_t up = len;
	while (up && path[up - 1] != '/')
		up--;
	int parent = open_dir(c, path, up ? up - 1 : 0);
	if (parent < 0)
		return -1;
	if (!is_own(c, parent))
		errno = EROFS;
	else if (mkdirat(parent, part + up, 0755) == 0 || errno == EEXIST)
		fd = openat(parent, part + up, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int saved = errno;
	(void)close(parent);
	errno = saved;
	return fd;
}

/* Splits an absolute path; returns the open parent, *ret_name is the last part. */
static int open_parent(const struct core *c, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');

	*ret_name = slash + 1;
	int fd = **ret_name ? open_dir(c, path, (size_t)(slash - path)) : -1;
	if (fd < 0)
		core_die(STAGE_TARGET, **ret_name ? errno : EINVAL, path);
	return fd;
}

/* What a mount needs below it: a directory or an empty file of the same kind. */
static void make_target(const struct core *c, int parent, const char *name, bool is_dir,
			const char *path)
{
	struct stat st;

	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (S_ISLNK(st.st_mode) || S_ISDIR(st.st_mode) != is_dir)
			core_die(STAGE_TARGET, S_ISLNK(st.st_mode) ? ELOOP : ENOTDIR, path);
		return;
	}
	if (errno != ENOENT || !is_own(c, parent))
		core_die(STAGE_TARGET, errno == ENOENT ? EROFS : errno, path);
	if (is_dir) {
		if (mkdirat(parent, name, 0755) < 0)
			core_die(STAGE_TARGET, errno, path);
		return;
	}
	int fd = openat(parent, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0444);
	if (fd < 0)
		core_die(STAGE_TARGET, errno, path);
	(void)close(fd);
}

/* Attaches a detached tree at `dst` of the new root and closes it. */
void mount_attach(const struct core *c, int tree, const char *dst, bool is_dir)
{
	const char *name = NULL;

	int parent = open_parent(c, dst, &name);
	make_target(c, parent, name, is_dir, dst);
	if (sys_move_mount(tree, "", parent, name, MOVE_FROM_EMPTY) < 0)
		core_die(STAGE_TARGET, errno, dst);
	(void)close(parent);
	(void)close(tree);
}

static void set_attrs(int tree, const struct plan_mount *m, int idmap_fd)
{
	struct attr a = {.set = ATTR_PLAIN, .propagation = MS_PRIVATE};

	if (!(m->flags & MOUNT_WRITE))
		a.set |= ATTR_RDONLY;
	if (m->flags & MOUNT_NOEXEC)
		a.set |= ATTR_NOEXEC;
	if (sys_mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &a) < 0)
		core_die(STAGE_BIND, errno, m->src);
	if (!(m->flags & MOUNT_IDMAP) || idmap_fd < 0)
		return;
	/*
	 * Only the mount of the path itself: what is mounted below it may be on a
	 * file system without id-mapping and then stays what it is, a stranger's.
	 */
	struct attr map = {.set = ATTR_IDMAP, .userns_fd = (uint64_t)idmap_fd};
	if (sys_mount_setattr(tree, "", AT_EMPTY_PATH, &map) < 0)
		core_die(STAGE_IDMAP, errno, m->src);
}

/* A detached copy of the host path, attributes set. -1: optional and not there. */
static int open_mount(const struct plan_mount *m, int idmap_fd)
{
	struct stat st;

	int fd = sys_open_tree(AT_FDCWD, m->src,
			       TREE_CLONE | TREE_CLOEXEC | AT_RECURSIVE | AT_SYMLINK_NOFOLLOW);
	if (fd < 0) {
		if (m->flags & MOUNT_OPTIONAL)
			return -1;
		core_die(STAGE_BIND, errno, m->src);
	}
	if (fstat(fd, &st) < 0)
		core_die(STAGE_BIND, errno, m->src);
	if ((m->flags & MOUNT_IDENT) && (st.st_dev != m->dev || st.st_ino != m->ino))
		core_die(STAGE_IDENT, 0, m->src);
	if (S_ISLNK(st.st_mode))
		core_die(STAGE_BIND, ELOOP, m->src);
	set_attrs(fd, m, idmap_fd);
	return fd;
}

/*
 * As root the launcher opens the trees in the host's mount namespace, where it
 * can reach what its user can and may id-map; init, a stranger to the host's
 * files by then, only attaches them. One map serves the mounts of one owner.
 */
void mount_open_trees(struct core *c)
{
	const struct plan_mount *mapped = NULL;
	int idmap_fd = -1;

	for (size_t i = 0; i < c->p->mount_count; i++) {
		const struct plan_mount *m = &c->p->mounts[i];
		c->trees[i] = -1;
		if (m->kind != MOUNT_BIND)
			continue;
		if ((m->flags & MOUNT_IDMAP) && !(mapped && mapped->owner_uid == m->owner_uid &&
						  mapped->owner_gid == m->owner_gid)) {
			if (idmap_fd >= 0)
				(void)close(idmap_fd);
			idmap_fd = ns_make_idmap(c, m->owner_uid, m->owner_gid);
			mapped = m;
		}
		c->trees[i] = open_mount(m, idmap_fd);
	}
	if (idmap_fd >= 0)
		(void)close(idmap_fd);
}

static void put_bind(struct core *c, size_t i)
{
	const struct plan_mount *m = &c->p->mounts[i];
	struct stat st;

	int tree = c->trees ? c->trees[i] : open_mount(m, -1);
	if (tree < 0)
		return;
	if (fstat(tree, &st) < 0)
		core_die(STAGE_BIND, errno, m->src);
	mount_attach(c, tree, m->dst, S_ISDIR(st.st_mode));
}

static void put_symlink(const struct core *c, const struct plan_mount *m)
{
	const char *name = NULL;

	int parent = open_parent(c, m->dst, &name);
	if (!is_own(c, parent) || (symlinkat(m->src, parent, name) < 0 && errno != EEXIST))
		core_die(STAGE_TARGET, errno, m->dst);
	(void)close(parent);
}

static void put_file(const struct core *c, const struct plan_mount *m)
{
	const char *name = NULL;

	int parent = open_parent(c, m->dst, &name);
	if (!is_own(c, parent))
		core_die(STAGE_TARGET, EROFS, m->dst);
	int fd = openat(parent, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, m->src, m->src_len) != (ssize_t)m->src_len || close(fd) < 0)
		core_die(STAGE_TARGET, errno, m->dst);
	(void)close(parent);
}

void mount_dir(const struct core *c, const char *dst, mode_t mode)
{
	int fd = open_dir(c, dst, strlen(dst));
	if (fd < 0)
		core_die(STAGE_TARGET, errno, dst);
	(void)close(fd);
	/* By name in our own tmpfs, where nobody else is yet. */
	if (fchmodat(c->root_fd, dst + 1, mode, 0) < 0)
		core_die(STAGE_TARGET, errno, dst);
}

/* Binds a path of the new root at another place of it. */
void mount_bind_inside(const struct core *c, const char *src, const char *dst, uint64_t attrs)
{
	struct attr a = {.set = attrs};
	struct stat st;

	int tree =
		sys_open_tree(c->root_fd, src + 1, TREE_CLONE | TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	if (tree < 0 || fstat(tree, &st) < 0)
		core_die(STAGE_MASK, errno, src);
	if (attrs && sys_mount_setattr(tree, "", AT_EMPTY_PATH, &a) < 0)
		core_die(STAGE_MASK, errno, src);
	mount_attach(c, tree, dst, S_ISDIR(st.st_mode));
}

/* Covers a path with an empty thing of its kind, mode 0, read-only. */
void mount_mask(const struct core *c, const char *dst, bool optional)
{
	struct stat st;

	int fd = sys_openat2(c->root_fd, dst, O_PATH | O_NOFOLLOW | O_CLOEXEC, RESOLVE_INSIDE);
	if (fd < 0 && optional)
		return;
	if (fd < 0 || fstat(fd, &st) < 0)
		core_die(STAGE_MASK, errno, dst);
	(void)close(fd);
	mount_bind_inside(c, S_ISDIR(st.st_mode) ? "/.mask-dir" : "/.mask-file", dst,
			  ATTR_RDONLY | ATTR_PLAIN | ATTR_NOEXEC);
}

static void build_root(struct core *c)
{
	static const char *const options[] = {"mode",      "0755",  "size", "8m",
					      "nr_inodes", "16384", NULL};
	struct attr private = {.propagation = MS_PRIVATE};
	struct stat st;

	if (sys_mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &private) < 0)
		core_die(STAGE_ROOT, errno, "make mounts private");
	c->root_fd = mount_new_fs("tmpfs", options, ATTR_PLAIN);
	/* On top of the old root, which needs no directory to exist there. */
	if (c->root_fd < 0 || sys_move_mount(c->root_fd, "", AT_FDCWD, "/", MOVE_FROM_EMPTY) < 0)
		core_die(STAGE_ROOT, errno, "new root");
	if (fstat(c->root_fd, &st) < 0)
		core_die(STAGE_ROOT, errno, "new root");
	c->own_dev[0] = c->own_dev[1] = st.st_dev;
	if (mkdirat(c->root_fd, ".mask-dir", 0) < 0 ||
	    mknodat(c->root_fd, ".mask-file", S_IFREG, 0) < 0)
		core_die(STAGE_ROOT, errno, "masks");
}

static void build_sand(struct core *c)
{
	static const char *const dirs[] = {"/sand/home", "/sand/tmp", "/sand/cache", "/sand/logs",
					   "/sand/workspace"};
	char size[32];
	char inodes[32];
	const char *options[] = {"mode", "0700", "size", size, "nr_inodes", inodes, NULL};
	struct stat st;

	/* tmpfs: 0 means no limit for both (tmpfs(5)). */
	(void)snprintf(size, sizeof(size), "%llu",
		       c->p->n.disk_bytes == UINT64_MAX ? 0ULL
							: (unsigned long long)c->p->n.disk_bytes);
	(void)snprintf(inodes, sizeof(inodes), "%llu",
		       c->p->n.inodes == UINT64_MAX ? 0ULL : (unsigned long long)c->p->n.inodes);
	int fd = mount_new_fs("tmpfs", options, ATTR_PLAIN);
	if (fd < 0 || fstat(fd, &st) < 0)
		core_die(STAGE_SAND, errno, "/sand");
	c->own_dev[1] = st.st_dev;
	c->sand_fd = fcntl(fd, F_DUPFD_CLOEXEC, CORE_FD_END);
	mount_attach(c, fd, "/sand", true);
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		mount_dir(c, dirs[i], 0700);
	mount_bind_inside(c, "/sand/logs", "/sand/logs", ATTR_RDONLY | ATTR_PLAIN);
	mount_bind_inside(c, "/sand/tmp", "/tmp", 0);
	mount_bind_inside(c, "/sand/tmp", "/var/tmp", 0);
}

void mount_build(struct core *c)
{
	build_root(c);
	build_sand(c);
	devices_build_proc(c);
	devices_build(c);
	for (size_t i = 0; i < c->p->mount_count; i++) {
		const struct plan_mount *m = &c->p->mounts[i];
		switch ((enum plan_mount_kind)m->kind) {
		case MOUNT_DIR:
			mount_dir(c, m->dst, 0755);
			break;
		case MOUNT_SYMLINK:
			put_symlink(c, m);
			break;
		case MOUNT_FILE:
			put_file(c, m);
			break;
		case MOUNT_BIND:
			put_bind(c, i);
			break;
		case MOUNT_MASK:
			mount_mask(c, m->dst, m->flags & MOUNT_OPTIONAL);
			break;
		case MOUNT_KINDS:
			break;
		}
	}
}

/* Steps into the new root, lets go of the old one and makes the new one read-only. */
void mount_pivot(struct core *c)
{
	struct attr ro = {.set = ATTR_RDONLY};

	(void)unlinkat(c->root_fd, ".mask-dir",
		       AT_REMOVEDIR); /* the mounts keep what they cover with */
	(void)unlinkat(c->root_fd, ".mask-file", 0);
	if (fchdir(c->root_fd) < 0 || sys_pivot_root(".", ".") < 0)
		core_die(STAGE_PIVOT, errno, "pivot_root");
	if (umount2(".", MNT_DETACH) < 0)
		core_die(STAGE_PIVOT, errno, "detach the old root");
	if (sys_mount_setattr(c->root_fd, "", AT_EMPTY_PATH, &ro) < 0)
		core_die(STAGE_PIVOT, errno, "make the root read-only");
	(void)close(c->root_fd);
	c->root_fd = -1;
	if (chdir("/") < 0)
		core_die(STAGE_PIVOT, errno, "/");
}

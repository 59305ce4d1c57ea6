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
#include "core/tree.h"

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

/* The directory used last stays open: most targets come in runs. */
static void forget_dir(struct core *c)
{
	if (c->dir_fd >= 0)
		(void)close(c->dir_fd);
	c->dir_fd = -1;
}

static bool is_own(const struct core *c, int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (st.st_dev == c->own_dev[0] || st.st_dev == c->own_dev[1] ||
				       st.st_dev == c->own_dev[2]);
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

/* Whether an error says that a host's directory is gone, or closed to all inside. */
static bool is_gone(int sys)
{
	return sys == ENOENT || sys == ENOTDIR || sys == ELOOP || sys == EROFS || sys == EACCES;
}

/*
 * Splits an absolute path; the parent is open as c->dir_fd, the last part is
 * returned. NULL: it may be missing (`optional`) and is.
 */
static const char *try_parent(struct core *c, const char *path, bool optional)
{
	const char *slash = strrchr(path, '/');
	size_t len = (size_t)(slash - path);

	if (!slash[1])
		core_die(STAGE_TARGET, EINVAL, path);
	if (c->dir_fd >= 0 && c->dir_path && c->dir_len == len &&
	    memcmp(c->dir_path, path, len) == 0)
		return slash + 1;
	forget_dir(c);
	c->dir_fd = open_dir(c, path, len);
	if (c->dir_fd < 0 && optional && is_gone(errno))
		return NULL;
	if (c->dir_fd < 0)
		core_die(STAGE_TARGET, errno, path);
	c->dir_own = is_own(c, c->dir_fd);
	c->dir_path = path; /* of the plan or a literal: both outlive the build */
	c->dir_len = len;
	return slash + 1;
}

static const char *enter_parent(struct core *c, const char *path)
{
	return try_parent(c, path, false);
}

/* What a mount needs below it: a directory or an empty file of the same kind. */
static void make_target(const struct core *c, const char *name, bool is_dir, const char *path)
{
	struct stat st;

	if (c->dir_own) {
		int rc = is_dir ? mkdirat(c->dir_fd, name, 0755)
				: mknodat(c->dir_fd, name, S_IFREG | 0444, 0);
		if (rc == 0)
			return;
		if (errno != EEXIST)
			core_die(STAGE_TARGET, errno, path);
	}
	if (fstatat(c->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		core_die(STAGE_TARGET, errno == ENOENT ? EROFS : errno, path);
	if (S_ISLNK(st.st_mode) || S_ISDIR(st.st_mode) != is_dir)
		core_die(STAGE_TARGET, S_ISLNK(st.st_mode) ? ELOOP : ENOTDIR, path);
}

/* Attaches a detached tree at `dst` of the new root and closes it. */
void mount_attach(struct core *c, int tree, const char *dst, bool is_dir)
{
	const char *name = enter_parent(c, dst);

	make_target(c, name, is_dir, dst);
	if (sys_move_mount(tree, "", c->dir_fd, name, MOVE_FROM_EMPTY) < 0)
		core_die(STAGE_TARGET, errno, dst);
	(void)close(tree);
}

/*
 * Binds a path of the system, or of the new root itself, with one call and no
 * descriptor: neither can be changed by anybody but root. The target was made on
 * our own tmpfs, or lies in our own /proc; it is named from the new root, where
 * we stand while it is built. False: nothing is there.
 */
bool mount_bind_plain(const char *src, const char *dst)
{
	if (mount(src, dst + 1, NULL, MS_BIND | MS_REC, NULL) == 0)
		return true;
	if (errno != ENOENT && errno != ENOTDIR)
		core_die(STAGE_BIND, errno, src);
	return false;
}

/* Not there, and may be so; else the bind itself says what is wrong. */
static bool is_missing(const struct plan_mount *m)
{
	struct stat st;

	return (m->flags & MOUNT_OPTIONAL) && lstat(m->src, &st) < 0;
}

static void put_system(struct core *c, const struct plan_mount *m)
{
	if (is_missing(m))
		return;
	make_target(c, enter_parent(c, m->dst), m->flags & MOUNT_DIRECTORY, m->dst);
	if (!mount_bind_plain(m->src, m->dst))
		core_die(STAGE_BIND, errno, m->src);
}

static void put_bind(struct core *c, const struct plan_mount *m, size_t i)
{
	struct attr ro = {.set = ATTR_RDONLY};

	if (mount_is_plain(m)) {
		put_system(c, m);
		return;
	}
	int tree = c->trees[i]; /* opened by root, or the session's */

	if (tree < 0 && (m->flags & MOUNT_GIVEN))
		core_die(STAGE_BIND, ENOENT, m->src);
	if (tree < 0 && !(c->p->n.flags & PLAN_ROOT)) {
		struct report failure;
		tree = tree_open(m, -1, &failure);
		if (tree == TREE_FAILED)
			core_die(failure.stage, failure.sys, failure.text);
	}
	if (tree < 0)
		return;
	/* Its maker has not been told what this call may do with it. */
	if ((m->flags & MOUNT_GIVEN) && !(m->flags & MOUNT_WRITE) &&
	    sys_mount_setattr(tree, "", AT_EMPTY_PATH, &ro) < 0)
		core_die(STAGE_BIND, errno, m->dst);
	mount_attach(c, tree, m->dst, m->flags & MOUNT_DIRECTORY);
}

static void put_symlink(struct core *c, const struct plan_mount *m)
{
	const char *name = enter_parent(c, m->dst);

	if (!c->dir_own)
		core_die(STAGE_TARGET, EROFS, m->dst);
	if (symlinkat(m->src, c->dir_fd, name) < 0 && errno != EEXIST)
		core_die(STAGE_TARGET, errno, m->dst);
}

static void put_file(struct core *c, const struct plan_mount *m)
{
	const char *name = enter_parent(c, m->dst);

	if (!c->dir_own)
		core_die(STAGE_TARGET, EROFS, m->dst);
	int fd =
		openat(c->dir_fd, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, m->src, m->src_len) != (ssize_t)m->src_len || close(fd) < 0)
		core_die(STAGE_TARGET, errno, m->dst);
}

static void put_dir(struct core *c, const struct plan_mount *m)
{
	const char *name = enter_parent(c, m->dst);

	if (!c->dir_own)
		core_die(STAGE_TARGET, EROFS, m->dst);
	if (mkdirat(c->dir_fd, name, 0755) < 0 && errno != EEXIST)
		core_die(STAGE_TARGET, errno, m->dst);
}

/* Binds a path of the new root at another place of it. */
void mount_bind_inside(struct core *c, const char *src, const char *dst, bool is_dir,
		       uint64_t attrs)
{
	struct attr a = {.set = attrs};

	int tree =
		sys_open_tree(c->root_fd, src + 1, TREE_CLONE | TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	if (tree < 0)
		core_die(STAGE_MASK, errno, src);
	if (attrs && sys_mount_setattr(tree, "", AT_EMPTY_PATH, &a) < 0)
		core_die(STAGE_MASK, errno, src);
	mount_attach(c, tree, dst, is_dir);
}

static const char *cover_for(mode_t mode, uint32_t flags)
{
	return S_ISDIR(mode) ? ".mask-dir" : flags & MOUNT_EMPTY ? ".mask-empty" : ".mask-file";
}

/*
 * Covers a path with an empty thing of its kind, of mode 0 or (MOUNT_EMPTY) one
 * that reads as empty; read-only, if `attrs` or the caller say so. A link is
 * covered itself, never followed. Returns errno; what is not there, or where
 * nobody inside can go, needs none and is no error if it is optional.
 */
int mount_mask(struct core *c, const char *dst, uint32_t flags, uint64_t attrs)
{
	struct attr a = {.set = attrs};
	struct stat st;

	const char *name = try_parent(c, dst, flags & MOUNT_OPTIONAL);
	if (!name || fstatat(c->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return flags & MOUNT_OPTIONAL ? 0 : errno;
	int tree = sys_open_tree(c->root_fd, cover_for(st.st_mode, flags),
				 TREE_CLONE | TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	if (tree < 0)
		return errno;
	int sys = 0;
	if ((attrs && sys_mount_setattr(tree, "", AT_EMPTY_PATH, &a) < 0) ||
	    sys_move_mount(tree, "", c->dir_fd, name, MOVE_FROM_EMPTY) < 0)
		sys = errno;
	(void)close(tree);
	return sys;
}

/* What masks cover with. The mounts keep it when its names are gone. */
static int make_covers(int root)
{
	return mkdirat(root, ".mask-dir", 0) < 0 || mknodat(root, ".mask-file", S_IFREG, 0) < 0 ||
			       mknodat(root, ".mask-empty", S_IFREG | 0644, 0) < 0
		       ? errno
		       : 0;
}

static void remove_covers(int root)
{
	(void)unlinkat(root, ".mask-dir", AT_REMOVEDIR);
	(void)unlinkat(root, ".mask-file", 0);
	(void)unlinkat(root, ".mask-empty", 0);
}

/*
 * While the sandbox runs. Its root is read-only for everybody in it; a copy of
 * that mount, which nobody else has, need not be. EALREADY: it is covered;
 * EEXIST: init is still at it, ask again.
 */
int mount_mask_again(struct core *c, const struct plan_mount *m)
{
	struct attr open = {.clear = ATTR_RDONLY};

	const char *name = try_parent(c, m->dst, true);
	if (!name)
		return ENOENT;
	if (sys_is_mount_point(c->dir_fd, name))
		return EALREADY;
	if (faccessat(c->root_fd, "sand/logs", F_OK, 0) < 0)
		return EEXIST;
	int copy = sys_open_tree(c->root_fd, "", TREE_CLONE | TREE_CLOEXEC | AT_EMPTY_PATH);
	if (copy < 0 || sys_mount_setattr(copy, "", AT_EMPTY_PATH, &open) < 0)
		return errno;
	int sys = make_covers(copy);
	if (!sys) {
		sys = mount_mask(c, m->dst, m->flags & ~(uint32_t)MOUNT_OPTIONAL,
				 ATTR_RDONLY | ATTR_PLAIN);
		remove_covers(copy);
	}
	(void)close(copy);
	return sys;
}

/* A hidden directory in which the next mounts show something: on a tmpfs that takes their targets. */
static void put_way(struct core *c, const struct plan_mount *m)
{
	static const char *const options[] = {"mode", "0111", "size", "1m", NULL};
	struct stat st;

	int fd = mount_new_fs("tmpfs", options, ATTR_PLAIN);
	if (fd < 0 || fstat(fd, &st) < 0)
		core_die(STAGE_MASK, errno, m->dst);
	mount_attach(c, fd, m->dst, true);
	c->own_dev[2] = st.st_dev;
}

/*
 * Binds what lies at a path of the host's, seen through the new root, over
 * itself, with what is mounted below: a mount point can be neither renamed nor
 * removed, and without MOUNT_WRITE nothing in it changes. A link is bound as a
 * link. Never makes anything; what is gone by now is skipped. Returns errno.
 */
int mount_pin(struct core *c, const struct plan_mount *m)
{
	struct attr ro = {.set = ATTR_RDONLY};

	const char *name = try_parent(c, m->dst, true);
	if (!name)
		return ENOENT;
	int tree = sys_open_tree(c->dir_fd, name,
				 TREE_CLONE | TREE_CLOEXEC | AT_RECURSIVE | AT_SYMLINK_NOFOLLOW);
	if (tree < 0)
		return errno;
	int sys = 0;
	if ((!(m->flags & MOUNT_WRITE) &&
	     sys_mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &ro) < 0) ||
	    sys_move_mount(tree, "", c->dir_fd, name, MOVE_FROM_EMPTY) < 0)
		sys = errno;
	(void)close(tree);
	return sys;
}

/* Replaced on the host just now: what came in its place is pinned or covered instead. */
static void put_over(struct core *c, const struct plan_mount *m)
{
	int sys = EINVAL;

	for (int tries = 0; tries < 6 && (sys == ENOTDIR || sys == EINVAL); tries++)
		sys = m->kind == MOUNT_PIN
			      ? mount_pin(c, m)
			      : mount_mask(c, m->dst, m->flags, ATTR_RDONLY | ATTR_PLAIN);
	if (sys && !is_gone(sys))
		core_die(STAGE_MASK, sys, m->dst);
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
	if (fstat(c->root_fd, &st) < 0 || fchdir(c->root_fd) < 0)
		core_die(STAGE_ROOT, errno, "new root");
	c->own_dev[0] = c->own_dev[1] = c->own_dev[2] = st.st_dev;
	if (make_covers(c->root_fd))
		core_die(STAGE_ROOT, errno, "masks");
}

static void begin_sand(struct core *c)
{
	static const char *const dirs[] = {"home", "cache", "logs", "workspace"};
	char size[32];
	char inodes[32];
	const char *options[] = {"mode", "0700", "size", size, "nr_inodes", inodes, NULL};
	struct stat st;

	if (mkdirat(c->root_fd, "sand", 0755) < 0 || mkdirat(c->root_fd, "tmp", 0755) < 0 ||
	    mkdirat(c->root_fd, "var", 0755) < 0 || mkdirat(c->root_fd, "var/tmp", 0755) < 0)
		core_die(STAGE_SAND, errno, "/sand");
	if (c->p->n.flags & PLAN_SESSION)
		return; /* a directory of the host's, which comes as a mount */
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
	c->sand_fd = fd;
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		if (mkdirat(fd, dirs[i], 0700) < 0)
			core_die(STAGE_SAND, errno, dirs[i]);
	if (mkdirat(fd, "tmp", 0777) < 0 || fchmodat(fd, "tmp", 01777, 0) < 0)
		core_die(STAGE_SAND, errno, "tmp");
}

static bool is_sand(const struct plan_mount *m)
{
	return m->kind == MOUNT_BIND && strcmp(m->dst, "/sand") == 0;
}

/* A session's: before what the plan has below it. */
static void attach_given_sand(struct core *c)
{
	for (size_t i = 0; i < c->p->mount_count; i++) {
		if (!is_sand(&c->p->mounts[i]))
			continue;
		put_bind(c, &c->p->mounts[i], i);
		forget_dir(c);
		return;
	}
	core_die(STAGE_SAND, ENOENT, "/sand");
}

/*
 * A directory of a session's /sand at another place. An earlier command may have put a
 * link there, which would lead out of the root that is not stepped into yet: so never
 * by its name alone.
 */
static void bind_given(struct core *c, const char *src, const char *dst, const struct attr *attrs)
{
	int fd = sys_openat2(c->root_fd, src, O_PATH | O_DIRECTORY | O_CLOEXEC, RESOLVE_INSIDE);
	int tree = fd < 0 ? -1 : sys_open_tree(fd, "", TREE_CLONE | TREE_CLOEXEC | AT_EMPTY_PATH);

	if (tree < 0 || (attrs && sys_mount_setattr(tree, "", AT_EMPTY_PATH, attrs) < 0))
		core_die(STAGE_SAND, errno, dst);
	(void)close(fd);
	mount_attach(c, tree, dst, true);
	forget_dir(c);
}

static void attach_sand(struct core *c)
{
	struct attr ro = {.set = ATTR_RDONLY | ATTR_PLAIN};

	if (c->p->n.flags & PLAN_SESSION)
		attach_given_sand(c);
	else if (sys_move_mount(c->sand_fd, "", c->root_fd, "sand", MOVE_FROM_EMPTY) < 0)
		core_die(STAGE_SAND, errno, "/sand");
	if (c->p->n.flags & PLAN_SESSION) {
		bind_given(c, "sand/logs", "/sand/logs", &ro);
		bind_given(c, "sand/tmp", "/tmp", NULL);
		bind_given(c, "sand/tmp", "/var/tmp", NULL);
		return;
	}
	if (!mount_bind_plain("sand/logs", "/sand/logs") ||
	    sys_mount_setattr(c->root_fd, "sand/logs", AT_SYMLINK_NOFOLLOW, &ro) < 0)
		core_die(STAGE_SAND, errno, "/sand/logs");
	if (!mount_bind_plain("sand/tmp", "/tmp") || !mount_bind_plain("sand/tmp", "/var/tmp"))
		core_die(STAGE_SAND, errno, "/tmp");
}

static void put(struct core *c, const struct plan_mount *m, size_t i)
{
	switch ((enum plan_mount_kind)m->kind) {
	case MOUNT_DIR:
		put_dir(c, m);
		break;
	case MOUNT_SYMLINK:
		put_symlink(c, m);
		break;
	case MOUNT_FILE:
		put_file(c, m);
		break;
	case MOUNT_BIND:
		put_bind(c, m, i);
		break;
	case MOUNT_MASK:
		if (m->flags & MOUNT_WAY)
			put_way(c, m);
		else
			put_over(c, m);
		break;
	case MOUNT_PIN:
		put_over(c, m);
		break;
	case MOUNT_KINDS:
		break;
	}
}

void mount_begin(struct core *c)
{
	build_root(c);
	devices_build_proc(c);
	begin_sand(c);
	devices_begin(c);
	forget_dir(c);
}

/*
 * Everything that only the system reads goes in first and becomes read-only,
 * nosuid, nodev by one recursive call; then what is writable or has device
 * nodes, each with attributes of its own.
 */
void mount_build(struct core *c)
{
	struct attr system = {.set = ATTR_RDONLY | ATTR_PLAIN, .propagation = MS_PRIVATE};
	struct attr open = {.clear = ATTR_RDONLY};
	size_t i = 0;

	for (; i < c->p->mount_count && (c->p->mounts[i].flags & MOUNT_SYSTEM); i++)
		put(c, &c->p->mounts[i], i);
	forget_dir(c);
	if (sys_mount_setattr(c->root_fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &system) < 0)
		core_die(STAGE_ROOT, errno, "make the system read-only");
	if (sys_mount_setattr(c->root_fd, "", AT_EMPTY_PATH, &open) < 0 ||
	    sys_mount_setattr(c->root_fd, "proc", AT_SYMLINK_NOFOLLOW, &open) < 0)
		core_die(STAGE_ROOT, errno, "open the root again");
	attach_sand(c);
	devices_build(c);
	for (; i < c->p->mount_count; i++) {
		/* It would miss the read-only call above. */
		if (c->p->mounts[i].flags & MOUNT_SYSTEM)
			core_die(STAGE_PLAN, 0,
				 "the system's part of the view does not come first");
		if (!is_sand(&c->p->mounts[i]))
			put(c, &c->p->mounts[i], i);
	}
	forget_dir(c);
}

/* The second part, on top of the first. */
void mount_build_more(struct core *c)
{
	struct attr ro = {.set = ATTR_RDONLY};

	for (size_t i = 0; i < c->more->mount_count; i++) {
		const struct plan_mount *m = &c->more->mounts[i];
		if (m->flags & MOUNT_SYSTEM)
			core_die(STAGE_PLAN, 0, "a part of the system in the second part");
		put(c, m, c->p->mount_count + i);
	}
	forget_dir(c);
	for (size_t i = 0; i < c->more->mount_count; i++) {
		const struct plan_mount *m = &c->more->mounts[i];
		/* It has all its targets now. */
		if ((m->flags & MOUNT_WAY) &&
		    sys_mount_setattr(c->root_fd, m->dst + 1, AT_SYMLINK_NOFOLLOW, &ro) < 0)
			core_die(STAGE_MASK, errno, m->dst);
	}
}

/* Steps into the new root, lets go of the old one and makes the new one read-only. */
void mount_pivot(struct core *c)
{
	struct attr ro = {.set = ATTR_RDONLY};

	remove_covers(c->root_fd);
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

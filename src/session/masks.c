/* SPDX-License-Identifier: Apache-2.0 */
#include "session/masks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/nameset.h"
#include "core/sys.h"
#include "policy/gitid.h"
#include "store/remove.h"

#define BENEATH (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

static bool is_below(const char *path)
{
	if (!*path || *path == '/')
		return false;
	for (const char *at = path; at; at = strchr(at, '/')) {
		at += *at == '/';
		size_t n = strcspn(at, "/");
		if (!n || (n == 1 && at[0] == '.') || (n == 2 && at[0] == '.' && at[1] == '.'))
			return false;
	}
	return true;
}

bool masks_check(const char *list, size_t n)
{
	if (n > MAX_MASKS_LIST || (n && list[n - 1]))
		return false;
	for (size_t at = 0; at < n; at += strlen(list + at) + 1)
		if ((list[at] != MASKS_EMPTY && list[at] != MASKS_HIDDEN) ||
		    strlen(list + at) > PATH_TEXT || !is_below(list + at + 1))
			return false;
	return true;
}

/* Whose it appears to be: as the overlay shows the source. */
static void take_owner(int fd, const struct stat *st, const struct session_record *rec)
{
	uid_t uid = st->st_uid == rec->owner_uid ? rec->uid : st->st_uid;
	gid_t gid = st->st_gid == rec->owner_gid ? rec->gid : st->st_gid;

	if (rec->root)
		(void)!fchown(fd, uid, gid);
}

/* A directory on the way, as it is in the source. -1 with errno. */
static int make_way(int in, int source, const char *path, const struct session_record *rec)
{
	struct stat st;

	AUTO_FD int from = sys_openat2(source, path, O_PATH | O_DIRECTORY | O_CLOEXEC, BENEATH);
	if (from < 0 || fstat(from, &st) < 0)
		return -1;
	if (mkdirat(in, path, 0700) < 0)
		return errno == EEXIST ? 0 : -1;
	AUTO_FD int fd = sys_openat2(in, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, BENEATH);
	if (fd < 0)
		return -1;
	take_owner(fd, &st, rec);
	return 0;
}

static int make_opaque(int in, const char *path, const struct session_record *rec)
{
	if (mkdirat(in, path, 0700) < 0)
		return errno == EEXIST ? 0 : -1;
	AUTO_FD int fd = sys_openat2(in, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, BENEATH);
	if (fd < 0 || fsetxattr(fd, rec->root ? "trusted.overlay.opaque" : "user.overlay.opaque",
				"y", 1, 0) < 0)
		return -1;
	if (rec->root)
		(void)!fchown(fd, rec->uid, rec->gid);
	return fchmod(fd, 0);
}

static int make_file(int in, const char *path, bool empty, const struct session_record *rec)
{
	AUTO_FD int fd = sys_openat2(in, path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, BENEATH);

	if (fd < 0)
		return errno == EEXIST ? 0 : -1;
	if (rec->root)
		(void)!fchown(fd, rec->uid, rec->gid);
	return fchmod(fd, empty ? 0644 : 0);
}

/*
 * Times and modes of the directories on the way to an entry, from the deepest up. When all
 * of them are made: one may be closed to its owner.
 */
static void finish_way(int in, int source, const char *entry)
{
	char path[PATH_TEXT + 1];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s", entry + 1);
	for (char *slash = strrchr(path, '/'); slash; slash = strrchr(path, '/')) {
		*slash = '\0';
		if (fstatat(source, path, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
			continue;
		(void)utimensat(in, path, (const struct timespec[]){st.st_atim, st.st_mtim},
				AT_SYMLINK_NOFOLLOW);
		(void)fchmodat(in, path, st.st_mode & 0777, 0);
	}
}

/* What is gone from the source by now needs no mask. */
static int make_one(int in, int source, const char *entry, const struct session_record *rec,
		    bool *ret_any)
{
	char path[PATH_TEXT + 1];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s", entry + 1);
	for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		int rc = make_way(in, source, path, rec);
		*slash = '/';
		if (rc < 0)
			return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -1;
	}
	if (fstatat(source, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
	*ret_any = true;
	return S_ISDIR(st.st_mode) ? make_opaque(in, path, rec)
				   : make_file(in, path, entry[0] == MASKS_EMPTY, rec);
}

int masks_write(int dir, const struct session_record *rec, const char *list, size_t n,
		bool *ret_any, struct err *e)
{
	*ret_any = false;
	remove_tree(dir, "masks.new");
	if (mkdirat(dir, "masks.new", 0755) < 0)
		return err_sys(e, "make masks.new");
	AUTO_FD int in = openat(dir, "masks.new", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_FD int source = open(rec->source, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (in < 0 || source < 0)
		return err_sys(e, "open the source for its masks");
	for (size_t at = 0; at < n; at += strlen(list + at) + 1)
		if (make_one(in, source, list + at, rec, ret_any) < 0)
			return err_sys(e, "mask %s", list + at + 1);
	for (size_t at = 0; at < n; at += strlen(list + at) + 1)
		finish_way(in, source, list + at);
	return 0;
}

/* At no moment is there none, where the file system can. */
int masks_swap(int dir, struct err *e)
{
	if (renameat2(dir, "masks.new", dir, "masks", RENAME_EXCHANGE) == 0)
		return 0;
	remove_tree(dir, "masks.old");
	if ((renameat(dir, "masks", dir, "masks.old") < 0 && errno != ENOENT) ||
	    renameat(dir, "masks.new", dir, "masks") < 0)
		return err_sys(e, "put masks in place");
	return 0;
}

void masks_clear(int dir)
{
	remove_tree(dir, "masks.old");
	remove_tree(dir, "masks.new"); /* where they were exchanged */
}

int masks_keep(int dir, const char *list, size_t n, struct err *e)
{
	static const char draft[] = SESSION_MASKED ".new";

	(void)unlinkat(dir, draft, 0);
	AUTO_FD int fd =
		openat(dir, draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || (n && write(fd, list, n) != (ssize_t)n) ||
	    renameat(dir, draft, dir, SESSION_MASKED) < 0)
		return err_sys(e, "keep the list of masks");
	return 0;
}

int masks_kept(int dir, struct buf *ret, struct err *e)
{
	char block[4096];

	AUTO_FD int fd = openat(dir, SESSION_MASKED, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "the list of masks");
	for (;;) {
		ssize_t n = RETRY_EINTR(read(fd, block, sizeof(block)));
		if (n < 0)
			return err_sys(e, "the list of masks");
		if (n == 0)
			break;
		(void)buf_add(ret, block, (size_t)n);
	}
	if (buf_check(ret, "the list of masks", ERR_INTERNAL, e) < 0)
		return -1;
	return masks_check(ret->p ? ret->p : "", ret->n)
		       ? 0
		       : err_set(e, ERR_INTERNAL, "the list of masks is damaged");
}

const char *masks_missing(const struct buf *kept, const char *list, size_t n)
{
	struct nameset there = {.n = 0};
	const char *found = NULL;
	bool good = true;

	for (size_t at = 0; at < kept->n && good; at += strlen(kept->p + at) + 1)
		good = nameset_put(&there, kept->p + at, 0);
	for (size_t at = 0; at < n && !found; at += strlen(list + at) + 1)
		if (!good || !nameset_get(&there, list + at, NULL))
			found = list + at + 1;
	nameset_release(&there);
	return found;
}

/* Where its name begins as the innermost work tree around it has it. */
static const char *in_work_tree(const struct session_record *rec, const char *path)
{
	AUTO_BUF git = BUF_INIT(2 * PATH_TEXT);
	struct stat st;

	for (size_t n = strlen(path); n > 0; n--) {
		buf_clear(&git);
		if (path[n] == '/' &&
		    buf_printf(&git, "%s/%.*s/.git", rec->source, (int)n, path) == 0 &&
		    lstat(buf_cstr(&git), &st) == 0)
			return path + n + 1;
	}
	return path;
}

void masks_tell_git(int dir, const struct session_record *rec, const char *list, size_t n)
{
	static const char *const ways[] = {"root/home/.config", "root/home/.config/git"};
	static const char file[] = "root/home/.config/git/ignore";
	AUTO_BUF text = BUF_INIT(2 * MAX_MASKS_LIST);
	struct stat st;

	for (size_t at = 0; at < n; at += strlen(list + at) + 1)
		gitid_put_ignored(in_work_tree(rec, list + at + 1), &text);
	for (size_t i = 0; i < ARRAY_LEN(ways) && text.n; i++) {
		AUTO_FD int up = sys_openat2(dir, i ? ways[0] : "root/home",
					     O_RDONLY | O_DIRECTORY | O_CLOEXEC, BENEATH);
		const char *name = strrchr(ways[i], '/') + 1;
		if (up >= 0 && mkdirat(up, name, 0755) == 0 && rec->root)
			(void)!fchownat(up, name, rec->uid, rec->gid, AT_SYMLINK_NOFOLLOW);
	}
	AUTO_FD int fd =
		sys_openat2(dir, file, O_RDWR | O_NONBLOCK | O_CLOEXEC | (text.n ? O_CREAT : 0),
			    BENEATH);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1)
		return; /* the command's own doing: git inside is its own, too */
	if (rec->root)
		(void)!fchown(fd, rec->uid, rec->gid);
	(void)fchmod(fd, 0644);
	if (ftruncate(fd, 0) == 0 && text.n)
		(void)!write(fd, text.p, text.n);
}

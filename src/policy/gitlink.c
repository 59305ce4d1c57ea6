/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every file is opened once, without following a link, and has to be a small
 * regular one. Directories are compared by identity.
 */
#include "policy/gitlink.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/term.h"
#include "policy/gitconfig.h"
#include "policy/gitjudge.h"

#define MAX_LINK_BYTES 8192u
#define MAX_CONFIG_BYTES 262144u

static size_t read_small(const char *dir, const char *name, char *ret, size_t cap)
{
	char path[PATH_TEXT + 32];
	struct stat st;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return 0;
	AUTO_FD int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	ssize_t n = RETRY_EINTR(read(fd, ret, cap));
	return n > 0 ? (size_t)n : 0;
}

/* A directory that a file of git's names, from `base`; no link that a sandbox may have made. */
static bool resolve_dir(const char *path, const char *base, const struct places *writable,
			struct resolved *ret)
{
	struct err ignored = {0};

	return resolve_path(path, base, writable, ret, &ignored) == 0 && S_ISDIR(ret->st.st_mode);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* `gitdir` of a worktree's directory names the source's own `.git`. */
static bool names_source(const struct source *src, const char *dir)
{
	char text[MAX_LINK_BYTES];
	char path[PATH_TEXT];
	char full[2 * PATH_TEXT];
	char own[PATH_TEXT + 8];
	struct stat there;
	struct stat here;
	size_t n = read_small(dir, "gitdir", text, sizeof(text));

	if (!n || !gitjudge_path(text, n, path))
		return false;
	(void)snprintf(full, sizeof(full), "%s%s%s", path[0] == '/' ? "" : dir,
		       path[0] == '/' ? "" : "/", path);
	(void)snprintf(own, sizeof(own), "%s/.git", src->path);
	return lstat(full, &there) == 0 && lstat(own, &here) == 0 && is_same(&there, &here);
}

/* core.worktree of a submodule's git directory names the source. */
static bool works_on_source(const struct source *src, const char *dir)
{
	static char text[MAX_CONFIG_BYTES];
	static const struct places nowhere;
	char path[PATH_TEXT] = "";
	struct resolved r;
	size_t n = read_small(dir, "config", text, sizeof(text));

	if (!n || !gitconfig_parse(text, n, gitconfig_take_worktree, path) || !path[0])
		return false;
	return resolve_dir(path, dir, &nowhere, &r) && is_same(&r.st, &src->st);
}

static bool is_owned(const struct stat *st, const struct source *src, const struct caller *who)
{
	return st->st_uid == who->uid || (who->root && st->st_uid == src->st.st_uid);
}

static const char *follow(const struct source *src, const struct caller *who,
			  const struct refused *refused, const char *named, struct gitlink *ret)
{
	struct places writable = {.n = 0};
	struct resolved dir;
	struct resolved common;
	struct err ignored = {0};
	char text[MAX_LINK_BYTES];
	char path[PATH_TEXT];

	(void)places_add(&writable, &src->st);
	if (!resolve_dir(named, src->path, &writable, &dir))
		return "is not there";
	if (path_is_below(src->path, dir.path))
		return NULL; /* it is in the view already */
	size_t n = read_small(dir.path, "commondir", text, sizeof(text));
	ret->worktree = n > 0;
	common = dir;
	if (n &&
	    (!gitjudge_path(text, n, path) || !resolve_dir(path, dir.path, &writable, &common) ||
	     !path_is_below(common.path, dir.path)))
		return "has a commondir that does not hold it";
	if (!is_owned(&dir.st, src, who) || !is_owned(&common.st, src, who))
		return "belongs to somebody else";
	if (ret->worktree ? !names_source(src, dir.path) : !works_on_source(src, dir.path))
		return "does not point back to this source";
	if (refused_check(refused, "git directory", &common, &ignored) < 0 ||
	    source_check_place(&common, "git directory", &ignored) < 0)
		return "is in a place that is never shown";
	ret->found = true;
	ret->st = common.st;
	memcpy(ret->common, common.path, sizeof(ret->common));
	return NULL;
}

void gitlink_find(const struct source *src, const struct caller *who, const struct refused *refused,
		  struct gitlink *ret)
{
	char text[MAX_LINK_BYTES];
	char named[PATH_TEXT];
	char shown[160];

	*ret = (struct gitlink){.found = false};
	size_t n = src->given ? read_small(src->path, ".git", text, sizeof(text)) : 0;
	if (!n || !gitjudge_gitfile(text, n, named))
		return;
	const char *why = follow(src, who, refused, named, ret);
	if (why)
		(void)snprintf(ret->why, sizeof(ret->why), "%s %s",
			       term_escape_cut(shown, sizeof(shown), named, strlen(named)), why);
}

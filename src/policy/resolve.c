/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Path resolution with identities. Reads the file system with lstat(2) and
 * readlink(2) only; core opens the result again and compares device and inode,
 * so a swap in between is seen.
 */
#include "policy/resolve.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/term.h"
#include "policy/look.h"

#define SHOWN 512

bool places_have(const struct places *p, const struct stat *st)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].dev == st->st_dev && p->v[i].ino == st->st_ino)
			return true;
	return false;
}

bool places_add(struct places *p, const struct stat *st)
{
	if (places_have(p, st))
		return true;
	if (p->n == MAX_PLACES)
		return false;
	p->v[p->n++] = (struct place){st->st_dev, st->st_ino};
	return true;
}

struct walk {
	char done[PATH_TEXT];     /* canonical so far, "" is the root */
	char rest[2 * PATH_TEXT]; /* what is left */
	size_t inside_at;         /* length of `done` where a writable place began, 0: outside */
	int links;
	struct places *collect; /* NULL: nobody wants the directories on the way */
	struct stat st;
};

static int fail(struct err *e, const char *named, const char *what)
{
	char shown[SHOWN];

	return err_set(e, ERR_CONFIG_INVALID, "path %s: %s",
		       term_escape_cut(shown, sizeof(shown), named, strlen(named)), what);
}

static void walk_up(struct walk *w)
{
	char *slash = strrchr(w->done, '/');

	if (slash)
		*slash = '\0';
	if (strlen(w->done) < w->inside_at)
		w->inside_at = 0;
}

/* The component at `done` is a link: its text goes before the rest. */
static int follow(struct walk *w, const char *named, size_t parent_len, struct err *e)
{
	char text[PATH_TEXT];
	char joined[2 * PATH_TEXT];
	char shown[SHOWN];

	if (w->inside_at && parent_len >= w->inside_at) {
		(void)err_set(e, ERR_POLICY_DENIED,
			      "path %s: %s is a link in a directory that a sandbox may write",
			      named,
			      term_escape_cut(shown, sizeof(shown), w->done, strlen(w->done)));
		return err_hint(e, "name the file it should be, or remove the link");
	}
	if (++w->links > MAX_LINKS)
		return fail(e, named, "too many links");
	ssize_t n = look_readlink(w->done, text, sizeof(text) - 1);
	if (n <= 0)
		return fail(e, named, strerror(errno));
	text[n] = '\0';
	if ((size_t)snprintf(joined, sizeof(joined), "%s/%s", text, w->rest) >= sizeof(w->rest))
		return fail(e, named, "too long");
	memcpy(w->rest, joined, strlen(joined) + 1);
	w->done[text[0] == '/' ? 0 : parent_len] = '\0';
	if (text[0] == '/')
		w->inside_at = 0;
	return 0;
}

static int step(struct walk *w, const char *name, const char *named, const struct places *writable,
		struct err *e)
{
	size_t parent_len = strlen(w->done);

	if (strcmp(name, "..") == 0) {
		walk_up(w);
		return 0;
	}
	if (parent_len + strlen(name) + 2 > sizeof(w->done))
		return fail(e, named, "too long");
	w->done[parent_len] = '/';
	memcpy(w->done + parent_len + 1, name, strlen(name) + 1);
	if (look_lstat(w->done, &w->st) < 0) {
		int sys = errno;
		(void)fail(e, named, strerror(sys));
		e->sys = sys;
		return -1;
	}
	if (S_ISLNK(w->st.st_mode))
		return follow(w, named, parent_len, e);
	if (w->collect)
		(void)places_add(w->collect, &w->st); /* full: enough homes are known */
	if (!w->inside_at && S_ISDIR(w->st.st_mode) && places_have(writable, &w->st))
		w->inside_at = strlen(w->done);
	return 0;
}

static int resolve(struct walk *w, const char *path, const char *cwd, const struct places *writable,
		   struct err *e)
{
	w->done[0] = w->rest[0] = '\0';
	w->inside_at = 0;
	w->links = 0;
	if (!path[0])
		return err_set(e, ERR_CONFIG_INVALID, "empty path");
	if (path[0] != '/' && !cwd)
		return fail(e, path, "relative, and the working directory has vanished");
	int n = path[0] == '/' ? snprintf(w->rest, sizeof(w->rest), "%s", path)
			       : snprintf(w->rest, sizeof(w->rest), "%s/%s", cwd, path);
	if (n < 0 || (size_t)n >= sizeof(w->rest))
		return fail(e, path, "too long");
	while (w->rest[0]) {
		char name[NAME_MAX + 1];
		size_t len = strcspn(w->rest, "/");
		if (len > NAME_MAX)
			return fail(e, path, "a name in it is too long");
		memcpy(name, w->rest, len);
		name[len] = '\0';
		size_t skip = len + (w->rest[len] == '/');
		memmove(w->rest, w->rest + skip, strlen(w->rest + skip) + 1);
		if (len && strcmp(name, ".") != 0 && step(w, name, path, writable, e) < 0)
			return -1;
	}
	if (!w->done[0])
		memcpy(w->done, "/", 2);
	return 0;
}

static const struct places nowhere;

bool resolve_collect(const char *path, struct places *places, char ret[PATH_TEXT])
{
	struct walk w; /* 12 KiB: not cleared, resolve() sets every part before it is read */
	struct err ignored = {0};

	w.collect = places;
	if (resolve(&w, path, NULL, &nowhere, &ignored) < 0)
		return false;
	memcpy(ret, w.done, strlen(w.done) + 1);
	return true;
}

int resolve_path(const char *path, const char *cwd, const struct places *writable,
		 struct resolved *ret, struct err *e)
{
	struct walk w;

	w.collect = NULL;
	if (resolve(&w, path, cwd, writable, e) < 0)
		return -1;
	/* The last step may have been `..` or the root: what is there now counts. */
	if (look_lstat(w.done, &w.st) < 0)
		return fail(e, path, strerror(errno));
	memcpy(ret->path, w.done, strlen(w.done) + 1);
	ret->st = w.st;
	ret->inside = w.inside_at != 0;
	return 0;
}

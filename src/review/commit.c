/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source is the person's, but what is in it may be a session's doing, so each path is
 * opened beneath its top, without following a link, and has to stay what it was.
 */
#include "review/commit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/base.h"

#define COPY_BYTES 65536u
#define MAX_TARGET 4096u

/* Any component `.git`, as case-insensitive file systems see it. */
static bool has_git(const char *path)
{
	for (const char *p = path; *p;
	     p += p[strcspn(p, "/")] ? strcspn(p, "/") + 1 : strcspn(p, "/"))
		if (strcspn(p, "/") == 4 && strncasecmp(p, ".git", 4) == 0)
			return true;
	return false;
}

/* A directory on the way is the top of another work tree. */
static bool is_elsewhere(int source, const char *path)
{
	char dir[PATH_TEXT + 8];
	struct stat st;

	for (const char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
		int n = snprintf(dir, sizeof(dir), "%.*s/.git", (int)(p - path), path);
		if (n < 0 || n >= (int)sizeof(dir) || beneath_stat(source, dir, &st) == 0)
			return true;
	}
	return false;
}

static int find_one(int source, const char *path, struct commit_paths *ret, struct err *e)
{
	struct commit_path *one = &ret->v[ret->n];

	*one = (struct commit_path){.path = path};
	if (strcmp(path, ".") == 0)
		return 0; /* the source itself: its mode and time are in no commit */
	if (!beneath_is_clean(path) || has_git(path) || is_elsewhere(source, path)) {
		ret->foreign++;
		return 0;
	}
	/* Behind a link or a file nothing is: for git the path is gone. */
	if (!node_at(source, path, &one->found)) {
		if (errno != ELOOP && errno != ENOTDIR && errno != EXDEV)
			return err_sys(e, "%s", path);
		one->found = (struct node){.mode = 0};
	}
	if (one->found.mode && !S_ISREG(one->found.mode) && !S_ISLNK(one->found.mode))
		return 0;
	ret->n++;
	return 0;
}

int commit_paths_find(int source, const char *const *paths, size_t n, struct commit_paths *ret,
		      struct err *e)
{
	struct commit_paths p = {.v = calloc(n + 1, sizeof(*p.v))};

	if (!p.v)
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (size_t i = 0; i < n; i++) {
		if (find_one(source, paths[i], &p, e) < 0) {
			commit_paths_release(&p);
			return -1;
		}
	}
	*ret = p;
	return 0;
}

void commit_paths_release(struct commit_paths *p)
{
	free(p->v);
	*p = (struct commit_paths){.v = NULL};
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct commit_path *)a)->path, ((const struct commit_path *)b)->path);
}

void commit_paths_ignore(struct commit_paths *p, const char *list, size_t n)
{
	struct commit_path key = {.path = list};
	size_t kept = 0;

	if (!n || list[n - 1])
		return;
	for (const char *at = list; at < list + n; at += strlen(at) + 1) {
		key.path = at;
		struct commit_path *one = bsearch(&key, p->v, p->n, sizeof(*p->v), compare);
		if (one)
			one->found.dev = UINT64_MAX; /* no file's: taken out below */
	}
	for (size_t i = 0; i < p->n; i++) {
		if (p->v[i].found.mode && p->v[i].found.dev == UINT64_MAX)
			p->ignored++;
		else
			p->v[kept++] = p->v[i];
	}
	p->n = kept;
}

int commit_paths_list(const struct commit_paths *p, struct buf *out, struct err *e)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].found.mode)
			(void)buf_add(out, p->v[i].path, strlen(p->v[i].path) + 1);
	return buf_check(out, "the list of paths", ERR_ARG_LIMIT, e);
}

static int put(int out, const struct buf *b, struct err *e)
{
	const char *p = b->p;
	size_t n = b->n;

	if (b->failed)
		return err_set(e, ERR_INTERNAL, "out of memory");
	while (n) {
		ssize_t done = RETRY_EINTR(write(out, p, n));
		if (done < 0)
			return err_sys(e, "write the commit");
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

/* As fast-import unquotes it: bytes stay bytes. */
static void quote(struct buf *b, const char *path)
{
	(void)buf_char(b, '"');
	for (; *path; path++) {
		if (*path == '"' || *path == '\\')
			(void)buf_char(b, '\\');
		if (*path == '\n')
			(void)buf_str(b, "\\n");
		else
			(void)buf_char(b, *path);
	}
	(void)buf_char(b, '"');
}

static int changed(const char *path, struct err *e)
{
	(void)err_set(e, ERR_CONFLICT, "%s changed while it was read", path);
	return err_hint(e, "push again when nothing writes to the source");
}

static int put_bytes(int out, int from, uint64_t size, const char *path, struct err *e)
{
	static char bytes[COPY_BYTES];

	while (size) {
		size_t some = size < sizeof(bytes) ? (size_t)size : sizeof(bytes);
		ssize_t n = RETRY_EINTR(read(from, bytes, some));
		struct buf part = {.p = bytes, .n = n > 0 ? (size_t)n : 0};
		if (n < 0)
			return err_sys(e, "read %s", path);
		if (n == 0)
			return changed(path, e);
		if (put(out, &part, e) < 0)
			return -1;
		size -= (uint64_t)n;
	}
	return read(from, bytes, 1) != 0 ? changed(path, e) : 0;
}

static int put_file(int out, int source, const struct commit_path *p, struct err *e)
{
	struct stat st;
	AUTO_BUF head = BUF_INIT(64);

	AUTO_FD int fd = beneath_open(source, p->path, O_RDONLY | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "open %s", p->path);
	struct node now = node_of(&st);
	if (!node_untouched(&now, &p->found))
		return changed(p->path, e);
	(void)buf_printf(&head, "data %llu\n", (unsigned long long)now.size);
	if (put(out, &head, e) < 0 || put_bytes(out, fd, now.size, p->path, e) < 0)
		return -1;
	return write(out, "\n", 1) == 1 ? 0 : err_sys(e, "write the commit");
}

static int put_link(int out, int source, const struct commit_path *p, struct err *e)
{
	char target[MAX_TARGET];
	const char *name = NULL;
	AUTO_BUF all = BUF_INIT(MAX_TARGET + 64);

	AUTO_FD int dir = beneath_parent(source, p->path, &name);
	ssize_t n = dir < 0 ? -1 : readlinkat(dir, name, target, sizeof(target));
	if (n < 0)
		return errno == EINVAL ? changed(p->path, e) : err_sys(e, "read %s", p->path);
	(void)buf_printf(&all, "data %zd\n", n);
	(void)buf_add(&all, target, (size_t)n);
	(void)buf_char(&all, '\n');
	return put(out, &all, e);
}

static int put_path(int out, int source, const struct commit_path *p, struct err *e)
{
	AUTO_BUF line = BUF_INIT((size_t)4 * PATH_TEXT);
	bool link = S_ISLNK(p->found.mode);

	(void)buf_printf(&line, "M %s inline ",
			 link                      ? "120000"
			 : p->found.mode & S_IXUSR ? "100755"
						   : "100644");
	quote(&line, p->path);
	(void)buf_char(&line, '\n');
	if (put(out, &line, e) < 0)
		return -1;
	return link ? put_link(out, source, p, e) : put_file(out, source, p, e);
}

int commit_stream(int out, const struct commit_head *head, int source, const struct commit_paths *p,
		  struct err *e)
{
	AUTO_BUF b = BUF_INIT((size_t)1 << 30);

	(void)buf_printf(&b, "commit " COMMIT_REF "\nauthor %s <%s> %lld +0000\n", head->name,
			 head->email, (long long)head->time_s);
	(void)buf_printf(&b, "committer %s <%s> %lld +0000\ndata %zu\n", head->name, head->email,
			 (long long)head->time_s, strlen(head->message));
	(void)buf_str(&b, head->message);
	(void)buf_printf(&b, "\nfrom %s\n", head->parent);
	/* First what goes: a directory that takes a file's place comes after it. */
	for (size_t i = 0; i < p->n; i++) {
		if (p->v[i].found.mode)
			continue;
		(void)buf_str(&b, "D ");
		quote(&b, p->v[i].path);
		(void)buf_char(&b, '\n');
	}
	if (put(out, &b, e) < 0)
		return -1;
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].found.mode && put_path(out, source, &p->v[i], e) < 0)
			return -1;
	return write(out, "\ndone\n", 6) == 6 ? 0 : err_sys(e, "write the commit");
}

int commit_message(const char *text, const char *session, const char *policy_sha256,
		   const char *name, const char *email, struct buf *out, struct err *e)
{
	size_t n = strlen(text);

	while (n && strchr(" \t\n", text[n - 1]))
		n--;
	if (!n)
		return err_set(e, ERR_CONFIG_INVALID, "an empty message");
	(void)buf_add(out, text, n);
	(void)buf_printf(out, "\n\nSandglass-Session: %s\nSandglass-Policy: %s\n", session,
			 policy_sha256[0] ? policy_sha256 : "none");
	(void)buf_printf(out, "Approved-by: %s <%s>\n", name, email);
	return buf_check(out, "the message", ERR_ARG_LIMIT, e);
}

int commit_object(const struct commit_head *head, const char *tree, struct buf *out, struct err *e)
{
	(void)buf_printf(out, "tree %s\nparent %s\n", tree, head->parent);
	(void)buf_printf(out, "author %s <%s> %lld +0000\n", head->name, head->email,
			 (long long)head->time_s);
	(void)buf_printf(out, "committer %s <%s> %lld +0000\n\n", head->name, head->email,
			 (long long)head->time_s);
	(void)buf_str(out, head->message);
	return buf_check(out, "the commit", ERR_ARG_LIMIT, e);
}

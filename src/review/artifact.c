/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is read may be changed, or grow, while it is read; what is written has a size that is
 * counted as it comes, a mode of ours, and the checksum of what was written.
 */
#include "review/artifact.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/path.h"
#include "base/term.h"
#include "policy/pattern.h"
#include "policy/state.h"
#include "review/beneath.h"
#include "store/remove.h"
#include "store/session.h"

#define COPY_BYTES 65536u
#define MAX_NAMES 200000u /* read of one directory */
#define LOGS "logs"

void artifact_note(struct artifacts *a, const char *name, const char *why)
{
	a->left_out_n++;
	(void)term_escape(&a->left_out, name, strlen(name));
	(void)buf_printf(&a->left_out, ": %s\n", why);
}

/* Directories on the way are made; all of it is ours. */
int artifact_create(struct artifacts *a, const char *name, int *ret_fd, struct err *e)
{
	char part[PATH_NAME_MAX + 1];
	const char *at = name;

	AUTO_FD int dir = openat(a->dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (const char *slash = strchr(at, '/'); dir >= 0 && slash; slash = strchr(at, '/')) {
		if ((size_t)(slash - at) >= sizeof(part))
			return err_set(e, ERR_CONFIG_INVALID, "%s has too long a name in it", name);
		(void)snprintf(part, sizeof(part), "%.*s", (int)(slash - at), at);
		if (mkdirat(dir, part, 0700) < 0 && errno != EEXIST)
			return err_sys(e, "make %s", name);
		int next = openat(dir, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		(void)close(dir);
		dir = next;
		at = slash + 1;
	}
	int fd =
		dir < 0 ? -1
			: openat(dir, at, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(e, "make %s", name);
	*ret_fd = fd;
	return 0;
}

static int hash(int fd, uint64_t bytes, unsigned char ret[SHA256_BYTES], struct err *e)
{
	if (!bytes) {
		sha256("", 0, ret);
		return 0;
	}
	void *p = mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return err_sys(e, "read an artifact");
	sha256(p, (size_t)bytes, ret);
	(void)munmap(p, (size_t)bytes);
	return 0;
}

int artifact_add(struct artifacts *a, const char *name, int fd, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(e, "%s", name);
	struct artifact *more = reallocarray(a->v, a->n + 1, sizeof(*a->v));
	if (!more)
		return err_set(e, ERR_INTERNAL, "out of memory");
	a->v = more;
	a->v[a->n] = (struct artifact){.name = strdup(name), .bytes = (uint64_t)st.st_size};
	if (!a->v[a->n].name)
		return err_set(e, ERR_INTERNAL, "out of memory");
	return hash(fd, (uint64_t)st.st_size, a->v[a->n++].sha256, e);
}

static int write_all(int fd, const char *p, size_t n, struct err *e)
{
	while (n) {
		ssize_t done = RETRY_EINTR(write(fd, p, n));
		if (done < 0)
			return err_sys(e, "write an artifact");
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

int artifact_text(struct artifacts *a, const char *name, const struct buf *text, struct err *e)
{
	AUTO_FD int fd = -1;

	if (buf_check(text, name, ERR_ARG_LIMIT, e) < 0 || artifact_create(a, name, &fd, e) < 0 ||
	    write_all(fd, text->p, text->n, e) < 0)
		return -1;
	return artifact_add(a, name, fd, e);
}

/* At most `most` bytes, though the file may grow; *ret_more: there is more. */
static int copy_bytes(int from, int to, uint64_t most, uint64_t *ret_bytes, struct err *e)
{
	static char bytes[COPY_BYTES];

	*ret_bytes = 0;
	for (;;) {
		ssize_t n = RETRY_EINTR(read(from, bytes, sizeof(bytes)));
		if (n < 0)
			return err_sys(e, "read what becomes an artifact");
		if (n == 0)
			return 0;
		*ret_bytes += (uint64_t)n;
		if (*ret_bytes > most)
			return 0;
		if (write_all(to, bytes, (size_t)n, e) < 0)
			return -1;
	}
}

/* Takes back a file that turned out to be too large. */
static void take_back(const struct artifacts *a, const char *name)
{
	const char *last = NULL;
	AUTO_FD int dir = beneath_parent(a->dir, name, &last);

	if (dir >= 0)
		(void)unlinkat(dir, last, 0);
}

int artifact_copy(struct artifacts *a, const char *name, int from, struct err *e)
{
	struct err why = {0};
	uint64_t left = MAX_ARTIFACTS_BYTES - a->bytes;
	uint64_t most = left < MAX_ARTIFACT_BYTES ? left : MAX_ARTIFACT_BYTES;
	uint64_t bytes = 0;
	struct stat st;

	if (fstat(from, &st) < 0 || !S_ISREG(st.st_mode)) {
		artifact_note(a, name, "no regular file");
		return 0;
	}
	if (a->n >= MAX_ARTIFACT_FILES || (uint64_t)st.st_size > most) {
		artifact_note(a, name, a->n >= MAX_ARTIFACT_FILES ? "one too many" : "too large");
		return 0;
	}
	AUTO_FD int to = -1;
	if (artifact_create(a, name, &to, &why) < 0) {
		artifact_note(a, name, why.msg);
		return why.sys == ENOSPC || why.sys == EDQUOT ? (*e = why, -1) : 0;
	}
	if (copy_bytes(from, to, most, &bytes, e) < 0)
		return -1;
	if (bytes > most) {
		take_back(a, name);
		artifact_note(a, name, "too large, and growing");
		return 0;
	}
	a->bytes += bytes;
	return artifact_add(a, name, to, e);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names of a directory, sorted, so that the same session gives the same files. */
static char **list_names(int dir, size_t *ret_n)
{
	char **v = NULL;
	size_t n = 0;

	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	for (struct dirent *at = d ? readdir(d) : NULL; at && n < MAX_NAMES; at = readdir(d)) {
		char **more = NULL;
		if (path_is_dots(at->d_name))
			continue;
		if (!(more = reallocarray(v, n + 1, sizeof(*v))))
			break;
		v = more;
		if ((v[n] = strdup(at->d_name)))
			n++;
	}
	if (d)
		(void)closedir(d);
	else if (fd >= 0)
		(void)close(fd);
	if (n)
		qsort((void *)v, n, sizeof(*v), by_name);
	*ret_n = n;
	return v;
}

static void free_names(char **v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i]);
	free((void *)v);
}

/* A call's id and an ending. Other names may mean something to a program that comes by: .git, HEAD. */
static bool is_of_call(const char *name)
{
	char id[UUID_TEXT];

	(void)snprintf(id, sizeof(id), "%s", name);
	return strlen(name) > UUID_TEXT && uuid_valid(id) && name[UUID_TEXT - 1] == '.';
}

int artifact_copy_dir(struct artifacts *a, int from, const char *name, struct err *e)
{
	size_t n = 0;
	int rc = 0;
	char **names = list_names(from, &n);

	for (size_t i = 0; rc == 0 && i < n; i++) {
		char path[PATH_NAME_MAX + 64];
		(void)snprintf(path, sizeof(path), "%s/%s", name, names[i]);
		if (!is_of_call(names[i])) {
			artifact_note(a, path, "not the name of a call");
			continue;
		}
		AUTO_FD int fd =
			openat(from, names[i], O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			artifact_note(a, path, errno == ELOOP ? "a link" : strerror(errno));
		else
			rc = artifact_copy(a, path, fd, e);
	}
	free_names(names, n);
	return rc;
}

void artifact_line(const struct artifact *v, struct buf *out)
{
	bool odd = strpbrk(v->name, "\\\n\r") != NULL;

	if (odd)
		(void)buf_char(out, '\\');
	for (size_t i = 0; i < SHA256_BYTES; i++)
		(void)buf_printf(out, "%02x", v->sha256[i]);
	(void)buf_str(out, "  ");
	for (const char *p = v->name; *p; p++) {
		if (*p == '\\')
			(void)buf_str(out, "\\\\");
		else if (*p == '\n')
			(void)buf_str(out, "\\n");
		else if (*p == '\r')
			(void)buf_str(out, "\\r");
		else
			(void)buf_char(out, *p);
	}
	(void)buf_char(out, '\n');
}

static int by_artifact(const void *a, const void *b)
{
	return strcmp(((const struct artifact *)a)->name, ((const struct artifact *)b)->name);
}

int artifact_manifest(struct artifacts *a, struct err *e)
{
	AUTO_BUF out = BUF_INIT((size_t)1 << 28);
	AUTO_FD int fd = -1;

	if (a->n)
		qsort(a->v, a->n, sizeof(*a->v), by_artifact);
	for (size_t i = 0; i < a->n; i++)
		artifact_line(&a->v[i], &out);
	if (buf_check(&out, "the manifest", ERR_ARG_LIMIT, e) < 0 ||
	    artifact_create(a, ARTIFACT_MANIFEST, &fd, e) < 0)
		return -1;
	return write_all(fd, out.p, out.n, e);
}

void artifacts_release(struct artifacts *a)
{
	for (size_t i = 0; i < a->n; i++)
		free(a->v[i].name);
	free(a->v);
	a->v = NULL;
	a->n = 0;
	buf_release(&a->left_out);
}

/* One part of a pattern against one name of a path. */
static bool part_matches(const char *pattern, size_t n, const char *name, size_t len)
{
	char part[PATH_TEXT];

	if (n >= sizeof(part))
		return false;
	memcpy(part, pattern, n);
	part[n] = '\0';
	return pattern_match_name(part, name, len, false);
}

static const char *next_part(const char *p)
{
	const char *slash = strchr(p, '/');

	return slash ? slash + 1 : p + strlen(p);
}

bool artifact_matches(const char *pattern, const char *path)
{
	const char *stars = NULL; /* behind the last `**` seen, and how far it reaches */
	const char *reach = NULL;

	while (*path) {
		size_t n = strcspn(pattern, "/");
		if (n == 2 && memcmp(pattern, "**", 2) == 0) {
			if (!pattern[2])
				return true;
			stars = pattern = next_part(pattern);
			reach = path;
		} else if (n && part_matches(pattern, n, path, strcspn(path, "/"))) {
			pattern = next_part(pattern);
			path = next_part(path);
		} else if (stars) {
			pattern = stars;
			path = reach = next_part(reach);
		} else {
			return false;
		}
		if (!*pattern && *path && stars) {
			pattern = stars;
			path = reach = next_part(reach);
		}
	}
	return !*pattern;
}

struct kept {
	char id[UUID_TEXT];
	int64_t at_ms;
	uint64_t bytes;
};

/* Ours, and two levels are not more than a sum: iterative over the names of each level. */
static uint64_t bytes_below(int dir, const char *name, unsigned int depth)
{
	uint64_t sum = 0;
	struct stat st;
	size_t n = 0;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (!S_ISDIR(st.st_mode) || depth > 64)
		return (uint64_t)st.st_blocks * 512;
	AUTO_FD int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char **names = fd < 0 ? NULL : list_names(fd, &n);
	for (size_t i = 0; i < n; i++)
		sum += bytes_below(fd, names[i], depth + 1);
	free_names(names, n);
	return sum + (uint64_t)st.st_blocks * 512;
}

static int by_age(const void *a, const void *b)
{
	const struct kept *x = a;
	const struct kept *y = b;

	return x->at_ms < y->at_ms ? -1 : x->at_ms > y->at_ms;
}

static struct kept *find_kept(const struct caller *who, int all, size_t *ret_n)
{
	struct err ignored = {0};
	struct stat st;
	size_t n = 0;
	size_t kept = 0;
	char **names = list_names(all, &n);
	struct kept *v = calloc(n + 1, sizeof(*v));

	for (size_t i = 0; v && i < n; i++) {
		AUTO_FD int living = -1;
		if (!uuid_valid(names[i]) || fstatat(all, names[i], &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    session_open(who, names[i], &living, &ignored) == 0)
			continue;
		memcpy(v[kept].id, names[i], UUID_TEXT);
		v[kept].at_ms = (int64_t)st.st_mtim.tv_sec * 1000;
		v[kept++].bytes = bytes_below(all, names[i], 0);
	}
	free_names(names, n);
	if (kept)
		qsort(v, kept, sizeof(*v), by_age);
	*ret_n = v ? kept : 0;
	return v;
}

/* The manifest without lines of logs, so that it still agrees. */
static void cut_manifest(int dir)
{
	AUTO_BUF out = BUF_INIT((size_t)1 << 28);
	AUTO_BUF in = BUF_INIT((size_t)1 << 28);
	char block[COPY_BYTES];
	struct err ignored = {0};

	AUTO_FD int from = openat(dir, ARTIFACT_MANIFEST, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	for (ssize_t n = from < 0 ? 0 : read(from, block, sizeof(block)); n > 0;
	     n = read(from, block, sizeof(block)))
		(void)buf_add(&in, block, (size_t)n);
	for (const char *p = buf_cstr(&in); *p;) {
		size_t n = strcspn(p, "\n") + (strchr(p, '\n') != NULL);
		const char *name = memmem(p, n, "  ", 2);
		if (!name || strncmp(name + 2, LOGS "/", sizeof(LOGS "/") - 1) != 0)
			(void)buf_add(&out, p, n);
		p += n;
	}
	(void)unlinkat(dir, ARTIFACT_MANIFEST ".new", 0);
	AUTO_FD int to = openat(dir, ARTIFACT_MANIFEST ".new",
				O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0 || in.failed || out.failed || write_all(to, out.p, out.n, &ignored) < 0 ||
	    renameat(dir, ARTIFACT_MANIFEST ".new", dir, ARTIFACT_MANIFEST) < 0)
		return; /* `sha256sum -c` says what is gone */
}

/* How old it is is said by its time, which stays. */
static void sweep_logs(int all, const char *id, bool dry, struct artifact_sweep *ret)
{
	struct stat st;

	AUTO_FD int dir = openat(all, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || fstat(dir, &st) < 0 || faccessat(dir, LOGS, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	ret->without_logs++;
	ret->logs_bytes += bytes_below(dir, LOGS, 0);
	if (dry)
		return;
	remove_tree(dir, LOGS);
	cut_manifest(dir);
	(void)futimens(dir, (const struct timespec[]){st.st_atim, st.st_mtim});
}

static bool is_older(const struct kept *v, uint64_t ms, int64_t now_ms)
{
	return ms != LIMIT_NONE && now_ms > v->at_ms && (uint64_t)(now_ms - v->at_ms) > ms;
}

/* ".ID.new" or ".ID.old", of an export that was killed: nobody is at work at that session. */
static bool is_left(const struct caller *who, const char *name)
{
	char id[UUID_TEXT];
	struct err ignored = {0};
	size_t n = UUID_TEXT - 1;
	AUTO_FD int living = -1;

	if (name[0] != '.' || strlen(name) != n + 5 ||
	    (strcmp(name + 1 + n, ".new") != 0 && strcmp(name + 1 + n, ".old") != 0))
		return false;
	memcpy(id, name + 1, n);
	id[n] = '\0';
	if (!uuid_valid(id))
		return false;
	if (session_open(who, id, &living, &ignored) < 0)
		return true;
	AUTO_FD int dir = openat(living, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir >= 0 && flock(dir, LOCK_EX | LOCK_NB) == 0;
}

static void sweep_left(const struct caller *who, int all, bool dry, struct artifact_sweep *ret)
{
	size_t n = 0;
	char **names = list_names(all, &n);

	for (size_t i = 0; i < n; i++) {
		if (!is_left(who, names[i]))
			continue;
		ret->removed++;
		ret->bytes += bytes_below(all, names[i], 0);
		if (!dry)
			remove_tree(all, names[i]);
	}
	free_names(names, n);
}

void artifacts_sweep(const struct caller *who, uint64_t kept_ms, uint64_t logs_ms, int64_t now_ms,
		     bool dry, struct artifact_sweep *ret)
{
	char home[PATH_TEXT];
	char path[PATH_TEXT + 16];
	uint64_t sum = 0;
	size_t n = 0;

	*ret = (struct artifact_sweep){.removed = 0};
	state_home(who, home);
	(void)snprintf(path, sizeof(path), "%s/artifacts", home);
	AUTO_FD int all = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (all < 0)
		return;
	sweep_left(who, all, dry, ret);
	struct kept *v = find_kept(who, all, &n);
	for (size_t i = 0; i < n; i++)
		sum += v[i].bytes;
	for (size_t i = 0; i < n; i++) {
		if (!is_older(&v[i], kept_ms, now_ms) && sum <= MAX_KEPT_BYTES) {
			if (is_older(&v[i], logs_ms, now_ms))
				sweep_logs(all, v[i].id, dry, ret);
			continue;
		}
		sum -= v[i].bytes;
		ret->removed++;
		ret->bytes += v[i].bytes;
		if (!dry)
			remove_tree(all, v[i].id);
	}
	free(v);
}

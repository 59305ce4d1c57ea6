/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each entry is "DEV INO CTIME PATH" and a NUL; the file begins with a line that
 * names its form.
 */
#include "review/applied.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/num.h"
#include "review/journal.h"

#define HEAD "sandglass-applied 1"

static int spoilt(struct err *e)
{
	return err_set(e, ERR_INTERNAL, "the list of what was applied is not as it was written");
}

static bool take_number(char **at, uint64_t *ret)
{
	struct err ignored = {0};
	char *end = strchr(*at, ' ');

	if (!end)
		return false;
	*end = '\0';
	if (num_parse(*at, 0, UINT64_MAX, ret, &ignored) < 0)
		return false;
	*at = end + 1;
	return true;
}

static bool take_entry(char *at, struct applied *a)
{
	struct applied_entry x;
	uint64_t ctime = 0;

	if (!take_number(&at, &x.dev) || !take_number(&at, &x.ino) || !take_number(&at, &ctime) ||
	    !*at || (a->n && strcmp(a->v[a->n - 1].path, at) >= 0))
		return false;
	x.ctime_ns = (int64_t)ctime;
	x.path = at;
	a->v[a->n++] = x;
	return true;
}

static bool decode(struct applied *a, size_t n)
{
	size_t count = 0;

	if (n < sizeof(HEAD) || memcmp(a->bytes, HEAD, sizeof(HEAD)) != 0 || a->bytes[n - 1])
		return false;
	for (size_t i = sizeof(HEAD); i < n; i++)
		count += !a->bytes[i];
	a->v = calloc(count + 1, sizeof(*a->v));
	if (!a->v)
		return false;
	a->cap = count + 1;
	for (size_t i = sizeof(HEAD); i < n;) {
		size_t len = strlen(a->bytes + i); /* before blanks are overwritten */
		if (!take_entry(a->bytes + i, a))
			return false;
		i += len + 1;
	}
	return true;
}

int applied_read(int session, struct applied *ret, struct err *e)
{
	struct stat st;

	*ret = (struct applied){.n = 0};
	AUTO_FD int fd = openat(session, APPLIED_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "the list of what was applied");
	if (!S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > MAX_APPLIED_BYTES)
		return spoilt(e);
	size_t n = (size_t)st.st_size;
	ret->bytes = malloc(n);
	if (!ret->bytes)
		return err_set(e, ERR_INTERNAL, "out of memory");
	if (read(fd, ret->bytes, n) == (ssize_t)n && decode(ret, n))
		return 0;
	applied_release(ret);
	return spoilt(e);
}

void applied_release(struct applied *a)
{
	free(a->v);
	free(a->bytes);
	*a = (struct applied){.n = 0};
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct applied_entry *)a)->path,
		      ((const struct applied_entry *)b)->path);
}

const struct applied_entry *applied_find(const struct applied *a, const char *path)
{
	struct applied_entry key = {.path = path};

	return a->n ? bsearch(&key, a->v, a->n, sizeof(key), by_path) : NULL;
}

static void put_entry(struct buf *out, const struct applied_entry *x)
{
	(void)buf_printf(out, "%llu %llu %llu ", (unsigned long long)x->dev,
			 (unsigned long long)x->ino, (unsigned long long)x->ctime_ns);
	(void)buf_add(out, x->path, strlen(x->path) + 1);
}

/* Both sorted; of the same path the new one. */
static void put_all(struct buf *out, const struct applied *old, const struct applied_entry *v,
		    size_t n)
{
	size_t i = 0;
	size_t k = 0;

	(void)buf_add(out, HEAD, sizeof(HEAD));
	while (i < old->n || k < n) {
		int order = i == old->n ? 1 : k == n ? -1 : strcmp(old->v[i].path, v[k].path);
		put_entry(out, order < 0 ? &old->v[i] : &v[k]);
		i += order <= 0;
		k += order >= 0;
	}
}

bool applied_is_same(const struct applied *a, const char *path, uint64_t dev, uint64_t ino)
{
	const struct applied_entry *x = a ? applied_find(a, *path ? path : JOURNAL_TOP) : NULL;

	return x && x->ctime_ns && x->dev == dev && x->ino == ino;
}

bool applied_is_ours(const struct applied *a, const char *path, uint64_t dev, uint64_t ino,
		     int64_t ctime_ns)
{
	return applied_is_same(a, path, dev, ino) &&
	       applied_find(a, *path ? path : JOURNAL_TOP)->ctime_ns == ctime_ns;
}

int applied_add(int session, const struct applied_entry *v, size_t n, struct err *e)
{
	AUTO_BUF out = BUF_INIT(MAX_APPLIED_BYTES);
	struct applied old;

	if (applied_read(session, &old, e) < 0)
		return -1;
	put_all(&out, &old, v, n);
	applied_release(&old);
	if (buf_check(&out, "the list of what was applied", ERR_ARG_LIMIT, e) < 0)
		return -1;
	AUTO_FD int fd = openat(session, APPLIED_FILE ".new",
				O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, out.p, out.n) != (ssize_t)out.n || fsync(fd) < 0 ||
	    renameat(session, APPLIED_FILE ".new", session, APPLIED_FILE) < 0 || fsync(session) < 0)
		return err_sys(e, "write the list of what was applied");
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths as text; never touches the file system.
 */
#include "base/path.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* CONFIG_INVALID, "PATH: reason"; a long path leaves room for the reason. */
static int refuse(struct err *e, const char *path, const char *fmt, ...) PRINTF(3, 4);

static int refuse(struct err *e, const char *path, const char *fmt, ...)
{
	char why[128];
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	(void)err_set(e, ERR_CONFIG_INVALID, "%s", n < 0 ? fmt : why);
	return err_wrap(e, "%s", path[0] ? path : "\"\"");
}

/* Appends "/name"; -1 if it does not fit. */
static int append(char ret[PATH_TEXT], size_t *at, const char *name, size_t n)
{
	if (*at + 1 + n >= PATH_TEXT)
		return -1;
	ret[(*at)++] = '/';
	memcpy(ret + *at, name, n);
	*at += n;
	return 0;
}

int path_clean(const char *path, char ret[PATH_TEXT], struct err *e)
{
	char out[PATH_TEXT];
	size_t at = 0;

	if (path[0] != '/')
		return refuse(e, path, "not an absolute path");
	for (const char *p = path; *p;) {
		size_t n = strcspn(p, "/");

		if (n == 2 && p[0] == '.' && p[1] == '.')
			return refuse(e, path, "must not contain ..");
		if (n > PATH_NAME_MAX)
			return refuse(e, path, "a name is longer than %d bytes", PATH_NAME_MAX);
		if (n > 0 && !(n == 1 && p[0] == '.') && append(out, &at, p, n) < 0)
			return refuse(e, path, "longer than %d bytes", PATH_TEXT - 1);
		p += n;
		p += strspn(p, "/");
	}
	if (at == 0)
		out[at++] = '/';
	out[at++] = '\0';
	memcpy(ret, out, at);
	return 0;
}

bool path_lexical(const char *path, char ret[PATH_TEXT])
{
	size_t n = 0;

	if (path[0] != '/')
		return false;
	while (*path) {
		size_t len = strcspn(path, "/");
		if (len == 2 && memcmp(path, "..", 2) == 0) {
			while (n && ret[--n] != '/')
				;
		} else if (len && !(len == 1 && *path == '.')) {
			if (n + 1 + len + 1 > PATH_TEXT)
				return false;
			ret[n++] = '/';
			memcpy(ret + n, path, len);
			n += len;
		}
		path += len;
		path += *path == '/';
	}
	if (!n)
		ret[n++] = '/';
	ret[n] = '\0';
	return true;
}

int path_join(const char *dir, const char *name, char *ret, size_t cap, struct err *e)
{
	size_t dn = strlen(dir), nn = strlen(name);

	if (nn == 0 || name[0] == '/')
		return refuse(e, name, "not a relative path");
	while (dn > 0 && dir[dn - 1] == '/')
		dn--;
	if (dn == 0 && dir[0] != '/')
		return refuse(e, name, "no directory to start from");
	if (dn >= cap || nn >= cap - dn || cap - dn - nn < 2)
		return refuse(e, name, "longer than %zu bytes with its directory",
			      cap > 0 ? cap - 1 : 0);
	memmove(ret, dir, dn);
	ret[dn] = '/';
	memcpy(ret + dn + 1, name, nn + 1);
	return 0;
}

bool path_is_below(const char *parent, const char *child)
{
	size_t n = strlen(parent);

	assert(parent[0] == '/' && child[0] == '/');
	if (n == 1)
		return true;
	return strncmp(parent, child, n) == 0 && (child[n] == '\0' || child[n] == '/');
}

bool path_is_clean(const char *path)
{
	struct err ignored;
	char clean[PATH_TEXT];

	return path_clean(path, clean, &ignored) == 0 && strcmp(path, clean) == 0;
}

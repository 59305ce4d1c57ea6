/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory of the test's own, made before and removed after each case, and
 * short ways to put things into it.
 */
#pragma once

#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/path.h"
#include "policy/request.h"
#include "test_base_suite.h"

static char place_top[512];

/* Up to eight results live at once. */
static inline const char *at(const char *fmt, ...) PRINTF(1, 2);

static inline const char *at(const char *fmt, ...)
{
	static char texts[8][PATH_TEXT];
	static unsigned int next;
	char *text = texts[next++ % ARRAY_LEN(texts)];
	char tail[PATH_TEXT];
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(tail, sizeof(tail), fmt, ap);
	va_end(ap);
	ck_assert(n >= 0 && (size_t)n < sizeof(tail));
	n = snprintf(text, PATH_TEXT, "%s%s%s", place_top, tail[0] ? "/" : "", tail);
	ck_assert(n >= 0 && n < PATH_TEXT);
	return text;
}

static inline void put_dir(const char *name)
{
	char path[PATH_TEXT];

	snprintf(path, sizeof(path), "%s", at("%s", name));
	for (char *p = path + strlen(place_top) + 1;; p++) {
		if (*p && *p != '/')
			continue;
		char was = *p;
		*p = '\0';
		ck_assert_msg(mkdir(path, 0755) == 0 || errno == EEXIST, "mkdir %s: %s", path,
			      strerror(errno));
		*p = was;
		if (!was)
			return;
	}
}

static inline void put_file(const char *name, const char *text)
{
	FILE *f = fopen(at("%s", name), "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

/* A link whose text is taken as it is; with a leading `+` it is a path of this place. */
static inline void put_link(const char *name, const char *text)
{
	const char *target = text[0] == '+' ? at("%s", text + 1) : text;

	ck_assert_msg(symlink(target, at("%s", name)) == 0, "%s: %s", name, strerror(errno));
}

static inline struct stat stat_of(const char *name)
{
	struct stat st;

	ck_assert_msg(lstat(at("%s", name), &st) == 0, "%s: %s", name, strerror(errno));
	return st;
}

static inline int place_remove_one(const char *path, const struct stat *st, int kind,
				   struct FTW *walk)
{
	(void)st;
	(void)walk;
	return kind == FTW_DP ? rmdir(path) : unlink(path);
}

static inline void place_close(void)
{
	if (place_top[0])
		(void)nftw(place_top, place_remove_one, 16, FTW_DEPTH | FTW_PHYS);
	place_top[0] = '\0';
}

/* Below `parent`, which is canonical afterwards; false if nobody may make it there. */
static inline bool place_open(const char *parent)
{
	char name[PATH_TEXT];

	if (snprintf(name, sizeof(name), "%s/sandglass-unit.XXXXXX", parent) >= (int)sizeof(name) ||
	    !mkdtemp(name))
		return false;
	char *real = realpath(name, NULL);
	ck_assert_ptr_nonnull(real);
	ck_assert_uint_lt(strlen(real), sizeof(place_top));
	memcpy(place_top, real, strlen(real) + 1);
	free(real);
	return chmod(place_top, 0755) == 0;
}

static inline void place_setup(void)
{
	const char *tmp = getenv("TMPDIR");

	ck_assert(place_open(tmp && tmp[0] == '/' ? tmp : "/tmp"));
}

/*
 * A place that no rule about the host's own directories covers: where the test
 * itself lies, or what root may use. It may be below somebody's home.
 */
static bool place_in_home;

static inline bool place_may_lie(const char *parent)
{
	static const char *const hidden[] = {"/tmp", "/var/tmp", "/run",  "/dev",
					     "/mnt", "/media",   "/snap", "/opt"};

	if (!parent || parent[0] != '/')
		return false;
	for (size_t i = 0; i < ARRAY_LEN(hidden); i++)
		if (path_is_below(hidden[i], parent))
			return false;
	return place_open(parent);
}

static inline void place_setup_outside_tmp(void)
{
	char self[PATH_TEXT];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	ck_assert_int_gt(n, 0);
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	if (!place_may_lie(self) && !place_may_lie("/srv") && !place_may_lie(getenv("HOME")))
		ck_abort_msg("no place outside of /tmp that may be written: set HOME");
	place_in_home = path_is_below("/home", place_top) || path_is_below("/root", place_top);
}

static char *no_env[] = {NULL};

static inline struct caller caller_of(const char *home, char **env)
{
	return (struct caller){.uid = getuid(),
			       .gid = getgid(),
			       .home = home,
			       .cwd = place_top,
			       .env = env ? env : no_env,
			       .ram_bytes = UINT64_C(8) << 30};
}

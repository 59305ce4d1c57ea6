/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's own store is left as it is; programs inside look at a copy.
 */
#include "run/authority.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "egress/event.h"
#include "policy/environment.h"

static int read_store(const char *path, struct buf *ret, struct err *e)
{
	struct stat st;

	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	if (st.st_size > (off_t)MAX_AUTHORITIES_BYTES ||
	    buf_reserve(ret, (size_t)st.st_size + 4096) < 0)
		return err_set(e, ERR_SANDBOX_UNAVAILABLE, "%s is larger than 900KiB", path);
	while (ret->n < (size_t)st.st_size) {
		char part[16384];
		ssize_t n = read(fd, part, sizeof(part));
		if (n < 0)
			return err_sys(e, "read %s", path);
		if (n == 0)
			break;
		(void)buf_add(ret, part, (size_t)n);
	}
	return 0;
}

/* What stands for a part of the directory would cover what is made in it, or be covered. */
static void take_away(struct view *v)
{
	size_t to = 0;

	for (size_t i = 0; i < v->n; i++)
		if (!path_is_below("/etc/ssl/certs", v->mounts[i].dst))
			v->mounts[to++] = v->mounts[i];
	v->n = to;
}

/* The last n entries, to the end of the system's part, which comes first. */
static void put_forward(struct view *v, size_t n)
{
	struct plan_mount made[2];
	size_t at = 0;

	assert(n <= ARRAY_LEN(made) && n <= v->n);
	memcpy(made, v->mounts + v->n - n, n * sizeof(made[0]));
	while (at < v->n - n && (v->mounts[at].flags & MOUNT_SYSTEM))
		at++;
	memmove(v->mounts + at + n, v->mounts + at, (v->n - n - at) * sizeof(made[0]));
	memcpy(v->mounts + at, made, n * sizeof(made[0]));
}

int authority_add(struct view *v, const char *pem, struct err *e)
{
	AUTO_BUF all = BUF_INIT(1u << 20);

	for (size_t i = 0; i < EGRESS_STORES && all.n == 0; i++)
		if (read_store(egress_stores[i], &all, e) < 0)
			return -1;
	if (all.n && all.p[all.n - 1] != '\n')
		(void)buf_char(&all, '\n');
	(void)buf_str(&all, pem);
	if (buf_check(&all, "the certificates", ERR_SANDBOX_UNAVAILABLE, e) < 0)
		return -1;
	take_away(v);
	if (view_file(v, AUTHORITIES_FILE, all.p, all.n, e) < 0)
		return -1;
	if (view_file(v, AUTHORITY_FILE, pem, strlen(pem), e) < 0)
		return -1;
	put_forward(v, 2);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heads that were kept: in artifacts of sessions, or in a file that somebody names.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/num.h"
#include "base/term.h"
#include "base/uuid.h"
#include "chain/verify.h"
#include "policy/state.h"

#define MAX_HEADS_BYTES ((size_t)MAX_HEADS * 96)
#define SHOWN 256

static int add(struct chain_heads *h, const struct chain_head *head, struct err *e)
{
	if (h->n >= MAX_HEADS)
		return err_set(e, ERR_ARG_LIMIT, "more than %u heads", MAX_HEADS);
	/* Room grows by doubling, at powers of two. */
	if ((h->n & (h->n - 1)) == 0) {
		struct chain_head *more = realloc(h->v, (h->n ? 2 * h->n : 1) * sizeof(*more));
		if (!more)
			return err_set(e, ERR_INTERNAL, "out of memory");
		h->v = more;
	}
	h->v[h->n++] = *head;
	return 0;
}

static int add_line(struct chain_heads *h, char *text, uint32_t number, struct err *e)
{
	struct chain_head head = {.from = (uint32_t)(h->from_count - 1), .number = number};
	struct err ignored = {0};
	char *blank = strchr(text, ' ');

	if (blank)
		*blank = '\0';
	if (!blank || num_parse(text, 1, UINT64_MAX, &head.seq, &ignored) < 0 ||
	    strlen(blank + 1) != AUDIT_HASH_TEXT - 1 ||
	    strspn(blank + 1, "0123456789abcdef") != AUDIT_HASH_TEXT - 1)
		return err_set(e, ERR_CONFIG_INVALID, "%s:%u: a line is `SEQ HASH`",
			       h->from[head.from], number);
	memcpy(head.hash, blank + 1, sizeof(head.hash));
	return add(h, &head, e);
}

static int add_name(struct chain_heads *h, const char *name, struct err *e)
{
	char shown[SHOWN];
	char **more = realloc(h->from, (h->from_count + 1) * sizeof(*more));

	if (!more)
		return err_set(e, ERR_INTERNAL, "out of memory");
	h->from = more;
	more[h->from_count] = strdup(term_escape_cut(shown, sizeof(shown), name, strlen(name)));
	if (!more[h->from_count])
		return err_set(e, ERR_INTERNAL, "out of memory");
	h->from_count++;
	return 0;
}

static int read_all(int fd, struct buf *out, const char *name, struct err *e)
{
	char chunk[65536];

	for (;;) {
		ssize_t n = RETRY_EINTR(read(fd, chunk, sizeof(chunk)));
		if (n < 0)
			return err_sys(e, "%s", name);
		if (n == 0)
			return 0;
		if (buf_add(out, chunk, (size_t)n) < 0)
			return buf_check(out, name, ERR_ARG_LIMIT, e);
	}
}

int chain_heads_add(struct chain_heads *h, int fd, const char *name, struct err *e)
{
	AUTO_BUF bytes = BUF_INIT(MAX_HEADS_BYTES);
	uint32_t number = 0;

	if (add_name(h, name, e) < 0 || read_all(fd, &bytes, h->from[h->from_count - 1], e) < 0)
		return -1;
	char *p = bytes.p;
	for (char *end = p; p && *p; p = end + 1) {
		end = strchr(p, '\n');
		if (!end)
			return err_set(e, ERR_CONFIG_INVALID, "%s: its last line has no end",
				       h->from[h->from_count - 1]);
		*end = '\0';
		if (add_line(h, p, ++number, e) < 0)
			return -1;
	}
	return 0;
}

static int add_file(struct chain_heads *h, int artifacts, const char *name, struct err *e)
{
	struct stat st;

	AUTO_FD int fd = openat(artifacts, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "%s", name);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return err_set(e, ERR_POLICY_DENIED, "%s is not your own file", name);
	return chain_heads_add(h, fd, name, e);
}

static int add_session(struct chain_heads *h, int artifacts, const char *id, struct err *e)
{
	char name[UUID_TEXT + sizeof(AUDIT_HEAD_FILE)];

	(void)snprintf(name, sizeof(name), "%.36s/%s", id, AUDIT_HEAD_FILE);
	return add_file(h, artifacts, name, e);
}

int chain_heads_find(struct chain_heads *h, const struct caller *who, struct err *e)
{
	char home[PATH_TEXT];
	char path[PATH_TEXT + 16];
	int rc = 0;

	state_home(who, home);
	(void)snprintf(path, sizeof(path), "%s/artifacts", home);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "artifacts");
	DIR *d = fdopendir(fd);
	if (!d) {
		(void)close(fd);
		return err_sys(e, "artifacts");
	}
	rc = add_file(h, fd, AUDIT_HEAD_FILE, e); /* of all sessions that have ended */
	for (struct dirent *de = readdir(d); de && rc == 0; de = readdir(d))
		if (uuid_valid(de->d_name))
			rc = add_session(h, fd, de->d_name, e);
	(void)closedir(d);
	return rc;
}

void chain_heads_release(struct chain_heads *h)
{
	for (size_t i = 0; i < h->from_count; i++)
		free(h->from[i]);
	free(h->from);
	free(h->v);
	*h = (struct chain_heads){.n = 0};
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "run/calllog.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "base/base.h"

int call_log_open(struct call_log *l, int dir, const char *path, struct err *e)
{
	struct open_how how = {.flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
			       .mode = 0644,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					  RESOLVE_NO_MAGICLINKS};

	l->fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	if (l->fd < 0)
		return err_sys(e, "the session's logs");
	l->open = true;
	l->left = MAX_CALL_LOG_BYTES;
	l->tail_n = 0;
	return 0;
}

static bool put(struct call_log *l, const char *p, size_t n)
{
	while (n) {
		ssize_t done = RETRY_EINTR(write(l->fd, p, n));
		if (done <= 0)
			return false;
		p += done;
		n -= (size_t)done;
	}
	return true;
}

static void keep_tail(struct call_log *l, const char *p, size_t n)
{
	if (n >= CALL_TAIL_BYTES) {
		memcpy(l->tail, p + n - CALL_TAIL_BYTES, CALL_TAIL_BYTES);
		l->tail_n = CALL_TAIL_BYTES;
		return;
	}
	size_t old = l->tail_n < CALL_TAIL_BYTES - n ? l->tail_n : CALL_TAIL_BYTES - n;
	memmove(l->tail, l->tail + l->tail_n - old, old);
	memcpy(l->tail + old, p, n);
	l->tail_n = old + n;
}

void call_log_add(struct call_log *l, const char *p, size_t n)
{
	static const char cut[] = "\n[… the rest was not kept …]\n";

	if (!l->open)
		return;
	keep_tail(l, p, n);
	if (!l->left)
		return;
	size_t take = n < l->left ? n : (size_t)l->left;
	l->left = put(l, p, take) ? l->left - take : 0;
	if (take < n)
		(void)put(l, cut, sizeof(cut) - 1);
}

bool call_log_says(const struct call_log *l, const char *text)
{
	return l->open && memmem(l->tail, l->tail_n, text, strlen(text)) != NULL;
}

void call_log_close(struct call_log *l)
{
	if (l->open)
		(void)close(l->fd);
	l->open = false;
}

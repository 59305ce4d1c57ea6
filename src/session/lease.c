/* SPDX-License-Identifier: Apache-2.0 */
#include "session/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/file.h"

#define FORMAT "1 %u %lld %lld %llu %39s"

void lease_boot(char ret[LEASE_BOOT])
{
	(void)file_read_text(AT_FDCWD, "/proc/sys/kernel/random/boot_id", ret, LEASE_BOOT);
	ret[strcspn(ret, "\n")] = '\0';
}

int lease_write(int dir, const struct lease *l, struct err *e)
{
	char text[256];

	int n = snprintf(text, sizeof(text), "1 %u %lld %lld %llu %s\n", l->state,
			 (long long)l->end_ns, (long long)l->most_ns,
			 (unsigned long long)l->left_ms, l->boot);
	AUTO_FD int fd = openat(dir, "state.new",
				O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, (size_t)n) != n ||
	    renameat(dir, "state.new", dir, "state") < 0)
		return err_sys(e, "write the session's state");
	return 0;
}

int lease_read(int dir, struct lease *ret, struct err *e)
{
	char text[256];
	long long end = 0;
	long long most = 0;
	unsigned long long left = 0;

	*ret = (struct lease){.state = 0};
	if (!file_read_text(dir, "state", text, sizeof(text)))
		return err_set(e, ERR_NOT_FOUND, "the session has no state");
	if (sscanf(text, FORMAT, &ret->state, &end, &most, &left, ret->boot) != 5)
		return err_set(e, ERR_INTERNAL, "a session's state is not as it was written");
	ret->end_ns = end;
	ret->most_ns = most;
	ret->left_ms = left;
	return 0;
}

bool lease_is_unclean(int dir)
{
	char boot[LEASE_BOOT];
	struct err ignored = {0};
	struct lease l;

	lease_boot(boot);
	return lease_read(dir, &l, &ignored) == 0 && strcmp(l.boot, boot) != 0;
}

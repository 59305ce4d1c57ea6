/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One byte of /run/sandglass/uids a uid, locked with F_OFD_SETLK. No record to
 * go stale: a lock is all there is.
 */
#include "run/uidlock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "policy/accounts.h"
#include "policy/look.h"

#define LOCK_DIR "/run/sandglass"
#define LOCK_FILE LOCK_DIR "/uids"

static bool in_range(unsigned long long first, unsigned long long count)
{
	return first < (unsigned long long)SESSION_UID_FIRST + SESSION_UID_COUNT &&
	       (first >= SESSION_UID_FIRST ? count > 0 : count > SESSION_UID_FIRST - first);
}

/* Lines of subuid(5): name:first:count. */
static int check_sub(const char *path, struct err *e)
{
	char line[512];
	struct stat st;
	int rc = 0;

	int fd = look_open(path, O_RDONLY | O_CLOEXEC, &st);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	if (!f) {
		if (fd >= 0)
			(void)close(fd);
		return 0;
	}
	for (int n = 1; rc == 0 && fgets(line, sizeof(line), f); n++) {
		unsigned long long first = 0;
		unsigned long long count = 0;
		if (sscanf(line, "%*[^:]:%llu:%llu", &first, &count) == 2 && in_range(first, count))
			rc = err_set(e, ERR_CONFIG_INVALID,
				     "%s:%d overlaps with the session uids %u to %u", path, n,
				     SESSION_UID_FIRST, SESSION_UID_FIRST + SESSION_UID_COUNT - 1);
	}
	(void)fclose(f);
	return rc;
}

static bool is_free(void *self, const struct account *a)
{
	if (!in_range(a->uid, 1))
		return true;
	(void)err_set(self, ERR_CONFIG_INVALID, "account %s has uid %u, which is a session uid",
		      a->name, a->uid);
	return false;
}

static int check_passwd(struct err *e)
{
	struct err found = {.code = ERR_NONE};

	accounts_each(is_free, &found);
	if (found.code == ERR_NONE)
		return 0;
	*e = found;
	return -1;
}

static int open_file(struct err *e)
{
	struct stat st;

	if (mkdir(LOCK_DIR, 0755) < 0 && errno != EEXIST)
		return err_sys(e, "make " LOCK_DIR);
	int fd = open(LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "open " LOCK_FILE);
	if (!S_ISREG(st.st_mode) || st.st_uid != 0) {
		(void)close(fd);
		return err_set(e, ERR_SANDBOX_UNAVAILABLE, LOCK_FILE " is not root's own file");
	}
	return fd;
}

int uidlock_check(struct err *e)
{
	if (check_passwd(e) < 0 || check_sub("/etc/subuid", e) < 0)
		return -1;
	return check_sub("/etc/subgid", e);
}

static int lock_slot(int fd, uint32_t slot)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1};

	return fcntl(fd, F_OFD_SETLK, &lock);
}

int uidlock_take_this(uint32_t uid, struct err *e)
{
	AUTO_FD int fd = open_file(e);

	if (fd < 0)
		return -1;
	if (uid < SESSION_UID_FIRST || uid - SESSION_UID_FIRST >= SESSION_UID_COUNT ||
	    lock_slot(fd, uid - SESSION_UID_FIRST) < 0)
		return err_set(e, ERR_BUSY, "the session's uid %u is in use", uid);
	return TAKE_FD(fd);
}

int uidlock_take(uint32_t *ret_uid, struct err *e)
{
	AUTO_FD int fd = open_file(e);
	if (fd < 0) {
		if (e->code == ERR_INTERNAL)
			e->code = ERR_SANDBOX_UNAVAILABLE;
		return -1;
	}
	for (uint32_t i = 0; i < SESSION_UID_COUNT; i++) {
		uint32_t slot = ((uint32_t)getpid() + i) % SESSION_UID_COUNT;
		if (lock_slot(fd, slot) == 0) {
			*ret_uid = SESSION_UID_FIRST + slot;
			return TAKE_FD(fd);
		}
		if (errno != EAGAIN && errno != EACCES)
			return err_sys(e, "lock " LOCK_FILE);
	}
	return err_set(e, ERR_BUSY, "all %u session uids are in use", SESSION_UID_COUNT);
}

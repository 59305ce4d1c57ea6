/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each keeper leaves a number in its session's directory: no keeper waits for another,
 * and a session whose keeper was killed still counts.
 */
#include "session/room.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/num.h"
#include "base/uuid.h"
#include "run/keep.h"

#define SAID "usage" /* 20 digits and a line end: written and read in one piece */

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static int over_all(uint64_t bytes, struct err *e)
{
	(void)err_set(e, ERR_DISK_LIMIT, "all sessions together have %llu bytes of at most %llu",
		      (unsigned long long)bytes, (unsigned long long)SESSIONS_BYTES);
	return err_hint(e, "sandglass session list says which; destroy or gc makes room");
}

int room_check(const struct session_record *rec, const struct usage_of *used, uint64_t others,
	       struct err *e)
{
	if (used->bytes > rec->disk_bytes)
		return err_set(e, ERR_DISK_LIMIT, "the session has %llu bytes of at most %llu",
			       (unsigned long long)used->bytes,
			       (unsigned long long)rec->disk_bytes);
	if (used->inodes > rec->inodes)
		return err_set(e, ERR_INODE_LIMIT, "the session has %llu files of at most %llu",
			       (unsigned long long)used->inodes, (unsigned long long)rec->inodes);
	return sum(used->bytes, others) > SESSIONS_BYTES ? over_all(sum(used->bytes, others), e)
							 : 0;
}

static bool is_near(uint64_t used, uint64_t most)
{
	return used &&
	       used >= most / 100 * ROOM_NEAR_PERCENT + most % 100 * ROOM_NEAR_PERCENT / 100;
}

uint32_t room_near(const struct session_record *rec, const struct usage_of *used, uint64_t others,
		   struct err *why)
{
	uint32_t near = 0;

	if (is_near(sum(used->bytes, others), SESSIONS_BYTES)) {
		near |= KEEP_NEAR_ALL;
		(void)over_all(sum(used->bytes, others), why);
	}
	if (is_near(used->inodes, rec->inodes)) {
		near |= KEEP_NEAR_INODES;
		(void)err_set(why, ERR_INODE_LIMIT, "the session has %llu files of at most %llu",
			      (unsigned long long)used->inodes, (unsigned long long)rec->inodes);
	}
	if (is_near(used->bytes, rec->disk_bytes)) {
		near |= KEEP_NEAR_DISK;
		(void)err_set(why, ERR_DISK_LIMIT, "the session has %llu bytes of at most %llu",
			      (unsigned long long)used->bytes, (unsigned long long)rec->disk_bytes);
	}
	return near;
}

void room_say(int dir, const struct session_record *rec, uint64_t bytes)
{
	char text[32];

	/* What is above its own limit is not the others' loss: a command can make it be miscounted. */
	if (bytes > rec->disk_bytes)
		bytes = rec->disk_bytes;

	AUTO_FD int fd = openat(dir, SAID, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	int n = snprintf(text, sizeof(text), "%020llu\n", (unsigned long long)bytes);
	if (fd >= 0)
		(void)!pwrite(fd, text, (size_t)n, 0); /* the number before stays */
}

static uint64_t said_by(int sessions, const char *id)
{
	char path[UUID_TEXT + sizeof(SAID)];
	char text[32] = "";
	struct err ignored = {0};
	uint64_t bytes = 0;

	(void)snprintf(path, sizeof(path), "%s/" SAID, id);
	AUTO_FD int fd = openat(sessions, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	text[strcspn(text, "\n")] = '\0';
	const char *digits = text + strspn(text, "0");
	if (n <= 0 || !*digits || num_parse(digits, 0, UINT64_MAX, &bytes, &ignored) < 0)
		return 0;
	return bytes;
}

uint64_t room_others(int dir, const char *id)
{
	uint64_t bytes = 0;

	int sessions = openat(dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = sessions < 0 ? NULL : fdopendir(sessions);
	for (const struct dirent *at = d ? readdir(d) : NULL; at; at = readdir(d))
		if (uuid_valid(at->d_name) && strcmp(at->d_name, id) != 0)
			bytes = sum(bytes, said_by(sessions, at->d_name));
	if (d)
		(void)closedir(d);
	else if (sessions >= 0)
		(void)close(sessions);
	return bytes;
}

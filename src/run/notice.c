/* SPDX-License-Identifier: Apache-2.0 */
#include "run/notice.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy/state.h"

/* Like mkdir -p, mode 0700 for what is new. */
static bool make_dirs(char *path)
{
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		bool good = mkdir(path, 0700) == 0 || errno == EEXIST;
		*p = '/';
		if (!good)
			return false;
	}
	return true;
}

bool notice_first(const struct caller *who, const struct source *src)
{
	char home[PATH_TEXT];
	char path[PATH_TEXT + 64];

	state_home(who, home);
	(void)snprintf(path, sizeof(path), "%s/notices/%llx-%llx", home,
		       (unsigned long long)src->st.st_dev, (unsigned long long)src->st.st_ino);
	if (access(path, F_OK) == 0 || !make_dirs(path))
		return false;
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return false;
	return close(fd) == 0;
}

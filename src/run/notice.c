/* SPDX-License-Identifier: Apache-2.0 */
#include "run/notice.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "policy/state.h"

bool notice_first(const struct caller *who, const struct source *src)
{
	char home[PATH_TEXT];
	char path[PATH_TEXT + 64];

	state_home(who, home);
	(void)snprintf(path, sizeof(path), "%s/notices/%llx-%llx", home,
		       (unsigned long long)src->st.st_dev, (unsigned long long)src->st.st_ino);
	if (access(path, F_OK) == 0 || !file_make_dirs(path, 0700))
		return false;
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return false;
	return close(fd) == 0;
}

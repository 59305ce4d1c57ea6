/* SPDX-License-Identifier: Apache-2.0 */
#include "session/freezer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "run/cgroups.h"

#define FREEZE_MS 2000u

static const struct timespec pause_1ms = {.tv_nsec = 1000000};

static int put(const char *dir, const char *name, const char *text)
{
	char file[PATH_TEXT + 32];

	(void)snprintf(file, sizeof(file), "%s/%s", dir, name);
	return file_write_text(file, text);
}

void freezer_make(const char *id, char *ret, size_t len)
{
	/* Where there are any, the leaves of calls have their limits below it. */
	static const char *const controllers[] = {"+memory", "+pids", "+cpu"};
	char base[PATH_TEXT];
	char file[PATH_TEXT + 32];

	ret[0] = '\0';
	if (!cgroups_own_v2(base, sizeof(base)))
		return;
	if ((size_t)snprintf(ret, len, "%s/sandglass-s-%s", base, id) >= len)
		ret[0] = '\0';
	if (!ret[0])
		return;
	(void)snprintf(file, sizeof(file), "%s/cgroup.freeze", ret);
	bool made = mkdir(ret, 0755) == 0 || errno == EEXIST;
	for (size_t i = 0; made && i < ARRAY_LEN(controllers); i++)
		(void)put(ret, "cgroup.subtree_control", controllers[i]);
	if (!made || access(file, W_OK) < 0) {
		(void)rmdir(ret);
		ret[0] = '\0';
	}
}

int freezer_set(const char *dir, bool frozen, struct err *e)
{
	char file[PATH_TEXT + 32];
	char text[256];

	if (put(dir, "cgroup.freeze", frozen ? "1" : "0") < 0)
		return err_sys(e, "%s/cgroup.freeze", dir);
	(void)snprintf(file, sizeof(file), "%s/cgroup.events", dir);
	for (uint64_t until = clock_mono_ms() + FREEZE_MS; frozen;) {
		(void)file_read_text(AT_FDCWD, file, text, sizeof(text));
		if (strstr(text, "frozen 1"))
			return 0;
		if (clock_mono_ms() > until)
			return err_set(e, ERR_INTERNAL,
				       "the session's processes do not stand still");
		(void)nanosleep(&pause_1ms, NULL);
	}
	return 0;
}

void freezer_kill(const char *dir)
{
	(void)put(dir, "cgroup.kill", "1");
	(void)put(dir, "cgroup.freeze", "0");
}

void freezer_remove(const char *dir)
{
	char path[PATH_TEXT + 300];
	DIR *d = opendir(dir);

	for (struct dirent *at = d ? readdir(d) : NULL; at; at = readdir(d)) {
		if (at->d_type != DT_DIR || at->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", dir, at->d_name);
		cgroups_remove(path);
	}
	if (d)
		(void)closedir(d);
	cgroups_remove(dir);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three worlds: v2 with a directory that we may write and whose controllers are
 * on for children (delegated, or root); v1 or hybrid, one hierarchy a
 * controller; none. Only directories below the caller's own cgroup or its
 * nearest writable ancestor are used.
 */
#include "run/cgroups.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/file.h"
#include "base/num.h"

#define LEAF "sandglass-"

static bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = strstr(text, word); p; p = strstr(p + 1, word))
		if ((p == text || p[-1] == ' ' || p[-1] == ',' || p[-1] == ':') &&
		    (!p[n] || strchr(" ,\n:", p[n])))
			return true;
	return false;
}

/* The path of our own cgroup in the hierarchy whose line names `controller` ("" is v2's). */
static bool own_path(const char *lines, const char *controller, char *ret, size_t len)
{
	for (const char *line = lines; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		const char *names = strchr(line, ':');
		const char *path = names ? strchr(names + 1, ':') : NULL;
		if (!path)
			return false;
		size_t n = (size_t)(path - names - 1);
		char list[128];
		if (n >= sizeof(list))
			continue;
		memcpy(list, names + 1, n);
		list[n] = '\0';
		if (*controller ? !has_word(list, controller) : n != 0)
			continue;
		path++;
		n = strcspn(path, "\n");
		if (n >= len)
			return false;
		memcpy(ret, path, n);
		ret[n] = '\0';
		return true;
	}
	return false;
}

static void find_v1(const char *lines, const char *controller, char *ret)
{
	char path[PATH_TEXT - 64];

	ret[0] = '\0';
	if (!own_path(lines, controller, path, sizeof(path)))
		return;
	(void)snprintf(ret, PATH_TEXT, "/sys/fs/cgroup/%s%s", controller, path);
	if (access(ret, F_OK) < 0) /* a container that shows its own group as the root */
		(void)snprintf(ret, PATH_TEXT, "/sys/fs/cgroup/%s", controller);
	size_t n = strlen(ret);
	while (n > 1 && ret[n - 1] == '/')
		ret[--n] = '\0';
	if (access(ret, W_OK | X_OK) < 0)
		ret[0] = '\0';
}

bool cgroups_are_v2(void)
{
	return access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
}

static void lower(uint64_t *ceiling, uint64_t value)
{
	if (value < *ceiling)
		*ceiling = value;
}

/* What holds the caller in the group that the walk leaves must hold the leaf too. */
static void take_ceilings(struct cgroups *g, const char *dir)
{
	static const char *const files[] = {"memory.max", "memory.high", "pids.max", "cpu.max"};
	char path[PATH_TEXT + 32];
	char text[64];

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		unsigned long long value = 0;
		unsigned long long period = 0;
		(void)snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
		if (!file_read_text(AT_FDCWD, path, text, sizeof(text)))
			continue;
		int n = sscanf(text, "%llu %llu", &value, &period); /* "max" is none */
		if (n >= 1 && i < 2)
			lower(&g->max_memory, value);
		else if (n >= 1 && i == 2)
			lower(&g->max_pids, value);
		else if (n == 2 && i == 3 && period)
			lower(&g->max_cpus_milli, value * 1000 / period);
	}
}

/* Up from our own group to the first that we may write and that has controllers for children. */
static bool find_v2(struct cgroups *g, const char *lines)
{
	static const char mount[] = "/sys/fs/cgroup";
	char dir[PATH_TEXT];
	char file[PATH_TEXT + 32];
	char path[PATH_TEXT - 64];
	char text[512];

	if (!cgroups_are_v2() || !own_path(lines, "", path, sizeof(path)) ||
	    strncmp(path, "/..", 3) == 0)
		return false;
	(void)snprintf(dir, sizeof(dir), "%s%s", mount, path);
	for (size_t n = strlen(dir); n >= strlen(mount);) {
		while (n > strlen(mount) && dir[n - 1] == '/')
			dir[--n] = '\0';
		(void)snprintf(file, sizeof(file), "%s/cgroup.subtree_control", dir);
		(void)file_read_text(AT_FDCWD, file, text, sizeof(text));
		(void)snprintf(file, sizeof(file), "%s/cgroup.procs", dir);
		if (access(dir, W_OK) == 0 && access(file, W_OK) == 0 && has_word(text, "memory")) {
			g->kind = CGROUP_KIND_V2;
			memcpy(g->base[CGROUP_V2], dir, n + 1);
			g->memory = true;
			g->pids = has_word(text, "pids");
			g->cpu = has_word(text, "cpu");
			return true;
		}
		take_ceilings(g, dir);
		char *slash = strrchr(dir, '/');
		n = (size_t)(slash - dir);
		*slash = '\0';
	}
	return false;
}

bool cgroups_own_v2(char *ret, size_t len)
{
	const char *mount = cgroups_are_v2() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/unified";
	char lines[8192];
	char path[PATH_TEXT - 64];
	char file[PATH_TEXT + 32];

	if (!file_read_text(AT_FDCWD, "/proc/self/cgroup", lines, sizeof(lines)) ||
	    !own_path(lines, "", path, sizeof(path)) || strncmp(path, "/..", 3) == 0 ||
	    (size_t)snprintf(ret, len, "%s%s", mount, path) >= len)
		return false;
	for (size_t n = strlen(ret); n >= strlen(mount);) {
		while (n > strlen(mount) && ret[n - 1] == '/')
			ret[--n] = '\0';
		(void)snprintf(file, sizeof(file), "%s/cgroup.procs", ret);
		if (access(ret, W_OK) == 0 && access(file, W_OK) == 0)
			return true;
		char *slash = strrchr(ret, '/');
		n = (size_t)(slash - ret);
		*slash = '\0';
	}
	return false;
}

void cgroups_find(struct cgroups *ret)
{
	char lines[8192];

	memset(ret, 0, sizeof(*ret));
	ret->max_memory = ret->max_pids = ret->max_cpus_milli = LIMIT_NONE;
	if (!file_read_text(AT_FDCWD, "/proc/self/cgroup", lines, sizeof(lines)) ||
	    find_v2(ret, lines))
		return;
	find_v1(lines, "memory", ret->base[CGROUP_V1_MEMORY]);
	find_v1(lines, "pids", ret->base[CGROUP_V1_PIDS]);
	find_v1(lines, "cpu", ret->base[CGROUP_V1_CPU]);
	ret->memory = ret->base[CGROUP_V1_MEMORY][0];
	ret->pids = ret->base[CGROUP_V1_PIDS][0];
	ret->cpu = ret->base[CGROUP_V1_CPU][0];
	if (ret->memory || ret->pids || ret->cpu)
		ret->kind = CGROUP_KIND_V1;
}

void cgroups_remove(const char *dir)
{
	/* A task closes its files, which is what we waited for, before it leaves its cgroup. */
	static const struct timespec pause = {.tv_nsec = 1000000};

	for (int tries = 0; rmdir(dir) < 0 && errno == EBUSY && tries < 50; tries++)
		(void)nanosleep(&pause, NULL);
}

void cgroups_sweep(const struct cgroups *g)
{
	char path[PATH_TEXT + 300];

	for (size_t r = 0; r < CGROUP_ROLES; r++) {
		DIR *dir = g->base[r][0] ? opendir(g->base[r]) : NULL;
		if (!dir)
			continue;
		for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
			if (strncmp(d->d_name, LEAF, strlen(LEAF)) != 0)
				continue;
			int pid = 0;
			if (sscanf(d->d_name + strlen(LEAF), "%d", &pid) != 1 || pid <= 0 ||
			    kill(pid, 0) == 0 || errno != ESRCH)
				continue;
			(void)snprintf(path, sizeof(path), "%s/%s", g->base[r], d->d_name);
			(void)rmdir(path); /* not empty: somebody still dies in it */
		}
		(void)closedir(dir);
	}
}

size_t cgroups_plan(const struct cgroups *g, bool want_memory, bool want_pids, bool want_cpu,
		    const char *tag, struct cgroup_store *store, struct plan_cgroup *ret)
{
	const bool wanted[CGROUP_ROLES] = {
		[CGROUP_V1_MEMORY] = want_memory && g->base[CGROUP_V1_MEMORY][0],
		[CGROUP_V1_PIDS] = want_pids && g->base[CGROUP_V1_PIDS][0],
		[CGROUP_V1_CPU] = want_cpu && g->base[CGROUP_V1_CPU][0],
		[CGROUP_V2] = (want_memory || want_pids || want_cpu) && g->base[CGROUP_V2][0],
	};
	size_t n = 0;

	for (uint32_t r = 0; r < CGROUP_ROLES; r++) {
		if (!wanted[r])
			continue;
		(void)snprintf(store->dir[r], sizeof(store->dir[r]), "%s/" LEAF "%d-%s", g->base[r],
			       (int)getpid(), tag);
		ret[n++] = (struct plan_cgroup){.role = r, .dir = store->dir[r]};
	}
	return n;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each helper is a process in our own memory (clone(2) with CLONE_VM) that does
 * nothing but stat: no allocation, no error number read, its own part of the
 * result. We wait for all of them before anything is used.
 */
#include "store/stats.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/base.h"
#include "store/inventory.h"

#define MAX_HELPERS 3u
#define WORTH_A_HELPER 256u /* directories: to start one costs as much as about 50 */
#define STACK_BYTES 32768u

struct part {
	int root;
	const struct inventory *inv;
	struct stats *ret;
	uint32_t *len; /* of the directories' paths; 0 below the root: too long */
	uint32_t from, to;
	char path[MAX_STATS_PATH];
	_Alignas(64) char stack[STACK_BYTES];
};

bool stats_one(int dir, const char *path, struct stats *ret)
{
	struct stat st;

	if (fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return false;
	*ret = (struct stats){
		.dev = st.st_dev,
		.ino = st.st_ino,
		.mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
		.ctime_ns = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec,
	};
	return true;
}

/* Puts a directory's whole path into the part's buffer. 0: too long, or the root's. */
static uint32_t spell(struct part *p, uint32_t dir)
{
	const struct inventory *inv = p->inv;
	size_t len = 0;

	for (uint32_t d = dir; inv->dirs[d].parent != INVENTORY_NONE; d = inv->dirs[d].parent)
		len += strlen(inv->text + inv->dirs[d].name) + 1;
	if (len == 0 || len >= MAX_STATS_PATH)
		return 0;
	size_t at = len - 1;
	for (uint32_t d = dir; inv->dirs[d].parent != INVENTORY_NONE; d = inv->dirs[d].parent) {
		size_t n = strlen(inv->text + inv->dirs[d].name);
		at -= n;
		memcpy(p->path + at, inv->text + inv->dirs[d].name, n);
		if (at)
			p->path[--at] = '/';
	}
	return (uint32_t)(len - 1);
}

/* The path of the one before is still there: only the last name is new. */
static void do_one(struct part *p, uint32_t i)
{
	const struct inventory_dir *d = &p->inv->dirs[i];
	const char *name = p->inv->text + d->name;
	size_t n = strlen(name);
	bool top = p->inv->dirs[d->parent].parent == INVENTORY_NONE;
	size_t at = top ? 0 : p->len[d->parent];

	bool fits = (top || at) && at + n + 2 <= MAX_STATS_PATH;
	p->len[i] = fits ? (uint32_t)(at + n + !top) : 0;
	if (!fits)
		return;
	if (!top)
		p->path[at++] = '/';
	memcpy(p->path + at, name, n + 1);
	(void)stats_one(p->root, p->path, &p->ret[i]);
}

static int do_part(void *self)
{
	struct part *p = self;
	const struct inventory *inv = p->inv;
	uint32_t first = p->from;

	if (first == 0) {
		(void)stats_one(p->root, ".", &p->ret[0]);
		p->len[0] = 0;
		first = 1;
	} else {
		/* The directories above the first are another part's: spelled here, not read there. */
		for (uint32_t d = inv->dirs[first].parent; d != INVENTORY_NONE;
		     d = inv->dirs[d].parent)
			p->len[d] = spell(p, d);
		(void)spell(p, inv->dirs[first].parent);
	}
	for (uint32_t i = first; i < p->to; i++)
		do_one(p, i);
	return 0;
}

static unsigned int helpers_for(uint32_t dirs)
{
#ifdef SANDGLASS_SANITIZED
	(void)dirs;
	return 0; /* its run time does not know processes in one memory */
#else
	cpu_set_t set;
	unsigned int most = dirs / WORTH_A_HELPER;

	if (most < 2 || sched_getaffinity(0, sizeof(set), &set) < 0)
		return 0;
	unsigned int cpus = (unsigned int)CPU_COUNT(&set);
	most = most > cpus ? cpus : most;
	return most > MAX_HELPERS ? MAX_HELPERS : most - 1;
#endif
}

/* Every part by a helper of its own but the first, which is ours. */
static void do_all(struct part *parts, unsigned int helpers)
{
	pid_t pid[MAX_HELPERS] = {0};

	for (unsigned int i = 1; i <= helpers; i++)
		if (parts[i].from < parts[i].to)
			pid[i - 1] = clone(do_part, parts[i].stack + STACK_BYTES,
					   CLONE_VM | CLONE_FILES | CLONE_FS, &parts[i]);
	(void)do_part(&parts[0]);
	for (unsigned int i = 1; i <= helpers; i++) {
		if (pid[i - 1] <= 0)
			(void)do_part(&parts[i]);
		else
			(void)RETRY_EINTR(waitpid(pid[i - 1], NULL, __WALL));
	}
}

static uint32_t at_most(uint32_t n, uint32_t most)
{
	return n < most ? n : most;
}

struct stats *stats_all(int root, const struct inventory *inv)
{
	uint32_t n = inv->dir_count;
	unsigned int helpers = helpers_for(n);
	uint32_t each = n / (helpers + 1) + 1;

	struct stats *ret = calloc(n + 1, sizeof(*ret));
	uint32_t *len = malloc((n + 1) * sizeof(*len));
	struct part *parts = malloc((helpers + 1) * sizeof(*parts));
	if (ret && len && parts && n) {
		for (unsigned int i = 0; i <= helpers; i++) {
			parts[i].root = root;
			parts[i].inv = inv;
			parts[i].ret = ret;
			parts[i].len = len;
			parts[i].from = at_most(i * each, n);
			parts[i].to = at_most((i + 1) * each, n);
		}
		do_all(parts, helpers);
	}
	free(len);
	free(parts);
	return ret;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data, and one decision. Landlock grants: below a directory that is writable
 * everything is, so nothing can be taken out of it again.
 */
#include "policy/rung.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/term.h"

#define SHOWN 512
#define ABI_SCOPES 6 /* Landlock keeps signals inside: Linux 6.12 */
#define ABI_REFER 2  /* and lets files move between directories: Linux 5.19 */

const char *const rung_dirs[RUNG_DIRS] = {"home", "tmp", "cache", "workspace", "logs"};

/* Nodes that every program may use. /dev/tty is the command's own terminal or none. */
static const char *const nodes[] = {"/dev/null",   "/dev/zero",    "/dev/full",
				    "/dev/random", "/dev/urandom", "/dev/tty"};

/*
 * What runtimes read and what is the same for everybody. Nothing of any process:
 * a rule belongs to one directory, and /proc/self is another one for each.
 */
static const char *const kernel[] = {
	"/proc/cpuinfo",
	"/proc/filesystems",
	"/proc/loadavg",
	"/proc/meminfo",
	"/proc/stat",
	"/proc/uptime",
	"/proc/version",
	"/proc/sys/fs/file-max",
	"/proc/sys/fs/inotify",
	"/proc/sys/fs/nr_open",
	"/proc/sys/fs/pipe-max-size",
	"/proc/sys/kernel/cap_last_cap",
	"/proc/sys/kernel/ngroups_max",
	"/proc/sys/kernel/osrelease",
	"/proc/sys/kernel/ostype",
	"/proc/sys/kernel/pid_max",
	"/proc/sys/kernel/random/uuid",
	"/proc/sys/kernel/threads-max",
	"/proc/sys/kernel/version",
	"/proc/sys/vm/max_map_count",
	"/proc/sys/vm/mmap_min_addr",
	"/proc/sys/vm/overcommit_memory",
	"/sys/kernel/mm/transparent_hugepage",
};

static const char *const lost[] = {
	"mount-view",      /* names, sizes and times of all files can be seen */
	"metadata",        /* mode, times, owner, attributes of the user's files can be changed */
	"masks",           /* nothing inside the source is hidden */
	"protected-names", /* nor kept from being written */
	"nodev",           /* devices and fifos that lie in a granted directory are what they are */
	"pid",             /* numbers of other processes can be guessed */
	"uts",             /* the host's name */
	"user-counters",   /* what the kernel counts for a user is the user's as a whole */
	"private-tmp",     /* /tmp and /dev/shm are the host's, and closed */
	"kill-of-all", /* SIGKILL of sandglass and its core at once leaves background processes */
};

const char *rung_lost(unsigned int abi, size_t i)
{
	const char *more[2] = {NULL, NULL};
	size_t n = 0;

	if (i < ARRAY_LEN(lost))
		return lost[i];
	if (abi < ABI_SCOPES)
		more[n++] = "signals";
	if (abi < ABI_REFER)
		more[n++] = "moves-between-directories";
	i -= ARRAY_LEN(lost);
	return i < n ? more[i] : NULL;
}

static int refuse(struct err *e, const char *option, const char *path, const char *inside)
{
	char shown[SHOWN];
	char where[SHOWN];

	(void)err_set(e, ERR_SANDBOX_UNAVAILABLE,
		      "%s %s: isolation `landlock` cannot make it narrower than %s, which is "
		      "writable",
		      option, term_escape_cut(shown, sizeof(shown), path, strlen(path)),
		      term_escape_cut(where, sizeof(where), inside, strlen(inside)));
	return err_hint(e, "leave the option out, or use isolation `namespace` (sandglass doctor)");
}

/* What a rule reads as a whole is not writable, and then all of it can be held. */
static bool is_source_writable(const struct view *v, const struct request *req,
			       const struct source *src)
{
	bool closed = !src->given || req->mode != MODE_WORKSPACE_WRITE;

	for (size_t i = 0; i < v->grant_count && !closed; i++)
		closed = !v->grants[i].write && strcmp(v->grants[i].path, src->path) == 0;
	return !closed;
}

static int refuse_hide(struct err *e, const char *who, const char *path)
{
	char shown[SHOWN];

	(void)err_set(e, ERR_SANDBOX_UNAVAILABLE,
		      "%s %s: isolation `landlock` cannot hide what lies in a directory that is "
		      "shown",
		      who, term_escape_cut(shown, sizeof(shown), path, strlen(path)));
	return err_hint(e, "leave it out, or use isolation `namespace` (sandglass doctor)");
}

static bool is_shown(const struct view *v, const struct source *src, const char *path)
{
	bool shown = src->given && path_is_below(src->path, path);

	for (size_t i = 0; i < v->grant_count; i++)
		shown |= path_is_below(v->grants[i].path, path);
	return shown || path_is_below("/usr", path) || path_is_below("/etc", path);
}

/* An option is refused; what a file hides and nothing shows is hidden already. */
static int check_hidden(const struct view *v, const struct request *req, const struct source *src,
			struct err *e)
{
	const struct places nowhere = {.n = 0};
	struct err absent;
	struct resolved r;

	if (req->hide.n)
		return refuse_hide(e, "--hide", req->hide.v[0]);
	for (size_t i = 0; i < req->rule_count; i++) {
		const struct path_rule *rule = &req->rules[i];
		if (rule->access != ACCESS_HIDE || rule->layer == LAYER_BUILT_IN)
			continue;
		bool there = !rule->pattern &&
			     resolve_path(rule->path, NULL, &nowhere, &r, &absent) == 0;
		if (rule->pattern || is_shown(v, src, rule->path) ||
		    (there && is_shown(v, src, r.path)))
			return refuse_hide(e, rule->origin, rule->path);
	}
	return 0;
}

int rung_check(const struct view *v, const struct request *req, const struct source *src,
	       struct err *e)
{
	bool source_writable = is_source_writable(v, req, src);

	if (check_hidden(v, req, src, e) < 0)
		return -1;
	for (size_t i = 0; i < v->grant_count; i++) {
		const struct grant *g = &v->grants[i];
		if (g->write || g->linked)
			continue;
		if (source_writable && path_is_below(src->path, g->path))
			return refuse(e, "--read", g->path, src->path);
		for (size_t k = 0; k < v->grant_count; k++)
			if (v->grants[k].write && path_is_below(v->grants[k].path, g->path))
				return refuse(e, "--read", g->path, v->grants[k].path);
	}
	return 0;
}

int rung_add(struct view *v, const char *agent_root, struct err *e)
{
	char path[PATH_TEXT + 16];

	for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
		if (view_bind(v, nodes[i], NULL, MOUNT_SYSTEM | MOUNT_WRITE | MOUNT_OPTIONAL, NULL,
			      e) < 0)
			return -1;
	for (size_t i = 0; i < ARRAY_LEN(kernel); i++)
		if (view_bind(v, kernel[i], NULL, MOUNT_SYSTEM | MOUNT_OPTIONAL, NULL, e) < 0)
			return -1;
	if (view_bind(v, agent_root, NULL, MOUNT_DIRECTORY, NULL, e) < 0)
		return -1;
	for (size_t i = 0; i + 1 < RUNG_DIRS; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", agent_root, rung_dirs[i]);
		if (view_bind(v, path, NULL, MOUNT_DIRECTORY | MOUNT_WRITE, NULL, e) < 0)
			return -1;
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the source and refuses the directories that are no project. By
 * identity, so that a link or a bind mount of a home is a home too.
 */
#include "policy/source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/term.h"
#include "policy/accounts.h"
#include "policy/look.h"
#include "policy/state.h"

#define SHOWN 512
/* login.defs(5): people's accounts begin here; below are the system's. */
#define UID_PEOPLE 1000

const char *const mode_names[] = {"read-only", "workspace-write", "danger-full-access", NULL};

const char *mode_name(int mode)
{
	return mode_names[mode < 0 ? MODE_WORKSPACE_WRITE : mode];
}

const char *caller_env(const struct caller *c, const char *name)
{
	size_t n = strlen(name);

	for (char **v = c->env; *v; v++)
		if (strncmp(*v, name, n) == 0 && (*v)[n] == '=')
			return *v + n + 1;
	return NULL;
}

static void add_state(struct refused *r, const char *path)
{
	char canonical[PATH_TEXT];

	if (path[0] == '/' && resolve_collect(path, &r->state, canonical) && r->state_paths < 3)
		memcpy(r->state_path[r->state_paths++], canonical, strlen(canonical) + 1);
}

static void add_our_places(struct refused *r, const struct caller *who)
{
	char path[PATH_TEXT];
	const char *config = caller_env(who, "XDG_CONFIG_HOME");

	state_home(who, path);
	add_state(r, path);
	if (config && config[0] == '/')
		(void)snprintf(path, sizeof(path), "%s/sandglass", config);
	else
		(void)snprintf(path, sizeof(path), "%s/.config/sandglass",
			       who->home ? who->home : "");
	add_state(r, path);
	add_state(r, "/etc/sandglass");
}

struct homes {
	struct refused *refused;
	uid_t uid;
};

static bool add_home(void *self, const struct account *a)
{
	struct homes *h = self;
	char ignored[PATH_TEXT];

	if (a->home[0] == '/' &&
	    (a->uid == 0 || a->uid == h->uid || (a->uid >= UID_PEOPLE && a->uid < 65534)))
		(void)resolve_collect(a->home, &h->refused->homes, ignored);
	return true;
}

int refused_init(const struct caller *who, struct refused *ret, struct err *e)
{
	struct homes homes = {ret, who->uid};
	char ignored[PATH_TEXT];
	struct stat root;

	ret->homes.n = ret->state.n = ret->state_paths = 0;
	if (look_lstat("/", &root) < 0)
		return err_sys(e, "stat /");
	(void)places_add(&ret->homes, &root);
	if (who->home)
		(void)resolve_collect(who->home, &ret->homes, ignored);
	accounts_each(add_home, &homes);
	add_our_places(ret, who);
	return 0;
}

int refused_check(const struct refused *r, const char *what, const struct resolved *dir,
		  struct err *e)
{
	char shown[SHOWN];
	const char *why = NULL;

	(void)term_escape_cut(shown, sizeof(shown), dir->path, strlen(dir->path));
	if (places_have(&r->homes, &dir->st))
		why = dir->path[1] ? "is a home directory or holds one"
				   : "is the whole file system";
	else if (places_have(&r->state, &dir->st))
		why = "holds sandglass's own state or configuration";
	for (size_t i = 0; i < r->state_paths && !why; i++)
		if (path_is_below(r->state_path[i], dir->path))
			why = "lies in sandglass's own state or configuration";
	if (!why)
		return 0;
	(void)err_set(e, ERR_POLICY_DENIED, "%s %s %s", what, shown, why);
	return err_hint(e,
			strcmp(what, "source") == 0
				? "name a project directory (--source DIR), or --no-source for none"
				: "name what is needed in it, or a directory elsewhere");
}

/*
 * A `.git` widens the source, so it only counts if it belongs to who works here:
 * the caller, root, or the owner of the working directory (root in a user's
 * project); what somebody else puts into a shared directory above does not.
 */
static bool is_own_git(const char *dir, const char *git, const struct caller *who, uid_t cwd_owner)
{
	struct stat g;
	struct stat d;

	if (lstat(git, &g) < 0 || stat(dir, &d) < 0 || !(S_ISDIR(g.st_mode) || S_ISREG(g.st_mode)))
		return false;
	return (g.st_uid == who->uid || g.st_uid == 0 || g.st_uid == cwd_owner) &&
	       (d.st_uid == who->uid || d.st_uid == 0 || d.st_uid == cwd_owner);
}

/* Walks up from the working directory to the first that has a `.git`. */
static void find_top(const struct caller *who, char top[PATH_TEXT])
{
	const char *cwd = who->cwd;
	char path[PATH_TEXT];
	char git[PATH_TEXT + 8];
	struct stat st;
	uid_t owner = stat(cwd, &st) == 0 ? st.st_uid : who->uid;

	(void)snprintf(top, PATH_TEXT, "%s", cwd);
	(void)snprintf(path, sizeof(path), "%s", cwd);
	for (;;) {
		(void)snprintf(git, sizeof(git), "%s/.git", path);
		if (is_own_git(path, git, who, owner)) {
			(void)snprintf(top, PATH_TEXT, "%s", path);
			return;
		}
		char *slash = strrchr(path, '/');
		if (!slash || slash == path)
			return;
		*slash = '\0';
	}
}

int source_check_place(const struct resolved *dir, const char *what, struct err *e)
{
	static const char *const ours[] = {"/sand", "/proc", "/sys", "/dev"};
	char shown[SHOWN];

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (path_is_below(ours[i], dir->path))
			return err_set(e, ERR_CONFIG_INVALID,
				       "%s %s: %s is the sandbox's own inside", what,
				       term_escape_cut(shown, sizeof(shown), dir->path,
						       strlen(dir->path)),
				       ours[i]);
	return 0;
}

/* No project: the system's own directories, and those that everybody shares. */
static int check_system(const struct resolved *dir, struct err *e)
{
	static const char *const whole[] = {"/etc", "/boot", "/run", "/var/run", "/lost+found"};
	static const char *const itself[] = {
		"/bin", "/sbin",    "/lib",      "/lib32",   "/lib64",     "/libx32",
		"/usr", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/share", "/usr/local",
		"/var", "/var/lib", "/var/log",  "/var/tmp", "/var/cache", "/tmp",
		"/opt", "/srv",     "/mnt",      "/media",   "/home",      "/snap",
	};
	bool system = false;
	char shown[SHOWN];

	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
		system |= path_is_below(whole[i], dir->path);
	for (size_t i = 0; i < sizeof(itself) / sizeof(itself[0]); i++)
		system |= strcmp(itself[i], dir->path) == 0;
	if (!system)
		return 0;
	(void)err_set(e, ERR_POLICY_DENIED, "source %s is a directory of the system, not a project",
		      term_escape_cut(shown, sizeof(shown), dir->path, strlen(dir->path)));
	return err_hint(e, "name a project directory (--source DIR), or --no-source for none");
}

int source_locate(const struct request *req, const struct caller *who, struct source *ret,
		  struct err *e)
{
	struct places writable = {.n = 0};
	struct resolved r;
	struct stat st;
	char top[PATH_TEXT] = "";
	char shown[SHOWN];

	ret->given = false;
	if (req->no_source) {
		if (req->source)
			return err_set(e, ERR_CONFIG_INVALID,
				       "--source and --no-source exclude each other");
		return 0;
	}
	if (!req->source && !who->cwd) {
		(void)err_set(e, ERR_CONFIG_INVALID, "the working directory has vanished");
		return err_hint(e, "change to a directory that exists, or name one: --source DIR");
	}
	/* What an earlier run in this project may have put there is not followed. */
	if (who->cwd)
		find_top(who, top);
	if (req->source && top[0] && stat(top, &st) == 0)
		(void)places_add(&writable, &st);
	if (resolve_path(req->source ? req->source : top, who->cwd, &writable, &r, e) < 0)
		return err_wrap(e, "source");
	if (!S_ISDIR(r.st.st_mode))
		return err_set(e, ERR_CONFIG_INVALID, "source %s is not a directory",
			       term_escape_cut(shown, sizeof(shown), r.path, strlen(r.path)));
	ret->given = true;
	memcpy(ret->path, r.path, sizeof(r.path));
	ret->st = r.st;
	return 0;
}

int source_check(const struct source *src, const struct refused *refused, struct err *e)
{
	struct resolved r = {.st = src->st};

	if (!src->given)
		return 0;
	memcpy(r.path, src->path, strlen(src->path) + 1);
	/* A work tree around a home is refused as what it is, not silently made smaller. */
	if (check_system(&r, e) < 0 || refused_check(refused, "source", &r, e) < 0)
		return -1;
	return source_check_place(&r, "source", e);
}

int source_find(const struct request *req, const struct caller *who, const struct refused *refused,
		struct source *ret, struct err *e)
{
	struct source src = {.given = false};

	ret->given = false;
	if (source_locate(req, who, &src, e) < 0 || source_check(&src, refused, e) < 0)
		return -1;
	*ret = src;
	return 0;
}

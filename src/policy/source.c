/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the source and refuses the directories that are no project. By
 * identity, so that a link or a bind mount of a home is a home too.
 */
#include "policy/source.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/term.h"
#include "policy/state.h"

#define SHOWN 512
/* login.defs(5): people's accounts begin here; below are the system's. */
#define UID_PEOPLE 1000

const char *const mode_names[] = {"read-only", "workspace-write", "danger-full-access", NULL};

const char *caller_env(const struct caller *c, const char *name)
{
	size_t n = strlen(name);

	for (char **v = c->env; *v; v++)
		if (strncmp(*v, name, n) == 0 && (*v)[n] == '=')
			return *v + n + 1;
	return NULL;
}

/* The directory and all that are above it. What does not exist is no danger. */
static void add_with_parents(struct places *p, const char *path)
{
	struct places nowhere = {.n = 0};
	struct resolved r;
	struct err ignored = {0};

	if (path[0] != '/' || resolve_path(path, NULL, &nowhere, &r, &ignored) < 0)
		return;
	/* A directory that is known has its parents known too. */
	while (!places_have(p, &r.st) && places_add(p, &r.st)) {
		char *slash = strrchr(r.path, '/');
		if (slash == r.path && !slash[1])
			return;
		slash[slash == r.path] = '\0';
		if (stat(r.path, &r.st) < 0)
			return;
	}
}

static void add_state(struct refused *r, const char *path)
{
	struct places nowhere = {.n = 0};
	struct resolved at;
	struct err ignored = {0};

	add_with_parents(&r->state, path);
	if (path[0] == '/' && resolve_path(path, NULL, &nowhere, &at, &ignored) == 0 &&
	    r->state_paths < 3)
		memcpy(r->state_path[r->state_paths++], at.path, sizeof(at.path));
}

static void add_our_places(struct refused *r, const struct caller *who)
{
	char path[PATH_TEXT];
	const char *config = caller_env(who, "XDG_CONFIG_HOME");

	state_home(who, path);
	add_state(r, path);
	if (config)
		(void)snprintf(path, sizeof(path), "%s/sandglass", config);
	else
		(void)snprintf(path, sizeof(path), "%s/.config/sandglass",
			       who->home ? who->home : "");
	add_state(r, path);
	add_state(r, "/etc/sandglass");
}

int refused_init(const struct caller *who, struct refused *ret, struct err *e)
{
	struct stat root;

	*ret = (struct refused){.state_paths = 0};
	if (stat("/", &root) < 0)
		return err_sys(e, "stat /");
	(void)places_add(&ret->homes, &root);
	if (who->home)
		add_with_parents(&ret->homes, who->home);
	setpwent();
	for (struct passwd *pw = getpwent(); pw; pw = getpwent())
		if (pw->pw_uid == 0 || pw->pw_uid == who->uid ||
		    (pw->pw_uid >= UID_PEOPLE && pw->pw_uid < 65534))
			add_with_parents(&ret->homes, pw->pw_dir);
	endpwent();
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
	return err_hint(e, "name a project directory (--source DIR), or --no-source for none");
}

/* Walks up from the working directory to the first that has a `.git`. */
static void find_top(const char *cwd, char top[PATH_TEXT])
{
	char path[PATH_TEXT];
	char git[PATH_TEXT + 8];
	struct stat st;

	(void)snprintf(top, PATH_TEXT, "%s", cwd);
	(void)snprintf(path, sizeof(path), "%s", cwd);
	for (;;) {
		(void)snprintf(git, sizeof(git), "%s/.git", path);
		if (lstat(git, &st) == 0 && (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode))) {
			(void)snprintf(top, PATH_TEXT, "%s", path);
			return;
		}
		char *slash = strrchr(path, '/');
		if (!slash || slash == path)
			return;
		*slash = '\0';
	}
}

/* Places where a view of our own stands: nothing of the host can appear there. */
static int check_place(const struct resolved *dir, const char *what, struct err *e)
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

int source_find(const struct request *req, const struct caller *who, const struct refused *refused,
		struct source *ret, struct err *e)
{
	struct places nowhere = {.n = 0};
	struct resolved r;
	char top[PATH_TEXT];
	char shown[SHOWN];

	*ret = (struct source){.given = false};
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
	if (!req->source)
		find_top(who->cwd, top);
	if (resolve_path(req->source ? req->source : top, who->cwd, &nowhere, &r, e) < 0)
		return err_wrap(e, "source");
	if (!S_ISDIR(r.st.st_mode))
		return err_set(e, ERR_CONFIG_INVALID, "source %s is not a directory",
			       term_escape_cut(shown, sizeof(shown), r.path, strlen(r.path)));
	/* A work tree around a home is refused as what it is, not silently made smaller. */
	if (refused_check(refused, "source", &r, e) < 0 || check_place(&r, "source", e) < 0)
		return -1;
	ret->given = true;
	memcpy(ret->path, r.path, sizeof(r.path));
	ret->st = r.st;
	return 0;
}

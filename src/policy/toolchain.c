/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Toolchains that the caller's PATH points to: found, mounted read-only at
 * their own path. A directory on PATH is a hint about programs only: what lies
 * in a secret place, in the source, or where everybody writes adds nothing.
 */
#include <stdio.h>
#include <string.h>

#include "policy/look.h"
#include "policy/view.h"

/* Below HOME: what a tool's own directory consists of. */
struct root {
	const char *prefix;    /* a PATH entry at or below it ... */
	const char *mounts[3]; /* ... makes these visible */
};

static const struct root home_roots[] = {
	{".cargo/bin", {".cargo/bin", ".rustup"}},
	{".rustup", {".rustup"}},
	{".nvm", {".nvm"}},
	{".pyenv", {".pyenv"}},
	{".rbenv", {".rbenv"}},
	{".nodenv", {".nodenv"}},
	{".goenv", {".goenv"}},
	{".jenv", {".jenv"}},
	{".asdf", {".asdf"}},
	{".volta", {".volta"}},
	{".bun", {".bun/bin"}},
	{".deno", {".deno/bin"}},
	{".sdkman", {".sdkman/candidates"}},
	{".dotnet", {".dotnet"}},
	{".fnm", {".fnm"}},
	{".ghcup", {".ghcup"}},
	{".opam", {".opam"}},
	{".pixi", {".pixi"}},
	{".juliaup", {".juliaup", ".julia/juliaup"}},
	{"miniconda3", {"miniconda3"}},
	{"anaconda3", {"anaconda3"}},
	{"miniforge3", {"miniforge3"}},
	{"go", {"go/bin"}},
	{".local/share/mise", {".local/share/mise"}},
	{".local/share/fnm", {".local/share/fnm"}},
	{".local/share/pnpm", {".local/share/pnpm"}},
	{".local/bin", {".local/bin", ".local/share/uv", ".local/share/pipx"}},
	{".npm-global", {".npm-global"}},
	{".yarn", {".yarn/bin"}},
};

/* Never, whatever PATH says. Below HOME; a trailing part of it too. */
static const char *const secret[] = {".ssh",
				     ".gnupg",
				     ".aws",
				     ".azure",
				     ".config",
				     ".docker",
				     ".kube",
				     ".mozilla",
				     ".gcloud",
				     ".password-store",
				     ".local/share/keyrings",
				     ".netrc",
				     ".claude",
				     ".codex",
				     ".gemini"};

/* Places of the host that are not in any view. */
static const char *const outside[] = {"/tmp", "/var/tmp", "/run",  "/var/run",
				      "/mnt", "/media",   "/proc", "/sys",
				      "/dev", "/sand",    "/boot", "/lost+found"};

/* A component of the path that is a secret place, whoever's home it is in. */
static bool has_secret_part(const char *path)
{
	for (const char *p = strchr(path, '/'); p; p = strchr(p + 1, '/'))
		for (size_t i = 0; i < sizeof(secret) / sizeof(secret[0]); i++) {
			size_t n = strlen(secret[i]);
			if (strncmp(p + 1, secret[i], n) == 0 && (!p[n + 1] || p[n + 1] == '/'))
				return true;
		}
	return false;
}

struct search {
	const struct caller *who;
	const struct source *src;
	const struct refused *refused;
};

/*
 * A link may have been put there by a command that could write there once. So
 * one is followed only to where nobody but root writes.
 */
static bool may_follow(const char *target)
{
	static const char *const roots[] = {"/usr", "/opt", "/nix/store", "/snap",
					    "/etc/alternatives"};
	struct stat st;

	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++)
		if (path_is_below(roots[i], target) && look_lstat(target, &st) == 0 &&
		    st.st_uid == 0)
			return true;
	return false;
}

static int bind_once(struct view *v, const struct search *s, const char *path, struct err *e)
{
	struct places nowhere = {.n = 0};
	struct resolved r;
	struct err ignored = {0};

	if (view_covers(v, path) || resolve_path(path, NULL, &nowhere, &r, &ignored) < 0 ||
	    !S_ISDIR(r.st.st_mode) || has_secret_part(r.path) ||
	    refused_check(s->refused, "PATH", &r, &ignored) < 0 ||
	    (strcmp(r.path, path) != 0 && !may_follow(r.path)))
		return 0;
	if (strcmp(r.path, path) == 0)
		return view_bind(v, path, NULL, MOUNT_SYSTEM | MOUNT_OPTIONAL, &r.st, e);
	/* Reached through a link: the directory appears where PATH says it is. */
	return view_covers(v, r.path)
		       ? 0
		       : view_bind(v, r.path, path, MOUNT_SYSTEM | MOUNT_OPTIONAL, &r.st, e);
}

static int add_home_root(struct view *v, const struct search *s, const char *rest, struct err *e)
{
	const char *home = s->who->home;
	char path[PATH_TEXT];

	for (size_t i = 0; i < sizeof(home_roots) / sizeof(home_roots[0]); i++) {
		const struct root *t = &home_roots[i];
		size_t n = strlen(t->prefix);
		if (strncmp(rest, t->prefix, n) != 0 || (rest[n] && rest[n] != '/'))
			continue;
		for (size_t m = 0; m < 3 && t->mounts[m]; m++) {
			(void)snprintf(path, sizeof(path), "%s/%s", home, t->mounts[m]);
			if (bind_once(v, s, path, e) < 0)
				return -1;
		}
		return 0;
	}
	(void)snprintf(path, sizeof(path), "%s/%s", home, rest);
	return bind_once(v, s, path, e);
}

static int add_dir(struct view *v, const struct search *s, const char *dir, struct err *e)
{
	const struct caller *who = s->who;
	const struct source *src = s->src;
	char top[PATH_TEXT];

	if (view_covers(v, dir) || (src->given && path_is_below(src->path, dir)))
		return 0;
	for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++)
		if (path_is_below(outside[i], dir))
			return 0;
	if (who->home && path_is_below(who->home, dir)) {
		const char *rest = dir + strlen(who->home);
		rest += *rest == '/';
		return !*rest || has_secret_part(dir) ? 0 : add_home_root(v, s, rest, e);
	}
	/* Somebody's home, seen from another account, is nobody's toolchain but brew's. */
	if (path_is_below("/home", dir) || path_is_below("/root", dir))
		return path_is_below("/home/linuxbrew/.linuxbrew", dir)
			       ? bind_once(v, s, "/home/linuxbrew/.linuxbrew", e)
			       : 0;
	if (path_is_below("/opt", dir) && dir[4]) {
		size_t n = 5 + strcspn(dir + 5, "/");
		(void)snprintf(top, sizeof(top), "%.*s", (int)n, dir);
		return bind_once(v, s, top, e);
	}
	if (path_is_below("/nix", dir))
		return bind_once(v, s, "/nix/store", e);
	if (path_is_below("/snap", dir))
		return bind_once(v, s, "/snap", e);
	return bind_once(v, s, dir, e);
}

int view_add_toolchains(struct view *v, const struct caller *who, const struct source *src,
			const struct refused *refused, struct err *e)
{
	const struct search s = {who, src, refused};
	const char *path = caller_env(who, "PATH");
	char raw[PATH_TEXT];
	char dir[PATH_TEXT];
	struct err ignored = {0};

	while (path && *path) {
		size_t n = strcspn(path, ":");
		if (n && n < sizeof(raw) && path[0] == '/') {
			memcpy(raw, path, n);
			raw[n] = '\0';
			if (path_clean(raw, dir, &ignored) == 0 && dir[1] &&
			    add_dir(v, &s, dir, e) < 0)
				return -1;
		}
		path += n;
		path += *path == ':';
	}
	return 0;
}

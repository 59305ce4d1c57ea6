/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table: each row looks at one change and says whether it is of its kind.
 */
#include "review/flags.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/base.h"
#include "base/num.h"
#include "base/term.h"
#include "policy/protect.h"
#include "review/secrets.h"

#define LARGE_BYTES ((uint64_t)10 << 20)
#define MAX_JSON_TEXT ((uint64_t)1 << 20)
#define MAX_JSON_DEPTH 64
#define SET_ID 06000u

const char *const flag_level_names[] = {"high", "medium", "low"};

struct look {
	const struct review *r;
	const struct change *c;
	const char *name; /* the last component */
	char detail[FLAG_DETAIL];
};

static bool in_list(const char *name, const char *const *list)
{
	while (*list && strcasecmp(name, *list) != 0)
		list++;
	return *list != NULL;
}

/* `path` lies below a directory of that name, at the top or anywhere. */
static bool has_dir(const char *path, const char *dir, bool anywhere)
{
	size_t n = strlen(dir);

	for (const char *p = path; p; p = strchr(p, '/')) {
		p += *p == '/';
		if (strncasecmp(p, dir, n) == 0 && p[n] == '/')
			return true;
		if (!anywhere)
			return false;
	}
	return false;
}

static bool is_hook(struct look *l)
{
	static const char *const names[] = {"config",     "config.worktree",
					    "attributes", "alternates",
					    "commondir",  "gitdir",
					    ".git",       NULL};

	if (!l->c->git)
		return false;
	if (has_dir(l->c->path, "hooks", true))
		return true;
	return in_list(l->name, names) || (S_ISLNK(l->c->after.mode) && l->c->after.mode);
}

static bool is_startup(struct look *l)
{
	char parent[PATH_NAME_MAX + 1] = "";
	char name[PATH_NAME_MAX + 1];
	struct protect_dir dir = {.place = PLACE_TREE};

	if (l->c->git)
		return false;
	for (const char *p = l->c->path; *p;) {
		size_t n = strcspn(p, "/");
		if (n > PATH_NAME_MAX)
			return false;
		memcpy(name, p, n);
		name[n] = '\0';
		if (protect_name(dir, parent, name) == PROTECT_TOOL ||
		    (!p[n] && S_ISLNK(l->c->after.mode) && protect_is_parent(name)))
			return true;
		memcpy(parent, name, n + 1);
		p += n + (p[n] == '/');
	}
	return false;
}

static bool is_ci(struct look *l)
{
	static const char *const names[] = {".gitlab-ci.yml",      "Jenkinsfile",
					    "azure-pipelines.yml", ".travis.yml",
					    ".drone.yml",          "bitbucket-pipelines.yml",
					    "appveyor.yml",        ".appveyor.yml",
					    ".cirrus.yml",         "cloudbuild.yaml",
					    "buildspec.yml",       ".woodpecker.yml",
					    ".gitlab-ci.yaml",     "CODEOWNERS",
					    "dependabot.yml",      NULL};
	static const char *const dirs[] =
		{".github/workflows",  ".github/actions", ".circleci",
		 ".buildkite",         ".woodpecker",     ".gitea/workflows",
		 ".forgejo/workflows", ".gitlab/ci",      ".tekton"};

	if (in_list(l->name, names))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		if (has_dir(l->c->path, dirs[i], false))
			return true;
	}
	return false;
}

static bool is_git_file(struct look *l)
{
	static const char *const names[] = {".gitattributes", ".gitmodules", ".lfsconfig", NULL};

	return in_list(l->name, names);
}

static bool is_set_id(struct look *l)
{
	return S_ISREG(l->c->after.mode) && (l->c->after.mode & SET_ID) &&
	       (l->c->before.mode & SET_ID) != (l->c->after.mode & SET_ID);
}

static bool is_special(struct look *l)
{
	mode_t m = l->c->after.mode;

	return m && !S_ISREG(m) && !S_ISDIR(m) && !S_ISLNK(m);
}

static bool is_masked(struct look *l)
{
	return l->c->masked && !S_ISDIR(l->c->after.mode);
}

static bool is_executable(struct look *l)
{
	return S_ISREG(l->c->after.mode) && (l->c->after.mode & 0111) && !l->c->git &&
	       !(S_ISREG(l->c->before.mode) && (l->c->before.mode & 0111));
}

bool flags_link_leaves(const char *path, const char *target)
{
	size_t depth = 0;

	if (target[0] == '/')
		return true;
	for (const char *p = path; (p = strchr(p, '/')); p++)
		depth++;
	for (const char *p = target; *p;) {
		size_t n = strcspn(p, "/");
		if (n == 2 && p[0] == '.' && p[1] == '.') {
			if (!depth--)
				return true;
		} else if (n && !(n == 1 && p[0] == '.')) {
			depth++;
		}
		p += n;
		p += *p == '/';
	}
	return false;
}

static bool is_link_out(struct look *l)
{
	char target[MAX_LINK_TEXT];
	struct err ignored = {0};

	if (!S_ISLNK(l->c->after.mode))
		return false;
	ssize_t n = change_readlink(l->r, &l->c->after, target, &ignored);
	if (n < 0 || !flags_link_leaves(l->c->path, target))
		return false;
	(void)term_escape_cut(l->detail, sizeof(l->detail), target, (size_t)n);
	return true;
}

static bool is_lockfile(struct look *l)
{
	static const char *const names[] = {"package-lock.json",
					    "npm-shrinkwrap.json",
					    "yarn.lock",
					    "pnpm-lock.yaml",
					    "bun.lock",
					    "bun.lockb",
					    "deno.lock",
					    "Cargo.lock",
					    "poetry.lock",
					    "Pipfile.lock",
					    "uv.lock",
					    "pdm.lock",
					    "go.sum",
					    "Gemfile.lock",
					    "composer.lock",
					    "gradle.lockfile",
					    "flake.lock",
					    "mix.lock",
					    "Podfile.lock",
					    "packages.lock.json",
					    "pubspec.lock",
					    "Package.resolved",
					    NULL};

	return in_list(l->name, names);
}

static bool is_build_script(struct look *l)
{
	static const char *const names[] = {"Makefile",
					    "GNUmakefile",
					    "setup.py",
					    "conftest.py",
					    "build.rs",
					    "binding.gyp",
					    "pyproject.toml",
					    "Cargo.toml",
					    "build.gradle",
					    "build.gradle.kts",
					    "Rakefile",
					    "justfile",
					    "Taskfile.yml",
					    "Dockerfile",
					    "docker-compose.yml",
					    "compose.yaml",
					    "CMakeLists.txt",
					    "configure",
					    "sitecustomize.py",
					    "pom.xml",
					    "noxfile.py",
					    "tox.ini",
					    "vite.config.js",
					    "webpack.config.js",
					    NULL};

	return in_list(l->name, names) && l->c->after.mode;
}

static bool is_large(struct look *l)
{
	char size[NUM_TEXT];

	if (!S_ISREG(l->c->after.mode) || l->c->after.size <= LARGE_BYTES || l->c->git)
		return false;
	(void)snprintf(l->detail, sizeof(l->detail), "%s", size_format(l->c->after.size, size));
	return true;
}

/* Up to max bytes of a side; NULL if there is no such file. */
static char *read_side(const struct review *r, const struct change_side *s, uint64_t max,
		       size_t *ret_n)
{
	struct err ignored = {0};
	size_t n = (size_t)(s->size < max ? s->size : max);
	size_t at = 0;

	*ret_n = 0;
	if (!S_ISREG(s->mode))
		return NULL;
	AUTO_FD int fd = change_open(r, s, &ignored);
	char *text = fd < 0 ? NULL : malloc(n + 1);
	while (text && at < n) {
		ssize_t some = RETRY_EINTR(read(fd, text + at, n - at));
		if (some <= 0)
			break;
		at += (size_t)some;
	}
	if (text)
		text[at] = '\0';
	*ret_n = at;
	return text;
}

/* A token of JSON from `at` on: a string, or one byte. Returns where it ends. */
static size_t skip_token(const char *text, size_t n, size_t at)
{
	if (text[at] != '"')
		return at + 1;
	for (at++; at < n && text[at] != '"'; at++)
		at += text[at] == '\\';
	return at < n ? at + 1 : n;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The value from `at` on, up to the comma or bracket that ends it. */
static void copy_value(const char *text, size_t n, size_t at, struct buf *out)
{
	int depth = 0;

	while (at < n) {
		char c = text[at];
		size_t end = skip_token(text, n, at);
		if (depth == 0 && (c == ',' || c == '}' || c == ']'))
			return;
		depth += (c == '{' || c == '[') - (c == '}' || c == ']');
		if (!is_blank(c))
			(void)buf_add(out, text + at, end - at);
		at = end;
	}
}

bool flags_json_member(const char *text, size_t n, const char *name, struct buf *out)
{
	size_t len = strlen(name);
	int depth = 0;

	for (size_t at = 0; at < n;) {
		size_t end = skip_token(text, n, at);
		bool is_name = depth == 1 && end - at == len + 2 && text[at] == '"' &&
			       memcmp(text + at + 1, name, len) == 0;
		depth +=
			(text[at] == '{' || text[at] == '[') - (text[at] == '}' || text[at] == ']');
		at = end;
		while (is_name && at < n && is_blank(text[at]))
			at++;
		if (!is_name || at >= n || text[at] != ':')
			continue;
		copy_value(text, n, at + 1, out);
		return true;
	}
	return false;
}

static bool is_package_script(struct look *l)
{
	static const char *const members[] = {"scripts", "bin", "gypfile", "pnpm", "overrides"};
	size_t a_n = 0;
	size_t b_n = 0;

	if (strcmp(l->name, "package.json") != 0 || !l->c->after.mode)
		return false;
	AUTO_FREE char *a = read_side(l->r, &l->c->before, MAX_JSON_TEXT, &a_n);
	AUTO_FREE char *b = read_side(l->r, &l->c->after, MAX_JSON_TEXT, &b_n);
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		AUTO_BUF was = BUF_INIT(MAX_JSON_TEXT);
		AUTO_BUF is = BUF_INIT(MAX_JSON_TEXT);
		bool had = a && flags_json_member(a, a_n, members[i], &was);
		bool has = b && flags_json_member(b, b_n, members[i], &is);
		if (had == has && strcmp(buf_cstr(&was), buf_cstr(&is)) == 0)
			continue;
		(void)snprintf(l->detail, sizeof(l->detail), "%s", members[i]);
		return true;
	}
	return false;
}

static const struct {
	enum flag_level level;
	const char *kind;
	bool (*is)(struct look *l);
	bool gone; /* what protects can be missing: a removal is one, too */
} rows[] = {
	{FLAG_HIGH, "git-hook-or-config", is_hook, true},
	{FLAG_HIGH, "startup-file", is_startup, true},
	{FLAG_HIGH, "ci-workflow", is_ci, true},
	{FLAG_HIGH, "set-id", is_set_id, false},
	{FLAG_MEDIUM, "git-attributes", is_git_file, true},
	{FLAG_MEDIUM, "package-script", is_package_script, false},
	{FLAG_MEDIUM, "build-script", is_build_script, false},
	{FLAG_MEDIUM, "executable", is_executable, false},
	{FLAG_MEDIUM, "symlink-leaves", is_link_out, false},
	{FLAG_MEDIUM, "special-file", is_special, false},
	{FLAG_MEDIUM, "masked-path", is_masked, false},
	{FLAG_LOW, "lockfile", is_lockfile, false},
	{FLAG_LOW, "large-file", is_large, false},
};

static int add(struct flags *f, const struct change *c, enum flag_level level, const char *kind,
	       const char *detail, struct err *e)
{
	if (f->n == MAX_FLAGS) {
		f->more++;
		return 0;
	}
	if (f->n == f->cap) {
		size_t cap = f->cap ? 2 * f->cap : 64;
		struct flag *v = reallocarray(f->v, cap, sizeof(*v));
		if (!v)
			return err_set(e, ERR_INTERNAL, "out of memory");
		f->v = v;
		f->cap = cap;
	}
	struct flag *new = &f->v[f->n++];
	*new = (struct flag){.change = c, .level = level, .kind = kind};
	(void)snprintf(new->detail, sizeof(new->detail), "%s", detail);
	return 0;
}

static bool looks_binary(const char *text, size_t n)
{
	return memchr(text, 0, n < 8000 ? n : 8000) != NULL;
}

static int find_secrets(struct flags *f, struct secrets *s, const struct review *r,
			const struct change *c, struct err *e)
{
	struct secret_found found[MAX_SECRETS];
	char detail[FLAG_DETAIL];
	bool given_up = false;
	size_t n = 0;
	size_t before_n = 0;

	AUTO_FREE char *text = read_side(r, &c->after, MAX_SECRET_TEXT, &n);
	if (!text)
		return 0;
	bool binary = looks_binary(text, n);
	AUTO_FREE char *before = read_side(r, &c->before, MAX_SECRET_TEXT, &before_n);
	size_t count = secrets_find(s, text, n, before, before_n, found, &given_up);
	for (size_t i = 0; i < count; i++) {
		(void)snprintf(detail, sizeof(detail), "%s, line %zu%s: %s", found[i].kind->name,
			       found[i].line, binary ? " of a binary file" : "", found[i].shown);
		if (add(f, c, FLAG_HIGH, "secret", detail, e) < 0)
			return -1;
	}
	if (!given_up && c->after.size <= MAX_SECRET_TEXT)
		return 0;
	return add(f, c, FLAG_LOW, "not-searched", "not all of it was searched for secrets", e);
}

static int find_all_secrets(struct flags *f, const struct review *r, const struct changes *c,
			    struct err *e)
{
	struct secrets *s = NULL;
	uint64_t bytes = 0;
	int rc = secrets_new(&s, e);

	for (size_t i = 0; i < c->n && rc == 0; i++) {
		const struct change *x = &c->v[i];
		uint64_t size = x->after.size < MAX_SECRET_TEXT ? x->after.size : MAX_SECRET_TEXT;
		if (!S_ISREG(x->after.mode) || !size || (x->git && strstr(x->path, "/objects/")))
			continue;
		if (size > MAX_FLAG_SEARCHED - bytes) {
			rc = add(f, x, FLAG_LOW, "not-searched",
				 "from here on too much to search for secrets", e);
			break;
		}
		bytes += size;
		rc = find_secrets(f, s, r, x, e);
	}
	secrets_free(s);
	return rc;
}

static int by_level(const void *a, const void *b)
{
	const struct flag *x = a;
	const struct flag *y = b;

	if (x->level != y->level)
		return x->level < y->level ? -1 : 1;
	int rc = strcmp(x->change->path, y->change->path);
	if (rc == 0)
		rc = strcmp(x->kind, y->kind);
	return rc ? rc : strcmp(x->detail, y->detail);
}

static int find_rows(struct flags *f, const struct review *r, const struct change *c, struct err *e)
{
	const char *slash = strrchr(c->path, '/');
	struct look l = {.r = r, .c = c, .name = slash ? slash + 1 : c->path};

	/* A directory is seen by what is in it. */
	bool gone = !c->after.mode || S_ISDIR(c->after.mode);
	if (gone && (!c->before.mode || S_ISDIR(c->before.mode)))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (gone && !rows[i].gone)
			continue;
		(void)snprintf(l.detail, sizeof(l.detail), "%s", gone ? "removed" : "");
		if (rows[i].is(&l) && add(f, c, rows[i].level, rows[i].kind, l.detail, e) < 0)
			return -1;
	}
	return 0;
}

int flags_find(const struct review *r, const struct changes *c, struct flags *ret, struct err *e)
{
	struct flags f = {.v = NULL};
	int rc = 0;

	for (size_t i = 0; i < c->n && rc == 0; i++)
		rc = find_rows(&f, r, &c->v[i], e);
	if (rc == 0)
		rc = find_all_secrets(&f, r, c, e);
	if (rc < 0) {
		flags_release(&f);
		return -1;
	}
	if (f.n)
		qsort(f.v, f.n, sizeof(*f.v), by_level);
	*ret = f;
	return 0;
}

void flags_release(struct flags *f)
{
	free(f->v);
	*f = (struct flags){.v = NULL};
}

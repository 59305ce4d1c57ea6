/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of protected names. A name more costs a file that a command cannot
 * change; a name too few lets it run a program on the host: in doubt it is here.
 */
#include "policy/protect.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "base/utf8.h"

/* Anywhere in a work tree; files and directories alike. */
/* clang-format off */
static const char *const tool_names[] = {
	/* agents */
	".agents", ".aider.conf.yml", ".amazonq", ".amp", ".augment", ".cline", ".clinerules",
	".cursorrules", ".factory", ".claude", ".codex", ".continue", ".crush.json",
	".cursor", ".gemini", ".junie", ".kiro", ".mcp.json", ".opencode", ".qwen", ".roo",
	".sandglass", ".windsurf",
	"opencode.json", "opencode.jsonc", "sandglass.tools.yaml",
	/* editors */
	".devcontainer", ".devcontainer.json", ".dir-locals.el", ".exrc", ".fleet", ".helix", ".idea",
	".lvimrc", ".nvim.lua", ".nvimrc", ".run", ".vimrc", ".vscode", ".zed",
	/* tools */
	".aws", ".bazelrc", ".envrc", ".envrc.local", ".gdbinit", ".ghci", ".iex.exs", ".lldbinit", ".renviron", ".gitconfig", ".husky", ".irbrc", ".lefthook.json",
	".lefthook.toml", ".lefthook.yaml", ".lefthook.yml", ".mise.local.toml", ".mise.toml",
	".mvn", ".npmrc", ".pdbrc", ".pnpmfile.cjs", ".pnpmfile.mjs", ".pre-commit-config.yaml", ".pryrc", ".ripgreprc", ".rprofile",
	".yarnrc", ".yarnrc.yml", "bunfig.toml", "lefthook-local.yaml", "lefthook-local.yml", "lefthook.json",
	"lefthook.toml", "lefthook.yaml", "lefthook.yml", "mise.local.toml", "mise.toml",
	/* shells */
	".bash_aliases", ".bash_login", ".bash_logout", ".bash_profile", ".bashrc", ".cshrc",
	".kshrc", ".login", ".logout", ".mkshrc", ".profile", ".tcshrc", ".zlogin", ".zlogout",
	".zprofile", ".zshenv", ".zshrc", ".xonshrc",
};
/* clang-format on */

/* Only in a directory of that name. */
static const struct {
	const char *parent, *name;
} tool_pairs[] = {
	{".cargo", "config"},     {".cargo", "config.toml"},
	{".yarn", "plugins"},     {".hg", "hgrc"},
	{".yarn", "releases"},    {".yarn", "sdks"},
	{".config", "mise.toml"}, {".mise", "config.toml"},
	{"mise", "config.toml"},  {".config", "lefthook.yml"},
};

static const struct {
	uint8_t role;
	const char *name;
	uint8_t class;
} git_names[] = {
	{ROLE_GITDIR, "hooks", PROTECT_HOOKS},
	{ROLE_GITDIR, "config", PROTECT_CONFIG},
	{ROLE_GITDIR, "config.worktree", PROTECT_CONFIG_WORKTREE},
	{ROLE_GITDIR, "commondir", PROTECT_COMMONDIR},
	{ROLE_GITDIR, "gitdir", PROTECT_GITDIR},
	{ROLE_INFO, "attributes", PROTECT_ATTRIBUTES},
	{ROLE_OBJECTS_INFO, "alternates", PROTECT_ALTERNATES},
	{ROLE_REBASE, "git-rebase-todo", PROTECT_TODO},
	{ROLE_REBASE, "strategy", PROTECT_STATE},
	{ROLE_REBASE, "apply-opt", PROTECT_STATE},
	{ROLE_SEQUENCER, "todo", PROTECT_TODO},
	{ROLE_SEQUENCER, "opts", PROTECT_STATE},
};

static const struct {
	uint8_t role;
	const char *name;
	uint8_t child;
} git_dirs[] = {
	{ROLE_GITDIR, "info", ROLE_INFO},           {ROLE_GITDIR, "objects", ROLE_OBJECTS},
	{ROLE_GITDIR, "rebase-merge", ROLE_REBASE}, {ROLE_GITDIR, "rebase-apply", ROLE_REBASE},
	{ROLE_GITDIR, "sequencer", ROLE_SEQUENCER}, {ROLE_GITDIR, "remotes", ROLE_REMOTES},
	{ROLE_GITDIR, "branches", ROLE_REMOTES},    {ROLE_GITDIR, "refs", ROLE_REFS},
	{ROLE_GITDIR, "modules", ROLE_MODULES},     {ROLE_GITDIR, "worktrees", ROLE_WORKTREES},
	{ROLE_OBJECTS, "info", ROLE_OBJECTS_INFO},
};

const char *protect_reason(enum protect_class c)
{
	static const char *const reasons[PROTECT_CLASSES] = {
		[PROTECT_NONE] = "",
		[PROTECT_TOOL] = "programs of the host run what it names",
		[PROTECT_GIT] = "git on the host would take its configuration from there",
		[PROTECT_HOOKS] = "git on the host runs hooks",
		[PROTECT_CONFIG] = "git on the host runs what its configuration names",
		[PROTECT_CONFIG_WORKTREE] = "git on the host runs what its configuration names",
		[PROTECT_COMMONDIR] = "git on the host would take its configuration from there",
		[PROTECT_GITDIR] = "git on the host would work at a place outside this source",
		[PROTECT_ATTRIBUTES] = "attributes choose filters that git on the host runs",
		[PROTECT_ALTERNATES] = "git on the host would read objects from elsewhere",
		[PROTECT_TODO] = "git rebase --continue on the host runs what the list says",
		[PROTECT_STATE] = "git on the host goes on with the program that it names",
		[PROTECT_REMOTE] = "git on the host takes a remote from it",
		[PROTECT_LINK] = "git on the host would write to where it leads",
		[PROTECT_LAYOUT] = "it makes the directory a git repository that runs programs",
	};

	return reasons[c];
}

/* Default_Ignorable_Code_Point of Unicode: git and file systems drop such characters. */
static bool is_invisible(uint32_t cp)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{0xad, 0xad},       {0x34f, 0x34f},   {0x61c, 0x61c},     {0x115f, 0x1160},
		{0x17b4, 0x17b5},   {0x180b, 0x180f}, {0x200b, 0x200f},   {0x202a, 0x202e},
		{0x2060, 0x206f},   {0x3164, 0x3164}, {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
		{0xffa0, 0xffa0},   {0xfff0, 0xfff8}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
		{0xe0000, 0xe0fff},
	};

	for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
		if (cp >= ranges[i].first && cp <= ranges[i].last)
			return true;
	return false;
}

/* One character as it is compared, as up to three letters. */
static const char *fold(uint32_t cp, char one[2])
{
	/* What Unicode folds to ASCII letters (CaseFolding.txt, C and F). */
	static const struct {
		uint32_t cp;
		const char *text;
	} letters[] = {
		{0xdf, "ss"},    {0x17f, "s"},   {0x1e9e, "ss"}, {0x212a, "k"},
		{0xfb00, "ff"},  {0xfb01, "fi"}, {0xfb02, "fl"}, {0xfb03, "ffi"},
		{0xfb04, "ffl"}, {0xfb05, "st"}, {0xfb06, "st"},
	};

	if (cp < 0x80) {
		one[0] = cp >= 'A' && cp <= 'Z' ? (char)(cp + 32) : (char)cp;
		return one;
	}
	if (is_invisible(cp))
		return "";
	for (size_t i = 0; i < ARRAY_LEN(letters); i++)
		if (letters[i].cp == cp)
			return letters[i].text;
	return "?"; /* in no name of ours */
}

bool protect_fold(const char *name, char ret[PROTECT_FOLD])
{
	size_t left = strlen(name);
	size_t n = 0;
	char one[2] = "";

	while (left) {
		uint32_t cp = (unsigned char)*name;
		size_t len = cp < 0x80 ? 1 : utf8_decode(name, left, &cp);
		const char *text = len ? fold(cp, one) : "?";
		size_t add = strlen(text);
		if (n + add >= PROTECT_FOLD)
			return false;
		memcpy(ret + n, text, add);
		n += add;
		name += len ? len : 1;
		left -= len ? len : 1;
	}
	ret[n] = '\0';
	return true;
}

static enum protect_class git_name(enum protect_role role, const char *folded)
{
	if (role == ROLE_MODULES)
		role = ROLE_GITDIR;
	for (size_t i = 0; i < ARRAY_LEN(git_names); i++)
		if (git_names[i].role == role && strcmp(git_names[i].name, folded) == 0)
			return (enum protect_class)git_names[i].class;
	return PROTECT_NONE;
}

/* NAME.code-workspace of Visual Studio Code: tasks, settings. */
static bool is_workspace(const char *name)
{
	static const char end[] = ".code-workspace";
	size_t n = strlen(name);

	return n >= sizeof(end) && strcasecmp(name + n - sizeof(end) + 1, end) == 0;
}

static bool is_tool(const char *parent, const char *folded)
{
	char above[PROTECT_FOLD];

	if (is_workspace(folded))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(tool_names); i++)
		if (strcmp(tool_names[i], folded) == 0)
			return true;
	if (!protect_fold(parent, above) || (above[0] != '.' && above[0] != 'm'))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(tool_pairs); i++)
		if (strcmp(tool_pairs[i].name, folded) == 0 &&
		    strcmp(tool_pairs[i].parent, above) == 0)
			return true;
	return false;
}

bool protect_is_parent(const char *name)
{
	char folded[PROTECT_FOLD];

	if (!protect_fold(name, folded))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(tool_pairs); i++)
		if (strcmp(tool_pairs[i].parent, folded) == 0)
			return true;
	return false;
}

enum protect_class protect_name(struct protect_dir dir, const char *parent, const char *name)
{
	char folded[PROTECT_FOLD];

	if (dir.place == PLACE_INNER || dir.place == PLACE_NAMED)
		return PROTECT_NONE;
	if (dir.role == ROLE_REMOTES)
		return PROTECT_REMOTE;
	if (!protect_fold(name, folded))
		return dir.place == PLACE_TREE && is_workspace(name) ? PROTECT_TOOL : PROTECT_NONE;
	if (strcmp(folded, ".git") == 0)
		return PROTECT_GIT;
	enum protect_class c = git_name((enum protect_role)dir.role, folded);
	if (c == PROTECT_NONE && dir.place == PLACE_TREE && is_tool(parent, folded))
		c = PROTECT_TOOL;
	return c;
}

static bool is_one_of(const char *name, const char *const *list)
{
	for (; *list; list++)
		if (strcmp(name, *list) == 0)
			return true;
	return false;
}

/* The role of a directory in a git directory's own tree. */
static enum protect_role child_role(enum protect_role role, const char *folded)
{
	for (size_t i = 0; i < ARRAY_LEN(git_dirs); i++)
		if (git_dirs[i].role == role && strcmp(git_dirs[i].name, folded) == 0)
			return (enum protect_role)git_dirs[i].child;
	if (role == ROLE_MODULES || role == ROLE_REFS)
		return role;
	return role == ROLE_WORKTREES ? ROLE_GITDIR : ROLE_NONE;
}

/* Objects lie in directories named by their first byte. */
static bool is_hex_pair(const char *name)
{
	return strlen(name) == 2 && strspn(name, "0123456789abcdef") == 2;
}

/* Trees of packages that nobody edits: far more files than a project has. */
static const char *const skipped[] = {"node_modules", ".venv", "target", NULL};
static const char *const quiet[] = {"vendor", "dist", "build", NULL};

bool protect_is_quiet(const char *name)
{
	return is_one_of(name, skipped) || is_one_of(name, quiet) || strcmp(name, ".git") == 0;
}

bool protect_child(struct protect_dir dir, const char *name, struct protect_dir *ret)
{
	static const char *const git_skipped[] = {"lfs", NULL};
	char folded[PROTECT_FOLD];

	if (!protect_fold(name, folded))
		folded[0] = '\0';
	*ret = (struct protect_dir){.place = dir.place, .role = ROLE_NONE};
	if (dir.place == PLACE_NAMED)
		return true;
	if (dir.place == PLACE_INNER)
		return !is_one_of(name, skipped);
	if (strcmp(folded, ".git") == 0) {
		*ret = (struct protect_dir){.place = PLACE_GIT, .role = ROLE_GITDIR};
		return true;
	}
	ret->role = (uint8_t)child_role((enum protect_role)dir.role, folded);
	if (dir.place == PLACE_GIT && dir.role == ROLE_OBJECTS &&
	    (is_hex_pair(name) || strcmp(name, "pack") == 0))
		return false;
	if (dir.place == PLACE_GIT)
		return !(dir.role == ROLE_GITDIR && is_one_of(folded, git_skipped));
	if (dir.role == ROLE_NONE && is_one_of(name, skipped))
		return false;
	if (is_one_of(name, quiet))
		ret->place = PLACE_QUIET;
	return true;
}

unsigned int protect_layout_bit(const char *name)
{
	static const struct {
		const char *name;
		unsigned int bit;
	} names[] = {
		{"head", LAYOUT_HEAD},
		{"objects", LAYOUT_OBJECTS},
		{"refs", LAYOUT_REFS},
		{"commondir", LAYOUT_COMMONDIR},
	};
	char folded[PROTECT_FOLD];

	if (!protect_fold(name, folded))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(names[i].name, folded) == 0)
			return names[i].bit;
	return 0;
}

bool protect_layout_is_git(unsigned int bits)
{
	return ((bits & LAYOUT_OBJECTS) && (bits & LAYOUT_REFS)) ||
	       ((bits & LAYOUT_HEAD) && (bits & LAYOUT_COMMONDIR));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which names are protected, however they are spelled, and where.
 */
#include "policy/protect.h"

#include "base/base.h"
#include "test_base_suite.h"

#define TREE ((struct protect_dir){.place = PLACE_TREE, .role = ROLE_NONE})
#define QUIET ((struct protect_dir){.place = PLACE_QUIET, .role = ROLE_NONE})
#define IN_GIT(r) ((struct protect_dir){.place = PLACE_GIT, .role = (r)})
#define INNER ((struct protect_dir){.place = PLACE_INNER, .role = ROLE_NONE})
#define BARE(r) ((struct protect_dir){.place = PLACE_TREE, .role = (r)})

static void is(struct protect_dir dir, const char *parent, const char *name,
	       enum protect_class want)
{
	enum protect_class got = protect_name(dir, parent, name);

	ck_assert_msg(got == want, "\"%s\" in \"%s\" (place %u, role %u): %d, not %d", name, parent,
		      dir.place, dir.role, (int)got, (int)want);
}

static const char *const tools[] = {
	".agents",
	".aider.conf.yml",
	".amp",
	".claude",
	".codex",
	".continue",
	".crush.json",
	".cursor",
	".gemini",
	".junie",
	".kiro",
	".mcp.json",
	".opencode",
	".qwen",
	".roo",
	".sandglass",
	".windsurf",
	"opencode.json",
	"opencode.jsonc",
	"sandglass.tools.yaml",
	".devcontainer",
	".devcontainer.json",
	".dir-locals.el",
	".exrc",
	".helix",
	".idea",
	".lvimrc",
	".nvim.lua",
	".nvimrc",
	".run",
	".vimrc",
	".vscode",
	".zed",
	".aws",
	".envrc",
	".gdbinit",
	".gitconfig",
	".husky",
	".irbrc",
	".lefthook.json",
	".lefthook.toml",
	".lefthook.yaml",
	".lefthook.yml",
	".mise.local.toml",
	".mise.toml",
	".mvn",
	".npmrc",
	".pdbrc",
	".pnpmfile.cjs",
	".pnpmfile.mjs",
	".pre-commit-config.yaml",
	".pryrc",
	".ripgreprc",
	".rprofile",
	".yarnrc",
	".yarnrc.yml",
	"bunfig.toml",
	"lefthook-local.yaml",
	"lefthook-local.yml",
	"lefthook.json",
	"lefthook.toml",
	"lefthook.yaml",
	"lefthook.yml",
	"mise.local.toml",
	"mise.toml",
	".bash_aliases",
	".bash_login",
	".bash_logout",
	".bash_profile",
	".bashrc",
	".cshrc",
	".kshrc",
	".login",
	".logout",
	".mkshrc",
	".profile",
	".tcshrc",
	".zlogin",
	".zlogout",
	".zprofile",
	".zshenv",
	".zshrc",
	".xonshrc",
};

static const struct {
	const char *parent, *name;
} pairs[] = {
	{".cargo", "config"},     {".cargo", "config.toml"}, {".yarn", "plugins"},
	{".yarn", "releases"},    {".yarn", "sdks"},         {".config", "mise.toml"},
	{".mise", "config.toml"}, {"mise", "config.toml"},   {".config", "lefthook.yml"},
	{".hg", "hgrc"},
};

static void upper(const char *s, char *ret)
{
	for (; *s; s++)
		*ret++ = *s >= 'a' && *s <= 'z' ? (char)(*s - 32) : *s;
	*ret = '\0';
}

/* Each in an ordinary directory, in any case; in no other place. */
START_TEST(tool_names)
{
	char name[96];

	for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
		is(TREE, "src", tools[i], PROTECT_TOOL);
		is(TREE, "", tools[i], PROTECT_TOOL);
		upper(tools[i], name);
		is(TREE, "src", name, PROTECT_TOOL);
		is(QUIET, "src", tools[i], PROTECT_NONE);
		is(INNER, "src", tools[i], PROTECT_NONE);
		is(IN_GIT(ROLE_NONE), "src", tools[i], PROTECT_NONE);
		is(IN_GIT(ROLE_GITDIR), "src", tools[i], PROTECT_NONE);
		/* A name that only holds it is another one. */
		snprintf(name, sizeof(name), "%sx", tools[i]);
		is(TREE, "src", name, PROTECT_NONE);
		snprintf(name, sizeof(name), "x%s", tools[i]);
		is(TREE, "src", name, PROTECT_NONE);
		snprintf(name, sizeof(name), "%s ", tools[i]);
		is(TREE, "src", name, PROTECT_NONE);
	}
}
END_TEST

START_TEST(tool_pairs)
{
	static const char *const others[] = {"", "src", ".cargo2", "cargo", ".CONFI", "m", "."};
	char parent[96], name[96];

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		is(TREE, pairs[i].parent, pairs[i].name, PROTECT_TOOL);
		upper(pairs[i].parent, parent);
		upper(pairs[i].name, name);
		is(TREE, parent, name, PROTECT_TOOL);
		snprintf(parent, sizeof(parent), "\xe2\x80\x8b%s\xe2\x80\x8b", pairs[i].parent);
		is(TREE, parent, pairs[i].name, PROTECT_TOOL);
		is(QUIET, pairs[i].parent, pairs[i].name, PROTECT_NONE);
		is(IN_GIT(ROLE_NONE), pairs[i].parent, pairs[i].name, PROTECT_NONE);
		for (size_t k = 0; k < ARRAY_LEN(others); k++)
			if (strcmp(pairs[i].name, "mise.toml") != 0 &&
			    strcmp(pairs[i].name, "lefthook.yml") != 0)
				is(TREE, others[k], pairs[i].name, PROTECT_NONE);
	}
	is(TREE, ".cargo", "releases", PROTECT_NONE);
	is(TREE, ".yarn", "config", PROTECT_NONE);
	is(TREE, ".yarn", "cache", PROTECT_NONE);
}
END_TEST

/* By how they end, whatever their length. */
START_TEST(workspaces)
{
	static const char end[] = ".code-workspace";
	char name[256];

	for (size_t n = 1; n + sizeof(end) <= 256; n += n < 70 ? 1 : 10) {
		memset(name, 'w', n);
		memcpy(name + n, end, sizeof(end));
		is(TREE, "src", name, PROTECT_TOOL);
		is(QUIET, "src", name, PROTECT_NONE);
		is(IN_GIT(ROLE_GITDIR), "src", name, PROTECT_NONE);
	}
	is(TREE, "src", "Two Words.Code-WorkSpace", PROTECT_TOOL);
	is(TREE, "src", "a.code-work\xe2\x80\x8bspace", PROTECT_TOOL);
	is(TREE, "src", "a.code-work\xc5\xbfpace", PROTECT_TOOL);
	is(TREE, "src", "a.code-workspaces", PROTECT_NONE);
	is(TREE, "src", "a.code-workspace.bak", PROTECT_NONE);
	is(TREE, "src", "a-code-workspace", PROTECT_NONE);
	is(TREE, "src", "code-workspace", PROTECT_NONE);
}
END_TEST

START_TEST(ordinary_names)
{
	static const char *const names[] = {"",
					    ".",
					    "..",
					    "git",
					    ".gi",
					    ".git2",
					    "-",
					    "config",
					    "hooks",
					    "HEAD",
					    "commondir",
					    "gitdir",
					    "refs",
					    "objects",
					    "Makefile",
					    ".gitignore",
					    ".gitmodules",
					    ".gitattributes",
					    "attributes",
					    "package.json",
					    "head",
					    ".github",
					    "?git",
					    ".g?t",
					    ".g\xc3\xaft"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		is(TREE, "src", names[i], PROTECT_NONE);
		is(QUIET, "src", names[i], PROTECT_NONE);
		is(IN_GIT(ROLE_NONE), "src", names[i], PROTECT_NONE);
	}
}
END_TEST

/*
 * `.git` counts in every place, whatever the directory is to git; as a remote, in
 * one. Inside of what is protected as a whole no name counts.
 */
START_TEST(git_everywhere)
{
	static const char *const spelled[] =
		{".git", ".GIT", ".Git", ".gIt", ".giT", ".g\xe2\x80\x8cit", "\xef\xbb\xbf.git"};

	for (uint8_t place = 0; place < PLACES; place++)
		for (uint8_t role = 0; role < ROLES; role++)
			for (size_t i = 0; i < ARRAY_LEN(spelled); i++)
				is((struct protect_dir){.place = place, .role = role}, "x",
				   spelled[i],
				   place == PLACE_INNER || place == PLACE_NAMED ? PROTECT_NONE
				   : role == ROLE_REMOTES                       ? PROTECT_REMOTE
										: PROTECT_GIT);
}
END_TEST

static const struct {
	uint8_t role;
	const char *name;
	enum protect_class class;
} git_rows[] = {
	{ROLE_GITDIR, "hooks", PROTECT_HOOKS},
	{ROLE_GITDIR, "config", PROTECT_CONFIG},
	{ROLE_GITDIR, "config.worktree", PROTECT_CONFIG_WORKTREE},
	{ROLE_GITDIR, "commondir", PROTECT_COMMONDIR},
	{ROLE_GITDIR, "gitdir", PROTECT_GITDIR},
	{ROLE_MODULES, "hooks", PROTECT_HOOKS},
	{ROLE_MODULES, "config", PROTECT_CONFIG},
	{ROLE_MODULES, "config.worktree", PROTECT_CONFIG_WORKTREE},
	{ROLE_MODULES, "commondir", PROTECT_COMMONDIR},
	{ROLE_MODULES, "gitdir", PROTECT_GITDIR},
	{ROLE_INFO, "attributes", PROTECT_ATTRIBUTES},
	{ROLE_OBJECTS_INFO, "alternates", PROTECT_ALTERNATES},
	{ROLE_REBASE, "git-rebase-todo", PROTECT_TODO},
	{ROLE_REBASE, "strategy", PROTECT_STATE},
	{ROLE_REBASE, "apply-opt", PROTECT_STATE},
	{ROLE_SEQUENCER, "todo", PROTECT_TODO},
	{ROLE_SEQUENCER, "opts", PROTECT_STATE},
};

/* Each name of git in each role and place: exactly the rows above. */
START_TEST(git_names)
{
	char name[96];

	for (size_t i = 0; i < ARRAY_LEN(git_rows); i++) {
		upper(git_rows[i].name, name);
		for (uint8_t role = 0; role < ROLES; role++) {
			enum protect_class want =
				role == ROLE_REMOTES ? PROTECT_REMOTE : PROTECT_NONE;
			for (size_t k = 0; k < ARRAY_LEN(git_rows); k++)
				if (git_rows[k].role == role &&
				    strcmp(git_rows[k].name, git_rows[i].name) == 0)
					want = git_rows[k].class;
			for (uint8_t place = 0; place < PLACES; place++) {
				struct protect_dir dir = {.place = place, .role = role};
				bool none = place == PLACE_INNER || place == PLACE_NAMED;
				enum protect_class c = none ? PROTECT_NONE : want;
				is(dir, "x", git_rows[i].name, c);
				is(dir, "x", name, c);
			}
		}
	}
	is(IN_GIT(ROLE_GITDIR), "x", "info", PROTECT_NONE);
	is(IN_GIT(ROLE_GITDIR), "x", "HEAD", PROTECT_NONE);
	is(IN_GIT(ROLE_GITDIR), "x", "config.lock", PROTECT_NONE);
	is(IN_GIT(ROLE_GITDIR), "x", "hooks.d", PROTECT_NONE);
	/* A bare repository in a work tree: both lists count. */
	is(BARE(ROLE_GITDIR), "x", ".envrc", PROTECT_TOOL);
	is(BARE(ROLE_GITDIR), "x", "hooks", PROTECT_HOOKS);
	is(BARE(ROLE_GITDIR), ".cargo", "config", PROTECT_CONFIG);
}
END_TEST

/* Every name in `remotes` and `branches` is one, however it is spelled. */
START_TEST(remote_names)
{
	static const char *const names[] = {"origin",   "ORIGIN",       ".git", "hooks",
					    "\xff\xfe", "\xe2\x80\x8b", " ",    "a\nb"};
	char name[256];

	for (uint8_t place = 0; place < PLACE_INNER; place++) {
		struct protect_dir dir = {.place = place, .role = ROLE_REMOTES};
		for (size_t i = 0; i < ARRAY_LEN(names); i++)
			is(dir, "remotes", names[i], PROTECT_REMOTE);
		memset(name, 'n', 255);
		for (size_t n = 62; n <= 255; n += n < 65 ? 1 : 95) {
			name[n] = '\0';
			is(dir, "remotes", name, PROTECT_REMOTE);
			name[n] = 'n';
		}
	}
}
END_TEST

START_TEST(reasons)
{
	static const char *const words[PROTECT_CLASSES] = {
		[PROTECT_NONE] = "",
		[PROTECT_TOOL] = "programs of the host",
		[PROTECT_GIT] = "take its configuration from there",
		[PROTECT_HOOKS] = "runs hooks",
		[PROTECT_CONFIG] = "runs what its configuration names",
		[PROTECT_CONFIG_WORKTREE] = "runs what its configuration names",
		[PROTECT_COMMONDIR] = "take its configuration from there",
		[PROTECT_GITDIR] = "outside this source",
		[PROTECT_ATTRIBUTES] = "filters",
		[PROTECT_ALTERNATES] = "objects from elsewhere",
		[PROTECT_TODO] = "rebase --continue",
		[PROTECT_STATE] = "goes on with the program",
		[PROTECT_REMOTE] = "takes a remote",
		[PROTECT_LINK] = "where it leads",
		[PROTECT_LAYOUT] = "a git repository",
	};

	for (int c = 0; c < PROTECT_CLASSES; c++) {
		const char *text = protect_reason((enum protect_class)c);
		ck_assert_ptr_nonnull(text);
		ck_assert_msg(strstr(text, words[c]) != NULL, "class %d: \"%s\"", c, text);
		ck_assert_int_eq(text[0] == '\0', c == PROTECT_NONE);
	}
}
END_TEST

static size_t encode(uint32_t cp, char *ret)
{
	if (cp < 0x80) {
		ret[0] = (char)cp;
		return 1;
	}
	size_t n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
	for (size_t i = n - 1; i > 0; i--, cp >>= 6)
		ret[i] = (char)(0x80 | (cp & 0x3f));
	ret[0] = (char)((0xf00u >> n & 0xf0u) | cp);
	return n;
}

/* Unicode's Default_Ignorable_Code_Point, and what git drops; file systems that fold drop them. */
static const struct {
	uint32_t first, last;
} invisible[] = {
	{0xad, 0xad},       {0x34f, 0x34f},   {0x61c, 0x61c},     {0x115f, 0x1160},
	{0x17b4, 0x17b5},   {0x180b, 0x180f}, {0x200b, 0x200f},   {0x202a, 0x202e},
	{0x2060, 0x206f},   {0x3164, 0x3164}, {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
	{0xffa0, 0xffa0},   {0xfff0, 0xfff8}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
	{0xe0000, 0xe0fff},
};

/* `text` with one character put in at `where`. */
static const char *with(const char *text, size_t where, uint32_t cp, char *ret)
{
	memcpy(ret, text, where);
	size_t n = encode(cp, ret + where);
	memcpy(ret + where + n, text + where, strlen(text + where) + 1);
	return ret;
}

/* At the start, between any two letters, at the end. */
START_TEST(invisible_characters)
{
	char name[64];

	for (size_t r = 0; r < ARRAY_LEN(invisible); r++) {
		uint32_t first = invisible[r].first, last = invisible[r].last;
		for (uint32_t cp = first; cp <= last; cp += last - first > 64 ? 61 : 1)
			for (size_t where = 0; where <= 4; where++) {
				enum protect_class c =
					protect_name(TREE, "x", with(".git", where, cp, name));
				ck_assert_msg(c == PROTECT_GIT, "U+%04X at %zu of .git: %d", cp,
					      where, (int)c);
			}
		is(TREE, "x", with(".envrc", 6, last, name), PROTECT_TOOL);
		is(IN_GIT(ROLE_GITDIR), "x", with("config", 3, first, name), PROTECT_CONFIG);
	}
}
END_TEST

/* What can be seen beside them is not dropped. */
START_TEST(visible_characters)
{
	static const uint32_t cps[] = {' ',    '~',    0x7f,   0xa0,   0xac,   0xae,    0x350,
				       0x2010, 0x2030, 0x2070, 0xfe10, 0xfffd, 0x1f600, 0xe1000};
	char name[64], folded[PROTECT_FOLD];

	for (size_t i = 0; i < ARRAY_LEN(cps); i++) {
		for (size_t where = 0; where <= 4; where++)
			is(TREE, "x", with(".git", where, cps[i], name), PROTECT_NONE);
		ck_assert(protect_fold(with("ab", 1, cps[i], name), folded));
		ck_assert_uint_eq(strlen(folded), 3);
	}
}
END_TEST

/* Of all characters, those that fold to ASCII alone (Unicode, CaseFolding.txt, C and F). */
START_TEST(folded_characters)
{
	char folded[PROTECT_FOLD];

	is(IN_GIT(ROLE_GITDIR), "x", "hook\xc5\xbf", PROTECT_HOOKS);
	is(IN_GIT(ROLE_GITDIR), "x", "hoo\xe2\x84\xaas", PROTECT_HOOKS);
	is(TREE, "x", ".hu\xc5\xbf\xe2\x84\xaay", PROTECT_TOOL);
	ck_assert(protect_fold("\xc5\xbf\xe2\x84\xaaSK", folded));
	ck_assert_str_eq(folded, "sksk");
	/* Not the dotted and dotless i, nor an S with something on it. */
	is(TREE, "x", ".g\xc4\xb0t", PROTECT_NONE);
	is(TREE, "x", ".g\xc4\xb1t", PROTECT_NONE);
	is(IN_GIT(ROLE_GITDIR), "x", "hook\xc5\x9b", PROTECT_NONE);
}
END_TEST

/* A ligature is two letters to a file system that folds: `con<fi>g` is `config` there. */
START_TEST(folded_ligatures)
{
	is(IN_GIT(ROLE_GITDIR), "x", "con\xef\xac\x81g", PROTECT_CONFIG);
	is(IN_GIT(ROLE_GITDIR), "x", "CON\xef\xac\x81G.worktree", PROTECT_CONFIG_WORKTREE);
	is(TREE, "x", ".gitcon\xef\xac\x81g", PROTECT_TOOL);
	is(TREE, "x", ".pro\xef\xac\x81le", PROTECT_TOOL);
	is(TREE, ".cargo", "con\xef\xac\x81g", PROTECT_TOOL);
	is(IN_GIT(ROLE_REBASE), "x", "\xef\xac\x86rategy", PROTECT_STATE);
	is(IN_GIT(ROLE_REBASE), "x", "\xef\xac\x85rategy", PROTECT_STATE);
	is(IN_GIT(ROLE_INFO), "x", "attribute\xc5\xbf", PROTECT_ATTRIBUTES);
	ck_assert_uint_eq(protect_layout_bit("re\xef\xac\x80s"), 0);
	ck_assert_uint_eq(protect_layout_bit("object\xef\xac\x86"), 0);
	/* Not the armenian ones behind them. */
	is(IN_GIT(ROLE_GITDIR), "x", "con\xef\xac\x93g", PROTECT_NONE);
}
END_TEST

START_TEST(fold)
{
	static const struct {
		const char *name, *want;
	} rows[] = {
		{"", ""},
		{"aBcXyZ.-_09", "abcxyz.-_09"},
		{"@[`{", "@[`{"},
		{"\xc3\x9f\xe1\xba\x9e", "ssss"},
		{"\xef\xac\x80\xef\xac\x81\xef\xac\x82", "fffifl"},
		{"\xef\xac\x83\xef\xac\x84", "ffiffl"},
		{"\xef\xac\x85\xef\xac\x86\xef\xac\x87", "stst?"},
		{"caf\xc3\xa9", "caf?"},
		{"\xf0\x9f\x98\x80", "?"},
		{"\xe2\x80\x8b", ""},
		/* Invalid: one sign for each byte, and what follows is read on. */
		{"\xff", "?"},
		{"\xff\xfeGit", "??git"},
		{"a\xc3", "a?"},
		{"a\xc3z", "a?z"},
		{"\xe2\x80", "??"},
		{"\xe2\x80.git", "??.git"},
		{".git\xe2\x80", ".git??"},
		{"\xed\xa0\x80", "???"},
		{"\xc0\xae"
		 "git",
		 "??git"},
		{"\xf4\x90\x80\x80", "????"},
		{"a\nb\tc", "a\nb\tc"},
	};
	char folded[PROTECT_FOLD];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		ck_assert(protect_fold(rows[i].name, folded));
		ck_assert_str_eq(folded, rows[i].want);
	}
}
END_TEST

/* No broken character makes a protected name of one that is none, nor hides one. */
START_TEST(invalid_utf8)
{
	char name[16];

	for (unsigned int byte = 0x80; byte <= 0xff; byte++)
		for (size_t where = 0; where <= 4; where++) {
			memcpy(name, ".git", where);
			name[where] = (char)byte;
			memcpy(name + where + 1, &".git"[where], 5 - where);
			is(TREE, "x", name, PROTECT_NONE);
		}
}
END_TEST

/* 63 bytes are read, 64 are not: longer than any name of ours. */
START_TEST(long_names)
{
	char name[PROTECT_FOLD + 8], folded[PROTECT_FOLD];

	for (size_t n = 61; n <= 66; n++) {
		memset(name, 'A', n);
		name[n] = '\0';
		memset(folded, 'x', sizeof(folded));
		ck_assert_int_eq(protect_fold(name, folded), n < PROTECT_FOLD);
		if (n < PROTECT_FOLD)
			ck_assert_uint_eq(strlen(folded), n);
		is(TREE, "x", name, PROTECT_NONE);
		ck_assert_uint_eq(protect_layout_bit(name), 0);
		struct protect_dir child = {.place = 77};
		ck_assert(protect_child(TREE, name, &child));
		ck_assert(child.place == PLACE_TREE && child.role == ROLE_NONE);
		/* A parent that is too long is none of ours. */
		is(TREE, name, "config.toml", PROTECT_NONE);
		is(TREE, name, ".envrc", PROTECT_TOOL);
	}
	/* It is letters that count: a ligature at the end is too much, or just fits. */
	for (size_t n = 59; n <= 63; n++) {
		memset(name, 'A', n);
		memcpy(name + n, "\xef\xac\x83", 4);
		ck_assert_int_eq(protect_fold(name, folded), n + 3 < PROTECT_FOLD);
		if (n + 3 < PROTECT_FOLD)
			ck_assert_uint_eq(strlen(folded), n + 3);
	}
	/* The directories of modules and worktrees keep what they are, however long the name. */
	memset(name, 'A', 66);
	name[66] = '\0';
	struct protect_dir child;
	ck_assert(protect_child(IN_GIT(ROLE_MODULES), name, &child));
	ck_assert(child.place == PLACE_GIT && child.role == ROLE_MODULES);
	ck_assert(protect_child(IN_GIT(ROLE_WORKTREES), name, &child));
	ck_assert(child.place == PLACE_GIT && child.role == ROLE_GITDIR);
	ck_assert(protect_child(IN_GIT(ROLE_REFS), name, &child));
	ck_assert(child.place == PLACE_GIT && child.role == ROLE_REFS);
}
END_TEST

/* As many as a name can hold, on each side and in between. */
START_TEST(padded_names)
{
	static const char *const pads[] = {"\xc2\xad", "\xe2\x80\x8b", "\xf3\xa0\x80\x81"};
	char name[1024], folded[PROTECT_FOLD];

	for (size_t p = 0; p < ARRAY_LEN(pads); p++)
		for (size_t where = 0; where <= 4; where++) {
			size_t n = where;
			memcpy(name, ".git", where);
			while (n + strlen(pads[p]) <= 255 - (4 - where)) {
				memcpy(name + n, pads[p], strlen(pads[p]));
				n += strlen(pads[p]);
			}
			memcpy(name + n, &".git"[where], 5 - where);
			ck_assert(protect_fold(name, folded));
			ck_assert_str_eq(folded, ".git");
			is(QUIET, "x", name, PROTECT_GIT);
			struct protect_dir child;
			ck_assert(protect_child(TREE, name, &child));
			ck_assert(child.place == PLACE_GIT && child.role == ROLE_GITDIR);
		}
	/* Padding does not count, letters do. */
	memset(name, 'b', 63);
	memcpy(name + 63, "\xe2\x80\x8b\xe2\x80\x8b", 7);
	ck_assert(protect_fold(name, folded));
	memcpy(name + 69, "b", 2);
	ck_assert(!protect_fold(name, folded));
}
END_TEST

struct child_row {
	struct protect_dir dir;
	const char *name;
	bool walked;
	struct protect_dir want;
};

static void children(const struct child_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct protect_dir got = {.place = 99, .role = 99};
		bool walked = protect_child(rows[i].dir, rows[i].name, &got);
		ck_assert_msg(walked == rows[i].walked, "row %zu: %s %s walked", i, rows[i].name,
			      walked ? "is" : "is not");
		if (walked)
			ck_assert_msg(got.place == rows[i].want.place &&
					      got.role == rows[i].want.role,
				      "row %zu: %s is place %u, role %u", i, rows[i].name,
				      got.place, got.role);
	}
}

START_TEST(child_places)
{
	static const struct child_row rows[] = {
		{{PLACE_TREE, 0}, "src", true, {PLACE_TREE, 0}},
		{{PLACE_TREE, 0}, "vendor", true, {PLACE_QUIET, 0}},
		{{PLACE_TREE, 0}, "dist", true, {PLACE_QUIET, 0}},
		{{PLACE_TREE, 0}, "build", true, {PLACE_QUIET, 0}},
		/* Spelled otherwise it is no such directory: looked at. */
		{{PLACE_TREE, 0}, "Vendor", true, {PLACE_TREE, 0}},
		{{PLACE_TREE, 0}, "build2", true, {PLACE_TREE, 0}},
		{{PLACE_TREE, 0}, "bui\xe2\x80\x8bld", true, {PLACE_TREE, 0}},
		{{PLACE_QUIET, 0}, "src", true, {PLACE_QUIET, 0}},
		{{PLACE_QUIET, 0}, "build", true, {PLACE_QUIET, 0}},
		{{PLACE_QUIET, 0}, ".git", true, {PLACE_GIT, ROLE_GITDIR}},
		{{PLACE_TREE, 0}, ".git", true, {PLACE_GIT, ROLE_GITDIR}},
		{{PLACE_TREE, 0}, ".GIT", true, {PLACE_GIT, ROLE_GITDIR}},
		{{PLACE_GIT, 0}, ".git", true, {PLACE_GIT, ROLE_GITDIR}},
		{{PLACE_GIT, ROLE_OBJECTS}, ".git", true, {PLACE_GIT, ROLE_GITDIR}},
		{{PLACE_TREE, 0}, "node_modules", false, {0, 0}},
		{{PLACE_TREE, 0}, ".venv", false, {0, 0}},
		{{PLACE_TREE, 0}, "target", false, {0, 0}},
		{{PLACE_QUIET, 0}, "node_modules", false, {0, 0}},
		{{PLACE_TREE, 0}, "Node_modules", true, {PLACE_TREE, 0}},
		{{PLACE_TREE, 0}, "TARGET", true, {PLACE_TREE, 0}},
		{{PLACE_TREE, 0}, "node_modules\xe2\x80\x8b", true, {PLACE_TREE, 0}},
		/* Inside of what is protected as a whole: all but the packages. */
		{{PLACE_INNER, 0}, "src", true, {PLACE_INNER, 0}},
		{{PLACE_INNER, 0}, ".git", true, {PLACE_INNER, 0}},
		{{PLACE_INNER, 0}, "vendor", true, {PLACE_INNER, 0}},
		{{PLACE_INNER, 0}, "logs", true, {PLACE_INNER, 0}},
		{{PLACE_INNER, ROLE_GITDIR}, "objects", true, {PLACE_INNER, 0}},
		{{PLACE_NAMED, 0}, "node_modules", true, {PLACE_NAMED, 0}},
		{{PLACE_NAMED, 0}, ".git", true, {PLACE_NAMED, 0}},
		{{PLACE_INNER, 0}, "node_modules", false, {0, 0}},
		{{PLACE_INNER, 0}, "target", false, {0, 0}},
		/* No tree of packages in a repository. */
		{{PLACE_GIT, ROLE_GITDIR}, "node_modules", true, {PLACE_GIT, 0}},
		{{PLACE_GIT, ROLE_MODULES}, "node_modules", true, {PLACE_GIT, ROLE_MODULES}},
		{{PLACE_GIT, ROLE_MODULES}, "build", true, {PLACE_GIT, ROLE_MODULES}},
		{{PLACE_GIT, ROLE_NONE}, "target", true, {PLACE_GIT, 0}},
		{{PLACE_TREE, ROLE_GITDIR}, "target", true, {PLACE_TREE, 0}},
		{{PLACE_TREE, ROLE_MODULES}, ".venv", true, {PLACE_TREE, ROLE_MODULES}},
	};

	children(rows, ARRAY_LEN(rows));
}
END_TEST

START_TEST(child_roles)
{
	static const struct child_row rows[] = {
		{{PLACE_GIT, ROLE_GITDIR}, "info", true, {PLACE_GIT, ROLE_INFO}},
		{{PLACE_GIT, ROLE_GITDIR}, "INFO", true, {PLACE_GIT, ROLE_INFO}},
		{{PLACE_GIT, ROLE_GITDIR}, "objects", true, {PLACE_GIT, ROLE_OBJECTS}},
		{{PLACE_GIT, ROLE_GITDIR}, "rebase-merge", true, {PLACE_GIT, ROLE_REBASE}},
		{{PLACE_GIT, ROLE_GITDIR}, "rebase-apply", true, {PLACE_GIT, ROLE_REBASE}},
		{{PLACE_GIT, ROLE_GITDIR}, "sequencer", true, {PLACE_GIT, ROLE_SEQUENCER}},
		{{PLACE_GIT, ROLE_GITDIR}, "remotes", true, {PLACE_GIT, ROLE_REMOTES}},
		{{PLACE_GIT, ROLE_GITDIR}, "branches", true, {PLACE_GIT, ROLE_REMOTES}},
		{{PLACE_GIT, ROLE_GITDIR}, "refs", true, {PLACE_GIT, ROLE_REFS}},
		{{PLACE_GIT, ROLE_GITDIR}, "modules", true, {PLACE_GIT, ROLE_MODULES}},
		{{PLACE_GIT, ROLE_GITDIR}, "worktrees", true, {PLACE_GIT, ROLE_WORKTREES}},
		{{PLACE_GIT, ROLE_GITDIR}, "lfs", false, {0, 0}},
		{{PLACE_GIT, ROLE_GITDIR}, "logs", true, {PLACE_GIT, 0}},
		{{PLACE_GIT, ROLE_GITDIR}, "ab", true, {PLACE_GIT, 0}},
		{{PLACE_GIT, ROLE_GITDIR}, "pack", true, {PLACE_GIT, 0}},
		/* A bare repository in the tree has the same. */
		{{PLACE_TREE, ROLE_GITDIR}, "info", true, {PLACE_TREE, ROLE_INFO}},
		{{PLACE_TREE, ROLE_GITDIR}, "modules", true, {PLACE_TREE, ROLE_MODULES}},
		/* Objects and packs are files of git's alone. */
		{{PLACE_GIT, ROLE_OBJECTS}, "info", true, {PLACE_GIT, ROLE_OBJECTS_INFO}},
		{{PLACE_GIT, ROLE_OBJECTS}, "pack", false, {0, 0}},
		{{PLACE_GIT, ROLE_OBJECTS}, "00", false, {0, 0}},
		{{PLACE_GIT, ROLE_OBJECTS}, "ff", false, {0, 0}},
		{{PLACE_TREE, ROLE_OBJECTS}, "a9", true, {PLACE_TREE, ROLE_NONE}},
		{{PLACE_GIT, ROLE_OBJECTS}, "FF", true, {PLACE_GIT, 0}},
		{{PLACE_GIT, ROLE_OBJECTS}, "fg", true, {PLACE_GIT, 0}},
		{{PLACE_GIT, ROLE_OBJECTS}, "a", true, {PLACE_GIT, 0}},
		{{PLACE_GIT, ROLE_OBJECTS}, "abc", true, {PLACE_GIT, 0}},
		{{PLACE_GIT, ROLE_OBJECTS_INFO}, "info", true, {PLACE_GIT, 0}},
		{{PLACE_GIT, ROLE_INFO}, "info", true, {PLACE_GIT, 0}},
		{{PLACE_GIT, ROLE_REBASE}, "objects", true, {PLACE_GIT, 0}},
		{{PLACE_GIT, ROLE_SEQUENCER}, "objects", true, {PLACE_GIT, 0}},
		{{PLACE_GIT, ROLE_REMOTES}, "origin", true, {PLACE_GIT, 0}},
		{{PLACE_GIT, ROLE_NONE}, "objects", true, {PLACE_GIT, 0}},
		{{PLACE_GIT, ROLE_NONE}, "remotes", true, {PLACE_GIT, 0}},
		{{PLACE_TREE, ROLE_NONE}, "branches", true, {PLACE_TREE, 0}},
		/* Refs at any depth, whatever their name. */
		{{PLACE_GIT, ROLE_REFS}, "heads", true, {PLACE_GIT, ROLE_REFS}},
		{{PLACE_GIT, ROLE_REFS}, "logs", true, {PLACE_GIT, ROLE_REFS}},
		{{PLACE_GIT, ROLE_REFS}, "lfs", true, {PLACE_GIT, ROLE_REFS}},
		{{PLACE_GIT, ROLE_REFS}, "ab", true, {PLACE_GIT, ROLE_REFS}},
		/*
		 * A submodule's path may be of any depth and has any names; what has the
		 * layout of a git directory is one, and only its children are git's.
		 */
		{{PLACE_GIT, ROLE_MODULES}, "a", true, {PLACE_GIT, ROLE_MODULES}},
		{{PLACE_GIT, ROLE_MODULES}, "logs", true, {PLACE_GIT, ROLE_MODULES}},
		{{PLACE_GIT, ROLE_MODULES}, "lfs", true, {PLACE_GIT, ROLE_MODULES}},
		{{PLACE_GIT, ROLE_MODULES}, "modules", true, {PLACE_GIT, ROLE_MODULES}},
		{{PLACE_GIT, ROLE_MODULES}, "worktrees", true, {PLACE_GIT, ROLE_MODULES}},
		{{PLACE_GIT, ROLE_MODULES}, "objects", true, {PLACE_GIT, ROLE_MODULES}},
		{{PLACE_GIT, ROLE_MODULES}, "refs", true, {PLACE_GIT, ROLE_MODULES}},
		{{PLACE_GIT, ROLE_MODULES}, "info", true, {PLACE_GIT, ROLE_MODULES}},
		{{PLACE_GIT, ROLE_MODULES}, "remotes", true, {PLACE_GIT, ROLE_MODULES}},
		{{PLACE_GIT, ROLE_MODULES}, "rebase-merge", true, {PLACE_GIT, ROLE_MODULES}},
		{{PLACE_GIT, ROLE_MODULES}, "ab", true, {PLACE_GIT, ROLE_MODULES}},
		{{PLACE_GIT, ROLE_MODULES}, ".git", true, {PLACE_GIT, ROLE_GITDIR}},
		/* Each directory in `worktrees` is one, even one with a name of git's. */
		{{PLACE_GIT, ROLE_WORKTREES}, "wt", true, {PLACE_GIT, ROLE_GITDIR}},
		{{PLACE_GIT, ROLE_WORKTREES}, "logs", true, {PLACE_GIT, ROLE_GITDIR}},
		{{PLACE_GIT, ROLE_WORKTREES}, "info", true, {PLACE_GIT, ROLE_GITDIR}},
	};

	children(rows, ARRAY_LEN(rows));
}
END_TEST

/* What stands at the end of a path below a work tree; a ! marks the layout of a git directory. */
START_TEST(nested_paths)
{
	static const struct {
		const char *path;
		enum protect_class class;
	} rows[] = {
		{".git/config", PROTECT_CONFIG},
		{"a/b/.git/hooks", PROTECT_HOOKS},
		{"vendor/x/.git/hooks", PROTECT_HOOKS},
		{"vendor/x/.envrc", PROTECT_NONE},
		{"dist/.git", PROTECT_GIT},
		{".git/modules/a/config", PROTECT_CONFIG},
		{".git/modules/a/b/c/hooks", PROTECT_HOOKS},
		{".git/modules/a/modules/b/config", PROTECT_CONFIG},
		{".git/modules/a!/config", PROTECT_CONFIG},
		{".git/modules/a!/modules/b!/hooks", PROTECT_HOOKS},
		{".git/modules/a!/worktrees/w/config.worktree", PROTECT_CONFIG_WORKTREE},
		{".git/modules/a!/info/attributes", PROTECT_ATTRIBUTES},
		{".git/modules/a/b/c!/info/attributes", PROTECT_ATTRIBUTES},
		{".git/modules/a!/objects/info/alternates", PROTECT_ALTERNATES},
		{".git/modules/a!/rebase-merge/git-rebase-todo", PROTECT_TODO},
		{".git/modules/a/info/attributes", PROTECT_NONE},
		{".git/modules/a/objects/info/alternates", PROTECT_NONE},
		{".git/modules/a/remotes/origin", PROTECT_NONE},
		{".git/worktrees/w/gitdir", PROTECT_GITDIR},
		{".git/worktrees/w/commondir", PROTECT_COMMONDIR},
		{".git/worktrees/w/rebase-apply/git-rebase-todo", PROTECT_TODO},
		{".git/worktrees/w/modules/m/config", PROTECT_CONFIG},
		{".git/worktrees/config", PROTECT_NONE},
		{".git/info/attributes", PROTECT_ATTRIBUTES},
		{".git/info/exclude", PROTECT_NONE},
		{".git/attributes", PROTECT_NONE},
		{".git/info/config", PROTECT_NONE},
		{".git/objects/info/alternates", PROTECT_ALTERNATES},
		{".git/objects/alternates", PROTECT_NONE},
		{".git/info/alternates", PROTECT_NONE},
		{".git/refs/heads/config", PROTECT_NONE},
		{".git/refs/heads/hooks", PROTECT_NONE},
		{".git/rebase-merge/git-rebase-todo", PROTECT_TODO},
		{".git/git-rebase-todo", PROTECT_NONE},
		{".git/rebase-merge/strategy", PROTECT_STATE},
		{".git/worktrees/w/rebase-apply/apply-opt", PROTECT_STATE},
		{".git/sequencer/todo", PROTECT_TODO},
		{".git/modules/a!/sequencer/opts", PROTECT_STATE},
		{".git/sequencer/git-rebase-todo", PROTECT_NONE},
		{".git/todo", PROTECT_NONE},
		{".git/remotes/origin", PROTECT_REMOTE},
		{".git/modules/a!/branches/x", PROTECT_REMOTE},
		{".git/refs/remotes/origin", PROTECT_NONE},
		{".git/refs/.git/config", PROTECT_CONFIG},
		{".git/refs/x!/config", PROTECT_CONFIG},
		{".git/info/x!/objects/info/alternates", PROTECT_ALTERNATES},
		{"x!/hooks", PROTECT_HOOKS},
		{"vendor/x!/config", PROTECT_CONFIG},
		{"x!/modules/m!/info/attributes", PROTECT_ATTRIBUTES},
		{".git/x/.git/hooks", PROTECT_HOOKS},
		{".git/.git", PROTECT_GIT},
		{"hooks/config", PROTECT_NONE},
		{".cargo/config", PROTECT_TOOL},
		{"build/.cargo/config", PROTECT_NONE},
		{".git/.cargo/config", PROTECT_NONE},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct protect_dir dir = TREE;
		char path[128], parent[128] = "root";
		char *rest = path;
		snprintf(path, sizeof(path), "%s", rows[i].path);
		for (char *slash = strchr(rest, '/'); slash; slash = strchr(rest, '/')) {
			bool layout = slash[-1] == '!';
			slash[layout ? -1 : 0] = '\0';
			struct protect_dir child;
			ck_assert_msg(protect_child(dir, rest, &child), "%s", rows[i].path);
			dir = child;
			if (layout)
				dir.role = ROLE_GITDIR;
			snprintf(parent, sizeof(parent), "%s", rest);
			rest = slash + 1;
		}
		is(dir, parent, rest, rows[i].class);
	}
}
END_TEST

START_TEST(layouts)
{
	static const struct {
		const char *name;
		unsigned int bit;
	} rows[] = {
		{"HEAD", LAYOUT_HEAD},
		{"head", LAYOUT_HEAD},
		{"Head", LAYOUT_HEAD},
		{"objects", LAYOUT_OBJECTS},
		{"OBJECTS", LAYOUT_OBJECTS},
		{"refs", LAYOUT_REFS},
		{"ref\xc5\xbf", LAYOUT_REFS},
		{"commondir", LAYOUT_COMMONDIR},
		{"HE\xe2\x80\x8b"
		 "AD",
		 LAYOUT_HEAD},
		{"HEADS", 0},
		{"", 0},
		{"objects.bak", 0},
		{".git", 0},
		{"config", 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		ck_assert_msg(protect_layout_bit(rows[i].name) == rows[i].bit, "%s", rows[i].name);
	for (unsigned int bits = 0; bits < 16; bits++) {
		bool whole = (bits & LAYOUT_OBJECTS) && (bits & LAYOUT_REFS);
		bool linked = (bits & LAYOUT_HEAD) && (bits & LAYOUT_COMMONDIR);
		ck_assert_msg(protect_layout_is_git(bits) == (whole || linked), "%x", bits);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("policy protect");
	TCase *names = tcase_create("names");
	TCase *folding = tcase_create("folding");
	TCase *dirs = tcase_create("directories");

	tcase_add_test(names, tool_names);
	tcase_add_test(names, tool_pairs);
	tcase_add_test(names, workspaces);
	tcase_add_test(names, ordinary_names);
	tcase_add_test(names, git_everywhere);
	tcase_add_test(names, git_names);
	tcase_add_test(names, remote_names);
	tcase_add_test(names, reasons);
	suite_add_tcase(s, names);
	tcase_add_test(folding, invisible_characters);
	tcase_add_test(folding, visible_characters);
	tcase_add_test(folding, folded_characters);
	tcase_add_test(folding, folded_ligatures);
	tcase_add_test(folding, fold);
	tcase_add_test(folding, invalid_utf8);
	tcase_add_test(folding, long_names);
	tcase_add_test(folding, padded_names);
	suite_add_tcase(s, folding);
	tcase_add_test(dirs, child_places);
	tcase_add_test(dirs, child_roles);
	tcase_add_test(dirs, nested_paths);
	tcase_add_test(dirs, layouts);
	suite_add_tcase(s, dirs);
	return suite_run(s);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which names the host runs programs from, and what a directory is with regard
 * to them. Names only: nothing is opened. sandglass-protected(7) tells the same
 * to people.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What a name is. The order is that of the file format of store/inventory.c. */
enum protect_class {
	PROTECT_NONE,
	PROTECT_TOOL,            /* configuration of agents, editors, tools; shell rc files */
	PROTECT_GIT,             /* a `.git`: directory, file or link */
	PROTECT_HOOKS,           /* in a git directory: hooks */
	PROTECT_CONFIG,          /* config */
	PROTECT_CONFIG_WORKTREE, /* config.worktree */
	PROTECT_COMMONDIR,       /* commondir */
	PROTECT_GITDIR,          /* gitdir */
	PROTECT_ATTRIBUTES,      /* info/attributes */
	PROTECT_ALTERNATES,      /* objects/info/alternates */
	PROTECT_TODO,            /* rebase-*\/git-rebase-todo, sequencer/todo */
	PROTECT_STATE,           /* rebase-*\/strategy, rebase-*\/apply-opt, sequencer/opts */
	PROTECT_REMOTE,          /* remotes/\*, branches/\*: remotes of old */
	PROTECT_LINK,            /* any link in a git directory, or in a protected directory */
	PROTECT_LAYOUT, /* what makes a directory a git directory; in no list, only a reason */
	PROTECT_CLASSES,
};

/* Which names count in a directory. */
enum protect_place {
	PLACE_TREE,  /* ordinary */
	PLACE_QUIET, /* below vendor, dist or build: only git's names */
	PLACE_GIT,   /* inside a git directory: only git's names */
	PLACE_INNER, /* inside a protected directory: only links */
	PLACE_NAMED, /* below what is left out, but a pattern of masks names it: nothing */
	PLACES,
};

/* What a directory is to git. */
enum protect_role {
	ROLE_NONE,
	ROLE_GITDIR,
	ROLE_INFO,
	ROLE_OBJECTS,
	ROLE_OBJECTS_INFO,
	ROLE_REBASE,
	ROLE_SEQUENCER,
	ROLE_REMOTES, /* every name in it is a remote */
	ROLE_REFS,
	ROLE_MODULES,   /* holds git directories at any depth, and may be one */
	ROLE_WORKTREES, /* each directory in it is one */
	ROLES,
};

struct protect_dir {
	uint8_t place, role;
};

/* What the host would do with what lies there; for messages. */
const char *protect_reason(enum protect_class c);

/* A name as it is compared: ASCII in lower case, without invisible characters. */
#define PROTECT_FOLD 64
/* False: longer than any name of ours. */
bool protect_fold(const char *name, char ret[PROTECT_FOLD]);

/* `parent` is the name of the directory itself, for names that count only in a certain one. */
enum protect_class protect_name(struct protect_dir dir, const char *parent, const char *name);

/* Whether a directory of that name makes names in it count, as `.cargo` does. */
bool protect_is_parent(const char *name);

/* What the directory `name` in `dir` is. False: nothing in it counts, do not look. */
bool protect_child(struct protect_dir dir, const char *name, struct protect_dir *ret);

/* Directories whose files are not looked at unless a pattern names them: `vendor`, `.git`, … */
bool protect_is_quiet(const char *name);

/*
 * The names that make a directory a git directory, or one that a linked worktree
 * can have as its common directory: objects and refs, or HEAD and commondir
 * (setup.c of git, is_git_directory()). Bits of those seen.
 */
enum protect_layout {
	LAYOUT_HEAD = 1u << 0,
	LAYOUT_OBJECTS = 1u << 1,
	LAYOUT_REFS = 1u << 2,
	LAYOUT_COMMONDIR = 1u << 3,
};
unsigned int protect_layout_bit(const char *name);
bool protect_layout_is_git(unsigned int bits);

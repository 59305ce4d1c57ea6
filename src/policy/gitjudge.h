/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether what a command wrote into a git directory can make git run a program.
 * Bytes in, verdict out: nothing is opened. What is not known to be harmless is
 * not; sandglass-protected(7) has the lists.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/path.h"

#define MAX_GIT_FILE 1048576u /* bytes of a judged file; a longer one is not harmless */
#define GITJUDGE_WHY 160

struct gitjudge {
	char why[GITJUDGE_WHY];   /* on "no": what it was, safe to show */
	char worktree[PATH_TEXT]; /* of a configuration: core.worktree, "" none */
};

/*
 * A repository's `config` or `config.worktree`: every key on the list of
 * harmless ones, with a harmless value. core.worktree is passed on in
 * ret->worktree (the last one counts): where it may point is the caller's to know.
 */
bool gitjudge_config(const char *text, size_t n, struct gitjudge *ret);

/* A rebase's todo list: known words, none of which runs a program. */
bool gitjudge_todo(const char *text, size_t n, struct gitjudge *ret);

/*
 * What a rebase, am, cherry-pick or revert that has stopped goes on with: `strategy`,
 * `apply-opt` or (sequencer) `opts`, which can name a program, git-merge-NAME, or
 * a place to write outside of the work tree.
 */
bool gitjudge_state(const char *name, const char *text, size_t n, struct gitjudge *ret);

/* The path in a `.git` file ("gitdir: PATH"); false if it is none. */
bool gitjudge_gitfile(const char *text, size_t n, char ret[PATH_TEXT]);

/* The one path in a `gitdir` or `commondir` file; false if it is none. */
bool gitjudge_path(const char *text, size_t n, char ret[PATH_TEXT]);

/*
 * Calls `item` for each path of an `objects/info/alternates` file
 * (gitrepository-layout(5)). False if a line is not understood (a quoted one
 * too) or if `item` said false.
 */
typedef bool gitjudge_item(void *self, const char *path);
bool gitjudge_alternates(const char *text, size_t n, gitjudge_item *item, void *self);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller's git identity, read by us from the caller's configuration, so
 * that commits made inside carry the right name. Nothing else is taken over:
 * no credential helper, no alias, no hook path, no signing key.
 */
#pragma once

#include "policy/view.h"

#define MAX_GIT_IDENTITY 256   /* bytes of each, with NUL; longer ones are left out */
#define MAX_GIT_CONFIG 262144u /* bytes of one file */
#define MAX_GIT_INCLUDES 8     /* files followed by include.path, in all */

struct git_identity {
	char name[MAX_GIT_IDENTITY], email[MAX_GIT_IDENTITY], branch[MAX_GIT_IDENTITY];
};

typedef void git_include(void *self, const char *path);

/*
 * Reads user.name, user.email and init.defaultBranch out of a git configuration
 * file's text (git-config(1)); the last one of each counts. Calls `include` for
 * each include.path; conditional includes are not followed. Never fails: at
 * what git would refuse (gitconfig.h) it stops, and what came before counts.
 */
void gitid_parse(const char *text, size_t n, struct git_identity *id, git_include *include,
		 void *self);

/* What the caller's own configuration says; "" where it says nothing. */
void gitid_read(const struct caller *who, struct git_identity *ret);

/* A line of an ignore file (gitignore(5)) that means this path below the work tree alone. */
void gitid_put_ignored(const char *path, struct buf *out);

/* Adds /sand/home/.config/git/ignore, which git reads where core.excludesFile is not set. */
NODISCARD int gitid_ignore(struct view *v, const struct buf *patterns, struct err *e);

/* Adds /sand/home/.gitconfig to the view. */
NODISCARD int gitid_add(struct view *v, const struct caller *who, const struct source *src,
			struct err *e);

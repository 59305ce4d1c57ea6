/* SPDX-License-Identifier: Apache-2.0 */
/*
 * git for `push`: in a sandbox without network wherever it reads what a session may have
 * written, and the person's own only to speak to the remote, from a repository of ours.
 */
#pragma once

#include "main/child.h"
#include "main/choose.h"
#include "review/commit.h"
#include "review/repo.h"

#define OID_TEXT 65
#define MAX_PACK_BYTES ((uint64_t)8 << 30)
#define MAX_STAT_BYTES ((size_t)1 << 20) /* of the summary of what changed */

/* The private directory of one push. */
struct workshop {
	struct attend attend;
	const struct chosen *session;
	const struct repo *repo;
	char path[PATH_TEXT]; /* "" not made */
	char objects[PATH_TEXT + 16];
	char front[PATH_TEXT]; /* the program `sandglass` */
	char git[PATH_TEXT];   /* the person's own */
	char **git_env;        /* for it: nothing in it names another repository */
	char *path_env;        /* PATH without directories of the source, in git_env */
};

NODISCARD int workshop_open(struct workshop *w, const struct chosen *session,
			    const struct repo *repo, struct err *e);
/* Removes it; ends the process if a signal told us to. */
void workshop_close(struct workshop *w);

/* A file in it, made and opened for both. */
NODISCARD int workshop_file(const struct workshop *w, const char *name, int *ret_fd, struct err *e);

struct remote_view {
	char head[256]; /* the branch that its HEAD names; "" none, or it does not say */
	bool has_branch;
};
/* Asks the remote. NOT_FOUND if it cannot be reached; the person's git has said why. */
NODISCARD int remote_look(struct workshop *w, const char *url, const char *branch,
			  struct remote_view *ret, struct err *e);
/* Pushes exactly that commit. */
NODISCARD int remote_push(struct workshop *w, const char *url, const char *commit,
			  const char *branch, struct err *e);

/* Takes out of `p` what git ignores in the source and has never heard of. */
NODISCARD int git_ignored(struct workshop *w, const char *parent, struct commit_paths *p,
			  struct err *e);

struct git_made {
	char commit[OID_TEXT], tree[OID_TEXT];
	size_t gitlinks; /* submodules that it would change */
	char *stat;      /* what changed, as git says it; foreign text */
};
/* Makes the commit, checks that it is the one asked for, and puts it into the workshop. */
NODISCARD int git_make(struct workshop *w, const struct commit_head *head, int source,
		       const struct commit_paths *p, struct git_made *ret, struct err *e);
void git_made_release(struct git_made *m);

/* The commit's files, and nothing else, in a new directory of that name in the workshop. */
NODISCARD int git_checkout(struct workshop *w, const char *commit, const char *name,
			   char ret_path[PATH_TEXT + 64], struct err *e);

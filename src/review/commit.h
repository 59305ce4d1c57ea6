/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A commit of what a session changed and `apply` put into the source, as a stream for
 * git-fast-import(1): paths with the content that is in the source now. Nothing here runs
 * git; the stream is for one in a sandbox, which takes no filter, attribute, hook or
 * configuration into account.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/path.h"
#include "review/beneath.h"

#define COMMIT_REF "refs/heads/push" /* in the repository of the stream */
#define MAX_COMMIT_MESSAGE 65536u

struct commit_path {
	const char *path;  /* below the source */
	struct node found; /* what is there now; mode 0: deleted */
};

struct commit_paths {
	struct commit_path *v; /* sorted by path, bytewise */
	size_t n;
	size_t foreign; /* left out: in a git directory, or in another work tree (a submodule) */
	size_t ignored; /* left out: git ignores it, and has never heard of it */
};

/*
 * What is to be said of each path that was applied (sorted, as in the file `applied`). Directories
 * are left out: git has none. The paths stay the caller's.
 */
NODISCARD int commit_paths_find(int source, const char *const *paths, size_t n,
				struct commit_paths *ret, struct err *e);
void commit_paths_release(struct commit_paths *p);
/* Leaves out those that are named in `list`, each ended by NUL. */
void commit_paths_ignore(struct commit_paths *p, const char *list, size_t n);
/* Those that are there now, each ended by NUL: what git can be asked about. */
NODISCARD int commit_paths_list(const struct commit_paths *p, struct buf *out, struct err *e);

struct commit_head {
	const char *parent;       /* oid in hex */
	const char *name, *email; /* of author and committer */
	int64_t time_s;
	const char *message; /* with its trailers */
};

/* The stream into a file. CONFLICT: a file of the source changes while it is read. */
NODISCARD int commit_stream(int out, const struct commit_head *head, int source,
			    const struct commit_paths *p, struct err *e);

/* The message, and behind it what stands for itself: ends with the trailers. */
NODISCARD int commit_message(const char *text, const char *session, const char *policy_sha256,
			     const char *name, const char *email, struct buf *out, struct err *e);

/* The object that the head and a tree make; to be hashed and compared. */
NODISCARD int commit_object(const struct commit_head *head, const char *tree, struct buf *out,
			    struct err *e);

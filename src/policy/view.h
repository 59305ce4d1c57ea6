/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The view: which host paths a command sees, as a list of mounts for the plan.
 * Deny by default; what is listed here is all there is.
 */
#pragma once

#include "base/buf.h"
#include "plan/plan.h"
#include "policy/gitlink.h"
#include "policy/source.h"

struct grant {
	char path[PATH_TEXT];
	struct stat st;
	uint8_t layer; /* enum policy_layer: who says so */
	bool write;
	bool narrow; /* of a file that can only narrow: it shows nothing that is hidden */
	bool linked; /* not asked for: the git directory that the source's `.git` names */
};

#define MAX_GRANTS 128

struct view {
	struct plan_mount mounts[MAX_PLAN_MOUNTS];
	size_t n;
	struct view_chunk *chunks;       /* owned texts */
	struct grant grants[MAX_GRANTS]; /* --read, --write and rules of files, resolved */
	size_t grant_count;
	bool rules; /* no namespaces: only binds, at their own path, as Landlock rules */
	const char *home_config; /* with `rules`: what ~/.gitconfig inside is to hold */
};

struct view_ids {
	uint32_t uid, gid;   /* of the command */
	bool idmap;          /* as root: map the owner of what is writable */
	const char *name;    /* login name inside */
	const char *session; /* UUID, for machine-id */
};

/*
 * Checks and resolves --read, --write and the rules of files into v->grants, each
 * path once. Rules that hide and patterns are not grants.
 */
NODISCARD int view_grants(struct view *v, const struct request *req, const struct caller *who,
			  const struct refused *refused, const struct source *src, struct err *e);

/* The git directory of a linked worktree or submodule, as a grant of its own kind. */
NODISCARD int view_link(struct view *v, const struct request *req, const struct caller *who,
			const struct refused *refused, const struct source *src,
			struct gitlink *ret, struct err *e);

/*
 * Lists everything, in this order: what is this call's own, what is the same for
 * every call of this caller in this source, the source and the grants. `v` keeps
 * what its mounts point to until view_release().
 */
NODISCARD int view_add_own(struct view *v, const struct view_ids *ids, struct err *e);
NODISCARD int view_add_usual(struct view *v, const struct caller *who,
			     const struct refused *refused, const struct source *src,
			     const struct view_ids *ids, struct err *e);
NODISCARD int view_add_places(struct view *v, const struct request *req, const struct source *src,
			      const struct view_ids *ids, struct err *e);

/* Where a call of a session has its places from. */
struct view_session {
	const char *root; /* AGENT_ROOT on the host: /sand */
	bool given; /* what lies at the source's path is handed over, and is no file of the host's */
};
/* Instead of view_add_places(). What is read in the source is pinned there, read-only. */
NODISCARD int view_add_session(struct view *v, const struct request *req, const struct source *src,
			       const struct view_ids *ids, const struct view_session *how,
			       struct err *e);

/* Room for `n` bytes (8-aligned) that lives as long as the view; NULL: out of memory. */
void *view_room(struct view *v, size_t n);

void view_release(struct view *v);

/* What lies at `path` is bound over itself, read-only unless `flags` has MOUNT_WRITE. */
NODISCARD int view_pin(struct view *v, const char *path, uint32_t flags, struct err *e);

/* What lies at `path` is hidden: MOUNT_EMPTY, MOUNT_WAY. Nothing happens if it is not there. */
NODISCARD int view_mask(struct view *v, const char *path, uint32_t flags, struct err *e);

/* For the parts of the view (view_etc.c, toolchain.c). `dst` NULL: the same path as src. */
NODISCARD int view_bind(struct view *v, const char *src, const char *dst, uint32_t flags,
			const struct stat *ident, struct err *e);
NODISCARD int view_made(struct view *v, enum plan_mount_kind kind, const char *dst,
			const char *content, struct err *e);
/* A made file of any bytes; ours to copy. */
NODISCARD int view_file(struct view *v, const char *dst, const char *content, size_t n,
			struct err *e);
NODISCARD int view_add_etc(struct view *v, const struct view_ids *ids, struct err *e);
NODISCARD int view_add_toolchains(struct view *v, const struct caller *who,
				  const struct source *src, const struct refused *refused,
				  struct err *e);
/* A path of the view already contains `path`. */
bool view_covers(const struct view *v, const char *path);

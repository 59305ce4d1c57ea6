/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The repository of a source, looked at without git: its configuration is not ours to
 * obey, and of it one address is read.
 */
#pragma once

#include "base/err.h"
#include "base/path.h"
#include "policy/source.h"

#define REPO_URL_TEXT 2048
#define REPO_REMOTE_TEXT 64

struct repo {
	char common[PATH_TEXT]; /* holds config, objects, shallow */
};

/*
 * `.git` of the source, a directory or (as gitlink.h has it) a file. NOT_FOUND: none.
 * POLICY_DENIED: it leads elsewhere.
 */
NODISCARD int repo_find(const struct source *src, const struct caller *who,
			const struct refused *refused, struct repo *ret, struct err *e);

/* What the configuration says of a remote. */
struct repo_remote {
	char name[REPO_REMOTE_TEXT];
	char url[REPO_URL_TEXT]; /* the first; "" none */
};

/*
 * `name`, or if it is NULL the remote of `branch` ("" none), else origin. What is included
 * from other files is not read. Never fails: what cannot be read has no url.
 */
void repo_remote(const struct repo *r, const char *name, const char *branch,
		 struct repo_remote *ret);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of a git repository, read by `git cat-file --batch` in a sandbox of its
 * own (read-only, no network), and checked against their names: a command may
 * write what it likes into a repository's objects.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "store/inventory.h"

#define MAX_OBJECT_BYTES (64u << 20)

/* In the environment of the call that asks git: that one does not ask again. */
#define CATFILE_MARK "SANDGLASS_CAT_FILE"

struct catfile {
	pid_t pid;
	int to, from;
	char *bytes; /* read ahead */
	size_t at, n;
	char *object; /* the last one, ended by NUL */
	size_t size;
	char type[16];
	uint64_t until_ms; /* answers later than that are none */
};

/* False: no git, or no sandbox for it. `work` is the work tree, absolute. */
bool catfile_start(struct catfile *c, const char *work, char **env);
void catfile_end(struct catfile *c);
/* Fills in object, size and type. False: missing, forged, too large, or too late. */
bool catfile_get(struct catfile *c, const struct inventory_oid *oid);

/* The name of an object: its type and content, by SHA-1 or SHA-256 as `bytes` says. */
bool object_name(const char *type, const void *content, size_t n, unsigned int bytes,
		 struct inventory_oid *ret);

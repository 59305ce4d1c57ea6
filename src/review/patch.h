/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The changes as a patch that `git apply` takes. git makes it, in a sandbox,
 * from two trees of what changed and nothing else. Lines of what git cannot
 * carry stand before the first `diff --git` and begin with `# `.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "review/change.h"
#include "review/gitbox.h"
#include "review/sink.h"

#define MAX_PATCH_FILE ((uint64_t)256 << 20) /* bytes of a file; larger ones are only named */
#define MAX_PATCH_BYTES ((uint64_t)2 << 30)  /* of all of them, both sides */
#define MAX_PATCH_HASHED ((uint64_t)1 << 30) /* of what is only named, in sum */

/* Why a change, or one side of it, is not in the patch. */
enum patch_why {
	PATCH_IN,
	PATCH_DIRECTORY, /* git has none */
	PATCH_GIT,       /* in a git directory */
	PATCH_MASKED,
	PATCH_SPECIAL, /* fifo, socket, device */
	PATCH_NAME,    /* git refuses the name */
	PATCH_LARGE,
	PATCH_UNREAD, /* could not be read */
};

/* What became of one change. */
struct patch_note {
	uint8_t why;               /* enum patch_why */
	bool shrank;               /* it changed while it was read: the patch has zeros there */
	bool rename;               /* git takes it for a rename: */
	bool renamed_away;         /* its old path, whose change is a deletion */
	const struct change *from; /* of the new one */
	bool counted, binary;      /* git's numbers are known */
	uint64_t lines_added, lines_removed;
};

struct patch {
	const struct review *r;
	const struct changes *c;
	const char *sandglass; /* the front */
	char **env;
	struct patch_note *notes; /* one a change; by patch_decide() */
	struct gitbox git;
	bool started;
	size_t in; /* changes that are in the patch */
};

/* Decides of each change whether it is in the patch. */
NODISCARD int patch_init(struct patch *p, struct err *e);
void patch_release(struct patch *p);
/*
 * Feeds git and takes its numbers (renames, lines) into the notes; then, if the
 * text is wanted, patch_text() gives it. Nothing is started if nothing is in it.
 */
NODISCARD int patch_make(struct patch *p, bool text, struct err *e);
NODISCARD int patch_text(struct patch *p, struct sink *out, struct err *e);
/* Waits for git. */
NODISCARD int patch_end(struct patch *p, struct err *e);

/* The lines with `# ` of what is not in the patch. */
NODISCARD int patch_header(const struct patch *p, struct sink *out, struct err *e);

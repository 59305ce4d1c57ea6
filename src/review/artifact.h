/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that outlive a session: copied out of what a command may have written, as regular
 * files of mode 0600 without extended attributes, bounded, and listed with their checksums.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"
#include "policy/request.h"

#define MAX_ARTIFACT_BYTES ((uint64_t)256 << 20) /* of one file */
#define MAX_ARTIFACTS_BYTES ((uint64_t)1 << 30)  /* of a session's, the patch apart */
#define MAX_ARTIFACT_FILES 20000u
#define ARTIFACT_MANIFEST "MANIFEST.sha256"

struct artifact {
	char *name;
	unsigned char sha256[SHA256_BYTES];
	uint64_t bytes;
};

struct artifacts {
	int dir; /* where they go; nobody else writes there. The caller's */
	struct artifact *v;
	size_t n;
	uint64_t bytes;      /* against MAX_ARTIFACTS_BYTES */
	struct buf left_out; /* lines for the summary: what, and why */
	size_t left_out_n;
};
#define ARTIFACTS_INIT(fd) ((struct artifacts){.dir = (fd), .left_out = BUF_INIT((size_t)1 << 20)})

/*
 * A copy of an open regular file as `name` (a clean relative path; directories are made).
 * What is too large, or one too many, is left out with a note. -1: it cannot be written.
 */
NODISCARD int artifact_copy(struct artifacts *a, const char *name, int from, struct err *e);
/* A new file to be written as `name`; artifact_add() takes it into the list afterwards. */
NODISCARD int artifact_create(struct artifacts *a, const char *name, int *ret_fd, struct err *e);
NODISCARD int artifact_add(struct artifacts *a, const char *name, int fd, struct err *e);
NODISCARD int artifact_text(struct artifacts *a, const char *name, const struct buf *text,
			    struct err *e);
/*
 * Copies all regular files of a directory, not of those below it, as NAME/…: opened beneath,
 * no link followed, nothing waited for. -1 as above.
 */
NODISCARD int artifact_copy_dir(struct artifacts *a, int from, const char *name, struct err *e);
/* A line of what was left out. */
void artifact_note(struct artifacts *a, const char *name, const char *why);
/* MANIFEST.sha256, as sha256sum(1) writes it; the last one. */
NODISCARD int artifact_manifest(struct artifacts *a, struct err *e);
void artifacts_release(struct artifacts *a);

/* One line of a manifest: the name escaped as sha256sum does. */
void artifact_line(const struct artifact *v, struct buf *out);

/*
 * A pattern of the policy key `artifacts` against a path below the source: `**` is any number
 * of directories; behind the last slash it is everything below.
 */
bool artifact_matches(const char *pattern, const char *path);

#define MAX_KEPT_BYTES ((uint64_t)10 << 30) /* of the artifacts of all sessions of a home */

struct artifact_sweep {
	size_t removed;
	uint64_t bytes;      /* that they had */
	size_t without_logs; /* that stay, and have lost their logs */
	uint64_t logs_bytes;
};
/*
 * Removes artifacts of sessions that live no more and were written more than `kept_ms` ago
 * (LIMIT_NONE: none is too old), and the oldest while all are more than MAX_KEPT_BYTES; of
 * those that stay the logs, with their lines of the manifest, after `logs_ms`.
 * `dry` only counts.
 */
void artifacts_sweep(const struct caller *who, uint64_t kept_ms, uint64_t logs_ms, int64_t now_ms,
		     bool dry, struct artifact_sweep *ret);

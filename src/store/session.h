/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session's directory below $SANDGLASS_HOME/sessions, and what was decided when
 * it was made. The record is written once and never changed; it is the caller's
 * own, and nothing that a command can write lies in it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/opt.h"
#include "base/path.h"
#include "base/uuid.h"
#include "policy/request.h"

#define SESSION_NAME_MAX 63        /* bytes of --name */
#define MAX_SESSION_RECORD 262144u /* bytes of the record */
#define SESSION_ID_MIN 4           /* characters of an id's beginning that name it */

enum session_writes {
	SESSION_DIRECT,  /* changes land in the source at once */
	SESSION_OVERLAY, /* upper/ and work/ over the source */
	SESSION_COPY,    /* copy/ instead of the source */
};
extern const char *const session_writes_names[]; /* "direct", "overlay", "copy" */

struct session_record {
	char id[UUID_TEXT];
	char name[SESSION_NAME_MAX + 1]; /* "" none */
	char source[PATH_TEXT];          /* canonical; "" none */
	uint64_t dev, ino;               /* of the source's top when the session began */
	uint32_t owner_uid, owner_gid;   /* of it: whom what is applied will belong to */
	uint32_t uid, gid;               /* who owns upper/, copy/ and root/ on the host */
	uint32_t caller_uid;             /* who made it */
	bool root;          /* made as the host's root: overlay.* xattrs are trusted.* */
	uint32_t writes;    /* enum session_writes */
	int64_t created_ns; /* since 1970 */
	int64_t base_ns;    /* since 1970: from then on a change of the source is somebody else's */
	int64_t copied_ns;  /* since 1970: from then on a change of copy/ is the session's */
	uint64_t ttl_ms, max_ms; /* lease: how long a call renews it for, and its end for good */
	uint64_t disk_bytes, inodes; /* that it may own; LIMIT_NONE: no limit */
	char head[65];               /* HEAD's commit in hex; "" none */
	char branch[256];            /* HEAD's branch, without refs/heads/; "" detached or none */
	char remote[64];             /* the branch's remote, else origin; "" none */
	char remote_url[2048];
	char policy_sha256[65]; /* of the snapshot; "" no policy file holds */
	char **options;         /* of `session new`, as for `run`; NULL-terminated */
	size_t option_count;
	char *bytes; /* what `options` points into */
};

/* Whether there is an overlay: without a source there is nothing to lay it over. */
static inline bool session_is_overlay(const struct session_record *r)
{
	return r->writes == SESSION_OVERLAY && r->source[0];
}

/* $SANDGLASS_HOME/sessions. */
NODISCARD int session_home(const struct caller *who, char ret[PATH_TEXT], struct err *e);

/* The session's directory, opened; NOT_FOUND if it is not there or not the caller's. */
NODISCARD int session_open(const struct caller *who, const char *id, int *ret_dir, struct err *e);

/* Strict: INTERNAL for anything that session_write() would not have written. */
NODISCARD int session_read(int dir, struct session_record *ret, struct err *e);
void session_record_release(struct session_record *r);

/* The record, durable before it appears. EEXIST is an error. */
NODISCARD int session_write(int dir, const struct session_record *r, struct err *e);

/* Both times anew, after a reset: session_read() takes them from here. */
NODISCARD int session_write_base(int dir, const struct session_record *r, struct err *e);

/* Encoded, and back; for the two above and for tests. */
NODISCARD int session_encode(const struct session_record *r, struct buf *out, struct err *e);
NODISCARD int session_decode(const char *bytes, size_t n, struct session_record *ret,
			     struct err *e);

/*
 * Finds a session: by its id, the beginning of it (SESSION_ID_MIN characters or more, if only
 * one has it), its name, or `@last`, the newest of `source` ("" or NULL: of all).
 * NOT_FOUND, or CONFLICT if several fit.
 */
NODISCARD int session_find(const struct caller *who, const char *text, const char *source,
			   char ret_id[UUID_TEXT], struct err *e);

/* Whether a keeper holds the session now. */
bool session_is_kept(int dir);
/* Held by the keeper, in the session's directory. */
#define SESSION_LOCK "lock"
#define SESSION_RECORD "record"
#define SESSION_BASE "base"
#define SESSION_SOCKET "keeper.sock"
#define SESSION_MASKED "masked" /* what is masked in it: a letter, a path, NUL, ... */

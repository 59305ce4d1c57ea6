/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit log: JSON lines, one file for each day (UTC), each line with the hash of
 * the one before. Below $SANDGLASS_HOME/audit; as root without a SANDGLASS_HOME in
 * /var/log/sandglass. One lock orders all writers; sandglass-audit(1) says what is hashed.
 *
 * What is written is redacted first, and pseudonyms take the place of names where the
 * user's policy says so. Who calls says of each value what it is, by its kind.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/path.h"
#include "base/sha256.h"
#include "policy/request.h"

#define MAX_AUDIT_LINE 1048576u /* bytes of one line, its end included */
#define MAX_AUDIT_EVENTS 128u   /* of one append */
#define MAX_AUDIT_FIELDS 32u    /* of one event's data, and of one row of a list */
#define MAX_AUDIT_ROWS 64u      /* of a list; what is more is counted by a last row */
#define MAX_AUDIT_TEXT 4096u    /* bytes of one text; what is more is cut, with "…" */
#define MAX_AUDIT_ARGV 8192u    /* bytes of all arguments together */
#define MAX_AUDIT_ARGS 64u      /* what is more is counted by a last argument */
#define AUDIT_HASH_TEXT (2 * SHA256_BYTES + 1)
#define AUDIT_FILE_TEXT 17 /* 2026-01-31.jsonl and the NUL */
#define AUDIT_LOCK_MS 10000u

enum audit_kind {
	AUDIT_NULL,
	AUDIT_TEXT, /* free text: redacted, and what looks like a name in it is replaced */
	AUDIT_WORD, /* a word of our own: a mode, a code, an id, a hash */
	AUDIT_PATH, /* a path: home directories are replaced */
	AUDIT_HOST, /* a host or an address, with or without a port */
	AUDIT_URL,  /* a remote: user and password go, host and owner are replaced */
	AUDIT_NAME, /* of a person or an account */
	AUDIT_ARGV, /* a command with its arguments, NULL-terminated */
	AUDIT_UINT,
	AUDIT_INT,
	AUDIT_BOOL,
	AUDIT_LIST, /* of objects */
};

struct audit_row;

/* A NULL text is null. */
struct audit_field {
	const char *key;
	enum audit_kind kind;
	union {
		const char *text;
		char *const *argv;
		uint64_t u;
		int64_t i;
		bool b;
		const struct audit_row *rows;
	};
	size_t count; /* AUDIT_LIST: rows */
};

struct audit_row {
	const struct audit_field *fields; /* no lists in it */
	size_t count;
};

/* Whatever is NULL is null in the line. */
struct audit_event {
	const char *event;         /* "call.start" */
	const char *session;       /* its id */
	const char *call;          /* its id */
	const char *tool;          /* its name */
	const char *agent;         /* which program drives, where it is known */
	const char *policy_sha256; /* hex */
	const char *decision;      /* "allow", "ask", "deny" */
	const char *rule;          /* which one decided */
	int64_t time_ms;           /* since 1970; 0: now */
	const struct audit_field *data;
	size_t data_count;
};

enum audit_flags {
	AUDIT_SYNC = 1u << 0, /* on the disk before it returns */
};

/*
 * Appends the events as one write under the lock. Either all of them are in the log,
 * or, on failure, none; who is killed may leave a beginning, which the next writer cuts
 * to whole lines. Fails where the log cannot be written, is not the caller's alone, or
 * was locked by another one for AUDIT_LOCK_MS (BUSY).
 */
NODISCARD int audit_append(const struct caller *who, const struct audit_event *v, size_t n,
			   unsigned int flags, struct err *e);

/* The last line of the log: what `verify --heads` compares with. */
struct audit_head {
	uint64_t seq; /* 0: the log is empty */
	char hash[AUDIT_HASH_TEXT];
	char file[AUDIT_FILE_TEXT];
};
NODISCARD int audit_head_get(const struct caller *who, struct audit_head *ret, struct err *e);

/*
 * Notes the head as a line `SEQ HASH` in the file `audit-head` of an open directory
 * (artifacts/<id>), which is made if it is not there. After the append it is to witness.
 */
#define AUDIT_HEAD_FILE "audit-head"
NODISCARD int audit_head_put(const struct caller *who, int dir, struct err *e);

/* 2 * n lower-case digits and the NUL. */
void audit_hex(const unsigned char *p, size_t n, char *ret);

/* Where the log lies. */
void audit_path(const struct caller *who, char ret[PATH_TEXT]);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log's directory, its lock, and the end of the chain in it. Only for what writes.
 */
#pragma once

#include "audit/audit.h"
#include "audit/line.h"

#define AUDIT_HEAD "head" /* of the whole log, and its lock */

struct audit_place {
	int dir;  /* -1: not open */
	int lock; /* locked as long as it is open */
	int file; /* the day's, to append to */
	char name[AUDIT_FILE_TEXT];
	uint64_t size; /* of it */
	bool fresh;    /* the file was made just now */
	uint64_t torn; /* bytes that were cut off its end, or that of the one before */
	char torn_of[AUDIT_FILE_TEXT];
	struct audit_chain chain; /* seq and hash of the last line */
};
#define AUDIT_PLACE_NONE ((struct audit_place){.dir = -1, .lock = -1, .file = -1})
#define AUTO_AUDIT_PLACE __attribute__((cleanup(audit_place_release))) struct audit_place

/* The directory, checked to be the caller's alone; made if `make` says so, else NOT_FOUND. */
NODISCARD int audit_place_open(const struct caller *who, bool make, struct audit_place *ret,
			       struct err *e);
/* The lock; waits for at most AUDIT_LOCK_MS. */
NODISCARD int audit_place_lock(struct audit_place *p, struct err *e);
/* The file of that day, mended, and the end of the chain. Under the lock. */
NODISCARD int audit_place_day(struct audit_place *p, int64_t now_ms, struct err *e);
void audit_place_release(struct audit_place *p);

/* The events behind the chain's end. Under the lock, with a file to append to. */
NODISCARD int audit_place_write(struct audit_place *p, const struct caller *who,
				const struct audit_event *v, size_t n, unsigned int flags,
				struct err *e);

/* A file of the directory that is the caller's alone, without following a link. */
NODISCARD int audit_file_open(int dir, const char *name, int flags, struct err *e);

/* 2026-01-31.jsonl, and nothing else. */
bool audit_is_day(const char *name);
void audit_day(int64_t now_ms, char ret[AUDIT_FILE_TEXT]);
/* The newest day before `before` ("" if it is NULL: of all); false: there is none. */
bool audit_newest(int dir, const char *before, char ret[AUDIT_FILE_TEXT]);
/* The oldest day after `after` (NULL: of all); false: there is none. */
bool audit_oldest(int dir, const char *after, char ret[AUDIT_FILE_TEXT]);

/*
 * The last whole line of an open file, into `ret` (seq 0: there is none), and where the
 * bytes behind it begin. INTERNAL: that line is not one of ours.
 */
NODISCARD int audit_last(int fd, const char *name, uint64_t size, struct audit_head *ret,
			 uint64_t *ret_end, struct err *e);

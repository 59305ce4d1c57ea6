/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a session changed: the overlay's layers, or the copy, against the source.
 * Nothing is written here, and nothing below upper/ or copy/ is trusted: it is
 * opened beneath its top, without following links, and walked without recursion.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"
#include "review/applied.h"
#include "review/journal.h"
#include "store/session.h"

#define MAX_CHANGES 1000000u                /* entries in a list */
#define MAX_CHANGE_TEXT ((size_t)512 << 20) /* bytes of all their paths */
#define MAX_LINK_TEXT 4096                  /* a link's target, with the NUL */

enum side_tree { SIDE_SOURCE, SIDE_UPPER }; /* SIDE_UPPER is copy/ in copy mode */

/* One entry on one of the two sides. */
struct change_side {
	mode_t mode; /* type and permission bits; 0: not there */
	uint64_t size, dev, ino, rdev;
	int64_t ctime_ns, mtime_ns;
	enum side_tree tree;
	const char *where; /* path below that tree; another than the change's after a rename */
};

struct change {
	const char *path; /* below the source, without leading slash */
	struct change_side before, after;
	bool masked;         /* at a masked path: listed, never applied */
	bool git;            /* is, or lies in, a git directory: not in the patch */
	bool conflict;       /* the source changed there since the session began */
	bool origin;         /* the upper's entry was copied up, from whatever path */
	uint64_t origin_ino; /* inode of what it was copied from; 0 not known */
};

/*
 * Directories are entries too. What was touched but is equal is none. Deleted
 * and new directories are listed with all that is in them.
 */
struct changes {
	struct change *v; /* sorted by path, bytewise */
	size_t n, cap;
	size_t deep;           /* directories whose entries have paths too long for any program */
	const char *deep_at;   /* the first of them; what is in them is not listed */
	size_t unread;         /* directories of the session that could not be read */
	const char *unread_at; /* the first of them */
	struct change_text *text;
	size_t text_bytes;
};

struct review {
	int upper, masks, source; /* masks is -1 if there is no such layer */
	bool copy;                /* upper is copy/ */
	bool root;                /* the overlay's xattrs are trusted.* */
	const struct session_record *rec;
	const struct applied
		*applied; /* what apply left in the source is no conflict; NULL: nothing */
	char pending
		[JOURNAL_TAG]; /* an apply that was killed has names of its own in the source; "" none */
};

/* Of a session's directory. UNSUPPORTED without layers (writes: direct), CONFLICT if the source is another directory now. */
NODISCARD int review_open(int dir, const struct session_record *rec, struct review *ret,
			  struct err *e);
void review_close(struct review *r);
/* The source's top. CONFLICT if it is another directory now. */
NODISCARD int review_source(const struct session_record *rec, int *ret, struct err *e);

/* Everything that changed. ARG_LIMIT beyond the limits above. */
NODISCARD int changes_find(const struct review *r, struct changes *ret, struct err *e);
void changes_release(struct changes *c);

/* The change at exactly that path, or NULL. */
const struct change *changes_get(const struct changes *c, const char *path);
/* Index of the first change whose path is `path` or sorts behind it. */
size_t changes_seek(const struct changes *c, const char *path);

/*
 * The side's regular file for reading, or its directory; the same file as when
 * the list was made, else CONFLICT. -1 with e.
 */
NODISCARD int change_open(const struct review *r, const struct change_side *s, struct err *e);
/* The link's target, ended by NUL; its length, or -1 with e. */
NODISCARD ssize_t change_readlink(const struct review *r, const struct change_side *s,
				  char ret[MAX_LINK_TEXT], struct err *e);

/* Same type, permission bits and content (times and owners do not count). */
bool change_sides_equal(const struct review *r, const struct change_side *a,
			const struct change_side *b);

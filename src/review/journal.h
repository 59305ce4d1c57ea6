/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an apply is about to do to a source, written down before the first change,
 * so that whoever finds it after a kill can go on or go back. In the session's
 * directory `journal`, whose lock its one user holds (or `journal-discard`).
 *
 *	plan (no identities yet)   new files are being made beside the old ones: go back
 *	plan (ready)               names are being exchanged: go on
 *	plan (ready) and `back`    they are being exchanged back: go back
 *	plan (ready) and `done`    what is old is being removed: go on
 *
 * Whether an operation was carried out is not noted but seen: a name has the inode
 * of the old file, or of the new one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "review/beneath.h"

#define JOURNAL_DIR "journal"
#define JOURNAL_DISCARD \
	"journal-discard"            /* of a discard: the upper layer or copy is what changes */
#define JOURNAL_TRASH "trash-"       /* what was moved into it only to be removed */
#define JOURNAL_PREFIX ".sandglass-" /* of names in the source; the tag follows */
#define JOURNAL_TAG 17               /* 16 hex digits and the NUL */
#define JOURNAL_TEMP 64
#define JOURNAL_TOP "." /* path of an OP_NOTE: the source's top */
#define MAX_JOURNAL_BYTES (1u << 30)
#define MAX_JOURNAL_OPS 1000000u

enum op_kind {
	OP_PUT,    /* a file, link or directory with all that is in it, in place of `old` */
	OP_DELETE, /* a file, link or special file */
	OP_RMDIR,  /* a directory, once it is empty */
	OP_MODE,   /* of a directory */
	OP_INSIDE, /* goes with a directory that an OP_PUT replaces: nothing to do */
	OP_NOTE, /* comes with a directory that an OP_PUT makes, or is a directory that others change */
	OP_KINDS,
};

/* A directory that has in the source, in the end, all that the session has in it. */
#define OP_WHOLE 1u
/* On a directory of the upper layer: it was renamed, and what it had before is there. */
#define OP_REDIRECT "trusted.overlay.redirect"
/* `y`: nothing of the source shows through it. */
#define OP_OPAQUE "trusted.overlay.opaque"

struct op {
	uint8_t kind;
	uint32_t mode;    /* OP_MODE: in the end. OP_NOTE: OP_WHOLE */
	const char *path; /* below the source */
	struct node old;
	struct node made; /* OP_PUT: what is to stand there; mode 0 as long as it is not ready */
};

struct journal {
	int dir; /* locked */
	char tag[JOURNAL_TAG];
	struct op *ops; /* sorted by path, then kind */
	size_t n, cap;
	bool ready, back, done;
	char *bytes; /* what was read */
	char **kept; /* paths that nobody else holds */
	size_t kept_n;
};

/* Locks it; BUSY if somebody else has it. It is made if it is not there. */
NODISCARD int journal_open(int session, const char *name, struct journal *ret, struct err *e);
/* Lets it go; what is on disk stays. */
void journal_close(struct journal *j);

/* The tag of what is under way in the session's directory, whoever does it; "" nothing. Takes no lock. */
void journal_pending(int session, const char *name, char ret[JOURNAL_TAG]);

/* What is on disk; n is 0 if there is nothing under way. INTERNAL if it is not as it was written. */
NODISCARD int journal_read(struct journal *j, struct err *e);
/* The plan, durably, in place of what is there; ready once every OP_PUT has been made. */
NODISCARD int journal_write(struct journal *j, bool ready, struct err *e);
/* Durably. */
NODISCARD int journal_mark_back(struct journal *j, struct err *e);
NODISCARD int journal_mark_done(struct journal *j, struct err *e);
/* Nothing is under way any more. */
NODISCARD int journal_end(struct journal *j, struct err *e);

/*
 * Branches that are to be moved when the names were exchanged (review/commits.h): kept beside the
 * plan until they are. A plan without them is one that goes back.
 */
NODISCARD int journal_put_refs(const struct journal *j, const char *text, size_t n, struct err *e);
/* Heap memory ended by NUL; NULL: none are to be moved. */
char *journal_take_refs(const struct journal *j);
void journal_drop_refs(const struct journal *j);

/* Removes all that was moved into the journal to be removed. */
void journal_sweep(const struct journal *j);

/* Adds one; false: no memory, or too many. */
bool journal_add(struct journal *j, const struct op *op);
/* The journal frees it in the end. False: no memory, and it still is the caller's. */
bool journal_keep(struct journal *j, char *path);
/* Puts them in order. */
void journal_sort(struct journal *j);
/* Of that kind and path, or NULL. */
struct op *journal_find(const struct journal *j, enum op_kind kind, const char *path);

/* The name beside op i where what is new waits, and later what is old. Nobody else has such a name. */
void journal_temp(const struct journal *j, size_t i, char ret[JOURNAL_TEMP]);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the log is one chain, and whether it holds the heads that were kept elsewhere.
 * The first line that does not fit is named; what is behind it is not looked at.
 */
#pragma once

#include "audit/audit.h"
#include "chain/log.h"

#define MAX_HEADS 1000000u
#define VERIFY_WHY_TEXT 512

/* A head that was kept elsewhere. */
struct chain_head {
	uint64_t seq;
	char hash[AUDIT_HASH_TEXT];
	uint32_t from;   /* which of the files it is from */
	uint32_t number; /* its line there */
};

struct chain_heads {
	struct chain_head *v;
	size_t n;
	char **from; /* names of the files */
	size_t from_count;
};

struct verify {
	bool intact;
	uint64_t lines, first_seq, last_seq;
	char hash[AUDIT_HASH_TEXT]; /* of the last line */
	size_t files;
	bool swept;          /* it begins behind what a retention.sweep tells of */
	uint64_t torn;       /* bytes of a last line that no writer has finished */
	size_t heads, older; /* heads that are in the log, and that are from before it begins */
	/* Of the first line, or head, that does not fit: */
	char file[AUDIT_FILE_TEXT]; /* "": it is about a head */
	uint64_t number, seq;       /* seq 0: it is not known */
	char why[VERIFY_WHY_TEXT];
};

/* heads may be NULL; they are sorted. -1: it could not be read. */
NODISCARD int chain_verify(struct chain_log *log, struct chain_heads *heads, struct verify *ret,
			   struct err *e);

/* Adds the heads of a file, `SEQ HASH` a line. `name` is for messages. */
NODISCARD int chain_heads_add(struct chain_heads *h, int fd, const char *name, struct err *e);
/* Adds all that are kept in artifacts of this caller's sessions. */
NODISCARD int chain_heads_find(struct chain_heads *h, const struct caller *who, struct err *e);
void chain_heads_release(struct chain_heads *h);

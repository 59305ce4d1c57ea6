/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line of the log. Its hash is the SHA-256 of the line from its `{` to the `"`
 * that ends the value of `prev`: all of it without `,"hash":"…"}`.
 */
#pragma once

#include <stdbool.h>

#include "audit/audit.h"
#include "audit/pseudonym.h"
#include "audit/redact.h"
#include "base/buf.h"

/* What every line of one append has in common, and where the chain is. */
struct audit_chain {
	uint64_t seq; /* of the line before; 0: none */
	char hash[AUDIT_HASH_TEXT];
	int64_t now_ms;
	const char *actor;
	const struct redact_secrets *secrets; /* NULL: none */
	const struct pseudonyms *hidden;      /* NULL: names are written as they are */
};

/* Nothing came before the first line. */
extern const char audit_no_hash[AUDIT_HASH_TEXT];

/*
 * Appends the event's line and its end to `out`, and makes it the chain's last. Data that
 * does not fit into MAX_AUDIT_LINE is left out, and said to be.
 */
NODISCARD int audit_line(struct audit_chain *c, const struct audit_event *v, struct buf *out,
			 struct err *e);

/* The number and the hash of a whole line without its end; false: not one of ours. */
bool audit_line_tip(const char *p, size_t n, uint64_t *ret_seq, char ret_hash[AUDIT_HASH_TEXT]);

/* How much of the line is hashed; 0: it does not end as one of ours. */
size_t audit_line_hashed(const char *p, size_t n);

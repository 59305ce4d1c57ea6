/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line of the log, read. Lines are hostile input: whoever can write the file can have
 * put anything there. A record holds only what sandglass itself could have written: the
 * keys of a line, each once and of its type, and no character that a terminal would obey.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "audit/audit.h"

#define MAX_RECORD_DEPTH 8 /* of nested objects and arrays */

/* Texts are the root's; NULL where the line has null. */
struct record {
	struct json_t *root; /* jansson's; its header does not go with base/json.h */
	uint64_t seq;
	const char *time, *event, *session, *call, *tool, *actor, *agent;
	const char *policy_sha256, *decision, *rule, *prev, *hash;
	const struct json_t *data;
	size_t hashed; /* bytes of the line that its hash is of */
};

/* The n bytes of a line without its end. CONFIG_INVALID with what is wrong. */
NODISCARD int record_parse(const char *p, size_t n, struct record *ret, struct err *e);
void record_release(struct record *r);

/* Whether the hash in the line is that of its bytes. */
bool record_hash_fits(const struct record *r, const char *p);

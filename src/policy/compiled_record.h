/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a compiled policy, shared by encoder and decoder.
 */
#pragma once

#include <stdint.h>

#include "base/sha256.h"
#include "policy/request.h"

#define COMPILED_MAGIC 0x43474c53u /* "SLGC" */

struct compiled_header {
	uint32_t magic, version, total, records;
	unsigned char sha256[SHA256_BYTES]; /* of all that follows */
};

struct compiled_record {
	uint32_t type, bytes; /* not padded: read by memcpy */
};

/* In this order. */
enum compiled_type {
	CREC_KEY,     /* bytes, exactly one */
	CREC_ERROR,   /* u32 code, message string, hint string; then nothing else follows */
	CREC_NUMBERS, /* struct record_numbers, exactly one */
	CREC_FILE,    /* struct record_file, path string */
	CREC_RULE,    /* struct record_rule, path string, origin string */
	CREC_ENV,     /* u32 if_there, string: NAME or NAME=VALUE */
	CREC_HOST,    /* u32 list, text string, origin string */
	CREC_SECRET,  /* u32 plain, strings: name, variable or "", from, header, hosts, origin */
	CREC_NOTE,    /* string */
	CREC_TYPES,
};

struct record_numbers {
	int32_t mode, writes;
	uint32_t narrowed, pseudonyms;
	uint64_t audit_kept_ms;
	uint64_t limit[LIMIT_SETTINGS];
};

struct record_file {
	uint32_t layer, trusted;
	unsigned char sha256[SHA256_BYTES];
};

enum rule_flag { RULE_PATTERN = 1u << 0, RULE_NARROW = 1u << 1 };
#define RULE_FLAGS_ALL 0x3u

struct record_rule {
	uint32_t access, layer, flags;
};

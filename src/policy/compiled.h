/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What policy files say, in the form that the front reads: bounded, versioned,
 * without pointers. sandglass-main writes it, the front takes it from there or
 * from its cache and trusts neither.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/path.h"
#include "base/sha256.h"
#include "policy/request.h"

#define COMPILED_VERSION 5u
#define MAX_COMPILED_BYTES (4u << 20)
#define MAX_COMPILED_KEY 65536u
#define MAX_COMPILED_RULES 1024u
#define MAX_COMPILED_ENV 256u
#define MAX_COMPILED_FILES 8u
#define MAX_COMPILED_NOTES 64u
#define MAX_COMPILED_TEXT 131072u /* one text: the kernel's bound on one variable */

/* A file that was read. */
struct compiled_file {
	const char *path;
	uint8_t layer; /* enum policy_layer */
	bool trusted;  /* all of it counts; else it can only narrow */
	unsigned char sha256[SHA256_BYTES];
};

struct compiled {
	const void *key; /* what all this was made from (policy/look.h) */
	size_t key_bytes;
	bool failed; /* nothing else counts but `error` */
	struct err error;
	int mode;                       /* MODE_UNSET: no file names one */
	int writes;                     /* WRITES_UNSET likewise */
	bool pseudonyms;                /* in the audit log */
	uint64_t audit_kept_ms;         /* how long that is kept; LIMIT_UNSET likewise */
	uint64_t limit[LIMIT_SETTINGS]; /* LIMIT_UNSET: no file names one */
	uint32_t narrowed;              /* bits 1 << limit_id */
	struct path_rule *rules;
	size_t rule_count;
	struct file_env *env;
	size_t env_count;
	struct host_rule *hosts;
	size_t host_count;
	struct secret_rule *secrets; /* at most MAX_EGRESS_SECRETS; no values */
	size_t secret_count;
	struct compiled_file *files;
	size_t file_count;
	const char **notes; /* what was not taken from a file, and why; one line each */
	size_t note_count;
};

/* Appends it to `out`. Everything must be within the limits above (asserted). */
NODISCARD int compiled_encode(const struct compiled *c, struct buf *out, struct err *e);

/*
 * Reads it strictly: INTERNAL for anything that compiled_encode() would not have
 * written. Texts point into `bytes`, which must outlive ret.
 */
NODISCARD int compiled_decode(const void *bytes, size_t len, struct compiled *ret, struct err *e);
void compiled_release(struct compiled *c);

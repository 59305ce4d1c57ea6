/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retention of the log: whole days that are older than it are deleted, oldest first, and
 * a line tells of each before it goes, with number and hash of its last line. A log may
 * begin behind such a place.
 */
#pragma once

#include "audit/audit.h"

#define SWEEP_EVENT "retention.sweep"
#define SWEEP_FILES "files"
#define SWEEP_SEQ "last_seq"
#define SWEEP_HASH "last_hash"

struct audit_swept {
	uint64_t files, bytes;
	char until[AUDIT_FILE_TEXT]; /* the newest that went; "": none did */
};

/*
 * By the retention that is kept beside the log. With `dry` nothing is deleted. No file
 * that holds the newest line ever goes.
 */
NODISCARD int audit_sweep(const struct caller *who, bool dry, struct audit_swept *ret,
			  struct err *e);

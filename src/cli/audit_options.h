/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of `audit`. sandglass describes them, sandglass-main carries them out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/opt.h"

enum audit_format { AUDIT_FORMAT_JSONL, AUDIT_FORMAT_CSV };

struct audit_options {
	const char *since, *until, *session, *event, *decision, *host, *path, *tool, *actor;
	uint64_t lines; /* of `tail` */
	int format;     /* enum audit_format */
	bool heads, follow, json, help;
};

extern const struct usage audit_usage, audit_verify_usage, audit_query_usage, audit_tail_usage,
	audit_export_usage;

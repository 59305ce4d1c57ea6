/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output kept for a result: the first and the last bytes of a stream around
 * what was left out, in bounded memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"

struct censor;

struct capture {
	uint64_t bytes; /* seen */
	size_t keep;    /* at most kept: half head, half tail */
	char *head, *tail;
	size_t head_n, head_cap;
	size_t tail_at, tail_n; /* ring */
	bool failed;            /* out of memory: the rest is only counted */
};

void capture_init(struct capture *c, uint64_t keep_bytes);
void capture_add(struct capture *c, const char *p, size_t n);
void capture_release(struct capture *c);
/* Writes {"text":…,"encoding":…,"bytes":…,"truncated":…,"file":…}; `file` NULL: kept in none. */
void capture_json(const struct capture *c, const struct censor *hide, const char *file,
		  struct json *j);

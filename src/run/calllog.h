/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a session's call writes, kept in the session's logs while it passes, and its
 * last words.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define MAX_CALL_LOG_BYTES (UINT64_C(64) << 20) /* of one stream */
#define CALL_TAIL_BYTES 4096u

struct call_log {
	bool open;
	int fd;
	uint64_t left;
	size_t tail_n;
	char tail[CALL_TAIL_BYTES]; /* the last that was written, in order */
};

/* A new file below the directory `dir`, which a command may have tampered with. */
NODISCARD int call_log_open(struct call_log *l, int dir, const char *path, struct err *e);
/* A disk that is full ends the log, not the call. */
void call_log_add(struct call_log *l, const char *p, size_t n);
/* Whether the last words hold `text`. */
bool call_log_says(const struct call_log *l, const char *text);
void call_log_close(struct call_log *l);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time. Deadlines are absolute CLOCK_MONOTONIC milliseconds; LIMIT_NONE is never.
 */
#pragma once

#include <stdint.h>

uint64_t clock_mono_ms(void);
/* Milliseconds since 1970, UTC. */
int64_t clock_wall_ms(void);

/* now + duration; LIMIT_NONE stays, and what would overflow becomes it. */
uint64_t clock_deadline(uint64_t now_ms, uint64_t duration_ms);
/* Timeout for poll(2): -1 for never, 0 if past, at most INT_MAX. */
int clock_poll_timeout(uint64_t now_ms, uint64_t deadline_ms);

#define CLOCK_TEXT 25 /* 2026-01-31T23:59:59.999Z and the NUL */
/* RFC 3339 in UTC; years outside 0000 to 9999 become the nearest end. Returns ret. */
const char *clock_rfc3339(int64_t unix_ms, char ret[CLOCK_TEXT]);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers, sizes, durations and processor shares as people write them. All
 * parsers are strict: plain decimal digits, no sign, no blank, no leading zero
 * ("0x10" and "010" are errors), overflow is an error. Errors are
 * CONFIG_INVALID and say what would have been right.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"

#define LIMIT_NONE UINT64_MAX        /* the word `none`: no limit */
#define LIMIT_UNSET (UINT64_MAX - 1) /* for callers: nobody said anything; no parser returns it */

#define MAX_SIZE_BYTES ((uint64_t)INT64_MAX)             /* fits off_t */
#define MAX_DURATION_MS (UINT64_C(36500) * 86400 * 1000) /* in ns it still fits int64_t */
#define MAX_CPUS_MILLI (UINT64_C(1000000) * 1000)

/* min <= value <= max. */
NODISCARD int num_parse(const char *s, uint64_t min, uint64_t max, uint64_t *ret, struct err *e);

/*
 * Bytes: `1048576 1048576B 1024k 1024K 1024KiB 1M 1MiB 1G 1GiB 1T 1TiB`, all powers of 1024;
 * `1.5GiB` (at most six decimals) if that is a whole number of bytes; `none`.
 * kB MB GB TB have two readings and are refused with both.
 */
NODISCARD int size_parse(const char *s, uint64_t *ret_bytes, struct err *e);

/*
 * `250ms 30s 5m 1h30m 1d`, units from large to small, each once; a single unit
 * may have decimals (`1.5s`) if that is a whole number of milliseconds; `none`.
 */
NODISCARD int duration_parse(const char *s, uint64_t *ret_ms, struct err *e);

/* `2`, `1.5`, `0.25` (at most three decimals, more than 0), `none`; 1000 is one processor. */
NODISCARD int cpus_parse(const char *s, uint64_t *ret_milli, struct err *e);

/* Exact and short, and read back to the same value by the parsers above. Return ret. */
#define NUM_TEXT 48
const char *size_format(uint64_t bytes, char ret[NUM_TEXT]);
const char *duration_format(uint64_t ms, char ret[NUM_TEXT]);
const char *cpus_format(uint64_t milli, char ret[NUM_TEXT]);

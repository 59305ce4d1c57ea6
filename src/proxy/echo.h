/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that sends back what it was sent (an echo, an error page) would give a secret's
 * value to the sandbox. What comes from it is looked through: for the value as it stands,
 * percent-encoded, and in base64 at any offset. Who wants to hide it can; that is a server
 * which has it anyway. Pure: bytes in, bytes out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Spellings that are looked for, of all values of one request. */
#define MAX_ECHO_SPELLINGS 96u
/* What is shorter is found everywhere. */
#define MIN_ECHO_BYTES 6u

struct echo;

/* NULL: no memory. */
struct echo *echo_new(void);
/*
 * A header's value: looked for is its last word, and what is after the colon in a word of
 * `Basic`. False: no memory, or too many.
 */
NODISCARD bool echo_add(struct echo *e, const char *value);
/* The same of a value as it is, whatever is in it. */
NODISCARD bool echo_add_value(struct echo *e, const char *raw);
/* Wipes. */
void echo_free(struct echo *e);

/* It is somewhere in these bytes, which are all there is. */
bool echo_finds(const struct echo *e, const char *p, size_t n);

/*
 * The next bytes of a stream. Appends to `out` what can go on: all but an end that may be
 * the beginning of a value; with `last`, that too. False: it was found; `out` is of no use.
 */
NODISCARD bool echo_feed(struct echo *e, const char *p, size_t n, bool last, struct buf *out);

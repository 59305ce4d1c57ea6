/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path of a request in the one form that rules are compared with, and what of it
 * two readers could take in two ways. Pure, over bytes that are not believed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define MAX_EGRESS_PATH 4096u   /* bytes of a path that a rule decides about */
#define MAX_EGRESS_TARGET 8192u /* of a path with its query (RFC 9110 4.1: at least 8000) */

/*
 * Percent signs are undone once where that changes nothing (RFC 3986 2.3, 6.2.2.2:
 * unreserved characters; also `!$&'()*+,=:@`), others are kept in upper case. A %2F is
 * read in both ways: whoever asks for an allow rule has to match both.
 */
struct egress_path {
	char text[MAX_EGRESS_PATH + 1];
	char slashes[MAX_EGRESS_PATH + 1]; /* each %2F is a slash */
};

/*
 * Reads n bytes up to a `?`. NULL: good, else why it is ambiguous, and ret is of no use:
 * dot segments, empty segments (also with parameters or encoded bytes of ASCII around),
 * backslashes, control bytes, bytes over 126, `#`, an encoded `?`, a percent sign that is
 * none or stands for another, overlong encodings; each of them raw or encoded.
 */
const char *egress_path_read(const char *target, size_t n, struct egress_path *ret);

/*
 * A pattern of a rule: begins with a slash; `*` is any bytes but a slash, `**` alone
 * between two slashes any number of segments, none as well. In the form that requests
 * are brought into, without parameters. Gets n bytes. NULL: good.
 */
const char *egress_pattern_check(const char *pattern, size_t n);

/*
 * `loosely`, for rules that deny: letters of either case, with or without `;…` of a
 * segment, without slashes at the end. Else with `;…` and without it.
 */
bool egress_path_match(const char *pattern, size_t n, const char *path, bool loosely);

/*
 * A request by which git writes: receive-pack, locks and uploads of LFS, whatever writes
 * below a `.git` but upload-pack. Read as loosely as any server might: percent signs undone twice, any case,
 * dot segments followed. At most MAX_EGRESS_TARGET bytes. What a body says is not seen: LFS's batch call is no write.
 */
bool egress_path_pushes(const char *method, size_t method_len, const char *target, size_t n);

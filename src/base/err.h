/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors as values. The caller owns a struct err; a function that fails fills
 * it and returns -1 or NULL. No allocation, so it is safe after fork and on
 * out-of-memory. On success the struct is left alone.
 *
 * Messages and hints may quote foreign text (paths, arguments): what is stored
 * is always one line of valid UTF-8 that is safe on a terminal, escaped as by
 * term_escape(), and ends with "…" if it had to be cut.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>

#define NODISCARD __attribute__((warn_unused_result))
#define PRINTF(f, a) __attribute__((format(printf, f, a)))

/* Every code a caller can see. Names, kinds and meanings: CONTRACT, sandglass-errors(7). */
enum err_code {
	ERR_NONE,
	ERR_TOOL_TIMEOUT,
	ERR_IDLE_TIMEOUT,
	ERR_LEASE_EXPIRED,
	ERR_CANCELLED,
	ERR_POLICY_DENIED,
	ERR_ARG_LIMIT,
	ERR_UNSUPPORTED,
	ERR_OUTPUT_LIMIT,
	ERR_MEMORY_LIMIT,
	ERR_PIDS_LIMIT,
	ERR_CPU_LIMIT,
	ERR_DISK_LIMIT,
	ERR_INODE_LIMIT,
	ERR_EGRESS_DENIED,
	ERR_SANDBOX_UNAVAILABLE,
	ERR_LIMIT_UNAVAILABLE,
	ERR_SECRET_UNAVAILABLE,
	ERR_NESTED_SANDBOX,
	ERR_CONFIG_INVALID,
	ERR_NOT_EXECUTABLE,
	ERR_NOT_FOUND,
	ERR_CONFLICT,
	ERR_BUSY,
	ERR_INTERNAL,
	ERR_CODES, /* count, not a code */
};

enum err_kind { ERR_KIND_TERMINAL, ERR_KIND_RETRYABLE, ERR_KIND_PENDING };

#define ERR_MSG_MAX 1024
#define ERR_HINT_MAX 512

struct err {
	enum err_code code;
	int sys; /* errno behind it, 0 if none */
	char msg[ERR_MSG_MAX];
	char hint[ERR_HINT_MAX]; /* what would help; empty if nothing is known */
};

/* Our verdict. Returns -1, so that `return err_set(...)` reads well. */
int err_set(struct err *e, enum err_code code, const char *fmt, ...) PRINTF(3, 4);
/* A system call failed: code INTERNAL, message "…: strerror(errno)". Returns -1. */
int err_sys(struct err *e, const char *fmt, ...) PRINTF(2, 3);
/*
 * Puts "context: " before the message. Returns -1. The context gets at most half
 * of the room, so this is the way to quote what may be long.
 */
int err_wrap(struct err *e, const char *fmt, ...) PRINTF(2, 3);
/* Sets the hint. Returns -1. */
int err_hint(struct err *e, const char *fmt, ...) PRINTF(2, 3);

const char *err_code_name(enum err_code code);
enum err_kind err_code_kind(enum err_code code);
const char *err_kind_name(enum err_kind kind);
/* Exit status of `run` for this code: 124, 126, 127 or 125. */
int err_code_status(enum err_code code);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors as values, and the one table of codes. Allocates nothing, prints nothing.
 */
#include "base/err.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/term.h"

struct code {
	const char *name;
	enum err_kind kind;
	int status;
};

/*
 * ERR_NONE has a row so that a failure that forgot to name its code still ends
 * as a failure.
 */
static const struct code codes[] = {
	[ERR_NONE] = {"NONE", ERR_KIND_TERMINAL, 125},
	[ERR_TOOL_TIMEOUT] = {"TOOL_TIMEOUT", ERR_KIND_TERMINAL, 124},
	[ERR_IDLE_TIMEOUT] = {"IDLE_TIMEOUT", ERR_KIND_TERMINAL, 124},
	[ERR_LEASE_EXPIRED] = {"LEASE_EXPIRED", ERR_KIND_TERMINAL, 125},
	[ERR_CANCELLED] = {"CANCELLED", ERR_KIND_TERMINAL, 125},
	[ERR_POLICY_DENIED] = {"POLICY_DENIED", ERR_KIND_TERMINAL, 125},
	[ERR_ARG_LIMIT] = {"ARG_LIMIT", ERR_KIND_TERMINAL, 125},
	[ERR_UNSUPPORTED] = {"UNSUPPORTED", ERR_KIND_TERMINAL, 125},
	[ERR_OUTPUT_LIMIT] = {"OUTPUT_LIMIT", ERR_KIND_TERMINAL, 125},
	[ERR_MEMORY_LIMIT] = {"MEMORY_LIMIT", ERR_KIND_TERMINAL, 125},
	[ERR_PIDS_LIMIT] = {"PIDS_LIMIT", ERR_KIND_TERMINAL, 125},
	[ERR_CPU_LIMIT] = {"CPU_LIMIT", ERR_KIND_TERMINAL, 125},
	[ERR_DISK_LIMIT] = {"DISK_LIMIT", ERR_KIND_TERMINAL, 125},
	[ERR_INODE_LIMIT] = {"INODE_LIMIT", ERR_KIND_TERMINAL, 125},
	[ERR_EGRESS_DENIED] = {"EGRESS_DENIED", ERR_KIND_TERMINAL, 125},
	[ERR_SANDBOX_UNAVAILABLE] = {"SANDBOX_UNAVAILABLE", ERR_KIND_TERMINAL, 125},
	[ERR_LIMIT_UNAVAILABLE] = {"LIMIT_UNAVAILABLE", ERR_KIND_TERMINAL, 125},
	[ERR_SECRET_UNAVAILABLE] = {"SECRET_UNAVAILABLE", ERR_KIND_TERMINAL, 125},
	[ERR_NESTED_SANDBOX] = {"NESTED_SANDBOX", ERR_KIND_TERMINAL, 125},
	[ERR_CONFIG_INVALID] = {"CONFIG_INVALID", ERR_KIND_TERMINAL, 125},
	[ERR_NOT_EXECUTABLE] = {"NOT_EXECUTABLE", ERR_KIND_TERMINAL, 126},
	[ERR_NOT_FOUND] = {"NOT_FOUND", ERR_KIND_TERMINAL, 127},
	[ERR_CONFLICT] = {"CONFLICT", ERR_KIND_TERMINAL, 125},
	[ERR_BUSY] = {"BUSY", ERR_KIND_RETRYABLE, 125},
	[ERR_INTERNAL] = {"INTERNAL", ERR_KIND_TERMINAL, 125},
};

_Static_assert(ARRAY_LEN(codes) == ERR_CODES, "each code has its row");

/* Longer than any message, so that a text cut here is cut, and marked, once more behind. */
#define RAW_MAX (ERR_MSG_MAX + 8)

PRINTF(2, 0)
static void format_raw(char raw[RAW_MAX], const char *fmt, va_list ap)
{
	if (vsnprintf(raw, RAW_MAX, fmt, ap) < 0)
		(void)snprintf(raw, RAW_MAX, "%s", fmt); /* better the pattern than nothing */
}

static void store(char *dst, size_t cap, const char *raw)
{
	term_escape_cut(dst, cap, raw, strlen(raw));
}

int err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
	char raw[RAW_MAX];
	va_list ap;

	assert(code < ERR_CODES);
	va_start(ap, fmt);
	format_raw(raw, fmt, ap);
	va_end(ap);
	e->code = code;
	e->sys = 0;
	e->hint[0] = '\0';
	store(e->msg, sizeof(e->msg), raw);
	return -1;
}

int err_sys(struct err *e, const char *fmt, ...)
{
	int sys = errno;
	char raw[RAW_MAX];
	va_list ap;

	va_start(ap, fmt);
	format_raw(raw, fmt, ap);
	va_end(ap);
	e->code = ERR_INTERNAL;
	e->sys = sys;
	e->hint[0] = '\0';
	store(e->msg, sizeof(e->msg), raw);
	/* The reason must survive a long context. */
	const char *why = strerror(sys);
	size_t room = sizeof(e->msg) - strlen(why) - 3;
	if (strlen(e->msg) > room)
		term_escape_cut(e->msg, room, raw, strlen(raw));
	size_t n = strlen(e->msg);
	(void)snprintf(e->msg + n, sizeof(e->msg) - n, ": %s", why);
	errno = sys;
	return -1;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
	char raw[RAW_MAX];
	char old[ERR_MSG_MAX];
	va_list ap;

	va_start(ap, fmt);
	format_raw(raw, fmt, ap);
	va_end(ap);
	memcpy(old, e->msg, sizeof(old));
	store(e->msg, sizeof(e->msg) / 2, raw); /* leave room for the cause */
	size_t n = strlen(e->msg);
	e->msg[n++] = ':';
	e->msg[n++] = ' ';
	term_escape_cut(e->msg + n, sizeof(e->msg) - n, old, strlen(old));
	return -1;
}

int err_hint(struct err *e, const char *fmt, ...)
{
	char raw[RAW_MAX];
	va_list ap;

	va_start(ap, fmt);
	format_raw(raw, fmt, ap);
	va_end(ap);
	store(e->hint, sizeof(e->hint), raw);
	return -1;
}

const char *err_code_name(enum err_code code)
{
	assert(code < ERR_CODES);
	return codes[code].name;
}

enum err_kind err_code_kind(enum err_code code)
{
	assert(code < ERR_CODES);
	return codes[code].kind;
}

const char *err_kind_name(enum err_kind kind)
{
	switch (kind) {
	case ERR_KIND_TERMINAL:
		return "terminal";
	case ERR_KIND_RETRYABLE:
		return "retryable";
	case ERR_KIND_PENDING:
		return "pending";
	}
	assert(!"no such kind");
	return NULL;
}

int err_code_status(enum err_code code)
{
	assert(code < ERR_CODES);
	return codes[code].status;
}

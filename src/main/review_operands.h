/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `[ID] [PATH…]`: a session, and paths in its source.
 */
#pragma once

#include "audit/audit.h"
#include "base/json.h"
#include "base/path.h"
#include "policy/request.h"
#include "review/change.h"
#include "store/session.h"

struct review_operands {
	char id[UUID_TEXT];
	int session; /* its directory, opened */
	struct session_record rec;
	bool found;         /* no operand named it */
	const char **paths; /* as they were given */
	size_t n;
};

/* The first operand if it names a session, else the newest session of the source around cwd. */
NODISCARD int review_operands(const struct caller *who, int argc, char **argv,
			      struct review_operands *ret, struct err *e);
void review_operands_release(struct review_operands *o);

/*
 * A path below the source, "" for the source itself. Two readings: from the caller's directory
 * (false if that is not in the source), and from the source. CONFIG_INVALID for one outside.
 */
NODISCARD int review_path(const struct caller *who, const struct session_record *rec,
			  const char *text, bool from_source, char ret[PATH_TEXT], struct err *e);

/* The paths of the operands, each from the caller's directory if there is a change, else from the source. */
struct review_named {
	char (*v)[PATH_TEXT];
	const char **p; /* n of them */
	size_t n;
};
NODISCARD int review_name(const struct caller *who, const struct review_operands *ops,
			  const struct changes *c, struct review_named *ret, struct err *e);
void review_named_release(struct review_named *n);

/* Says on stderr which session was taken, if no operand named it. 0, or -1: it cannot. */
int review_say_session(const struct review_operands *ops);
/* An event of the audit log about the session that was taken, on the disk when it returns. */
NODISCARD int review_note(const struct caller *who, const struct review_operands *ops,
			  const char *event, const struct audit_field *data, size_t n,
			  struct err *e);
/* The key `error`; NULL is null. */
void review_error_json(struct json *j, const struct err *failed);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which lines of the log somebody asks for.
 */
#pragma once

#include "audit/pseudonym.h"
#include "chain/record.h"

#define WHEN_TEXT 25 /* as a line's time, or a beginning of it */

/* NULL or "": whatever there is. */
struct filter {
	char since[WHEN_TEXT], until[WHEN_TEXT];
	const char *session, *event, *decision, *host, *path, *tool, *actor;
	const struct pseudonyms
		*hidden; /* of a log that has some: names are looked for as theirs too */
};

/*
 * 2026-01-31, 2026-01-31T12, …T12:30, …T12:30:15, …T12:30:15.123, each with a Z or
 * without one, or a duration: so long before now.
 */
NODISCARD int filter_when(const char *text, int64_t now_ms, char ret[WHEN_TEXT], struct err *e);

/* CONFIG_INVALID, with the nearest one, if it is no event of the log and no kind of events. */
NODISCARD int filter_event(const char *asked, struct err *e);

/* Whether the line is of the beginning of a session of that name. */
bool filter_begins_session(const struct record *r, const char *name);

bool filter_fits(const struct filter *f, const struct record *r);

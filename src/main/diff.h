/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `diff` found, and the ways to show it.
 */
#pragma once

#include "main/hold.h"
#include "review/change.h"
#include "review/flags.h"
#include "review/patch.h"
#include "review/refs.h"
#include "review/unseen.h"

#define UNCLEAN_LINE "# unclean: " UNCLEAN_TEXT "\n"
#define PENDING_LINE \
	"# an apply was killed: the next apply, or sandglass gc, finishes or undoes it\n"

struct diff {
	const struct session_record *rec;
	struct hold hold; /* until all was read */
	struct review r;
	struct changes c;
	struct patch p;
	struct refs refs;
	struct flags flags; /* for --stat and --json */
	struct unseen unseen;
	struct err unseen_why;                      /* they could not be looked into */
	uint64_t added, modified, deleted, renamed; /* files, outside of git directories */
};

NODISCARD int diff_json(const struct diff *d, struct buf *out, struct err *e);
/* What commits hold and files do not show, a line each. */
NODISCARD int diff_unseen(const struct diff *d, const char *before, struct sink *out,
			  struct err *e);
NODISCARD int diff_stat(const struct diff *d, struct sink *out, struct err *e);

int main_diff(int argc, char **argv);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of the log for people, and as CSV (RFC 4180).
 */
#pragma once

#include "base/buf.h"
#include "chain/record.h"

/* seq, time, event, actor, session, what it is about: one line, safe on a terminal. */
void show_text(const struct record *r, struct buf *out);

void show_csv_head(struct buf *out);
/* A text that a spreadsheet would take for a formula has a ' before it. */
void show_csv(const struct record *r, struct buf *out);

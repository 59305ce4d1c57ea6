/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a killed `apply` or `discard` of a session left.
 */
#pragma once

#include "base/err.h"
#include "policy/request.h"
#include "store/session.h"

/*
 * Finishes or undoes it, and removes what is of ours; nothing to do is done at once. BUSY: one of
 * them is under way. A source that is another directory by now is left alone.
 */
NODISCARD int review_recover(const struct caller *who, int session,
			     const struct session_record *rec, struct err *e);

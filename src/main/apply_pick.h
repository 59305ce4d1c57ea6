/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `apply -p`: a person is asked about each hunk, or about a change as a whole where it has none.
 */
#pragma once

#include "base/err.h"
#include "review/apply.h"

/* UNSUPPORTED without a terminal to ask at. */
NODISCARD int apply_pick_check(struct err *e);
/* An apply_part: takes away from what was named, and makes the content of what is taken in part. */
NODISCARD int apply_pick(void *self, struct apply *a, struct err *e);

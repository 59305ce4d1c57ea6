/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From chosen changes to a journal, and the new files of it, complete and durable
 * beside the names that they are for.
 */
#pragma once

#include "base/err.h"
#include "review/choice.h"
#include "review/engine.h"

/*
 * Fills en->j; paths stay those of the changes. CONFLICT if a directory that is to go holds what
 * the session did not know of.
 */
NODISCARD int stage_plan(struct engine *en, const struct changes *c, const struct choice *v,
			 struct err *e);

/* Makes what each OP_PUT is for, at its random name. A failure leaves that to engine_back(). */
NODISCARD int stage_make(struct engine *en, const struct review *r, const struct changes *c,
			 const struct choice *v, struct err *e);

/* The content that is to be written, if the session could read it too; -1 with e. */
NODISCARD int stage_content(const struct engine *en, const struct review *r,
			    const struct change *ch, const struct choice *x, struct err *e);

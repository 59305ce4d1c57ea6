/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the user's policy says about the log, kept beside it, so that every writer acts
 * alike, whether it has read a policy or not: the file `settings`, 0600.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "policy/request.h"

#define AUDIT_DAY_MS UINT64_C(86400000)
#define AUDIT_KEPT_MS (400 * AUDIT_DAY_MS) /* how long the log is kept where no file says */

struct audit_settings {
	bool pseudonyms;
	uint64_t kept_ms; /* LIMIT_NONE: for ever */
};

/* Of the open directory; the defaults if there is no such file. Damaged: CONFIG_INVALID. */
NODISCARD int audit_settings_read(int dir, struct audit_settings *ret, struct err *e);

/* Makes the settings of the caller's log these; nothing is written if they are already. */
NODISCARD int audit_settings_put(const struct caller *who, const struct audit_settings *s,
				 struct err *e);

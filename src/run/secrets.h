/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of a call's secrets: fetched where a policy says, as the caller, and kept
 * only as long as the call. Nothing that is written holds one.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "egress/secret.h"
#include "policy/request.h"

#define SECRET_COMMAND_MS 10000u /* how long one of `command:` may take */

struct secret_values {
	struct egress_secrets rendered;
	char *name[MAX_EGRESS_SECRETS];
	char *raw[MAX_EGRESS_SECRETS]; /* as fetched, without the newline at the end */
	size_t n;
};

/*
 * Fetches all that secrets_chosen() names; `session` is what placeholders are made of.
 * SECRET_UNAVAILABLE with the reason: a variable that is not set, a file that cannot be
 * read, a command that fails or takes longer than SECRET_COMMAND_MS, a value that is
 * empty, longer than a header can be or no text. No message holds any of a value.
 */
NODISCARD int secrets_fetch(const struct request *req, const struct caller *who,
			    const char *session, struct secret_values *ret, struct err *e);
/* Wipes them. */
void secrets_release(struct secret_values *v);

/* Those of a call as a sealed file, from its beginning; -1: `e` says why. */
NODISCARD int secrets_file(const struct egress_secrets *s, struct err *e);

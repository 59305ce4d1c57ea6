/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files a person trusts: by path and content together, so that neither
 * another text at the path nor the text at another path is believed.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/sha256.h"

/* Records are files below `state`/trust. `path` is absolute. */
bool trust_has(const char *state, uid_t uid, const char *path,
	       const unsigned char content[SHA256_BYTES]);
NODISCARD int trust_add(const char *state, const char *path,
			const unsigned char content[SHA256_BYTES], struct err *e);
/* All records of the path, whatever the content. *ret_removed counts them. */
NODISCARD int trust_remove(const char *state, const char *path, unsigned int *ret_removed,
			   struct err *e);

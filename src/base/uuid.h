/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random UUIDs (RFC 9562, version 4) in lower case.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"

#define UUID_TEXT 37 /* with the NUL */

NODISCARD int uuid4(char ret[UUID_TEXT], struct err *e);

/* Canonical lower-case text form, of any version. */
bool uuid_valid(const char *s);

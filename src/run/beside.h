/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the other programs of sandglass are.
 */
#pragma once

#include "base/err.h"
#include "base/path.h"

/* Beside this program, or in ../libexec/sandglass. */
NODISCARD int beside_find(const char *name, char ret[PATH_TEXT], struct err *e);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the other programs of sandglass are.
 */
#pragma once

#include "base/err.h"
#include "base/path.h"

/* Beside this program, or in ../libexec/sandglass. */
NODISCARD int beside_find(const char *name, char ret[PATH_TEXT], struct err *e);

/* The front, from sandglass-main: beside it, above it as it is built, or in ../../bin. */
NODISCARD int beside_front(char ret[PATH_TEXT], struct err *e);

#define BESIDE_NO_LIBRARY 127 /* the status of a program whose libraries cannot be loaded */
/* That is the error: what it is for, and the mend. Returns -1. */
int beside_no_library(const char *name, struct err *e);

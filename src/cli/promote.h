/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of `export` and `push`. sandglass describes them, sandglass-main
 * carries them out.
 */
#pragma once

#include <stdbool.h>

#include "base/opt.h"

struct export_options {
	const char *output; /* NULL: $SANDGLASS_HOME/artifacts/ID */
	bool at_end;        /* of the session's life: nothing to do if nothing is held */
	bool json, help;
};

struct push_options {
	const char *branch, *message; /* NULL: made */
	bool json, help;
};

extern const struct usage export_usage, push_usage;

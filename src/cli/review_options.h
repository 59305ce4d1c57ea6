/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of `diff`. sandglass describes it, sandglass-main carries it out.
 */
#pragma once

#include <stdbool.h>

#include "base/opt.h"

struct diff_options {
	bool stat, exit_code, no_color, json, help;
	bool at_end; /* of the session's life: its keeper waits for us */
};

extern const struct usage diff_usage;

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of `apply` and `discard`. sandglass describes them, sandglass-main
 * carries them out.
 */
#pragma once

#include <stdbool.h>

#include "base/opt.h"

struct apply_options {
	bool merge, patch, json, help;
};

extern const struct usage apply_usage, discard_usage;

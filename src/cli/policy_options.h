/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of `policy` and `schema`. sandglass describes them, sandglass-main
 * carries them out.
 */
#pragma once

#include <stdbool.h>

#include "base/opt.h"

struct policy_options {
	const char *source, *policy;
	struct strlist profile;
	bool no_source, origin, json, help;
};

extern const struct usage policy_usage, policy_show_usage, policy_check_usage, policy_trust_usage,
	policy_untrust_usage, schema_usage;

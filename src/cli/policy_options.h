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
	struct strlist allow_host, deny_host, allow_local; /* of `explain` */
	bool no_source, origin, json, help;
	const char *host, *method; /* of `explain` */
};

extern const struct usage policy_usage, policy_show_usage, policy_check_usage, policy_trust_usage,
	policy_untrust_usage, policy_explain_usage, schema_usage;

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of `session` and `gc` but those of `session new` and `session exec`
 * (run_options.h). sandglass describes them, sandglass-main carries them out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/opt.h"

struct session_options {
	uint64_t ttl_ms;
	bool json, discard, follow, err, dry_run, help;
	struct strlist allow_host, deny_host, allow_local; /* of `net` */
	bool anew;
};

extern const struct usage session_usage, session_new_usage, session_list_usage, session_show_usage,
	session_exec_usage, session_calls_usage, session_logs_usage, session_stop_usage,
	session_net_usage, session_renew_usage, session_pause_usage, session_resume_usage,
	session_reset_usage, session_destroy_usage, gc_usage;

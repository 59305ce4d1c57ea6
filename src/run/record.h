/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the audit log gets of a call, as one append when it is over: call.start and
 * call.end, before them policy.load if policy files were read anew.
 */
#pragma once

#include "run/job.h"

/* After job_judge(), or after a failure before anything ran. */
NODISCARD int job_record(const struct job *j, struct err *e);

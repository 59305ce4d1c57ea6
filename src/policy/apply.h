/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what policy files say, and what the options say above them, to one request.
 */
#pragma once

#include "policy/compiled.h"
#include "policy/request.h"

/*
 * Fills in what no option has said. `c` is NULL where there is no policy. The
 * request then points into `c`, which must outlive it.
 */
void policy_apply(struct request *req, const struct compiled *c);

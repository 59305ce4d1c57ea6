/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of `run` and `shell`.
 */
#pragma once

#include "policy/request.h"

/* Defaults, then what argv says. CONFIG_INVALID, or UNSUPPORTED for what comes later. */
NODISCARD int run_options_parse(int argc, char **argv, struct request *ret, struct err *e);

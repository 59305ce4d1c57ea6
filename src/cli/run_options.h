/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of `run` and `shell`.
 */
#pragma once

#include "policy/request.h"

/* Defaults, then what argv says. CONFIG_INVALID, or UNSUPPORTED for what comes later. */
NODISCARD int run_options_parse(int argc, char **argv, struct request *ret, struct err *e);

/* Those of `session new`. */
NODISCARD int session_new_parse(int argc, char **argv, struct request *ret, struct err *e);
/* Those of `session exec`, above what *ret has from the session. */
NODISCARD int session_exec_parse(int argc, char **argv, struct request *ret, struct err *e);

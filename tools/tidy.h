/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read before each file by tools/run-tidy, never by a compiler: tells the
 * analyzer, which sees one file at a time, that these always return -1.
 */
#pragma once

#include "base/err.h"

#define err_set(...) ((void)err_set(__VA_ARGS__), -1)
#define err_sys(...) ((void)err_sys(__VA_ARGS__), -1)
#define err_wrap(...) ((void)err_wrap(__VA_ARGS__), -1)
#define err_hint(...) ((void)err_hint(__VA_ARGS__), -1)

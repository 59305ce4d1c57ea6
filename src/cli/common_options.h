/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options that each table of verbs has, for a table whose AT(field) is the offset of a
 * field in the structure that its options go to; that has `help` and `json`.
 */
#pragma once

#include "base/opt.h"

#define OPT_HELP                                                                      \
	{                                                                             \
		.name = "help", .short_name = 'h', .kind = OPT_FLAG, .off = AT(help), \
		.help = "this text"                                                   \
	}
#define OPT_JSON                                                                               \
	{                                                                                      \
		.name = "json", .kind = OPT_FLAG, .off = AT(json), .help = "one JSON document" \
	}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables, one a file. What a row does and which control it has: ROWS.md.
 */
#pragma once

#include <string.h>
#include <unistd.h>

#include "probe/probe.h"

extern const struct row_table rows_tty, rows_ns, rows_proc, rows_kernel_files, rows_fd, rows_fs,
	rows_view, rows_setid, rows_syscall, rows_net, rows_ipc, rows_limit, rows_works,
	rows_works_more;

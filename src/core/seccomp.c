/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the system call filter that tools/gen_seccomp.c made at build time.
 * Last restriction before execve: the stages before it need calls it refuses.
 */
#include <errno.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "core/core.h"
#include "seccomp_prog.h"

void seccomp_load(void)
{
	struct sock_fprog prog = {
		.len = sizeof(seccomp_prog) / sizeof(seccomp_prog[0]),
		.filter = (struct sock_filter *)(uintptr_t)seccomp_prog,
	};

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
		core_die(STAGE_SECCOMP, errno, "load the filter");
}

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

#include "base/landlock_abi.h"
#include "core/core.h"
#include "seccomp_prog.h"

#define LEN(prog) ((unsigned short)(sizeof(prog) / sizeof((prog)[0])))

void seccomp_load(const struct core *c)
{
	struct sock_fprog prog = {LEN(seccomp_prog), (struct sock_filter *)(uintptr_t)seccomp_prog};

	if (c->p->n.flags & PLAN_LANDLOCK) {
		bool old = c->landlock_abi < LANDLOCK_ABI_TRUNCATE;
		prog.len = old ? LEN(seccomp_rung_old) : LEN(seccomp_rung);
		prog.filter =
			(struct sock_filter *)(uintptr_t)(old ? seccomp_rung_old : seccomp_rung);
	}

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
		core_die(STAGE_SECCOMP, errno, "load the filter");
}

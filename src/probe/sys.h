/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls and constants that the C library may not know yet. Numbers from
 * 424 on are the same on every architecture.
 */
#pragma once

#include <sys/syscall.h>

#define NR_open_tree 428
#define NR_move_mount 429
#define NR_fsopen 430
#define NR_fsconfig 431
#define NR_fsmount 432
#define NR_fspick 433
#define NR_pidfd_open 434
#define NR_clone3 435
#define NR_openat2 437
#define NR_pidfd_getfd 438
#define NR_mount_setattr 442
#define NR_quotactl_fd 443
#define NR_landlock_create_ruleset 444
#define NR_fchmodat2 452
#define NR_setxattrat 463
#define NR_open_tree_attr 467
#define NR_unknown_first 460
#define NR_unknown_last 600

/* From an unsigned 64-bit word to what syscall() takes. */
#define WORD(x) ((long)(x))
/* Set above the 32 bits of an argument that the kernel takes as an int. */
#define HIGH_BIT (1L << 32)

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock's binary interface up to ABI 7; Debian 12's headers end at 2.
 * Source: landlock(7) and the kernel's user-space API documentation.
 */
#pragma once

#include <stdint.h>

enum { SYS_LANDLOCK_CREATE = 444, SYS_LANDLOCK_ADD_RULE = 445, SYS_LANDLOCK_RESTRICT = 446 };
enum { LANDLOCK_VERSION_FLAG = 1, LANDLOCK_PATH_RULE = 1 };

struct landlock_ruleset {
	uint64_t fs, net, scoped;
};

struct landlock_path {
	uint64_t access;
	int32_t fd;
} __attribute__((packed));

#define LANDLOCK_EXECUTE (1ull << 0)
#define LANDLOCK_WRITE_FILE (1ull << 1)
#define LANDLOCK_READ_FILE (1ull << 2)
#define LANDLOCK_READ_DIR (1ull << 3)
#define LANDLOCK_MAKE_CHAR (1ull << 6)
#define LANDLOCK_MAKE_BLOCK (1ull << 11)
#define LANDLOCK_TRUNCATE (1ull << 14)
#define LANDLOCK_IOCTL_DEV (1ull << 15)

#define LANDLOCK_READ (LANDLOCK_EXECUTE | LANDLOCK_READ_FILE | LANDLOCK_READ_DIR)
#define LANDLOCK_WRITE_NODE (LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE | LANDLOCK_IOCTL_DEV)
/* Rights that mean something for a rule on a file that is no directory. */
#define LANDLOCK_FILE_RIGHTS (LANDLOCK_EXECUTE | LANDLOCK_READ_FILE | LANDLOCK_WRITE_NODE)
/* Handled and granted nowhere. */
#define LANDLOCK_NEVER (LANDLOCK_MAKE_CHAR | LANDLOCK_MAKE_BLOCK)
/* From this ABI on truncate(2) is held. */
#define LANDLOCK_ABI_TRUNCATE 3
/* TCP bind and connect, ABI 4: granted for no port. */
#define LANDLOCK_ABI_NET 4
#define LANDLOCK_TCP 3ull
/* Abstract unix sockets and signals stay inside the domain. */
#define LANDLOCK_SCOPES 3ull

#define LANDLOCK_ABI_SCOPES 6

/* ABI 1 has 13 rights; 2 adds REFER, 3 TRUNCATE, 5 IOCTL_DEV. */
static inline uint64_t landlock_fs_rights(int abi)
{
	unsigned int bits = abi >= 5 ? 16 : abi >= 3 ? 15 : abi >= 2 ? 14 : 13;

	return (1ull << bits) - 1;
}

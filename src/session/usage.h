/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a session takes up on the host: what lies in its directory, and what its
 * processes have removed and still hold open.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* It could not be counted: more than any limit. */
#define USAGE_UNKNOWN UINT64_MAX

#define USAGE_FLOOR_BYTES (UINT64_C(512) << 20) /* of free space, that stay the host's */

struct usage_of {
	uint64_t bytes, inodes;
};

/* Longest walk. A million files take about a second where they are known to the kernel. */
#define USAGE_WALK_MS 15000u

/*
 * Walks all that a session writes. What cannot be counted, or not within USAGE_WALK_MS,
 * makes it USAGE_UNKNOWN. With `most` the walk ends where that is exceeded.
 */
void usage_measure(int dir, const struct usage_of *most, struct usage_of *ret);
/* Adds unlinked files that processes in these pid namespaces (their inodes) hold open. */
void usage_add_unlinked(const ino_t *pid_ns, size_t n, struct usage_of *u);
/* Bytes that are free for the caller where the session lies; UINT64_MAX: not known. */
uint64_t usage_free(int dir);
/* The pid namespace, as its inode, of the process of a pidfd; 0: it is gone. */
ino_t usage_pid_ns(int pidfd);

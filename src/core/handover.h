/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the front to init over the control socket, first of all: "this part of the
 * plan is complete, go on", and as root the mount trees (and stdin) that only root
 * could open. Both ends are ours; a message that is not as expected ends init.
 */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

#define HANDOVER_FDS 200u /* SCM_MAX_FD is 253: unix(7) */
#define HANDOVER_STDIN UINT32_MAX
#define HANDOVER_PLAN (UINT32_MAX - 1) /* the second part of the plan */

struct handover {
	uint32_t version; /* PLAN_VERSION */
	uint32_t last;    /* of this part */
	uint32_t pids_counted;
	uint32_t count;
	uint32_t index[HANDOVER_FDS]; /* of the mount each descriptor is for */
};

union handover_control {
	struct cmsghdr head;
	char room[CMSG_SPACE(HANDOVER_FDS * sizeof(int))];
};

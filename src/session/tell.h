/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the proxy of a session says, to each call that runs: which one it was is not
 * known. A front that does not read holds nobody up; what it did not read waits for it.
 */
#pragma once

#include "egress/backlog.h"

/* Sends it, or keeps it until that can be. */
void tell_event(int fd, struct egress_backlog *waits, const struct egress_event *v);
/* Sends what waits, as far as it is taken. True: nothing waits any more. */
bool tell_flush(int fd, struct egress_backlog *waits);

/* SPDX-License-Identifier: Apache-2.0 */
#include "session/tell.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/base.h"
#include "run/keep.h"

/* False: not now. A front that has gone is seen elsewhere. */
static bool say(int fd, const struct egress_event *v)
{
	struct keep_event said = {.version = KEEP_VERSION, .kind = KEEP_EGRESS, .v = *v};

	return RETRY_EINTR(send(fd, &said, sizeof(said), MSG_DONTWAIT | MSG_NOSIGNAL)) >= 0 ||
	       (errno != EAGAIN && errno != ENOBUFS);
}

bool tell_flush(int fd, struct egress_backlog *waits)
{
	struct egress_event v;

	while (egress_backlog_next(waits, &v)) {
		if (!say(fd, &v))
			return false;
		egress_backlog_drop(waits);
	}
	return true;
}

void tell_event(int fd, struct egress_backlog *waits, const struct egress_event *v)
{
	if (egress_backlog_waits(waits) || !say(fd, v))
		egress_backlog_put(waits, v);
}

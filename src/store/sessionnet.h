/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `session net` has added to the rules of a session since it was made: the file
 * `net` of its directory, an encoded set (egress/set.h). Only the session's keeper
 * writes it; the front of each call reads it again when the keeper says it is another.
 */
#pragma once

#include "base/err.h"
#include "egress/set.h"

#define SESSION_NET "net"

/* Empty if nothing was added. INTERNAL if it is not what session_net_write() wrote. */
NODISCARD int session_net_read(int dir, struct egress_set *ret, struct err *e);
/* Whole and at once, or not at all. */
NODISCARD int session_net_write(int dir, const struct egress_set *s, struct err *e);
/*
 * The file `spent` of the directory, a struct egress_spent (egress/limit.h), made if there is
 * none: for the session's proxy, which writes it, and the next one. A descriptor; -1: `e`.
 */
NODISCARD int session_net_spent(int dir, struct err *e);

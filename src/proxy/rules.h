/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of a running proxy, and their replacement: all at once, between two turns
 * of the loop. Each connection is judged by those that hold when it is looked at.
 */
#pragma once

#include "proxy/proxy.h"

/*
 * A set of rules from a file that does not change any more; it stays the caller's.
 * INTERNAL: it holds none. Whether it is sealed only who is not confined yet can ask:
 * of an order the supervisor is believed, and the decoder believes nobody.
 */
NODISCARD int rules_read(int fd, struct egress_set *ret, struct err *e);

/*
 * Carries out an order that control.c has checked, with its descriptors, which are the
 * proxy's from now on. What other rules do not allow is said as EGRESS_DENY and reset,
 * after EGRESS_DONE. On failure the proxy has to end.
 */
NODISCARD int rules_order(struct proxy *px, const struct egress_order *o, const int *fds,
			  struct err *e);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's addresses of a name: c-ares in the loop, with the host's hosts,
 * resolv.conf and nsswitch.conf. What comes back is not believed by anybody.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "base/err.h"
#include "egress/address.h"

/* Addresses of one name that are looked at. */
#define MAX_RESOLVED 16u
/* Names that are being asked for at once. */
#define MAX_LOOKUPS 1024u

struct resolver;

/* Reads the host's configuration. */
NODISCARD int resolver_new(uv_loop_t *loop, struct resolver **ret, struct err *e);

/* n is 0 if there is no address or no answer in time. */
typedef void resolved_fn(void *self, const struct address *v, size_t n);

struct lookup; /* one that runs; its owner may forget it */

/*
 * Asks. `done` is called exactly once, possibly before this returns, unless it is
 * forgotten; *ret is NULL by then. False: too many, or no memory; it is not called.
 */
NODISCARD bool resolver_ask(struct resolver *r, const char *name, resolved_fn *done, void *self,
			    struct lookup **ret);
/* `done` will not be called. */
void lookup_forget(struct lookup *l);

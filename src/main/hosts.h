/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is worth knowing about rules about the network that are right.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "egress/set.h"

/* "anybody can have a name below github.io"; false: there is nothing to say. */
bool hosts_say_broad(const struct egress_rule *rule, struct buf *ret);
/* "push possible: port 22 (ssh)"; nothing where all the rules together inspect it. */
bool hosts_say_push(const struct egress_set *all, const struct egress_rule *rule, struct buf *ret);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules about the network that hold for a call.
 */
#pragma once

#include "egress/set.h"
#include "policy/request.h"

/* Those of the options alone. CONFIG_INVALID names the option. Release ret. */
NODISCARD int network_of_options(const struct request *req, struct egress_set *ret, struct err *e);

/* Those of policy files (policy_apply() has put them into req), then those of the options. */
NODISCARD int network_of(const struct request *req, struct egress_set *ret, struct err *e);

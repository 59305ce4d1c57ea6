/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where sandglass keeps what it keeps: $SANDGLASS_HOME, else
 * $XDG_STATE_HOME/sandglass, else ~/.local/state/sandglass; as root
 * /var/lib/sandglass.
 */
#pragma once

#include "base/path.h"
#include "policy/request.h"

void state_home(const struct caller *who, char ret[PATH_TEXT]);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is said once a project: remembered by an empty file named after the
 * source's device and inode, below $SANDGLASS_HOME/notices.
 */
#pragma once

#include <stdbool.h>

#include "policy/request.h"
#include "policy/source.h"

/* True the first time for this source; remembers it. Where it cannot, false. */
bool notice_first(const struct caller *who, const struct source *src);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From layers to what they come to.
 */
#pragma once

#include "config/set.h"

/* Reads s->layers, writes the rest. What goes wrong (memory, limits) is a finding. */
void set_merge(struct set *s);

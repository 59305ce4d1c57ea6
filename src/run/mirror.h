/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hands the files in by which package managers are told of their mirrors.
 */
#pragma once

#include "egress/set.h"
#include "policy/view.h"

/* Adds read-only files to the view (policy/mirror.h). Before what a caller grants. */
NODISCARD int mirror_add_files(struct view *v, const struct egress_set *set, struct err *e);

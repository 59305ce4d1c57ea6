/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that goes on when its caller has ended: a session, directory and signals of
 * its own, nothing of the caller's open.
 */
#pragma once

#include <stddef.h>

/* Keeps n descriptors, which get the numbers from 3 on; -1 among them stays so. */
void detach(int *const *mine, size_t n);

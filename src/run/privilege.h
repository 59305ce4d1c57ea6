/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a command wanted the rights of somebody else, which nothing inside can
 * get: sudo and its like fail at once there, in words that speak of containers.
 */
#pragma once

#include <stddef.h>

/*
 * The program that was named where a command stands: argv[0], or in a script for
 * the shell. NULL: none. Looks at words, not at what ran: good for a hint.
 */
const char *privilege_named(char *const *argv, size_t argc);
const char *privilege_in_script(const char *script);

/* What sudo wrote into captured output when something else started it: its name, or NULL. */
const char *privilege_in_output(const char *p, size_t n);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The accounts of /etc/passwd (passwd(5)), read in one go: a look at them costs
 * as little as possible, since every run takes it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct account {
	const char *name, *home;
	uint32_t uid;
};

#define MAX_PASSWD_BYTES (4u << 20)

/* Calls `each` for every account until it returns false. Lines that are none are skipped. */
void accounts_each(bool (*each)(void *self, const struct account *a), void *self);

/* The same over a text; the text is changed. */
void accounts_parse(char *text, bool (*each)(void *self, const struct account *a), void *self);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of what modes stop: root is nobody for a while, a user stays what they are.
 */
#pragma once

#include "test_policy_place.h"

#define NOBODY 65534

/* The directory is theirs; until be_back(). */
static inline void be_somebody(const char *name)
{
	put_dir(name);
	if (geteuid() == 0) {
		ck_assert_int_eq(chown(at("%s", name), NOBODY, NOBODY), 0);
		ck_assert_int_eq(seteuid(NOBODY), 0);
	}
}

static inline void be_back(void)
{
	if (getuid() == 0)
		ck_assert_int_eq(seteuid(0), 0);
}

static inline void mode_is(const char *name, mode_t want)
{
	struct stat st = stat_of(name);

	ck_assert_msg((st.st_mode & 07777) == want, "%s: %o, not %o", name, st.st_mode & 07777,
		      want);
}

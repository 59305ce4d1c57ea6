/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose rights a change of the source is made with. As the host's root: the
 * owner's of the source's top, without any capability, also where that is root
 * (what belongs to others is as closed as to a stranger; direct mode has it so
 * too). As a user: the user's own.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct owner {
	bool switches;
	uid_t uid;
	gid_t gid;
};

/* With `switches` this process gives its supplementary groups up for good. */
NODISCARD int owner_init(struct owner *ret, bool switches, uid_t uid, gid_t gid, struct err *e);

/* Between these two, files are the owner's and checked as the owner's. Not nested. */
void owner_enter(const struct owner *o);
void owner_leave(const struct owner *o);

/* In a child before its execve: the owner for good, in every id. False: it did not work. */
bool owner_become(const struct owner *o);

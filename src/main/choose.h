/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session that a verb is about, and the policies that hold for its source.
 */
#pragma once

#include "config/set.h"
#include "policy/source.h"
#include "store/session.h"

struct chosen {
	struct caller who;
	char cwd[PATH_TEXT];
	char id[UUID_TEXT];
	int dir; /* of the session; -1: none */
	struct session_record rec;
	bool by_default; /* nobody named it: a verb says which one it took */
};

/* `text` NULL: @last of the source around the working directory. */
NODISCARD int choose_session(const char *text, char **env, struct chosen *ret, struct err *e);
void chosen_release(struct chosen *p);
/* On stderr, if it was taken by default. */
void chosen_tell(const struct chosen *p, const char *verb);

/* What policy files say about the session's source. Release `ret` in any case. */
NODISCARD int chosen_policy(const struct chosen *p, struct set *ret, struct err *e);

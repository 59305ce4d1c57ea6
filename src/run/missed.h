/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a profile would have shown a failed command what it uses of a home.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/path.h"
#include "policy/view.h"

struct missed {
	const char *profile;  /* NULL: none would help */
	const char *program;  /* of that profile, named by the command */
	char path[PATH_TEXT]; /* what is there and not shown */
};

/*
 * `argv` is what was run; a script for the shell is searched for words. `absent`:
 * the command was not found or could not be executed. Looks at the home with
 * lstat(2) only. Good for a hint: it looks at words, not at what ran.
 */
void missed_find(char *const *argv, size_t argc, bool absent, const char *home,
		 const struct view *v, struct missed *ret);

#define MISSED_TEXT (PATH_TEXT + 256)
const char *missed_hint(const struct missed *m, char ret[MISSED_TEXT]);

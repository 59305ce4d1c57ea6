/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/state.h"

#include <stdio.h>

void state_home(const struct caller *who, char ret[PATH_TEXT])
{
	const char *named = caller_env(who, "SANDGLASS_HOME");
	const char *state = caller_env(who, "XDG_STATE_HOME");

	if (named && named[0] == '/')
		(void)snprintf(ret, PATH_TEXT, "%s", named);
	else if (who->uid == 0)
		(void)snprintf(ret, PATH_TEXT, "/var/lib/sandglass");
	else if (state && state[0] == '/')
		(void)snprintf(ret, PATH_TEXT, "%s/sandglass", state);
	else
		(void)snprintf(ret, PATH_TEXT, "%s/.local/state/sandglass",
			       who->home ? who->home : "");
}

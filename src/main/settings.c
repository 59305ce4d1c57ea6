/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the user's own policy file says about the audit log, before a verb appends to it:
 * a call would bring it there, but the first one after a change may be no call.
 */
#include "audit/settings.h"

#include <unistd.h>

#include "main/verbs.h"
#include "policy/inputs.h"
#include "run/job.h"

/* The user's own policy file; false: it cannot be read. To be released either way. */
static bool load_own(struct caller *who, char cwd[PATH_TEXT], struct set *s)
{
	static struct policy_inputs in;
	static const struct strlist none;
	const struct source nowhere = {.given = false};
	struct policy_where where;
	struct err ignored = {0};

	if (caller_init(who, environ, cwd, &ignored) < 0)
		return false;
	policy_where(who, &where);
	return policy_inputs_find(&where, &nowhere, NULL, &none, &in, &ignored) == 0 &&
	       set_load(s, &in, where.uid, 0) == 0;
}

uint64_t main_kept_ms(enum kept what)
{
	static struct set s;
	struct caller who;
	char cwd[PATH_TEXT];

	/* What a broken file would keep longer is not to be lost for its mistake. */
	uint64_t ms = load_own(&who, cwd, &s) ? set_kept_ms(&s, what) : LIMIT_NONE;
	set_release(&s);
	return ms;
}

/* Nothing is done where the policy cannot be read: who needs it says so. */
void main_follow_policy(void)
{
	static struct set s;
	struct caller who;
	char cwd[PATH_TEXT];
	struct err ignored = {0};

	if (load_own(&who, cwd, &s)) {
		const struct audit_settings now = {.pseudonyms = s.identity == IDENTITY_PSEUDONYM,
						   .kept_ms = set_kept_ms(&s, KEPT_AUDIT)};
		(void)!audit_settings_put(&who, &now, &ignored);
	}
	set_release(&s);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "main/choose.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "main/verbs.h"
#include "run/job.h"
#include "session/lease.h"

int choose_session(const char *text, char **env, struct chosen *ret, struct err *e)
{
	struct request req = request_of_nothing();
	struct source src = {.given = false};

	*ret = (struct chosen){.dir = -1, .by_default = !text};
	if (caller_init(&ret->who, env, ret->cwd, e) < 0)
		return -1;
	if (!text || strcmp(text, "@last") == 0) {
		if (source_locate(&req, &ret->who, &src, e) < 0)
			return -1;
		text = "@last";
	}
	if (session_find(&ret->who, text, src.given ? src.path : "", ret->id, e) < 0 ||
	    session_open(&ret->who, ret->id, &ret->dir, e) < 0 ||
	    session_read(ret->dir, &ret->rec, e) < 0)
		return -1;
	if (strcmp(ret->rec.id, ret->id) != 0)
		return err_set(e, ERR_INTERNAL, "the record of session %s is another one's",
			       ret->id);
	return 0;
}

void chosen_release(struct chosen *p)
{
	if (p->dir >= 0)
		(void)close(p->dir);
	p->dir = -1;
	session_record_release(&p->rec);
}

void chosen_tell(const struct chosen *p, const char *verb)
{
	if (p->by_default)
		(void)dprintf(STDERR_FILENO, "sandglass: %s: session %s%s%s\n", verb, p->id,
			      p->rec.name[0] ? " " : "", p->rec.name);
	if (lease_is_unclean(p->dir))
		(void)dprintf(STDERR_FILENO, "sandglass: " LEASE_UNCLEAN "\n");
}

int chosen_policy(const struct chosen *p, struct set *ret, struct err *e)
{
	static struct policy_inputs in;
	static struct strlist none;
	struct policy_where where;
	struct source src = {.given = p->rec.source[0] != '\0'};
	char program[PATH_TEXT];

	memcpy(src.path, p->rec.source, sizeof(src.path));
	if (src.given && stat(src.path, &src.st) < 0)
		return err_sys(e, "%s", src.path);
	policy_where(&p->who, &where);
	if (main_program(program, e) < 0 ||
	    policy_inputs_find(&where, &src, NULL, &none, &in, e) < 0)
		return -1;
	policy_inputs_more(&in, program);
	if (set_load(ret, &in, p->who.uid, 0) < 0)
		return findings_first(&ret->findings, e);
	return 0;
}

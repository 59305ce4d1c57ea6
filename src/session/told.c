/* SPDX-License-Identifier: Apache-2.0 */
#include "session/told.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "audit/audit.h"
#include "base/base.h"
#include "base/file.h"
#include "policy/state.h"

/* Where `audit verify --heads` finds it, also if nothing else is kept of the session. */
static void note_head(const struct caller *who)
{
	char home[PATH_TEXT];
	char path[PATH_TEXT + 16];
	struct err ignored = {0};

	state_home(who, home);
	(void)snprintf(path, sizeof(path), "%s/artifacts", home);
	if (!file_make_dirs(path, 0700))
		return;
	AUTO_FD int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir >= 0)
		(void)!audit_head_put(who, dir, &ignored);
}

void session_told(const struct caller *who, const struct session_record *rec, const char *event,
		  const char *why)
{
	struct err ignored = {0};
	const struct audit_field data[] = {
		{.key = "name", .kind = AUDIT_WORD, .text = rec->name[0] ? rec->name : NULL},
		{.key = "source", .kind = AUDIT_PATH, .text = rec->source[0] ? rec->source : NULL},
		{.key = "writes", .kind = AUDIT_WORD, .text = session_writes_names[rec->writes]},
		{.key = "why", .kind = AUDIT_TEXT, .text = why},
	};
	const struct audit_event v = {
		.event = event,
		.session = rec->id,
		.policy_sha256 = rec->policy_sha256[0] ? rec->policy_sha256 : NULL,
		.data = data,
		.data_count = ARRAY_LEN(data),
	};
	bool last = strcmp(event, "session.destroy") == 0 || strcmp(event, "session.expire") == 0;

	/* A log that cannot be written keeps no session from its end; `audit verify` tells. */
	(void)!audit_append(who, &v, 1, last ? AUDIT_SYNC : 0, &ignored);
	if (last)
		note_head(who);
}

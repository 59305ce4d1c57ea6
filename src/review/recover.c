/* SPDX-License-Identifier: Apache-2.0 */
#include "review/recover.h"

#include "audit/audit.h"
#include "base/base.h"
#include "review/apply.h"
#include "review/discard.h"

/* The log of somebody who only cleans up may not be writable: what was done stays done. */
static void tell(const struct caller *who, const struct session_record *rec, const char *event,
		 enum recovered how)
{
	struct err ignored = {0};
	const struct audit_field data[] = {
		{.key = "source", .kind = AUDIT_PATH, .text = rec->source},
		{.key = "recovered",
		 .kind = AUDIT_WORD,
		 .text = how == RECOVERED_FORWARD ? "forward" : "back"},
	};
	const struct audit_event v = {.event = event,
				      .session = rec->id,
				      .policy_sha256 =
					      rec->policy_sha256[0] ? rec->policy_sha256 : NULL,
				      .data = data,
				      .data_count = ARRAY_LEN(data)};

	if (how != RECOVERED_NOTHING)
		(void)!audit_append(who, &v, 1, AUDIT_SYNC, &ignored);
}

int review_recover(const struct caller *who, int session, const struct session_record *rec,
		   struct err *e)
{
	enum recovered how = RECOVERED_NOTHING;

	if (rec->writes == SESSION_DIRECT)
		return 0;
	int rc = apply_recover(session, rec, &how, e);
	tell(who, rec, "apply", rc == 0 ? how : RECOVERED_NOTHING);
	if (rc < 0)
		return -1;
	how = RECOVERED_NOTHING;
	rc = discard_recover(session, rec, &how, e);
	tell(who, rec, "discard", rc == 0 ? how : RECOVERED_NOTHING);
	return rc;
}

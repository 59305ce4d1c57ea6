/* SPDX-License-Identifier: Apache-2.0 */
#include "review/recover.h"

#include "review/apply.h"
#include "review/discard.h"

int review_recover(int session, const struct session_record *rec, struct err *e)
{
	enum recovered ignored = RECOVERED_NOTHING;

	if (rec->writes == SESSION_DIRECT)
		return 0;
	if (apply_recover(session, rec, &ignored, e) < 0)
		return -1;
	return discard_recover(session, rec, e);
}

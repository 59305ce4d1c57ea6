/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call of a session, from outside: its keeper gives the namespaces, what lies at
 * the source's path, and the end of the lease; everything else is as in `run`.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/json.h"
#include "run/job.h"
#include "run/keep.h"
#include "store/session.h"

struct job_session {
	struct session_record rec;
	int dir;
	int ctl; /* the keeper; -1: not asked yet, or gone */
	struct launch_session ns;
	int tree;              /* what lies at the source's path; -1: nothing, or handed over */
	struct egress *egress; /* the call's; NULL: no rule opens anything, and nothing was said */
	struct egress *later;  /* the same in any case */
	struct egress_set
		*rules;      /* the call's: what the session was made with, then what was added */
	size_t own_rules;    /* how many of the first */
	uint32_t generation; /* of `rules`, as the keeper counts */
	bool no_redirect, flushed;
	struct guard *masks;
	struct plan_cgroup cgroup; /* dir NULL: none */
	char cgroup_dir[600];
	char root[PATH_TEXT]; /* AGENT_ROOT on the host */
	bool detached;
	char call[UUID_TEXT]; /* the call's id, if it is given; else "" */
	enum err_code told;   /* why the keeper has ended the call; ERR_NONE: it has not */
	char why[ERR_MSG_MAX];
	uint32_t near; /* KEEP_NEAR_*: limits that the session is near, and of one of them how */
	char near_why[ERR_MSG_MAX];
};

/*
 * Finds the session and reads what was decided when it was made; where no keeper
 * lives any more, one is started. `text` as for session_find().
 */
NODISCARD int job_session_find(struct job_session *s, const struct caller *who, const char *text,
			       struct err *e);

/*
 * Appends what `session net` has added to the `own` rules that the session was made with;
 * what was appended before goes. On failure only the own ones are there.
 */
NODISCARD int session_rules_add(int dir, struct egress_set *s, size_t own, struct err *e);

/*
 * Asks the keeper for the call's place, after job_begin(). The masks are worked out
 * anew for it.
 */
NODISCARD int job_session_enter(struct job *j, struct err *e);
/*
 * /tmp is a directory of the host's in a session, in which core makes nothing: what is
 * mounted below it gets its place here. What a command has put in the way is core's to refuse.
 */
void job_session_make_targets(struct job *j);
/* Init runs: the keeper may end it. */
void job_session_started(struct job *j, pid_t init);
/* Whether what it changes in the source is held for review. */
static inline bool job_session_is_held(const struct job *j)
{
	return j->in->rec.writes != SESSION_DIRECT && j->in->rec.source[0];
}
/* The call has ended: what the proxy has said of it by now has come. */
void job_session_flush(struct job_session *s);
/* Something can be read from s->ctl. False: the call has to end. */
bool job_session_step(struct job_session *s);
/* Of stdout (0) or stderr (1), below AGENT_ROOT: logs/CALL.out, logs/CALL.err. */
#define CALL_LOG_TEXT (sizeof("logs/.out") + UUID_TEXT)
const char *job_session_log_name(const struct job *j, size_t which, char ret[CALL_LOG_TEXT]);
/* The call's logs, from which job_session_hint() knows. */
NODISCARD int job_session_open_logs(struct job *j, struct err *e);
/* What a failed command's last words have to do with the way writes are held; NULL: nothing. */
const char *job_session_hint(const struct job *j);
void job_session_release(struct job_session *s);

/* An array of what is masked in the session, as its keeper has it in force or in the copy. */
void session_masked_json(int dir, struct json *o);

/* What is to be masked in a source, as session/masks.h wants it. `ret_guard` knows their names. */
NODISCARD int session_masks(const struct request *req, const struct caller *who,
			    const struct source *src, const char *id, struct buf *out,
			    struct guard **ret_guard, struct err *e);

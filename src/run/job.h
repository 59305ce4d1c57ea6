/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run, from what was asked to how it ended.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/uuid.h"
#include "plan/plan.h"
#include "plan/report.h"
#include "policy/environment.h"
#include "policy/limits.h"
#include "policy/request.h"
#include "policy/rung.h"
#include "policy/source.h"
#include "policy/view.h"
#include "run/agentroot.h"
#include "run/calllog.h"
#include "run/capture.h"
#include "run/censor.h"
#include "run/cgroups.h"
#include "run/egress.h"
#include "run/guard.h"
#include "run/missed.h"
#include "run/policy.h"
#include "run/secrets.h"
#include "run/stdio.h"

struct outcome {
	bool have_exec_error; /* execve failed: `exec` */
	bool have_exit;
	bool have_usage;
	bool have_failure;
	bool backstop; /* init did not keep its deadline: we killed core */
	struct report exec, exit, usage, failure;
	int told_signal; /* HUP, INT, QUIT or TERM that ended it; 0: none */
	uint64_t wall_ms;
};

struct job_session;

struct job {
	const struct request *req;
	struct caller who;
	unsigned int closed; /* of 0 to 2, before we opened /dev/null there */
	struct refused refused;
	struct source src;
	struct call_policy policy;
	struct gitlink link;
	struct view view;
	struct view_ids ids;
	struct environment env;
	struct limits limits;
	struct cgroups cgroups;
	struct cgroup_store cgroup_store;
	struct plan_cgroup plan_cgroups[CGROUP_ROLES];
	struct stdio io;
	char session[UUID_TEXT], call[UUID_TEXT];
	int64_t began_ms;       /* since 1970 */
	char policy_sha256[65]; /* job_hash_policy(), once the plan is complete; else "" */
	bool unrecorded;        /* the audit log could not be written */
	char cwd[PATH_TEXT + 16];
	struct job_session *in; /* the session that the call belongs to; NULL: one of its own */
	struct agentroot root;  /* with isolation `landlock`; else it is /sand */
	const char *runs_as;
	bool no_idmap; /* a first try found that the source cannot be id-mapped */
	char **argv;
	size_t argc;
	struct plan plan;
	int uid_fd; /* -1: none */
	uint32_t session_uid;
	struct guard *guard;                /* NULL: nothing to guard */
	struct egress egress;               /* with PLAN_EGRESS */
	struct secret_values secrets;       /* of a call that can reach something */
	struct censor *censor;              /* of their values; NULL: nothing to look for */
	const struct plan_prefix *prefixes; /* owned */
	struct super *super;                /* between job_start() and its end */
	struct outcome out;
	struct capture capture[2];
	struct call_log log[2]; /* of a session's call: of stdout and stderr */
	struct err error;       /* code ERR_NONE: the command ran and this is its own end */
	int status;             /* of the exit */
	const char *wanted;     /* sudo or its like, which the command named; NULL: none */
	struct missed missed;   /* what a profile would have shown it */
};

/* Fills in who calls, from the process. */
NODISCARD int caller_init(struct caller *who, char **env, char cwd[PATH_TEXT], struct err *e);

/*
 * Finds the source and reads the policies that stand below the options of `req`,
 * which becomes the job's request. Before all that follows.
 */
NODISCARD int job_policy(struct job *j, struct request *req, struct err *e);

/*
 * In this order. What core needs to start is decided first, so that it gets
 * ready while the view is worked out.
 */
NODISCARD int job_begin(struct job *j, struct err *e);   /* command, stdio, session uid */
NODISCARD int job_start(struct job *j, struct err *e);   /* core runs and waits for the plan */
NODISCARD int job_prepare(struct job *j, struct err *e); /* view, limits, environment: the plan */
NODISCARD int job_release_core(struct job *j, struct err *e); /* core builds what is known by now */
NODISCARD int job_guard(struct job *j, struct err *e);        /* what goes on top: masks and pins */
NODISCARD int job_run(struct job *j, struct err *e);          /* until all is over; see j->out */
void job_abort(struct job *j);                                /* after a failure: core goes */

/* SHA-256 of what the plan allows, in hex: equal policies have equal hashes. */
#define JOB_HASH_TEXT 65
NODISCARD int job_hash_policy(const struct job *j, char ret[JOB_HASH_TEXT], struct err *e);

/* AGENT_ROOT as the command sees it. */
const char *job_agent_root(const struct job *j);
/* Whether something may be reached from inside, through the proxy. */
static inline bool job_has_egress(const struct job *j)
{
	return j->plan.n.flags & PLAN_EGRESS;
}
/* Whether Landlock alone is the boundary. */
bool job_is_rung(const struct job *j);

/* Of this kernel; 0 with errno: none. */
unsigned int landlock_abi(void);

/* Turns the outcome into j->error and j->status. */
void job_judge(struct job *j);

/* Why what j->wanted names did not work. */
#define JOB_HINT_TEXT 160
const char *job_wanted_hint(const struct job *j, char ret[JOB_HINT_TEXT]);

/* A failed stage of core, in words: code, message, hint. */
void failure_explain(const struct job *j, const struct report *r, struct err *e);

/* The result object of CONTRACT §4, one line. */
NODISCARD int result_write(const struct job *j, struct buf *out, struct err *e);

/* What this host can enforce. */
NODISCARD int doctor_write(bool json, struct buf *out, struct err *e);

/* Core found a file system without id-mapped mounts: reset, prepare and run once more. */
bool job_needs_other_ids(const struct job *j);
void job_reset(struct job *j);

void job_release(struct job *j);

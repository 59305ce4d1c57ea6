/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happened, in the words of the contract: code, message, hint, status.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/file.h"
#include "base/term.h"
#include "run/job.h"
#include "run/privilege.h"
#include "run/session.h"

#define SHOWN 400

static uint32_t flags_of(const struct outcome *o)
{
	return o->exit.flags | o->usage.flags;
}

static int status_of(int wait_status)
{
	return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

/* Why there are no user namespaces here, from what the kernel shows. */
static void explain_namespaces(const struct job *j, const struct report *r, struct err *e)
{
	static const struct {
		const char *file, *value, *hint;
	} causes[] = {
		{"/proc/sys/user/max_user_namespaces", "0",
		 "sysctl user.max_user_namespaces=10000 (as root) switches user namespaces on"},
		{"/proc/sys/kernel/unprivileged_userns_clone", "0",
		 "sysctl kernel.unprivileged_userns_clone=1 (as root) allows them to users"},
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
		 "AppArmor denies them: load a profile for sandglass with the rule `userns,`"},
	};
	char text[16];

	if (caller_env(&j->who, "SANDGLASS")) {
		(void)err_set(e, ERR_NESTED_SANDBOX,
			      "already inside a sandbox, which makes no second one");
		(void)err_hint(e, "run the command as it is: the outer boundary holds it");
		return;
	}
	(void)err_set(e, ERR_SANDBOX_UNAVAILABLE, "namespaces cannot be made: %s: %s", r->text,
		      strerror(r->sys));
	const char *mend = "in a container, allow user namespaces to it";
	for (size_t i = 0; i < ARRAY_LEN(causes); i++) {
		(void)file_read_text(AT_FDCWD, causes[i].file, text, sizeof(text));
		text[strcspn(text, "\n")] = '\0';
		if (strcmp(text, causes[i].value) == 0)
			mend = causes[i].hint;
	}
	if (landlock_abi() >= 1)
		(void)err_hint(e,
			       "%s; see `sandglass doctor`; or --isolation landlock, which needs "
			       "none and keeps less: no view of its own, no protected names, no "
			       "masks, no localhost (sandglass-landlock(7))",
			       mend);
	else
		(void)err_hint(e, "%s; see `sandglass doctor`", mend);
}

/* What a failed stage means to the caller; a stage that is not listed is the boundary's own. */
enum meaning {
	MEANS_BOUNDARY,
	MEANS_NAMESPACES,           /* whatever the errno */
	MEANS_NAMESPACES_IF_DENIED, /* with EPERM or EACCES */
	MEANS_BIND,
	MEANS_IDENT,
	MEANS_TARGET,
	MEANS_CWD,
	MEANS_PROC,
	MEANS_IDMAP,
	MEANS_CGROUP,
	MEANS_BUG,
};

static const unsigned char meanings[STAGES] = {
	[STAGE_PLAN] = MEANS_BUG,
	[STAGE_PARENT] = MEANS_BUG,
	[STAGE_CGROUP] = MEANS_CGROUP,
	[STAGE_IDMAP] = MEANS_IDMAP,
	[STAGE_CLONE] = MEANS_NAMESPACES,
	[STAGE_MAPS] = MEANS_NAMESPACES,
	[STAGE_IDS] = MEANS_NAMESPACES,
	[STAGE_BIND] = MEANS_BIND,
	[STAGE_IDENT] = MEANS_IDENT,
	[STAGE_TARGET] = MEANS_TARGET,
	[STAGE_CWD] = MEANS_CWD,
	[STAGE_PROC] = MEANS_PROC,
	[STAGE_ROOT] = MEANS_NAMESPACES_IF_DENIED,
	[STAGE_NET] = MEANS_NAMESPACES_IF_DENIED,
	[STAGE_UTS] = MEANS_NAMESPACES_IF_DENIED,
};

static void explain(struct err *e, enum meaning m, const char *what, int sys)
{
	static const struct {
		enum err_code code;
		const char *format, *hint; /* the format gets the text and strerror */
	} words[] = {
		[MEANS_BOUNDARY] = {ERR_SANDBOX_UNAVAILABLE, "the boundary cannot be made: %s: %s",
				    "see `sandglass doctor`"},
		[MEANS_BIND] = {ERR_SANDBOX_UNAVAILABLE, "%s cannot be shown inside: %s", ""},
		[MEANS_IDENT] = {ERR_CONFLICT, "%s is not the file any more that was meant",
				 "something replaced it in between; look at it, then try again"},
		[MEANS_TARGET] =
			{ERR_CONFIG_INVALID, "no place inside for %s: %s",
			 "a path cannot be mounted below a read-only one that does not have it"},
		[MEANS_CWD] = {ERR_CONFIG_INVALID, "working directory %s: %s", ""},
		[MEANS_PROC] = {ERR_SANDBOX_UNAVAILABLE, "a new %s is refused: %s",
				"parts of the host's /proc are covered (a container?); give it an "
				"uncovered /proc"},
		[MEANS_IDMAP] =
			{ERR_POLICY_DENIED,
			 "%s is root's and its file system has no id-mapped mounts (%s): what "
			 "the command writes would not keep its owner",
			 "use --mode read-only, or work on a copy that belongs to a user"},
		[MEANS_CGROUP] = {ERR_LIMIT_UNAVAILABLE, "cgroup %s: %s", "see `sandglass doctor`"},
		[MEANS_BUG] = {ERR_INTERNAL, "sandglass-core: %s", ""},
	};
	char text[2 * SHOWN];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* from the table above only */
#pragma GCC diagnostic ignored "-Wformat-extra-args"
	(void)snprintf(text, sizeof(text), words[m].format, what, sys ? strerror(sys) : "refused");
#pragma GCC diagnostic pop
	(void)err_set(e, words[m].code, "%s", text);
	if (words[m].hint[0])
		(void)err_hint(e, "%s", words[m].hint);
}

void failure_explain(const struct job *j, const struct report *r, struct err *e)
{
	enum meaning m = r->stage < STAGES ? (enum meaning)meanings[r->stage] : MEANS_BUG;
	char shown[SHOWN];

	if (m == MEANS_NAMESPACES ||
	    (m == MEANS_NAMESPACES_IF_DENIED && (r->sys == EPERM || r->sys == EACCES))) {
		explain_namespaces(j, r, e);
		return;
	}
	bool missing = r->sys == ENOSYS || r->sys == EPERM;
	/* What refuses a whole system call says nothing about the path it was for. */
	if (m == MEANS_NAMESPACES_IF_DENIED || (missing && m == MEANS_TARGET))
		m = MEANS_BOUNDARY;
	explain(e, m, term_escape_cut(shown, sizeof(shown), r->text, strlen(r->text)), r->sys);
	if ((m == MEANS_BOUNDARY || m == MEANS_BIND) && missing)
		(void)err_hint(e,
			       "a system call is missing: Linux 5.13 or later has it; in a "
			       "container, its seccomp profile must allow it; see `sandglass "
			       "doctor`%s",
			       job_is_rung(j) || landlock_abi() < 1
				       ? ""
				       : "; or --isolation landlock, which keeps less "
					 "(sandglass-landlock(7))");
}

/*
 * The directory of PATH that holds the program on this host, in ret; NULL if none
 * does. Names only, no paths: what else is on the host is not told.
 */
static const char *dir_outside(const struct job *j, const char *name, char ret[PATH_TEXT])
{
	const char *p = caller_env(&j->who, "PATH");
	char file[PATH_TEXT];
	struct stat st;

	for (; p && *p && !strchr(name, '/'); p += *p == ':') {
		size_t n = strcspn(p, ":");

		if (p[0] == '/' && n < PATH_TEXT &&
		    snprintf(file, sizeof(file), "%.*s/%s", (int)n, p, name) < (int)sizeof(file) &&
		    stat(file, &st) == 0 && S_ISREG(st.st_mode) && access(file, X_OK) == 0) {
			(void)snprintf(ret, PATH_TEXT, "%.*s", (int)n, p);
			return ret;
		}
		p += n;
	}
	return NULL;
}

/* What a name that is no program was probably meant to be. */
static void hint_not_found(const struct job *j, struct err *e, const char *name)
{
	char dir[PATH_TEXT];
	static const char *const builtins[] = {"cd",    "export", "source", ".",
					       "alias", "set",    "ulimit"};
	bool shell = strpbrk(name, " ;|&<>$*") != NULL;

	for (size_t i = 0; i < ARRAY_LEN(builtins); i++)
		shell |= strcmp(name, builtins[i]) == 0;
	if (shell)
		(void)err_hint(
			e,
			"a line for the shell is given as one script: sandglass run -c 'SCRIPT'");
	else if (strchr(name, '='))
		(void)err_hint(e, "a variable is set by an option: --env NAME=VALUE");
	else if (strchr(name, '/'))
		(void)err_hint(
			e,
			"inside there is only what the view names; `--read DIR` adds a directory");
	else if (dir_outside(j, name, dir))
		(void)err_hint(
			e, "on this host it is in %s, which the view does not show: `--read %s`",
			dir, dir);
	else
		(void)err_hint(e, "it is not on PATH outside the sandbox either");
}

static void judge_exec(struct job *j)
{
	const struct report *r = &j->out.exec;
	char path[SHOWN];
	char interpreter[SHOWN];
	size_t n = strnlen(r->text, sizeof(r->text) - 1);
	const char *second = n + 1 < sizeof(r->text) ? r->text + n + 1 : "";
	size_t second_n = strnlen(second, (size_t)(r->text + sizeof(r->text) - second));

	(void)term_escape_cut(path, sizeof(path), r->text, n);
	(void)term_escape_cut(interpreter, sizeof(interpreter), second, second_n);
	if (r->sys == E2BIG) {
		(void)err_set(&j->error, ERR_ARG_LIMIT,
			      "%s: arguments and environment are too long", path);
		(void)err_hint(&j->error,
			       "one argument holds 128KiB; pass more through a file or stdin");
	} else if (r->status == 127) {
		(void)err_set(&j->error, ERR_NOT_FOUND, "%s: not found", path);
		hint_not_found(j, &j->error, r->text);
	} else if (r->sys == ENOENT) {
		(void)err_set(&j->error, ERR_NOT_EXECUTABLE, "%s: its interpreter%s%s is not there",
			      path, second_n ? " " : "", interpreter);
		if (second_n && second[second_n - 1] == '\r')
			(void)err_hint(&j->error,
				       "the file has CRLF line ends: the interpreter's name "
				       "ends with \\r");
		else
			(void)err_hint(&j->error,
				       "install the interpreter, or `--read` where it is");
	} else if (r->sys == ENOEXEC) {
		(void)err_set(&j->error, ERR_NOT_EXECUTABLE,
			      "%s: no format that this kernel runs (another architecture?)", path);
	} else {
		(void)err_set(&j->error, ERR_NOT_EXECUTABLE, "%s: %s", path, strerror(r->sys));
		if (r->sys == EACCES)
			(void)err_hint(&j->error, "chmod +x, if it is meant to be run");
	}
	j->status = err_code_status(j->error.code);
}

static void judge_limits(struct job *j, uint32_t flags)
{
	static const struct {
		uint32_t flag;
		enum err_code code;
		enum limit_id limit;
		const char *what;
	} limits[] = {
		{REPORT_MEMORY, ERR_MEMORY_LIMIT, LIMIT_MEMORY, "memory"},
		{REPORT_CPU, ERR_CPU_LIMIT, LIMIT_CPU_TIME, "cpu time"},
		{REPORT_PIDS, ERR_PIDS_LIMIT, LIMIT_PIDS, "processes and threads"},
		{REPORT_DISK, ERR_DISK_LIMIT, LIMIT_DISK, "space in /sand"},
		{REPORT_INODES, ERR_INODE_LIMIT, LIMIT_INODES, "inodes in /sand"},
	};
	char text[NUM_TEXT];

	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		if (!(flags & limits[i].flag))
			continue;
		uint64_t v = j->limits.value[limits[i].limit];
		const char *value =
			limits[i].flag == REPORT_CPU ? duration_format(v, text)
			: limits[i].flag & (REPORT_MEMORY | REPORT_DISK)
				? size_format(v, text)
				: (snprintf(text, sizeof(text), "%llu", (unsigned long long)v),
				   text);
		(void)err_set(&j->error, limits[i].code, "the command used up its %s (%s)",
			      limits[i].what, value);
		return;
	}
}

static void judge_timeout(struct job *j, uint32_t flags)
{
	char wall[NUM_TEXT];
	char grace[NUM_TEXT];

	(void)duration_format(j->limits.value[LIMIT_WALL], wall);
	(void)duration_format(j->limits.grace_ms, grace);
	(void)err_set(&j->error, ERR_TOOL_TIMEOUT,
		      "Do not repeat: wall time %s is over; the process tree was ended%s%s%s", wall,
		      flags & REPORT_KILLED ? " by KILL after a " : " by TERM within a ", grace,
		      " grace");
	(void)err_hint(&j->error, "--timeout gives more time, if the command is known to need it");
	j->status = 124;
}

/* Init did not get to say how the command ended. */
static void judge_lost(struct job *j)
{
	if (flags_of(&j->out) & REPORT_MEMORY) {
		judge_limits(j, REPORT_MEMORY);
		j->status = 128 + SIGKILL;
		return;
	}
	(void)err_set(&j->error, ERR_INTERNAL, "the sandbox ended before its command could report");
	(void)err_hint(&j->error, "something killed sandglass-core or the sandbox's init");
	j->status = 125;
}

const char *job_wanted_hint(const struct job *j, char ret[JOB_HINT_TEXT])
{
	(void)snprintf(ret, JOB_HINT_TEXT,
		       "%s cannot work inside: no program there gets more rights than the sandbox "
		       "has; do that step outside",
		       j->wanted);
	return ret;
}

static const char *wanted_by(const struct job *j)
{
	const struct capture *c = &j->capture[1];

	if (j->req->mode == MODE_FULL_ACCESS || !j->out.have_exit || j->out.have_exec_error)
		return NULL;
	const char *name = privilege_named(j->argv, j->argc);
	return name || !j->req->json ? name : privilege_in_output(c->head, c->head_n);
}

/* Nothing else explains the failure, and something was not let out. */
static void judge_egress(struct job *j)
{
	const struct egress *g = &j->egress;
	const struct egress_said *first = g->denied.n ? &g->denied.v[0].said : NULL;

	if (j->error.code != ERR_NONE || (!first && !g->died))
		return;
	if (!first) {
		(void)err_set(&j->error, ERR_EGRESS_DENIED, "the way out was lost");
		(void)err_hint(&j->error, "%s", EGRESS_DIED_HINT);
		return;
	}
	(void)err_set(&j->error, ERR_EGRESS_DENIED, "the command failed, and %s%s was denied (%s)",
		      first->target[0] ? first->target : "a connection",
		      g->denied.n > 1 ? " among others" : "", first->rule);
	if (first->hint[0])
		(void)err_hint(&j->error, "%s", first->hint);
}

/* With the network closed nobody saw what the command looked for, only that it did. */
static void note_closed(struct job *j)
{
	if ((flags_of(&j->out) & REPORT_NO_WAY) && j->status != 0)
		j->egress.closed = true;
}

static void judge(struct job *j)
{
	const struct outcome *o = &j->out;
	uint32_t flags = flags_of(o);

	j->wanted = wanted_by(j);
	if (o->have_failure) {
		failure_explain(j, &o->failure, &j->error);
		j->status = err_code_status(j->error.code);
		return;
	}
	if (o->have_exec_error) {
		judge_exec(j);
		return;
	}
	if (j->in && j->in->told != ERR_NONE && !o->told_signal) {
		(void)err_set(&j->error, j->in->told, "%s", j->in->why);
		j->status = err_code_status(j->error.code);
		return;
	}
	if (!o->have_exit && o->backstop) {
		j->status = 128 + SIGKILL;
		if (o->told_signal)
			(void)err_set(&j->error, ERR_CANCELLED, "ended by %s",
				      strsignal(o->told_signal));
		else
			judge_timeout(j, REPORT_KILLED);
		return;
	}
	if (!o->have_exit) {
		judge_lost(j);
		return;
	}
	j->status = status_of(o->exit.status);
	if (flags & REPORT_WALL) {
		judge_timeout(j, flags);
	} else if (o->told_signal) {
		(void)err_set(&j->error, ERR_CANCELLED, "ended by %s", strsignal(o->told_signal));
	} else if (j->status != 0) {
		judge_limits(j, flags);
		judge_egress(j);
	}
}

/* A profile that would have shown what is there: in the error where there is one, else beside it. */
static void find_missed(struct job *j)
{
	const struct outcome *o = &j->out;
	bool absent = o->have_exec_error || j->status == 127;
	char hint[MISSED_TEXT];

	if (j->req->mode == MODE_FULL_ACCESS || o->have_failure || j->status == 0 ||
	    (j->error.code != ERR_NONE && j->error.code != ERR_NOT_FOUND))
		return;
	missed_find(j->argv, j->argc, absent, j->who.home, &j->view, &j->missed);
	if (j->missed.profile && j->error.code != ERR_NONE)
		(void)err_hint(&j->error, "%s", missed_hint(&j->missed, hint));
}

void job_judge(struct job *j)
{
	judge(j);
	find_missed(j);
	note_closed(j);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sandglass run` and `sandglass shell`.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/term.h"
#include "cli/reviewed.h"
#include "cli/run_options.h"
#include "cli/session_options.h"
#include "cli/verbs.h"
#include "policy/apply.h"
#include "policy/network.h"
#include "run/job.h"
#include "run/notice.h"
#include "run/record.h"
#include "run/session.h"

#define MAX_TOLD 100            /* moves, and hints, that are told one by one on stderr */
#define SESSION_WALL_MS 300000u /* of a call in a session, unless something else is said */
#define SESSION_PIDS 4096u
#define MAX_RESULT_BYTES ((size_t)1 << 30)

/*
 * Without a boundary a person has to say so, at the terminal, to a question
 * that names the directory. (A program can make a terminal of its own and type
 * into it; this is a question, not a boundary.)
 */
static int confirm_full_access(const struct job *j, struct err *e)
{
	char shown[512];
	char line[64];
	const char *cwd = j->who.cwd ? j->who.cwd : "?";

	AUTO_FD int tty = isatty(STDIN_FILENO) ? open("/dev/tty", O_RDWR | O_CLOEXEC) : -1;
	if (tty < 0) {
		(void)err_set(e, ERR_POLICY_DENIED,
			      "full access needs a person at a terminal to confirm it");
		return err_hint(e, "leave the option out: --read and --write open single paths");
	}
	(void)dprintf(
		tty,
		"sandglass: NO BOUNDARY: the command runs as you, with your files, secrets and network,\n"
		"in %s\nType yes to go on: ",
		term_escape_cut(shown, sizeof(shown), cwd, strlen(cwd)));
	ssize_t n = RETRY_EINTR(read(tty, line, sizeof(line) - 1));
	line[n > 0 ? n : 0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	if (strcmp(line, "yes") == 0)
		return 0;
	return err_set(e, ERR_POLICY_DENIED, "full access was not confirmed");
}

/* Each time: it is less than people may remember having asked for. */
static void notice_rung(void)
{
	AUTO_BUF out = BUF_INIT(4096);
	struct err ignored = {0};

	(void)buf_str(&out, "sandglass: isolation: landlock; not enforced:");
	for (size_t i = 0; rung_lost(landlock_abi(), i); i++)
		(void)buf_printf(&out, " %s", rung_lost(landlock_abi(), i));
	(void)buf_str(&out, " (sandglass-landlock(7))\n");
	if (cli_write(STDERR_FILENO, buf_cstr(&out), out.n, &ignored) < 0)
		return; /* nowhere to tell it; the result has it */
}

/* What a file said that did not count. */
static void tell_ignored(const struct job *j)
{
	AUTO_BUF out = BUF_INIT((size_t)1 << 24);
	struct err ignored = {0};

	for (size_t i = 0; j->policy.there && i < j->policy.compiled.note_count; i++) {
		const char *note = j->policy.compiled.notes[i];
		(void)buf_str(&out, "sandglass: ");
		(void)term_escape(&out, note, strlen(note));
		(void)buf_char(&out, '\n');
	}
	if (out.n && cli_write(STDERR_FILENO, out.p, out.n, &ignored) < 0)
		return; /* nowhere to tell it; the result has it */
}

static void notice(const struct job *j)
{
	char shown[512];

	if (!j->req->quiet && !j->req->json)
		tell_ignored(j);

	if (j->req->mode == MODE_FULL_ACCESS) {
		(void)fprintf(stderr, "sandglass: no boundary: full access\n");
		return;
	}
	if (job_is_rung(j) && !j->req->quiet && !j->req->json)
		notice_rung();
	if (j->req->quiet || j->req->json || !j->src.given || j->in ||
	    j->req->mode != MODE_WORKSPACE_WRITE || !notice_first(&j->who, &j->src))
		return;
	(void)fprintf(stderr, "sandglass: writes: direct (changes land in %s at once)\n",
		      term_escape_cut(shown, sizeof(shown), j->src.path, strlen(j->src.path)));
}

static int write_result(const struct job *j, struct err *e)
{
	AUTO_BUF out = BUF_INIT(MAX_RESULT_BYTES);

	if (j->closed & 2u)
		return err_set(e, ERR_CONFIG_INVALID, "stdout is closed: nowhere for the result");
	if (result_write(j, &out, e) < 0)
		return -1;
	(void)buf_char(&out, '\n');
	if (buf_check(&out, "the result", ERR_OUTPUT_LIMIT, e) < 0)
		return -1;
	return cli_write(STDOUT_FILENO, out.p, out.n, e);
}

static void tell_flags(const struct guard_flag *f, size_t flags, struct buf *ret)
{
	for (size_t i = 0; i < flags; i++) {
		if (i == MAX_TOLD) {
			(void)buf_printf(ret, "sandglass: and %zu more; --json tells all of them\n",
					 flags - i);
			break;
		}
		(void)buf_str(ret, "sandglass: ");
		(void)buf_str(ret,
			      f[i].action == GUARD_QUARANTINED ? "quarantined "
			      : f[i].action == GUARD_STUCK     ? "could not be moved: "
			      : f[i].action == GUARD_MASK_MOVED || f[i].action == GUARD_MASK_TRACKED
				      ? "masked file: "
				      : "changed from outside: ");
		(void)term_escape(ret, f[i].path, strlen(f[i].path));
		(void)buf_str(ret, ": ");
		(void)term_escape(ret, f[i].why, strlen(f[i].why));
		if (f[i].restore) {
			(void)buf_str(ret, "; to put it back: ");
			(void)term_escape(ret, f[i].restore, strlen(f[i].restore));
		}
		(void)buf_char(ret, '\n');
	}
}

static void tell_egress(const struct job *j, struct buf *ret)
{
	const struct egress_rows *d = &j->egress.denied;

	if (j->out.have_exit && (j->out.exit.flags & REPORT_NO_REDIRECT))
		(void)buf_str(ret, "sandglass: not enforced: network-redirect (only programs that "
				   "use a proxy reach anything)\n");
	for (size_t i = 0; i < d->n && i < MAX_TOLD; i++) {
		const struct egress_said *said = &d->v[i].said;
		(void)buf_printf(ret, "sandglass: denied: %s ", egress_op_name(d->v[i].op));
		(void)term_escape(ret, said->target, strlen(said->target));
		(void)buf_str(ret, said->target[0] ? " (" : "(");
		(void)term_escape(ret, said->rule, strlen(said->rule));
		(void)buf_str(ret, said->hint[0] ? "); hint: " : ")");
		(void)term_escape(ret, said->hint, strlen(said->hint));
		(void)buf_char(ret, '\n');
	}
	uint64_t more = d->more + (d->n > MAX_TOLD ? d->n - MAX_TOLD : 0);
	if (more)
		(void)buf_printf(ret, "sandglass: denied: and %" PRIu64 " more like that\n", more);
	const struct egress_rows *f = &j->egress.failed;
	for (size_t i = 0; i < f->n && i < MAX_TOLD && j->status != 0; i++) {
		(void)buf_str(ret, "sandglass: not reached: ");
		(void)term_escape(ret, f->v[i].said.target, strlen(f->v[i].said.target));
		(void)buf_str(ret, f->v[i].reason == EGRESS_WHY_UNRESOLVED
					   ? ": this host has no address for the name\n"
					   : ": allowed, but this host cannot connect to it\n");
	}
	if (j->egress.closed)
		(void)buf_printf(ret, "sandglass: hint: %s\n", EGRESS_CLOSED_HINT);
	if (j->egress.died)
		(void)buf_printf(ret, "sandglass: hint: %s\n", EGRESS_DIED_HINT);
}

/* What the guard did and saw: things were moved, so it is told in quiet runs too. */
static void tell_guarded(const struct job *j)
{
	const struct guard_flag *f = NULL;
	const struct guard_denial *d = NULL;
	size_t flags = j->guard ? guard_flags(j->guard, &f) : 0;
	size_t denials = j->guard && !j->req->quiet ? guard_denials(j->guard, &d) : 0;
	AUTO_BUF out = BUF_INIT((size_t)1 << 26);
	struct err ignored = {0};

	if (!j->req->quiet && (j->out.exit.flags & REPORT_NO_LANDLOCK) && j->out.have_exit &&
	    j->req->mode != MODE_FULL_ACCESS)
		(void)buf_str(&out, "sandglass: not enforced: landlock\n");
	for (size_t i = 0; j->guard && guard_lost(j->guard, i); i++)
		(void)buf_printf(&out, "sandglass: not enforced: %s\n", guard_lost(j->guard, i));
	tell_flags(f, flags, &out);
	for (size_t i = 0; i < denials; i++) {
		if (i == MAX_TOLD) {
			(void)buf_printf(&out, "sandglass: hint: and %zu more like that\n",
					 denials - i);
			break;
		}
		(void)buf_str(&out, "sandglass: hint: ");
		(void)term_escape(&out, d[i].hint, strlen(d[i].hint));
		(void)buf_char(&out, '\n');
	}
	if (!j->req->quiet)
		tell_egress(j, &out);
	if (j->in && j->in->near && !j->req->quiet) {
		(void)buf_str(&out, "sandglass: warning: ");
		(void)term_escape(&out, j->in->near_why, strlen(j->in->near_why));
		(void)buf_char(&out, '\n');
	}
	if (job_session_hint(j) && !j->req->quiet)
		(void)buf_printf(&out, "sandglass: hint: %s\n", job_session_hint(j));
	if (j->wanted && !j->req->quiet) {
		char hint[JOB_HINT_TEXT];
		(void)buf_printf(&out, "sandglass: hint: %s\n", job_wanted_hint(j, hint));
	}
	if (j->missed.profile && j->error.code == ERR_NONE && !j->req->quiet) {
		char hint[MISSED_TEXT];
		(void)missed_hint(&j->missed, hint);
		(void)buf_str(&out, "sandglass: hint: ");
		(void)term_escape(&out, hint, strlen(hint));
		(void)buf_char(&out, '\n');
	}
	if (out.n && cli_write(STDERR_FILENO, out.p, out.n, &ignored) < 0)
		return; /* nowhere to tell it; the result and the quarantine have it */
}

/*
 * The audit log, before the result that says whether it was written. A log that cannot be
 * written keeps nobody from running a command: what is missing in it is said instead.
 */
static void record(struct job *j)
{
	char shown[2 * ERR_MSG_MAX];
	struct err e = {0};

	if (!j->who.env || job_record(j, &e) == 0)
		return;
	j->unrecorded = true;
	if (!j->req->quiet && !j->req->json)
		(void)fprintf(stderr, "sandglass: not enforced: audit (%s)\n",
			      term_escape_cut(shown, sizeof(shown), e.msg, strlen(e.msg)));
}

static int finish(struct job *j)
{
	struct err e = {0};
	int status = j->status;

	record(j);

	if (j->guard && status != 0)
		guard_hint_masks(j->guard);
	if (!j->req->json)
		tell_guarded(j);
	if (j->req->json) {
		if (write_result(j, &e) < 0)
			status = cli_fail(&e, 125);
	} else if (j->error.code != ERR_NONE &&
		   !(j->req->quiet && j->out.have_exit && !j->out.have_failure)) {
		(void)cli_fail(&j->error, status);
	}
	int sig = j->out.told_signal;
#ifdef SANDGLASS_SANITIZED
	job_release(j); /* elsewhere the end of the process is quicker at it */
#endif
	if (sig)
		cli_die_by(sig);
	return status;
}

/* All but the end. -1: j->error says why nothing was run. */
static int begin(struct job *j)
{
	if (job_begin(j, &j->error) < 0 ||
	    (j->req->mode == MODE_FULL_ACCESS && confirm_full_access(j, &j->error) < 0) ||
	    job_start(j, &j->error) < 0 || job_prepare(j, &j->error) < 0 ||
	    job_release_core(j, &j->error) < 0 || job_guard(j, &j->error) < 0)
		return -1;
	if (j->plan.cgroup_count)
		cgroups_sweep(&j->cgroups);
	notice(j);
	return 0;
}

/* All of it once. */
static int attempt(struct job *j)
{
	return begin(j) < 0 ? -1 : job_run(j, &j->error);
}

static int job_of_session(struct job *j, struct request *req, struct err *e);
static void settle(struct job *j, int rc);

/* The same in a session of its own, which holds what is changed. */
static int run_reviewed(const struct cli *cli, struct job *j, struct request *req)
{
	static struct job_session in;
	char id[UUID_TEXT];

	int rc = reviewed_begin(cli, cli->argc, cli->argv, id, &j->error);
	if (rc == 0)
		rc = job_session_find(&in, &j->who, id, &j->error);
	if (rc < 0) {
		j->status = err_code_status(j->error.code);
		return finish(j);
	}
	policy_release(&j->policy);
	egress_set_release(&req->egress);
	j->in = &in;
	bool ask = j->who.terminal && !req->json && !req->quiet;
	settle(j, job_of_session(j, req, &j->error) < 0 ? -1 : attempt(j));
	if (j->out.told_signal) /* which ends us, too: the changes stay */
		reviewed_end(cli, id, true, false);
	int status = finish(j);
	job_session_release(&in); /* for the keeper the call ends with this connection */
	reviewed_end(cli, id, req->keep, ask);
	return status;
}

static int run(const struct cli *cli, struct request *req)
{
	static struct job j; /* 1 MiB of lists: too much for a stack */
	char cwd[PATH_TEXT];

	j.began_ms = clock_wall_ms();
	j.closed = cli->closed;
	j.uid_fd = -1;
	j.req = req;
	bool known = caller_init(&j.who, cli->env, cwd, &j.error) == 0;
	if (!known)
		policy_apply(req, NULL);
	bool good = known && job_policy(&j, req, &j.error) == 0;
	if (good && req->writes == WRITES_OVERLAY)
		return run_reviewed(cli, &j, req);
	int rc = good ? attempt(&j) : -1;
	if (rc == 0 && job_needs_other_ids(&j)) {
		job_reset(&j);
		rc = attempt(&j);
	}
	if (rc == 0) {
		job_judge(&j);
	} else {
		job_abort(&j);
		j.status = err_code_status(j.error.code);
	}
	int status = finish(&j);
	egress_set_release(&req->egress);
	return status;
}

/* An option that could not be read: still one JSON document for who asked for it. */
static int bad_options(struct request *req, const struct err *e)
{
	static struct job j;

	if (!req->json)
		return cli_fail(e, 125);
	policy_apply(req, NULL);
	j.req = req;
	j.error = *e;
	j.status = 125;
	j.uid_fd = -1;
	return finish(&j);
}

int verb_run(const struct cli *cli, int argc, char **argv)
{
	struct request req;
	struct err e = {0};

	if (run_options_parse(argc, argv, &req, &e) < 0)
		return bad_options(&req, &e);
	if (req.help)
		return usage_show(&run_usage, 125);
	return run(cli, &req);
}

/* What the session was made with, and then what this call asks for. */
static int session_request(struct job_session *s, int argc, char **argv, struct request *ret,
			   struct err *e)
{
	if (run_options_parse((int)s->rec.option_count, s->rec.options, ret, e) < 0 ||
	    session_exec_parse(argc, argv, ret, e) < 0)
		return -1;
	ret->source = s->rec.source[0] ? s->rec.source : NULL;
	ret->no_source = !s->rec.source[0];
	return 0;
}

static int job_of_session(struct job *j, struct request *req, struct err *e)
{
	const struct session_record *rec = &j->in->rec;

	j->req = req;
	if (source_locate(req, &j->who, &j->src, e) < 0)
		return -1;
	if (j->src.given && (j->src.st.st_dev != rec->dev || j->src.st.st_ino != rec->ino)) {
		(void)err_set(e, ERR_CONFLICT,
			      "%s is not the directory that the session was made over",
			      j->src.path);
		return err_hint(e, "sandglass session destroy %.8s keeps its changes", rec->id);
	}
	if (policy_load_snapshot(&j->policy, req, j->in->dir, e) < 0)
		return -1;
	egress_set_release(&req->egress);
	if (network_of(req, &req->egress, e) < 0)
		return -1;
	j->in->rules = &req->egress;
	j->in->own_rules = req->egress.n;
	return session_rules_add(j->in->dir, &req->egress, req->egress.n, e);
}

static void take_defaults(struct request *req)
{
	if (req->wall_ms == LIMIT_UNSET)
		req->wall_ms = SESSION_WALL_MS;
	if (req->pids == LIMIT_UNSET)
		req->pids = SESSION_PIDS;
}

/* For `session calls`, and for what is exported; nobody misses it if it cannot be written. */
static void note_result(const struct job *j)
{
	AUTO_BUF out = BUF_INIT(MAX_RESULT_BYTES);
	char name[sizeof("results/.json") + UUID_TEXT];
	struct err ignored = {0};

	(void)snprintf(name, sizeof(name), "results/%s.json", j->call);
	if (!j->call[0] || result_write(j, &out, &ignored) < 0)
		return;
	AUTO_FD int fd = openat(j->in->dir, name,
				O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || cli_write(fd, out.p, out.n, &ignored) < 0)
		return;
}

static void settle(struct job *j, int rc)
{
	if (rc == 0) {
		job_judge(j);
	} else {
		job_abort(j);
		j->status = err_code_status(j->error.code);
	}
	note_result(j);
}

static int run_in_session(struct job *j, struct request *req)
{
	int rc = job_of_session(j, req, &j->error);

	take_defaults(req);
	settle(j, rc < 0 ? -1 : attempt(j));
	return finish(j);
}

/* All that it says goes to the session's logs, as that of any call, and nowhere else. */
static _Noreturn void be_detached(struct job *j, struct request *req, int tell)
{
	(void)setsid();
	(void)sigaction(SIGHUP, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int rc = -1;

	req->json = req->tty = false;
	req->quiet = req->no_tty = true;
	if (null < 0)
		(void)err_sys(&j->error, "/dev/null");
	else if (dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
		(void)err_sys(&j->error, "dup2");
	else
		rc = job_of_session(j, req, &j->error);
	take_defaults(req);
	if (rc == 0)
		rc = begin(j);
	(void)!write(tell, &j->error, sizeof(j->error));
	(void)close(tell);
	if (rc == 0)
		rc = job_run(j, &j->error);
	settle(j, rc);
	record(j);
	_exit(0);
}

/* The call goes on with a process of its own that stays with it, as we would. */
static int detach(struct job *j, struct request *req)
{
	struct err e = {0};
	int ends[2];

	if (uuid4(j->in->call, &e) < 0 || (pipe2(ends, O_CLOEXEC) < 0 && err_sys(&e, "pipe") < 0))
		return cli_fail(&e, 125);
	pid_t pid = fork();
	if (pid == 0)
		be_detached(j, req, ends[1]);
	(void)close(ends[1]);
	if (pid < 0 || read(ends[0], &e, sizeof(e)) != sizeof(e))
		(void)err_set(&e, ERR_INTERNAL, "the call did not start");
	if (e.code != ERR_NONE)
		return cli_fail(&e, err_code_status(e.code));
	if (req->json)
		(void)printf("{\"session\":\"%s\",\"call\":\"%s\"}\n", j->in->rec.id, j->in->call);
	else
		(void)printf("%s\n", j->in->call);
	return fflush(stdout) ? 125 : 0;
}

/*
 * Takes the session out of the words, so that options may stand on both sides of it: no
 * command begins with `-`. Behind a script that was given before it are the script's
 * arguments, whatever they look like.
 */
static const char *take_session(const struct request *probe, int *argc, char ***argv)
{
	char **at = probe->argv;
	const char *id = at[0];
	bool ended = at > *argv && strcmp(at[-1], "--") == 0;

	if (probe->script && !ended) {
		at[0] = (char *)(uintptr_t) "--";
		return id;
	}
	memmove(*argv + 1, *argv, (size_t)(at - *argv) * sizeof(**argv));
	(*argv)++;
	(*argc)--;
	return id;
}

/* The session's operand is the first one, and what is behind it runs in the session. */
static int exec_operand(struct request *probe, int *argc, char ***argv, const char **ret_id,
			struct err *e)
{
	*probe = request_of_nothing();
	if (session_exec_parse(*argc, *argv, probe, e) < 0)
		return -1;
	if (probe->help)
		return 0;
	if (!probe->argc) {
		(void)err_set(e, ERR_CONFIG_INVALID, "no session");
		return err_hint(e, "sandglass session exec ID CMD [ARG…]; `sandglass session list` "
				   "has the ids, @last is the newest");
	}
	*ret_id = take_session(probe, argc, argv);
	*probe = request_of_nothing();
	if (session_exec_parse(*argc, *argv, probe, e) < 0)
		return -1;
	if (probe->help || probe->argc || probe->script)
		return 0;
	(void)err_set(e, ERR_CONFIG_INVALID, "no command");
	return err_hint(e, "sandglass session exec ID CMD [ARG…]");
}

int verb_session_exec(const struct cli *cli, int argc, char **argv)
{
	static struct job j;
	static struct job_session in;
	static struct request req;
	const char *id = NULL;
	char cwd[PATH_TEXT];
	struct err e = {0};

	if (exec_operand(&req, &argc, &argv, &id, &e) < 0)
		return bad_options(&req, &e);
	if (req.help)
		return usage_show(&session_exec_usage, 125);
	j.closed = cli->closed;
	j.uid_fd = -1;
	if (caller_init(&j.who, cli->env, cwd, &e) < 0 ||
	    job_session_find(&in, &j.who, id, &e) < 0 ||
	    session_request(&in, argc, argv, &req, &e) < 0)
		return bad_options(&req, &e);
	in.detached = req.detach;
	j.in = &in;
	return req.detach ? detach(&j, &req) : run_in_session(&j, &req);
}

int verb_shell(const struct cli *cli, int argc, char **argv)
{
	static char *const bash[] = {(char *)(uintptr_t) "/bin/bash",
				     (char *)(uintptr_t) "--noprofile",
				     (char *)(uintptr_t) "--norc", NULL};
	static char *const sh[] = {(char *)(uintptr_t) "/bin/sh", NULL};
	struct request req;
	struct err e = {0};

	if (run_options_parse(argc, argv, &req, &e) < 0)
		return bad_options(&req, &e);
	if (req.help)
		return usage_show(&shell_usage, 125);
	if (req.argc || req.script) {
		(void)err_set(&e, ERR_CONFIG_INVALID, "`shell` takes no command");
		return bad_options(&req, &e);
	}
	bool has_bash = access(bash[0], X_OK) == 0;
	req.argv = (char **)(uintptr_t)(has_bash ? bash : sh);
	req.argc = has_bash ? 3 : 1;
	req.tty = !req.no_tty;
	return run(cli, &req);
}

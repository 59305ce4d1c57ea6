/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happened, in the words of the contract: code, kind, status, hint.
 */
#include <errno.h>
#include <signal.h>

#include "run/job.h"

#include "base/base.h"
#include "test_base_suite.h"

static struct job job;
static struct request req;
static char *no_env[] = {NULL};

static void setup(void)
{
	memset(&job, 0, sizeof(job));
	job.req = &req;
	job.who.env = no_env;
	job.limits.value[LIMIT_WALL] = 30000;
	job.limits.value[LIMIT_MEMORY] = 64 << 20;
	job.limits.value[LIMIT_CPU_TIME] = 2000;
	job.limits.value[LIMIT_PIDS] = 50;
	job.limits.value[LIMIT_DISK] = 16 << 20;
	job.limits.value[LIMIT_INODES] = 100;
	job.limits.grace_ms = 5000;
}

static void judged(enum err_code code, int status, const char *text)
{
	job_judge(&job);
	ck_assert_msg(job.error.code == code && job.status == status,
		      "%s status %d, not %s status %d: %s", err_code_name(job.error.code),
		      job.status, err_code_name(code), status, job.error.msg);
	ck_assert_msg(strstr(job.error.msg, text) != NULL, "\"%s\" is not in \"%s\"", text,
		      job.error.msg);
}

static void fails(enum stage stage, int sys, const char *text)
{
	setup();
	job.out.have_failure = true;
	job.out.failure = (struct report){.kind = REPORT_FAIL, .stage = stage, .sys = sys};
	snprintf(job.out.failure.text, sizeof(job.out.failure.text), "%s", text);
}

START_TEST(stages)
{
	static const struct {
		enum stage stage;
		int sys;
		enum err_code code;
		const char *text;
	} rows[] = {
		{STAGE_PLAN, 0, ERR_INTERNAL, "sandglass-core: TEXT"},
		{STAGE_PARENT, 0, ERR_INTERNAL, "sandglass-core: TEXT"},
		{STAGE_CGROUP, EBUSY, ERR_LIMIT_UNAVAILABLE,
		 "cgroup TEXT: Device or resource busy"},
		{STAGE_IDMAP, EINVAL, ERR_POLICY_DENIED, "TEXT is root's"},
		{STAGE_CLONE, ENOSPC, ERR_SANDBOX_UNAVAILABLE, "namespaces cannot be made: TEXT"},
		{STAGE_MAPS, EPERM, ERR_SANDBOX_UNAVAILABLE, "namespaces cannot be made"},
		{STAGE_IDS, EPERM, ERR_SANDBOX_UNAVAILABLE, "namespaces cannot be made"},
		{STAGE_BIND, ENOENT, ERR_SANDBOX_UNAVAILABLE, "TEXT cannot be shown inside"},
		{STAGE_IDENT, 0, ERR_CONFLICT, "TEXT is not the file any more"},
		{STAGE_TARGET, EROFS, ERR_CONFIG_INVALID, "no place inside for TEXT"},
		{STAGE_ROOT, EINVAL, ERR_SANDBOX_UNAVAILABLE, "the boundary cannot be made: TEXT"},
		{STAGE_PROC, EPERM, ERR_SANDBOX_UNAVAILABLE, "a new TEXT is refused"},
		{STAGE_DEV, ENOENT, ERR_SANDBOX_UNAVAILABLE, "the boundary cannot be made: TEXT"},
		{STAGE_SAND, ENOMEM, ERR_SANDBOX_UNAVAILABLE, "the boundary cannot be made: TEXT"},
		{STAGE_MASK, EIO, ERR_SANDBOX_UNAVAILABLE, "the boundary cannot be made: TEXT"},
		{STAGE_PIVOT, EINVAL, ERR_SANDBOX_UNAVAILABLE, "the boundary cannot be made: TEXT"},
		{STAGE_NET, EINVAL, ERR_SANDBOX_UNAVAILABLE, "the boundary cannot be made: TEXT"},
		{STAGE_EGRESS, EACCES, ERR_SANDBOX_UNAVAILABLE,
		 "the boundary cannot be made: TEXT"},
		{STAGE_UTS, EINVAL, ERR_SANDBOX_UNAVAILABLE, "the boundary cannot be made: TEXT"},
		{STAGE_KEYRING, EDQUOT, ERR_SANDBOX_UNAVAILABLE,
		 "the boundary cannot be made: TEXT"},
		{STAGE_CAPS, EPERM, ERR_SANDBOX_UNAVAILABLE, "the boundary cannot be made: TEXT"},
		{STAGE_RLIMIT, EPERM, ERR_SANDBOX_UNAVAILABLE, "the boundary cannot be made: TEXT"},
		{STAGE_STDIN, EACCES, ERR_SANDBOX_UNAVAILABLE, "the boundary cannot be made: TEXT"},
		{STAGE_PTY, ENOSPC, ERR_SANDBOX_UNAVAILABLE, "the boundary cannot be made: TEXT"},
		{STAGE_CWD, ENOENT, ERR_CONFIG_INVALID, "working directory TEXT"},
		{STAGE_LANDLOCK, EINVAL, ERR_SANDBOX_UNAVAILABLE,
		 "the boundary cannot be made: TEXT"},
		{STAGE_SECCOMP, EINVAL, ERR_SANDBOX_UNAVAILABLE,
		 "the boundary cannot be made: TEXT"},
		{STAGE_FORK, EAGAIN, ERR_SANDBOX_UNAVAILABLE, "the boundary cannot be made: TEXT"},
		{STAGE_EXEC, EINVAL, ERR_SANDBOX_UNAVAILABLE, "the boundary cannot be made: TEXT"},
	};

	ck_assert_uint_eq(ARRAY_LEN(rows), STAGES);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		ck_assert_uint_eq(rows[i].stage, i);
		fails(rows[i].stage, rows[i].sys, "TEXT");
		judged(rows[i].code, 125, rows[i].text);
		if (rows[i].sys && rows[i].stage != STAGE_PLAN)
			ck_assert_ptr_nonnull(strstr(job.error.msg, strerror(rows[i].sys)));
	}
}
END_TEST

/* The same stage, where the errno says that namespaces are not allowed. */
START_TEST(stages_denied)
{
	static const enum stage denied[] = {STAGE_ROOT, STAGE_NET, STAGE_UTS};

	for (size_t i = 0; i < ARRAY_LEN(denied); i++) {
		fails(denied[i], EPERM, "TEXT");
		judged(ERR_SANDBOX_UNAVAILABLE, 125, "namespaces cannot be made: TEXT");
		fails(denied[i], EACCES, "TEXT");
		judged(ERR_SANDBOX_UNAVAILABLE, 125, "namespaces cannot be made: TEXT");
		ck_assert(job.error.hint[0]);
	}
}
END_TEST

START_TEST(stage_unknown)
{
	fails(STAGES, EPERM, "TEXT");
	judged(ERR_INTERNAL, 125, "TEXT");
	fails((enum stage)UINT32_MAX, EPERM, "TEXT");
	judged(ERR_INTERNAL, 125, "TEXT");
}
END_TEST

START_TEST(inside_a_sandbox)
{
	char *inside[] = {(char *)"SANDGLASS=1", NULL};

	fails(STAGE_CLONE, EPERM, "TEXT");
	job.who.env = inside;
	judged(ERR_NESTED_SANDBOX, 125, "already inside a sandbox");
	fails(STAGE_BIND, EPERM, "TEXT");
	job.who.env = inside;
	judged(ERR_SANDBOX_UNAVAILABLE, 125, "cannot be shown");
}
END_TEST

/* Texts come from paths: nothing of them acts on a terminal, no length breaks it. */
START_TEST(odd_texts)
{
	char long_text[REPORT_TEXT_MAX];

	fails(STAGE_BIND, ENOENT, "/a\x1b[2J\n%s%n\xff");
	judged(ERR_SANDBOX_UNAVAILABLE, 125, "/a\\x1b[2J\\x0a%s%n\\xff cannot be shown");
	memset(long_text, '\x1b', sizeof(long_text));
	long_text[sizeof(long_text) - 1] = '\0';
	for (uint32_t st = 0; st < STAGES; st++) {
		fails((enum stage)st, ENOENT, long_text);
		job_judge(&job);
		ck_assert(job.error.code != ERR_NONE && job.error.msg[0]);
	}
}
END_TEST

/* A failure of ours goes before everything that was reported besides. */
START_TEST(failure_first)
{
	fails(STAGE_IDENT, 0, "TEXT");
	job.out.have_exit = true;
	job.out.exit.flags = REPORT_WALL;
	job.out.told_signal = SIGTERM;
	judged(ERR_CONFLICT, 125, "TEXT");
}
END_TEST

static void ends(int wait_status, uint32_t flags)
{
	setup();
	job.out.have_exit = true;
	job.out.exit = (struct report){.kind = REPORT_EXIT, .status = wait_status, .flags = flags};
}

START_TEST(own_end)
{
	static const int statuses[] = {0, 1, 2, 124, 125, 126, 127, 128, 137, 255};
	static const int signals[] = {SIGHUP, SIGINT, SIGKILL, SIGSEGV, SIGTERM, SIGSYS};

	for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
		ends(statuses[i] << 8, 0);
		judged(ERR_NONE, statuses[i], "");
	}
	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		ends(signals[i], 0);
		judged(ERR_NONE, 128 + signals[i], "");
		ends(signals[i] | 0x80, 0); /* with a core dump */
		judged(ERR_NONE, 128 + signals[i], "");
	}
}
END_TEST

static void execs(int sys, int status, const char *text, const char *second)
{
	setup();
	job.out.have_exit = job.out.have_exec_error = true;
	job.out.exec = (struct report){.kind = REPORT_EXEC, .sys = sys, .status = status};
	size_t n = (size_t)snprintf(job.out.exec.text, 200, "%s", text);
	snprintf(job.out.exec.text + n + 1, 200, "%s", second);
}

START_TEST(not_executed)
{
	execs(ENOENT, 127, "nothing", "");
	judged(ERR_NOT_FOUND, 127, "nothing: not found");
	ck_assert_str_eq(job.error.hint, "it is not on PATH outside the sandbox either");
	execs(ENOENT, 127, "./nothing", "");
	judged(ERR_NOT_FOUND, 127, "./nothing: not found");
	ck_assert_ptr_nonnull(strstr(job.error.hint, "--read"));
	execs(ENOENT, 126, "./script", "/usr/bin/none");
	judged(ERR_NOT_EXECUTABLE, 126, "interpreter /usr/bin/none is not there");
	execs(ENOENT, 126, "./script", "/bin/sh\r");
	judged(ERR_NOT_EXECUTABLE, 126, "interpreter /bin/sh\\x0d is not there");
	ck_assert_ptr_nonnull(strstr(job.error.hint, "CRLF"));
	execs(ENOENT, 126, "./program", "");
	judged(ERR_NOT_EXECUTABLE, 126, "its interpreter is not there");
	execs(ENOEXEC, 126, "./foreign", "");
	judged(ERR_NOT_EXECUTABLE, 126, "no format that this kernel runs");
	execs(EACCES, 126, "./data", "");
	judged(ERR_NOT_EXECUTABLE, 126, "./data: Permission denied");
	ck_assert_ptr_nonnull(strstr(job.error.hint, "chmod +x"));
	execs(EISDIR, 126, "./dir", "");
	judged(ERR_NOT_EXECUTABLE, 126, "Is a directory");
	execs(E2BIG, 126, "./big", "");
	judged(ERR_ARG_LIMIT, 125, "too long");
	execs(ENOENT, 127, "\x1b[1m\n", "");
	judged(ERR_NOT_FOUND, 127, "\\x1b[1m\\x0a: not found");
}
END_TEST

/* The report's text is full: there is no room for a second one, and none is read. */
START_TEST(not_executed_full_text)
{
	execs(ENOENT, 126, "", "");
	memset(job.out.exec.text, 'x', sizeof(job.out.exec.text) - 1);
	judged(ERR_NOT_EXECUTABLE, 126, "its interpreter is not there");
}
END_TEST

START_TEST(limits)
{
	static const struct {
		uint32_t flag;
		enum err_code code;
		const char *text;
	} rows[] = {
		{REPORT_MEMORY, ERR_MEMORY_LIMIT, "memory (64MiB)"},
		{REPORT_CPU, ERR_CPU_LIMIT, "cpu time (2s)"},
		{REPORT_PIDS, ERR_PIDS_LIMIT, "processes and threads (50)"},
		{REPORT_DISK, ERR_DISK_LIMIT, "space in /sand (16MiB)"},
		{REPORT_INODES, ERR_INODE_LIMIT, "inodes in /sand (100)"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		ends(1 << 8, rows[i].flag);
		judged(rows[i].code, 1, rows[i].text);
		ends(SIGKILL, rows[i].flag);
		judged(rows[i].code, 137, rows[i].text);
		/* Hit, and yet the command succeeded: no error. */
		ends(0, rows[i].flag);
		judged(ERR_NONE, 0, "");
		/* The counter may have come with the last report. */
		ends(1 << 8, 0);
		job.out.have_usage = true;
		job.out.usage.flags = rows[i].flag;
		judged(rows[i].code, 1, rows[i].text);
	}
}
END_TEST

START_TEST(timeout)
{
	ends(SIGTERM, REPORT_WALL);
	judged(ERR_TOOL_TIMEOUT, 124, "Do not repeat: wall time 30s is over");
	ck_assert_ptr_nonnull(strstr(job.error.msg, "by TERM within a 5s grace"));
	ends(SIGKILL, REPORT_WALL | REPORT_KILLED);
	judged(ERR_TOOL_TIMEOUT, 124, "by KILL after a 5s grace");
	/* Also if the command made the best of it, or another limit was hit besides. */
	ends(0, REPORT_WALL);
	judged(ERR_TOOL_TIMEOUT, 124, "Do not repeat:");
	ends(1 << 8, REPORT_WALL | REPORT_MEMORY);
	judged(ERR_TOOL_TIMEOUT, 124, "Do not repeat:");
}
END_TEST

START_TEST(cancelled)
{
	ends(0, REPORT_CANCELLED);
	job.out.told_signal = SIGTERM;
	judged(ERR_CANCELLED, 0, "ended by Terminated");
	ends(SIGINT, REPORT_CANCELLED);
	job.out.told_signal = SIGINT;
	judged(ERR_CANCELLED, 130, "ended by Interrupt");
	ends(SIGTERM, REPORT_CANCELLED | REPORT_WALL);
	job.out.told_signal = SIGTERM;
	judged(ERR_TOOL_TIMEOUT, 124, "Do not repeat:");
}
END_TEST

START_TEST(lost)
{
	setup();
	judged(ERR_INTERNAL, 125, "before its command could report");
	setup();
	job.out.have_usage = true;
	job.out.usage.flags = REPORT_MEMORY | REPORT_INIT_DIED;
	judged(ERR_MEMORY_LIMIT, 137, "memory (64MiB)");
	setup();
	judged(ERR_INTERNAL, 125, "before its command could report");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("run judge");
	TCase *c = tcase_create("all");

	tcase_add_test(c, stages);
	tcase_add_test(c, stages_denied);
	tcase_add_test(c, stage_unknown);
	tcase_add_test(c, inside_a_sandbox);
	tcase_add_test(c, odd_texts);
	tcase_add_test(c, failure_first);
	tcase_add_test(c, own_end);
	tcase_add_test(c, not_executed);
	tcase_add_test(c, not_executed_full_text);
	tcase_add_test(c, limits);
	tcase_add_test(c, timeout);
	tcase_add_test(c, cancelled);
	tcase_add_test(c, lost);
	suite_add_tcase(s, c);
	return suite_run(s);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way to sandglass-main, which has the libraries that some verbs need.
 */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/verbs.h"
#include "run/beside.h"

static int spawn_main(char **all, const char *path, const struct cli *cli, const sigset_t *mask,
		      pid_t *ret_pid, struct err *e)
{
	posix_spawnattr_t attr;
	int rc = posix_spawnattr_init(&attr);

	if (rc == 0) {
		rc = posix_spawnattr_setsigmask(&attr, mask);
		if (rc == 0)
			rc = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
		if (rc == 0)
			rc = posix_spawn(ret_pid, path, NULL, &attr, all, cli->env);
		(void)posix_spawnattr_destroy(&attr);
	}
	errno = rc;
	return rc == 0 ? 0 : err_sys(e, "start %s", path);
}

/*
 * What is sent to this process alone is for the other one, which cleans up; what the
 * terminal sends has reached it already. A child that ended before is seen at once.
 */
static int wait_main(pid_t pid, const sigset_t *set, int *ret_status, struct err *e)
{
	siginfo_t info;

	for (;;) {
		pid_t done = waitpid(pid, ret_status, WNOHANG);
		if (done < 0)
			return err_sys(e, "wait for sandglass-main");
		if (done == pid)
			return 0;
		int sig = sigwaitinfo(set, &info);
		if (sig > 0 && sig != SIGCHLD && info.si_code != SI_KERNEL)
			(void)kill(pid, sig);
	}
}

/*
 * It is waited for, not become, because the loader's own words about a missing
 * library would be the last ones.
 */
static int run_main(char **all, const char *path, const struct cli *cli, struct err *e)
{
	static const int told[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGCHLD};
	sigset_t set;
	sigset_t before;
	int status = 0;
	pid_t pid = -1;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(told); i++)
		(void)sigaddset(&set, told[i]);
	(void)sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	(void)sigprocmask(SIG_BLOCK, &set, &before);
	int rc = spawn_main(all, path, cli, &before, &pid, e);
	if (rc == 0)
		rc = wait_main(pid, &set, &status, e);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	if (rc < 0)
		return -1;
	if (WIFSIGNALED(status)) {
		cli_die_by(WTERMSIG(status));
		return 128 + WTERMSIG(status);
	}
	if (WEXITSTATUS(status) == BESIDE_NO_LIBRARY)
		return beside_no_library("sandglass-main", e);
	return WEXITSTATUS(status);
}

int verb_in_main(const struct cli *cli, const char *verb, int argc, char **argv)
{
	char path[PATH_TEXT];
	struct err e = {0};

	if (beside_find("sandglass-main", path, &e) < 0)
		return cli_fail(&e, 2);
	char **all = calloc((size_t)argc + 3, sizeof(*all));
	if (!all) {
		(void)err_set(&e, ERR_INTERNAL, "out of memory");
		return cli_fail(&e, 2);
	}
	all[0] = (char *)(uintptr_t) "sandglass-main";
	all[1] = (char *)(uintptr_t)verb;
	for (int i = 0; i < argc; i++)
		all[2 + i] = argv[i];
	int status = run_main(all, path, cli, &e);
	free(all);
	return status < 0 ? cli_fail(&e, 2) : status;
}

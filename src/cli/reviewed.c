/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/reviewed.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/base.h"
#include "run/beside.h"

static int start(const struct cli *cli, char **all, int *ret_from, pid_t *ret_pid, struct err *e)
{
	posix_spawn_file_actions_t acts;
	char path[PATH_TEXT];
	int ends[2];

	if (beside_find("sandglass-main", path, e) < 0)
		return -1;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	int rc = posix_spawn_file_actions_init(&acts);
	if (rc == 0) {
		rc = posix_spawn_file_actions_adddup2(&acts, ends[1], STDOUT_FILENO);
		if (rc == 0)
			rc = posix_spawn(ret_pid, path, &acts, NULL, all, cli->env);
		(void)posix_spawn_file_actions_destroy(&acts);
	}
	(void)close(ends[1]);
	*ret_from = ends[0];
	errno = rc;
	return rc ? err_sys(e, "start sandglass-main") : 0;
}

int reviewed_begin(const struct cli *cli, int argc, char **argv, char ret_id[UUID_TEXT],
		   struct err *e)
{
	int status = 0;
	int from = -1;
	pid_t pid = -1;

	char **all = calloc((size_t)argc + 4, sizeof(*all));
	if (!all)
		return err_set(e, ERR_INTERNAL, "out of memory");
	all[0] = (char *)(uintptr_t) "sandglass-main";
	all[1] = (char *)(uintptr_t) "session";
	all[2] = (char *)(uintptr_t) "for-run";
	memcpy(all + 3, argv, (size_t)argc * sizeof(*all));
	int rc = start(cli, all, &from, &pid, e);
	free(all);
	AUTO_FD int fd = from;
	if (rc < 0)
		return -1;
	ssize_t n = RETRY_EINTR(read(fd, ret_id, UUID_TEXT - 1));
	(void)RETRY_EINTR(waitpid(pid, &status, 0));
	ret_id[n > 0 ? n : 0] = '\0';
	if (WIFEXITED(status) && WEXITSTATUS(status) == BESIDE_NO_LIBRARY)
		return beside_no_library("sandglass-main", e);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && uuid_valid(ret_id))
		return 0;
	/* It has said why on stderr. */
	return err_set(e, ERR_SANDBOX_UNAVAILABLE, "there is no session to hold the changes");
}

/* Whether there is anything to review; if that cannot be told, there is. What is said of it is not for now. */
static bool differs(const struct cli *cli, const char *id)
{
	char *all[] = {(char *)(uintptr_t) "sandglass-main",
		       (char *)(uintptr_t) "diff",
		       (char *)(uintptr_t) "--exit-code",
		       (char *)(uintptr_t) "--stat",
		       (char *)(uintptr_t)id,
		       NULL};
	struct err ignored = {0};
	char block[4096];
	int from = -1;
	int status = 0;
	pid_t pid = -1;

	if (start(cli, all, &from, &pid, &ignored) < 0)
		return true;
	AUTO_FD int fd = from;
	while (RETRY_EINTR(read(fd, block, sizeof(block))) > 0)
		;
	(void)RETRY_EINTR(waitpid(pid, &status, 0));
	return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static int verb(const struct cli *cli, const char *name, const char *a, const char *b,
		const char *c)
{
	char *argv[] = {(char *)(uintptr_t)a, (char *)(uintptr_t)b, (char *)(uintptr_t)c, NULL};
	int argc = 0;

	while (argv[argc])
		argc++;
	return verb_in_main(cli, name, argc, argv);
}

static void tell_kept(const char *id)
{
	(void)fprintf(
		stderr,
		"sandglass: its changes are held in session %s\n"
		"sandglass: sandglass diff %.8s, sandglass apply %.8s, sandglass session destroy %.8s\n",
		id, id, id, id);
}

/* The first letter of what was answered; 0 at the end of input, `?` for anything else. */
static int answer(int tty)
{
	static const char question[] =
		"sandglass: apply all, look, pick, keep, drop? [a l p k d ?] ";
	static const char *const words[] = {"apply", "look", "pick", "keep", "drop"};
	char line[64];

	/* What was typed before is not an answer. */
	(void)tcflush(tty, TCIFLUSH);
	if (write(tty, question, sizeof(question) - 1) < 0)
		return 0;
	ssize_t n = RETRY_EINTR(read(tty, line, sizeof(line) - 1));
	if (n <= 0)
		return 0;
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcmp(line, words[i]) == 0 || (line[0] == words[i][0] && !line[1]))
			return words[i][0];
	return '?';
}

static void explain(int tty)
{
	static const char text[] =
		"a, apply  put all of it into the project, and end the session\n"
		"l, look   show it as a patch, and ask again\n"
		"p, pick   ask about each change, put those into the project, and ask again\n"
		"k, keep   leave it in the session, for later\n"
		"d, drop   throw all of it away, and end the session\n";

	(void)!write(tty, text, sizeof(text) - 1);
}

static bool decide(const struct cli *cli, const char *id, int what, int tty)
{
	switch (what) {
	case 'a':
		if (verb(cli, "apply", id, NULL, NULL) != 0)
			return false;
		(void)verb(cli, "session", "destroy", id, NULL); /* keeps what was left out */
		return true;
	case 'l':
		(void)verb(cli, "diff", id, NULL, NULL);
		return false;
	case 'p':
		(void)verb(cli, "apply", "-p", id, NULL);
		return false;
	case 'd':
		break;
	case 'k':
	case 0:
		tell_kept(id);
		return true;
	default:
		explain(tty);
		return false;
	}
	(void)verb(cli, "session", "destroy", "--discard", id);
	return true;
}

void reviewed_end(const struct cli *cli, const char *id, bool keep, bool ask)
{
	if (!keep) {
		if (!differs(cli, id)) {
			(void)verb(cli, "session", "destroy", "--discard", id);
			return;
		}
	}
	AUTO_FD int tty = ask && !keep ? open("/dev/tty", O_RDWR | O_CLOEXEC) : -1;
	if (tty < 0) {
		tell_kept(id);
		return;
	}
	(void)verb(cli, "diff", "--stat", id, NULL);
	while (!decide(cli, id, answer(tty), tty))
		;
}

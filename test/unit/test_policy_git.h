/* SPDX-License-Identifier: Apache-2.0 */
/*
 * git itself, asked in the place of a test: what it says is what our readers
 * are held against.
 */
#pragma once

#include <spawn.h>
#include <sys/wait.h>

#include "test_policy_place.h"

/* Runs a shell script in the place, its output goes to `out` there. The exit status. */
static inline int place_shell(const char *script)
{
	char *argv[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
	char home[600];
	char path[PATH_TEXT];
	char *env[] = {home,
		       path,
		       (char *)"GIT_CONFIG_GLOBAL=/dev/null",
		       (char *)"GIT_CONFIG_NOSYSTEM=1",
		       (char *)"GIT_AUTHOR_NAME=a",
		       (char *)"GIT_AUTHOR_EMAIL=a@a",
		       (char *)"GIT_COMMITTER_NAME=a",
		       (char *)"GIT_COMMITTER_EMAIL=a@a",
		       (char *)"LC_ALL=C",
		       NULL};
	posix_spawn_file_actions_t acts;
	pid_t pid = 0;
	int status = 0;

	snprintf(home, sizeof(home), "HOME=%s", place_top);
	snprintf(path, sizeof(path), "PATH=%s", getenv("PATH"));
	ck_assert_int_eq(posix_spawn_file_actions_init(&acts), 0);
	ck_assert_int_eq(posix_spawn_file_actions_addchdir_np(&acts, place_top), 0);
	ck_assert_int_eq(posix_spawn_file_actions_addopen(&acts, STDOUT_FILENO, "out",
							  O_WRONLY | O_CREAT | O_TRUNC, 0600),
			 0);
	ck_assert_int_eq(posix_spawn_file_actions_addopen(&acts, STDERR_FILENO, "/dev/null",
							  O_WRONLY, 0),
			 0);
	ck_assert_int_eq(posix_spawnp(&pid, argv[0], &acts, NULL, argv, env), 0);
	ck_assert_int_eq(posix_spawn_file_actions_destroy(&acts), 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static inline bool place_has_git(void)
{
	bool has = place_shell("git --version") == 0;

	if (!has)
		fprintf(stderr, "# no git here: not compared with it\n");
	return has;
}

/* A whole file of the place; the caller frees it. */
static inline char *place_read(const char *name, size_t *ret_n)
{
	FILE *f = fopen(at("%s", name), "r");
	size_t cap = 1 << 22;
	char *text = malloc(cap);

	ck_assert_ptr_nonnull(f);
	ck_assert_ptr_nonnull(text);
	*ret_n = fread(text, 1, cap - 1, f);
	ck_assert_uint_lt(*ret_n, cap - 1);
	text[*ret_n] = '\0';
	ck_assert_int_eq(fclose(f), 0);
	return text;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as what a stopped rebase, am or cherry-pick goes on with: if it is
 * harmless, it names no program and no place, looked at in a simpler way than
 * the judge does. The first byte chooses the file.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/gitjudge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A strategy is one word of letters. */
static void check_strategy(const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz");

	if (n > strlen("recursive") || text[n + strspn(text + n, "\r\n")])
		abort();
}

/* Wherever one of these stands, git might read it. */
static void check_options(const char *text)
{
	static const char *const bad[] = {"--d", "--u", "--b", "-R", "-3", "''", "\\"};
	const char *p = text;

	for (; *p; p += strcspn(p, " \t\r\n")) {
		p += strspn(p, " \t\r\n");
		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
			if (strncmp(p + (*p == '\''), bad[i], strlen(bad[i])) == 0)
				abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"strategy", "apply-opt", "opts"};
	struct gitjudge judge;

	if (!size)
		return 0;
	size_t which = data[0] % 3;
	size_t n = size - 1;
	char *text = calloc(1, n + 1);
	if (!text)
		return 0;
	memcpy(text, data + 1, n);
	bool harmless = gitjudge_state(names[which], text, n, &judge);
	if (strnlen(judge.why, sizeof(judge.why)) == sizeof(judge.why) || judge.worktree[0] ||
	    harmless != !judge.why[0] || (harmless && strlen(text) != n))
		abort();
	if (harmless && which == 0)
		check_strategy(text);
	if (harmless && which == 1)
		check_options(text);
	/* Longer by what git takes away is the same. */
	if (harmless && which == 0 && n && !gitjudge_state("strategy", text, n - 1, &judge) &&
	    text[n - 1] == '\n')
		abort();
	free(text);
	return 0;
}

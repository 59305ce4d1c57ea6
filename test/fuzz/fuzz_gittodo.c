/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a rebase's todo list: if it is harmless, no line of it is one
 * that git would run, looked at in a simpler way than the judge does.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/gitjudge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As git 2.39 and later see `exec` and `x`, and more. */
static bool runs(const char *line)
{
	line += strspn(line, " \t\r\v\f");
	return strncmp(line, "exec", 4) == 0 ||
	       (line[0] == 'x' && (strchr(" \t\r\n", line[1]) != NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gitjudge judge;
	bool harmless = gitjudge_todo((const char *)data, size, &judge);

	if (strnlen(judge.why, sizeof(judge.why)) == sizeof(judge.why) || harmless != !judge.why[0])
		abort();
	if (!harmless)
		return 0;
	char *text = calloc(1, size + 1);
	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	if (strlen(text) != size)
		abort();
	for (char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (runs(line))
			abort();
	}
	free(text);
	return 0;
}

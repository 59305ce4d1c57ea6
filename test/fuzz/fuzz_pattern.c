/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: patterns. The input is a pattern, a directory and a name, each
 * ended by NUL. What is accepted must match in bounded time, and a name taken
 * as it stands must match itself.
 */
#include "policy/pattern.h"

#include <stdio.h>
#include <string.h>

#include "fuzz_base.h"

static void check_itself(const char *name)
{
	static struct pattern p;
	char text[512] = "**/";
	struct err e = {0};
	size_t n = 3;

	for (const char *at = name; *at && n + 3 < sizeof(text); at++) {
		if (strchr("*?[\\", *at))
			text[n++] = '\\';
		text[n++] = *at;
	}
	text[n] = '\0';
	if (n + 3 >= sizeof(text) || !*name || strchr(name, '/') || strcmp(name, ".") == 0 ||
	    strcmp(name, "..") == 0)
		return;
	FUZZ_CHECK(pattern_init(&p, "", text, &e) == 0);
	FUZZ_CHECK(pattern_match(&p, "a/b", name, false) && pattern_match(&p, "", name, true));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct pattern p;
	struct err e = {0};
	char text[3][2048] = {""};
	const char *at = (const char *)data;

	for (size_t i = 0; i < 3 && size; i++) {
		size_t n = strnlen(at, size);
		if (n >= sizeof(text[i]))
			return 0;
		memcpy(text[i], at, n);
		n += n < size;
		at += n;
		size -= n;
	}
	check_itself(text[2]);
	FUZZ_CHECK(pattern_split(text[0]) <= strlen(text[0]));
	if (pattern_init(&p, "", text[0], &e) < 0)
		return 0;
	FUZZ_CHECK(p.parts > 0 && p.parts <= MAX_PATTERN_PARTS);
	/* What matches does so without regard to case too. */
	if (pattern_match(&p, text[1], text[2], false) && !strchr(text[0], '['))
		FUZZ_CHECK(pattern_match(&p, text[1], text[2], true));
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: durations.
 *
 * What is accepted must be the sum of its parts in 128-bit arithmetic, and must
 * survive printing and reading again.
 */
#include "base/num.h"

#include "fuzz_base.h"

/* Milliseconds of one unit; *len is how many letters it has. */
static uint64_t unit_ms(const char *p, size_t *len)
{
	*len = p[0] == 'm' && p[1] == 's' ? 2 : 1;
	if (*len == 2)
		return 1;
	switch (p[0]) {
	case 's':
		return 1000;
	case 'm':
		return 60 * 1000;
	case 'h':
		return 60 * 60 * 1000;
	case 'd':
		return 24 * 60 * 60 * 1000;
	default:
		abort(); /* accepted without a unit */
	}
}

static uint64_t evaluate(const char *s)
{
	unsigned __int128 total = 0;

	while (*s) {
		unsigned __int128 v = 0, scale = 1;
		int point = 0;
		size_t len;

		for (; (*s >= '0' && *s <= '9') || *s == '.'; s++) {
			if (*s == '.') {
				FUZZ_CHECK(!point++);
				continue;
			}
			v = v * 10 + (unsigned int)(*s - '0');
			if (point)
				scale *= 10;
		}
		v *= unit_ms(s, &len);
		FUZZ_CHECK(v % scale == 0);
		total += v / scale;
		s += len;
	}
	FUZZ_CHECK(total <= MAX_DURATION_MS);
	return (uint64_t)total;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *s = fuzz_string(data, size);
	struct err e = {0};
	char text[NUM_TEXT];
	uint64_t v = 0, again = 0;

	if (duration_parse(s, &v, &e) < 0) {
		FUZZ_CHECK(e.code == ERR_CONFIG_INVALID);
		fuzz_check_err(&e);
	} else {
		FUZZ_CHECK(e.code == ERR_NONE);
		FUZZ_CHECK(v == LIMIT_NONE ? strcmp(s, "none") == 0 : v == evaluate(s));
		FUZZ_CHECK(duration_parse(duration_format(v, text), &again, &e) == 0);
		FUZZ_CHECK(again == v);
	}
	free(s);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: sizes, plain numbers and processor shares.
 *
 * What is accepted must be what a 128-bit evaluation of the same text gives,
 * and must survive printing and reading again.
 */
#include "base/num.h"

#include "fuzz_base.h"

/* Value of "DIGITS[.DIGITS]UNIT" times 10^decimals, by reading it from left to right. */
static unsigned __int128 evaluate(const char *s, unsigned __int128 *ret_scale,
				  const char **ret_unit)
{
	unsigned __int128 v = 0, scale = 1;
	int point = 0;

	for (; (*s >= '0' && *s <= '9') || (*s == '.' && !point); s++) {
		if (*s == '.') {
			point = 1;
			continue;
		}
		v = v * 10 + (unsigned int)(*s - '0');
		if (point)
			scale *= 10;
	}
	*ret_scale = scale;
	*ret_unit = s;
	return v;
}

static unsigned int shift_of(char letter)
{
	switch (letter) {
	case 'k':
	case 'K':
		return 10;
	case 'M':
		return 20;
	case 'G':
		return 30;
	case 'T':
		return 40;
	default:
		return 0;
	}
}

static void check_size(const char *s)
{
	struct err e = {0};
	char text[NUM_TEXT];
	uint64_t v = 0, again = 0;

	if (size_parse(s, &v, &e) < 0) {
		FUZZ_CHECK(e.code == ERR_CONFIG_INVALID);
		fuzz_check_err(&e);
		return;
	}
	FUZZ_CHECK(e.code == ERR_NONE);
	FUZZ_CHECK(size_parse(size_format(v, text), &again, &e) == 0 && again == v);
	if (v == LIMIT_NONE) {
		FUZZ_CHECK(strcmp(s, "none") == 0);
		return;
	}
	FUZZ_CHECK(v <= MAX_SIZE_BYTES);
	unsigned __int128 scale;
	const char *unit;
	unsigned __int128 want = evaluate(s, &scale, &unit) << shift_of(*unit);
	FUZZ_CHECK(want % scale == 0 && want / scale == v);
}

static void check_num(const char *s)
{
	struct err e = {0};
	uint64_t v = 0;
	unsigned __int128 scale;
	const char *unit;

	if (num_parse(s, 10, UINT64_MAX - 10, &v, &e) < 0) {
		FUZZ_CHECK(e.code == ERR_CONFIG_INVALID);
		fuzz_check_err(&e);
		return;
	}
	FUZZ_CHECK(v >= 10 && v <= UINT64_MAX - 10);
	FUZZ_CHECK(evaluate(s, &scale, &unit) == v && scale == 1 && *unit == '\0');
}

static void check_cpus(const char *s)
{
	struct err e = {0};
	char text[NUM_TEXT];
	uint64_t v = 0, again = 0;
	unsigned __int128 scale;
	const char *unit;

	if (cpus_parse(s, &v, &e) < 0) {
		FUZZ_CHECK(e.code == ERR_CONFIG_INVALID);
		fuzz_check_err(&e);
		return;
	}
	FUZZ_CHECK(cpus_parse(cpus_format(v, text), &again, &e) == 0 && again == v);
	if (v == LIMIT_NONE)
		return;
	FUZZ_CHECK(v > 0 && v <= MAX_CPUS_MILLI);
	unsigned __int128 want = evaluate(s, &scale, &unit) * 1000;
	FUZZ_CHECK(*unit == '\0' && want % scale == 0 && want / scale == v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *s = fuzz_string(data, size);

	check_size(s);
	check_num(s);
	check_cpus(s);
	free(s);
	return 0;
}

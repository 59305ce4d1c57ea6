/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the clocks, deadlines, and UTC as text.
 */
#include "base/clock.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <time.h>

#include "base/num.h"

static int64_t now_ms(clockid_t id)
{
	struct timespec ts;
	int rc = clock_gettime(id, &ts);

	assert(rc == 0); /* both clocks exist on every Linux */
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

uint64_t clock_mono_ms(void)
{
	return (uint64_t)now_ms(CLOCK_MONOTONIC);
}

int64_t clock_wall_ms(void)
{
	return now_ms(CLOCK_REALTIME);
}

uint64_t clock_deadline(uint64_t now, uint64_t duration_ms)
{
	uint64_t at;

	/* LIMIT_NONE is the largest value: it overflows, or stays as it is. */
	if (__builtin_add_overflow(now, duration_ms, &at))
		return LIMIT_NONE;
	return at;
}

int clock_poll_timeout(uint64_t now, uint64_t deadline_ms)
{
	if (deadline_ms == LIMIT_NONE)
		return -1;
	if (deadline_ms <= now)
		return 0;
	return deadline_ms - now > INT_MAX ? INT_MAX : (int)(deadline_ms - now);
}

/* Days since 1970-01-01 to year, month, day of the Gregorian calendar; eras of 400 years. */
static void civil(int64_t days, int *ret_year, int *ret_month, int *ret_day)
{
	int64_t shifted = days + 719468; /* since 0000-03-01, so that leap days end a year */
	int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
	int64_t doe = shifted - era * 146097;
	int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	int64_t mp = (5 * doy + 2) / 153;

	*ret_day = (int)(doy - (153 * mp + 2) / 5 + 1);
	*ret_month = (int)(mp < 10 ? mp + 3 : mp - 9);
	*ret_year = (int)(yoe + era * 400 + (*ret_month <= 2));
}

const char *clock_rfc3339(int64_t unix_ms, char ret[CLOCK_TEXT])
{
	const int64_t first = INT64_C(-62167219200000); /* 0000-01-01T00:00:00.000Z */
	const int64_t last = INT64_C(253402300799999);  /* 9999-12-31T23:59:59.999Z */
	const int64_t day_ms = INT64_C(86400000);
	int year, month, day;

	if (unix_ms < first)
		unix_ms = first;
	if (unix_ms > last)
		unix_ms = last;
	int64_t days = unix_ms / day_ms - (unix_ms % day_ms < 0);
	int in_day = (int)(unix_ms - days * day_ms);

	civil(days, &year, &month, &day);
	int n = snprintf(ret, CLOCK_TEXT, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", year, month, day,
			 in_day / 3600000, in_day / 60000 % 60, in_day / 1000 % 60, in_day % 1000);
	assert(n == CLOCK_TEXT - 1);
	return ret;
}

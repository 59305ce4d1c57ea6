/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict parsers of numbers, sizes, durations and processor shares, and their
 * inverse for messages. Nothing here rounds: what cannot be kept exactly is an
 * error.
 */
#include "base/num.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/term.h"

#define SHOWN_MAX 72 /* of a wrong value, in messages */
#define MAX_DECIMALS 6
#define KILO_SHIFT 10

static int bad(struct err *e, const char *s, const char *fmt, ...) PRINTF(3, 4);

/* CONFIG_INVALID, "VALUE: reason". */
static int bad(struct err *e, const char *s, const char *fmt, ...)
{
	char shown[SHOWN_MAX];
	char why[ERR_MSG_MAX / 2];
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	term_escape_cut(shown, sizeof(shown), s, strlen(s));
	return err_set(e, ERR_CONFIG_INVALID, "%s: %s", s[0] ? shown : "\"\"", n < 0 ? fmt : why);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* A decimal number as written: whole + part / scale. */
struct decimal {
	uint64_t whole;
	uint64_t part, scale; /* scale is a power of ten, 1 without decimals */
};

enum scan { SCAN_OK, SCAN_NO_DIGIT, SCAN_LEADING_ZERO, SCAN_OVERFLOW, SCAN_DECIMALS };

static const char *scan_reason(enum scan why)
{
	switch (why) {
	case SCAN_OK:
		break;
	case SCAN_NO_DIGIT:
		return "must begin with a decimal digit";
	case SCAN_LEADING_ZERO:
		return "a leading zero is not allowed";
	case SCAN_OVERFLOW:
		return "too large";
	case SCAN_DECIMALS:
		return "too many decimals, or none behind the point";
	}
	return "not a number";
}

enum zeros { ZEROS_REFUSED, ZEROS_ALLOWED };

/* Digits at *s; moves *s behind them. */
static enum scan scan_whole(const char **s, enum zeros zeros, uint64_t *ret)
{
	const char *p = *s;
	uint64_t v = 0;

	if (!is_digit(*p))
		return SCAN_NO_DIGIT;
	if (zeros == ZEROS_REFUSED && p[0] == '0' && is_digit(p[1]))
		return SCAN_LEADING_ZERO;
	for (; is_digit(*p); p++) {
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return SCAN_OVERFLOW;
	}
	*s = p;
	*ret = v;
	return SCAN_OK;
}

/* Digits, and perhaps a point and up to max_decimals more. */
static enum scan scan_decimal(const char **s, enum zeros zeros, unsigned int max_decimals,
			      struct decimal *ret)
{
	struct decimal d = {.scale = 1};
	const char *p = *s;
	enum scan rc = scan_whole(&p, zeros, &d.whole);

	if (rc != SCAN_OK)
		return rc;
	if (*p == '.') {
		unsigned int decimals = 0;

		for (p++; is_digit(*p); p++) {
			if (++decimals > max_decimals)
				return SCAN_DECIMALS;
			d.part = d.part * 10 + (uint64_t)(*p - '0');
			d.scale *= 10;
		}
		if (decimals == 0)
			return SCAN_DECIMALS;
	}
	*s = p;
	*ret = d;
	return SCAN_OK;
}

enum times { TIMES_OK, TIMES_OVERFLOW, TIMES_INEXACT };

/* d * unit. unit * 10^MAX_DECIMALS must fit, which all units here do. */
static enum times decimal_times(const struct decimal *d, uint64_t unit, uint64_t *ret)
{
	uint64_t v;

	if (d->part * unit % d->scale != 0)
		return TIMES_INEXACT;
	if (__builtin_mul_overflow(d->whole, unit, &v) ||
	    __builtin_add_overflow(v, d->part * unit / d->scale, &v))
		return TIMES_OVERFLOW;
	*ret = v;
	return TIMES_OK;
}

int num_parse(const char *s, uint64_t min, uint64_t max, uint64_t *ret, struct err *e)
{
	const char *p = s;
	uint64_t v;
	enum scan rc = scan_whole(&p, ZEROS_REFUSED, &v);

	if (rc == SCAN_OVERFLOW || (rc == SCAN_OK && *p == '\0' && (v < min || v > max)))
		return bad(e, s, "must be a number from %" PRIu64 " to %" PRIu64, min, max);
	if (rc != SCAN_OK)
		return bad(e, s, "%s", scan_reason(rc));
	if (*p != '\0')
		return bad(e, s, "must be decimal digits only");
	*ret = v;
	return 0;
}

static const char size_letters[] = "KMGT"; /* 1024 to the power of 1 and so on */

/* Power of 1024 that this spelling means, -1 if it is none of ours. */
static int size_power(const char *unit)
{
	if (unit[0] == '\0' || strcmp(unit, "B") == 0)
		return 0;
	if (strcmp(unit, "k") == 0)
		return 1;
	const char *letter = strchr(size_letters, unit[0]);
	if (!letter || (unit[1] != '\0' && strcmp(unit + 1, "iB") != 0))
		return -1;
	return (int)(letter - size_letters) + 1;
}

static uint64_t power(uint64_t base, int n)
{
	uint64_t v = 1;

	while (n-- > 0)
		v *= base;
	return v;
}

/* Says what a size with an unknown unit could have been. */
static int bad_size_unit(const char *s, const char *unit, const struct decimal *d, struct err *e)
{
	char upper = lower(unit[0]) >= 'a' ? (char)(lower(unit[0]) - 'a' + 'A') : '\0';
	const char *letter = upper ? strchr(size_letters, upper) : NULL;
	const char *rest = unit + 1;
	int number = (int)(unit - s);

	if (letter && lower(rest[0]) == 'b' && rest[1] == '\0') {
		int n = (int)(letter - size_letters) + 1;
		uint64_t dec, bin;

		if (decimal_times(d, power(1000, n), &dec) != TIMES_OK ||
		    decimal_times(d, power(1024, n), &bin) != TIMES_OK)
			return bad(e, s, "1000 or 1024 to a %c? Write %.*s%ciB for 1024", upper,
				   number, s, upper);
		return bad(e, s, "%" PRIu64 " or %" PRIu64 " bytes? Write %" PRIu64 " or %.*s%ciB",
			   dec, bin, dec, number, s, upper);
	}
	if (letter &&
	    (rest[0] == '\0' || (lower(rest[0]) == 'i' &&
				 (rest[1] == '\0' || (lower(rest[1]) == 'b' && rest[2] == '\0')))))
		return bad(e, s, "unknown unit, %.*s%ciB?", number, s, upper);
	return bad(e, s, "unknown unit; units are k K KiB M MiB G GiB T TiB, all powers of 1024");
}

int size_parse(const char *s, uint64_t *ret_bytes, struct err *e)
{
	const char *p = s;
	struct decimal d;
	uint64_t v = 0;

	if (strcmp(s, "none") == 0) {
		*ret_bytes = LIMIT_NONE;
		return 0;
	}
	enum scan rc = scan_decimal(&p, ZEROS_REFUSED, MAX_DECIMALS, &d);
	if (rc != SCAN_OK)
		return bad(e, s, "%s; sizes are written like 512MiB or 2G", scan_reason(rc));
	int n = size_power(p);
	if (n < 0)
		return bad_size_unit(s, p, &d, e);
	enum times times = decimal_times(&d, UINT64_C(1) << (KILO_SHIFT * n), &v);
	if (times == TIMES_INEXACT)
		return bad(e, s, "not a whole number of bytes; use a smaller unit");
	if (times == TIMES_OVERFLOW || v > MAX_SIZE_BYTES)
		return bad(e, s, "too large, must be less than 8388608TiB");
	*ret_bytes = v;
	return 0;
}

/* From large to small. */
static const struct {
	const char *name;
	uint64_t ms;
} time_units[] = {
	{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1},
};

#define UNIT_SECOND 3
#define UNIT_MS 4

/* The unit that begins at p and has n letters; ARRAY_LEN(time_units) if there is none. */
static size_t find_time_unit(const char *p, size_t n)
{
	size_t i = 0;

	while (i < ARRAY_LEN(time_units) &&
	       (strlen(time_units[i].name) != n || strncmp(time_units[i].name, p, n) != 0))
		i++;
	return i;
}

/* What `min`, `SEC`, `hours` were meant for; ARRAY_LEN(time_units) if nobody knows. */
static size_t guess_time_unit(const char *p, size_t n)
{
	if (n > 1 && lower(p[0]) == 'm' && lower(p[1]) == 's')
		return UNIT_MS;
	if (n > 1 && lower(p[0]) == 'm' && lower(p[1]) != 'i')
		return ARRAY_LEN(time_units); /* a month? */
	return find_time_unit((char[]){lower(p[0])}, 1);
}

/* The n letters at p are no unit; next is the one that would follow without letters. */
static int bad_time_unit(const char *s, const char *p, size_t n, size_t next, struct err *e)
{
	if (n == 0 && *p != '\0')
		return bad(e, s, "durations are written like 250ms, 30s or 1h30m");
	size_t guess = n == 0 ? next : guess_time_unit(p, n);
	if (guess >= ARRAY_LEN(time_units) || p[n] != '\0')
		return bad(e, s, "unknown unit; units are ms s m h d");
	return bad(e, s, "%s, %.*s%s?", n == 0 ? "a duration needs a unit" : "unknown unit",
		   p - s < SHOWN_MAX ? (int)(p - s) : SHOWN_MAX, s, time_units[guess].name);
}

int duration_parse(const char *s, uint64_t *ret_ms, struct err *e)
{
	const char *p = s;
	uint64_t total = 0;
	size_t next = 0; /* first unit that may still come */

	if (strcmp(s, "none") == 0) {
		*ret_ms = LIMIT_NONE;
		return 0;
	}
	do {
		struct decimal d;
		uint64_t part = 0;
		enum zeros zeros = p == s ? ZEROS_REFUSED : ZEROS_ALLOWED;
		enum scan rc = scan_decimal(&p, zeros, MAX_DECIMALS, &d);

		if (rc != SCAN_OK)
			return bad(e, s, "%s; durations are written like 250ms, 30s or 1h30m",
				   scan_reason(rc));
		size_t n = 0;
		while (is_letter(p[n]))
			n++;
		size_t unit = find_time_unit(p, n);
		if (unit == ARRAY_LEN(time_units))
			return bad_time_unit(s, p, n, next == 0 ? UNIT_SECOND : next, e);
		if (unit < next)
			return bad(e, s, "units go from large to small, each once");
		if (d.scale > 1 && (next > 0 || p[n] != '\0'))
			return bad(e, s, "decimals need a single unit");
		enum times times = decimal_times(&d, time_units[unit].ms, &part);
		if (times == TIMES_INEXACT)
			return bad(e, s, "not a whole number of milliseconds");
		if (times == TIMES_OVERFLOW || __builtin_add_overflow(total, part, &total) ||
		    total > MAX_DURATION_MS)
			return bad(e, s, "too long, must be at most 36500d");
		next = unit + 1;
		p += n;
	} while (*p != '\0');
	*ret_ms = total;
	return 0;
}

int cpus_parse(const char *s, uint64_t *ret_milli, struct err *e)
{
	const char *p = s;
	struct decimal d;
	uint64_t v = 0;

	if (strcmp(s, "none") == 0) {
		*ret_milli = LIMIT_NONE;
		return 0;
	}
	enum scan rc = scan_decimal(&p, ZEROS_REFUSED, 3, &d);
	if (rc != SCAN_OK)
		return bad(e, s, "%s; processors are written like 2 or 1.5", scan_reason(rc));
	if (*p != '\0')
		return bad(e, s, "processors are written like 2 or 1.5, without a unit");
	if (decimal_times(&d, 1000, &v) != TIMES_OK || v > MAX_CPUS_MILLI)
		return bad(e, s, "too many processors, must be at most 1000000");
	if (v == 0)
		return bad(e, s, "must be more than 0");
	*ret_milli = v;
	return 0;
}

const char *size_format(uint64_t bytes, char ret[NUM_TEXT])
{
	int n = 0;

	if (bytes == LIMIT_NONE) {
		(void)snprintf(ret, NUM_TEXT, "none");
		return ret;
	}
	while (bytes != 0 && n < (int)strlen(size_letters) && bytes % 1024 == 0) {
		bytes /= 1024;
		n++;
	}
	if (n == 0)
		(void)snprintf(ret, NUM_TEXT, "%" PRIu64 "B", bytes);
	else
		(void)snprintf(ret, NUM_TEXT, "%" PRIu64 "%ciB", bytes, size_letters[n - 1]);
	return ret;
}

const char *duration_format(uint64_t ms, char ret[NUM_TEXT])
{
	size_t at = 0;

	if (ms == LIMIT_NONE || ms == 0) {
		(void)snprintf(ret, NUM_TEXT, "%s", ms ? "none" : "0s");
		return ret;
	}
	for (size_t i = 0; i < ARRAY_LEN(time_units); i++) {
		uint64_t v = ms / time_units[i].ms;

		ms %= time_units[i].ms;
		if (v > 0)
			at += (size_t)snprintf(ret + at, NUM_TEXT - at, "%" PRIu64 "%s", v,
					       time_units[i].name);
	}
	return ret;
}

const char *cpus_format(uint64_t milli, char ret[NUM_TEXT])
{
	if (milli == LIMIT_NONE) {
		(void)snprintf(ret, NUM_TEXT, "none");
		return ret;
	}
	int n = snprintf(ret, NUM_TEXT, "%" PRIu64, milli / 1000);
	unsigned int part = (unsigned int)(milli % 1000);

	if (part == 0)
		return ret;
	int digits = 3;
	for (; part % 10 == 0; part /= 10)
		digits--;
	(void)snprintf(ret + n, NUM_TEXT - (size_t)n, ".%0*u", digits, part);
	return ret;
}

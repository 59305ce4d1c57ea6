/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests of base/num.
 */
#include "base/num.h"

#include <inttypes.h>

#include "base/base.h"
#include "test_base_suite.h"

#define UNTOUCHED UINT64_C(0x5a5a5a5a)

struct good {
	const char *text;
	uint64_t value;
};

struct wrong {
	const char *text;
	const char *says;
};

typedef int parser(const char *s, uint64_t *ret, struct err *e);

static void check_good(parser *parse, const struct good *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t v = UNTOUCHED;
		struct err e = {0};
		int rc = parse(rows[i].text, &v, &e);

		ck_assert_msg(rc == 0, "%s", e.msg);
		ck_assert_msg(v == rows[i].value, "%s is %" PRIu64, rows[i].text, v);
	}
}

static void check_wrong(parser *parse, const struct wrong *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t v = UNTOUCHED;
		struct err e = {0};
		int rc = parse(rows[i].text, &v, &e);

		ck_assert_msg(rc == -1, "%s gave %" PRIu64, rows[i].text, v);
		ck_assert_int_eq(e.code, ERR_CONFIG_INVALID);
		ck_assert_msg(strstr(e.msg, rows[i].says) != NULL, "\"%s\" is not in \"%s\"",
			      rows[i].says, e.msg);
		ck_assert_uint_eq(v, UNTOUCHED);
	}
}

START_TEST(num_in_range)
{
	uint64_t v;
	struct err e;

	CK_WORKS(num_parse("0", 0, 9, &v, &e), e);
	ck_assert_uint_eq(v, 0);
	CK_WORKS(num_parse("5", 5, 7, &v, &e), e);
	ck_assert_uint_eq(v, 5);
	CK_WORKS(num_parse("7", 5, 7, &v, &e), e);
	ck_assert_uint_eq(v, 7);
	CK_WORKS(num_parse("18446744073709551615", 0, UINT64_MAX, &v, &e), e);
	ck_assert(v == UINT64_MAX);
}
END_TEST

START_TEST(num_out_of_range)
{
	static const char *const texts[] = {"4", "8", "18446744073709551616",
					    "99999999999999999999999999999999"};
	uint64_t v = UNTOUCHED;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		CK_FAILS(num_parse(texts[i], 5, 7, &v, &e), e, ERR_CONFIG_INVALID,
			 "must be a number from 5 to 7");
	CK_FAILS(num_parse("18446744073709551616", 0, UINT64_MAX, &v, &e), e, ERR_CONFIG_INVALID,
		 "18446744073709551616: must be a number");
	ck_assert_uint_eq(v, UNTOUCHED);
}
END_TEST

static int num_any(const char *s, uint64_t *ret, struct err *e)
{
	return num_parse(s, 0, UINT64_MAX, ret, e);
}

START_TEST(num_is_strict)
{
	static const struct wrong rows[] = {
		{"", "\"\": must begin with a decimal digit"},
		{"-1", "must begin with a decimal digit"},
		{"+1", "must begin with a decimal digit"},
		{" 1", "must begin with a decimal digit"},
		{"1 ", "must be decimal digits only"},
		{"1\n", "1\\x0a: must be decimal digits only"},
		{"0x10", "must be decimal digits only"},
		{"010", "leading zero"},
		{"00", "leading zero"},
		{"1e3", "must be decimal digits only"},
		{"1.0", "must be decimal digits only"},
		{"1,000", "must be decimal digits only"},
		{"none", "must begin with a decimal digit"},
		{"\xd9\xa1", "must begin with a decimal digit"},
		{"18446744073709551616x", "must be a number from 0"},
	};

	check_wrong(num_any, rows, ARRAY_LEN(rows));
}
END_TEST

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define GIB (MIB * KIB)
#define TIB (GIB * KIB)

START_TEST(sizes)
{
	static const struct good rows[] = {
		{"0", 0},
		{"1", 1},
		{"1000", 1000},
		{"7B", 7},
		{"1k", KIB},
		{"1K", KIB},
		{"1KiB", KIB},
		{"3M", 3 * MIB},
		{"3MiB", 3 * MIB},
		{"2G", 2 * GIB},
		{"2GiB", 2 * GIB},
		{"1T", TIB},
		{"1TiB", TIB},
		{"0GiB", 0},
		{"1.5GiB", GIB + GIB / 2},
		{"1.5k", 1536},
		{"0.5K", 512},
		{"0.25M", 256 * KIB},
		{"1.0", 1},
		{"2.000000G", 2 * GIB},
		{"0.015625k", 16},
		{"none", LIMIT_NONE},
		{"9223372036854775807", INT64_MAX},
		{"8388607TiB", 8388607 * TIB},
	};

	check_good(size_parse, rows, ARRAY_LEN(rows));
}
END_TEST

START_TEST(sizes_refused)
{
	static const struct wrong rows[] = {
		{"", "\"\": must begin with a decimal digit"},
		{"-1", "must begin with a decimal digit"},
		{" 1", "must begin with a decimal digit"},
		{"M", "must begin with a decimal digit"},
		{".5G", "must begin with a decimal digit"},
		{"1.G", "decimals"},
		{"1.", "decimals"},
		{"1.1234567G", "too many decimals"},
		{"010", "leading zero"},
		{"01M", "leading zero"},
		{"1 M", "unknown unit"},
		{"1M ", "unknown unit"},
		{"1MM", "unknown unit"},
		{"1P", "unknown unit"},
		{"1PiB", "unknown unit"},
		{"1x", "units are k K KiB M MiB G GiB T TiB"},
		{"1.5.5G", "unknown unit"},
		{"0x10", "unknown unit"},
		{"1e3", "unknown unit"},
		{"1BB", "unknown unit"},
		{"1b", "unknown unit"},
		{"512m", "unknown unit, 512MiB?"},
		{"512g", "unknown unit, 512GiB?"},
		{"1Mi", "unknown unit, 1MiB?"},
		{"1mib", "unknown unit, 1MiB?"},
		{"1kiB", "unknown unit, 1KiB?"},
		{"1MIB", "unknown unit, 1MiB?"},
		{"1.5", "not a whole number of bytes"},
		{"0.1GiB", "not a whole number of bytes"},
		{"8388607.999999T", "not a whole number of bytes"},
		{"9223372036854775808", "too large"},
		{"18446744073709551615", "too large"},
		{"18446744073709551616", "too large"},
		{"99999999999999999999999999", "too large"},
		{"8388608TiB", "too large"},
		{"16777216TiB", "too large"}, /* 2^64 */
		{"16777217TiB", "too large"}, /* wraps around to 1TiB */
		{"None", "must begin with a decimal digit"},
		{"\x1b[31m", "\\x1b[31m: must begin"},
	};

	check_wrong(size_parse, rows, ARRAY_LEN(rows));
}
END_TEST

START_TEST(sizes_with_two_readings)
{
	static const struct wrong rows[] = {
		{"10kB", "10000 or 10240 bytes? Write 10000 or 10KiB"},
		{"10KB", "10000 or 10240 bytes? Write 10000 or 10KiB"},
		{"10MB", "10000000 or 10485760 bytes? Write 10000000 or 10MiB"},
		{"10mb", "10000000 or 10485760 bytes? Write 10000000 or 10MiB"},
		{"2GB", "2000000000 or 2147483648 bytes? Write 2000000000 or 2GiB"},
		{"1.5GB", "1500000000 or 1610612736 bytes? Write 1500000000 or 1.5GiB"},
		{"1TB", "1000000000000 or 1099511627776 bytes?"},
		{"0.1GB", "1000 or 1024 to a G? Write 0.1GiB for 1024"},
		{"18446744073709551615MB", "1000 or 1024 to a M?"},
	};

	check_wrong(size_parse, rows, ARRAY_LEN(rows));
}
END_TEST

START_TEST(durations)
{
	static const struct good rows[] = {
		{"0s", 0},
		{"250ms", 250},
		{"30s", 30000},
		{"5m", 300000},
		{"1h", 3600000},
		{"1h30m", 5400000},
		{"1d", 86400000},
		{"1d2h3m4s5ms", 93784005},
		{"1h5s", 3605000},
		{"1h05m", 3900000},
		{"90m", 5400000},
		{"1m90s", 150000},
		{"1.5s", 1500},
		{"0.5h", 1800000},
		{"1.001s", 1001},
		{"2.0d", 172800000},
		{"none", LIMIT_NONE},
		{"36500d", MAX_DURATION_MS},
		{"3153600000000ms", MAX_DURATION_MS},
	};

	check_good(duration_parse, rows, ARRAY_LEN(rows));
}
END_TEST

START_TEST(durations_refused)
{
	static const struct wrong rows[] = {
		{"90", "90: a duration needs a unit, 90s?"},
		{"0", "0: a duration needs a unit, 0s?"},
		{"1.5", "a duration needs a unit, 1.5s?"},
		{"1h30", "a duration needs a unit, 1h30m?"},
		{"1m30", "a duration needs a unit, 1m30s?"},
		{"1s5", "a duration needs a unit, 1s5ms?"},
		{"1ms5", "unknown unit"},
		{"", "\"\": must begin with a decimal digit"},
		{"s", "must begin with a decimal digit"},
		{"-5s", "must begin with a decimal digit"},
		{"+5s", "must begin with a decimal digit"},
		{"5 s", "durations are written like"},
		{"5s ", "must begin with a decimal digit"},
		{"5s,", "must begin with a decimal digit"},
		{"05s", "leading zero"},
		{"30S", "unknown unit, 30s?"},
		{"5min", "unknown unit, 5m?"},
		{"5M", "unknown unit, 5m?"},
		{"30sec", "unknown unit, 30s?"},
		{"2hours", "unknown unit, 2h?"},
		{"3days", "unknown unit, 3d?"},
		{"5msec", "unknown unit, 5ms?"},
		{"5MS", "unknown unit, 5ms?"},
		{"1h30min", "unknown unit, 1h30m?"},
		{"1month", "unknown unit; units are ms s m h d"},
		{"10us", "unknown unit; units are ms s m h d"},
		{"1w", "unknown unit; units are ms s m h d"},
		{"1y", "unknown unit; units are ms s m h d"},
		{"1min30s", "unknown unit; units are ms s m h d"},
		{"1m1h", "units go from large to small, each once"},
		{"1m1m", "units go from large to small, each once"},
		{"1ms1s", "units go from large to small, each once"},
		{"1.5h30m", "decimals need a single unit"},
		{"1h1.5m", "decimals need a single unit"},
		{"0.5ms", "not a whole number of milliseconds"},
		{"1.0001s", "not a whole number of milliseconds"},
		{"1.1234567s", "too many decimals"},
		{"1.s", "decimals"},
		{"36500d1ms", "too long"},
		{"3153600000001ms", "too long"},
		{"36501d", "too long"},
		{"18446744073709551615d", "too long"},
		{"18446744073709551616s", "too large"},
		{"213503982335d", "too long"}, /* wraps around to less than a day */
		{"None", "must begin with a decimal digit"},
		{"infinity", "must begin with a decimal digit"},
	};

	check_wrong(duration_parse, rows, ARRAY_LEN(rows));
}
END_TEST

START_TEST(cpus)
{
	static const struct good rows[] = {
		{"1", 1000},     {"2", 2000},          {"1.5", 1500},
		{"0.25", 250},   {"0.001", 1},         {"64", 64000},
		{"1.000", 1000}, {"none", LIMIT_NONE}, {"1000000", MAX_CPUS_MILLI},
	};

	check_good(cpus_parse, rows, ARRAY_LEN(rows));
}
END_TEST

START_TEST(cpus_refused)
{
	static const struct wrong rows[] = {
		{"", "must begin with a decimal digit"},
		{"0", "must be more than 0"},
		{"0.000", "must be more than 0"},
		{"-1", "must begin with a decimal digit"},
		{".5", "must begin with a decimal digit"},
		{"1.", "decimals"},
		{"1.0005", "too many decimals"},
		{"01", "leading zero"},
		{"1500m", "without a unit"},
		{"1.5 ", "without a unit"},
		{"150%", "without a unit"},
		{"1000001", "too many processors"},
		{"1000000.001", "too many processors"},
		{"18446744073709551615", "too many processors"},
		{"18446744073709552", "too many processors"}, /* wraps around in thousandths */
		{"18446744073709551616", "too large"},
	};

	check_wrong(cpus_parse, rows, ARRAY_LEN(rows));
}
END_TEST

START_TEST(formats)
{
	char t[NUM_TEXT];

	ck_assert_str_eq(size_format(0, t), "0B");
	ck_assert_str_eq(size_format(1000, t), "1000B");
	ck_assert_str_eq(size_format(1536, t), "1536B");
	ck_assert_str_eq(size_format(KIB, t), "1KiB");
	ck_assert_str_eq(size_format(GIB + GIB / 2, t), "1536MiB");
	ck_assert_str_eq(size_format(16 * GIB, t), "16GiB");
	ck_assert_str_eq(size_format(2048 * TIB, t), "2048TiB");
	ck_assert_str_eq(size_format(LIMIT_NONE, t), "none");
	ck_assert_str_eq(duration_format(0, t), "0s");
	ck_assert_str_eq(duration_format(250, t), "250ms");
	ck_assert_str_eq(duration_format(30000, t), "30s");
	ck_assert_str_eq(duration_format(90000, t), "1m30s");
	ck_assert_str_eq(duration_format(3600000, t), "1h");
	ck_assert_str_eq(duration_format(93784005, t), "1d2h3m4s5ms");
	ck_assert_str_eq(duration_format(LIMIT_NONE, t), "none");
	ck_assert_str_eq(duration_format(LIMIT_UNSET, t), "213503982334d14h25m51s614ms");
	ck_assert_str_eq(cpus_format(1000, t), "1");
	ck_assert_str_eq(cpus_format(1500, t), "1.5");
	ck_assert_str_eq(cpus_format(250, t), "0.25");
	ck_assert_str_eq(cpus_format(1001, t), "1.001");
	ck_assert_str_eq(cpus_format(1050, t), "1.05");
	ck_assert_str_eq(cpus_format(LIMIT_NONE, t), "none");
}
END_TEST

/* Up to max, spread over all magnitudes and often a multiple of a unit. */
static uint64_t draw(uint64_t max)
{
	static const uint64_t units[] = {1, 1000, 60000, 1024, 1048576, 86400000};
	uint64_t v = (uint64_t)random() << 31 ^ (uint64_t)random();

	v >>= random() % 50;
	return v * units[(size_t)random() % ARRAY_LEN(units)] % (max + 1);
}

START_TEST(formats_read_back)
{
	suite_seed();
	for (int i = 0; i < 20000; i++) {
		char t[NUM_TEXT];
		uint64_t in, out;
		struct err e;

		in = draw(MAX_SIZE_BYTES);
		CK_WORKS(size_parse(size_format(in, t), &out, &e), e);
		ck_assert_msg(in == out, "%s", t);
		in = draw(MAX_DURATION_MS);
		CK_WORKS(duration_parse(duration_format(in, t), &out, &e), e);
		ck_assert_msg(in == out, "%s", t);
		in = draw(MAX_CPUS_MILLI - 1) + 1;
		CK_WORKS(cpus_parse(cpus_format(in, t), &out, &e), e);
		ck_assert_msg(in == out, "%s", t);
	}
}
END_TEST

START_TEST(long_texts_are_cut_in_messages)
{
	char text[4000];
	struct err e;
	uint64_t v;

	memset(text, '9', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	CK_FAILS(size_parse(text, &v, &e), e, ERR_CONFIG_INVALID, "\xe2\x80\xa6: too large");
	CK_FAILS(num_parse(text, 0, 1, &v, &e), e, ERR_CONFIG_INVALID, "from 0 to 1");
	memset(text, '0', sizeof(text) - 1);
	memcpy(text, "1h", 2);
	CK_FAILS(duration_parse(text, &v, &e), e, ERR_CONFIG_INVALID, "a duration needs a unit");
	text[0] = '-';
	CK_FAILS(cpus_parse(text, &v, &e), e, ERR_CONFIG_INVALID, "must begin");
	ck_assert_uint_lt(strlen(e.msg), 200);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base_num");
	TCase *tests = tcase_create("num");

	tcase_add_test(tests, num_in_range);
	tcase_add_test(tests, num_out_of_range);
	tcase_add_test(tests, num_is_strict);
	tcase_add_test(tests, sizes);
	tcase_add_test(tests, sizes_refused);
	tcase_add_test(tests, sizes_with_two_readings);
	tcase_add_test(tests, durations);
	tcase_add_test(tests, durations_refused);
	tcase_add_test(tests, cpus);
	tcase_add_test(tests, cpus_refused);
	tcase_add_test(tests, formats);
	tcase_add_test(tests, formats_read_back);
	tcase_add_test(tests, long_texts_are_cut_in_messages);
	suite_add_tcase(suite, tests);
	return suite_run(suite);
}

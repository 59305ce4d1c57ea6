/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests of base/uuid, base/clock, base/path, base/later and base/base.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/inotify.h>
#include <time.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/later.h"
#include "base/num.h"
#include "base/path.h"
#include "base/uuid.h"
#include "test_base_suite.h"

START_TEST(uuid_form)
{
	char last[UUID_TEXT] = "";
	unsigned int seen_digits = 0;

	for (int i = 0; i < 1000; i++) {
		char id[UUID_TEXT];
		struct err e;

		CK_WORKS(uuid4(id, &e), e);
		ck_assert_uint_eq(strlen(id), 36);
		ck_assert(uuid_valid(id));
		ck_assert_int_eq(id[14], '4');
		ck_assert_ptr_nonnull(memchr("89ab", id[19], 4));
		ck_assert_str_ne(id, last);
		memcpy(last, id, sizeof(id));
		seen_digits |= 1U << (id[0] <= '9' ? id[0] - '0' : id[0] - 'a' + 10);
	}
	ck_assert_uint_eq(seen_digits, 0xffff);
}
END_TEST

START_TEST(uuid_accepts_and_refuses)
{
	static const char *const bad[] = {
		"",
		"0190b5a4-0000-7000-8000-0000000000a",
		"0190b5a4-0000-7000-8000-0000000000abc",
		"0190B5A4-0000-7000-8000-0000000000ab",
		"0190b5a4 0000-7000-8000-0000000000ab",
		"0190b5a40000-7000-8000-0000000000abcd",
		"0190b5a4-0000-7000-8000-0000000000ag",
		"0190b5a4-0000-7000-8000-0000000000-a",
		"{190b5a4-0000-7000-8000-0000000000a}",
		"0190b5a4-0000-7000-8000-0000000000a\n",
		"../../../../../../../../../../../../x",
	};

	ck_assert(uuid_valid("0190b5a4-0000-7000-8000-0000000000ab"));
	ck_assert(uuid_valid("ffffffff-ffff-4fff-bfff-ffffffffffff"));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ck_assert_msg(!uuid_valid(bad[i]), "%s", bad[i]);
}
END_TEST

START_TEST(clocks_run)
{
	struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
	uint64_t mono = clock_mono_ms();
	int64_t wall = clock_wall_ms();

	ck_assert_int_eq(nanosleep(&pause, NULL), 0);
	ck_assert_uint_ge(clock_mono_ms() - mono, 19);
	ck_assert_uint_lt(clock_mono_ms() - mono, 60000);
	ck_assert_int_ge(clock_wall_ms(), wall);
	ck_assert(llabs((long long)time(NULL) - (long long)(clock_wall_ms() / 1000)) <= 2);
}
END_TEST

START_TEST(deadlines)
{
	ck_assert(clock_deadline(10, 5) == 15);
	ck_assert(clock_deadline(10, 0) == 10);
	ck_assert(clock_deadline(10, LIMIT_NONE) == LIMIT_NONE);
	ck_assert(clock_deadline(10, LIMIT_NONE - 10) == LIMIT_NONE);
	ck_assert(clock_deadline(10, LIMIT_NONE - 9) == LIMIT_NONE);
	ck_assert(clock_deadline(10, LIMIT_NONE - 11) == LIMIT_NONE - 1);
	ck_assert_int_eq(clock_poll_timeout(10, LIMIT_NONE), -1);
	ck_assert_int_eq(clock_poll_timeout(10, 10), 0);
	ck_assert_int_eq(clock_poll_timeout(11, 10), 0);
	ck_assert_int_eq(clock_poll_timeout(10, 11), 1);
	ck_assert_int_eq(clock_poll_timeout(10, UINT64_C(10) + INT_MAX), INT_MAX);
	ck_assert_int_eq(clock_poll_timeout(10, UINT64_C(11) + INT_MAX), INT_MAX);
	ck_assert_int_eq(clock_poll_timeout(0, LIMIT_NONE - 1), INT_MAX);
}
END_TEST

START_TEST(rfc3339_known)
{
	static const struct {
		int64_t ms;
		const char *want;
	} rows[] = {
		{0, "1970-01-01T00:00:00.000Z"},
		{-1, "1969-12-31T23:59:59.999Z"},
		{951782400000, "2000-02-29T00:00:00.000Z"},
		{1709251199999, "2024-02-29T23:59:59.999Z"},
		{4107542400000, "2100-03-01T00:00:00.000Z"},
		{253402300799999, "9999-12-31T23:59:59.999Z"},
		{253402300800000, "9999-12-31T23:59:59.999Z"},
		{INT64_MAX, "9999-12-31T23:59:59.999Z"},
		{-62167219200000, "0000-01-01T00:00:00.000Z"},
		{-62167219200001, "0000-01-01T00:00:00.000Z"},
		{INT64_MIN, "0000-01-01T00:00:00.000Z"},
	};
	char t[CLOCK_TEXT];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		ck_assert_str_eq(clock_rfc3339(rows[i].ms, t), rows[i].want);
}
END_TEST

START_TEST(rfc3339_agrees_with_libc)
{
	suite_seed();
	for (int i = 0; i < 50000; i++) {
		int64_t s = ((int64_t)random() << 31 ^ random()) % INT64_C(315569519999) -
			    INT64_C(62167219200);
		int ms = (int)(random() % 1000);
		time_t t = (time_t)s;
		struct tm tm;
		char want[80], got[CLOCK_TEXT];

		ck_assert_ptr_nonnull(gmtime_r(&t, &tm));
		snprintf(want, sizeof(want), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
			 tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
			 tm.tm_sec, ms);
		ck_assert_str_eq(clock_rfc3339(s * 1000 + ms, got), want);
	}
}
END_TEST

START_TEST(paths_are_cleaned)
{
	static const struct {
		const char *in;
		const char *out;
	} rows[] = {
		{"/", "/"},
		{"//", "/"},
		{"/.", "/"},
		{"/./", "/"},
		{"/a", "/a"},
		{"/a/", "/a"},
		{"//a//b///c//", "/a/b/c"},
		{"/a/./b/.", "/a/b"},
		{"/.a/..b/c../...", "/.a/..b/c../..."},
		{"/a b/\xff\n", "/a b/\xff\n"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char got[PATH_TEXT];
		struct err e;

		CK_WORKS(path_clean(rows[i].in, got, &e), e);
		ck_assert_str_eq(got, rows[i].out);
		ck_assert(path_is_clean(got));
		ck_assert_int_eq(path_is_clean(rows[i].in), strcmp(rows[i].in, rows[i].out) == 0);
	}
}
END_TEST

START_TEST(paths_are_refused)
{
	static const struct {
		const char *in;
		const char *says;
	} rows[] = {
		{"", "\"\": not an absolute path"},    {"a/b", "a/b: not an absolute path"},
		{"./a", "not an absolute path"},       {"~/a", "not an absolute path"},
		{"/..", "must not contain .."},        {"/a/../b", "/a/../b: must not contain .."},
		{"/a/..", "must not contain .."},      {"/a/.././", "must not contain .."},
		{"\n", "\\x0a: not an absolute path"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char got[PATH_TEXT] = "untouched";
		struct err e;

		CK_FAILS(path_clean(rows[i].in, got, &e), e, ERR_CONFIG_INVALID, rows[i].says);
		ck_assert_str_eq(got, "untouched");
		ck_assert(!path_is_clean(rows[i].in));
	}
}
END_TEST

START_TEST(path_limits)
{
	char in[PATH_TEXT + 10], got[PATH_TEXT];
	struct err e;

	/* A name of 255 bytes, then of 256. */
	memset(in, 'n', sizeof(in));
	in[0] = '/';
	in[PATH_NAME_MAX + 1] = '\0';
	CK_WORKS(path_clean(in, got, &e), e);
	ck_assert_str_eq(got, in);
	in[PATH_NAME_MAX + 1] = 'n';
	in[PATH_NAME_MAX + 2] = '\0';
	CK_FAILS(path_clean(in, got, &e), e, ERR_CONFIG_INVALID, "longer than 255 bytes");

	/* A path of 4095 bytes, then of 4096. */
	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = i % 2 ? 'n' : '/';
	in[PATH_TEXT - 1] = '\0';
	ck_assert_int_eq(in[PATH_TEXT - 2], '/');
	in[PATH_TEXT - 2] = 'n';
	CK_WORKS(path_clean(in, got, &e), e);
	ck_assert_str_eq(got, in);
	in[PATH_TEXT - 1] = 'n';
	in[PATH_TEXT] = '\0';
	CK_FAILS(path_clean(in, got, &e), e, ERR_CONFIG_INVALID, "longer than 4095 bytes");
}
END_TEST

START_TEST(long_paths_that_clean_to_short_ones)
{
	char in[3 * PATH_TEXT], got[PATH_TEXT];
	struct err e;

	memset(in, '/', sizeof(in));
	memcpy(in + sizeof(in) - 3, "/a", 3);
	CK_WORKS(path_clean(in, got, &e), e);
	ck_assert_str_eq(got, "/a");
}
END_TEST

START_TEST(below_by_components)
{
	ck_assert(path_is_below("/a", "/a"));
	ck_assert(path_is_below("/a", "/a/b"));
	ck_assert(path_is_below("/a/b", "/a/b/c/d"));
	ck_assert(path_is_below("/", "/"));
	ck_assert(path_is_below("/", "/a"));
	ck_assert(!path_is_below("/a", "/"));
	ck_assert(!path_is_below("/a", "/ab"));
	ck_assert(!path_is_below("/a", "/ab/c"));
	ck_assert(!path_is_below("/a/b", "/a"));
	ck_assert(!path_is_below("/a", "/b/a"));
	ck_assert(!path_is_below("/a", "/A/b"));
}
END_TEST

START_TEST(paths_are_joined)
{
	char got[32];
	struct err e;

	CK_WORKS(path_join("/a", "b/c", got, sizeof(got), &e), e);
	ck_assert_str_eq(got, "/a/b/c");
	CK_WORKS(path_join("/", "b", got, sizeof(got), &e), e);
	ck_assert_str_eq(got, "/b");
	CK_WORKS(path_join("//a//", "b", got, sizeof(got), &e), e);
	ck_assert_str_eq(got, "//a/b");
	CK_WORKS(path_join("rel", "../b", got, sizeof(got), &e), e);
	ck_assert_str_eq(got, "rel/../b");
	CK_FAILS(path_join("/a", "", got, sizeof(got), &e), e, ERR_CONFIG_INVALID,
		 "\"\": not a relative path");
	CK_FAILS(path_join("/a", "/b", got, sizeof(got), &e), e, ERR_CONFIG_INVALID,
		 "/b: not a relative path");
	CK_FAILS(path_join("", "b", got, sizeof(got), &e), e, ERR_CONFIG_INVALID,
		 "no directory to start from");
	ck_assert_str_eq(got, "rel/../b");
}
END_TEST

START_TEST(join_in_place)
{
	char path[16] = "/a/";
	struct err e;

	CK_WORKS(path_join(path, "b", path, sizeof(path), &e), e);
	CK_WORKS(path_join(path, "c", path, sizeof(path), &e), e);
	ck_assert_str_eq(path, "/a/b/c");
}
END_TEST

START_TEST(join_limit)
{
	char got[8];
	struct err e;

	CK_WORKS(path_join("/abc", "de", got, sizeof(got), &e), e);
	ck_assert_str_eq(got, "/abc/de");
	CK_FAILS(path_join("/abc", "def", got, sizeof(got), &e), e, ERR_CONFIG_INVALID,
		 "longer than 7 bytes");
	CK_FAILS(path_join("/abcdefg", "d", got, sizeof(got), &e), e, ERR_CONFIG_INVALID, "longer");
	CK_FAILS(path_join("/abcdef", "d", got, sizeof(got), &e), e, ERR_CONFIG_INVALID, "longer");
	CK_FAILS(path_join("/", "d", got, 0, &e), e, ERR_CONFIG_INVALID, "longer");
	ck_assert_str_eq(got, "/abc/de");
}
END_TEST

START_TEST(lexical_paths)
{
	static const struct {
		const char *in, *out; /* NULL: refused */
	} rows[] = {
		{"/", "/"},
		{"//", "/"},
		{"/a", "/a"},
		{"/a/", "/a"},
		{"/a//b///c//", "/a/b/c"},
		{"/./a/././b/.", "/a/b"},
		{"/.", "/"},
		{"/a/..", "/"},
		{"/a/../", "/"},
		{"/a/b/..", "/a"},
		{"/a/b/../c", "/a/c"},
		{"/a/b/../../c", "/c"},
		{"/a//../b", "/b"},
		{"/a/./../b", "/b"},
		{"/a/b/c/../../../../../d", "/d"},
		{"/..", "/"},
		{"/../..", "/"},
		{"/../a", "/a"},
		{"//..//a", "/a"},
		/* Names of dots and more. */
		{"/.../..a/a../.a", "/.../..a/a../.a"},
		{"/a/...", "/a/..."},
		{"/a/..b/..", "/a"},
		{"/a\nb/ /\xff", "/a\nb/ /\xff"},
		{"", NULL},
		{"a", NULL},
		{"./a", NULL},
		{"../a", NULL},
		{" /a", NULL},
	};
	char got[PATH_TEXT];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool good = path_lexical(rows[i].in, got);
		ck_assert_msg(good == (rows[i].out != NULL), "\"%s\"", rows[i].in);
		if (good)
			ck_assert_str_eq(got, rows[i].out);
	}
}
END_TEST

/* 4,095 bytes, then one more; only what is left at the end has to fit. */
START_TEST(lexical_limits)
{
	char in[3 * PATH_TEXT], got[PATH_TEXT];

	for (int one = 0; one < 2; one++) { /* as one name, or as many */
		for (size_t i = 0; i < PATH_TEXT; i++)
			in[i] = i == 0 || (!one && i % 2 == 0) ? '/' : 'n';
		in[PATH_TEXT - 2] = 'n';
		in[PATH_TEXT - 1] = '\0';
		ck_assert(path_lexical(in, got));
		ck_assert_str_eq(got, in);
		in[PATH_TEXT - 1] = 'n';
		in[PATH_TEXT] = '\0';
		ck_assert(!path_lexical(in, got));
	}
	/* Long, and short in the end. */
	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = "/ab/.."[i % 6];
	memcpy(in + sizeof(in) - sizeof(in) % 6 - 6, "/x//.", 6);
	ck_assert(path_lexical(in, got));
	ck_assert_str_eq(got, "/x");
	memset(in, '/', sizeof(in));
	memcpy(in + sizeof(in) - 3, "/a", 3);
	ck_assert(path_lexical(in, got));
	ck_assert_str_eq(got, "/a");
}
END_TEST

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

START_TEST(descriptors_close_themselves)
{
	int number = -1, kept = -1;

	{
		AUTO_FD int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

		ck_assert_int_ge(fd, 0);
		number = fd;
		ck_assert(is_open(number));
		errno = 77;
	}
	ck_assert_int_eq(errno, 77);
	ck_assert(!is_open(number));
	{
		AUTO_FD int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

		kept = TAKE_FD(fd);
		ck_assert_int_eq(fd, -1);
	}
	ck_assert(is_open(kept));
	ck_assert_int_eq(close(kept), 0);
}
END_TEST

static unsigned int open_descriptors(void)
{
	unsigned int n = 0;
	DIR *d = opendir("/proc/self/fd");

	ck_assert_ptr_nonnull(d);
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n;
}

/* The descriptor is gone at once, and what it was of soon; nothing else is left open. */
START_TEST(later_closes_a_pipe)
{
	unsigned int before = open_descriptors();

	for (int i = 0; i < 20; i++) {
		int p[2];
		char c = 0;
		ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
		ck_assert_int_eq(write(p[1], "x", 1), 1);
		later_close(p[1]);
		later_let_go();
		ck_assert(!is_open(p[1]));
		ck_assert_int_eq(read(p[0], &c, 1), 1);
		/* The last writer has gone. */
		struct pollfd end = {.fd = p[0], .events = POLLIN};
		ck_assert_int_eq(poll(&end, 1, 10000), 1);
		ck_assert_int_eq(end.revents & (POLLIN | POLLHUP), POLLHUP);
		ck_assert_int_eq(read(p[0], &c, 1), 0);
		later_close(p[0]);
		later_let_go();
		ck_assert(!is_open(p[0]));
	}
	ck_assert_uint_eq(open_descriptors(), before);
}
END_TEST

/* One that is held elsewhere too lives on there. */
START_TEST(later_leaves_other_descriptors)
{
	int p[2];

	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	int other = fcntl(p[1], F_DUPFD_CLOEXEC, 0);
	later_close(p[1]);
	later_let_go();
	ck_assert(!is_open(p[1]) && is_open(other) && is_open(p[0]));
	ck_assert_int_eq(write(other, "x", 1), 1);
	ck_assert_int_eq(close(other), 0);
	ck_assert_int_eq(close(p[0]), 0);
	/* Nothing to close is no harm. */
	later_close(-1);
	later_let_go();
	later_close(other);
	later_let_go();
}
END_TEST

START_TEST(later_closes_a_watch)
{
	unsigned int before = open_descriptors();

	for (int i = 0; i < 5; i++) {
		int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
		ck_assert_int_ge(fd, 0);
		ck_assert_int_ge(inotify_add_watch(fd, "/", IN_CREATE), 0);
		ck_assert_int_ge(inotify_add_watch(fd, "/proc/self", IN_CREATE), 0);
		later_close(fd);
		later_let_go();
		ck_assert(!is_open(fd));
	}
	ck_assert_uint_eq(open_descriptors(), before);
	/* The numbers are free for others. */
	AUTO_FD int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(next, 0);
	ck_assert_uint_eq(open_descriptors(), before + 1);
}
END_TEST

START_TEST(taken_memory_is_not_freed)
{
	char *kept;

	{
		AUTO_FREE char *p = strdup("x");

		kept = TAKE(p);
		ck_assert_ptr_null(p);
	}
	ck_assert_str_eq(kept, "x");
	free(kept);
}
END_TEST

static int interruptions;

static int interrupted_three_times(void)
{
	errno = EINTR;
	return ++interruptions <= 3 ? -1 : 5;
}

static int fails_otherwise(void)
{
	interruptions++;
	errno = EIO;
	return -1;
}

START_TEST(interrupted_calls_are_repeated)
{
	ck_assert_int_eq(RETRY_EINTR(interrupted_three_times()), 5);
	ck_assert_int_eq(interruptions, 4);
	interruptions = 0;
	ck_assert_int_eq(RETRY_EINTR(fails_otherwise()), -1);
	ck_assert_int_eq(interruptions, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base_misc");
	TCase *tests = tcase_create("misc");

	tcase_add_test(tests, uuid_form);
	tcase_add_test(tests, uuid_accepts_and_refuses);
	tcase_add_test(tests, clocks_run);
	tcase_add_test(tests, deadlines);
	tcase_add_test(tests, rfc3339_known);
	tcase_add_test(tests, rfc3339_agrees_with_libc);
	tcase_add_test(tests, paths_are_cleaned);
	tcase_add_test(tests, paths_are_refused);
	tcase_add_test(tests, path_limits);
	tcase_add_test(tests, long_paths_that_clean_to_short_ones);
	tcase_add_test(tests, below_by_components);
	tcase_add_test(tests, paths_are_joined);
	tcase_add_test(tests, join_in_place);
	tcase_add_test(tests, join_limit);
	tcase_add_test(tests, lexical_paths);
	tcase_add_test(tests, lexical_limits);
	tcase_add_test(tests, descriptors_close_themselves);
	tcase_add_test(tests, later_closes_a_pipe);
	tcase_add_test(tests, later_leaves_other_descriptors);
	tcase_add_test(tests, later_closes_a_watch);
	tcase_add_test(tests, taken_memory_is_not_freed);
	tcase_add_test(tests, interrupted_calls_are_repeated);
	suite_add_tcase(suite, tests);
	return suite_run(suite);
}

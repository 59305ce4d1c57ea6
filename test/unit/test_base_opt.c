/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests of base/opt.
 */
#include "base/opt.h"

#include <signal.h>
#include <stdbool.h>

#include "base/base.h"
#include "base/num.h"
#include "test_base_suite.h"

struct target {
	bool json, quiet;
	const char *source, *script;
	int mode;
	uint64_t pids, memory, timeout, grace, cpus;
	struct strlist env;
};

static const char *const modes[] = {"read-only", "workspace-write", "full", "gone", NULL};
static const char *const modes_later[] = {NULL, NULL, NULL, "another part", NULL};

static const struct opt table[] = {
	{.name = "json",
	 .kind = OPT_FLAG,
	 .off = offsetof(struct target, json),
	 .help = "One document."},
	{.name = "quiet",
	 .short_name = 'q',
	 .kind = OPT_FLAG,
	 .off = offsetof(struct target, quiet),
	 .help = "Say less."},
	{.name = "source",
	 .kind = OPT_STRING,
	 .off = offsetof(struct target, source),
	 .arg = "DIR",
	 .help = "The project."},
	{.short_name = 'c',
	 .kind = OPT_STRING,
	 .off = offsetof(struct target, script),
	 .arg = "SCRIPT",
	 .help = "A script for the shell."},
	{.name = "mode",
	 .kind = OPT_CHOICE,
	 .off = offsetof(struct target, mode),
	 .arg = "MODE",
	 .choices = modes,
	 .choices_later = modes_later,
	 .help = "What may be written."},
	{.name = "pids",
	 .kind = OPT_NUM,
	 .off = offsetof(struct target, pids),
	 .arg = "N",
	 .min = 1,
	 .max = 100,
	 .help = "Processes and threads."},
	{.name = "memory",
	 .kind = OPT_SIZE,
	 .off = offsetof(struct target, memory),
	 .arg = "SIZE",
	 .min = 1048576,
	 .none_ok = true,
	 .help = "Memory."},
	{.name = "timeout",
	 .kind = OPT_DURATION,
	 .off = offsetof(struct target, timeout),
	 .arg = "D",
	 .min = 1,
	 .none_ok = true,
	 .help = "Wall time."},
	{.name = "grace",
	 .kind = OPT_DURATION,
	 .off = offsetof(struct target, grace),
	 .arg = "D",
	 .max = 60000,
	 .help = "Time between TERM and KILL."},
	{.name = "cpus",
	 .kind = OPT_CPUS,
	 .off = offsetof(struct target, cpus),
	 .arg = "N",
	 .max = 8000,
	 .help = "Processors."},
	{.name = "env",
	 .short_name = 'e',
	 .kind = OPT_LIST,
	 .off = offsetof(struct target, env),
	 .arg = "NAME[=VALUE]",
	 .help = "A variable."},
	{.name = "hide",
	 .kind = OPT_LIST,
	 .arg = "PATH",
	 .help = "Hidden.",
	 .later = "masks come later"},
	{.name = "keep", .kind = OPT_FLAG, .help = "Kept.", .later = "sessions come later"},
};

#define DEFAULTS                                                                                \
	{                                                                                       \
		.mode = -1, .pids = LIMIT_UNSET, .memory = LIMIT_UNSET, .timeout = LIMIT_UNSET, \
		.grace = LIMIT_UNSET, .cpus = LIMIT_UNSET                                       \
	}

#define MAX_WORDS 16

/* argv that ends where the array has its first NULL. */
static int parse(const char *const words[MAX_WORDS], struct target *t, int *first, struct err *e)
{
	char *argv[MAX_WORDS + 1] = {NULL};
	int argc = 0;

	for (; argc < MAX_WORDS && words[argc]; argc++) {
		argv[argc] = (char *)(uintptr_t)words[argc]; /* never written to */
	}
	return opt_parse(table, ARRAY_LEN(table), argc, argv, t, first, e);
}

#define PARSE(t, first, e, ...) \
	parse((const char *const[MAX_WORDS]){__VA_ARGS__}, (t), (first), (e))

START_TEST(nothing_given)
{
	struct target t = DEFAULTS;
	int first = -5;
	struct err e;

	CK_WORKS(PARSE(&t, &first, &e, NULL), e);
	ck_assert_int_eq(first, 0);
	ck_assert(!t.json && !t.source && t.env.n == 0);
	ck_assert(t.memory == LIMIT_UNSET);
}
END_TEST

START_TEST(every_kind)
{
	struct target t = DEFAULTS;
	int first;
	struct err e;

	CK_WORKS(PARSE(&t, &first, &e, "--json", "--source", "/src", "--mode", "full", "--pids=7",
		       "--memory", "2GiB", "--timeout=1h30m", "--cpus", "1.5", "-e", "A=1",
		       "--env=B", "-q", NULL),
		 e);
	ck_assert_int_eq(first, 15);
	ck_assert(t.json && t.quiet);
	ck_assert_str_eq(t.source, "/src");
	ck_assert_int_eq(t.mode, 2);
	ck_assert(t.pids == 7 && t.memory == UINT64_C(2) << 30 && t.timeout == 5400000 &&
		  t.cpus == 1500);
	ck_assert_uint_eq(t.env.n, 2);
	ck_assert_str_eq(t.env.v[0], "A=1");
	ck_assert_str_eq(t.env.v[1], "B");
	ck_assert(t.grace == LIMIT_UNSET);
	ck_assert_ptr_null(t.script);
}
END_TEST

START_TEST(first_operand_ends_the_options)
{
	struct target t = DEFAULTS;
	int first;
	struct err e;

	CK_WORKS(PARSE(&t, &first, &e, "--json", "make", "--quiet", "--unknown", NULL), e);
	ck_assert_int_eq(first, 1);
	ck_assert(t.json && !t.quiet);
	CK_WORKS(PARSE(&t, &first, &e, "-", "--quiet", NULL), e);
	ck_assert_int_eq(first, 0);
	CK_WORKS(PARSE(&t, &first, &e, "", "--quiet", NULL), e);
	ck_assert_int_eq(first, 0);
	ck_assert(!t.quiet);
}
END_TEST

START_TEST(two_dashes_end_the_options)
{
	struct target t = DEFAULTS;
	int first;
	struct err e;

	CK_WORKS(PARSE(&t, &first, &e, "--json", "--", "--quiet", NULL), e);
	ck_assert_int_eq(first, 2);
	ck_assert(!t.quiet);
	struct target u = DEFAULTS;
	CK_WORKS(PARSE(&u, &first, &e, "--", "--", "x", NULL), e);
	ck_assert_int_eq(first, 1);
	CK_WORKS(PARSE(&u, &first, &e, "--", NULL), e);
	ck_assert_int_eq(first, 1);
}
END_TEST

START_TEST(options_go_on_behind_a_short_one)
{
	struct target t = DEFAULTS;
	int first;
	struct err e;

	CK_WORKS(PARSE(&t, &first, &e, "-c", "make; ls", "--json", "arg", NULL), e);
	ck_assert_str_eq(t.script, "make; ls");
	ck_assert(t.json);
	ck_assert_int_eq(first, 3);
}
END_TEST

START_TEST(values_of_any_form)
{
	struct target t = DEFAULTS;
	int first;
	struct err e;

	CK_WORKS(PARSE(&t, &first, &e, "--source=", "-c", "-x --json", "-e", "--", "--env=--json=1",
		       "-e", "A=B=C", "-e", "-", "-e", "--unknown", NULL),
		 e);
	ck_assert_str_eq(t.source, "");
	ck_assert_str_eq(t.script, "-x --json");
	ck_assert_uint_eq(t.env.n, 5);
	ck_assert_str_eq(t.env.v[0], "--");
	ck_assert_str_eq(t.env.v[1], "--json=1");
	ck_assert_str_eq(t.env.v[2], "A=B=C");
	ck_assert_str_eq(t.env.v[3], "-");
	ck_assert_str_eq(t.env.v[4], "--unknown");
	ck_assert_int_eq(first, 12);
}
END_TEST

START_TEST(unknown_options)
{
	static const struct {
		const char *arg;
		const char *says;
		const char *hint;
	} rows[] = {
		{"--timeot", "unknown option --timeot", "did you mean --timeout?"},
		{"--Memory=1G", "unknown option --Memory", "did you mean --memory?"},
		{"--mem", "unknown option --mem", "did you mean --memory?"},
		{"--hid", "unknown option --hid", "did you mean --hide?"},
		{"-json", "unknown option -json", "did you mean --json?"},
		{"-quiet", "unknown option -quiet", "did you mean --quiet?"},
		{"-cls -l /", "unknown option -cls -l /",
		 "write -c and its value as two arguments"},
		{"-qe", "unknown option -qe", "short options are written one by one"},
		{"-x", "unknown option -x", "--help lists the options"},
		{"-j", "unknown option -j", "--help lists the options"},
		{"--xyzzy", "unknown option --xyzzy", "--help lists the options"},
		{"--=1", "unknown option --", "--help lists the options"},
		{"---json", "unknown option ---json", "did you mean --json?"},
		{"--c", "unknown option --c", "--help lists the options"},
		{"--\n", "unknown option --\\x0a", "--help lists the options"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct target t = DEFAULTS;
		int first = 99;
		struct err e;

		CK_FAILS(PARSE(&t, &first, &e, rows[i].arg, "x", NULL), e, ERR_CONFIG_INVALID,
			 rows[i].says);
		ck_assert_str_eq(e.hint, rows[i].hint);
		ck_assert_int_eq(first, 99);
	}
}
END_TEST

START_TEST(long_unknown_option)
{
	char arg[5000] = "--";
	struct target t = DEFAULTS;
	int first;
	struct err e;

	memset(arg + 2, 'x', sizeof(arg) - 3);
	CK_FAILS(PARSE(&t, &first, &e, arg, NULL), e, ERR_CONFIG_INVALID, "unknown option --xxx");
}
END_TEST

START_TEST(missing_values)
{
	struct target t = DEFAULTS;
	int first;
	struct err e;

	CK_FAILS(PARSE(&t, &first, &e, "--source", NULL), e, ERR_CONFIG_INVALID,
		 "--source needs a value: --source DIR");
	CK_FAILS(PARSE(&t, &first, &e, "-c", NULL), e, ERR_CONFIG_INVALID,
		 "-c needs a value: -c SCRIPT");
	CK_FAILS(PARSE(&t, &first, &e, "-e", NULL), e, ERR_CONFIG_INVALID,
		 "-e needs a value: -e NAME[=VALUE]");
	CK_FAILS(PARSE(&t, &first, &e, "--source", "--json", "x", NULL), e, ERR_CONFIG_INVALID,
		 "--source needs a value, but --json follows");
	ck_assert_str_eq(e.hint, "if that is the value, write --source=--json");
	CK_FAILS(PARSE(&t, &first, &e, "-c", "--memory=1G", NULL), e, ERR_CONFIG_INVALID,
		 "-c needs a value, but --memory=1G follows");
	ck_assert_str_eq(e.hint, "");
	ck_assert_ptr_null(t.source);
}
END_TEST

START_TEST(flags_take_no_value)
{
	struct target t = DEFAULTS;
	int first;
	struct err e;

	CK_FAILS(PARSE(&t, &first, &e, "--json=yes", NULL), e, ERR_CONFIG_INVALID,
		 "--json takes no value");
	CK_FAILS(PARSE(&t, &first, &e, "--json=", NULL), e, ERR_CONFIG_INVALID,
		 "--json takes no value");
	ck_assert(!t.json);
}
END_TEST

START_TEST(given_twice)
{
	struct target t = DEFAULTS, u = DEFAULTS, v = DEFAULTS;
	int first;
	struct err e;

	CK_FAILS(PARSE(&t, &first, &e, "--pids", "1", "--pids=2", NULL), e, ERR_CONFIG_INVALID,
		 "--pids given twice");
	ck_assert(t.pids == 1);
	CK_FAILS(PARSE(&u, &first, &e, "-q", "--quiet", NULL), e, ERR_CONFIG_INVALID,
		 "--quiet given twice");
	CK_FAILS(PARSE(&v, &first, &e, "-c", "a", "-c", "a", NULL), e, ERR_CONFIG_INVALID,
		 "-c given twice");
	/* Behind the first operand it is the command's own. */
	struct target w = DEFAULTS;
	CK_WORKS(PARSE(&w, &first, &e, "-c", "a", "cmd", "-c", "a", NULL), e);
}
END_TEST

START_TEST(options_of_later_versions)
{
	struct target t = DEFAULTS;
	int first;
	struct err e;

	CK_FAILS(PARSE(&t, &first, &e, "--hide", ".env", "x", NULL), e, ERR_UNSUPPORTED,
		 "--hide is not in this version: masks come later");
	CK_FAILS(PARSE(&t, &first, &e, "--hide=.env", NULL), e, ERR_UNSUPPORTED, "--hide");
	CK_FAILS(PARSE(&t, &first, &e, "--hide", NULL), e, ERR_UNSUPPORTED, "--hide");
	CK_FAILS(PARSE(&t, &first, &e, "--json", "--keep", NULL), e, ERR_UNSUPPORTED,
		 "--keep is not in this version: sessions come later");
}
END_TEST

START_TEST(choices)
{
	struct target t = DEFAULTS;
	int first;
	struct err e;

	CK_WORKS(PARSE(&t, &first, &e, "--mode", "read-only", NULL), e);
	ck_assert_int_eq(t.mode, 0);
	CK_FAILS(PARSE(&t, &first, &e, "--mode", "readonly", NULL), e, ERR_CONFIG_INVALID,
		 "--mode: readonly: must be read-only, workspace-write or full");
	ck_assert_str_eq(e.hint, "did you mean read-only?");
	CK_FAILS(PARSE(&t, &first, &e, "--mode=", NULL), e, ERR_CONFIG_INVALID,
		 "--mode: \"\": must be read-only");
	ck_assert_str_eq(e.hint, "");
	CK_FAILS(PARSE(&t, &first, &e, "--mode", "gone", NULL), e, ERR_UNSUPPORTED,
		 "--mode: `gone` is not in this version (it comes with another part)");
	CK_FAILS(PARSE(&t, &first, &e, "--mode=fullx\x1b", NULL), e, ERR_CONFIG_INVALID,
		 "fullx\\x1b");
	ck_assert_int_eq(t.mode, 0);
}
END_TEST

START_TEST(number_bounds)
{
	struct target t = DEFAULTS;
	int first;
	struct err e;

	CK_WORKS(PARSE(&t, &first, &e, "--pids", "1", "--memory", "1MiB", "--timeout", "1ms",
		       "--grace", "0s", "--cpus", "0.001", NULL),
		 e);
	ck_assert(t.pids == 1 && t.memory == 1048576 && t.timeout == 1 && t.grace == 0 &&
		  t.cpus == 1);
	CK_WORKS(PARSE(&t, &first, &e, "--pids", "100", "--grace", "1m", "--cpus", "8", NULL), e);
	ck_assert(t.pids == 100 && t.grace == 60000 && t.cpus == 8000);
	CK_FAILS(PARSE(&t, &first, &e, "--pids", "0", NULL), e, ERR_CONFIG_INVALID,
		 "--pids: 0: must be a number from 1 to 100");
	CK_FAILS(PARSE(&t, &first, &e, "--pids", "101", NULL), e, ERR_CONFIG_INVALID,
		 "--pids: 101: must be a number from 1 to 100");
	CK_FAILS(PARSE(&t, &first, &e, "--memory", "1048575", NULL), e, ERR_CONFIG_INVALID,
		 "--memory: 1048575: must be at least 1MiB");
	CK_FAILS(PARSE(&t, &first, &e, "--timeout", "0s", NULL), e, ERR_CONFIG_INVALID,
		 "--timeout: 0s: must be at least 1ms");
	CK_FAILS(PARSE(&t, &first, &e, "--grace=60001ms", NULL), e, ERR_CONFIG_INVALID,
		 "--grace: 60001ms: must be at most 1m");
	CK_FAILS(PARSE(&t, &first, &e, "--cpus", "8.001", NULL), e, ERR_CONFIG_INVALID,
		 "--cpus: 8.001: must be at most 8");
	ck_assert(t.pids == 100 && t.memory == 1048576 && t.grace == 60000 && t.cpus == 8000);
}
END_TEST

START_TEST(the_word_none)
{
	struct target t = DEFAULTS;
	int first;
	struct err e;

	CK_WORKS(PARSE(&t, &first, &e, "--memory", "none", "--timeout=none", NULL), e);
	ck_assert(t.memory == LIMIT_NONE && t.timeout == LIMIT_NONE);
	CK_FAILS(PARSE(&t, &first, &e, "--grace", "none", NULL), e, ERR_CONFIG_INVALID,
		 "--grace: none: a limit is needed here");
	CK_FAILS(PARSE(&t, &first, &e, "--cpus", "none", NULL), e, ERR_CONFIG_INVALID,
		 "a limit is needed here");
	CK_FAILS(PARSE(&t, &first, &e, "--pids", "none", NULL), e, ERR_CONFIG_INVALID,
		 "--pids: none: must begin with a decimal digit");
}
END_TEST

START_TEST(wrong_numbers_name_the_option)
{
	struct target t = DEFAULTS;
	int first;
	struct err e;

	CK_FAILS(PARSE(&t, &first, &e, "--timeout", "90", NULL), e, ERR_CONFIG_INVALID,
		 "--timeout: 90: a duration needs a unit, 90s?");
	CK_FAILS(PARSE(&t, &first, &e, "--memory=2GB", NULL), e, ERR_CONFIG_INVALID,
		 "--memory: 2GB: 2000000000 or 2147483648 bytes?");
	CK_FAILS(PARSE(&t, &first, &e, "--cpus=", NULL), e, ERR_CONFIG_INVALID,
		 "--cpus: \"\": must begin with a decimal digit");
	CK_FAILS(PARSE(&t, &first, &e, "--pids", "-1", NULL), e, ERR_CONFIG_INVALID,
		 "--pids: -1: must");
}
END_TEST

START_TEST(list_limit)
{
	char *argv[2 * (STRLIST_MAX + 1)];
	char option[] = "--env", value[] = "V=1";
	struct target t = DEFAULTS, u = DEFAULTS;
	int first;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(argv); i++)
		argv[i] = i % 2 ? value : option;
	CK_WORKS(opt_parse(table, ARRAY_LEN(table), 2 * STRLIST_MAX, argv, &t, &first, &e), e);
	ck_assert_uint_eq(t.env.n, STRLIST_MAX);
	ck_assert_ptr_eq(t.env.v[STRLIST_MAX - 1], value);
	CK_FAILS(opt_parse(table, ARRAY_LEN(table), 2 * (STRLIST_MAX + 1), argv, &u, &first, &e), e,
		 ERR_ARG_LIMIT, "--env: given more than 256 times");
}
END_TEST

START_TEST(table_limit_aborts)
{
	static struct opt big[OPT_TABLE_MAX + 1];
	char *argv[] = {NULL};
	int first;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(big); i++)
		big[i].name = "x";
	CK_WORKS(opt_parse(big, OPT_TABLE_MAX, 0, argv, NULL, &first, &e), e);
	suite_expect_abort();
	(void)!opt_parse(big, OPT_TABLE_MAX + 1, 0, argv, NULL, &first, &e);
}
END_TEST

START_TEST(help_is_aligned)
{
	AUTO_BUF b = BUF_INIT(10000);

	ck_assert_int_eq(opt_help(&b, table, ARRAY_LEN(table)), 0);
	ck_assert_str_eq(buf_cstr(&b), "      --json              One document.\n"
				       "  -q, --quiet             Say less.\n"
				       "      --source DIR        The project.\n"
				       "  -c SCRIPT               A script for the shell.\n"
				       "      --mode MODE         What may be written.\n"
				       "      --pids N            Processes and threads.\n"
				       "      --memory SIZE       Memory.\n"
				       "      --timeout D         Wall time.\n"
				       "      --grace D           Time between TERM and KILL.\n"
				       "      --cpus N            Processors.\n"
				       "  -e, --env NAME[=VALUE]  A variable.\n");
}
END_TEST

START_TEST(help_wraps)
{
	static const struct opt rows[] = {
		{.name = "short", .kind = OPT_FLAG, .help = "Brief."},
		{.name = "a-very-long-name-of-an-option", .kind = OPT_NUM, .help = "Own line."},
		{.name = "text",
		 .kind = OPT_NUM,
		 .help = "Words that go on and on until they no longer fit into the eighty columns "
			 "of a line, and then some."},
		{.name = "hidden", .kind = OPT_FLAG},
	};
	AUTO_BUF b = BUF_INIT(1000);

	ck_assert_int_eq(opt_help(&b, rows, ARRAY_LEN(rows)), 0);
	ck_assert_str_eq(
		buf_cstr(&b),
		"      --short       Brief.\n"
		"      --a-very-long-name-of-an-option VALUE\n"
		"                    Own line.\n"
		"      --text VALUE  Words that go on and on until they no longer fit into the\n"
		"                    eighty columns of a line, and then some.\n");
	for (const char *p = buf_cstr(&b); *p; p += strcspn(p, "\n") + 1)
		ck_assert_uint_le(strcspn(p, "\n"), 80);
}
END_TEST

START_TEST(help_has_a_cap)
{
	AUTO_BUF b = BUF_INIT(10);

	ck_assert_int_eq(opt_help(&b, table, ARRAY_LEN(table)), -1);
	ck_assert(b.failed);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base_opt");
	TCase *tests = tcase_create("opt");

	tcase_add_test(tests, nothing_given);
	tcase_add_test(tests, every_kind);
	tcase_add_test(tests, first_operand_ends_the_options);
	tcase_add_test(tests, two_dashes_end_the_options);
	tcase_add_test(tests, options_go_on_behind_a_short_one);
	tcase_add_test(tests, values_of_any_form);
	tcase_add_test(tests, unknown_options);
	tcase_add_test(tests, long_unknown_option);
	tcase_add_test(tests, missing_values);
	tcase_add_test(tests, flags_take_no_value);
	tcase_add_test(tests, given_twice);
	tcase_add_test(tests, options_of_later_versions);
	tcase_add_test(tests, choices);
	tcase_add_test(tests, number_bounds);
	tcase_add_test(tests, the_word_none);
	tcase_add_test(tests, wrong_numbers_name_the_option);
	tcase_add_test(tests, list_limit);
	tcase_add_test_raise_signal(tests, table_limit_aborts, SIGABRT);
	tcase_add_test(tests, help_is_aligned);
	tcase_add_test(tests, help_wraps);
	tcase_add_test(tests, help_has_a_cap);
	suite_add_tcase(suite, tests);
	return suite_run(suite);
}

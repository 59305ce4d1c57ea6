/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits: the table of defaults, what was asked for, and how each is held.
 */
#include "policy/limits.h"

#include "test_policy_place.h"

#define HOUR UINT64_C(3600000)
#define RAM (UINT64_C(8) << 30)

static const struct host_limits all_of_them = {.memory = true,
					       .pids = true,
					       .cpu = true,
					       .max_memory = UINT64_MAX,
					       .max_pids = UINT64_MAX,
					       .max_cpus_milli = UINT64_MAX};
static const struct host_limits none_of_them = {.max_memory = UINT64_MAX,
						.max_pids = UINT64_MAX,
						.max_cpus_milli = UINT64_MAX};

static struct limits decide(const struct request *req, bool terminal,
			    const struct host_limits *host)
{
	struct caller who = caller_of("/home/me", NULL);
	struct limits l;
	struct err e;

	who.terminal = terminal;
	CK_WORKS(limits_decide(req, &who, host, &l, &e), e);
	return l;
}

static void value_is(const struct limits *l, enum limit_id id, uint64_t want)
{
	ck_assert_msg(l->value[id] == want, "%s is %llu", limit_names[id],
		      (unsigned long long)l->value[id]);
}

START_TEST(defaults)
{
	struct request req = request_of_nothing();
	struct limits l = decide(&req, false, &all_of_them);

	value_is(&l, LIMIT_WALL, HOUR);
	value_is(&l, LIMIT_CPU_TIME, LIMIT_NONE);
	value_is(&l, LIMIT_CPUS, LIMIT_NONE);
	value_is(&l, LIMIT_MEMORY, RAM / 4 * 3);
	value_is(&l, LIMIT_PIDS, 8192);
	value_is(&l, LIMIT_DISK, UINT64_C(16) << 30);
	value_is(&l, LIMIT_INODES, 2000000);
	value_is(&l, LIMIT_OUTPUT, LIMIT_NONE);
	ck_assert_uint_eq(l.grace_ms, 5000);
	for (size_t i = 0; i < LIMITS; i++)
		ck_assert(!l.asked[i]);
	l = decide(&req, true, &all_of_them);
	value_is(&l, LIMIT_WALL, 12 * HOUR);
	req.json = true;
	l = decide(&req, false, &all_of_them);
	value_is(&l, LIMIT_OUTPUT, UINT64_C(1) << 20);
}
END_TEST

START_TEST(asked)
{
	struct request req = request_of_nothing();

	req.wall_ms = 30000;
	req.grace_ms = 0;
	req.cpu_ms = 1000;
	req.cpus_milli = 500;
	req.memory_bytes = 1 << 20;
	req.pids = 1;
	req.disk_bytes = 65536;
	req.inodes = 16;
	req.output_bytes = 7;
	struct limits l = decide(&req, true, &all_of_them);
	value_is(&l, LIMIT_WALL, 30000);
	value_is(&l, LIMIT_CPU_TIME, 1000);
	value_is(&l, LIMIT_CPUS, 500);
	value_is(&l, LIMIT_MEMORY, 1 << 20);
	value_is(&l, LIMIT_PIDS, 1);
	value_is(&l, LIMIT_DISK, 65536);
	value_is(&l, LIMIT_INODES, 16);
	value_is(&l, LIMIT_OUTPUT, 7);
	ck_assert_uint_eq(l.grace_ms, 0);
	for (size_t i = 0; i < LIMITS; i++)
		ck_assert_msg(l.asked[i], "%s", limit_names[i]);
}
END_TEST

/* `none` is no limit, so nobody has asked for one. */
START_TEST(none)
{
	struct request req = request_of_nothing();

	req.wall_ms = req.cpu_ms = req.cpus_milli = req.memory_bytes = LIMIT_NONE;
	req.pids = req.disk_bytes = req.inodes = req.output_bytes = LIMIT_NONE;
	struct limits l = decide(&req, false, &none_of_them);
	for (size_t i = 0; i < LIMITS; i++) {
		value_is(&l, (enum limit_id)i, LIMIT_NONE);
		ck_assert(!l.asked[i]);
	}
}
END_TEST

START_TEST(grades)
{
	static const struct {
		enum limit_id id;
		enum grade with, without, bare;
	} rows[] = {
		{LIMIT_WALL, GRADE_KERNEL, GRADE_KERNEL, GRADE_KERNEL},
		{LIMIT_OUTPUT, GRADE_KERNEL, GRADE_KERNEL, GRADE_KERNEL},
		{LIMIT_CPU_TIME, GRADE_WATCHED, GRADE_WATCHED, GRADE_NONE},
		{LIMIT_CPUS, GRADE_KERNEL, GRADE_NONE, GRADE_NONE},
		{LIMIT_MEMORY, GRADE_KERNEL, GRADE_WATCHED, GRADE_NONE},
		{LIMIT_PIDS, GRADE_KERNEL, GRADE_KERNEL, GRADE_NONE},
		{LIMIT_DISK, GRADE_KERNEL, GRADE_KERNEL, GRADE_NONE},
		{LIMIT_INODES, GRADE_KERNEL, GRADE_KERNEL, GRADE_NONE},
	};
	struct request req = request_of_nothing();
	struct limits with = decide(&req, false, &all_of_them);
	struct limits without = decide(&req, false, &none_of_them);
	req.mode = MODE_FULL_ACCESS;
	struct limits bare = decide(&req, false, &all_of_them);

	ck_assert_uint_eq(ARRAY_LEN(rows), LIMITS);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		ck_assert_msg(with.grade[rows[i].id] == rows[i].with, "%s",
			      limit_names[rows[i].id]);
		ck_assert_msg(without.grade[rows[i].id] == rows[i].without, "%s",
			      limit_names[rows[i].id]);
		ck_assert_msg(bare.grade[rows[i].id] == rows[i].bare, "%s",
			      limit_names[rows[i].id]);
	}
}
END_TEST

static void unavailable(const struct request *req, const struct host_limits *host, const char *text)
{
	struct caller who = caller_of("/home/me", NULL);
	struct limits l;
	struct err e;

	CK_FAILS(limits_decide(req, &who, host, &l, &e), e, ERR_LIMIT_UNAVAILABLE, text);
	ck_assert(e.hint[0]);
}

/* Asked for and not to be had is an error; a default that is not to be had is none. */
START_TEST(asked_but_unavailable)
{
	struct request req = request_of_nothing();

	req.cpus_milli = 1000;
	(void)decide(&req, false, &all_of_them);
	unavailable(&req, &none_of_them, "`cpus`");
	req.mode = MODE_FULL_ACCESS;
	unavailable(&req, &all_of_them, "with full access");
	req = request_of_nothing();
	req.mode = MODE_FULL_ACCESS;
	(void)decide(&req, false, &none_of_them);
	req.memory_bytes = 1 << 30;
	unavailable(&req, &all_of_them, "`memory`");
	req.memory_bytes = LIMIT_UNSET;
	req.pids = 10;
	unavailable(&req, &all_of_them, "`pids`");
	req.pids = LIMIT_UNSET;
	req.disk_bytes = 1 << 20;
	unavailable(&req, &all_of_them, "`disk`");
	req.disk_bytes = LIMIT_UNSET;
	req.inodes = 100;
	unavailable(&req, &all_of_them, "`inodes`");
	req.inodes = LIMIT_UNSET;
	req.cpu_ms = 1;
	unavailable(&req, &all_of_them, "`cpu_time`");
	req.cpu_ms = LIMIT_UNSET;
	/* Time and output hold without a boundary too. */
	req.wall_ms = 1;
	req.output_bytes = 1;
	(void)decide(&req, false, &none_of_them);
}
END_TEST

/* Never more than the caller itself is held to, whatever was asked. */
START_TEST(held_below_the_caller)
{
	struct host_limits host = all_of_them;
	struct request req = request_of_nothing();

	host.max_memory = 1 << 30;
	host.max_pids = 100;
	host.max_cpus_milli = 1500;
	struct limits l = decide(&req, false, &host);
	value_is(&l, LIMIT_MEMORY, 1 << 30);
	value_is(&l, LIMIT_PIDS, 100);
	value_is(&l, LIMIT_CPUS, 1500);
	ck_assert(!l.asked[LIMIT_CPUS]);
	req.memory_bytes = req.pids = req.cpus_milli = LIMIT_NONE;
	l = decide(&req, false, &host);
	value_is(&l, LIMIT_MEMORY, 1 << 30);
	value_is(&l, LIMIT_PIDS, 100);
	value_is(&l, LIMIT_CPUS, 1500);
	req.memory_bytes = (1 << 30) + 1;
	req.pids = 101;
	req.cpus_milli = 1501;
	l = decide(&req, false, &host);
	value_is(&l, LIMIT_MEMORY, 1 << 30);
	value_is(&l, LIMIT_PIDS, 100);
	value_is(&l, LIMIT_CPUS, 1500);
	req.memory_bytes = (1 << 30) - 1;
	req.pids = 99;
	req.cpus_milli = 1499;
	l = decide(&req, false, &host);
	value_is(&l, LIMIT_MEMORY, (1 << 30) - 1);
	value_is(&l, LIMIT_PIDS, 99);
	value_is(&l, LIMIT_CPUS, 1499);
}
END_TEST

START_TEST(bounds)
{
	static const struct {
		size_t off;
		uint64_t least;
		const char *text;
	} rows[] = {
		{offsetof(struct request, pids), 1, "--pids 0"},
		{offsetof(struct request, memory_bytes), 1 << 20, "--memory"},
		{offsetof(struct request, inodes), 16, "--inodes"},
		{offsetof(struct request, disk_bytes), 65536, "--disk"},
	};
	struct caller who = caller_of("/home/me", NULL);
	struct limits l;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct request req = request_of_nothing();
		uint64_t *v = (uint64_t *)(void *)((char *)&req + rows[i].off);
		*v = rows[i].least;
		CK_WORKS(limits_decide(&req, &who, &none_of_them, &l, &e), e);
		*v = rows[i].least - 1;
		CK_FAILS(limits_decide(&req, &who, &none_of_them, &l, &e), e, ERR_CONFIG_INVALID,
			 rows[i].text);
		*v = 0;
		CK_FAILS(limits_decide(&req, &who, &none_of_them, &l, &e), e, ERR_CONFIG_INVALID,
			 rows[i].text);
	}
}
END_TEST

START_TEST(into_the_plan)
{
	struct limits l = {.grace_ms = 10};
	struct plan_numbers n = {.flags = 0};

	for (size_t i = 0; i < LIMITS; i++)
		l.value[i] = 100 + i;
	limits_to_plan(&l, &n);
	ck_assert_uint_eq(n.wall_ms, 100 + LIMIT_WALL);
	ck_assert_uint_eq(n.cpu_ms, 100 + LIMIT_CPU_TIME);
	ck_assert_uint_eq(n.cpus_milli, 100 + LIMIT_CPUS);
	ck_assert_uint_eq(n.memory_bytes, 100 + LIMIT_MEMORY);
	ck_assert_uint_eq(n.pids, 100 + LIMIT_PIDS);
	ck_assert_uint_eq(n.disk_bytes, 100 + LIMIT_DISK);
	ck_assert_uint_eq(n.inodes, 100 + LIMIT_INODES);
	ck_assert_uint_eq(n.grace_ms, 10);
	ck_assert_uint_eq(n.drain_ms, DRAIN_MS);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("policy limits");
	TCase *c = tcase_create("all");

	tcase_add_test(c, defaults);
	tcase_add_test(c, asked);
	tcase_add_test(c, none);
	tcase_add_test(c, grades);
	tcase_add_test(c, asked_but_unavailable);
	tcase_add_test(c, held_below_the_caller);
	tcase_add_test(c, bounds);
	tcase_add_test(c, into_the_plan);
	suite_add_tcase(s, c);
	return suite_run(s);
}

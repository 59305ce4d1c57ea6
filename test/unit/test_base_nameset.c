/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of names: what was put is found with its last value, nothing else is.
 */
#include "base/nameset.h"

#include "base/base.h"
#include "test_base_suite.h"

#define MANY 20000u

START_TEST(empty)
{
	struct nameset s = {.n = 0};
	uint32_t value = 7;

	ck_assert(!nameset_get(&s, "a", &value));
	ck_assert(!nameset_get(&s, "", NULL));
	ck_assert_uint_eq(value, 7);
	nameset_release(&s);
	nameset_release(&s);
	ck_assert_ptr_null(s.v);
}
END_TEST

START_TEST(values)
{
	static const struct {
		const char *name;
		uint32_t value;
	} rows[] = {
		{"", 1},      {"a", 0},   {"A", UINT32_MAX}, {"a/", 3},       {"a/b", 4},
		{"a/b/c", 5}, {"b", 6},   {"a\n", 7},        {"\xff\xfe", 8}, {"\xff", 9},
		{" ", 10},    {"a ", 11}, {"\x01", 12},      {"aa", 13},      {"caf\xc3\xa9", 14},
	};
	struct nameset s = {.n = 0};
	uint32_t value = 77;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		ck_assert(!nameset_get(&s, rows[i].name, &value));
		ck_assert_uint_eq(value, 77);
		ck_assert(nameset_put(&s, rows[i].name, rows[i].value));
		ck_assert_uint_eq(s.n, i + 1);
	}
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		ck_assert(nameset_get(&s, rows[i].name, &value));
		ck_assert_uint_eq(value, rows[i].value);
		ck_assert(nameset_get(&s, rows[i].name, NULL));
	}
	ck_assert(!nameset_get(&s, "aaa", NULL));
	nameset_release(&s);
}
END_TEST

START_TEST(last_value_counts)
{
	struct nameset s = {.n = 0};
	uint32_t value = 0;

	for (uint32_t i = 0; i < 1000; i++)
		ck_assert(nameset_put(&s, "one", i));
	ck_assert_uint_eq(s.n, 1);
	ck_assert_uint_eq(s.cap, 64);
	ck_assert(nameset_get(&s, "one", &value));
	ck_assert_uint_eq(value, 999);
	nameset_release(&s);
}
END_TEST

/* The caller's text may change afterwards. */
START_TEST(own_copies)
{
	struct nameset s = {.n = 0};
	char name[] = "first";
	uint32_t value = 0;

	ck_assert(nameset_put(&s, name, 1));
	memcpy(name, "other", sizeof(name));
	ck_assert(!nameset_get(&s, name, NULL));
	ck_assert(nameset_get(&s, "first", &value));
	ck_assert_uint_eq(value, 1);
	nameset_release(&s);
}
END_TEST

static void name_of(uint32_t i, char ret[32])
{
	snprintf(ret, 32, "%s/%u", i % 3 ? "dir" : "other", i);
}

/* Grows, keeps all, and stays at most half full, so that a search always ends. */
START_TEST(many)
{
	struct nameset s = {.n = 0};
	char name[32];
	uint32_t value = 0;

	for (uint32_t i = 0; i < MANY; i++) {
		name_of(i, name);
		ck_assert(nameset_put(&s, name, i ^ 0x5a5a5a5au));
		ck_assert_uint_eq(s.n, i + 1);
		ck_assert_uint_le(2 * s.n, s.cap);
		ck_assert_uint_eq(s.cap & (s.cap - 1), 0);
	}
	for (uint32_t i = 0; i < MANY; i += 2) {
		name_of(i, name);
		ck_assert(nameset_put(&s, name, i));
	}
	ck_assert_uint_eq(s.n, MANY);
	for (uint32_t i = 0; i < 2 * MANY; i++) {
		name_of(i, name);
		ck_assert_msg(nameset_get(&s, name, &value) == (i < MANY), "%s", name);
		if (i < MANY)
			ck_assert_uint_eq(value, i % 2 ? i ^ 0x5a5a5a5au : i);
	}
	nameset_release(&s);
}
END_TEST

START_TEST(used_again)
{
	struct nameset s = {.n = 0};

	for (int round = 0; round < 3; round++) {
		ck_assert(!nameset_get(&s, "a", NULL));
		ck_assert(nameset_put(&s, "a", 1));
		ck_assert(nameset_get(&s, "a", NULL));
		nameset_release(&s);
		ck_assert_uint_eq(s.n, 0);
		ck_assert_uint_eq(s.cap, 0);
	}
}
END_TEST

START_TEST(long_names)
{
	struct nameset s = {.n = 0};
	const size_t n = 100000;
	char *name = malloc(n + 1);
	uint32_t value = 0;

	ck_assert_ptr_nonnull(name);
	memset(name, 'x', n);
	name[n] = '\0';
	ck_assert(nameset_put(&s, name, 5));
	name[n - 1] = 'y';
	ck_assert(!nameset_get(&s, name, NULL));
	name[n - 1] = 'x';
	ck_assert(nameset_get(&s, name, &value));
	ck_assert_uint_eq(value, 5);
	free(name);
	nameset_release(&s);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("base nameset");
	TCase *c = tcase_create("all");

	tcase_add_test(c, empty);
	tcase_add_test(c, values);
	tcase_add_test(c, last_value_counts);
	tcase_add_test(c, own_copies);
	tcase_add_test(c, many);
	tcase_add_test(c, used_again);
	tcase_add_test(c, long_names);
	suite_add_tcase(s, c);
	return suite_run(s);
}

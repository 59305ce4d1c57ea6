/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests of egress/backlog: what waits, what is counted in one, what is lost first.
 * And of egress/change.
 */
#include "egress/backlog.h"

#include <stdio.h>

#include "base/base.h"
#include "egress/set.h"
#include "test_base_suite.h"

static struct egress_event event(uint32_t kind, uint32_t how, unsigned int n)
{
	struct egress_event v = {.kind = kind, .how = how, .rule = -1, .id = n};

	(void)snprintf(v.host, sizeof(v.host), "h%u.test", n);
	return v;
}

static void put(struct egress_backlog *b, uint32_t kind, uint32_t how, unsigned int n)
{
	const struct egress_event v = event(kind, how, n);

	egress_backlog_put(b, &v);
}

static struct egress_event take(struct egress_backlog *b)
{
	struct egress_event v;

	ck_assert(egress_backlog_next(b, &v));
	egress_backlog_drop(b);
	return v;
}

START_TEST(equal_ones)
{
	struct egress_backlog b = {0};
	struct egress_event v;

	ck_assert(!egress_backlog_waits(&b) && !egress_backlog_next(&b, &v));
	for (int i = 0; i < 3; i++) {
		put(&b, EGRESS_DENY, EGRESS_BY_DNS, 1);
		put(&b, EGRESS_DENY, EGRESS_BY_DNS, 2);
		put(&b, EGRESS_ALLOW, EGRESS_BY_DNS, 1);
		put(&b, EGRESS_DONE, 0, 7);
	}
	for (unsigned int i = 0; i < 5; i++) {
		v = event(EGRESS_CLOSE, EGRESS_BY_SOCKS, i);
		v.up = 10;
		v.down = 1;
		egress_backlog_put(&b, &v);
	}
	ck_assert_uint_eq(b.count, 3 + 3 + 1);
	ck_assert_uint_eq(take(&b).times, 3);
	v = take(&b);
	ck_assert(v.times == 3 && strcmp(v.host, "h2.test") == 0);
	ck_assert_uint_eq(take(&b).kind, EGRESS_ALLOW);
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(take(&b).kind, EGRESS_DONE);
	v = take(&b);
	ck_assert(v.kind == EGRESS_CLOSE && v.up == 50 && v.down == 5);
	ck_assert(!egress_backlog_waits(&b));
	egress_backlog_release(&b);
}
END_TEST

/* MAX_EVENTS different ones, and one more. */
START_TEST(full)
{
	struct egress_backlog b = {0};
	struct egress_event v;

	for (unsigned int i = 0; i < MAX_EVENTS; i++)
		put(&b, EGRESS_DENY, EGRESS_BY_DNS, i);
	ck_assert(b.count == MAX_EVENTS && b.lost == 0);
	put(&b, EGRESS_DENY, EGRESS_BY_DNS, MAX_EVENTS);
	ck_assert(b.count == MAX_EVENTS && b.lost == 1);
	/* Connections take the place of names, what was allowed that of what was not. */
	for (unsigned int i = 0; i < MAX_EVENTS; i++)
		put(&b, EGRESS_DENY, EGRESS_BY_SOCKS, i);
	put(&b, EGRESS_DENY, EGRESS_BY_DNS, 5);
	put(&b, EGRESS_DENY, EGRESS_BY_SOCKS, MAX_EVENTS);
	ck_assert(b.count == MAX_EVENTS && b.lost == 1 + MAX_EVENTS + 2);
	put(&b, EGRESS_ALLOW, EGRESS_BY_SOCKS, 1);
	put(&b, EGRESS_CLOSE, EGRESS_BY_SOCKS, 1);
	put(&b, EGRESS_DONE, 0, 9);
	put(&b, EGRESS_DIED, 0, 0);
	for (unsigned int i = 0; i < MAX_EVENTS - 4; i++) {
		v = take(&b);
		ck_assert(v.kind == EGRESS_DENY && v.how == EGRESS_BY_SOCKS && v.id == i);
	}
	ck_assert_uint_eq(take(&b).kind, EGRESS_ALLOW);
	ck_assert_uint_eq(take(&b).kind, EGRESS_CLOSE);
	ck_assert_uint_eq(take(&b).kind, EGRESS_DONE);
	ck_assert_uint_eq(take(&b).kind, EGRESS_DIED);
	v = take(&b);
	ck_assert(v.kind == EGRESS_MORE && v.times == 1 + MAX_EVENTS + 2 + 4);
	ck_assert(!egress_backlog_waits(&b));
	egress_backlog_release(&b);
}
END_TEST

START_TEST(changed_sets)
{
	AUTO_EGRESS_SET s = {0};
	AUTO_EGRESS_SET more = {0};
	AUTO_EGRESS_SET copy = {0};
	struct err e = {0};

	CK_WORKS(egress_set_add(&s, EGRESS_LIST_ALLOW, "a.test", "file", &e), e);
	CK_WORKS(egress_set_add(&more, EGRESS_LIST_DENY, "b.test", "session net", &e), e);
	CK_WORKS(egress_set_add(&more, EGRESS_LIST_ALLOW, "c.test", "session net", &e), e);
	CK_WORKS(egress_set_join(&s, &more, &e), e);
	CK_WORKS(egress_set_copy(&s, &copy, &e), e);
	ck_assert(copy.n == 3 && copy.v[2].number == 1);
	ck_assert_str_eq(copy.v[1].origin, "session net");
	egress_set_cut(&s, 1);
	ck_assert(s.n == 1 && s.counts[EGRESS_LIST_ALLOW] == 1 && s.counts[EGRESS_LIST_DENY] == 0);
	egress_set_cut(&s, 5);
	ck_assert_uint_eq(s.n, 1);
	/* One too many, of the second. */
	for (unsigned int i = 1; i < MAX_EGRESS_RULES - 1; i++)
		CK_WORKS(egress_set_add(&s, EGRESS_LIST_DENY, "d.test", "file", &e), e);
	CK_FAILS(egress_set_join(&s, &more, &e), e, ERR_CONFIG_INVALID, "more than");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("egress_backlog");
	TCase *tests = tcase_create("backlog");

	tcase_add_test(tests, equal_ones);
	tcase_add_test(tests, full);
	tcase_add_test(tests, changed_sets);
	suite_add_tcase(suite, tests);
	return suite_run(suite);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests of egress/broad: what is said about rules that are right.
 */
#include "egress/broad.h"

#include "base/base.h"
#include "test_base_suite.h"

struct row {
	const char *rule;
	enum egress_broad broad;
	const char *what;
};

static const struct row rows[] = {
	{"example.com", EGRESS_NARROW, ""},
	{"*.example.com", EGRESS_NARROW, NULL},
	{"*.example.co.uk", EGRESS_NARROW, NULL},
	{"*:443", EGRESS_BROAD_ALL, ""},
	{"*.com", EGRESS_BROAD_TOP, "com"},
	{"**.co.uk", EGRESS_BROAD_TOP, "co.uk"},
	{"ex*.com", EGRESS_BROAD_TOP, "com"},
	{"*.github.io", EGRESS_BROAD_HOST, "github.io"},
	{"my*.github.io", EGRESS_BROAD_HOST, "github.io"},
	{"me.github.io", EGRESS_NARROW, ""},
	{"*.me.github.io", EGRESS_NARROW, NULL},
	{"*.amazonaws.com", EGRESS_BROAD_HOST, "amazonaws.com"},
	{"*.s3.eu-west-1.amazonaws.com", EGRESS_BROAD_HOST, "amazonaws.com"},
	{"*.blob.core.windows.net", EGRESS_BROAD_HOST, "windows.net"},
	{"*.windows.net", EGRESS_BROAD_HOST, "windows.net"},
	{"*.cloudfront.net", EGRESS_BROAD_HOST, "cloudfront.net"},
	{"*.vercel.app", EGRESS_BROAD_HOST, "vercel.app"},
	{"*.herokuapp.com", EGRESS_BROAD_HOST, "herokuapp.com"},
	{"*.googleapis.com", EGRESS_BROAD_HOST, "googleapis.com"},
	{"*.pages.dev", EGRESS_BROAD_HOST, "pages.dev"},
	{"*.workers.dev", EGRESS_BROAD_HOST, "workers.dev"},
	{"*.ngrok.io", EGRESS_BROAD_HOST, "ngrok.io"},
	{"*.azure.com", EGRESS_BROAD_HOST, "cloudapp.azure.com"},
	{"storage.googleapis.com", EGRESS_BROAD_PATH, "storage.googleapis.com"},
	{"**.pastebin.com", EGRESS_BROAD_PATH, "pastebin.com"},
	{"10.0.0.0/16:443", EGRESS_NARROW, ""},
	{"10.0.0.0/15:443", EGRESS_BROAD_ADDRESSES, ""},
	{"[2001:db8::]/48", EGRESS_NARROW, ""},
	{"[2001:db8::]/32", EGRESS_BROAD_ADDRESSES, ""},
	{"localhost:80", EGRESS_NARROW, ""},
};

START_TEST(broad)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct egress_rule r;
		const char *what = NULL;
		struct err e;

		CK_WORKS(egress_rule_read(EGRESS_LIST_ALLOW, rows[i].rule, &r, &e), e);
		enum egress_broad is = egress_rule_broad(&r, &what);
		ck_assert_msg(is == rows[i].broad, "%s: %u %s", rows[i].rule, is, what);
		ck_assert_ptr_nonnull(what);
		if (rows[i].what)
			ck_assert_str_eq(what, rows[i].what);
	}
}
END_TEST

START_TEST(push)
{
	static const struct {
		const char *rule, *says; /* NULL: none */
	} pushes[] = {
		{"git.example.com:22", "port 22 (ssh)"},
		{"10.0.0.0/8:22", "port 22 (ssh)"},
		{"*:22", "port 22 (ssh)"},
		{"git.example.com:9418", "port 9418 (git)"},
		{"git.example.com:*", "every port, 22 among them"},
		{"github.com", "github.com"},
		{"http://github.com", "github.com"},
		{"**.github.com", "github.com"},
		{"*.github.com", "ssh.github.com"},
		{"*:443", "github.com"},
		{"api.github.com", NULL},
		{"github.com:8443", NULL},
		{"example.com", NULL},
		{"localhost:22", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(pushes); i++) {
		struct egress_rule r;
		struct err e;

		CK_WORKS(egress_rule_read(EGRESS_LIST_ALLOW, pushes[i].rule, &r, &e), e);
		const char *how = egress_rule_push(&r);
		ck_assert_msg((how != NULL) == (pushes[i].says != NULL), "%s", pushes[i].rule);
		if (how)
			ck_assert_str_eq(how, pushes[i].says);
		r.list = EGRESS_LIST_DENY;
		ck_assert_ptr_null(egress_rule_push(&r));
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("egress_broad");
	TCase *tests = tcase_create("broad");

	tcase_add_test(tests, broad);
	tcase_add_test(tests, push);
	suite_add_tcase(suite, tests);
	return suite_run(suite);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/mirror.h"

#include "base/base.h"
#include "egress/set.h"
#include "test_base_suite.h"

START_TEST(good)
{
	static const struct {
		const char *text;
		enum egress_manager manager;
		enum egress_rule_kind kind;
		uint16_t port;
		const char *host;
	} rows[] = {
		{"npm http://127.0.0.1:4873", MANAGER_NPM, EGRESS_LOOPBACK, 4873, ""},
		{"npm http://localhost:4873/x/", MANAGER_NPM, EGRESS_LOOPBACK, 4873, ""},
		{"pip https://A.example.com/simple/", MANAGER_PIP, EGRESS_NAME, 443,
		 "a.example.com"},
		{"go http://a.example.com", MANAGER_GO, EGRESS_NAME, 80, "a.example.com"},
		{"apt http://10.1.2.3:3142/debian", MANAGER_APT, EGRESS_PREFIX, 3142, ""},
		{"maven https://[2001:db9::1]/m~2/%20+@,=", MANAGER_MAVEN, EGRESS_PREFIX, 443, ""},
		{"cargo https://notcrates.io/", MANAGER_CARGO, EGRESS_NAME, 443, "notcrates.io"},
		/* Another manager's registry may be one. */
		{"cargo https://pypi.org/", MANAGER_CARGO, EGRESS_NAME, 443, "pypi.org"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct egress_rule r;
		struct err e = {0};
		CK_WORKS(egress_rule_read(EGRESS_LIST_MIRROR, rows[i].text, &r, &e), e);
		ck_assert_uint_eq(r.list, EGRESS_LIST_MIRROR);
		ck_assert_uint_eq(r.manager, rows[i].manager);
		ck_assert_uint_eq(r.kind, rows[i].kind);
		ck_assert_uint_eq(r.port, rows[i].port);
		ck_assert_str_eq(r.host, rows[i].host);
	}
}
END_TEST

START_TEST(bad)
{
	static const struct {
		const char *text, *why, *hint;
	} rows[] = {
		{"", "no package manager", ""},
		{"npm", "no package manager", "mean `npm`"},
		{"nmp http://a.com", "no package manager `nmp`", "mean `npm`"},
		{"npm ", "no address of a mirror", "http://HOST"},
		{"npm a.com", "no address of a mirror", "http://HOST"},
		{"npm HTTP://a.com", "no address of a mirror", ""},
		{"npm ftp://a.com", "no address of a mirror", ""},
		{"npm http://", "no host", ""},
		{"npm http:///x", "no host", ""},
		{"npm http://u:p@a.com/", "no password", ""},
		{"npm http://*.a.com", "one host at one port", ""},
		{"npm http://**.a.com", "one host at one port", ""},
		{"npm http://a*.b.com", "one host at one port", ""},
		{"npm http://*", "one host at one port", ""},
		{"npm http://a.com:*", "one host at one port", ""},
		{"npm http://a.com:0", "1 to 65535", ""},
		{"npm http://a.com/?x", "letters, digits", ""},
		{"npm http://a.com/#x", "letters, digits", ""},
		{"npm http://a.com/\"", "letters, digits", ""},
		{"npm http://a.com/</url>", "letters, digits", ""},
		{"npm http://a.com/x;y", "letters, digits", ""},
		{"npm http://a.com/\\x", "letters, digits", ""},
		{"npm http://a.com/x y", "letters, digits", ""},
		{"npm http://a.com/x\n", "letters, digits", ""},
		{"npm http://a.com\"", "", ""},
		{"npm http://a.com x", "", ""},
		{"npm https://registry.npmjs.org/", "no mirror", "network.allow"},
		{"npm https://REGISTRY.npmjs.org./", "no mirror", ""},
		{"cargo https://index.crates.io", "no mirror", ""},
		{"npm http://127.0.0.1:15001", "15001", ""},
		{"npm http://0.0.0.0:80", "never reached", ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct egress_rule r = {.port = 7};
		struct err e = {0};
		CK_FAILS(egress_rule_read(EGRESS_LIST_MIRROR, rows[i].text, &r, &e), e,
			 ERR_CONFIG_INVALID, rows[i].why);
		ck_assert_msg(strstr(e.hint, rows[i].hint) != NULL, "%s: %s", rows[i].text, e.hint);
		ck_assert_uint_eq(r.port, 7);
	}
}
END_TEST

static struct egress_verdict decide(const struct egress_set *s, const char *name, uint16_t port)
{
	struct host h;

	ck_assert_int_eq(host_read(name, strlen(name), &h), HOST_GOOD);
	return egress_match_name(s, &h, port);
}

START_TEST(decisions)
{
	struct egress_set s = {0};
	struct egress_said said;
	struct err e = {0};
	struct host h;
	uint16_t locals[MAX_EGRESS_LOCALS];

	ck_assert(!egress_set_opens(&s));
	CK_WORKS(egress_set_add(&s, EGRESS_LIST_MIRROR, "npm http://127.0.0.1:4873/x", "f:1", &e),
		 e);
	ck_assert(egress_set_opens(&s));
	CK_WORKS(egress_set_add(&s, EGRESS_LIST_MIRROR, "pip https://p.test", "f:2", &e), e);
	CK_WORKS(egress_set_add(&s, EGRESS_LIST_MIRROR, "go http://10.0.0.1:81", "f:3", &e), e);
	CK_WORKS(egress_set_add(&s, EGRESS_LIST_ALLOW, "*:443", "f:4", &e), e);
	ck_assert(egress_set_locals(&s, locals) == 1 && locals[0] == 4873);
	ck_assert(decide(&s, "127.0.0.1", 4873).local && decide(&s, "localhost", 4873).local);
	ck_assert(!decide(&s, "127.0.0.1", 4874).allow);
	ck_assert(decide(&s, "p.test", 443).allow && !decide(&s, "p.test", 80).allow);
	ck_assert(decide(&s, "10.0.0.1", 81).allow && !decide(&s, "10.0.0.1", 80).allow);
	ck_assert(!decide(&s, "10.0.0.2", 81).allow);
	/* Whatever opens it. */
	struct egress_verdict v = decide(&s, "registry.npmjs.org", 443);
	ck_assert(!v.allow && v.reason == EGRESS_WHY_DENIED && v.rule == 0);
	egress_say(&s, v.reason, v.rule, "registry.npmjs.org", 443, "", &said);
	ck_assert_str_eq(said.rule, "network.mirror[0] npm http://127.0.0.1:4873/x");
	ck_assert_str_eq(said.hint, "npm has its packages from http://127.0.0.1:4873/x here");
	ck_assert(!decide(&s, "files.pythonhosted.org", 443).allow);
	ck_assert(!decide(&s, "pythonhosted.org", 443).allow);
	ck_assert(decide(&s, "notpythonhosted.org", 443).allow);
	ck_assert(decide(&s, "pypi.org.example.com", 443).allow);
	ck_assert(decide(&s, "static.crates.io", 443).allow);
	ck_assert_int_eq(host_read("pypi.org", 8, &h), HOST_GOOD);
	ck_assert(!egress_match_dns(&s, &h).allow);
	ck_assert_int_eq(host_read("p.test", 6, &h), HOST_GOOD);
	ck_assert(egress_match_dns(&s, &h).allow);
	/* Under inspection it is opened as by `allow`. */
	ck_assert(egress_match_request(&s, &h, 443, "GET", 3, "/simple/", 8).allow);
	/* A deny closes it. */
	CK_WORKS(egress_set_add(&s, EGRESS_LIST_DENY, "p.test", "f:5", &e), e);
	CK_WORKS(egress_set_add(&s, EGRESS_LIST_DENY, "127.0.0.1:4873", "f:6", &e), e);
	ck_assert(!decide(&s, "p.test", 443).allow && !decide(&s, "localhost", 4873).allow);
	egress_set_release(&s);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("egress_mirror");
	TCase *tests = tcase_create("mirror");

	tcase_add_test(tests, good);
	tcase_add_test(tests, bad);
	tcase_add_test(tests, decisions);
	suite_add_tcase(suite, tests);
	return suite_run(suite);
}

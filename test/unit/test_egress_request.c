/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests of egress/request, egress/path and egress/condition: rules about methods
 * and paths, and what git writes.
 */
#include "egress/path.h"
#include "egress/set.h"

#include "base/base.h"
#include "test_base_suite.h"

#define MAX_ROW_RULES 5

/* `+` allow, `-` deny, `?` inspect, `^` push. */
static struct egress_set set_of(const char *const *rules)
{
	static const char marks[EGRESS_LISTS + 1] = "-+=?^";
	struct egress_set s = {0};
	struct err e = {0};

	for (; *rules; rules++) {
		enum egress_list list = (enum egress_list)(strchr(marks, **rules) - marks);
		ck_assert_msg(egress_set_add(&s, list, *rules + 1, "test", &e) == 0, "%s: %s",
			      *rules, e.msg);
	}
	return s;
}

static struct host host_of(const char *text)
{
	struct host h;

	ck_assert(host_read(text, strlen(text), &h) == HOST_GOOD);
	return h;
}

struct row {
	const char *rules[MAX_ROW_RULES];
	const char *method, *target;
	enum egress_reason reason; /* EGRESS_WHY_RULE: allowed */
};

#define YES EGRESS_WHY_RULE
#define METHOD EGRESS_WHY_METHOD
#define PATH EGRESS_WHY_PATH
#define TWO EGRESS_WHY_AMBIGUOUS
#define DENIED EGRESS_WHY_DENIED
#define PUSH EGRESS_WHY_PUSH
#define REPOS "+h.com GET /repos/**"

static const struct row rows[] = {
	/* methods */
	{{"+h.com"}, "DELETE", "/x", YES},
	{{"+h.com GET"}, "GET", "/x", YES},
	{{"+h.com GET"}, "HEAD", "/x", METHOD},
	{{"+h.com GET,HEAD"}, "HEAD", "/x", YES},
	{{"+h.com GET"}, "get", "/x", METHOD},
	{{"+h.com GET"}, "GETX", "/x", METHOD},
	{{"+h.com GET"}, "BREW", "/x", METHOD},
	{{"+h.com"}, "BREW", "/x", YES},
	{{"+h.com", "-h.com POST"}, "POST", "/x", DENIED},
	{{"+h.com", "-h.com POST"}, "GET", "/x", YES},
	{{"+h.com", "-h.com POST"}, "BREW", "/x", DENIED},
	{{"+h.com", "-h.com POST"}, "post", "/x", DENIED},
	{{"+h.com GET", "+h.com POST /in"}, "POST", "/in", YES},
	{{"+h.com GET", "+h.com POST /in"}, "POST", "/out", PATH},
	{{"+h.com GET"}, "OPTIONS", "*", METHOD},
	{{"+h.com OPTIONS"}, "OPTIONS", "*", YES},
	{{"+h.com OPTIONS /**"}, "OPTIONS", "*", PATH},
	/* paths */
	{{REPOS}, "GET", "/repos/a/b", YES},
	{{REPOS}, "GET", "/repos/a/b?x=/../y", YES},
	{{REPOS}, "GET", "/repos", YES},
	{{REPOS}, "GET", "/repos/", YES},
	{{REPOS}, "GET", "/reposx/a", PATH},
	{{REPOS}, "GET", "/Repos/a", PATH},
	{{REPOS}, "GET", "/x/repos/a", PATH},
	{{REPOS}, "POST", "/repos/a", METHOD},
	{{REPOS}, "GET", "/%72epos/a", YES},
	{{REPOS}, "GET", "/%72%65pos/%61?%zz", YES},
	{{"+h.com /a/*/c"}, "GET", "/a/b/c", YES},
	{{"+h.com /a/*/c"}, "GET", "/a/b/b/c", PATH},
	{{"+h.com /a/*/c"}, "GET", "/a/b/c/", PATH},
	{{"+h.com /a/**/z"}, "GET", "/a/z", YES},
	{{"+h.com /a/**/z"}, "GET", "/a/b/c/z", YES},
	{{"+h.com /a/**/z"}, "GET", "/a/z/b", PATH},
	{{"+h.com /a/**/b/**/z"}, "GET", "/a/1/b/2/3/z", YES},
	{{"+h.com /v*-x/y"}, "GET", "/v12-x/y", YES},
	{{"+h.com /a /b"}, "GET", "/b", YES},
	{{"+h.com /"}, "GET", "/", YES},
	{{"+h.com /"}, "GET", "/a", PATH},
	{{"+h.com /@scope/*"}, "GET", "/%40scope/x", YES},
	/* what can be read in two ways */
	{{REPOS}, "GET", "/repos/../admin", TWO},
	{{REPOS}, "GET", "/repos/./a", TWO},
	{{REPOS}, "GET", "/repos/%2e%2e/admin", TWO},
	{{REPOS}, "GET", "/repos/.%2E/admin", TWO},
	{{REPOS}, "GET", "/repos/..%2Fadmin", TWO},
	{{REPOS}, "GET", "/repos/%2e%2e%2fadmin", TWO},
	{{REPOS}, "GET", "/repos/%252e%252e/admin", TWO},
	{{REPOS}, "GET", "/repos/..;/admin", TWO},
	{{REPOS}, "GET", "/repos/..%3b/admin", TWO},
	{{REPOS}, "GET", "/repos/..\\admin", TWO},
	{{REPOS}, "GET", "/repos/..%5cadmin", TWO},
	{{REPOS}, "GET", "/repos/%c0%ae%c0%ae/admin", TWO},
	{{REPOS}, "GET", "//repos/a", TWO},
	{{REPOS}, "GET", "/repos//a", TWO},
	{{REPOS}, "GET", "/repos/%2fa", TWO},
	{{REPOS}, "GET", "/repos/a%00", TWO},
	{{REPOS}, "GET", "/repos/a%0d%0a", TWO},
	{{REPOS}, "GET", "/repos/a\x80", TWO},
	{{REPOS}, "GET", "/repos/a#b", TWO},
	{{REPOS}, "GET", "/repos/a%", TWO},
	{{REPOS}, "GET", "/repos/a%zz", TWO},
	{{REPOS}, "GET", "/repos/a%u002e", TWO},
	{{REPOS}, "GET", "repos/a", TWO},
	{{REPOS}, "GET", "", TWO},
	{{REPOS}, "GET", "http://h.com/repos/a", TWO},
	{{REPOS}, "GET", "/repos/..%20/admin", TWO},
	{{REPOS}, "GET", "/repos/%20../admin", TWO},
	{{REPOS}, "GET", "/repos/..%3Fx/admin", TWO},
	{{REPOS}, "GET", "/repos/a%3Fb", TWO},
	{{REPOS}, "GET", "/repos/a%23b", TWO},
	{{REPOS}, "GET", "/repos/%e0%80%ae%e0%80%ae/admin", TWO},
	{{REPOS}, "GET", "/repos/%f0%80%80%ae", TWO},
	{{REPOS}, "GET", "/repos/%e0%a4%85", YES},
	{{REPOS}, "GET", "/repos/.%C3%A9", YES},
	{{REPOS}, "GET", "/repos/a%20b", YES},
	{{REPOS}, "GET", "/repos/;x/a", TWO},
	{{REPOS}, "GET", "/repos/;", TWO},
	{{REPOS}, "GET", "/repos/%3Bx", TWO},
	{{"+h.com"}, "GET", "/a/../b", YES}, /* no rule is about paths */
	{{"+h.com", REPOS}, "GET", "/a/../b", YES},
	/* both readings of an encoded slash have to be allowed */
	{{"+h.com /p/*"}, "GET", "/p/a%2Fb", PATH},
	{{"+h.com /p/**"}, "GET", "/p/a%2Fb", YES},
	{{"+h.com /p/**"}, "GET", "/p%2Fa", PATH},
	/* and both of what some servers cut off */
	{{"+h.com /x/*.txt"}, "GET", "/x/a.txt", YES},
	{{"+h.com /x/*.txt"}, "GET", "/x/a;v.txt", PATH},
	{{"+h.com /x/*.txt"}, "GET", "/x/a%3B.txt", PATH},
	{{"+h.com /x/*.txt"}, "GET", "/x/a.txt;v=1", PATH},
	{{"+h.com /x/*"}, "GET", "/x/a;v=1", YES},
	/* deny rules are read widely */
	{{"+h.com", "-h.com /admin"}, "GET", "/;a/admin", TWO},
	{{"+h.com", "-h.com /admin"}, "GET", "/%3B/admin", TWO},
	{{"+h.com", "-h.com /a*z"}, "GET", "/ab;cz", DENIED},
	{{"+h.com", "-h.com GET"}, "HEAD", "/x", DENIED},
	{{"+h.com", "-h.com HEAD"}, "GET", "/x", YES},
	{{"+h.com", "-h.com /admin/**"}, "GET", "/admin", DENIED},
	{{"+h.com", "-h.com /admin/**"}, "GET", "/admin/x", DENIED},
	{{"+h.com", "-h.com /admin/**"}, "GET", "/ADMIN/x", DENIED},
	{{"+h.com", "-h.com /admin/**"}, "GET", "/%61dmin/x", DENIED},
	{{"+h.com", "-h.com /admin/**"}, "GET", "/admin;v=1/x", DENIED},
	{{"+h.com", "-h.com /admin/**"}, "GET", "/admin%3bv=1/x", DENIED},
	{{"+h.com", "-h.com /admin/**"}, "GET", "/admin%2Fx", DENIED},
	{{"+h.com", "-h.com /admin/**"}, "GET", "//admin/x", TWO},
	{{"+h.com", "-h.com /admin/**"}, "GET", "/x/../admin", TWO},
	{{"+h.com", "-h.com /admin/**"}, "GET", "/administrator", YES},
	{{"+h.com", "-h.com /admin"}, "GET", "/admin/", DENIED},
	{{"+h.com", "-h.com POST /admin"}, "GET", "/admin", YES},
	{{"+h.com", "-other.com /**"}, "GET", "/admin", YES},
	/* git */
	{{"+h.com"}, "GET", "/t/a.git/info/refs?service=git-upload-pack", YES},
	{{"+h.com"}, "POST", "/t/a.git/git-upload-pack", YES},
	{{"+h.com"}, "GET", "/t/a.git/info/refs?service=git-receive-pack", PUSH},
	{{"+h.com"}, "GET", "/t/a.git/info/refs?x=1&service=git-receive-pack&y", PUSH},
	{{"+h.com"}, "GET", "/t/a/info/refs?service=git%2Dreceive%2dpack", PUSH},
	{{"+h.com"}, "GET", "/t/a/info/refs?service=git%252dreceive-pack", PUSH},
	{{"+h.com"}, "POST", "/t/a.git/git-receive-pack", PUSH},
	{{"+h.com"}, "POST", "/t/a.git/git%2dreceive-pack", PUSH},
	{{"+h.com"}, "POST", "/t/a.git/git%252dreceive-pack", PUSH},
	{{"+h.com"}, "POST", "/t/a.git%2Fgit-receive-pack", PUSH},
	{{"+h.com"}, "POST", "/t/a.git//git-receive-pack/", PUSH},
	{{"+h.com"}, "POST", "/t/a.git/x/../git-receive-pack", PUSH},
	{{"+h.com"}, "POST", "/t/a.git/GIT-Receive-Pack;x", PUSH},
	{{"+h.com"}, "POST", "/t/a.git\\git-receive-pack", PUSH},
	{{"+h.com"}, "POST", "/git-receive-packs", YES},
	{{"+h.com"}, "POST", "/search?q=git-receive-pack", YES},
	{{"+h.com"}, "POST", "/t/a.git/info/lfs/objects/batch", YES},
	{{"+h.com"}, "POST", "/t/a.git/info/lfs/locks", PUSH},
	{{"+h.com"}, "GET", "/t/a.git/info/lfs/locks", YES},
	{{"+h.com"}, "PUT", "/t/a.git/gitlab-lfs/objects/1/2", PUSH},
	{{"+h.com"}, "POST", "/t/a.git/git-receive-pack%0Ax", PUSH},
	{{"+h.com"}, "POST", "/t/a.git/git-receive-pack%00", PUSH},
	{{"+h.com"}, "POST", "/t/a.git/git-receive-pack%20", PUSH},
	{{"+h.com"}, "POST", "/t/a/git-receive-pack%3Fa", PUSH},
	{{"+h.com"}, "POST", "/t/a/git-receive-pack%23a", PUSH},
	{{"+h.com"}, "GET", "/t/a/info/refs%3Fservice=git-receive-pack", PUSH},
	{{"+h.com"}, "PATCH", "/t/a.git/HEAD", PUSH},
	{{"+h.com"}, "POST", "/t/a.git/git-upload-pack", YES},
	{{"+h.com"}, "GET", "/docs/git-receive-pack.html", YES},
	{{"+h.com"}, "PROPFIND", "/t/a.git/", PUSH},
	{{"+h.com"}, "MKCOL", "/t/a.git/refs/x", PUSH},
	{{"+h.com", "^h.com/t/a"}, "POST", "/t/a.git/git-receive-pack", YES},
	{{"+h.com", "^h.com/t/a"}, "POST", "/t/a/git-receive-pack", YES},
	{{"+h.com", "^https://h.com/t/a.git"}, "POST", "/t/a/git-receive-pack", YES},
	{{"+h.com", "^h.com/t/*"}, "POST", "/t/b.git/git-receive-pack", YES},
	{{"+h.com", "^h.com/t/a"}, "POST", "/t/b.git/git-receive-pack", PUSH},
	{{"+h.com", "^h.com/t/a"}, "POST", "/t/ab.git/git-receive-pack", PUSH},
	{{"+h.com", "^h.com/t/a"}, "POST", "/T/A.git/git-receive-pack", PUSH},
	{{"+h.com", "^h.com/t/a"}, "POST", "/t/a/../b/git-receive-pack", PUSH},
	{{"+h.com", "^h.com/t/a"}, "POST", "/t/b%2F..%2Fa/git-receive-pack", PUSH},
	{{"+h.com", "^other.com/t/a"}, "POST", "/t/a.git/git-receive-pack", PUSH},
	{{"+h.com GET", "^h.com/t/a"}, "POST", "/t/a/git-receive-pack", METHOD},
	{{"+h.com", "-h.com POST", "^h.com/t/a"}, "POST", "/t/a/git-receive-pack", DENIED},
};

START_TEST(requests)
{
	const struct row *r = &rows[_i];
	AUTO_EGRESS_SET s = set_of(r->rules);
	struct host h = host_of("h.com");

	struct egress_verdict v = egress_match_request(&s, &h, 443, r->method, strlen(r->method),
						       r->target, strlen(r->target));
	ck_assert_msg(v.reason == r->reason && v.allow == (r->reason == YES), "%s %s: %s, not %s",
		      r->method, r->target, egress_reason_name(v.reason),
		      egress_reason_name(r->reason));
	ck_assert(egress_match_name(&s, &h, 443).allow);
}
END_TEST

START_TEST(what_is_inspected)
{
	static const char *const rules[] = {"+a.com",     "?i.com",    "?*.below.com:8443",
					    "+g.com GET", "-d.com /x", "^p.com/o/r",
					    NULL};
	static const char *const plain[] = {"+a.com", "-b.com", NULL};
	static const struct {
		const char *host;
		uint16_t port;
		bool yes;
	} asked[] = {{"a.com", 443, false},       {"i.com", 443, true},    {"i.com", 80, false},
		     {"x.below.com", 8443, true}, {"g.com", 443, true},    {"d.com", 443, true},
		     {"d.com", 80, true},         {"p.com", 443, true},    {"p.com", 22, false},
		     {"x.i.com", 443, false},     {"10.0.0.1", 443, false}};
	AUTO_EGRESS_SET s = set_of(rules);
	AUTO_EGRESS_SET none = set_of(plain);

	ck_assert(egress_set_inspects(&s) && !egress_set_inspects(&none));
	for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
		struct host h = host_of(asked[i].host);
		ck_assert_msg(egress_inspects(&s, &h, asked[i].port) == asked[i].yes, "%s:%u",
			      asked[i].host, asked[i].port);
	}
	/* A deny of some requests denies no connection. */
	struct host d = host_of("d.com");
	ck_assert_int_eq(egress_match_name(&s, &d, 443).reason, EGRESS_WHY_DEFAULT);
	/* What only inspects opens nothing. */
	struct host i = host_of("i.com");
	ck_assert(!egress_match_name(&s, &i, 443).allow);
}
END_TEST

START_TEST(wrong_conditions)
{
	static const struct {
		enum egress_list list;
		const char *text, *msg, *hint;
	} wrongs[] = {
		{EGRESS_LIST_ALLOW, "a.com get", "unknown method (at byte 7)", "mean `GET`"},
		{EGRESS_LIST_ALLOW, "a.com GTE", "unknown method", "mean `GET`"},
		{EGRESS_LIST_ALLOW, "a.com GET,", "an empty method (at byte 11)", ""},
		{EGRESS_LIST_ALLOW, "a.com GET,GET", "named twice", ""},
		{EGRESS_LIST_ALLOW, "a.com GET POST", "a path begins", ""},
		{EGRESS_LIST_DENY, "a.com /%61dmin/**", "percent signs stand only", ""},
		{EGRESS_LIST_DENY, "a.com /%7Eroot", "percent signs stand only", ""},
		{EGRESS_LIST_DENY, "a.com /a%2f", "percent signs stand only", ""},
		{EGRESS_LIST_DENY, "a.com /a;b/**", "without parameters", ""},
		{EGRESS_LIST_ALLOW, "a.com /a%3Bb", "without parameters", ""},
		{EGRESS_LIST_DENY, "* DELETE", "denied by name", ""},
		{EGRESS_LIST_ALLOW, "a.com  GET", "one blank", ""},
		{EGRESS_LIST_ALLOW, "a.com ", "one blank", ""},
		{EGRESS_LIST_ALLOW, "a.com GET /a ", "one blank", ""},
		{EGRESS_LIST_ALLOW, "a.com /a/../b", "a dot segment", ""},
		{EGRESS_LIST_ALLOW, "a.com /a//b", "an empty segment", ""},
		{EGRESS_LIST_ALLOW, "a.com /a?b", "without its query", ""},
		{EGRESS_LIST_ALLOW, "a.com /a**", "`**` stands alone", ""},
		{EGRESS_LIST_ALLOW, "a.com /a/x**/b", "`**` stands alone", ""},
		{EGRESS_LIST_ALLOW, "10.0.0.0/8 GET", "need a name", ""},
		{EGRESS_LIST_DENY, "10.0.0.1:443 /x", "need a name", ""},
		{EGRESS_LIST_ALLOW, "localhost:80 GET", "need a name", ""},
		{EGRESS_LIST_INSPECT, "10.0.0.1", "is a name, no address", ""},
		{EGRESS_LIST_INSPECT, "localhost:80", "is a name, no address", ""},
		{EGRESS_LIST_INSPECT, "a.com GET", "of allow and deny rules", ""},
		{EGRESS_LIST_LOCAL, "80 GET", "a port is one number", ""},
		{EGRESS_LIST_PUSH, "a.com", "names a repository", "HOST/OWNER"},
		{EGRESS_LIST_PUSH, "a.com/", "names a repository", ""},
		{EGRESS_LIST_PUSH, "a.com/t/", "names repositories", ""},
		{EGRESS_LIST_PUSH, "a.com/**", "names repositories", ""},
		{EGRESS_LIST_PUSH, "a.com/t/../x", "a dot segment", ""},
		{EGRESS_LIST_PUSH, "10.0.0.1/t/x", "needs a name", ""},
		{EGRESS_LIST_PUSH, "ssh://a.com/t/x", "http:// and https://", ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(wrongs); i++) {
		struct egress_rule r = {.bits = 77};
		struct err e = {0};
		ck_assert_msg(egress_rule_read(wrongs[i].list, wrongs[i].text, &r, &e) < 0, "%s",
			      wrongs[i].text);
		ck_assert_msg(strstr(e.msg, wrongs[i].msg) != NULL, "%s: %s", wrongs[i].text,
			      e.msg);
		ck_assert_msg(strstr(e.hint, wrongs[i].hint) != NULL, "%s: %s", wrongs[i].text,
			      e.hint);
		ck_assert_uint_eq(r.bits, 77);
	}
}
END_TEST

START_TEST(long_ones)
{
	char text[MAX_EGRESS_TARGET + 2];
	struct egress_rule r;
	struct err e = {0};
	struct host h = host_of("h.com");
	AUTO_EGRESS_SET s = {0};
	AUTO_EGRESS_SET paths = {0};

	CK_WORKS(egress_set_add(&s, EGRESS_LIST_ALLOW, "h.com", "test", &e), e);
	CK_WORKS(egress_set_add(&paths, EGRESS_LIST_ALLOW, "h.com /**", "test", &e), e);
	memset(text, 'a', sizeof(text));
	text[0] = '/';
	ck_assert(egress_match_request(&s, &h, 443, "GET", 3, text, MAX_EGRESS_TARGET).allow);
	ck_assert(!egress_match_request(&s, &h, 443, "GET", 3, text, MAX_EGRESS_TARGET + 1).allow);
	ck_assert(egress_match_request(&paths, &h, 443, "GET", 3, text, MAX_EGRESS_PATH).allow);
	ck_assert(
		!egress_match_request(&paths, &h, 443, "GET", 3, text, MAX_EGRESS_PATH + 1).allow);
	memset(text, 'a', sizeof(text));
	memcpy(text, "a.com /", 7);
	text[6 + MAX_EGRESS_PATHS - 2] = '\0';
	CK_WORKS(egress_rule_read(EGRESS_LIST_ALLOW, text, &r, &e), e);
	ck_assert_uint_eq(strlen(r.paths), MAX_EGRESS_PATHS - 2);
	text[6 + MAX_EGRESS_PATHS - 2] = 'a';
	text[6 + MAX_EGRESS_PATHS - 1] = '\0';
	CK_FAILS(egress_rule_read(EGRESS_LIST_ALLOW, text, &r, &e), e, ERR_CONFIG_INVALID,
		 "more paths than fit");
	text[6 + MAX_EGRESS_PATHS - 1] = 'a';
	text[MAX_EGRESS_RULE_TEXT + 1] = '\0';
	CK_FAILS(egress_rule_read(EGRESS_LIST_ALLOW, text, &r, &e), e, ERR_CONFIG_INVALID,
		 "more than 1000");
}
END_TEST

START_TEST(what_it_is_called)
{
	static const char *const rules[] = {"+h.com GET,HEAD /repos/**", NULL};
	AUTO_EGRESS_SET s = set_of(rules);
	struct egress_said said;

	egress_say(&s, EGRESS_WHY_METHOD, 0, "h.com", 443, "", &said);
	ck_assert_str_eq(said.rule, "network.allow[0] h.com GET,HEAD /repos/**");
	ck_assert_ptr_nonnull(strstr(said.hint, "--allow-host 'h.com METHOD /PATH'"));
	egress_say(&s, EGRESS_WHY_PUSH, -1, "h.com", 443, "", &said);
	ck_assert_str_eq(said.rule, "network.push");
	ck_assert_ptr_nonnull(strstr(said.hint, "[h.com/OWNER/REPOSITORY]"));
	egress_say(&s, EGRESS_WHY_AMBIGUOUS, -1, "h.com", 443, "", &said);
	ck_assert_str_eq(said.rule, "network.ambiguous");
}
END_TEST

/* Through the encoded form nothing of a rule is lost. */
START_TEST(coded)
{
	static const char *const rules[] = {"+h.com:8443 GET,REPORT /a/** /b", "?i.com",
					    "^p.com/o/r", "-*.d.com /x", NULL};
	AUTO_EGRESS_SET s = set_of(rules);
	AUTO_EGRESS_SET back = {0};
	AUTO_BUF out = BUF_INIT(MAX_EGRESS_BYTES);
	struct err e = {0};

	CK_WORKS(egress_set_encode(&s, &out, &e), e);
	CK_WORKS(egress_set_decode(out.p, out.n, &back, &e), e);
	ck_assert_uint_eq(back.n, s.n);
	for (size_t i = 0; i < s.n; i++) {
		ck_assert_str_eq(back.v[i].text, s.v[i].text);
		ck_assert_str_eq(back.v[i].rule.paths, s.v[i].rule.paths);
		ck_assert_uint_eq(back.v[i].rule.methods, s.v[i].rule.methods);
		ck_assert_uint_eq(back.v[i].rule.list, s.v[i].rule.list);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("egress_request");
	TCase *tests = tcase_create("request");

	tcase_add_loop_test(tests, requests, 0, ARRAY_LEN(rows));
	tcase_add_test(tests, what_is_inspected);
	tcase_add_test(tests, wrong_conditions);
	tcase_add_test(tests, long_ones);
	tcase_add_test(tests, what_it_is_called);
	tcase_add_test(tests, coded);
	suite_add_tcase(suite, tests);
	return suite_run(suite);
}

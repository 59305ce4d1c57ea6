/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests of egress/rule, egress/set and its matcher.
 */
#include "egress/set.h"

#include "base/base.h"
#include "base/sha256.h"
#include "test_base_suite.h"

#define MAX_ROW_RULES 6

/* Texts of rules, each with its list in front: `+` allow, `-` deny, `=` local. */
static struct egress_set set_of(const char *const *rules)
{
	struct egress_set s = {0};
	struct err e = {0};

	for (; *rules; rules++) {
		enum egress_list list = **rules == '+'   ? EGRESS_LIST_ALLOW
					: **rules == '-' ? EGRESS_LIST_DENY
							 : EGRESS_LIST_LOCAL;
		ck_assert_msg(egress_set_add(&s, list, *rules + 1, "test", &e) == 0, "%s: %s",
			      *rules, e.msg);
	}
	return s;
}

static struct host host_of(const char *text)
{
	struct host h;
	enum host_bad bad = host_read(text, strlen(text), &h);

	ck_assert_msg(bad == HOST_GOOD, "%s: %s", text, host_bad_text(bad));
	return h;
}

struct row {
	const char *rules[MAX_ROW_RULES];
	const char *host;
	uint16_t port;
	enum egress_reason reason; /* EGRESS_WHY_RULE: allowed */
};

#define YES EGRESS_WHY_RULE
#define NOT EGRESS_WHY_DEFAULT

static const struct row rows[] = {
	/* CX-DOM-02 to 09 */
	{{"+example.com:*"}, "api.example.com", 443, NOT},
	{{"+*.example.com"}, "api.example.com", 443, YES},
	{{"+*.example.com"}, "example.com", 443, NOT},
	{{"+**.example.com"}, "example.com", 443, YES},
	{{"+**.example.com"}, "a.b.example.com", 443, YES},
	{{"+*.example.com"}, "evilexample.com", 443, NOT},
	{{"+**.example.com"}, "evilexample.com", 443, NOT},
	{{"+Example.COM."}, "example.com", 443, YES},
	{{"+region*.v2.x.com"}, "region1.v2.x.com", 443, YES},
	{{"+region*.v2.x.com"}, "region.v2.x.com", 443, YES},
	{{"+region*.v2.x.com"}, "region1.evil.v2.x.com", 443, NOT},
	{{"+region*.v2.x.com"}, "xregion1.v2.x.com", 443, NOT},
	{{"+*.r*-b.x.com"}, "a.b.r1-b.x.com", 443, YES},
	{{"+*.r*-b.x.com"}, "r1-b.x.com", 443, NOT},
	{{"+a.*.x.com"}, "a.b.x.com", 443, YES},
	{{"+a.*.x.com"}, "a.b.c.x.com", 443, NOT},
	{{"+a*b*c.x.com"}, "aXbXbc.x.com", 443, YES},
	{{"+a*b*c.x.com"}, "aXc.x.com", 443, NOT},
	/* srt-122 to 128 */
	{{"+*.example.com"}, "a.b.example.com", 443, YES},
	{{"+*.example.com"}, "example.com.evil.com", 443, NOT},
	{{"+*.example.com", "-internal.example.com"},
	 "internal.example.com",
	 443,
	 EGRESS_WHY_DENIED},
	{{"+*.example.com", "-internal.example.com"}, "external.example.com", 443, YES},
	{{"-internal.example.com", "+internal.example.com"},
	 "internal.example.com",
	 443,
	 EGRESS_WHY_DENIED},
	{{"+example.com"}, "EXAMPLE.com", 443, YES},
	{{"+example.com"}, "example.com.", 443, YES},
	{{"+127.0.0.1:8080"}, "2130706433", 8080, YES},
	{{"+127.0.0.1:8080"}, "0x7f.1", 8080, YES},
	{{"+127.0.0.1:8080"}, "0x7f.1", 8081, EGRESS_WHY_LOOPBACK},
	{{"+*.example.com", "-169.254.169.254"}, "2852039166", 80, EGRESS_WHY_DENIED},
	{{"+*.example.com"}, "2852039166", 80, EGRESS_WHY_CLASS},
	{{"+*:*"}, "127.0.0.1", 80, EGRESS_WHY_LOOPBACK},
	{{"+*:*"}, "8.8.8.8", 443, NOT},
	{{"+*:*"}, "anything.example", 22, YES},
	{{"+*:443"}, "anything.example", 22, EGRESS_WHY_PORT},
	/* Ports: srt-119 */
	{{"+example.com"}, "example.com", 80, EGRESS_WHY_PORT},
	{{"+example.com", "+example.com:8080"}, "example.com", 8080, YES},
	{{"+http://example.com"}, "example.com", 80, YES},
	{{"+http://example.com"}, "example.com", 443, EGRESS_WHY_PORT},
	{{"+https://example.com"}, "example.com", 443, YES},
	{{"+https://example.com:8443"}, "example.com", 8443, YES},
	{{"+example.com:*"}, "example.com", 1, YES},
	{{"+example.com:*", "-*:22"}, "example.com", 22, EGRESS_WHY_DENIED},
	{{"+example.com:*", "-*:22"}, "example.com", 23, YES},
	{{"+example.com:*", "-example.com:22"}, "example.com", 23, YES},
	{{"+example.com:*", "-example.com"}, "example.com", 23, EGRESS_WHY_DENIED},
	{{"+example.com:*", "-*"}, "example.com", 23, EGRESS_WHY_DENIED},
	{{"+example.com:*"}, "example.com", 0, EGRESS_WHY_HOST},
	/* Addresses */
	{{"+10.1.2.0/24:5432"}, "10.1.2.3", 5432, YES},
	{{"+10.1.2.0/24:5432"}, "10.1.3.3", 5432, EGRESS_WHY_CLASS},
	{{"+10.1.2.0/24:5432"}, "10.1.2.3", 443, EGRESS_WHY_PORT},
	{{"+10.1.2.0/24:5432"}, "::ffff:10.1.2.3", 5432, YES},
	{{"+10.1.2.0/24:5432", "-10.1.2.3"}, "10.1.2.3", 5432, EGRESS_WHY_DENIED},
	{{"+10.1.2.0/24:*", "-*:22"}, "10.1.2.3", 22, EGRESS_WHY_DENIED},
	{{"+8.8.8.8"}, "8.8.8.8", 443, YES},
	{{"+8.8.8.8"}, "8.8.4.4", 443, NOT},
	{{"+[2001:db8::]/32:443"}, "2001:db8:1::1", 443, YES},
	{{"+[2001:db8::]/32"}, "[2001:db8:1::1]", 443, YES},
	{{"+0.0.0.0/0:443"}, "8.8.8.8", 443, YES},
	{{"+0.0.0.0/0:443"}, "10.0.0.1", 443, EGRESS_WHY_CLASS},
	{{"+0.0.0.0/0:443"}, "169.254.169.254", 443, EGRESS_WHY_CLASS},
	{{"+0.0.0.0/0:443"}, "198.18.0.1", 443, EGRESS_WHY_CLASS},
	{{"+169.254.0.0/16:80"}, "169.254.169.254", 80, EGRESS_WHY_CLASS},
	{{"+169.254.0.0/16:80"}, "169.254.1.1", 80, YES},
	{{"+169.254.169.254:80"}, "169.254.169.254", 80, YES},
	{{"+[::]/0:443"}, "::ffff:8.8.8.8", 443, NOT},
	{{"+[::]/0:443"}, "fd00::1", 443, EGRESS_WHY_CLASS},
	{{"+[64:ff9b::]/96:443", "-8.8.8.8"}, "64:ff9b::8.8.8.8", 443, EGRESS_WHY_DENIED},
	{{"+[64:ff9b::]/96:443", "-8.8.8.8"}, "64:ff9b::8.8.4.4", 443, YES},
	/* The host's loopback: one place, three spellings. srt-117, CX-PROXY-10 */
	{{"=5432"}, "localhost", 5432, YES},
	{{"=5432"}, "LOCALHOST.", 5432, YES},
	{{"=5432"}, "127.0.0.1", 5432, YES},
	{{"=5432"}, "::1", 5432, YES},
	{{"=5432"}, "db.localhost", 5432, YES},
	{{"=5432"}, "127.0.0.2", 5432, EGRESS_WHY_CLASS},
	{{"=5432"}, "localhost", 5433, EGRESS_WHY_LOOPBACK},
	{{"+localhost:8080"}, "127.0.0.1", 8080, YES},
	{{"+[::1]:8080"}, "localhost", 8080, YES},
	{{"+http://localhost"}, "localhost", 80, YES},
	{{"=5432", "-127.0.0.1"}, "localhost", 5432, EGRESS_WHY_DENIED},
	{{"=5432", "-127.0.0.0/8"}, "localhost", 5432, EGRESS_WHY_DENIED},
	{{"=5432", "-localhost"}, "::1", 5432, EGRESS_WHY_DENIED},
	{{"=5432", "-localhost:5433"}, "::1", 5432, YES},
	{{"=5432", "-*:5432"}, "127.0.0.1", 5432, EGRESS_WHY_DENIED},
	{{"+*:*"}, "localhost", 5432, EGRESS_WHY_LOOPBACK},
	{{NULL}, "example.com", 443, NOT},
};

START_TEST(names_and_addresses)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		AUTO_EGRESS_SET s = set_of(r->rules);
		struct host h = host_of(r->host);
		struct egress_verdict v = egress_match_name(&s, &h, r->port);

		ck_assert_msg(v.reason == r->reason, "%s against %s:%u is %s", r->rules[0], r->host,
			      r->port, egress_reason_name(v.reason));
		ck_assert_int_eq(v.allow, r->reason == YES);
		if (v.allow || v.reason == EGRESS_WHY_DENIED)
			ck_assert(v.rule >= 0 && (size_t)v.rule < s.n);
		ck_assert_int_eq(v.local, v.allow && host_is_loopback(&h));
	}
}
END_TEST

struct resolved {
	const char *rules[MAX_ROW_RULES];
	const char *address;
	uint16_t port;
	enum egress_reason reason;
};

/* What x.example.com resolves to: rebinding, odd families, and what opens it. */
static const struct resolved resolved[] = {
	{{"+x.example.com"}, "93.184.216.34", 443, YES},
	{{"+x.example.com"}, "2606:4700::1", 443, YES},
	{{"+x.example.com"}, "127.0.0.1", 443, EGRESS_WHY_CLASS},
	{{"+x.example.com"}, "::1", 443, EGRESS_WHY_CLASS},
	{{"+x.example.com"}, "10.0.0.1", 443, EGRESS_WHY_CLASS},
	{{"+x.example.com"}, "169.254.169.254", 443, EGRESS_WHY_CLASS},
	{{"+x.example.com"}, "::ffff:169.254.169.254", 443, EGRESS_WHY_CLASS},
	{{"+x.example.com"}, "64:ff9b::a9fe:a9fe", 443, EGRESS_WHY_CLASS},
	{{"+x.example.com"}, "2002:7f00:1::", 443, EGRESS_WHY_CLASS},
	{{"+x.example.com"}, "198.18.0.1", 443, EGRESS_WHY_CLASS},
	{{"+x.example.com"}, "0.0.0.0", 443, EGRESS_WHY_CLASS},
	{{"+x.example.com"}, "224.0.0.1", 443, EGRESS_WHY_CLASS},
	{{"+x.example.com", "+10.0.0.0/8:443"}, "10.0.0.1", 443, YES},
	{{"+x.example.com", "+10.0.0.0/8:444"}, "10.0.0.1", 443, EGRESS_WHY_CLASS},
	{{"+x.example.com", "+0.0.0.0/0:443"}, "10.0.0.1", 443, EGRESS_WHY_CLASS},
	{{"+x.example.com:8080", "=8080"}, "127.0.0.1", 8080, YES},
	{{"+x.example.com:8080", "=8081"}, "127.0.0.1", 8080, EGRESS_WHY_CLASS},
	{{"+x.example.com:8080", "=8080", "-localhost"}, "127.0.0.1", 8080, EGRESS_WHY_DENIED},
	{{"+x.example.com", "-93.184.216.0/24"}, "93.184.216.34", 443, EGRESS_WHY_DENIED},
	{{"+x.example.com", "-93.184.216.0/24"}, "64:ff9b::93.184.216.34", 443, EGRESS_WHY_DENIED},
	{{"+x.example.com", "-93.184.216.0/24:80"}, "93.184.216.34", 443, YES},
	/* Asked anew, though the name should have been before. */
	{{"+y.example.com"}, "93.184.216.34", 443, EGRESS_WHY_DEFAULT},
	{{"+x.example.com"}, "93.184.216.34", 80, EGRESS_WHY_PORT},
	{{"+**.example.com", "-x.example.com"}, "93.184.216.34", 443, EGRESS_WHY_DENIED},
};

START_TEST(resolved_addresses)
{
	struct host asked = host_of("x.example.com");

	for (size_t i = 0; i < ARRAY_LEN(resolved); i++) {
		const struct resolved *r = &resolved[i];
		AUTO_EGRESS_SET s = set_of(r->rules);
		struct address a;

		ck_assert(address_parse(r->address, &a));
		struct egress_verdict v = egress_match_address(&s, &a, r->port, &asked);
		ck_assert_msg(v.reason == r->reason, "%s: %s is %s", r->rules[0], r->address,
			      egress_reason_name(v.reason));
		ck_assert_int_eq(v.allow, r->reason == YES);
	}
}
END_TEST

START_TEST(names_to_resolve)
{
	struct row dns[] = {
		{{"+example.com:5432"}, "example.com", 0, YES},
		{{"+example.com:*"}, "example.com", 0, YES},
		{{"+example.com:*", "-example.com:22"}, "example.com", 0, YES},
		{{"+example.com:22", "-*:22"}, "example.com", 0, EGRESS_WHY_DENIED},
		{{"+example.com:22", "+example.com", "-*:22"}, "example.com", 0, YES},
		{{"+example.com", "-example.com"}, "example.com", 0, EGRESS_WHY_DENIED},
		{{"+example.com"}, "other.com", 0, NOT},
		{{"+10.0.0.0/8:443"}, "10.0.0.1", 0, EGRESS_WHY_HOST},
		{{"=5432"}, "localhost", 0, YES},
		{{"+example.com"}, "localhost", 0, EGRESS_WHY_LOOPBACK},
	};

	for (size_t i = 0; i < ARRAY_LEN(dns); i++) {
		AUTO_EGRESS_SET s = set_of(dns[i].rules);
		struct host h = host_of(dns[i].host);
		struct egress_verdict v = egress_match_dns(&s, &h);

		ck_assert_msg(v.reason == dns[i].reason, "%s: %s", dns[i].rules[0],
			      egress_reason_name(v.reason));
		ck_assert_int_eq(v.allow, dns[i].reason == YES);
	}
}
END_TEST

struct wrong {
	enum egress_list list;
	const char *text, *says, *hint;
};

#define ALLOW EGRESS_LIST_ALLOW
#define DENY EGRESS_LIST_DENY
#define LOCAL EGRESS_LIST_LOCAL

/* What is wrong, where, and the nearest right spelling. CX-RULE-37, CX-RULE-38. */
static const struct wrong wrongs[] = {
	{ALLOW, "", "no host", ""},
	{ALLOW, "*", "would open every name", "*:443"},
	{ALLOW, "https://a.b/x", "a path", "write https://a.b"},
	{ALLOW, "http://a.b:8080/", "a path", "write http://a.b:8080"},
	{ALLOW, "ftp://a.b", "only http:// and https://", "write a.b:21"},
	{ALLOW, "ssh://git@a.b/x.git", "only http:// and https://", "write a.b:22"},
	{ALLOW, "gopher://a.b", "an unknown scheme", "HOST:PORT"},
	{ALLOW, "a.b/x", "a path", "write a.b"},
	{ALLOW, "git@a.b", "a user", "write a.b"},
	{ALLOW, "git@a.b:team/app", "a port is one number", "no ranges"},
	{ALLOW, "a.b:", "a port is one number", ""},
	{ALLOW, "a.b:0", "a port is one number", ""},
	{ALLOW, "a.b:65536", "a port is one number", ""},
	{ALLOW, "a.b:080", "a port is one number", ""},
	{ALLOW, "a.b:80-90", "(at byte 5)", "no ranges"},
	{ALLOW, "exa mple.com", "an unknown method (at byte 5)", ""},
	{ALLOW, "a..com", "an empty part: a dot in front, or two dots (at byte 3)", ""},
	{ALLOW, "a.-b.com", "a hyphen (at byte 3)", ""},
	{ALLOW,
	 "b\xc3\xbc"
	 "cher.example",
	 "xn-- form", ""},
	{ALLOW, "a%2eb", "a percent sign", ""},
	{ALLOW, "foo.*", "the last part of a name is written out (at byte 5)", "*.example.com"},
	{ALLOW, "foo.c*m", "the last part of a name is written out", ""},
	{ALLOW, "a.**.b.com", "`**` stands only in front", ""},
	{ALLOW, "**", "`**` stands only in front", ""},
	{ALLOW, "*.0.0.1", "ends in a number", "matches no address"},
	{ALLOW, "10.*:443", "the last part", ""},
	{ALLOW, "127.1:80", "an odd spelling", "write 127.0.0.1:80"},
	{ALLOW, "0x0a000001", "an odd spelling", "write 10.0.0.1"},
	{ALLOW, "[::ffff:10.0.0.1]:80", "an odd spelling", "write 10.0.0.1:80"},
	{ALLOW, "2001:db8::1", "stands in brackets", "write [2001:db8::1]"},
	{ALLOW, "2001:db8::/32", "stands in brackets", "write [2001:db8::]/32"},
	{ALLOW, "[2001:db8::/32]", "brackets", ""},
	{ALLOW, "10.1.2.3/24", "bits behind its prefix", "write 10.1.2.0/24"},
	{ALLOW, "10.1.2.3/24:5432", "bits behind its prefix", "write 10.1.2.0/24:5432"},
	{ALLOW, "[2001:db8::1]/32", "bits behind its prefix", "write [2001:db8::]/32"},
	{ALLOW, "10.0.0.0/33", "0 to 32 bits", ""},
	{ALLOW, "10.0.0.0/", "0 to 32 bits", ""},
	{ALLOW, "10.0.0.0/08", "length of a prefix", ""},
	{ALLOW, "[2001:db8::]/129", "0 to 128 bits", ""},
	{ALLOW, "1.2.3.4.5", "ends in a number", ""},
	{ALLOW, "0.0.0.0:80", "never reached", "127.0.0.1:PORT"},
	{ALLOW, "224.0.0.1:80", "multicast addresses are never reached", ""},
	{ALLOW, "198.18.0.0/15:80", "synthetic addresses are never reached", ""},
	{ALLOW, "127.0.0.0/8:80", "only single ports", "127.0.0.1:PORT"},
	{ALLOW, "127.0.0.2:80", "only single ports", ""},
	{ALLOW, "localhost:*", "only single ports", "localhost:PORT"},
	{ALLOW, "*.localhost:80", "is called `localhost`", "localhost:PORT"},
	{ALLOW, "a.localhost:80", "is called `localhost`", ""},
	{LOCAL, "0", "a port is one number", ""},
	{LOCAL, "65536", "a port is one number", ""},
	{LOCAL, "5432/tcp", "a port is one number", ""},
	{LOCAL, "*", "a port is one number", ""},
	{LOCAL, "localhost:80", "a port is one number", ""},
	{DENY, "https://a.b/x", "a path", "write https://a.b"},
	{DENY, "*.localhost", "is called `localhost`", ""},
};

START_TEST(wrong_rules)
{
	for (size_t i = 0; i < ARRAY_LEN(wrongs); i++) {
		struct egress_rule r = {.bits = 77};
		struct err e = {0};

		ck_assert_msg(egress_rule_read(wrongs[i].list, wrongs[i].text, &r, &e) == -1, "%s",
			      wrongs[i].text);
		ck_assert_int_eq(e.code, ERR_CONFIG_INVALID);
		ck_assert_msg(strstr(e.msg, wrongs[i].says) != NULL, "%s: %s", wrongs[i].text,
			      e.msg);
		ck_assert_msg(strstr(e.hint, wrongs[i].hint) != NULL, "%s: %s", wrongs[i].text,
			      e.hint);
		ck_assert_int_eq(r.bits, 77);
	}
}
END_TEST

START_TEST(long_rules)
{
	char text[MAX_EGRESS_HOST_TEXT + 2] = "";
	struct egress_rule r;
	struct err e = {0};

	memset(text, 'a', sizeof(text) - 1);
	CK_FAILS(egress_rule_read(ALLOW, text, &r, &e), e, ERR_CONFIG_INVALID, "more than 300");
	text[MAX_EGRESS_HOST_TEXT] = '\0';
	CK_FAILS(egress_rule_read(ALLOW, text, &r, &e), e, ERR_CONFIG_INVALID, "more than 253");
}
END_TEST

START_TEST(what_it_is_called)
{
	static const char *const rules[] = {"-telemetry.example.com", "+example.com", "=5432",
					    NULL};
	AUTO_EGRESS_SET s = set_of(rules);
	struct egress_said said;

	egress_say(&s, EGRESS_WHY_DEFAULT, -1, "other.com", 443, "", &said);
	ck_assert_str_eq(said.target, "other.com:443");
	ck_assert_str_eq(said.rule, "network.default");
	ck_assert_str_eq(said.hint, "--allow-host other.com");
	egress_say(&s, EGRESS_WHY_PORT, 1, "example.com", 8080, "", &said);
	ck_assert_str_eq(said.rule, "network.default");
	ck_assert_str_eq(said.hint, "--allow-host example.com:8080");
	egress_say(&s, EGRESS_WHY_DENIED, 0, "telemetry.example.com", 443, "", &said);
	ck_assert_str_eq(said.rule, "network.deny[0] telemetry.example.com");
	ck_assert_str_eq(said.hint, "denied by test");
	egress_say(&s, EGRESS_WHY_RULE, 2, "localhost", 5432, "", &said);
	ck_assert_str_eq(said.rule, "network.local[0] 5432");
	egress_say(&s, EGRESS_WHY_CLASS, -1, "example.com", 443, "10.0.0.1", &said);
	ck_assert_str_eq(said.target, "example.com:443");
	ck_assert_str_eq(said.rule, "network.address private");
	ck_assert_str_eq(said.hint, "--allow-host 10.0.0.1");
	egress_say(&s, EGRESS_WHY_CLASS, -1, "169.254.169.254", 80, "", &said);
	ck_assert_str_eq(said.rule, "network.address cloud metadata");
	ck_assert_str_eq(said.hint, "");
	egress_say(&s, EGRESS_WHY_LOOPBACK, -1, "::1", 8080, "", &said);
	ck_assert_str_eq(said.target, "[::1]:8080");
	ck_assert_str_eq(said.rule, "network.local");
	ck_assert_str_eq(said.hint, "--allow-local 8080");
	egress_say(&s, EGRESS_WHY_SNI, -1, "example.com", 443, "", &said);
	ck_assert_str_eq(said.rule, "network.sni");
	egress_say(&s, EGRESS_WHY_DEFAULT, -1, "a.com", 0, "", &said);
	ck_assert_str_eq(said.target, "a.com");
	ck_assert_str_eq(said.hint, "--allow-host a.com");
	/* From a hostile message: only bounded. */
	egress_say(&s, (enum egress_reason)77, 12345, "", 99999, "nonsense", &said);
	ck_assert_str_eq(said.rule, "network.unknown");
}
END_TEST

START_TEST(local_ports)
{
	static const char *const rules[] =
		{"=8080", "=5432", "+127.0.0.1:8080", "+localhost:80", "=22", "-*:22", NULL};
	AUTO_EGRESS_SET s = set_of(rules);
	struct egress_set none = {0};
	uint16_t ports[MAX_EGRESS_LOCALS];

	ck_assert_uint_eq(egress_set_locals(&s, ports), 3);
	ck_assert_uint_eq(ports[0], 80);
	ck_assert_uint_eq(ports[1], 5432);
	ck_assert_uint_eq(ports[2], 8080);
	ck_assert(egress_set_opens(&s) && !egress_set_opens(&none));
	ck_assert_uint_eq(egress_set_locals(&none, ports), 0);
}
END_TEST

START_TEST(limits)
{
	AUTO_EGRESS_SET s = {0};
	AUTO_EGRESS_SET locals = {0};
	struct err e = {0};
	char port[8];

	for (unsigned int i = 0; i < MAX_EGRESS_RULES; i++)
		CK_WORKS(egress_set_add(&s, DENY, "a.com", "test", &e), e);
	CK_FAILS(egress_set_add(&s, DENY, "a.com", "test", &e), e, ERR_CONFIG_INVALID,
		 "more than 1024");
	for (unsigned int i = 1; i <= MAX_EGRESS_LOCALS; i++) {
		(void)snprintf(port, sizeof(port), "%u", i);
		CK_WORKS(egress_set_add(&locals, LOCAL, port, "test", &e), e);
	}
	CK_WORKS(egress_set_add(&locals, ALLOW, "localhost:1", "test", &e), e);
	CK_FAILS(egress_set_add(&locals, ALLOW, "localhost:65", "test", &e), e, ERR_CONFIG_INVALID,
		 "more than 64 ports");
}
END_TEST

START_TEST(coded)
{
	static const char *const rules[] = {"-*:22", "+**.example.com", "+10.0.0.0/8:5432", "=80",
					    NULL};
	AUTO_EGRESS_SET s = set_of(rules);
	AUTO_EGRESS_SET again = {0};
	AUTO_BUF out = BUF_INIT(MAX_EGRESS_BYTES);
	AUTO_BUF twice = BUF_INIT(MAX_EGRESS_BYTES);
	struct egress_set none = {0};
	struct err e = {0};

	CK_WORKS(egress_set_encode(&s, &out, &e), e);
	CK_WORKS(egress_set_decode(out.p, out.n, &again, &e), e);
	ck_assert_uint_eq(again.n, s.n);
	for (size_t i = 0; i < s.n; i++) {
		ck_assert_mem_eq(&again.v[i].rule, &s.v[i].rule, sizeof(s.v[i].rule));
		ck_assert_uint_eq(again.v[i].number, s.v[i].number);
		ck_assert_str_eq(again.v[i].text, s.v[i].text);
		ck_assert_str_eq(again.v[i].origin, s.v[i].origin);
	}
	CK_WORKS(egress_set_encode(&again, &twice, &e), e);
	ck_assert_uint_eq(out.n, twice.n);
	ck_assert_mem_eq(out.p, twice.p, out.n);
	for (size_t n = 0; n < out.n; n++)
		CK_FAILS(egress_set_decode(out.p, n, &none, &e), e, ERR_INTERNAL, "rules about");
	for (size_t i = 0; i < out.n; i++) {
		out.p[i] ^= 1;
		CK_FAILS(egress_set_decode(out.p, out.n, &none, &e), e, ERR_INTERNAL, "rules");
		out.p[i] ^= 1;
	}
	buf_clear(&twice);
	CK_WORKS(egress_set_encode(&none, &twice, &e), e);
	CK_WORKS(egress_set_decode(twice.p, twice.n, &none, &e), e);
	ck_assert(none.n == 0 && !egress_set_opens(&none));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("egress_set");
	TCase *tests = tcase_create("set");

	tcase_add_test(tests, names_and_addresses);
	tcase_add_test(tests, resolved_addresses);
	tcase_add_test(tests, names_to_resolve);
	tcase_add_test(tests, wrong_rules);
	tcase_add_test(tests, long_rules);
	tcase_add_test(tests, what_it_is_called);
	tcase_add_test(tests, local_ports);
	tcase_add_test(tests, limits);
	tcase_add_test(tests, coded);
	suite_add_tcase(suite, tests);
	return suite_run(suite);
}

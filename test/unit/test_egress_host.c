/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests of egress/host and egress/address.
 */
#include "egress/host.h"

#include <arpa/inet.h>

#include "base/base.h"
#include "test_base_suite.h"

struct spelled {
	const char *text;
	enum host_kind kind;
	const char *canonical;
};

/* Letter case, dots, and every form of inet_aton(). CX-DOM-08, srt-124, srt-125, srt-126. */
static const struct spelled good[] = {
	{"example.com", HOST_NAME, "example.com"},
	{"EXAMPLE.com", HOST_NAME, "example.com"},
	{"example.com.", HOST_NAME, "example.com"},
	{"localhost", HOST_NAME, "localhost"},
	{"a_b.example.com", HOST_NAME, "a_b.example.com"},
	{"_dmarc.example.com", HOST_NAME, "_dmarc.example.com"},
	{"xn--bcher-kva.example", HOST_NAME, "xn--bcher-kva.example"},
	{"1.2.3.4.example", HOST_NAME, "1.2.3.4.example"},
	{"0xg", HOST_NAME, "0xg"},
	{"3com", HOST_NAME, "3com"},
	{"127.0.0.1", HOST_V4, "127.0.0.1"},
	{"127.1", HOST_V4, "127.0.0.1"},
	{"127.0.1", HOST_V4, "127.0.0.1"},
	{"2130706433", HOST_V4, "127.0.0.1"},
	{"0x7f.1", HOST_V4, "127.0.0.1"},
	{"0X7F000001", HOST_V4, "127.0.0.1"},
	{"017700000001", HOST_V4, "127.0.0.1"},
	{"0177.0.0.01", HOST_V4, "127.0.0.1"},
	{"1.2.3.4.", HOST_V4, "1.2.3.4"},
	{"2852039166", HOST_V4, "169.254.169.254"},
	{"0", HOST_V4, "0.0.0.0"},
	{"4294967295", HOST_V4, "255.255.255.255"},
	{"10.16777215", HOST_V4, "10.255.255.255"},
	{"::1", HOST_V6, "::1"},
	{"[::1]", HOST_V6, "::1"},
	{"[2001:DB8:0:0:0:0:0:1]", HOST_V6, "2001:db8::1"},
	{"2001:db8:0:0:1:0:0:1", HOST_V6, "2001:db8::1:0:0:1"},
	{"2001:db8:0:1:1:1:1:1", HOST_V6, "2001:db8:0:1:1:1:1:1"},
	{"::", HOST_V6, "::"},
	{"1::", HOST_V6, "1::"},
	{"[::ffff:127.0.0.1]", HOST_V4, "127.0.0.1"},
	{"::ffff:7f00:1", HOST_V4, "127.0.0.1"},
	{"64:ff9b::192.0.2.1", HOST_V6, "64:ff9b::c000:201"},
};

START_TEST(spellings)
{
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		struct host h;
		enum host_bad bad = host_read(good[i].text, strlen(good[i].text), &h);

		ck_assert_msg(bad == HOST_GOOD, "%s: %s", good[i].text, host_bad_text(bad));
		ck_assert_msg(h.kind == good[i].kind, "%s", good[i].text);
		ck_assert_str_eq(h.text, good[i].canonical);
	}
}
END_TEST

struct refused {
	const char *text;
	size_t n; /* 0: strlen */
	enum host_bad why;
};

/* Each class of bad input with its own reason. srt-127. */
static const struct refused bad_hosts[] = {
	{"", 0, HOST_EMPTY},
	{"evil.com\0.allowed.com", 21, HOST_NUL},
	{"a.com\r\n.allowed.com", 0, HOST_CONTROL},
	{"a.com\x7f", 0, HOST_CONTROL},
	{"a\t.com", 0, HOST_CONTROL},
	{" a.com", 0, HOST_SPACE},
	{"a.com ", 0, HOST_SPACE},
	{"b\xc3\xbc"
	 "cher.example",
	 0, HOST_NOT_ASCII},
	{"ex\xd0\xb0mple.com", 0, HOST_NOT_ASCII},
	{"a\xe3\x80\x82"
	 "com",
	 0, HOST_NOT_ASCII},
	{"::ffff:127.0.0.1%x.allowed.com", 0, HOST_PERCENT},
	{"fe80::1%eth0", 0, HOST_PERCENT},
	{"[fe80::1%25eth0]", 0, HOST_PERCENT},
	{"a%2ecom", 0, HOST_PERCENT},
	{"user@a.com", 0, HOST_USERINFO},
	{"user:pw@a.com", 0, HOST_USERINFO},
	{"https://a.com", 0, HOST_SCHEME},
	{"a.com/x", 0, HOST_PATH},
	{"a.com?x", 0, HOST_PATH},
	{"a.com#x", 0, HOST_PATH},
	{"//a.com", 0, HOST_PATH},
	{"a.com:443", 0, HOST_PORT},
	{"a.com:", 0, HOST_PORT},
	{"a:b:c", 0, HOST_CHARACTER},
	{"a.com\\", 0, HOST_CHARACTER},
	{"*.com", 0, HOST_CHARACTER},
	{"a,b", 0, HOST_CHARACTER},
	{"a;b", 0, HOST_CHARACTER},
	{"a'b", 0, HOST_CHARACTER},
	{".", 0, HOST_DOTS},
	{".a.com", 0, HOST_DOTS},
	{"a..com", 0, HOST_DOTS},
	{"a.com..", 0, HOST_DOTS},
	{"-a.com", 0, HOST_HYPHEN},
	{"a-.com", 0, HOST_HYPHEN},
	{"1.2.3.256", 0, HOST_NUMBER},
	{"1.2.3.4.5", 0, HOST_NUMBER},
	{"256.1", 0, HOST_NUMBER},
	{"08", 0, HOST_NUMBER},
	{"1.2.3.09", 0, HOST_NUMBER},
	{"4294967296", 0, HOST_NUMBER},
	{"99999999999999999999999999", 0, HOST_NUMBER},
	{"a.com.1", 0, HOST_NUMBER},
	{"a.0x7f", 0, HOST_NUMBER},
	{"0x", 0, HOST_NUMBER},
	{"[1.2.3.4]", 0, HOST_BRACKETS},
	{"[a.com]", 0, HOST_BRACKETS},
	{"[]", 0, HOST_BRACKETS},
	{"[::1", 0, HOST_BRACKETS},
	{"::1]", 0, HOST_BRACKETS},
	{"[[::1]]", 0, HOST_BRACKETS},
	{"[::1]x", 0, HOST_BRACKETS},
	{":", 0, HOST_PORT},
	{":::", 0, HOST_CHARACTER},
	{"1:2:3:4:5:6:7:8:9", 0, HOST_CHARACTER},
	{"::1::", 0, HOST_CHARACTER},
};

START_TEST(refusals)
{
	for (size_t i = 0; i < ARRAY_LEN(bad_hosts); i++) {
		struct host h = {.kind = HOST_V6, .text = "untouched"};
		const char *s = bad_hosts[i].text;
		enum host_bad bad = host_read(s, bad_hosts[i].n ? bad_hosts[i].n : strlen(s), &h);

		ck_assert_msg(bad == bad_hosts[i].why, "%s: %s", s, host_bad_text(bad));
		ck_assert_str_eq(h.text, "untouched");
	}
	for (unsigned int i = 0; i < HOST_BADS; i++)
		for (unsigned int k = 0; k < i; k++)
			ck_assert_str_ne(host_bad_text(i), host_bad_text(k));
}
END_TEST

START_TEST(lengths)
{
	char text[MAX_HOST_INPUT + 2];
	struct host h;

	memset(text, 'a', sizeof(text));
	ck_assert_int_eq(host_read(text, 63, &h), HOST_GOOD);
	ck_assert_int_eq(host_read(text, 64, &h), HOST_LONG);
	for (size_t i = 63; i < sizeof(text); i += 64)
		text[i] = '.';
	ck_assert_int_eq(host_read(text, 253, &h), HOST_GOOD);
	ck_assert_int_eq(host_read(text, 254, &h), HOST_LONG);
	text[253] = '.';
	ck_assert_int_eq(host_read(text, 254, &h), HOST_GOOD);
	ck_assert_uint_eq(strlen(h.text), 253);
	ck_assert_int_eq(host_read(text, 256, &h), HOST_LONG);
	ck_assert_int_eq(host_read(text, MAX_HOST_INPUT + 1, &h), HOST_LONG);
	/* The length counts, not a NUL behind it. */
	ck_assert_int_eq(host_read("a.com:443", 5, &h), HOST_GOOD);
}
END_TEST

START_TEST(with_ports)
{
	struct {
		const char *text;
		uint16_t other, port;
		const char *host;
		enum host_bad bad;
	} rows[] = {
		{"a.com:80", 0, 80, "a.com", 0},
		{"a.com", 443, 443, "a.com", 0},
		{"[::1]:65535", 0, 65535, "::1", 0},
		{"[::1]", 80, 80, "::1", 0},
		{"::1", 80, 80, "::1", 0},
		{"127.1:80", 0, 80, "127.0.0.1", 0},
		{"a.com", 0, 0, NULL, HOST_PORT},
		{"a.com:", 443, 0, NULL, HOST_PORT},
		{"a.com:0", 443, 0, NULL, HOST_PORT},
		{"a.com:65536", 443, 0, NULL, HOST_PORT},
		{"a.com:080", 443, 0, NULL, HOST_PORT},
		{"a.com:+80", 443, 0, NULL, HOST_PORT},
		{"a.com:80x", 443, 0, NULL, HOST_PORT},
		{"[::1]80", 443, 0, NULL, HOST_PORT},
		{":80", 443, 0, NULL, HOST_EMPTY},
		{"a.com: 80", 443, 0, NULL, HOST_SPACE},
		{"", 443, 0, NULL, HOST_EMPTY},
		{"a:1:2", 443, 0, NULL, HOST_CHARACTER},
		{"a@b:80", 443, 0, NULL, HOST_USERINFO},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct host h = {.kind = HOST_NAME};
		uint16_t port = 7;
		enum host_bad bad = host_port_read(rows[i].text, strlen(rows[i].text),
						   rows[i].other, &h, &port);

		ck_assert_msg(bad == rows[i].bad, "%s: %s", rows[i].text, host_bad_text(bad));
		ck_assert_uint_eq(port, rows[i].host ? rows[i].port : 7);
		if (rows[i].host)
			ck_assert_str_eq(h.text, rows[i].host);
	}
}
END_TEST

/* Our parser takes what inet_pton() takes, and nothing else; our text is read back. */
START_TEST(same_as_libc)
{
	static const char alphabet[] = "01fa:::..2";
	unsigned char want[16];

	(void)suite_seed();
	for (unsigned int i = 0; i < 60000; i++) {
		char text[24];
		size_t n = (size_t)random() % (sizeof(text) - 1);
		struct address a;

		for (size_t k = 0; k < n; k++)
			text[k] = alphabet[(size_t)random() % (sizeof(alphabet) - 1)];
		text[n] = '\0';
		bool six = strchr(text, ':') != NULL;
		bool libc = inet_pton(six ? AF_INET6 : AF_INET, text, want) == 1;
		ck_assert_msg(address_parse(text, &a) == libc, "%s", text);
		if (libc)
			ck_assert_mem_eq(a.b, want, six ? 16 : 4);
	}
	for (unsigned int i = 0; i < 20000; i++) {
		struct address a = {.family = 6};
		struct address again;
		char text[ADDRESS_TEXT];
		char libc[ADDRESS_TEXT];

		for (size_t k = 0; k < 16; k++)
			a.b[k] = random() % 3 ? 0 : (unsigned char)random();
		ck_assert(address_parse(address_format(&a, text), &again));
		ck_assert_mem_eq(&a, &again, sizeof(a));
		ck_assert_ptr_nonnull(inet_ntop(AF_INET6, a.b, libc, sizeof(libc)));
		/* It writes ::1.2.3.4 for the compatible form, which is given up. */
		if (!strchr(libc, '.'))
			ck_assert_str_eq(text, libc);
	}
}
END_TEST

struct classed {
	const char *text;
	enum address_class class;
};

static const struct classed classes[] = {
	{"8.8.8.8", ADDRESS_PUBLIC},
	{"0.0.0.0", ADDRESS_UNSPECIFIED},
	{"0.1.2.3", ADDRESS_UNSPECIFIED},
	{"127.0.0.1", ADDRESS_LOOPBACK},
	{"127.255.255.255", ADDRESS_LOOPBACK},
	{"126.255.255.255", ADDRESS_PUBLIC},
	{"128.0.0.0", ADDRESS_PUBLIC},
	{"10.0.0.0", ADDRESS_PRIVATE},
	{"10.255.255.255", ADDRESS_PRIVATE},
	{"11.0.0.0", ADDRESS_PUBLIC},
	{"172.15.255.255", ADDRESS_PUBLIC},
	{"172.16.0.0", ADDRESS_PRIVATE},
	{"172.31.255.255", ADDRESS_PRIVATE},
	{"172.32.0.0", ADDRESS_PUBLIC},
	{"192.168.0.0", ADDRESS_PRIVATE},
	{"192.169.0.0", ADDRESS_PUBLIC},
	{"169.254.1.1", ADDRESS_LINK_LOCAL},
	{"169.254.169.254", ADDRESS_METADATA},
	{"169.254.170.2", ADDRESS_METADATA},
	{"100.64.0.0", ADDRESS_SHARED},
	{"100.127.255.255", ADDRESS_SHARED},
	{"100.128.0.0", ADDRESS_PUBLIC},
	{"100.63.255.255", ADDRESS_PUBLIC},
	{"100.100.100.200", ADDRESS_METADATA},
	{"168.63.129.16", ADDRESS_METADATA},
	{"168.63.129.17", ADDRESS_PUBLIC},
	{"192.0.0.1", ADDRESS_RESERVED},
	{"192.0.0.192", ADDRESS_METADATA},
	{"192.0.2.1", ADDRESS_DOCUMENTATION},
	{"198.51.100.1", ADDRESS_DOCUMENTATION},
	{"203.0.113.255", ADDRESS_DOCUMENTATION},
	{"198.17.255.255", ADDRESS_PUBLIC},
	{"198.18.0.0", ADDRESS_SYNTHETIC},
	{"198.19.255.255", ADDRESS_SYNTHETIC},
	{"198.20.0.0", ADDRESS_PUBLIC},
	{"224.0.0.1", ADDRESS_MULTICAST},
	{"239.255.255.255", ADDRESS_MULTICAST},
	{"240.0.0.0", ADDRESS_RESERVED},
	{"255.255.255.254", ADDRESS_RESERVED},
	{"255.255.255.255", ADDRESS_BROADCAST},
	{"2606:4700::1111", ADDRESS_PUBLIC},
	{"::", ADDRESS_UNSPECIFIED},
	{"::1", ADDRESS_LOOPBACK},
	{"::2", ADDRESS_RESERVED},
	{"fe80::1", ADDRESS_LINK_LOCAL},
	{"febf::1", ADDRESS_LINK_LOCAL},
	{"fec0::1", ADDRESS_SITE_LOCAL},
	{"fc00::1", ADDRESS_UNIQUE_LOCAL},
	{"fdff::1", ADDRESS_UNIQUE_LOCAL},
	{"fd00:ec2::254", ADDRESS_METADATA},
	{"fd20:ce::254", ADDRESS_METADATA},
	{"fe80::a9fe:a9fe", ADDRESS_METADATA},
	{"fd53:616e:6467::c612:1", ADDRESS_SYNTHETIC},
	{"fd53:616e:6467:0:1::", ADDRESS_UNIQUE_LOCAL},
	{"ff02::1", ADDRESS_MULTICAST},
	{"2001:db8::1", ADDRESS_DOCUMENTATION},
	{"3fff::1", ADDRESS_DOCUMENTATION},
	{"3fff:1000::", ADDRESS_PUBLIC},
	{"100::1", ADDRESS_RESERVED},
	{"5f00::1", ADDRESS_RESERVED},
	{"2001:2::1", ADDRESS_RESERVED},
	{"2001:20::1", ADDRESS_RESERVED},
	{"2001:200::1", ADDRESS_PUBLIC},
	/* IPv4 inside: mapped, translated, compatible, 6to4, NAT64, Teredo, ISATAP. */
	{"::ffff:10.0.0.1", ADDRESS_PRIVATE},
	{"::ffff:8.8.8.8", ADDRESS_PUBLIC},
	{"::ffff:0:127.0.0.1", ADDRESS_LOOPBACK},
	{"::ffff:0:8.8.8.8", ADDRESS_RESERVED},
	{"::127.0.0.1", ADDRESS_LOOPBACK},
	{"::169.254.169.254", ADDRESS_METADATA},
	{"::8.8.8.8", ADDRESS_RESERVED},
	{"2002:7f00:1::", ADDRESS_LOOPBACK},
	{"2002:a9fe:a9fe::1", ADDRESS_METADATA},
	{"2002:808:808::1", ADDRESS_PUBLIC},
	{"64:ff9b::10.1.2.3", ADDRESS_PRIVATE},
	{"64:ff9b::8.8.8.8", ADDRESS_PUBLIC},
	{"64:ff9b:1::8.8.8.8", ADDRESS_UNSPECIFIED},
	{"64:ff9b:1:808:8:800:808:808", ADDRESS_PRIVATE},
	{"64:ff9b:1:7f00:0:100:808:808", ADDRESS_LOOPBACK},
	{"2001:0:808:808::80ff:fffe", ADDRESS_LOOPBACK}, /* client 127.0.0.1, inverted */
	{"2001:0:808:808::f7f7:f7f7", ADDRESS_PUBLIC},
	{"2001:0:a00:1::f7f7:f7f7", ADDRESS_PRIVATE}, /* its server */
	{"2606:4700::5efe:10.0.0.1", ADDRESS_PRIVATE},
	{"2606:4700::200:5efe:127.0.0.1", ADDRESS_LOOPBACK},
	{"2606:4700::5efe:8.8.8.8", ADDRESS_PUBLIC},
};

START_TEST(classes_of_addresses)
{
	for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
		struct address a;

		ck_assert_msg(address_parse(classes[i].text, &a), "%s", classes[i].text);
		enum address_class class = address_class(&a);
		ck_assert_msg(class == classes[i].class, "%s is %s", classes[i].text,
			      address_class_name(class));
	}
}
END_TEST

START_TEST(prefixes)
{
	struct address a;
	struct address b;

	ck_assert(address_parse("10.1.2.3", &a) && address_parse("10.1.0.0", &b));
	ck_assert(address_in(&a, &b, 0) && address_in(&a, &b, 16) && address_in(&a, &b, 22));
	ck_assert(!address_in(&a, &b, 23) && !address_in(&a, &b, 32) && !address_in(&a, &b, 33));
	ck_assert(address_prefix_uniform(&b, 16));
	ck_assert(address_parse("0.0.0.0", &a) && !address_prefix_uniform(&a, 0));
	ck_assert(address_parse("::", &b) && !address_in(&a, &b, 0));
	ck_assert(!address_prefix_uniform(&b, 0));
	ck_assert(address_parse("fc00::", &b) && address_prefix_uniform(&b, 7));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("egress_host");
	TCase *tests = tcase_create("host");

	tcase_add_test(tests, spellings);
	tcase_add_test(tests, refusals);
	tcase_add_test(tests, lengths);
	tcase_add_test(tests, with_ports);
	tcase_add_test(tests, same_as_libc);
	tcase_add_test(tests, classes_of_addresses);
	tcase_add_test(tests, prefixes);
	suite_add_tcase(suite, tests);
	return suite_run(suite);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts from bytes that are not believed. Nothing is decoded, resolved or looked
 * up; what could be read in two ways is refused.
 */
#include "egress/host.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"

static const char *const texts[HOST_BADS] = {
	[HOST_GOOD] = "a host",
	[HOST_EMPTY] = "no host at all",
	[HOST_LONG] = "a name of more than 253 bytes, or a part of it of more than 63",
	[HOST_NUL] = "a NUL byte in the name",
	[HOST_CONTROL] = "a control byte in the name",
	[HOST_SPACE] = "a blank in the name",
	[HOST_NOT_ASCII] = "letters that are not ASCII: write the xn-- form of the name",
	[HOST_PERCENT] = "a percent sign: names are not escaped, and IPv6 zones are not taken",
	[HOST_USERINFO] = "a user (`@`) where only a host may stand",
	[HOST_SCHEME] = "a scheme (`://`) where only a host may stand",
	[HOST_PATH] = "a path, query or fragment where only a host may stand",
	[HOST_PORT] = "a port that is not one number from 1 to 65535, or stands where none may",
	[HOST_CHARACTER] = "a character that no name has",
	[HOST_DOTS] = "an empty part: a dot in front, or two dots",
	[HOST_HYPHEN] = "a part that begins or ends with a hyphen",
	[HOST_NUMBER] = "a name that ends in a number and is no IPv4 address",
	[HOST_BRACKETS] = "brackets that do not hold one IPv6 address",
};

const char *host_bad_text(enum host_bad bad)
{
	return bad < HOST_BADS ? texts[bad] : "unknown";
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_name_char(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || c == '-' || c == '_' || c == '.';
}

/* What no part of a host may hold, whatever it is. `:` and brackets are for later. */
static enum host_bad scan(const char *s, size_t n)
{
	bool scheme = false;
	enum host_bad found = HOST_GOOD;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];
		if (c == 0)
			return HOST_NUL;
		if (c < 0x20 || c == 0x7f)
			return HOST_CONTROL;
		if (c == ' ')
			return HOST_SPACE;
		if (c > 0x7f)
			return HOST_NOT_ASCII;
		if (found != HOST_GOOD)
			continue;
		if (c == '%')
			found = HOST_PERCENT;
		else if (c == '@')
			found = HOST_USERINFO;
		else if (c == '/' || c == '?' || c == '#')
			found = HOST_PATH;
		scheme = found == HOST_PATH && i > 1 && s[i - 1] == ':' && i + 1 < n &&
			 s[i + 1] == '/';
	}
	return scheme ? HOST_SCHEME : found;
}

/* One part of an old IPv4 form: decimal, 0 octal, 0x hexadecimal. */
static bool read_part(const char *s, size_t n, uint64_t *ret)
{
	unsigned int base = 10;
	uint64_t v = 0;

	if (n > 1 && s[0] == '0') {
		base = s[1] == 'x' ? 16 : 8;
		s += base == 16 ? 2 : 1;
		n -= base == 16 ? 2 : 1;
	}
	if (n == 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		unsigned int d = is_digit(s[i])               ? (unsigned int)(s[i] - '0')
				 : s[i] >= 'a' && s[i] <= 'f' ? (unsigned int)(s[i] - 'a') + 10
							      : 16;
		if (d >= base || v > UINT32_MAX)
			return false;
		v = v * base + d;
	}
	*ret = v;
	return v <= UINT32_MAX;
}

/* All forms of inet_aton(): the last part fills what the others leave. */
static bool read_v4(const char *s, size_t n, struct address *ret)
{
	uint64_t parts[4];
	size_t count = 0;
	uint64_t v = 0;

	for (size_t from = 0; from <= n;) {
		const char *dot = memchr(s + from, '.', n - from);
		size_t len = dot ? (size_t)(dot - s) - from : n - from;
		if (count == 4 || !read_part(s + from, len, &parts[count++]))
			return false;
		from += len + 1;
	}
	for (size_t i = 0; i + 1 < count; i++) {
		if (parts[i] > 255)
			return false;
		v |= parts[i] << (24 - 8 * i);
	}
	if (parts[count - 1] >> (8 * (5 - count)))
		return false;
	v |= parts[count - 1];
	*ret = (struct address){.family = 4,
				.b = {(unsigned char)(v >> 24), (unsigned char)(v >> 16),
				      (unsigned char)(v >> 8), (unsigned char)v}};
	return true;
}

/* Some resolver would take the name for an address: its last part is a number. */
static bool ends_in_number(const char *s, size_t n)
{
	size_t from = n;

	while (from > 0 && s[from - 1] != '.')
		from--;
	s += from;
	n -= from;
	bool hex = n > 1 && s[0] == '0' && s[1] == 'x';
	return strspn(s + (hex ? 2 : 0), hex ? "0123456789abcdef" : "0123456789") ==
	       n - (hex ? 2 : 0);
}

static enum host_bad check_labels(const char *s, size_t n)
{
	if (n == 0)
		return HOST_DOTS;
	if (n > MAX_HOST_NAME)
		return HOST_LONG;
	for (size_t from = 0; from <= n;) {
		const char *dot = memchr(s + from, '.', n - from);
		size_t len = dot ? (size_t)(dot - s) - from : n - from;
		if (len == 0)
			return HOST_DOTS;
		if (len > MAX_HOST_LABEL)
			return HOST_LONG;
		if (s[from] == '-' || s[from + len - 1] == '-')
			return HOST_HYPHEN;
		from += len + 1;
	}
	return HOST_GOOD;
}

void host_of_address(const struct address *a, struct host *ret)
{
	struct host h = {.addr = *a};

	address_unmap(&h.addr);
	h.kind = h.addr.family == 4 ? HOST_V4 : HOST_V6;
	(void)address_format(&h.addr, h.text);
	*ret = h;
}

static bool read_v6(const char *s, size_t n, struct host *ret)
{
	char text[ADDRESS_TEXT];
	struct address a;

	if (n >= sizeof(text))
		return false;
	memcpy(text, s, n);
	text[n] = '\0';
	if (!strchr(text, ':') || !address_parse(text, &a))
		return false;
	host_of_address(&a, ret);
	return true;
}

static enum host_bad read_colon(const char *s, size_t n, struct host *ret)
{
	const char *first = memchr(s, ':', n);

	if (read_v6(s, n, ret))
		return HOST_GOOD;
	return memchr(first + 1, ':', n - (size_t)(first + 1 - s)) ? HOST_CHARACTER : HOST_PORT;
}

static enum host_bad read_name(const char *s, size_t n, struct host *ret)
{
	struct host h = {.kind = HOST_NAME};

	if (s[n - 1] == '.')
		n--;
	if (n >= sizeof(h.text))
		return HOST_LONG;
	for (size_t i = 0; i < n; i++) {
		h.text[i] = s[i] >= 'A' && s[i] <= 'Z' ? (char)(s[i] | 0x20) : s[i];
		if (!is_name_char(h.text[i]))
			return HOST_CHARACTER;
	}
	enum host_bad bad = check_labels(h.text, n);
	if (bad != HOST_GOOD)
		return bad;
	if (ends_in_number(h.text, n)) {
		if (!read_v4(h.text, n, &h.addr))
			return HOST_NUMBER;
		host_of_address(&h.addr, &h);
	}
	*ret = h;
	return HOST_GOOD;
}

enum host_bad host_read(const void *p, size_t n, struct host *ret)
{
	const char *s = p;

	if (n == 0)
		return HOST_EMPTY;
	if (n > MAX_HOST_INPUT)
		return HOST_LONG;
	enum host_bad bad = scan(s, n);
	if (bad != HOST_GOOD)
		return bad;
	if (s[0] == '[')
		return s[n - 1] == ']' && n > 2 && read_v6(s + 1, n - 2, ret) ? HOST_GOOD
									      : HOST_BRACKETS;
	if (memchr(s, '[', n) || memchr(s, ']', n))
		return HOST_BRACKETS;
	if (memchr(s, ':', n))
		return read_colon(s, n, ret);
	return read_name(s, n, ret);
}

static bool read_port(const char *s, size_t n, uint16_t *ret)
{
	uint32_t v = 0;

	if (n == 0 || n > 5 || s[0] == '0')
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!is_digit(s[i]))
			return false;
		v = v * 10 + (uint32_t)(s[i] - '0');
	}
	if (v > 65535)
		return false;
	*ret = (uint16_t)v;
	return true;
}

/* Where the host ends: at its port's colon, or n. */
static size_t host_end(const char *s, size_t n)
{
	const char *close = n && s[0] == '[' ? memchr(s, ']', n) : NULL;
	const char *colon = memchr(s, ':', n);

	if (close)
		return (size_t)(close + 1 - s);
	/* More than one colon and no brackets: an IPv6 address without a port. */
	if (!colon || memchr(colon + 1, ':', n - (size_t)(colon + 1 - s)))
		return n;
	return (size_t)(colon - s);
}

enum host_bad host_port_read(const void *p, size_t n, uint16_t default_port, struct host *ret,
			     uint16_t *ret_port)
{
	const char *s = p;
	struct host h;
	uint16_t port = default_port;

	if (n > MAX_HOST_INPUT)
		return HOST_LONG;
	enum host_bad bad = n ? scan(s, n) : HOST_EMPTY;
	if (bad != HOST_GOOD)
		return bad;
	size_t end = host_end(s, n);
	bad = host_read(s, end, &h);
	if (bad != HOST_GOOD)
		return bad;
	if (end == n ? !port : s[end] != ':' || !read_port(s + end + 1, n - end - 1, &port))
		return HOST_PORT;
	*ret = h;
	*ret_port = port;
	return HOST_GOOD;
}

bool host_is_loopback(const struct host *h)
{
	static const char name[] = "localhost";
	size_t n = strlen(h->text);
	size_t tail = sizeof(name) - 1;

	if (h->kind != HOST_NAME)
		return address_class(&h->addr) == ADDRESS_LOOPBACK;
	return n >= tail && strcmp(h->text + n - tail, name) == 0 &&
	       (n == tail || h->text[n - tail - 1] == '.');
}

const char *host_port_format(const struct host *h, uint16_t port, char ret[HOST_PORT_TEXT])
{
	bool v6 = h->kind == HOST_V6;

	(void)snprintf(ret, HOST_PORT_TEXT, "%s%s%s:%u", v6 ? "[" : "", h->text, v6 ? "]" : "",
		       port);
	return ret;
}

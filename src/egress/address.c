/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classes of addresses by IANA's special-purpose registries (RFC 6890 and what it
 * was updated with), and strict texts of them. The parsers are our own, so that
 * front and proxy, which have different C libraries, cannot read one text in two ways.
 */
#include "egress/address.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"

struct block4 {
	uint32_t first;
	uint8_t bits;
	uint8_t class;
};

/* The first that fits counts, so single addresses stand before their block. */
static const struct block4 blocks4[] = {
	{0xa9fea9fe, 32, ADDRESS_METADATA}, /* 169.254.169.254: AWS, Azure, GCP, OCI, OpenStack, … */
	{0xa9fea9fc, 32, ADDRESS_METADATA}, /* 169.254.169.252: GKE's metadata server */
	{0xa9feaa02, 32, ADDRESS_METADATA}, /* 169.254.170.2: credentials of ECS tasks */
	{0xa9feaa17, 32, ADDRESS_METADATA}, /* 169.254.170.23: credentials of EKS pods */
	{0xa9fe0017, 32, ADDRESS_METADATA}, /* 169.254.0.23: Tencent */
	{0xa9fe2a2a, 32, ADDRESS_METADATA}, /* 169.254.42.42: Scaleway */
	{0x646464c8, 32, ADDRESS_METADATA}, /* 100.100.100.200: Alibaba */
	{0xa83f8110, 32, ADDRESS_METADATA}, /* 168.63.129.16: Azure's wire server */
	{0xc00000c0, 32, ADDRESS_METADATA}, /* 192.0.0.192: Oracle's older clouds */
	{0x00000000, 8, ADDRESS_UNSPECIFIED},    {0x0a000000, 8, ADDRESS_PRIVATE},
	{0x64400000, 10, ADDRESS_SHARED},        {0x7f000000, 8, ADDRESS_LOOPBACK},
	{0xa9fe0000, 16, ADDRESS_LINK_LOCAL},    {0xac100000, 12, ADDRESS_PRIVATE},
	{0xc0000000, 24, ADDRESS_RESERVED},      /* IETF protocols, RFC 6890 2.1 */
	{0xc0000200, 24, ADDRESS_DOCUMENTATION}, /* TEST-NET-1, RFC 5737 */
	{0xc0586300, 24, ADDRESS_RESERVED},      /* 6to4 relays, given up by RFC 7526 */
	{0xc0a80000, 16, ADDRESS_PRIVATE},       {SYNTHETIC4, SYNTHETIC4_BITS, ADDRESS_SYNTHETIC},
	{0xc6336400, 24, ADDRESS_DOCUMENTATION}, /* TEST-NET-2 */
	{0xcb007100, 24, ADDRESS_DOCUMENTATION}, /* TEST-NET-3 */
	{0xe9fc0000, 24, ADDRESS_DOCUMENTATION}, /* MCAST-TEST-NET, RFC 6676 */
	{0xe0000000, 4, ADDRESS_MULTICAST},      {0xffffffff, 32, ADDRESS_BROADCAST},
	{0xf0000000, 4, ADDRESS_RESERVED},
};

struct block6 {
	unsigned char first[16];
	uint8_t bits;
	uint8_t class;
};

static const struct block6 blocks6[] = {
	/* fd00:ec2::254, fd00:ec2::23: AWS; fd20:ce::254: GCP; fd00:c1::a9fe:a9fe: OCI;
	 * fd00:42::42: Scaleway; fe80::a9fe:a9fe: OpenStack */
	{{0xfd, 0, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54}, 128, ADDRESS_METADATA},
	{{0xfd, 0, 0x0e, 0xc2, [15] = 0x23}, 128, ADDRESS_METADATA},
	{{0xfd, 0x20, 0, 0xce, [14] = 0x02, [15] = 0x54}, 128, ADDRESS_METADATA},
	{{0xfd, 0, 0, 0xc1, [12] = 0xa9, 0xfe, 0xa9, 0xfe}, 128, ADDRESS_METADATA},
	{{0xfd, 0, 0, 0x42, [15] = 0x42}, 128, ADDRESS_METADATA},
	{{0xfe, 0x80, [12] = 0xa9, 0xfe, 0xa9, 0xfe}, 128, ADDRESS_METADATA},
	{{0}, 128, ADDRESS_UNSPECIFIED},
	{{[15] = 1}, 128, ADDRESS_LOOPBACK},
	{{0xfd, 0x53, 0x61, 0x6e, 0x64, 0x67}, SYNTHETIC6_BITS, ADDRESS_SYNTHETIC},
	{{0xfc}, 7, ADDRESS_UNIQUE_LOCAL},
	{{0xfe, 0x80}, 10, ADDRESS_LINK_LOCAL},
	{{0xfe, 0xc0}, 10, ADDRESS_SITE_LOCAL},
	{{0xff}, 8, ADDRESS_MULTICAST},
	{{0, 0x64, 0xff, 0x9b, 0, 1}, 48, ADDRESS_PRIVATE}, /* local NAT64, RFC 8215 */
	{{0, 0x64, 0xff, 0x9b}, 96, ADDRESS_PUBLIC},        /* NAT64, RFC 6052 */
	{{[10] = 0xff, 0xff}, 96, ADDRESS_PUBLIC},          /* mapped */
	{{0x20, 0x01, 0x0d, 0xb8}, 32, ADDRESS_DOCUMENTATION},
	{{0x3f, 0xff}, 20, ADDRESS_DOCUMENTATION},  /* RFC 9637 */
	{{0x20, 0x01, 0, 0}, 32, ADDRESS_PUBLIC},   /* Teredo */
	{{0x20, 0x01, 0, 0}, 23, ADDRESS_RESERVED}, /* IETF protocols, RFC 2928 */
	{{0x20}, 3, ADDRESS_PUBLIC},                /* RFC 4291 2.4 */
	{{0}, 0, ADDRESS_RESERVED},
};

const char *address_class_name(enum address_class class)
{
	static const char *const names[ADDRESS_CLASSES] = {
		[ADDRESS_PUBLIC] = "public",           [ADDRESS_UNSPECIFIED] = "unspecified",
		[ADDRESS_LOOPBACK] = "loopback",       [ADDRESS_PRIVATE] = "private",
		[ADDRESS_LINK_LOCAL] = "link-local",   [ADDRESS_SHARED] = "carrier-grade NAT",
		[ADDRESS_METADATA] = "cloud metadata", [ADDRESS_UNIQUE_LOCAL] = "unique local",
		[ADDRESS_SITE_LOCAL] = "site-local",   [ADDRESS_MULTICAST] = "multicast",
		[ADDRESS_BROADCAST] = "broadcast",     [ADDRESS_DOCUMENTATION] = "documentation",
		[ADDRESS_SYNTHETIC] = "synthetic",     [ADDRESS_RESERVED] = "reserved",
	};

	return class < ADDRESS_CLASSES ? names[class] : "unknown";
}

bool address_class_can_open(enum address_class class)
{
	switch (class) {
	case ADDRESS_UNSPECIFIED:
	case ADDRESS_LOOPBACK:
	case ADDRESS_MULTICAST:
	case ADDRESS_BROADCAST:
	case ADDRESS_SYNTHETIC:
	case ADDRESS_CLASSES:
		return false;
	case ADDRESS_PUBLIC:
	case ADDRESS_PRIVATE:
	case ADDRESS_LINK_LOCAL:
	case ADDRESS_SHARED:
	case ADDRESS_METADATA:
	case ADDRESS_UNIQUE_LOCAL:
	case ADDRESS_SITE_LOCAL:
	case ADDRESS_DOCUMENTATION:
	case ADDRESS_RESERVED:
		return true;
	}
	return false;
}

static bool bits_equal(const unsigned char *a, const unsigned char *b, unsigned int bits)
{
	unsigned int whole = bits / 8;
	unsigned int rest = bits % 8;

	if (memcmp(a, b, whole) != 0)
		return false;
	return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

bool address_in(const struct address *a, const struct address *prefix, unsigned int bits)
{
	return a->family == prefix->family && bits <= (a->family == 4 ? 32u : 128u) &&
	       bits_equal(a->b, prefix->b, bits);
}

static enum address_class class4(const unsigned char *b)
{
	uint32_t v = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];

	for (size_t i = 0; i < ARRAY_LEN(blocks4); i++)
		if ((v ^ blocks4[i].first) >> (32 - blocks4[i].bits) == 0)
			return (enum address_class)blocks4[i].class;
	return ADDRESS_PUBLIC;
}

static bool all_zero(const unsigned char *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (b[i])
			return false;
	return true;
}

static bool is_mapped(const unsigned char *b)
{
	return all_zero(b, 10) && b[10] == 0xff && b[11] == 0xff;
}

static void carry(const unsigned char *b, struct address *ret)
{
	/* b may lie in *ret. */
	*ret = (struct address){.family = 4, .b = {b[0], b[1], b[2], b[3]}};
}

size_t address_carried(const struct address *a, struct address ret[MAX_ADDRESS_CARRIED])
{
	static const unsigned char nat64[12] = {0, 0x64, 0xff, 0x9b};
	static const unsigned char nat64_local[6] = {0, 0x64, 0xff, 0x9b, 0, 1};
	static const unsigned char teredo[4] = {0x20, 0x01};
	const unsigned char *b = a->b;

	if (a->family != 6)
		return 0;
	/* ::ffff:a.b.c.d, ::a.b.c.d (but not :: and ::1), ::ffff:0:a.b.c.d (RFC 2765), 64:ff9b:: */
	if (is_mapped(b) || (all_zero(b, 12) && !all_zero(b + 12, 3)) ||
	    (all_zero(b, 8) && b[8] == 0xff && b[9] == 0xff && !b[10] && !b[11]) ||
	    memcmp(b, nat64, sizeof(nat64)) == 0) {
		carry(b + 12, &ret[0]);
		return 1;
	}
	if (memcmp(b, nat64_local, sizeof(nat64_local)) == 0) {
		/* A prefix of 96 or of 48 bits (RFC 6052 2.2: bits 64 to 71 are skipped). */
		carry(b + 12, &ret[0]);
		carry((const unsigned char[]){b[6], b[7], b[9], b[10]}, &ret[1]);
		return 2;
	}
	if (b[0] == 0x20 && b[1] == 0x02) { /* 6to4 */
		carry(b + 2, &ret[0]);
		return 1;
	}
	if (memcmp(b, teredo, sizeof(teredo)) == 0) { /* the client's is written inverted */
		carry((const unsigned char[]){b[12] ^ 0xffu, b[13] ^ 0xffu, b[14] ^ 0xffu,
					      b[15] ^ 0xffu},
		      &ret[0]);
		carry(b + 4, &ret[1]);
		return 2;
	}
	if ((b[8] & 0xfdu) == 0 && !b[9] && b[10] == 0x5e && b[11] == 0xfe) { /* ISATAP */
		carry(b + 12, &ret[0]);
		return 1;
	}
	return 0;
}

enum address_class address_class(const struct address *a)
{
	struct address in[MAX_ADDRESS_CARRIED];

	if (a->family == 4)
		return class4(a->b);
	if (a->family != 6)
		return ADDRESS_RESERVED;
	size_t n = address_carried(a, in);
	for (size_t i = 0; i < n; i++) {
		enum address_class inner = class4(in[i].b);
		if (inner != ADDRESS_PUBLIC)
			return inner;
	}
	for (size_t i = 0; i < ARRAY_LEN(blocks6); i++)
		if (bits_equal(a->b, blocks6[i].first, blocks6[i].bits))
			return (enum address_class)blocks6[i].class;
	return ADDRESS_RESERVED;
}

void address_unmap(struct address *a)
{
	if (a->family == 6 && is_mapped(a->b))
		carry(a->b + 12, a);
}

bool address_prefix_uniform(const struct address *first, unsigned int bits)
{
	struct address last = *first;
	unsigned int whole = first->family == 4 ? 32 : 128;

	for (unsigned int i = bits; i < whole; i++)
		last.b[i / 8] |= (unsigned char)(0x80u >> (i % 8));
	return address_class(first) == address_class(&last);
}

/* The longest run of two or more zero groups, the first of equals (RFC 5952 4.2). */
static size_t longest_zeros(const uint16_t g[8], size_t *ret_n)
{
	size_t best = 8;
	size_t best_n = 1;

	for (size_t i = 0; i < 8;) {
		size_t n = 0;
		while (i + n < 8 && g[i + n] == 0)
			n++;
		if (n > best_n) {
			best = i;
			best_n = n;
		}
		i += n + 1;
	}
	*ret_n = best == 8 ? 0 : best_n;
	return best;
}

const char *address_format(const struct address *a, char ret[ADDRESS_TEXT])
{
	uint16_t g[8];
	size_t zeros_n = 0;
	size_t n = 0;

	if (a->family == 4) {
		(void)snprintf(ret, ADDRESS_TEXT, "%u.%u.%u.%u", a->b[0], a->b[1], a->b[2],
			       a->b[3]);
		return ret;
	}
	if (is_mapped(a->b)) {
		(void)snprintf(ret, ADDRESS_TEXT, "::ffff:%u.%u.%u.%u", a->b[12], a->b[13],
			       a->b[14], a->b[15]);
		return ret;
	}
	for (size_t i = 0; i < 8; i++)
		g[i] = (uint16_t)(a->b[2 * i] << 8 | a->b[2 * i + 1]);
	size_t zeros = longest_zeros(g, &zeros_n);
	ret[0] = '\0';
	for (size_t i = 0; i < 8;) {
		bool run = i == zeros && zeros_n;
		const char *colon = i && i != zeros + zeros_n ? ":" : "";
		int wrote = run ? snprintf(ret + n, ADDRESS_TEXT - n, "::")
				: snprintf(ret + n, ADDRESS_TEXT - n, "%s%x", colon, g[i]);
		n += (size_t)wrote;
		i += run ? zeros_n : 1;
	}
	return ret;
}

static bool parse4(const char *s, unsigned char ret[4])
{
	for (size_t i = 0; i < 4; i++) {
		unsigned int v = 0;
		size_t n = 0;
		for (; n < 3 && s[n] >= '0' && s[n] <= '9'; n++)
			v = v * 10 + (unsigned int)(s[n] - '0');
		if (n == 0 || v > 255 || (n > 1 && s[0] == '0') || s[n] != (i < 3 ? '.' : '\0'))
			return false;
		ret[i] = (unsigned char)v;
		s += n + 1;
	}
	return true;
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* One group of at most four hexadecimal digits. Returns its length, 0: none or too long. */
static size_t group(const char *s, uint16_t *ret)
{
	unsigned int v = 0;
	size_t n = 0;

	for (; n < 5 && hex(s[n]) >= 0; n++)
		v = v << 4 | (unsigned int)hex(s[n]);
	*ret = (uint16_t)v;
	return n > 4 ? 0 : n;
}

#define NO_GAP 17

/* Behind a group: the end, a colon and more, or `::`, once. `at` bytes are written. */
static bool step6(const char **s, size_t at, size_t *gap)
{
	if (!**s)
		return true;
	if (*(*s)++ != ':' || !**s)
		return false;
	if (**s != ':')
		return true;
	if (*gap != NO_GAP || at == 16)
		return false;
	*gap = at;
	(*s)++;
	return true;
}

static bool parse6(const char *s, unsigned char ret[16])
{
	unsigned char out[16] = {0};
	size_t at = 0;       /* bytes written */
	size_t gap = NO_GAP; /* where `::` stands */

	if (s[0] == ':' && s[1] != ':')
		return false;
	if (s[0] == ':') {
		gap = 0;
		s += 2;
	}
	while (*s) {
		uint16_t g = 0;
		size_t n = group(s, &g);
		if (n == 0 || at == 16)
			return false;
		if (s[n] == '.') {
			if (at > 12 || !parse4(s, out + at))
				return false;
			at += 4;
			break;
		}
		out[at++] = (unsigned char)(g >> 8);
		out[at++] = (unsigned char)g;
		s += n;
		if (!step6(&s, at, &gap))
			return false;
	}
	if (gap == NO_GAP ? at != 16 : at > 14)
		return false;
	memset(ret, 0, 16);
	if (gap == NO_GAP)
		gap = 16;
	memcpy(ret, out, gap);
	memcpy(ret + 16 - (at - (gap < at ? gap : at)), out + gap, at - (gap < at ? gap : at));
	return true;
}

bool address_parse(const char *s, struct address *ret)
{
	struct address a = {.family = strchr(s, ':') ? 6 : 4};

	if (a.family == 4 ? !parse4(s, a.b) : !parse6(s, a.b))
		return false;
	*ret = a;
	return true;
}

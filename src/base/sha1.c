/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha1.h"

#include <string.h>

#define BLOCK 64

static uint32_t rotl(uint32_t x, unsigned int n)
{
	return x << n | x >> (32 - n);
}

/* FIPS 180-4, 4.1.1 and 4.2.1: function and constant of one of the 80 steps. */
static uint32_t mix(size_t step, const uint32_t s[5])
{
	if (step < 20)
		return ((s[1] & s[2]) ^ (~s[1] & s[3])) + 0x5a827999;
	if (step < 40)
		return (s[1] ^ s[2] ^ s[3]) + 0x6ed9eba1;
	if (step < 60)
		return ((s[1] & s[2]) ^ (s[1] & s[3]) ^ (s[2] & s[3])) + 0x8f1bbcdc;
	return (s[1] ^ s[2] ^ s[3]) + 0xca62c1d6;
}

static void block(uint32_t h[5], const unsigned char *p)
{
	uint32_t w[80];
	uint32_t s[5];

	for (size_t i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
		       (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
	for (size_t i = 16; i < 80; i++)
		w[i] = rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	memcpy(s, h, sizeof(s));
	for (size_t i = 0; i < 80; i++) {
		uint32_t t = rotl(s[0], 5) + mix(i, s) + s[4] + w[i];
		memmove(s + 1, s, 4 * sizeof(s[0]));
		s[2] = rotl(s[2], 30);
		s[0] = t;
	}
	for (size_t i = 0; i < 5; i++)
		h[i] += s[i];
}

void sha1_init(struct sha1 *s)
{
	/* FIPS 180-4, 5.3.1. */
	*s = (struct sha1){.h = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}};
}

void sha1_add(struct sha1 *s, const void *data, size_t n)
{
	const unsigned char *p = data;
	size_t have = s->bytes % BLOCK;

	s->bytes += n;
	if (have) {
		size_t take = n < BLOCK - have ? n : BLOCK - have;
		if (take)
			memcpy(s->block + have, p, take);
		if (have + take < BLOCK)
			return;
		block(s->h, s->block);
		p += take;
		n -= take;
	}
	for (; n >= BLOCK; n -= BLOCK, p += BLOCK)
		block(s->h, p);
	if (n)
		memcpy(s->block, p, n);
}

void sha1_end(struct sha1 *s, unsigned char ret[SHA1_BYTES])
{
	static const unsigned char pad[BLOCK] = {0x80};
	unsigned char len[8];
	uint64_t bits = s->bytes * 8;
	size_t have = s->bytes % BLOCK;

	for (size_t i = 0; i < sizeof(len); i++)
		len[sizeof(len) - 1 - i] = (unsigned char)(bits >> 8 * i);
	sha1_add(s, pad, (have < BLOCK - 8 ? BLOCK - 8 : 2 * BLOCK - 8) - have);
	sha1_add(s, len, sizeof(len));
	for (size_t i = 0; i < SHA1_BYTES; i++)
		ret[i] = (unsigned char)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

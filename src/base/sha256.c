/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include <string.h>

#define BLOCK SHA256_BLOCK

/* FIPS 180-4, 4.2.2: fractional parts of the cube roots of the first 64 primes. */
static const uint32_t k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static uint32_t rotr(uint32_t x, unsigned int n)
{
	return x >> n | x << (32 - n);
}

/* One round; the caller renames instead of moving: what was a is b in the next one. */
#define ROUND(a, b, c, d, e, f, g, h, i)                                             \
	do {                                                                         \
		uint32_t t_ = (h) + (rotr((e), 6) ^ rotr((e), 11) ^ rotr((e), 25)) + \
			      ((g) ^ ((e) & ((f) ^ (g)))) + k[i] + w[i];             \
		(d) += t_;                                                           \
		(h) = t_ + (rotr((a), 2) ^ rotr((a), 13) ^ rotr((a), 22)) +          \
		      (((a) & (b)) | ((c) & ((a) | (b))));                           \
	} while (0)

static void block(uint32_t into[8], const unsigned char *p)
{
	uint32_t w[64];
	uint32_t a = into[0], b = into[1], c = into[2], d = into[3];
	uint32_t e = into[4], f = into[5], g = into[6], h = into[7];

	for (size_t i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
		       (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
	for (size_t i = 16; i < 64; i++) {
		uint32_t x = w[i - 15];
		uint32_t y = w[i - 2];
		w[i] = w[i - 16] + (rotr(x, 7) ^ rotr(x, 18) ^ x >> 3) + w[i - 7] +
		       (rotr(y, 17) ^ rotr(y, 19) ^ y >> 10);
	}
	for (size_t i = 0; i < 64; i += 8) {
		ROUND(a, b, c, d, e, f, g, h, i);
		ROUND(h, a, b, c, d, e, f, g, i + 1);
		ROUND(g, h, a, b, c, d, e, f, i + 2);
		ROUND(f, g, h, a, b, c, d, e, i + 3);
		ROUND(e, f, g, h, a, b, c, d, i + 4);
		ROUND(d, e, f, g, h, a, b, c, i + 5);
		ROUND(c, d, e, f, g, h, a, b, i + 6);
		ROUND(b, c, d, e, f, g, h, a, i + 7);
	}
	into[0] += a;
	into[1] += b;
	into[2] += c;
	into[3] += d;
	into[4] += e;
	into[5] += f;
	into[6] += g;
	into[7] += h;
}

void sha256_init(struct sha256 *s)
{
	/* FIPS 180-4, 5.3.3. */
	*s = (struct sha256){.h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
				   0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(struct sha256 *s, const void *data, size_t n)
{
	const unsigned char *p = data;
	size_t have = s->bytes % BLOCK;

	s->bytes += n;
	if (have) {
		size_t some = n < BLOCK - have ? n : BLOCK - have;
		memcpy(s->part + have, p, some);
		if (have + some < BLOCK)
			return;
		block(s->h, s->part);
		p += some;
		n -= some;
	}
	for (; n >= BLOCK; n -= BLOCK, p += BLOCK)
		block(s->h, p);
	if (n)
		memcpy(s->part, p, n);
}

void sha256_end(struct sha256 *s, unsigned char ret[SHA256_BYTES])
{
	unsigned char last[2 * BLOCK] = {0};
	uint64_t bits = s->bytes * 8;
	size_t n = s->bytes % BLOCK;

	memcpy(last, s->part, n);
	last[n] = 0x80;
	size_t len = n < BLOCK - 8 ? BLOCK : 2 * BLOCK;
	for (size_t i = 0; i < 8; i++)
		last[len - 1 - i] = (unsigned char)(bits >> 8 * i);
	for (size_t i = 0; i < len; i += BLOCK)
		block(s->h, last + i);
	for (size_t i = 0; i < SHA256_BYTES; i++)
		ret[i] = (unsigned char)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256(const void *data, size_t n, unsigned char ret[SHA256_BYTES])
{
	struct sha256 s;

	sha256_init(&s);
	if (n)
		sha256_add(&s, data, n);
	sha256_end(&s, ret);
}

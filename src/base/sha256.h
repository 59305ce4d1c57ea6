/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 (FIPS 180-4), for the front, which links no library.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32
#define SHA256_BLOCK 64

/* In pieces: init, add as often as there is something, end. */
struct sha256 {
	uint32_t h[8];
	uint64_t bytes;
	unsigned char part[SHA256_BLOCK]; /* bytes % SHA256_BLOCK of them wait for more */
};
void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *p, size_t n);
void sha256_end(struct sha256 *s, unsigned char ret[SHA256_BYTES]);

void sha256(const void *p, size_t n, unsigned char ret[SHA256_BYTES]);

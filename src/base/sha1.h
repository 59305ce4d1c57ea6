/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-1 (FIPS 180-4), only to name git objects as git does; nothing here trusts
 * it with more than git itself does.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHA1_BYTES 20

struct sha1 {
	uint32_t h[5];
	uint64_t bytes;
	unsigned char block[64];
};

void sha1_init(struct sha1 *s);
void sha1_add(struct sha1 *s, const void *p, size_t n);
void sha1_end(struct sha1 *s, unsigned char ret[SHA1_BYTES]);

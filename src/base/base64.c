/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RFC 4648 base64.
 */
#include "base/base64.h"

#include <stdbool.h>
#include <stdint.h>

static char digit(uint32_t v)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	return digits[v & 63];
}

int base64_encode(struct buf *out, const void *p, size_t n)
{
	const unsigned char *s = p;

	/* The whole length first, so that all or nothing is appended. */
	if (out->failed || n / 3 + (n % 3 != 0) > (out->max - out->n) / 4) {
		out->failed = true;
		return -1;
	}
	for (size_t i = 0; i < n; i += 3) {
		size_t left = n - i;
		uint32_t v = (uint32_t)s[i] << 16;

		if (left > 1)
			v |= (uint32_t)s[i + 1] << 8;
		if (left > 2)
			v |= s[i + 2];
		char four[4] = {
			digit(v >> 18),
			digit(v >> 12),
			left > 1 ? digit(v >> 6) : '=',
			left > 2 ? digit(v) : '=',
		};
		if (buf_add(out, four, 4) < 0)
			return -1;
	}
	return 0;
}

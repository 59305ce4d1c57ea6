/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTF-8 decoding and the list of characters that must not reach a terminal raw.
 */
#include "base/utf8.h"

#include "base/base.h"

size_t utf8_decode(const char *p, size_t n, uint32_t *ret_cp)
{
	const unsigned char *s = (const unsigned char *)p;
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t len;
	uint32_t cp;

	if (n == 0)
		return 0;
	if (s[0] < 0x80) {
		*ret_cp = s[0];
		return 1;
	}
	if (s[0] >= 0xf5 || s[0] < 0xc2)
		return 0;
	len = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	if (len > n)
		return 0;
	cp = s[0] & (0x7fU >> len);
	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		cp = cp << 6 | (s[i] & 0x3f);
	}
	if (cp < smallest[len] || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
		return 0;
	*ret_cp = cp;
	return len;
}

bool utf8_valid(const char *p, size_t n)
{
	uint32_t cp;
	size_t len;

	for (size_t i = 0; i < n; i += len) {
		len = utf8_decode(p + i, n - i, &cp);
		if (len == 0)
			return false;
	}
	return true;
}

size_t utf8_cut(const char *p, size_t len, size_t max)
{
	uint32_t cp;

	if (len <= max)
		return len;
	/* A code point that is split at max begins at most three bytes before it. */
	for (size_t back = 1; back <= 3 && back <= max; back++) {
		size_t start = max - back;
		size_t one = utf8_decode(p + start, len - start, &cp);

		if (one > back)
			return start;
		if (one != 0)
			break;
	}
	return max;
}

static const struct {
	uint32_t first, last;
} unsafe[] = {
	{0x00, 0x1f},       /* C0 */
	{0x7f, 0x9f},       /* DEL, C1 */
	{0xad, 0xad},       /* soft hyphen */
	{0x61c, 0x61c},     /* Arabic letter mark */
	{0x180e, 0x180e},   /* Mongolian vowel separator */
	{0x200b, 0x200b},   /* zero width space */
	{0x200e, 0x200f},   /* left-to-right and right-to-left marks */
	{0x2028, 0x202e},   /* separators, embeddings, overrides */
	{0x2060, 0x206f},   /* invisible operators, isolates, deprecated controls */
	{0xfeff, 0xfeff},   /* byte order mark */
	{0xfff9, 0xfffb},   /* interlinear annotation */
	{0xe0000, 0xe007f}, /* tags */
};

bool utf8_is_unsafe(uint32_t cp)
{
	for (size_t i = 0; i < ARRAY_LEN(unsafe); i++) {
		if (cp < unsafe[i].first)
			return false;
		if (cp <= unsafe[i].last)
			return true;
	}
	return false;
}

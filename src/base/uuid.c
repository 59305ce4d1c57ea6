/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UUIDs from the kernel's random numbers.
 */
#include "base/uuid.h"

#include <string.h>
#include <sys/random.h>

#include "base/base.h"

#define UUID_BYTES 16

static bool is_dash_at(size_t i)
{
	return i == 8 || i == 13 || i == 18 || i == 23;
}

int uuid4(char ret[UUID_TEXT], struct err *e)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char raw[UUID_BYTES];
	size_t at = 0;

	/* Up to 256 bytes come whole or not at all (getrandom(2)). */
	if (RETRY_EINTR(getrandom(raw, sizeof(raw), 0)) != (ssize_t)sizeof(raw))
		return err_sys(e, "random numbers for an id");
	raw[6] = (unsigned char)((raw[6] & 0x0f) | 0x40); /* version 4 */
	raw[8] = (unsigned char)((raw[8] & 0x3f) | 0x80); /* RFC variant */
	for (size_t i = 0; i < sizeof(raw); i++) {
		if (is_dash_at(at))
			ret[at++] = '-';
		ret[at++] = digits[raw[i] >> 4];
		ret[at++] = digits[raw[i] & 15];
	}
	ret[at] = '\0';
	return 0;
}

bool uuid_valid(const char *s)
{
	if (strlen(s) != UUID_TEXT - 1)
		return false;
	for (size_t i = 0; s[i]; i++) {
		if (is_dash_at(i) ? s[i] != '-'
				  : !((s[i] >= '0' && s[i] <= '9') || (s[i] >= 'a' && s[i] <= 'f')))
			return false;
	}
	return true;
}

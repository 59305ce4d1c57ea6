/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RFC 1928, sections 3 to 6. Reads fixed places of at most MAX_SOCKS_MESSAGE
 * bytes; each length is compared with n before what it covers is looked at.
 */
#include "proxy/socks5.h"

#include <string.h>

enum { VERSION = 5, NO_AUTHENTICATION = 0, NOTHING_ACCEPTABLE = 0xff };

enum socks_verdict socks_greeting_parse(const unsigned char *p, size_t n, size_t *ret_bytes,
					unsigned char *ret_method)
{
	if (n > 0 && p[0] != VERSION)
		return SOCKS_BAD;
	if (n > 1 && p[1] == 0)
		return SOCKS_BAD;
	if (n < 2 || n < 2 + (size_t)p[1])
		return SOCKS_MORE;
	*ret_bytes = 2 + (size_t)p[1];
	*ret_method =
		memchr(p + 2, NO_AUTHENTICATION, p[1]) ? NO_AUTHENTICATION : NOTHING_ACCEPTABLE;
	return SOCKS_DONE;
}

enum socks_verdict socks_request_parse(const unsigned char *p, size_t n, struct socks_request *ret,
				       enum socks_reply *ret_reply)
{
	size_t at = 4;
	size_t len = 0;

	*ret_reply = SOCKS_FAILURE;
	if ((n > 0 && p[0] != VERSION) || (n > 1 && (p[1] == 0 || p[1] > 3)) ||
	    (n > 2 && p[2] != 0))
		return SOCKS_BAD;
	if (n < 5)
		return SOCKS_MORE;
	switch (p[3]) {
	case SOCKS_V4:
		len = 4;
		break;
	case SOCKS_V6:
		len = 16;
		break;
	case SOCKS_NAME:
		len = p[4];
		at = 5;
		if (len == 0)
			return SOCKS_BAD;
		break;
	default:
		*ret_reply = SOCKS_NO_TYPE;
		return SOCKS_BAD;
	}
	if (n < at + len + 2)
		return SOCKS_MORE;
	uint16_t port = (uint16_t)(p[at + len] << 8 | p[at + len + 1]);
	if (port == 0 && p[1] == SOCKS_CONNECT)
		return SOCKS_BAD;
	*ret = (struct socks_request){p[1], (enum socks_type)p[3], p + at, len, port, at + len + 2};
	return SOCKS_DONE;
}

void socks_answer(enum socks_reply reply, unsigned char ret[SOCKS_ANSWER])
{
	memset(ret, 0, SOCKS_ANSWER);
	ret[0] = VERSION;
	ret[1] = (unsigned char)reply;
	ret[3] = SOCKS_V4;
}

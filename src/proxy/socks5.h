/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SOCKS5, RFC 1928: the two messages of a client and the two answers. No
 * authentication: who asks is known by the socket. Only CONNECT. Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Version, count and 255 methods; version, command, 0, type, length, 255 bytes, port. */
#define MAX_SOCKS_MESSAGE 262

enum socks_verdict {
	SOCKS_MORE,
	SOCKS_DONE,
	SOCKS_BAD, /* not SOCKS5, or not well-formed: the connection is closed */
};

enum socks_reply {
	SOCKS_GRANTED = 0,
	SOCKS_FAILURE = 1,
	SOCKS_DENIED = 2, /* by the rules */
	SOCKS_NET_UNREACHABLE = 3,
	SOCKS_HOST_UNREACHABLE = 4,
	SOCKS_REFUSED = 5,
	SOCKS_TIMED_OUT = 6,
	SOCKS_NO_COMMAND = 7,
	SOCKS_NO_TYPE = 8,
};

/* The one command that is carried out; BIND is 2, UDP ASSOCIATE 3. */
#define SOCKS_CONNECT 1

enum socks_type { SOCKS_V4 = 1, SOCKS_NAME = 3, SOCKS_V6 = 4 };

struct socks_request {
	unsigned char command;
	enum socks_type type;
	const unsigned char *host; /* in the bytes given: 4, 16, or a name as sent */
	size_t host_len;
	uint16_t port;
	size_t bytes; /* of the message */
};

/* Methods offered. ret_method: 0 if "no authentication" is one of them, else 0xff. */
enum socks_verdict socks_greeting_parse(const unsigned char *p, size_t n, size_t *ret_bytes,
					unsigned char *ret_method);

/*
 * The request. SOCKS_BAD with *ret_reply SOCKS_NO_TYPE for an unknown kind of
 * address, SOCKS_FAILURE for all else. Port 0 and an empty name are bad, too.
 */
enum socks_verdict socks_request_parse(const unsigned char *p, size_t n, struct socks_request *ret,
				       enum socks_reply *ret_reply);

#define SOCKS_ANSWER 10
/* The answer to a request, with 0.0.0.0:0 as the bound address: ours is nobody's business. */
void socks_answer(enum socks_reply reply, unsigned char ret[SOCKS_ANSWER]);

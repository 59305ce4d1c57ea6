/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host as anybody may write it, in the one form that rules are compared with.
 * Everything that decides about a host (CONNECT, absolute-form HTTP, SOCKS, DNS,
 * SNI, rules, `policy explain`) reads it here, from bytes that are not believed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "egress/address.h"

#define MAX_HOST_NAME 253u /* RFC 1035 3.1: 255 octets on the wire */
#define MAX_HOST_LABEL 63u /* RFC 1035 2.3.4 */
#define HOST_TEXT 256
#define MAX_HOST_INPUT 1024u /* what is longer is no host whatever it is */

enum host_kind { HOST_NAME, HOST_V4, HOST_V6 };

struct host {
	enum host_kind kind;
	struct address addr;  /* of V4 and V6 */
	char text[HOST_TEXT]; /* lower case, no dot at the end, no brackets */
};

/* Why it is no host. Each has its own text. */
enum host_bad {
	HOST_GOOD,
	HOST_EMPTY,
	HOST_LONG,      /* a name over 253 or a label over 63 bytes */
	HOST_NUL,       /* a NUL byte */
	HOST_CONTROL,   /* another control byte */
	HOST_SPACE,     /* a blank */
	HOST_NOT_ASCII, /* to be written in its xn-- form; what looks alike stays different */
	HOST_PERCENT,   /* a percent sign, which no decoder ever sees here; also IPv6 zones */
	HOST_USERINFO,  /* user@host */
	HOST_SCHEME,    /* scheme://host */
	HOST_PATH,      /* a slash, `?` or `#` */
	HOST_PORT,      /* host:port where only a host may stand */
	HOST_CHARACTER, /* anything else but letters, digits, `-`, `_` and dots */
	HOST_DOTS,      /* an empty label: two dots, or a dot in front */
	HOST_HYPHEN,    /* a label that begins or ends with a hyphen */
	HOST_NUMBER,    /* the last label is a number, but it is no address */
	HOST_BRACKETS,  /* brackets that do not hold exactly one IPv6 address */
	HOST_BADS,
};

/*
 * Reads exactly n bytes. Letters become lower case, one dot at the end goes away.
 * All forms of IPv4 that inet_aton() knows (127.1, 0x7f.1, 2130706433,
 * 017700000001, 1.2.3.4.) become that address; [v6] and bare v6 that address;
 * v4-mapped v6 the IPv4 one. ret is untouched on failure.
 */
NODISCARD enum host_bad host_read(const void *p, size_t n, struct host *ret);

/*
 * `host:port`, `[v6]:port`; without a port, default_port if that is not 0. Ports
 * are 1 to 65535 in plain decimals without leading zeros (else HOST_PORT).
 */
NODISCARD enum host_bad host_port_read(const void *p, size_t n, uint16_t default_port,
				       struct host *ret, uint16_t *ret_port);

/* "a NUL byte in the name", …; one line, lower case. */
const char *host_bad_text(enum host_bad bad);

/* localhost and what is below it (RFC 6761 6.3), 127.0.0.0/8, ::1. */
bool host_is_loopback(const struct host *h);

/* An address as a host. */
void host_of_address(const struct address *a, struct host *ret);

/* "example.com:443", "[2001:db8::1]:443". Returns ret. */
#define HOST_PORT_TEXT (HOST_TEXT + 8)
const char *host_port_format(const struct host *h, uint16_t port, char ret[HOST_PORT_TEXT]);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DNS queries and their answers, for a resolver that knows only what it made up.
 * RFC 1035, EDNS RFC 6891, extended errors RFC 8914. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A query: header, one name (255), type and class, an OPT record with what clients put in. */
#define MAX_DNS_QUERY 1024
/* An answer of ours; below what any client takes (RFC 1035, 2.3.4). */
#define MAX_DNS_ANSWER 512
#define MAX_DNS_NAME 255

enum dns_type { DNS_A = 1, DNS_AAAA = 28, DNS_SVCB = 64, DNS_HTTPS = 65 };

enum dns_rcode {
	DNS_NOERROR = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5,
	DNS_BADVERS = 16,
};

/* RFC 8914, 4.16 to 4.19. */
enum dns_extended { DNS_BLOCKED = 15, DNS_CENSORED = 16, DNS_FILTERED = 17, DNS_PROHIBITED = 18 };

struct dns_query {
	uint16_t id, type;
	bool recursion; /* RD, copied into the answer */
	bool edns;
	enum dns_rcode rcode;          /* what to answer with whoever asks; DNS_NOERROR: go on */
	char name[MAX_DNS_NAME + 1];   /* with dots, as sent, none at the end; "" is the root */
	const unsigned char *question; /* in the bytes given: name, type, class */
	size_t question_len;           /* 0 if there is none that could be repeated */
};

/*
 * Reads exactly n bytes. False: nothing to answer (shorter than a header, or
 * itself an answer). True with an rcode that is not DNS_NOERROR: malformed, not a
 * plain query of class IN, or EDNS of a later version. One question, no pointer in
 * it, no record but one OPT, no byte left over. A label with a dot, NUL or any byte
 * but letters, digits, `-` and `_` is DNS_REFUSED: as text it would be another name.
 */
bool dns_query_parse(const unsigned char *p, size_t n, struct dns_query *ret);

struct dns_answer {
	enum dns_rcode rcode;
	int extended;       /* an extended error, -1 for none */
	const char *text;   /* beside it, for people; at most 128 bytes of it */
	unsigned int ttl;   /* seconds */
	size_t address_len; /* 4: A, 16: AAAA, 0: no record */
	unsigned char address[16];
};

/* Writes the answer; returns its length. */
size_t dns_answer_write(const struct dns_query *q, const struct dns_answer *a,
			unsigned char ret[MAX_DNS_ANSWER]);

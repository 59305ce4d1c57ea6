/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reader of queries, writer of answers. Nothing is followed: a length byte above
 * 63 in a question is a pointer or of no known kind, and either is an error.
 */
#include "proxy/dns.h"

#include <string.h>

enum {
	HEADER = 12,
	FLAG_QR = 0x8000,
	FLAG_TC = 0x0200,
	FLAG_RD = 0x0100,
	FLAG_RA = 0x0080,
	OPCODE = 0x7800,
	RCODE = 0x000f,
	LABEL_MAX = 63,
	CLASS_IN = 1,
	TYPE_OPT = 41,
	OPTION_EXTENDED = 15,
	UDP_SIZE = 1232,
	TEXT_MAX = 128,
};

static unsigned int get16(const unsigned char *p)
{
	return (unsigned int)p[0] << 8 | p[1];
}

static bool is_name_byte(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '-' || c == '_';
}

/* Length of the name on the wire, 0 if it is malformed; *ret_odd if a byte has no place in a name. */
static size_t take_name(const unsigned char *p, size_t n, char ret[MAX_DNS_NAME + 1], bool *ret_odd)
{
	size_t at = 0;
	size_t out = 0;

	while (at < n && p[at] != 0) {
		size_t len = p[at++];
		if (len > LABEL_MAX || len > n - at || at + len > MAX_DNS_NAME - 1)
			return 0;
		if (out)
			ret[out++] = '.';
		for (size_t i = 0; i < len; i++) {
			*ret_odd |= !is_name_byte(p[at + i]);
			ret[out++] = (char)p[at + i];
		}
		at += len;
	}
	ret[out] = '\0';
	return at < n ? at + 1 : 0;
}

/* One OPT record that fills the rest. */
static enum dns_rcode take_opt(const unsigned char *p, size_t n, struct dns_query *q)
{
	if (n < 11 || p[0] != 0 || get16(p + 1) != TYPE_OPT || get16(p + 9) != n - 11)
		return DNS_FORMERR;
	for (size_t at = 11; at < n;) {
		if (n - at < 4 || get16(p + at + 2) > n - at - 4)
			return DNS_FORMERR;
		at += 4 + get16(p + at + 2);
	}
	q->edns = true;
	return p[6] == 0 ? DNS_NOERROR : DNS_BADVERS;
}

static enum dns_rcode take_question(const unsigned char *p, size_t n, struct dns_query *q)
{
	bool odd = false;
	unsigned int extra = get16(p + 10);

	if (get16(p + 4) != 1 || get16(p + 6) != 0 || get16(p + 8) != 0 || extra > 1)
		return DNS_FORMERR;
	size_t len = take_name(p + HEADER, n - HEADER, q->name, &odd);
	if (len == 0 || n - HEADER - len < 4)
		return DNS_FORMERR;
	q->question = p + HEADER;
	q->question_len = len + 4;
	q->type = (uint16_t)get16(p + HEADER + len);
	size_t end = HEADER + len + 4;
	if (extra == 0 && end != n)
		return DNS_FORMERR;
	enum dns_rcode rcode = extra ? take_opt(p + end, n - end, q) : DNS_NOERROR;
	if (rcode != DNS_NOERROR)
		return rcode;
	return odd || get16(p + end - 2) != CLASS_IN ? DNS_REFUSED : DNS_NOERROR;
}

bool dns_query_parse(const unsigned char *p, size_t n, struct dns_query *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (n < HEADER || n > MAX_DNS_QUERY)
		return false;
	unsigned int flags = get16(p + 2);
	if (flags & FLAG_QR)
		return false;
	ret->id = (uint16_t)get16(p);
	ret->recursion = flags & FLAG_RD;
	if (flags & OPCODE)
		ret->rcode = DNS_NOTIMP;
	else if (flags & (FLAG_TC | RCODE))
		ret->rcode = DNS_FORMERR;
	else
		ret->rcode = take_question(p, n, ret);
	if (ret->rcode != DNS_NOERROR && ret->rcode != DNS_REFUSED && ret->rcode != DNS_BADVERS)
		ret->question_len = 0;
	return true;
}

struct writer {
	unsigned char *p;
	size_t n;
};

static void put16(struct writer *w, unsigned int v)
{
	w->p[w->n++] = (unsigned char)(v >> 8);
	w->p[w->n++] = (unsigned char)v;
}

static void put32(struct writer *w, uint32_t v)
{
	put16(w, v >> 16);
	put16(w, v & 0xffff);
}

static void put_bytes(struct writer *w, const void *p, size_t n)
{
	if (n)
		memcpy(w->p + w->n, p, n);
	w->n += n;
}

/* Root, OPT, size, the upper bits of the code, version 0, and what it is about in words. */
static void put_opt(struct writer *w, const struct dns_answer *a)
{
	size_t text = a->extended >= 0 && a->text ? strnlen(a->text, TEXT_MAX) : 0;

	put_bytes(w, "", 1);
	put16(w, TYPE_OPT);
	put16(w, UDP_SIZE);
	put32(w, (uint32_t)(a->rcode >> 4) << 24);
	if (a->extended < 0) {
		put16(w, 0);
		return;
	}
	put16(w, (unsigned int)(6 + text));
	put16(w, OPTION_EXTENDED);
	put16(w, (unsigned int)(2 + text));
	put16(w, (unsigned int)a->extended);
	put_bytes(w, a->text, text);
}

/* At most 12 + 259 + 28 + 11 + 6 + 128 bytes. */
size_t dns_answer_write(const struct dns_query *q, const struct dns_answer *a,
			unsigned char ret[MAX_DNS_ANSWER])
{
	struct writer w = {ret, 0};

	put16(&w, q->id);
	put16(&w, FLAG_QR | (q->recursion ? FLAG_RD : 0) | FLAG_RA | (a->rcode & RCODE));
	put16(&w, q->question_len ? 1 : 0);
	put16(&w, a->address_len ? 1 : 0);
	put16(&w, 0);
	put16(&w, q->edns ? 1 : 0);
	put_bytes(&w, q->question, q->question_len);
	if (a->address_len) {
		put16(&w, 0xc000 | HEADER); /* the name of the question */
		put16(&w, a->address_len == 4 ? DNS_A : DNS_AAAA);
		put16(&w, CLASS_IN);
		put32(&w, a->ttl);
		put16(&w, (unsigned int)a->address_len);
		put_bytes(&w, a->address, a->address_len);
	}
	if (q->edns)
		put_opt(&w, a);
	return w.n;
}

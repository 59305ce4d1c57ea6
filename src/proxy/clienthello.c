/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a ClientHello through a cursor that hides record boundaries. Safe because
 * every step is take(): it fails where the bytes, the record or the enclosing
 * length end, and nothing is read otherwise.
 */
#include "proxy/clienthello.h"

#include <string.h>

enum {
	RECORD_CHANGE_CIPHER = 20,
	RECORD_ALERT = 21,
	RECORD_HANDSHAKE = 22,
	RECORD_MAJOR_MOST = 0x0f, /* servers take any version below 0x1000 in a first record */
	RECORD_HEADER = 5,
	RECORD_MAX = 16384,
	HANDSHAKE_HELLO = 1,
	EXTENSION_NAME = 0,
	EXTENSION_ALPN = 16,
	EXTENSION_ECH = 0xfe0d,
	NAME_HOST = 0,
};

struct cursor {
	const unsigned char *p;
	size_t n, at;
	size_t record;          /* bytes left in the record that at is in */
	enum hello_verdict end; /* why take() failed */
};

static bool fail(struct cursor *c, enum hello_verdict v)
{
	c->end = v;
	return false;
}

/*
 * Not a handshake of a version that there is, at the very beginning: what a server of TLS may take
 * nevertheless (another version, an alert or a change of ciphers before the hello) is bad TLS,
 * all else is none.
 */
static enum hello_verdict first_record(const unsigned char *r, size_t left)
{
	if (r[0] < RECORD_CHANGE_CIPHER || r[0] > RECORD_HANDSHAKE ||
	    (left > 1 && r[1] > RECORD_MAJOR_MOST))
		return HELLO_NOT_TLS;
	if (left < RECORD_HEADER)
		return HELLO_MORE;
	size_t len = (size_t)r[3] << 8 | r[4];
	bool takes = r[0] == RECORD_HANDSHAKE ? len <= RECORD_MAX
		     : r[0] == RECORD_ALERT   ? len == 2
					      : len == 1;
	return takes ? HELLO_BAD : HELLO_NOT_TLS;
}

static bool next_record(struct cursor *c)
{
	const unsigned char *r = c->p + c->at;
	size_t left = c->n - c->at;

	if ((left > 0 && r[0] != RECORD_HANDSHAKE) || (left > 1 && r[1] != 3) ||
	    (left > 2 && r[2] > 4))
		return fail(c, c->at ? HELLO_BAD : first_record(r, left));
	if (left < RECORD_HEADER)
		return fail(c, HELLO_MORE);
	c->record = (size_t)r[3] << 8 | r[4];
	if (c->record == 0 || c->record > RECORD_MAX)
		return fail(c, HELLO_BAD);
	c->at += RECORD_HEADER;
	return true;
}

/* The next len bytes of the handshake; into ret if it is not NULL. */
static bool take(struct cursor *c, size_t len, unsigned char *ret)
{
	while (len) {
		if (c->record == 0 && !next_record(c))
			return false;
		size_t some = len < c->record ? len : c->record;
		if (some > c->n - c->at)
			return fail(c, HELLO_MORE);
		if (ret) {
			memcpy(ret, c->p + c->at, some);
			ret += some;
		}
		c->at += some;
		c->record -= some;
		len -= some;
	}
	return true;
}

/* A number of `bytes` bytes, at most 3. */
static bool take_number(struct cursor *c, size_t bytes, size_t *ret)
{
	unsigned char b[3];

	if (!take(c, bytes, b))
		return false;
	*ret = 0;
	for (size_t i = 0; i < bytes; i++)
		*ret = *ret << 8 | b[i];
	return true;
}

/* Charges len to what is left of an enclosing length. */
static bool charge(struct cursor *c, size_t *left, size_t len)
{
	if (len > *left)
		return fail(c, HELLO_BAD);
	*left -= len;
	return true;
}

/* A vector: its length of `bytes` bytes is charged and returned, with what it covers. */
static bool take_length(struct cursor *c, size_t bytes, size_t *left, size_t *ret)
{
	return charge(c, left, bytes) && take_number(c, bytes, ret) && charge(c, left, *ret);
}

static bool skip_vector(struct cursor *c, size_t bytes, size_t *left)
{
	size_t len = 0;

	return take_length(c, bytes, left, &len) && take(c, len, NULL);
}

/* server_name: a list of exactly one host name. */
static bool take_sni(struct cursor *c, size_t left, struct hello *ret)
{
	size_t list = 0;
	size_t type = 0;
	size_t len = 0;

	if (ret->has_sni)
		return fail(c, HELLO_BAD);
	if (!take_length(c, 2, &left, &list) || !charge(c, &list, 1) || !take_number(c, 1, &type) ||
	    !take_length(c, 2, &list, &len))
		return false;
	if (type != NAME_HOST || left || list || len == 0 || len > MAX_SNI_BYTES)
		return fail(c, HELLO_BAD);
	if (!take(c, len, ret->sni))
		return false;
	if (memchr(ret->sni, 0, len))
		return fail(c, HELLO_BAD);
	ret->sni_len = len;
	ret->has_sni = true;
	return true;
}

static bool take_alpn(struct cursor *c, size_t left, struct hello *ret)
{
	unsigned char name[255];
	size_t list = 0;
	size_t out = 0;
	bool fits = true;

	if (!take_length(c, 2, &left, &list))
		return false;
	while (list) {
		size_t len = 0;
		if (!take_length(c, 1, &list, &len) || !take(c, len, name))
			return false;
		if (len == 0)
			return fail(c, HELLO_BAD);
		fits = fits && out + len + 1 <= MAX_ALPN_BYTES && !memchr(name, 0, len);
		if (!fits)
			continue;
		if (out)
			ret->alpn[out++] = ',';
		memcpy(ret->alpn + out, name, len);
		out += len;
	}
	ret->alpn[fits ? out : 0] = '\0';
	return left == 0 || fail(c, HELLO_BAD);
}

static bool take_extensions(struct cursor *c, size_t left, struct hello *ret)
{
	while (left) {
		size_t type = 0;
		size_t len = 0;
		if (!charge(c, &left, 2) || !take_number(c, 2, &type) ||
		    !take_length(c, 2, &left, &len))
			return false;
		bool good = true;
		if (type == EXTENSION_NAME) {
			good = take_sni(c, len, ret);
		} else if (type == EXTENSION_ALPN) {
			good = take_alpn(c, len, ret);
		} else {
			ret->has_ech |= type == EXTENSION_ECH;
			good = take(c, len, NULL);
		}
		if (!good)
			return false;
	}
	return true;
}

static bool take_hello(struct cursor *c, struct hello *ret)
{
	size_t type = 0;
	size_t left = 0;
	size_t extensions = 0;

	if (!take_number(c, 1, &type))
		return false;
	if (type != HANDSHAKE_HELLO)
		return fail(c, HELLO_BAD);
	if (!take_number(c, 3, &left))
		return false;
	if (left > MAX_HELLO_BYTES)
		return fail(c, HELLO_BAD);
	/* version, random; session, cipher suites, compression */
	if (!charge(c, &left, 34) || !take(c, 34, NULL) || !skip_vector(c, 1, &left) ||
	    !skip_vector(c, 2, &left) || !skip_vector(c, 1, &left))
		return false;
	if (left == 0)
		return true;
	if (!take_length(c, 2, &left, &extensions) || !take_extensions(c, extensions, ret))
		return false;
	return left == 0 || fail(c, HELLO_BAD);
}

enum hello_verdict hello_parse(const unsigned char *p, size_t n, struct hello *ret)
{
	struct cursor c = {.p = p, .n = n < MAX_HELLO_BYTES ? n : MAX_HELLO_BYTES};

	memset(ret, 0, sizeof(*ret));
	if (take_hello(&c, ret))
		return HELLO_DONE;
	if (c.end == HELLO_MORE && n >= MAX_HELLO_BYTES)
		return HELLO_BAD;
	return c.end;
}

bool hello_begins(const unsigned char *p, size_t n, bool strict)
{
	if (n == 0 || p[0] != RECORD_HANDSHAKE || (n > 1 && p[1] != 3) || (n > 2 && p[2] > 4))
		return false;
	if (!strict)
		return true;
	/* Record of at most 16 KiB, hello of the same size and less than 64 KiB, version 3.x. */
	return n >= RECORD_HEADER + 6 && p[3] <= RECORD_MAX >> 8 && p[5] == HANDSHAKE_HELLO &&
	       p[6] == 0 && p[7] <= MAX_HELLO_BYTES >> 8 && p[9] == 3 && p[10] <= 4;
}

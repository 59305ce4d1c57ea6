/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1 message heads and chunked framing, for a proxy whose client is
 * hostile: what two readers could take in two ways is refused. Pure: bytes in,
 * verdict out; nothing is allocated and texts point into the bytes given.
 *
 * Stricter than RFC 9112 asks: CRLF only, one space between the parts of the
 * first line, no folded line, no space before a colon, no list or repetition in
 * Content-Length, no Transfer-Encoding but `chunked`, no trailer and no chunk
 * extension from a client, no method that is not in the table.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* A head, first line and all; common servers take 8 to 64 KiB. */
#define MAX_HEAD_BYTES 65536
/* Fields of a head; the number is that of Apache's LimitRequestFields. */
#define MAX_HEAD_FIELDS 100
/* A request's target; RFC 9112, 3, asks for 8,000 at least. */
#define MAX_TARGET_BYTES 16384
/* A name with its zone of presentation, RFC 1035. */
#define MAX_HOST_BYTES 255
/* Hexadecimal digits of a chunk's size: below 2^60. */
#define MAX_CHUNK_DIGITS 15

struct http_text {
	const char *p; /* not terminated */
	size_t n;
};

struct http_field {
	struct http_text name, value; /* the value without space around it */
	bool hop;                     /* not passed on: by its name, or named by Connection */
};

enum http_form {
	HTTP_FORM_CONNECT,  /* CONNECT host:port */
	HTTP_FORM_ABSOLUTE, /* METHOD http://host[:port]/path */
	HTTP_FORM_ORIGIN,   /* METHOD /path, to the host itself */
};

enum http_body {
	HTTP_BODY_NONE,
	HTTP_BODY_LENGTH,
	HTTP_BODY_CHUNKED,
	HTTP_BODY_CLOSE, /* up to the end of the connection; responses only */
};

struct http_head {
	struct http_field fields[MAX_HEAD_FIELDS];
	size_t count;
	size_t bytes;       /* of the head, with its empty line */
	unsigned int minor; /* HTTP/1.minor: 0 or 1 */
	enum http_body body;
	uint64_t length; /* HTTP_BODY_LENGTH */
	bool keep_alive; /* the sender would go on with this connection */
	/* requests */
	enum http_form form;
	struct http_text method, host,
		path;  /* host as written, without brackets; path may be empty */
	bool literal6; /* host was in brackets */
	uint16_t port;
	bool expects_continue; /* Expect: 100-continue */
	bool upgrade;          /* asked for another protocol; never passed on */
	bool websocket;        /* and WebSocket is one of them */
	/* responses */
	unsigned int status;
	struct http_text reason;
};

/* Why a message was refused. `status` is what a request is answered with. */
struct http_bad {
	unsigned int status;
	const char *why;
	bool mismatch; /* Host and target are two hosts */
};

enum http_verdict {
	HTTP_MORE, /* the head is not complete; all so far is well */
	HTTP_DONE,
	HTTP_BAD, /* never to be passed on: ret_bad says why */
};

/*
 * One request head at the beginning of n bytes. The host is only checked for
 * its bytes (letters, digits, `-._`, or what an IPv6 address is written with):
 * what it means is the matcher's. Host fields must say the same as the target,
 * without regard to case, one dot at the end, and a port that is the default.
 */
enum http_verdict http_request_parse(const char *p, size_t n, struct http_head *ret,
				     struct http_bad *ret_bad);

/*
 * The same to the host itself, whose usual port is `port`: in origin form, or `*` with
 * OPTIONS. Host says what host and port it is; without it (HTTP/1.0) host is empty.
 */
enum http_verdict http_origin_parse(const char *p, size_t n, uint16_t port, struct http_head *ret,
				    struct http_bad *ret_bad);

/* One response head; `to_head`: the request was HEAD. A 1xx status has no body. */
enum http_verdict http_response_parse(const char *p, size_t n, bool to_head, struct http_head *ret,
				      struct http_bad *ret_bad);

/*
 * The request as it goes to its server: origin-form, `authority` as Host, hop-by-hop
 * fields left out, Connection: close. The buffer says whether it fitted.
 */
void http_request_write(const struct http_head *h, const char *authority, struct buf *out);
/* The response as it goes to the client, `keep` says whether its connection stays. */
void http_response_write(const struct http_head *h, bool keep, struct buf *out);

/* Where a chunked body is. Begins as zeros. */
struct http_chunks {
	unsigned int state, digits;
	uint64_t left;
	bool response; /* extensions and trailers are read over, not refused */
};

/*
 * Takes up to n bytes of a chunked body. ret_used counts those that are part of
 * it and well-formed: all n with HTTP_MORE, those up to its end with HTTP_DONE.
 */
enum http_verdict http_chunks_feed(struct http_chunks *c, const char *p, size_t n, size_t *ret_used,
				   struct http_bad *ret_bad);

/* Equal without regard to the case of ASCII letters. */
bool http_text_is(struct http_text t, const char *s);

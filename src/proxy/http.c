/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict reader of HTTP/1 heads. It decides nothing but form: whether a host
 * may be reached is the matcher's. Safe because it never looks past n, copies
 * nothing, and takes each byte by a table of what is allowed at its place.
 */
#include "proxy/http.h"

#include <string.h>

#include "base/base.h"

enum { TOKEN = 1, VALUE = 2, TARGET = 4, NAME = 8 };

/* RFC 9110, 5.6.2: tchar. */
static const char token_marks[] = "!#$%&'*+-.^_`|~";

static bool is_alnum(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_a(unsigned char c, int class)
{
	switch (class) {
	case TOKEN:
		return is_alnum(c) || (c && strchr(token_marks, c));
	case VALUE:
		return c == '\t' || (c >= ' ' && c != 0x7f);
	case TARGET: /* no fragment, and nothing that URL parsers turn into something else */
		return c > ' ' && c < 0x7f && !strchr("#\\\"<>", c);
	case NAME:
		return is_alnum(c) || c == '-' || c == '.' || c == '_';
	}
	return false;
}

static bool all(struct http_text t, int class)
{
	for (size_t i = 0; i < t.n; i++)
		if (!is_a((unsigned char)t.p[i], class))
			return false;
	return true;
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static bool same_text(struct http_text a, struct http_text b)
{
	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		if (lower(a.p[i]) != lower(b.p[i]))
			return false;
	return true;
}

bool http_text_is(struct http_text t, const char *s)
{
	return same_text(t, (struct http_text){s, strlen(s)});
}

static enum http_verdict bad(struct http_bad *b, unsigned int status, const char *why)
{
	*b = (struct http_bad){status, why, false};
	return HTTP_BAD;
}

/* What is read, line by line. */
struct reader {
	const char *p;
	size_t n, at;
	struct http_bad *bad;
};

/* The next line without its CRLF. HTTP_BAD for a CR or an LF that stands alone, and for NUL. */
static enum http_verdict next_line(struct reader *r, struct http_text *ret)
{
	size_t room = r->n < MAX_HEAD_BYTES ? r->n : MAX_HEAD_BYTES;

	for (size_t i = r->at; i < room; i++) {
		char c = r->p[i];
		if (c == '\n')
			return bad(r->bad, 400, "a line ends with LF alone");
		if (c == '\0')
			return bad(r->bad, 400, "NUL in the head");
		if (c != '\r')
			continue;
		if (i + 1 == room)
			break;
		if (r->p[i + 1] != '\n')
			return bad(r->bad, 400, "CR without LF");
		*ret = (struct http_text){r->p + r->at, i - r->at};
		r->at = i + 2;
		return HTTP_DONE;
	}
	if (r->n >= MAX_HEAD_BYTES)
		return bad(r->bad, 431, "the head is too long");
	return HTTP_MORE;
}

static struct http_text trimmed(struct http_text t)
{
	while (t.n && (t.p[0] == ' ' || t.p[0] == '\t')) {
		t.p++;
		t.n--;
	}
	while (t.n && (t.p[t.n - 1] == ' ' || t.p[t.n - 1] == '\t'))
		t.n--;
	return t;
}

static enum http_verdict take_field(struct reader *r, struct http_text line, struct http_field *ret)
{
	if (line.p[0] == ' ' || line.p[0] == '\t')
		return bad(r->bad, 400, "a folded line");
	const char *colon = memchr(line.p, ':', line.n);
	if (!colon)
		return bad(r->bad, 400, "a field without a colon");
	size_t n = (size_t)(colon - line.p);
	*ret = (struct http_field){{line.p, n}, {colon + 1, line.n - n - 1}, false};
	if (n == 0)
		return bad(r->bad, 400, "a field without a name");
	if (!all(ret->name, TOKEN))
		return bad(r->bad, 400, "a field name with a byte that is not allowed in it");
	if (!all(ret->value, VALUE))
		return bad(r->bad, 400, "a field with a control byte");
	ret->value = trimmed(ret->value);
	return HTTP_DONE;
}

static enum http_verdict take_fields(struct reader *r, struct http_head *h)
{
	struct http_text line;

	for (;;) {
		enum http_verdict v = next_line(r, &line);
		if (v != HTTP_DONE)
			return v;
		if (line.n == 0)
			break;
		if (h->count == MAX_HEAD_FIELDS)
			return bad(r->bad, 431, "too many fields");
		if (take_field(r, line, &h->fields[h->count]) != HTTP_DONE)
			return HTTP_BAD;
		h->count++;
	}
	h->bytes = r->at;
	return HTTP_DONE;
}

/* Fields of one connection only: RFC 9110, 7.6.1, and those of a proxy. */
static const char *const hop_names[] = {"connection",
					"proxy-connection",
					"keep-alive",
					"te",
					"trailer",
					"upgrade",
					"transfer-encoding",
					"proxy-authenticate",
					"proxy-authorization",
					"proxy-authentication-info",
					"http2-settings",
					"proxy-status"};

/* Fields that say where a message goes and where it ends: once at most, and for no CGI-like spelling. */
static const char *const single_names[] = {"host", "content-length", "transfer-encoding", "expect",
					   "upgrade"};

static bool in_list(struct http_text t, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (http_text_is(t, names[i]))
			return true;
	return false;
}

/* `Content_Length` and the like: some servers take `_` for `-`. */
static bool is_disguised(struct http_text t)
{
	char plain[32];

	if (t.n >= sizeof(plain) || !memchr(t.p, '_', t.n))
		return false;
	for (size_t i = 0; i < t.n; i++)
		plain[i] = t.p[i] == '_' ? '-' : t.p[i];
	return in_list((struct http_text){plain, t.n}, single_names, ARRAY_LEN(single_names));
}

static const struct http_field *find(const struct http_head *h, const char *name)
{
	for (size_t i = 0; i < h->count; i++)
		if (http_text_is(h->fields[i].name, name))
			return &h->fields[i];
	return NULL;
}

static enum http_verdict check_single(const struct http_head *h, struct http_bad *b)
{
	for (size_t i = 0; i < ARRAY_LEN(single_names); i++) {
		const struct http_field *first = find(h, single_names[i]);
		for (size_t j = 0; first && j < h->count; j++)
			if (&h->fields[j] != first &&
			    http_text_is(h->fields[j].name, single_names[i]))
				return bad(b, 400, "a field is there twice that may be there once");
	}
	for (size_t i = 0; i < h->count; i++)
		if (is_disguised(h->fields[i].name))
			return bad(b, 400,
				   "a field name with _ that some servers take for another");
	return HTTP_DONE;
}

/* Cuts the next element off a comma-separated list; false at its end. */
static bool next_element(struct http_text *list, struct http_text *ret)
{
	if (!list->p)
		return false;
	const char *comma = memchr(list->p, ',', list->n);
	size_t n = comma ? (size_t)(comma - list->p) : list->n;
	*ret = trimmed((struct http_text){list->p, n});
	*list = comma ? (struct http_text){comma + 1, list->n - n - 1}
		      : (struct http_text){NULL, 0};
	return true;
}

/* Names that nobody may have taken away by naming them in Connection. */
static const char *const end_to_end[] = {"host",          "content-length",   "transfer-encoding",
					 "authorization", "cookie",           "expect",
					 "content-type",  "content-encoding", "cache-control"};

struct connection {
	bool close, keep_alive, upgrade;
};

static enum http_verdict take_connection(struct http_head *h, struct http_text list,
					 struct connection *ret, struct http_bad *b)
{
	struct http_text one;

	while (next_element(&list, &one)) {
		if (one.n == 0 || !all(one, TOKEN))
			return bad(b, 400, "Connection is no list of names");
		if (in_list(one, end_to_end, ARRAY_LEN(end_to_end)))
			return bad(b, 400, "Connection names a field of the message itself");
		ret->close |= http_text_is(one, "close");
		ret->keep_alive |= http_text_is(one, "keep-alive");
		ret->upgrade |= http_text_is(one, "upgrade");
		for (size_t i = 0; i < h->count; i++)
			h->fields[i].hop |= same_text(h->fields[i].name, one);
	}
	return HTTP_DONE;
}

static enum http_verdict take_hops(struct http_head *h, struct connection *ret, struct http_bad *b)
{
	*ret = (struct connection){.close = false};
	for (size_t i = 0; i < h->count; i++) {
		struct http_field *f = &h->fields[i];
		f->hop |= in_list(f->name, hop_names, ARRAY_LEN(hop_names));
		if ((http_text_is(f->name, "connection") ||
		     http_text_is(f->name, "proxy-connection")) &&
		    take_connection(h, f->value, ret, b) != HTTP_DONE)
			return HTTP_BAD;
	}
	h->keep_alive = h->minor == 1 ? !ret->close : ret->keep_alive && !ret->close;
	return HTTP_DONE;
}

/* Digits only, no zero before another digit, below 2^63. */
static bool take_length(struct http_text t, uint64_t *ret)
{
	uint64_t v = 0;

	if (t.n == 0 || t.n > 18 || (t.n > 1 && t.p[0] == '0'))
		return false;
	for (size_t i = 0; i < t.n; i++) {
		if (t.p[i] < '0' || t.p[i] > '9')
			return false;
		v = v * 10 + (uint64_t)(t.p[i] - '0');
	}
	*ret = v;
	return true;
}

/* Leaves h->body as it is if the head says nothing of it. */
static enum http_verdict take_body(struct http_head *h, struct http_bad *b)
{
	const struct http_field *te = find(h, "transfer-encoding");
	const struct http_field *cl = find(h, "content-length");

	if (te && cl)
		return bad(b, 400, "both Transfer-Encoding and Content-Length");
	if (te && h->minor == 0)
		return bad(b, 400, "Transfer-Encoding in HTTP/1.0");
	if (te && !http_text_is(te->value, "chunked"))
		return bad(b, 501, "a Transfer-Encoding that is not chunked");
	if (te)
		h->body = HTTP_BODY_CHUNKED;
	if (cl && !take_length(cl->value, &h->length))
		return bad(b, 400, "Content-Length is no number");
	if (cl)
		h->body = h->length ? HTTP_BODY_LENGTH : HTTP_BODY_NONE;
	return HTTP_DONE;
}

/* Methods that are passed on. TRACE would show a server what we put in. */
static const char *const methods[] = {"CONNECT",  "GET",        "HEAD",    "POST",     "PUT",
				      "DELETE",   "PATCH",      "OPTIONS", "PROPFIND", "PROPPATCH",
				      "COPY",     "MKCOL",      "MOVE",    "LOCK",     "UNLOCK",
				      "REPORT",   "SEARCH",     "ACL",     "MERGE",    "MKACTIVITY",
				      "CHECKOUT", "MKCALENDAR", "PURGE",   "LINK",     "UNLINK"};

static bool is_method(struct http_text t)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (t.n == strlen(methods[i]) && memcmp(t.p, methods[i], t.n) == 0)
			return true;
	return false;
}

static bool take_version(struct http_text t, unsigned int *ret_minor)
{
	if (t.n != 8 || memcmp(t.p, "HTTP/1.", 7) != 0 || (t.p[7] != '0' && t.p[7] != '1'))
		return false;
	*ret_minor = (unsigned int)(t.p[7] - '0');
	return true;
}

static bool take_port(struct http_text t, uint16_t *ret)
{
	unsigned int v = 0;

	if (t.n == 0 || t.n > 5 || t.p[0] == '0')
		return false;
	for (size_t i = 0; i < t.n; i++) {
		if (t.p[i] < '0' || t.p[i] > '9')
			return false;
		v = v * 10 + (unsigned int)(t.p[i] - '0');
	}
	*ret = (uint16_t)v;
	return v <= 65535;
}

struct authority {
	struct http_text host;
	bool literal6, has_port;
	uint16_t port;
};

/* host, host:port, [v6], [v6]:port. No user, no zone, no percent sign. */
static bool take_authority(struct http_text t, struct authority *ret)
{
	struct http_text rest = {NULL, 0};

	*ret = (struct authority){.has_port = false};
	if (t.n && t.p[0] == '[') {
		const char *end = memchr(t.p, ']', t.n);
		if (!end)
			return false;
		ret->literal6 = true;
		ret->host = (struct http_text){t.p + 1, (size_t)(end - t.p) - 1};
		rest = (struct http_text){end + 1, t.n - ret->host.n - 2};
		if (memchr(ret->host.p, '-', ret->host.n) || memchr(ret->host.p, '_', ret->host.n))
			return false;
		for (size_t i = 0; i < ret->host.n; i++)
			if (ret->host.p[i] != ':' && !is_a((unsigned char)ret->host.p[i], NAME))
				return false;
	} else {
		const char *colon = memchr(t.p, ':', t.n);
		size_t n = colon ? (size_t)(colon - t.p) : t.n;
		ret->host = (struct http_text){t.p, n};
		rest = (struct http_text){t.p + n, t.n - n};
		if (!all(ret->host, NAME))
			return false;
	}
	if (ret->host.n == 0 || ret->host.n > MAX_HOST_BYTES)
		return false;
	if (rest.n == 0)
		return true;
	ret->has_port = rest.p[0] == ':';
	return ret->has_port && take_port((struct http_text){rest.p + 1, rest.n - 1}, &ret->port);
}

static enum http_verdict take_absolute(struct http_text target, struct http_head *h,
				       struct http_bad *b)
{
	static const char scheme[] = "http://";
	struct authority a;
	size_t n = 0;

	if (target.n >= 8 && http_text_is((struct http_text){target.p, 8}, "https://"))
		return bad(
			b, 400,
			"https:// needs CONNECT: the proxy makes no TLS connection for a client");
	if (target.n && target.p[0] == '/')
		return bad(b, 403, "a target without a host: this is a proxy");
	if (target.n < 7 || !http_text_is((struct http_text){target.p, 7}, scheme))
		return bad(b, 400, "a target that is not http://");
	target.p += 7;
	target.n -= 7;
	while (n < target.n && target.p[n] != '/' && target.p[n] != '?')
		n++;
	if (!take_authority((struct http_text){target.p, n}, &a))
		return bad(b, 400, "the target's host is not well-formed");
	h->form = HTTP_FORM_ABSOLUTE;
	h->host = a.host;
	h->literal6 = a.literal6;
	h->port = a.has_port ? a.port : 80;
	h->path = (struct http_text){target.p + n, target.n - n};
	return HTTP_DONE;
}

/* The host is Host's: check_host(). */
static enum http_verdict take_origin(struct http_text target, struct http_head *h,
				     struct http_bad *b)
{
	bool all_of_it = target.n == 1 && target.p[0] == '*';

	if (http_text_is(h->method, "CONNECT"))
		return bad(b, 400, "CONNECT to a server that is no proxy");
	if (target.p[0] != '/' && !(all_of_it && http_text_is(h->method, "OPTIONS")))
		return bad(b, 400, "a target that is no path");
	h->path = target;
	return HTTP_DONE;
}

static enum http_verdict take_target(struct http_text target, struct http_head *h,
				     struct http_bad *b)
{
	struct authority a;

	if (target.n > MAX_TARGET_BYTES)
		return bad(b, 414, "the target is too long");
	if (target.n == 0 || !all(target, TARGET))
		return bad(b, 400, "a byte that is not allowed in a target");
	if (h->form == HTTP_FORM_ORIGIN)
		return take_origin(target, h, b);
	if (!http_text_is(h->method, "CONNECT"))
		return take_absolute(target, h, b);
	if (!take_authority(target, &a) || !a.has_port)
		return bad(b, 400, "CONNECT takes host:port");
	h->form = HTTP_FORM_CONNECT;
	h->host = a.host;
	h->literal6 = a.literal6;
	h->port = a.port;
	h->path = (struct http_text){target.p, 0};
	return HTTP_DONE;
}

static enum http_verdict take_request_line(struct http_text line, struct http_head *h,
					   struct http_bad *b)
{
	const char *space = memchr(line.p, ' ', line.n);
	const char *second = NULL;

	if (space)
		second = memchr(space + 1, ' ', line.n - (size_t)(space + 1 - line.p));
	if (!second)
		return bad(b, 400, "the first line is no request");
	h->method = (struct http_text){line.p, (size_t)(space - line.p)};
	struct http_text target = {space + 1, (size_t)(second - space) - 1};
	struct http_text version = {second + 1, line.n - (size_t)(second + 1 - line.p)};
	if (!all(h->method, TOKEN) || h->method.n == 0)
		return bad(b, 400, "the method is no word");
	if (!take_version(version, &h->minor))
		return bad(b, version.n == 8 && memcmp(version.p, "HTTP/", 5) == 0 ? 505 : 400,
			   "the version is neither HTTP/1.0 nor HTTP/1.1");
	if (!is_method(h->method))
		return bad(b, 501, "a method that is not passed on");
	return take_target(target, h, b);
}

static struct http_text without_dot(struct http_text t)
{
	if (t.n > 1 && t.p[t.n - 1] == '.')
		t.n--;
	return t;
}

/* HTTP/1.1: exactly one Host (RFC 9112, 3.2); it says what the target says. */
static enum http_verdict check_host(struct http_head *h, struct http_bad *b)
{
	const struct http_field *f = find(h, "host");
	struct authority a;

	if (!f)
		return h->minor == 0 ? HTTP_DONE : bad(b, 400, "no Host");
	if (!take_authority(f->value, &a))
		return bad(b, 400, "Host is not well-formed");
	if (h->form == HTTP_FORM_ORIGIN) {
		h->host = a.host;
		h->literal6 = a.literal6;
		h->port = a.has_port ? a.port : h->port;
		return HTTP_DONE;
	}
	uint16_t port = a.has_port ? a.port : h->form == HTTP_FORM_CONNECT ? 443 : 80;
	if (a.literal6 != h->literal6 || port != h->port ||
	    !same_text(without_dot(a.host), without_dot(h->host))) {
		*b = (struct http_bad){400, "Host is not the target's", true};
		return HTTP_BAD;
	}
	return HTTP_DONE;
}

/* Another protocol is never begun here (that is what CONNECT is for), but the wish is well-formed. */
static enum http_verdict check_upgrade(struct http_head *h, const struct connection *c,
				       struct http_bad *b)
{
	const struct http_field *f = find(h, "upgrade");
	struct http_text one;

	if (!f)
		return c->upgrade ? bad(b, 400, "Connection: upgrade without Upgrade") : HTTP_DONE;
	h->upgrade = true;
	if (!c->upgrade)
		return bad(b, 400, "Upgrade without Connection: upgrade");
	if (h->body != HTTP_BODY_NONE || h->minor == 0 || h->form == HTTP_FORM_CONNECT)
		return bad(b, 400, "Upgrade where none can be");
	struct http_text list = f->value;
	while (next_element(&list, &one)) {
		const char *slash = memchr(one.p, '/', one.n);
		size_t n = slash ? (size_t)(slash - one.p) : one.n;
		struct http_text version = {one.p + n + 1, slash ? one.n - n - 1 : 0};
		if (n == 0 || !all((struct http_text){one.p, n}, TOKEN) ||
		    (slash && (version.n == 0 || !all(version, TOKEN))))
			return bad(b, 400, "Upgrade is no list of protocols");
		h->websocket |= http_text_is((struct http_text){one.p, n}, "websocket");
	}
	return HTTP_DONE;
}

static enum http_verdict check_request(struct http_head *h, struct http_bad *b)
{
	struct connection c;
	const struct http_field *expect = find(h, "expect");

	if (check_single(h, b) != HTTP_DONE || take_hops(h, &c, b) != HTTP_DONE ||
	    check_host(h, b) != HTTP_DONE || take_body(h, b) != HTTP_DONE)
		return HTTP_BAD;
	if (h->form == HTTP_FORM_CONNECT &&
	    (find(h, "content-length") || find(h, "transfer-encoding")))
		return bad(b, 400, "CONNECT with a body");
	if (expect && !http_text_is(expect->value, "100-continue"))
		return bad(b, 417, "an expectation that is not 100-continue");
	h->expects_continue = expect && h->body != HTTP_BODY_NONE && h->minor == 1;
	return check_upgrade(h, &c, b);
}

static enum http_verdict parse_request(const char *p, size_t n, struct http_head *ret,
				       struct http_bad *ret_bad)
{
	struct reader r = {p, n, 0, ret_bad};
	struct http_text line;

	ret->count = 0;
	ret->length = 0;
	ret->upgrade = ret->websocket = false;
	ret->body = HTTP_BODY_NONE;
	/* The first line is judged as soon as it is there. */
	enum http_verdict v = next_line(&r, &line);
	if (v == HTTP_DONE)
		v = take_request_line(line, ret, ret_bad);
	if (v == HTTP_DONE)
		v = take_fields(&r, ret);
	return v == HTTP_DONE ? check_request(ret, ret_bad) : v;
}

enum http_verdict http_request_parse(const char *p, size_t n, struct http_head *ret,
				     struct http_bad *ret_bad)
{
	ret->form = HTTP_FORM_ABSOLUTE;
	return parse_request(p, n, ret, ret_bad);
}

enum http_verdict http_origin_parse(const char *p, size_t n, uint16_t port, struct http_head *ret,
				    struct http_bad *ret_bad)
{
	ret->form = HTTP_FORM_ORIGIN;
	ret->port = port;
	ret->literal6 = false;
	ret->host = (struct http_text){p, 0};
	return parse_request(p, n, ret, ret_bad);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool take_status_line(struct http_text line, struct http_head *h)
{
	if (line.n < 12 || !take_version((struct http_text){line.p, 8}, &h->minor) ||
	    line.p[8] != ' ' || line.p[9] < '1' || line.p[9] > '9' || !is_digit(line.p[10]) ||
	    !is_digit(line.p[11]) || (line.n > 12 && line.p[12] != ' '))
		return false;
	h->status = (unsigned int)(line.p[9] - '0') * 100 + (unsigned int)(line.p[10] - '0') * 10 +
		    (unsigned int)(line.p[11] - '0');
	h->reason = line.n > 13 ? (struct http_text){line.p + 13, line.n - 13}
				: (struct http_text){line.p, 0};
	return all(h->reason, VALUE);
}

enum http_verdict http_response_parse(const char *p, size_t n, bool to_head, struct http_head *ret,
				      struct http_bad *ret_bad)
{
	struct reader r = {p, n, 0, ret_bad};
	struct http_text line;
	struct connection c;

	ret->count = 0;
	ret->length = 0;
	ret->body = HTTP_BODY_CLOSE;
	enum http_verdict v = next_line(&r, &line);
	if (v == HTTP_DONE && !take_status_line(line, ret))
		v = bad(ret_bad, 502, "the first line is no response");
	if (v == HTTP_DONE)
		v = take_fields(&r, ret);
	if (v != HTTP_DONE)
		return v;
	if (check_single(ret, ret_bad) != HTTP_DONE || take_hops(ret, &c, ret_bad) != HTTP_DONE ||
	    take_body(ret, ret_bad) != HTTP_DONE)
		return HTTP_BAD;
	if (to_head || ret->status / 100 == 1 || ret->status == 204 || ret->status == 304)
		ret->body = HTTP_BODY_NONE;
	return HTTP_DONE;
}

static void add_fields(const struct http_head *h, struct buf *out)
{
	for (size_t i = 0; i < h->count; i++) {
		const struct http_field *f = &h->fields[i];
		if (f->hop || http_text_is(f->name, "host"))
			continue;
		(void)buf_add(out, f->name.p, f->name.n);
		(void)buf_str(out, ": ");
		(void)buf_add(out, f->value.p, f->value.n);
		(void)buf_str(out, "\r\n");
	}
	if (h->body == HTTP_BODY_CHUNKED)
		(void)buf_str(out, "Transfer-Encoding: chunked\r\n");
}

void http_request_write(const struct http_head *h, const char *authority, struct buf *out)
{
	(void)buf_add(out, h->method.p, h->method.n);
	(void)buf_char(out, ' ');
	/* RFC 9112, 3.2.4: OPTIONS of a server as a whole. */
	if (h->path.n == 0)
		(void)buf_str(out, http_text_is(h->method, "OPTIONS") ? "*" : "/");
	else if (h->path.p[0] == '?')
		(void)buf_char(out, '/');
	(void)buf_add(out, h->path.p, h->path.n);
	(void)buf_printf(out, " HTTP/1.%u\r\nHost: ", h->minor);
	(void)buf_str(out, authority);
	(void)buf_str(out, "\r\n");
	add_fields(h, out);
	(void)buf_str(out, "Connection: close\r\n\r\n");
}

void http_response_write(const struct http_head *h, bool keep, struct buf *out)
{
	(void)buf_printf(out, "HTTP/1.1 %u ", h->status);
	(void)buf_add(out, h->reason.p, h->reason.n);
	(void)buf_str(out, "\r\n");
	add_fields(h, out);
	if (h->status / 100 != 1)
		(void)buf_printf(out, "Connection: %s\r\n", keep ? "keep-alive" : "close");
	(void)buf_str(out, "\r\n");
}

enum {
	CHUNK_SIZE,
	CHUNK_EXTENSION, /* responses */
	CHUNK_SIZE_LF,
	CHUNK_DATA,
	CHUNK_DATA_CR,
	CHUNK_DATA_LF,
	CHUNK_LAST,    /* after the chunk of size 0: its empty line, or a trailer */
	CHUNK_TRAILER, /* responses */
	CHUNK_TRAILER_LF,
	CHUNK_LAST_LF,
	CHUNK_END,
};

static int hex_digit(char c)
{
	if (is_digit(c))
		return c - '0';
	c = lower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static const char *feed_size(struct http_chunks *c, char byte)
{
	int digit = hex_digit(byte);

	if (digit >= 0) {
		if (c->digits++ == MAX_CHUNK_DIGITS)
			return "a chunk size that is too long";
		c->left = c->left << 4 | (unsigned int)digit;
		return NULL;
	}
	if (c->digits == 0)
		return "a chunk without a size";
	if (byte == '\r') {
		c->state = CHUNK_SIZE_LF;
		return NULL;
	}
	if (!c->response || (byte != ';' && byte != ' ' && byte != '\t'))
		return "a chunk size that is no hexadecimal number, or an extension";
	c->state = CHUNK_EXTENSION;
	return NULL;
}

static const char *expect_byte(struct http_chunks *c, char byte, char want, unsigned int next)
{
	c->state = next;
	return byte == want ? NULL : "CRLF is missing in a chunked body";
}

/* Any byte outside of a chunk's data. */
static const char *feed_byte(struct http_chunks *c, char byte)
{
	switch (c->state) {
	case CHUNK_SIZE:
		return feed_size(c, byte);
	case CHUNK_EXTENSION:
	case CHUNK_TRAILER:
		if (byte == '\r')
			c->state = c->state == CHUNK_TRAILER ? CHUNK_TRAILER_LF : CHUNK_SIZE_LF;
		else if (!is_a((unsigned char)byte, VALUE) || c->digits++ == MAX_HEAD_BYTES)
			return "an extension or trailer that is not well-formed";
		return NULL;
	case CHUNK_SIZE_LF:
		return expect_byte(c, byte, '\n', c->left ? CHUNK_DATA : CHUNK_LAST);
	case CHUNK_DATA_CR:
		return expect_byte(c, byte, '\r', CHUNK_DATA_LF);
	case CHUNK_DATA_LF:
		c->digits = 0;
		return expect_byte(c, byte, '\n', CHUNK_SIZE);
	case CHUNK_LAST:
		if (byte != '\r' && c->response && is_a((unsigned char)byte, TOKEN)) {
			c->state = CHUNK_TRAILER;
			return NULL;
		}
		c->state = CHUNK_LAST_LF;
		return byte == '\r' ? NULL : "a trailer";
	case CHUNK_TRAILER_LF:
		return expect_byte(c, byte, '\n', CHUNK_LAST);
	case CHUNK_LAST_LF:
		return expect_byte(c, byte, '\n', CHUNK_END);
	default:
		return "bytes after the end of a chunked body";
	}
}

enum http_verdict http_chunks_feed(struct http_chunks *c, const char *p, size_t n, size_t *ret_used,
				   struct http_bad *ret_bad)
{
	size_t at = 0;

	while (at < n && c->state != CHUNK_END) {
		if (c->state == CHUNK_DATA) {
			size_t take = n - at < c->left ? n - at : (size_t)c->left;
			at += take;
			c->left -= take;
			if (c->left == 0)
				c->state = CHUNK_DATA_CR;
			continue;
		}
		const char *why = feed_byte(c, p[at]);
		if (why) {
			*ret_used = at;
			return bad(ret_bad, 400, why);
		}
		at++;
	}
	*ret_used = at;
	return c->state == CHUNK_END ? HTTP_DONE : HTTP_MORE;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of requests beside llhttp, the parser of node: whatever ours takes,
 * llhttp takes, and sees the same fields and the same end of the body. The other
 * way round it may not be: ours is the stricter one.
 */
#include <llhttp.h>

#include "fuzz_base.h"
#include "proxy/http.h"

struct seen {
	size_t body, fields;
	bool in_name, complete;
	size_t end; /* of the message, in bytes of the input */
	const char *p;
};

static int on_field(llhttp_t *parser, const char *at, size_t n)
{
	struct seen *s = parser->data;

	(void)at;
	(void)n;
	if (!s->in_name)
		s->fields++;
	s->in_name = true;
	return 0;
}

static int on_value(llhttp_t *parser)
{
	struct seen *s = parser->data;

	s->in_name = false;
	return 0;
}

static int on_body(llhttp_t *parser, const char *at, size_t n)
{
	struct seen *s = parser->data;

	(void)at;
	s->body += n;
	return 0;
}

static int on_complete(llhttp_t *parser)
{
	struct seen *s = parser->data;

	s->complete = true;
	return HPE_PAUSED;
}

/* Bytes of the body by our reader; *ret_end: its end in the input; false: not complete, or refused. */
static bool ours(const struct http_head *h, const char *p, size_t n, size_t *ret_end)
{
	struct http_chunks c = {.state = 0};
	struct http_bad bad;
	size_t used = 0;

	switch (h->body) {
	case HTTP_BODY_LENGTH:
		*ret_end = h->bytes + (size_t)h->length;
		return h->length <= n - h->bytes;
	case HTTP_BODY_CHUNKED:
		if (http_chunks_feed(&c, p + h->bytes, n - h->bytes, &used, &bad) != HTTP_DONE)
			return false;
		*ret_end = h->bytes + used;
		return true;
	case HTTP_BODY_NONE:
	case HTTP_BODY_CLOSE:
		*ret_end = h->bytes;
		return true;
	}
	return false;
}

static void beside(const struct http_head *h, const char *p, size_t end)
{
	struct seen seen = {.p = p};
	llhttp_settings_t settings;
	llhttp_t parser;

	llhttp_settings_init(&settings);
	settings.on_header_field = on_field;
	settings.on_header_value_complete = on_value;
	settings.on_body = on_body;
	settings.on_message_complete = on_complete;
	llhttp_init(&parser, HTTP_REQUEST, &settings);
	parser.data = &seen;
	enum llhttp_errno rc = llhttp_execute(&parser, p, end);
	FUZZ_CHECK(rc == HPE_PAUSED || rc == HPE_PAUSED_UPGRADE);
	FUZZ_CHECK(seen.complete && seen.fields == h->count);
	FUZZ_CHECK(h->body != HTTP_BODY_LENGTH || seen.body == h->length);
	FUZZ_CHECK(!!parser.upgrade == (h->upgrade || h->form == HTTP_FORM_CONNECT));
	FUZZ_CHECK(parser.http_minor == h->minor);
	FUZZ_CHECK(llhttp_get_error_pos(&parser) >= p + end - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct http_head h;
	struct http_bad bad;
	size_t end = 0;
	char *p = fuzz_string(data, size);

	if (http_request_parse(p, size, &h, &bad) == HTTP_DONE && ours(&h, p, size, &end))
		beside(&h, p, end);
	if (http_origin_parse(p, size, 443, &h, &bad) == HTTP_DONE && ours(&h, p, size, &end))
		beside(&h, p, end);
	free(p);
	return 0;
}

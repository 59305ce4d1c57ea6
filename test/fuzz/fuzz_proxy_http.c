/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heads of requests and responses and chunked bodies. What is taken is written out
 * again, and what was written is taken, with the same framing and nothing hop-by-hop.
 */
#include "fuzz_base.h"
#include "proxy/http.h"

static void within(struct http_text t, const char *p, size_t n)
{
	FUZZ_CHECK(t.p >= p && t.p + t.n <= p + n);
}

static void check_head(const struct http_head *h, const char *p, size_t n)
{
	FUZZ_CHECK(h->count <= MAX_HEAD_FIELDS && h->bytes <= n && h->bytes <= MAX_HEAD_BYTES);
	for (size_t i = 0; i < h->count; i++) {
		within(h->fields[i].name, p, n);
		within(h->fields[i].value, p, n);
		FUZZ_CHECK(!memchr(h->fields[i].value.p, '\n', h->fields[i].value.n));
	}
}

static void check_written(const struct http_head *h)
{
	static struct http_head again;
	struct http_bad bad;
	AUTO_BUF out = BUF_INIT(4 * MAX_HEAD_BYTES);
	AUTO_BUF absolute = BUF_INIT(4 * MAX_HEAD_BYTES);

	http_request_write(h, "a.test", &out);
	FUZZ_CHECK(!out.failed);
	/* Origin-form becomes absolute again, to be read by the same reader. */
	const char *path = memchr(out.p, ' ', out.n);
	FUZZ_CHECK(path != NULL);
	path++;
	if (*path == '*')
		return;
	(void)buf_add(&absolute, out.p, (size_t)(path - out.p));
	(void)buf_str(&absolute, "http://a.test");
	(void)buf_add(&absolute, path, out.n - (size_t)(path - out.p));
	/* What was at a limit may be above it now. */
	if (http_request_parse(absolute.p, absolute.n, &again, &bad) != HTTP_DONE) {
		FUZZ_CHECK(bad.status == 431 || bad.status == 414);
		return;
	}
	FUZZ_CHECK(again.body == h->body && again.length == h->length && !again.upgrade);
	FUZZ_CHECK(again.bytes == absolute.n && !again.keep_alive);
}

static void fuzz_chunks(const char *p, size_t n, bool response)
{
	struct http_chunks whole = {.response = response};
	struct http_chunks single = {.response = response};
	struct http_bad bad;
	size_t used = 0;
	size_t one = 0;
	size_t at = 0;
	enum http_verdict v = http_chunks_feed(&whole, p, n, &used, &bad);
	enum http_verdict w = HTTP_MORE;

	FUZZ_CHECK(used <= n);
	for (; at < n && w == HTTP_MORE; at += one)
		w = http_chunks_feed(&single, p + at, 1, &one, &bad);
	FUZZ_CHECK(n == 0 || (v == w && used == at));
}

/* What a host under inspection is asked: written out, it says the same to the same reader. */
static void fuzz_origin(const char *p, size_t n)
{
	static struct http_head h;
	static struct http_head again;
	struct http_bad bad;
	AUTO_BUF out = BUF_INIT(4 * MAX_HEAD_BYTES);

	if (http_origin_parse(p, n, 443, &h, &bad) != HTTP_DONE)
		return;
	check_head(&h, p, n);
	within(h.path, p, n);
	FUZZ_CHECK(h.form == HTTP_FORM_ORIGIN && h.path.n && h.port);
	FUZZ_CHECK(h.path.p[0] == '/' || (h.path.n == 1 && h.path.p[0] == '*'));
	FUZZ_CHECK(h.host.n || h.minor == 0);
	http_request_write(&h, "a.test", &out);
	FUZZ_CHECK(!out.failed);
	if (http_origin_parse(out.p, out.n, 443, &again, &bad) != HTTP_DONE) {
		FUZZ_CHECK(bad.status == 431);
		return;
	}
	FUZZ_CHECK(again.body == h.body && again.length == h.length && again.bytes == out.n);
	FUZZ_CHECK(again.path.n == h.path.n && memcmp(again.path.p, h.path.p, h.path.n) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct http_head h;
	struct http_bad bad;
	char *p = fuzz_string(data, size);
	enum http_verdict v = http_request_parse(p, size, &h, &bad);

	if (v == HTTP_DONE) {
		check_head(&h, p, size);
		within(h.method, p, size);
		within(h.host, p, size);
		within(h.path, p, size);
		if (h.form == HTTP_FORM_ABSOLUTE)
			check_written(&h);
		fuzz_chunks(p + h.bytes, size - h.bytes, false);
	}
	if (v == HTTP_BAD)
		FUZZ_CHECK(bad.why && bad.status >= 400 && bad.status < 600);
	fuzz_origin(p, size);
	if (http_response_parse(p, size, false, &h, &bad) == HTTP_DONE) {
		check_head(&h, p, size);
		fuzz_chunks(p + h.bytes, size - h.bytes, true);
	}
	fuzz_chunks(p, size, true);
	fuzz_chunks(p, size, false);
	free(p);
	return 0;
}

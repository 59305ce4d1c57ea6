/* SPDX-License-Identifier: Apache-2.0 */
#include "run/capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/utf8.h"
#include "run/censor.h"

#define MAX_KEEP (UINT64_C(64) << 20) /* also with --output none: the result is one document */

void capture_init(struct capture *c, uint64_t keep_bytes)
{
	*c = (struct capture){.keep = (size_t)(keep_bytes < MAX_KEEP ? keep_bytes : MAX_KEEP)};
}

static size_t head_max(const struct capture *c)
{
	return c->keep - c->keep / 2;
}

static size_t add_head(struct capture *c, const char *p, size_t n)
{
	size_t room = head_max(c) - c->head_n;
	size_t take = n < room ? n : room;

	if (!take)
		return 0;
	if (c->head_n + take > c->head_cap) {
		size_t cap = c->head_cap ? c->head_cap : 4096;
		while (cap < c->head_n + take)
			cap *= 2;
		if (cap > head_max(c))
			cap = head_max(c);
		char *more = realloc(c->head, cap);
		if (!more) {
			c->failed = true;
			return 0;
		}
		c->head = more;
		c->head_cap = cap;
	}
	memcpy(c->head + c->head_n, p, take);
	c->head_n += take;
	return take;
}

static void add_tail(struct capture *c, const char *p, size_t n)
{
	size_t max = c->keep / 2;

	if (!max)
		return;
	if (!c->tail && !(c->tail = malloc(max))) {
		c->failed = true;
		return;
	}
	if (n > max) {
		p += n - max;
		n = max;
	}
	size_t first = max - c->tail_at < n ? max - c->tail_at : n;
	memcpy(c->tail + c->tail_at, p, first);
	memcpy(c->tail, p + first, n - first);
	c->tail_at = (c->tail_at + n) % max;
	c->tail_n = c->tail_n + n < max ? c->tail_n + n : max;
}

void capture_add(struct capture *c, const char *p, size_t n)
{
	c->bytes += n;
	if (c->failed)
		return;
	size_t used = add_head(c, p, n);
	if (used < n && !c->failed)
		add_tail(c, p + used, n - used);
}

void capture_release(struct capture *c)
{
	free(c->head);
	free(c->tail);
	*c = (struct capture){.keep = 0};
}

/* Length without a code point at the end that is not complete. */
static size_t whole_end(const char *p, size_t n)
{
	size_t back = 0;

	/* At most three continuation bytes, then the byte that says how many there are. */
	while (back < 3 && back < n && ((unsigned char)p[n - 1 - back] & 0xc0) == 0x80)
		back++;
	if (back == n)
		return n;
	unsigned char lead = (unsigned char)p[n - 1 - back];
	size_t need = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
	return need > back + 1 ? n - back - 1 : n;
}

/* Head, marker if something is missing, tail; cuts are between code points. */
static bool join(const struct capture *c, struct buf *out, bool *ret_cut)
{
	size_t max = c->keep / 2;
	uint64_t kept = c->head_n + c->tail_n;
	size_t head = c->head_n;
	size_t skip = 0;

	*ret_cut = c->bytes > kept;
	if (*ret_cut)
		head = whole_end(c->head, c->head_n);
	size_t start = c->tail_n < max ? 0 : c->tail_at;
	char *tail = c->tail_n ? malloc(c->tail_n) : NULL;
	if (c->tail_n && !tail)
		return false;
	for (size_t i = 0; i < c->tail_n; i++)
		tail[i] = c->tail[(start + i) % max];
	/* A tail that begins inside a code point: at most three continuation bytes. */
	while (*ret_cut && skip < 3 && skip < c->tail_n &&
	       ((unsigned char)tail[skip] & 0xc0) == 0x80)
		skip++;
	(void)buf_add(out, c->head_n ? c->head : "", head);
	if (*ret_cut)
		(void)buf_printf(out, "\n[… %llu bytes left out …]\n",
				 (unsigned long long)(c->bytes - head - (c->tail_n - skip)));
	(void)buf_add(out, c->tail_n ? tail + skip : "", c->tail_n - skip);
	free(tail);
	return !out->failed;
}

/* What a terminal would obey is written out (\\x1b); line ends and tabs stay. */
static void write_text(struct json *j, const char *p, size_t n)
{
	AUTO_BUF safe = BUF_INIT(n * 8 + 1);
	size_t plain = 0;

	for (size_t at = 0; at < n;) {
		uint32_t cp = 0;
		size_t len = utf8_decode(p + at, n - at, &cp);
		if (cp != '\n' && cp != '\t' && cp != '\r' && utf8_is_unsafe(cp)) {
			(void)buf_add(&safe, p + plain, at - plain);
			(void)buf_printf(&safe, cp < 0x100 ? "\\x%02x" : "\\u{%x}",
					 (unsigned int)cp);
			plain = at + len;
		}
		at += len;
	}
	(void)buf_add(&safe, p + plain, n - plain);
	json_strn(j, buf_cstr(&safe), safe.n);
}

void capture_json(const struct capture *c, const struct censor *hide, const char *file,
		  struct json *j)
{
	AUTO_BUF text = BUF_INIT(c->keep + 256);
	bool cut = false;
	bool whole = join(c, &text, &cut);
	const char *p = text.p ? text.p : "";
	if (text.n)
		(void)censor_blot(hide, text.p, text.n);

	json_obj_begin(j);
	json_key(j, "text");
	if (!whole)
		json_nil(j);
	else if (utf8_valid(p, text.n))
		write_text(j, p, text.n);
	else
		json_base64(j, p, text.n);
	json_kv_str(j, "encoding", utf8_valid(p, text.n) ? "utf-8" : "base64");
	json_kv_uint(j, "bytes", c->bytes);
	json_kv_bool(j, "truncated", cut);
	json_kv_str(j, "file", file);
	json_obj_end(j);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON writer. Wrong nesting is our bug and asserts; text and sizes are
 * foreign and only ever make the buffer fail.
 */
#include "base/json.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/base64.h"
#include "base/utf8.h"

/* What comes before each value: a comma in arrays, nothing behind a key. */
static void value_begin(struct json *j)
{
	assert(!j->done);
	if (j->depth == 0)
		return;
	if (j->level[j->depth - 1].is_obj) {
		assert(j->key_pending);
		j->key_pending = false;
		return;
	}
	if (j->level[j->depth - 1].has_items)
		(void)buf_char(j->out, ','); /* failures stick, json_finish() reports them */
	j->level[j->depth - 1].has_items = true;
}

static void value_end(struct json *j)
{
	if (j->depth == 0)
		j->done = true;
}

static void container_begin(struct json *j, bool is_obj)
{
	value_begin(j);
	assert(j->depth < JSON_DEPTH_MAX);
	j->level[j->depth].is_obj = is_obj;
	j->level[j->depth].has_items = false;
	j->depth++;
	(void)buf_char(j->out, is_obj ? '{' : '[');
}

static void container_end(struct json *j, bool is_obj)
{
	assert(j->depth > 0 && j->level[j->depth - 1].is_obj == is_obj && !j->key_pending);
	j->depth--;
	(void)buf_char(j->out, is_obj ? '}' : ']');
	value_end(j);
}

void json_obj_begin(struct json *j)
{
	container_begin(j, true);
}

void json_obj_end(struct json *j)
{
	container_end(j, true);
}

void json_arr_begin(struct json *j)
{
	container_begin(j, false);
}

void json_arr_end(struct json *j)
{
	container_end(j, false);
}

static void put_code_point(struct buf *out, const char *p, size_t len, uint32_t cp)
{
	static const char short_escapes[] = "\"\"\\\\\bb\ff\nn\rr\tt";

	for (size_t i = 0; cp < 0x80 && short_escapes[i]; i += 2) {
		if (cp == (unsigned char)short_escapes[i]) {
			(void)buf_char(out, '\\');
			(void)buf_char(out, short_escapes[i + 1]);
			return;
		}
	}
	if (!utf8_is_unsafe(cp))
		(void)buf_add(out, p, len);
	else if (cp < 0x10000)
		(void)buf_printf(out, "\\u%04x", (unsigned int)cp);
	else
		(void)buf_printf(out, "\\u%04x\\u%04x", (unsigned int)(0xd7c0 + (cp >> 10)),
				 (unsigned int)(0xdc00 + (cp & 0x3ff)));
}

/* How many of the n bytes at p need no escape; saves a call for each byte. */
static size_t plain_run(const char *p, size_t n)
{
	size_t i = 0;

	while (i < n && p[i] >= 0x20 && p[i] < 0x7f && p[i] != '"' && p[i] != '\\')
		i++;
	return i;
}

enum bad_bytes { BAD_BYTES_FAIL, BAD_BYTES_SHOWN };

static void put_string(struct buf *out, const char *p, size_t n, enum bad_bytes bad)
{
	(void)buf_char(out, '"');
	for (size_t i = 0; i < n && !out->failed;) {
		size_t run = plain_run(p + i, n - i);
		uint32_t cp;

		(void)buf_add(out, p + i, run);
		i += run;
		if (i == n)
			break;
		size_t len = utf8_decode(p + i, n - i, &cp);

		if (len > 0) {
			put_code_point(out, p + i, len, cp);
			i += len;
		} else if (bad == BAD_BYTES_SHOWN) {
			(void)buf_printf(out, "\\\\x%02x", (unsigned char)p[i]);
			i++;
		} else {
			out->failed = true;
		}
	}
	(void)buf_char(out, '"');
}

void json_key(struct json *j, const char *key)
{
	assert(j->depth > 0 && j->level[j->depth - 1].is_obj && !j->key_pending);
	assert(utf8_valid(key, strlen(key)));
	if (j->level[j->depth - 1].has_items)
		(void)buf_char(j->out, ',');
	j->level[j->depth - 1].has_items = true;
	put_string(j->out, key, strlen(key), BAD_BYTES_FAIL);
	(void)buf_char(j->out, ':');
	j->key_pending = true;
}

void json_strn(struct json *j, const char *p, size_t n)
{
	value_begin(j);
	put_string(j->out, p, n, BAD_BYTES_FAIL);
	value_end(j);
}

void json_str(struct json *j, const char *s)
{
	json_strn(j, s, strlen(s));
}

void json_text(struct json *j, const char *p, size_t n)
{
	value_begin(j);
	put_string(j->out, p, n, BAD_BYTES_SHOWN);
	value_end(j);
}

void json_base64(struct json *j, const void *p, size_t n)
{
	value_begin(j);
	(void)buf_char(j->out, '"');
	(void)base64_encode(j->out, p, n);
	(void)buf_char(j->out, '"');
	value_end(j);
}

void json_int(struct json *j, int64_t v)
{
	value_begin(j);
	(void)buf_printf(j->out, "%" PRId64, v);
	value_end(j);
}

void json_uint(struct json *j, uint64_t v)
{
	value_begin(j);
	(void)buf_printf(j->out, "%" PRIu64, v);
	value_end(j);
}

void json_bool(struct json *j, bool v)
{
	value_begin(j);
	(void)buf_str(j->out, v ? "true" : "false");
	value_end(j);
}

void json_nil(struct json *j)
{
	value_begin(j);
	(void)buf_str(j->out, "null");
	value_end(j);
}

void json_kv_str(struct json *j, const char *key, const char *s)
{
	json_key(j, key);
	if (s)
		json_str(j, s);
	else
		json_nil(j);
}

void json_kv_uint(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	json_uint(j, v);
}

void json_kv_int(struct json *j, const char *key, int64_t v)
{
	json_key(j, key);
	json_int(j, v);
}

void json_kv_bool(struct json *j, const char *key, bool v)
{
	json_key(j, key);
	json_bool(j, v);
}

void json_kv_null(struct json *j, const char *key)
{
	json_key(j, key);
	json_nil(j);
}

int json_finish(struct json *j, enum err_code code, struct err *e)
{
	assert(j->done && j->depth == 0);
	if (j->out->failed)
		return err_set(e, code,
			       "a JSON document does not fit into %zu bytes or holds invalid text",
			       j->out->max);
	return 0;
}

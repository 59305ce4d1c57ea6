/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON writer on a struct buf. Commas are its business; wrong nesting is our
 * bug and asserts. What it writes is valid UTF-8 on one line and safe to print
 * on a terminal: all that utf8_is_unsafe() names is written as \uXXXX.
 *
 * Failures (cap, memory, invalid text) stick in the buffer; check once, with
 * json_finish().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define JSON_DEPTH_MAX 16

struct json {
	struct buf *out;
	unsigned int depth;
	bool key_pending; /* a key was written, its value is due */
	bool done;        /* the one top-level value is complete */
	struct {
		bool is_obj;
		bool has_items;
	} level[JSON_DEPTH_MAX];
};

#define JSON_INIT(buf) ((struct json){.out = (buf)})

void json_obj_begin(struct json *j);
void json_obj_end(struct json *j);
void json_arr_begin(struct json *j);
void json_arr_end(struct json *j);
/* Only inside an object, before each value. Keys are ours: valid UTF-8 is asserted. */
void json_key(struct json *j, const char *key);

/* Must be valid UTF-8 (NUL allowed); else the document fails. */
void json_strn(struct json *j, const char *p, size_t n);
void json_str(struct json *j, const char *s);
/* Foreign bytes: whatever is not valid UTF-8 appears as the four characters \xNN. Cannot fail but for the cap. */
void json_text(struct json *j, const char *p, size_t n);
/* The bytes as a base64 string. */
void json_base64(struct json *j, const void *p, size_t n);
void json_int(struct json *j, int64_t v);
void json_uint(struct json *j, uint64_t v);
void json_bool(struct json *j, bool v);
void json_nil(struct json *j); /* null; jansson has the other name */

/* Key and value in one. A NULL string is null. */
void json_kv_str(struct json *j, const char *key, const char *s);
void json_kv_uint(struct json *j, const char *key, uint64_t v);
void json_kv_int(struct json *j, const char *key, int64_t v);
void json_kv_bool(struct json *j, const char *key, bool v);
void json_kv_null(struct json *j, const char *key);

/* The document is complete (asserted) and all of it is in the buffer, else code. Adds no line end. */
NODISCARD int json_finish(struct json *j, enum err_code code, struct err *e);

/* SPDX-License-Identifier: Apache-2.0 */
#include "chain/show.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/base.h"
#include "base/term.h"

#define SHORT_ID 8
#define MAX_TOLD 200u /* bytes of one value */
#define MAX_TEXT 65536u

/* At most `most` bytes of it. */
static void put(struct buf *out, const char *text, size_t most)
{
	char shown[MAX_TOLD + 4];

	(void)buf_str(out, term_escape_cut(shown, sizeof(shown), text, strnlen(text, most)));
}

static void put_value(struct buf *out, const json_t *v)
{
	if (json_is_string(v)) {
		put(out, json_string_value(v), MAX_TEXT);
	} else if (json_is_integer(v)) {
		(void)buf_printf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	} else if (json_is_boolean(v)) {
		(void)buf_str(out, json_is_true(v) ? "yes" : "no");
	} else if (json_is_array(v)) {
		for (size_t i = 0; i < json_array_size(v); i++) {
			const json_t *item = json_array_get(v, i);
			if (!json_is_string(item)) {
				(void)buf_printf(out, "(%zu)", json_array_size(v));
				return;
			}
			(void)buf_str(out, i ? " " : "");
			put(out, json_string_value(item), MAX_TEXT);
		}
	}
}

/* What is null or empty says nothing. */
static bool says_something(const json_t *v)
{
	return !json_is_null(v) && !(json_is_array(v) && json_array_size(v) == 0) &&
	       !(json_is_string(v) && !json_string_value(v)[0]);
}

void show_text(const struct record *r, struct buf *out)
{
	const char *key;
	json_t *v;

	(void)buf_printf(out, "%" PRIu64 " ", r->seq);
	put(out, r->time, MAX_TEXT);
	(void)buf_char(out, ' ');
	put(out, r->event, MAX_TEXT);
	(void)buf_char(out, ' ');
	put(out, r->actor, MAX_TEXT);
	if (r->session) {
		(void)buf_char(out, ' ');
		put(out, r->session, SHORT_ID);
	}
	if (r->tool) {
		(void)buf_str(out, " tool=");
		put(out, r->tool, MAX_TEXT);
	}
	if (r->decision) {
		(void)buf_char(out, ' ');
		put(out, r->decision, MAX_TEXT);
	}
	if (r->rule) {
		(void)buf_str(out, " by ");
		put(out, r->rule, MAX_TEXT);
	}
	json_object_foreach((json_t *)(uintptr_t)r->data, key, v)
	{
		if (!says_something(v))
			continue;
		(void)buf_char(out, ' ');
		put(out, key, MAX_TEXT);
		(void)buf_char(out, '=');
		put_value(out, v);
	}
	(void)buf_char(out, '\n');
}

static void cell(struct buf *out, const char *text)
{
	(void)buf_char(out, ',');
	if (!text)
		return;
	(void)buf_char(out, '"');
	if (text[0] && strchr("=+-@", text[0]))
		(void)buf_char(out, '\'');
	for (; *text; text++) {
		if (*text == '"')
			(void)buf_char(out, '"');
		(void)buf_char(out, *text);
	}
	(void)buf_char(out, '"');
}

void show_csv_head(struct buf *out)
{
	(void)buf_str(out,
		      "seq,time,event,session,call,tool,actor,agent,policy_sha256,decision,rule,"
		      "data,prev,hash\r\n");
}

void show_csv(const struct record *r, struct buf *out)
{
	const char *const cells[] = {r->time,  r->event, r->session,       r->call,     r->tool,
				     r->actor, r->agent, r->policy_sha256, r->decision, r->rule};
	char *data = json_dumps(r->data, JSON_COMPACT | JSON_ENSURE_ASCII);

	(void)buf_printf(out, "%" PRIu64, r->seq);
	for (size_t i = 0; i < ARRAY_LEN(cells); i++)
		cell(out, cells[i]);
	if (data)
		cell(out, data);
	else
		out->failed = true;
	free(data);
	cell(out, r->prev);
	cell(out, r->hash);
	(void)buf_str(out, "\r\n");
}

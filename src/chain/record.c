/* SPDX-License-Identifier: Apache-2.0 */
#include "chain/record.h"

#include <jansson.h>
#include <sodium.h>
#include <string.h>

#include "audit/line.h"
#include "base/base.h"
#include "base/utf8.h"

enum key_kind { KEY_TEXT, KEY_TEXT_OR_NULL, KEY_HASH };

static const struct {
	const char *name;
	enum key_kind kind;
	size_t at;
} keys[] = {
	{"time", KEY_TEXT, offsetof(struct record, time)},
	{"event", KEY_TEXT, offsetof(struct record, event)},
	{"session", KEY_TEXT_OR_NULL, offsetof(struct record, session)},
	{"call", KEY_TEXT_OR_NULL, offsetof(struct record, call)},
	{"tool", KEY_TEXT_OR_NULL, offsetof(struct record, tool)},
	{"actor", KEY_TEXT, offsetof(struct record, actor)},
	{"agent", KEY_TEXT_OR_NULL, offsetof(struct record, agent)},
	{"policy_sha256", KEY_TEXT_OR_NULL, offsetof(struct record, policy_sha256)},
	{"decision", KEY_TEXT_OR_NULL, offsetof(struct record, decision)},
	{"rule", KEY_TEXT_OR_NULL, offsetof(struct record, rule)},
	{"prev", KEY_HASH, offsetof(struct record, prev)},
	{"hash", KEY_HASH, offsetof(struct record, hash)},
};
#define KEYS_MORE 2 /* seq and data */

/* Before the parser sees it: how deep it goes, and nothing that a terminal would obey. */
static int look(const char *p, size_t n, struct err *e)
{
	unsigned int depth = 0;
	bool text = false;
	uint32_t cp = 0;

	for (size_t i = 0; i < n;) {
		size_t len = utf8_decode(p + i, n - i, &cp);
		if (!len || utf8_is_unsafe(cp))
			return err_set(e, ERR_CONFIG_INVALID,
				       "byte %zu is no text that sandglass writes", i + 1);
		if (text && cp == '\\')
			len++;
		else if (cp == '"')
			text = !text;
		else if (!text && (cp == '{' || cp == '['))
			depth++;
		else if (!text && (cp == '}' || cp == ']'))
			depth--;
		if (depth > MAX_RECORD_DEPTH)
			return err_set(e, ERR_CONFIG_INVALID, "it is nested too deeply");
		i += len;
	}
	return 0;
}

static bool is_hash(const char *text)
{
	return strlen(text) == AUDIT_HASH_TEXT - 1 &&
	       strspn(text, "0123456789abcdef") == AUDIT_HASH_TEXT - 1;
}

static int take(struct record *r, size_t i, struct err *e)
{
	const json_t *v = json_object_get(r->root, keys[i].name);
	const char *text = json_string_value(v);

	if (keys[i].kind == KEY_TEXT_OR_NULL ? !text && !json_is_null(v)
	    : keys[i].kind == KEY_HASH       ? !text || !is_hash(text)
					     : !text)
		return err_set(e, ERR_CONFIG_INVALID, "`%s` is missing or of another type",
			       keys[i].name);
	memcpy((char *)r + keys[i].at, &text, sizeof(text));
	return 0;
}

static int take_all(struct record *r, const char *p, size_t n, struct err *e)
{
	char hash[AUDIT_HASH_TEXT];

	if (!json_is_object(r->root) || json_object_size(r->root) != ARRAY_LEN(keys) + KEYS_MORE)
		return err_set(e, ERR_CONFIG_INVALID, "it has not the keys of a line");
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (take(r, i, e) < 0)
			return -1;
	r->data = json_object_get(r->root, "data");
	if (!json_is_object(r->data))
		return err_set(e, ERR_CONFIG_INVALID, "`data` is missing or of another type");
	r->hashed = audit_line_hashed(p, n);
	if (!audit_line_tip(p, n, &r->seq, hash) || strcmp(hash, r->hash) != 0)
		return err_set(e, ERR_CONFIG_INVALID,
			       "it does not begin with `seq` and end with `hash`");
	return 0;
}

int record_parse(const char *p, size_t n, struct record *ret, struct err *e)
{
	struct record r = {.root = NULL};
	json_error_t why;

	if (n >= MAX_AUDIT_LINE)
		return err_set(e, ERR_CONFIG_INVALID, "it is longer than %u bytes", MAX_AUDIT_LINE);
	if (look(p, n, e) < 0)
		return -1;
	r.root = json_loadb(p, n, JSON_REJECT_DUPLICATES, &why);
	if (!r.root)
		return err_set(e, ERR_CONFIG_INVALID, "it is no JSON: %s", why.text);
	if (take_all(&r, p, n, e) < 0) {
		json_decref(r.root);
		return -1;
	}
	*ret = r;
	return 0;
}

void record_release(struct record *r)
{
	json_decref(r->root);
	r->root = NULL;
}

bool record_hash_fits(const struct record *r, const char *p)
{
	unsigned char digest[crypto_hash_sha256_BYTES];
	char hex[AUDIT_HASH_TEXT];

	(void)crypto_hash_sha256(digest, (const unsigned char *)p, r->hashed);
	audit_hex(digest, sizeof(digest), hex);
	return strcmp(hex, r->hash) == 0;
}

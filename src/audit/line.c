/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line of the log, from an event. All that is foreign goes through the sieve and, where
 * the policy says so, gets pseudonyms; then through the JSON writer, which leaves no
 * control byte.
 */
#include "audit/line.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/utf8.h"

#define USUAL_BYTES 2048u
#define TAIL_BYTES 75         /* ,"hash":"…"} */
#define MAX_SCAN_BYTES 65536u /* of one text; what is behind is not looked at, nor written */

const char audit_no_hash[AUDIT_HASH_TEXT] =
	"0000000000000000000000000000000000000000000000000000000000000000";

void audit_hex(const unsigned char *p, size_t n, char *ret)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		ret[2 * i] = digits[p[i] >> 4];
		ret[2 * i + 1] = digits[p[i] & 15];
	}
	ret[2 * n] = '\0';
}

/* At most `max` bytes of it, with a mark if there was more. */
static void put_cut(struct json *o, const char *p, size_t n, size_t max)
{
	AUTO_BUF cut = BUF_INIT((size_t)MAX_AUDIT_TEXT + 8);
	static const char mark[] = "…";

	if (n <= max) {
		json_text(o, p, n);
		return;
	}
	(void)buf_add(&cut, p, utf8_cut(p, n, max - sizeof(mark) + 1));
	(void)buf_str(&cut, mark);
	json_text(o, buf_cstr(&cut), cut.n);
}

/* What went through the sieve, with pseudonyms if there are any. */
static void put_sieved(struct json *o, const struct audit_chain *c, const struct buf *sieved,
		       size_t max)
{
	AUTO_BUF hidden = BUF_INIT(8 * MAX_SCAN_BYTES);

	if (!c->hidden) {
		put_cut(o, buf_cstr(sieved), sieved->n, max);
		return;
	}
	pseudonym_text(c->hidden, buf_cstr(sieved), sieved->n, &hidden);
	put_cut(o, buf_cstr(&hidden), hidden.n, max);
}

static void put_text(struct json *o, const struct audit_chain *c, const char *text)
{
	AUTO_BUF sieved = BUF_INIT(8 * MAX_SCAN_BYTES);

	redact_text(text, strnlen(text, MAX_SCAN_BYTES), c->secrets, &sieved);
	put_sieved(o, c, &sieved, MAX_AUDIT_TEXT);
}

static void put_name(struct json *o, const struct audit_chain *c, const char *text)
{
	char name[PSEUDONYM_TEXT];

	if (c->hidden)
		json_str(o, pseudonym(c->hidden, text, strlen(text), name));
	else
		put_cut(o, text, strlen(text), MAX_AUDIT_TEXT);
}

static void put_host(struct json *o, const struct audit_chain *c, const char *text)
{
	AUTO_BUF hidden = BUF_INIT(MAX_SCAN_BYTES);

	if (c->hidden)
		pseudonym_host(c->hidden, text, strnlen(text, MAX_AUDIT_TEXT), &hidden);
	else
		(void)buf_add(&hidden, text, strnlen(text, MAX_AUDIT_TEXT));
	put_cut(o, buf_cstr(&hidden), hidden.n, MAX_AUDIT_TEXT);
}

/* NAME=VALUE behind `env` is an environment, up to what is none. */
static bool is_env(const char *arg)
{
	const char *slash = strrchr(arg, '/');

	return strcmp(slash ? slash + 1 : arg, "env") == 0;
}

static void put_argv(struct json *o, const struct audit_chain *c, char *const *argv)
{
	size_t left = MAX_AUDIT_ARGV;
	bool all = false;
	size_t i = 0;

	json_arr_begin(o);
	for (; argv[i] && i < MAX_AUDIT_ARGS && left > 16; i++) {
		AUTO_BUF sieved = BUF_INIT(8 * MAX_SCAN_BYTES);
		char bounded[MAX_AUDIT_TEXT];
		const char *before = NULL;

		if (i) {
			(void)snprintf(bounded, sizeof(bounded), "%s", argv[i - 1]);
			before = bounded;
		}
		all = all || is_env(argv[i]);
		redact_argument(before, argv[i], all, c->secrets, &sieved);
		size_t most = left < MAX_AUDIT_TEXT ? left : MAX_AUDIT_TEXT;
		put_sieved(o, c, &sieved, most);
		left -= sieved.n < most ? sieved.n : most;
	}
	size_t more = 0;
	while (argv[i + more])
		more++;
	if (more) {
		char text[48];
		(void)snprintf(text, sizeof(text), "… %zu more", more);
		json_str(o, text);
	}
	json_arr_end(o);
}

static void put_fields(struct json *o, const struct audit_chain *c, const struct audit_field *f,
		       size_t n);

static void put_rows(struct json *o, const struct audit_chain *c, const struct audit_field *f)
{
	json_arr_begin(o);
	for (size_t i = 0; i < f->count && i < MAX_AUDIT_ROWS; i++)
		put_fields(o, c, f->rows[i].fields, f->rows[i].count);
	if (f->count > MAX_AUDIT_ROWS) {
		json_obj_begin(o);
		json_kv_uint(o, "more", f->count - MAX_AUDIT_ROWS);
		json_obj_end(o);
	}
	json_arr_end(o);
}

static bool is_text(enum audit_kind kind)
{
	return kind == AUDIT_TEXT || kind == AUDIT_WORD || kind == AUDIT_PATH ||
	       kind == AUDIT_HOST || kind == AUDIT_URL || kind == AUDIT_NAME;
}

static void put_value(struct json *o, const struct audit_chain *c, const struct audit_field *f)
{
	switch (f->kind) {
	case AUDIT_NULL:
		json_nil(o);
		break;
	case AUDIT_TEXT:
	case AUDIT_PATH:
	case AUDIT_URL:
		put_text(o, c, f->text);
		break;
	case AUDIT_WORD:
		put_cut(o, f->text, strlen(f->text), MAX_AUDIT_TEXT);
		break;
	case AUDIT_HOST:
		put_host(o, c, f->text);
		break;
	case AUDIT_NAME:
		put_name(o, c, f->text);
		break;
	case AUDIT_ARGV:
		put_argv(o, c, f->argv);
		break;
	case AUDIT_UINT:
		json_uint(o, f->u);
		break;
	case AUDIT_INT:
		json_int(o, f->i);
		break;
	case AUDIT_BOOL:
		json_bool(o, f->b);
		break;
	case AUDIT_LIST:
		put_rows(o, c, f);
		break;
	}
}

static void put_fields(struct json *o, const struct audit_chain *c, const struct audit_field *f,
		       size_t n)
{
	assert(n <= MAX_AUDIT_FIELDS);
	json_obj_begin(o);
	for (size_t i = 0; i < n; i++) {
		json_key(o, f[i].key);
		if ((is_text(f[i].kind) && !f[i].text) || (f[i].kind == AUDIT_ARGV && !f[i].argv))
			json_nil(o);
		else
			put_value(o, c, &f[i]);
	}
	json_obj_end(o);
}

static void put_or_null(struct json *o, const struct audit_chain *c, const char *key,
			const char *text)
{
	json_key(o, key);
	if (text)
		put_text(o, c, text);
	else
		json_nil(o);
}

/* Without the hash and the end. */
static int put_line(const struct audit_chain *c, const struct audit_event *v, bool with_data,
		    struct buf *out, struct err *e)
{
	struct json o = JSON_INIT(out);
	char when[CLOCK_TEXT];

	json_obj_begin(&o);
	json_kv_uint(&o, "seq", c->seq + 1);
	json_kv_str(&o, "time", clock_rfc3339(v->time_ms ? v->time_ms : c->now_ms, when));
	json_kv_str(&o, "event", v->event);
	json_kv_str(&o, "session", v->session);
	json_kv_str(&o, "call", v->call);
	put_or_null(&o, c, "tool", v->tool);
	json_key(&o, "actor");
	put_name(&o, c, c->actor);
	put_or_null(&o, c, "agent", v->agent);
	json_kv_str(&o, "policy_sha256", v->policy_sha256);
	json_kv_str(&o, "decision", v->decision);
	put_or_null(&o, c, "rule", v->rule);
	json_key(&o, "data");
	if (with_data) {
		put_fields(&o, c, v->data, v->data_count);
	} else {
		json_obj_begin(&o);
		json_kv_bool(&o, "too_large", true);
		json_obj_end(&o);
	}
	json_kv_str(&o, "prev", c->hash);
	json_obj_end(&o);
	return json_finish(&o, ERR_INTERNAL, e);
}

int audit_line(struct audit_chain *c, const struct audit_event *v, struct buf *out, struct err *e)
{
	AUTO_BUF line = BUF_INIT(MAX_AUDIT_LINE - TAIL_BYTES - 1);
	unsigned char digest[SHA256_BYTES];
	char hash[AUDIT_HASH_TEXT];
	struct err ignored = {0};

	(void)buf_reserve(&line, USUAL_BYTES); /* what fails is the buffer, which is checked */
	if (put_line(c, v, true, &line, &ignored) < 0) {
		buf_clear(&line);
		if (put_line(c, v, false, &line, e) < 0)
			return -1;
	}
	sha256(line.p, line.n - 1, digest);
	audit_hex(digest, sizeof(digest), hash);
	(void)buf_add(out, line.p, line.n - 1);
	(void)buf_printf(out, ",\"hash\":\"%s\"}\n", hash);
	if (buf_check(out, "an append to the audit log", ERR_INTERNAL, e) < 0)
		return -1;
	c->seq++;
	memcpy(c->hash, hash, sizeof(hash));
	return 0;
}

size_t audit_line_hashed(const char *p, size_t n)
{
	static const char head[] = ",\"hash\":\"";

	if (n <= TAIL_BYTES || memcmp(p + n - TAIL_BYTES, head, sizeof(head) - 1) != 0 ||
	    p[n - 2] != '"' || p[n - 1] != '}')
		return 0;
	for (size_t i = n - TAIL_BYTES + sizeof(head) - 1; i < n - 2; i++)
		if (!strchr("0123456789abcdef", p[i]) || !p[i])
			return 0;
	return n - TAIL_BYTES;
}

bool audit_line_tip(const char *p, size_t n, uint64_t *ret_seq, char ret_hash[AUDIT_HASH_TEXT])
{
	static const char head[] = "{\"seq\":";
	uint64_t seq = 0;
	size_t hashed = audit_line_hashed(p, n);
	size_t i = sizeof(head) - 1;

	if (hashed <= i || memcmp(p, head, i) != 0 || p[i] < '1' || p[i] > '9')
		return false;
	for (; p[i] >= '0' && p[i] <= '9'; i++)
		if (__builtin_mul_overflow(seq, (uint64_t)10, &seq) ||
		    __builtin_add_overflow(seq, (uint64_t)(p[i] - '0'), &seq))
			return false;
	if (p[i] != ',' || i >= hashed)
		return false;
	*ret_seq = seq;
	memcpy(ret_hash, p + n - 2 - (AUDIT_HASH_TEXT - 1), AUDIT_HASH_TEXT - 1);
	ret_hash[AUDIT_HASH_TEXT - 1] = '\0';
	return true;
}

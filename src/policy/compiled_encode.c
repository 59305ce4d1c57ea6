/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the compiled form of policies.
 */
#include <assert.h>
#include <string.h>

#include "base/base.h"
#include "egress/secret.h"
#include "policy/compiled.h"
#include "policy/compiled_record.h"

struct writer {
	struct buf body;
	uint32_t records;
};

static void begin(struct writer *w, enum compiled_type type, size_t bytes)
{
	struct compiled_record r = {.type = type, .bytes = (uint32_t)bytes};

	assert(bytes <= MAX_COMPILED_BYTES);
	(void)buf_add(&w->body, &r, sizeof(r));
	w->records++;
}

static void text(struct writer *w, const char *s)
{
	(void)buf_add(&w->body, s, strlen(s) + 1);
}

static void put_error(struct writer *w, const struct err *error)
{
	uint32_t code = error->code;

	begin(w, CREC_ERROR, sizeof(code) + strlen(error->msg) + 1 + strlen(error->hint) + 1);
	(void)buf_add(&w->body, &code, sizeof(code));
	text(w, error->msg);
	text(w, error->hint);
}

static void put_numbers(struct writer *w, const struct compiled *c)
{
	struct record_numbers n = {.mode = c->mode,
				   .writes = c->writes,
				   .narrowed = c->narrowed,
				   .pseudonyms = c->pseudonyms,
				   .audit_kept_ms = c->audit_kept_ms};

	memcpy(n.limit, c->limit, sizeof(n.limit));
	begin(w, CREC_NUMBERS, sizeof(n));
	(void)buf_add(&w->body, &n, sizeof(n));
}

static void put_file(struct writer *w, const struct compiled_file *f)
{
	struct record_file r = {.layer = f->layer, .trusted = f->trusted};

	memcpy(r.sha256, f->sha256, sizeof(r.sha256));
	begin(w, CREC_FILE, sizeof(r) + strlen(f->path) + 1);
	(void)buf_add(&w->body, &r, sizeof(r));
	text(w, f->path);
}

static void put_rule(struct writer *w, const struct path_rule *rule)
{
	struct record_rule r = {.access = rule->access, .layer = rule->layer};

	r.flags = (rule->pattern ? RULE_PATTERN : 0u) | (rule->narrow ? RULE_NARROW : 0u);
	begin(w, CREC_RULE, sizeof(r) + strlen(rule->path) + 1 + strlen(rule->origin) + 1);
	(void)buf_add(&w->body, &r, sizeof(r));
	text(w, rule->path);
	text(w, rule->origin);
}

static void put_host(struct writer *w, const struct host_rule *rule)
{
	uint32_t list = rule->list;

	begin(w, CREC_HOST, sizeof(list) + strlen(rule->text) + 1 + strlen(rule->origin) + 1);
	(void)buf_add(&w->body, &list, sizeof(list));
	text(w, rule->text);
	text(w, rule->origin);
}

static void put_secret(struct writer *w, const struct secret_rule *s)
{
	const char *const texts[] = {s->name,  s->variable ? s->variable : "",
				     s->from,  s->header,
				     s->hosts, s->origin};
	uint32_t plain = s->plain;
	size_t bytes = sizeof(plain);

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		bytes += strlen(texts[i]) + 1;
	begin(w, CREC_SECRET, bytes);
	(void)buf_add(&w->body, &plain, sizeof(plain));
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		text(w, texts[i]);
}

static void put_all(struct writer *w, const struct compiled *c)
{
	begin(w, CREC_KEY, c->key_bytes);
	(void)buf_add(&w->body, c->key, c->key_bytes);
	if (c->failed) {
		put_error(w, &c->error);
		return;
	}
	put_numbers(w, c);
	for (size_t i = 0; i < c->file_count; i++)
		put_file(w, &c->files[i]);
	for (size_t i = 0; i < c->rule_count; i++)
		put_rule(w, &c->rules[i]);
	for (size_t i = 0; i < c->env_count; i++) {
		uint32_t if_there = c->env[i].if_there;
		begin(w, CREC_ENV, sizeof(if_there) + strlen(c->env[i].text) + 1);
		(void)buf_add(&w->body, &if_there, sizeof(if_there));
		text(w, c->env[i].text);
	}
	for (size_t i = 0; i < c->host_count; i++)
		put_host(w, &c->hosts[i]);
	for (size_t i = 0; i < c->secret_count; i++)
		put_secret(w, &c->secrets[i]);
	for (size_t i = 0; i < c->note_count; i++) {
		begin(w, CREC_NOTE, strlen(c->notes[i]) + 1);
		text(w, c->notes[i]);
	}
}

int compiled_encode(const struct compiled *c, struct buf *out, struct err *e)
{
	struct writer w = {.body = BUF_INIT(MAX_COMPILED_BYTES - sizeof(struct compiled_header))};
	struct compiled_header h = {.magic = COMPILED_MAGIC, .version = COMPILED_VERSION};

	assert(c->rule_count <= MAX_COMPILED_RULES && c->env_count <= MAX_COMPILED_ENV &&
	       c->host_count <= MAX_EGRESS_RULES && c->secret_count <= MAX_EGRESS_SECRETS &&
	       c->file_count <= MAX_COMPILED_FILES && c->note_count <= MAX_COMPILED_NOTES &&
	       c->key_bytes <= MAX_COMPILED_KEY);
	put_all(&w, c);
	int rc = buf_check(&w.body, "the compiled policy", ERR_CONFIG_INVALID, e);
	if (rc == 0) {
		h.total = (uint32_t)(sizeof(h) + w.body.n);
		h.records = w.records;
		sha256(w.body.p, w.body.n, h.sha256);
		(void)buf_add(out, &h, sizeof(h));
		(void)buf_add(out, w.body.p, w.body.n);
		rc = buf_check(out, "the compiled policy", ERR_CONFIG_INVALID, e);
	}
	buf_release(&w.body);
	return rc;
}

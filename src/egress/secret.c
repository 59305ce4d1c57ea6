/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A secret leaves only in the one header it is for: where a placeholder stands elsewhere,
 * it stays a placeholder.
 */
#include "egress/secret.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "base/sha256.h"

#define SECRETS_MAGIC 0x53454c53u /* "SLES" */
#define SECRETS_VERSION 2u

struct secrets_header {
	uint32_t magic, version, total, count;
	unsigned char sha256[SHA256_BYTES]; /* of all that follows */
};

/* Behind it the five texts, then `hosts` times a length and a text; none has a NUL. */
struct secret_record {
	uint32_t name, placeholder, field, value, raw, plain, hosts;
};

static void wipe(char *s)
{
	if (s)
		explicit_bzero(s, strlen(s));
	free(s);
}

static void release_one(struct egress_secret *s)
{
	free(s->name);
	free(s->placeholder);
	free(s->field);
	wipe(s->value);
	wipe(s->raw);
	egress_set_release(&s->hosts);
	*s = (struct egress_secret){.name = NULL};
}

void egress_secrets_release(struct egress_secrets *s)
{
	for (size_t i = 0; i < s->n; i++)
		release_one(&s->v[i]);
	s->n = 0;
}

const char *egress_secret_field_bad(const char *field, size_t n)
{
	static const char *const framing[] = {
		"host",         "content-length",   "transfer-encoding",
		"connection",   "trailer",          "te",
		"upgrade",      "keep-alive",       "expect",
		"content-type", "proxy-connection", "proxy-authorization",
	};

	if (n == 0 || n > MAX_SECRET_FIELD)
		return "a header's name has 1 to 64 bytes";
	for (size_t i = 0; i < n; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_",
			    field[i]) ||
		    !field[i])
			return "a header's name has letters, digits, `-` and `_`";
	for (size_t i = 0; i < ARRAY_LEN(framing); i++)
		if (strlen(framing[i]) == n && strncasecmp(framing[i], field, n) == 0)
			return "that header says what a request is; no secret stands there";
	return NULL;
}

/* RFC 9110 5.5: visible bytes, blanks and tabs, none at either end. */
static bool is_value(const char *s)
{
	size_t n = strlen(s);

	if (n == 0 || n > MAX_SECRET_VALUE || s[0] == ' ' || s[0] == '\t' || s[n - 1] == ' ' ||
	    s[n - 1] == '\t')
		return false;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];
		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

static const char *check(const struct egress_secrets *s, const char *name, const char *placeholder,
			 const char *field, const char *value)
{
	size_t n = strlen(placeholder);

	if (s->n == MAX_EGRESS_SECRETS)
		return "more than 32 secrets";
	if (!name[0] || strlen(name) > MAX_SECRET_NAME)
		return "a name has 1 to 64 bytes";
	/* Shorter, and it could stand somewhere by chance. */
	if (n < 16 || n > MAX_SECRET_PLACEHOLDER)
		return "a placeholder has 16 to 128 bytes";
	for (size_t i = 0; i < n; i++)
		if (placeholder[i] <= ' ' || placeholder[i] > '~')
			return "a placeholder has visible characters";
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->v[i].name, name) == 0 ||
		    strcmp(s->v[i].placeholder, placeholder) == 0)
			return "a second secret of that name";
	if (!is_value(value))
		return "its value cannot stand in a header";
	return egress_secret_field_bad(field, strlen(field));
}

int egress_secrets_add(struct egress_secrets *s, const char *name, const char *placeholder,
		       const char *field, const char *value, bool plain, struct err *e)
{
	const char *bad = check(s, name, placeholder, field, value);

	if (bad)
		return err_set(e, ERR_CONFIG_INVALID, "secret `%.64s`: %s", name, bad);
	struct egress_secret one = {.name = strdup(name),
				    .placeholder = strdup(placeholder),
				    .field = strdup(field),
				    .value = strdup(value),
				    .plain = plain};
	if (!one.name || !one.placeholder || !one.field || !one.value) {
		release_one(&one);
		return err_set(e, ERR_INTERNAL, "out of memory");
	}
	s->v[s->n++] = one;
	return 0;
}

int egress_secrets_raw(struct egress_secrets *s, const char *raw, struct err *e)
{
	struct egress_secret *last = &s->v[s->n - 1];

	if (strlen(raw) > MAX_SECRET_VALUE)
		return err_set(e, ERR_CONFIG_INVALID, "secret `%.64s`: its value is too long",
			       last->name);
	wipe(last->raw);
	last->raw = strdup(raw);
	return last->raw ? 0 : err_set(e, ERR_INTERNAL, "out of memory");
}

int egress_secrets_host(struct egress_secrets *s, const char *text, struct err *e)
{
	struct egress_secret *last = &s->v[s->n - 1];

	if (last->hosts.n == MAX_SECRET_HOSTS)
		return err_set(e, ERR_CONFIG_INVALID, "more than %u hosts of one secret",
			       MAX_SECRET_HOSTS);
	return egress_set_add(&last->hosts, EGRESS_LIST_INSPECT, text, "secret", e);
}

static void put_one(struct buf *out, const struct egress_secret *s)
{
	struct secret_record r = {.name = (uint32_t)strlen(s->name),
				  .placeholder = (uint32_t)strlen(s->placeholder),
				  .field = (uint32_t)strlen(s->field),
				  .value = (uint32_t)strlen(s->value),
				  .raw = s->raw ? (uint32_t)strlen(s->raw) : 0,
				  .plain = s->plain,
				  .hosts = (uint32_t)s->hosts.n};

	(void)buf_add(out, &r, sizeof(r));
	(void)buf_add(out, s->name, r.name);
	(void)buf_add(out, s->placeholder, r.placeholder);
	(void)buf_add(out, s->field, r.field);
	(void)buf_add(out, s->value, r.value);
	if (r.raw)
		(void)buf_add(out, s->raw, r.raw);
	for (size_t i = 0; i < s->hosts.n; i++) {
		uint32_t n = (uint32_t)strlen(s->hosts.v[i].text);
		(void)buf_add(out, &n, sizeof(n));
		(void)buf_add(out, s->hosts.v[i].text, n);
	}
}

int egress_secrets_encode(const struct egress_secrets *s, struct buf *out, struct err *e)
{
	struct secrets_header h = {.magic = SECRETS_MAGIC,
				   .version = SECRETS_VERSION,
				   .count = (uint32_t)s->n};
	size_t begin = out->n;

	(void)buf_add(out, &h, sizeof(h));
	for (size_t i = 0; i < s->n; i++)
		put_one(out, &s->v[i]);
	if (buf_check(out, "the secrets", ERR_CONFIG_INVALID, e) < 0)
		return -1;
	h.total = (uint32_t)(out->n - begin);
	sha256(out->p + begin + sizeof(h), h.total - sizeof(h), h.sha256);
	memcpy(out->p + begin, &h, sizeof(h));
	return 0;
}

static int bad(struct err *e, const char *what)
{
	return err_set(e, ERR_INTERNAL, "secrets: %s", what);
}

struct cursor {
	const unsigned char *p;
	size_t left;
};

/* n bytes, of at most `most`, as a text of their own. False: they are not there. */
static bool take_text(struct cursor *c, uint32_t n, size_t most, char *ret)
{
	if (n > most || n > c->left || memchr(c->p, 0, n))
		return false;
	memcpy(ret, c->p, n);
	ret[n] = '\0';
	c->p += n;
	c->left -= n;
	return true;
}

static bool take(struct cursor *c, void *ret, size_t n)
{
	if (c->left < n)
		return false;
	memcpy(ret, c->p, n);
	c->p += n;
	c->left -= n;
	return true;
}

static bool read_hosts(struct egress_secrets *s, struct cursor *c, uint32_t count)
{
	char text[MAX_EGRESS_RULE_TEXT + 1];
	struct err ignored = {0};
	uint32_t n = 0;

	if (count > MAX_SECRET_HOSTS)
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!take(c, &n, sizeof(n)) || !take_text(c, n, MAX_EGRESS_RULE_TEXT, text) ||
		    egress_secrets_host(s, text, &ignored) < 0)
			return false;
	return true;
}

static bool read_one(struct egress_secrets *s, struct cursor *c)
{
	struct secret_record r;
	char name[MAX_SECRET_NAME + 1];
	char placeholder[MAX_SECRET_PLACEHOLDER + 1];
	char field[MAX_SECRET_FIELD + 1];
	char value[MAX_SECRET_VALUE + 1];
	struct err ignored = {0};

	if (!take(c, &r, sizeof(r)) || r.plain > 1 ||
	    !take_text(c, r.name, MAX_SECRET_NAME, name) ||
	    !take_text(c, r.placeholder, MAX_SECRET_PLACEHOLDER, placeholder) ||
	    !take_text(c, r.field, MAX_SECRET_FIELD, field))
		return false;
	bool good =
		take_text(c, r.value, MAX_SECRET_VALUE, value) &&
		egress_secrets_add(s, name, placeholder, field, value, r.plain != 0, &ignored) == 0;
	if (good && r.raw)
		good = take_text(c, r.raw, MAX_SECRET_VALUE, value) &&
		       egress_secrets_raw(s, value, &ignored) == 0;
	explicit_bzero(value, sizeof(value));
	return good && read_hosts(s, c, r.hosts);
}

int egress_secrets_decode(const void *bytes, size_t len, struct egress_secrets *ret, struct err *e)
{
	AUTO_EGRESS_SECRETS s = {.n = 0};
	unsigned char digest[SHA256_BYTES];
	struct secrets_header h;

	if (len < sizeof(h) || len > MAX_SECRETS_BYTES)
		return bad(e, "no size of them");
	memcpy(&h, bytes, sizeof(h));
	if (h.magic != SECRETS_MAGIC || h.version != SECRETS_VERSION)
		return bad(e, "of another version");
	if (h.total != len || h.count > MAX_EGRESS_SECRETS)
		return bad(e, "cut off, or too many");
	struct cursor c = {.p = (const unsigned char *)bytes + sizeof(h), .left = len - sizeof(h)};
	sha256(c.p, c.left, digest);
	if (memcmp(digest, h.sha256, sizeof(digest)) != 0)
		return bad(e, "altered");
	for (uint32_t i = 0; i < h.count; i++)
		if (!read_one(&s, &c))
			return bad(e, "one is not valid");
	if (c.left)
		return bad(e, "bytes after the last one");
	*ret = s;
	s.n = 0;
	return 0;
}

static bool has_host(const struct egress_secret *s, const struct host *host, uint16_t port)
{
	for (size_t i = 0; i < s->hosts.n; i++) {
		const struct egress_rule *r = &s->hosts.v[i].rule;
		if (egress_rule_has_port(r, port) && egress_rule_has_name(r, host))
			return true;
	}
	return false;
}

static int digit64(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* The placeholder is inside the base64 of n bytes; what is none of it ends it. */
static bool has_coded(const char *p, size_t n, const char *placeholder)
{
	char text[MAX_SECRET_VALUE];
	size_t len = 0;
	uint32_t bits = 0;
	unsigned int have = 0;

	for (size_t i = 0; i < n && len < sizeof(text); i++) {
		int d = digit64(p[i]);
		if (d < 0)
			break;
		bits = bits << 6 | (uint32_t)d;
		have += 6;
		if (have >= 8) {
			have -= 8;
			text[len++] = (char)(bits >> have & 0xff);
		}
	}
	return memmem(text, len, placeholder, strlen(placeholder)) != NULL;
}

static bool has_placeholder(const struct egress_secret *s, const char *value, size_t n)
{
	if (memmem(value, n, s->placeholder, strlen(s->placeholder)))
		return true;
	return n > 6 && strncasecmp(value, "Basic ", 6) == 0 &&
	       has_coded(value + 6, n - 6, s->placeholder);
}

const struct egress_secret *egress_secret_replace(const struct egress_secrets *s,
						  const struct egress_leg *to, const char *field,
						  size_t field_len, const char *value,
						  size_t value_len)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct egress_secret *one = &s->v[i];
		if ((to->tls || one->plain) && strlen(one->field) == field_len &&
		    strncasecmp(one->field, field, field_len) == 0 &&
		    has_host(one, to->host, to->port) && has_placeholder(one, value, value_len))
			return one;
	}
	return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a policy says about secrets, checked, and how a value stands in its header.
 */
#include "policy/secret.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/base64.h"
#include "base/nearest.h"
#include "base/sha256.h"
#include "policy/environment.h"

#define VALUE "{value}"
#define BASIC "{basic:"

static int invalid(struct err *e, const char *what, const char *hint)
{
	(void)err_set(e, ERR_CONFIG_INVALID, "%s", what);
	return hint ? err_hint(e, "%s", hint) : -1;
}

static int check_name(const char *text, struct err *e)
{
	size_t n = strlen(text);

	if (n == 0 || n > MAX_SECRET_NAME ||
	    strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != n ||
	    strchr("0123456789-_", text[0]))
		return invalid(e, "a name of letters, digits, `_` and `-`, at most 64", NULL);
	return 0;
}

static int check_from(const char *text, struct err *e)
{
	static const char *const kinds[] = {"env", "file", "command"};
	size_t n = strcspn(text, ":");
	char kind[16];

	if (strlen(text) > MAX_SECRET_FROM)
		return invalid(e, "longer than 4096 bytes", NULL);
	(void)snprintf(kind, sizeof(kind), "%.*s", n < 15 ? (int)n : 15, text);
	if (strcmp(kind, "cred") == 0 || strcmp(kind, "keyring") == 0) {
		(void)err_set(e, ERR_UNSUPPORTED, "`%s:` is not in this version", kind);
		return err_hint(e, "env:VARIABLE, file:PATH or command:PROGRAM ARGUMENT…");
	}
	if (strcmp(kind, "env") == 0 && text[n])
		return environment_check_name(text + n + 1, strlen(text + n + 1), e);
	if (strcmp(kind, "file") == 0 && text[n]) {
		if (text[n + 1] != '/' && strncmp(text + n + 1, "~/", 2) != 0)
			return invalid(e, "file: takes an absolute path, or one below `~/`", NULL);
		return 0;
	}
	if (strcmp(kind, "command") == 0 && text[n]) {
		const char *c = text + n + 1;
		if (!c[0] || c[0] == ' ' || strstr(c, "  ") || c[strlen(c) - 1] == ' ')
			return invalid(e, "command: PROGRAM ARGUMENT…, one blank between",
				       "no shell reads it: for more, name a script");
		return 0;
	}
	(void)err_set(e, ERR_CONFIG_INVALID, "unknown place `%.40s`", text);
	const char *near = nearest(kind, kinds, ARRAY_LEN(kinds));
	if (near)
		return err_hint(e, "did you mean `%s:`?", near);
	return err_hint(e, "env:VARIABLE, file:PATH or command:PROGRAM ARGUMENT…");
}

/* Where `{value}` or `{basic:USER}` stands; ret_n: its bytes. NULL: not exactly one. */
static const char *find_place(const char *template, size_t *ret_n, bool *ret_basic)
{
	const char *open = strchr(template, '{');
	const char *close = open ? strchr(open, '}') : NULL;

	if (!close || strchr(open + 1, '{') || strchr(close + 1, '}'))
		return NULL;
	*ret_n = (size_t)(close - open) + 1;
	*ret_basic = strncmp(open, BASIC, strlen(BASIC)) == 0;
	if (*ret_basic) {
		size_t user = *ret_n - strlen(BASIC) - 1;
		/* RFC 7617 2: a colon ends the user. */
		if (user == 0 || user > MAX_SECRET_USER || memchr(open + strlen(BASIC), ':', user))
			return NULL;
		return open;
	}
	return *ret_n == strlen(VALUE) && memcmp(open, VALUE, *ret_n) == 0 ? open : NULL;
}

static int check_header(const char *text, struct err *e)
{
	static const char form[] = "write \"Authorization: Bearer {value}\" or \"Authorization: "
				   "{basic:USER}\"";
	size_t n = strcspn(text, ":");
	size_t place = 0;
	bool basic = false;

	if (strlen(text) > MAX_SECRET_TEMPLATE)
		return invalid(e, "longer than 512 bytes", NULL);
	if (strncmp(text + n, ": ", 2) != 0)
		return invalid(e, "a header is `Name: what stands there`", form);
	const char *bad = egress_secret_field_bad(text, n);
	if (bad)
		return invalid(e, bad, form);
	for (const char *p = text; *p; p++)
		if ((unsigned char)*p < 0x20 || (unsigned char)*p > 0x7e)
			return invalid(e, "a header has visible characters only", form);
	if (!find_place(text + n + 2, &place, &basic))
		return invalid(e, "needs exactly one `{value}` or `{basic:USER}`", form);
	return 0;
}

int secret_check_text(enum secret_text what, const char *text, struct err *e)
{
	switch (what) {
	case SECRET_NAME:
		return check_name(text, e);
	case SECRET_VARIABLE:
		return environment_check_name(text, strlen(text), e);
	case SECRET_FROM:
		return check_from(text, e);
	case SECRET_HEADER:
		return check_header(text, e);
	}
	return -1;
}

static int check_hosts(const char *hosts, struct err *e)
{
	char text[MAX_EGRESS_HOST_TEXT + 1];
	struct egress_rule rule;
	size_t count = 0;

	for (const char *p = hosts; *p; count++) {
		size_t n = strcspn(p, " ");
		if (n == 0 || n >= sizeof(text) || count == MAX_SECRET_HOSTS)
			return invalid(e, "no hosts of a secret", NULL);
		memcpy(text, p, n);
		text[n] = '\0';
		if (egress_rule_read(EGRESS_LIST_INSPECT, text, &rule, e) < 0)
			return -1;
		if (rule.kind == EGRESS_EVERY)
			return invalid(e, "a secret goes to hosts that are named", NULL);
		p += n;
		if (*p && !*++p)
			return invalid(e, "no hosts of a secret", NULL);
	}
	return count ? 0 : invalid(e, "no hosts of a secret", NULL);
}

int secret_check(const struct secret_rule *s, struct err *e)
{
	if (check_name(s->name, e) < 0 || check_from(s->from, e) < 0 ||
	    check_header(s->header, e) < 0 || check_hosts(s->hosts, e) < 0)
		return -1;
	return s->variable ? environment_check_name(s->variable, strlen(s->variable), e) : 0;
}

void secret_variable(const struct secret_rule *s, struct buf *ret)
{
	if (s->variable) {
		(void)buf_str(ret, s->variable);
	} else if (strncmp(s->from, "env:", 4) == 0) {
		(void)buf_str(ret, s->from + 4);
	} else {
		for (const char *p = s->name; *p; p++)
			(void)buf_char(ret, *p == '-'                ? '_'
					    : *p >= 'a' && *p <= 'z' ? (char)(*p & ~0x20)
								     : *p);
	}
}

void secret_placeholder(const char *session, const char *name, char ret[SECRET_PLACEHOLDER_TEXT])
{
	char text[MAX_SECRET_NAME + 128];
	unsigned char digest[SHA256_BYTES];

	int len = snprintf(text, sizeof(text), "placeholder %.48s %.64s", session, name);
	sha256(text, (size_t)len, digest);
	len = snprintf(ret, SECRET_PLACEHOLDER_TEXT, "sandglass-%.64s-", name);
	for (size_t i = 0; i < 16; i++)
		(void)snprintf(ret + len + 2 * i, 3, "%02x", digest[i]);
}

static const struct secret_rule *find_named(const struct request *req, const char *name,
					    struct err *e)
{
	const char *names[MAX_EGRESS_SECRETS];
	size_t n = 0;

	for (size_t i = 0; i < req->secret_count; i++) {
		if (strcmp(req->secrets[i].name, name) == 0)
			return &req->secrets[i];
		if (n < MAX_EGRESS_SECRETS)
			names[n++] = req->secrets[i].name;
	}
	(void)err_set(e, ERR_CONFIG_INVALID, "--secret: no policy names a secret `%.64s`", name);
	const char *near = nearest(name, names, n);
	if (near)
		(void)err_hint(e, "did you mean `%s`?", near);
	else
		(void)err_hint(e, "name it under `secrets` of your own policy file; "
				  "`sandglass policy show` lists what there is");
	return NULL;
}

static int check_variables(const struct secret_rule **v, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		AUTO_BUF one = BUF_INIT(256);
		secret_variable(v[i], &one);
		for (size_t k = 0; k < i; k++) {
			AUTO_BUF other = BUF_INIT(256);
			secret_variable(v[k], &other);
			if (strcmp(buf_cstr(&one), buf_cstr(&other)) != 0)
				continue;
			(void)err_set(e, ERR_CONFIG_INVALID,
				      "secrets `%s` and `%s` go into one variable, %s", v[k]->name,
				      v[i]->name, buf_cstr(&one));
			return err_hint(e, "name another one: `variable: NAME`");
		}
	}
	return 0;
}

int secrets_chosen(const struct request *req, const struct secret_rule **ret, size_t *ret_n,
		   struct err *e)
{
	size_t n = 0;

	if (!req->secret.n) {
		for (; n < req->secret_count && n < MAX_EGRESS_SECRETS; n++)
			ret[n] = &req->secrets[n];
	} else {
		for (size_t i = 0; i < req->secret.n; i++) {
			const struct secret_rule *s = find_named(req, req->secret.v[i], e);
			bool known = false;
			if (!s)
				return -1;
			for (size_t k = 0; k < n; k++)
				known |= ret[k] == s;
			if (!known)
				ret[n++] = s;
		}
	}
	*ret_n = n;
	return check_variables(ret, n, e);
}

const char *secret_field(const struct secret_rule *s, size_t *ret_n)
{
	*ret_n = strcspn(s->header, ":");
	return s->header;
}

int secret_render(const struct secret_rule *s, const char *value, size_t n, struct buf *ret,
		  struct err *e)
{
	const char *template = s->header + strcspn(s->header, ":") + 2;
	size_t place = 0;
	bool basic = false;
	const char *at = find_place(template, &place, &basic);

	if (!at)
		return err_set(e, ERR_INTERNAL, "a secret's header");
	if (buf_reserve(ret, MAX_SECRET_VALUE) < 0)
		return err_set(e, ERR_INTERNAL, "out of memory");
	(void)buf_add(ret, template, (size_t)(at - template));
	if (basic) {
		AUTO_BUF pair = BUF_INIT(MAX_SECRET_VALUE);
		const char *user = at + strlen(BASIC);
		(void)buf_reserve(&pair, MAX_SECRET_VALUE);
		(void)buf_printf(&pair, "%.*s:", (int)(place - strlen(BASIC) - 1), user);
		(void)buf_add(&pair, value, n);
		(void)buf_str(ret, "Basic ");
		if (pair.failed || base64_encode(ret, pair.p, pair.n) < 0)
			ret->failed = true;
		if (pair.p)
			explicit_bzero(pair.p, pair.n);
	} else {
		(void)buf_add(ret, value, n);
	}
	(void)buf_str(ret, at + place);
	return buf_check(ret, "a secret", ERR_CONFIG_INVALID, e);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sieve. One walk over the text; at each place the first row of the table that fits
 * says how much of it is the secret. Rows and names are data.
 */
#include "audit/redact.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"

#define ENV_VALUE_LEAST 6u /* a shorter value would be found everywhere */
#define NAME_MOST 64u
#define SCAN_MOST 65536u

/* A name is secret if one of these is in it, at a word's beginning where that matters. */
static const struct {
	const char *word;
	bool whole; /* only as a whole word */
} secret_words[] = {
	{"token", false},
	{"secret", false},
	{"password", false},
	{"passwd", false},
	{"passphrase", false},
	{"apikey", false},
	{"api-key", false},
	{"accesskey", false},
	{"access-key", false},
	{"private-key", false},
	{"privatekey", false},
	{"credential", false},
	{"authorization", false},
	{"cookie", false},
	{"pwd", true},
	{"pass", true},
	{"auth", true},
	{"bearer", true},
	{"sessionid", false},
	{"session-key", false},
	{"signature", true},
	{"sig", true},
	{"dsn", true},
	{"webhook", false},
	{"encryption-key", false},
	{"signing-key", false},
	{"account-key", false},
	{"accountkey", false},
	{"otp", true},
	{"jwt", true},
};

/* How a token looks: what it begins with, and how many characters of it follow at least. */
static const struct {
	const char *begin;
	unsigned int least;
} shapes[] = {
	{"ghp_", 20},     {"gho_", 20},        {"ghu_", 20},      {"ghs_", 20},
	{"ghr_", 20},     {"github_pat_", 20}, {"glpat-", 16},    {"gldt-", 16},
	{"glrt-", 16},    {"glptt-", 16},      {"glcbt-", 16},    {"xoxb-", 10},
	{"xoxp-", 10},    {"xoxa-", 10},       {"xoxr-", 10},     {"xoxs-", 10},
	{"xapp-", 10},    {"AKIA", 16},        {"ASIA", 16},      {"sk-", 20},
	{"sk_live_", 10}, {"sk_test_", 10},    {"rk_live_", 10},  {"rk_test_", 10},
	{"whsec_", 16},   {"AIza", 30},        {"ya29.", 20},     {"npm_", 30},
	{"pypi-", 30},    {"dop_v1_", 30},     {"hf_", 20},       {"SG.", 30},
	{"shpat_", 20},   {"shpss_", 20},      {"dckr_pat_", 16}, {"AGE-SECRET-KEY-", 20},
	{"hvs.", 20},     {"lin_api_", 20},    {"sntrys_", 20},   {"tskey-", 16},
	{"eyJ", 30},      {"gsk_", 20},        {"xai-", 20},      {"r8_", 20},
	{"ATATT", 20},    {"EAA", 60},         {"sq0csp-", 20},   {"PMAK-", 20},
	{"figd_", 20},    {"ntn_", 20},        {"pat-na1-", 16},  {"CFPAT-", 20},
	{"e2b_", 20},     {"sbp_", 20},        {"vercel_", 20},   {"fio-u-", 20},
};

/* Words whose next word is a secret. */
static const char *const schemes[] = {"bearer", "basic", "token"};

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

static bool is_token(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.' || c == '=' ||
	       c == '+' || c == '/' || c == '~';
}

bool redact_is_secret_name(const char *p, size_t n)
{
	char name[NAME_MOST + 1];

	while (n && (*p == '-' || *p == '_')) {
		p++;
		n--;
	}
	if (!n)
		return false;
	if (n > NAME_MOST) {
		p += n - NAME_MOST;
		n = NAME_MOST;
	}
	for (size_t i = 0; i < n; i++)
		name[i] = p[i] == '_' || p[i] == '.' ? '-' : (char)tolower((unsigned char)p[i]);
	name[n] = '\0';
	if (strcmp(name, "pwd") == 0 || strcmp(name, "oldpwd") == 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(secret_words); i++) {
		const char *at = strstr(name, secret_words[i].word);
		size_t len = strlen(secret_words[i].word);
		for (; at; at = strstr(at + 1, secret_words[i].word))
			if (!secret_words[i].whole ||
			    ((at == name || at[-1] == '-') && (!at[len] || at[len] == '-')))
				return true;
	}
	return false;
}

/* Length of the value that begins here: to its quote, else to what ends a word. */
static size_t value_length(const char *p, size_t n)
{
	if (n && (*p == '"' || *p == '\'')) {
		const char *end = memchr(p + 1, *p, n - 1);
		return end ? (size_t)(end - p) + 1 : n;
	}
	size_t i = 0;
	while (i < n && !isspace((unsigned char)p[i]) && !strchr("\"';&|<>)(,", p[i]))
		i++;
	return i;
}

/* What is a path is no secret, though its name may be one's: SSH_AUTH_SOCK. */
void redact_secrets_find(char *const *env, struct redact_secrets *ret)
{
	ret->n = 0;
	for (; env && *env && ret->n < MAX_REDACT_SECRETS; env++) {
		const char *eq = strchr(*env, '=');
		size_t len = eq ? strlen(eq + 1) : 0;
		if (len < ENV_VALUE_LEAST || eq[1] == '/' ||
		    !redact_is_secret_name(*env, (size_t)(eq - *env)))
			continue;
		ret->value[ret->n] = eq + 1;
		ret->len[ret->n++] = len;
	}
}

static size_t environment(const char *p, size_t n, const struct redact_secrets *s)
{
	for (size_t i = 0; s && i < s->n; i++)
		if (s->value[i][0] == p[0] && s->len[i] <= n &&
		    memcmp(p, s->value[i], s->len[i]) == 0)
			return s->len[i];
	return 0;
}

static size_t shape(const char *p, size_t n)
{
	static const char key[] = "-----BEGIN ";

	if (n > sizeof(key) && memcmp(p, key, sizeof(key) - 1) == 0 &&
	    memmem(p, n < 64 ? n : 64, "PRIVATE KEY", 11))
		return n;
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		size_t len = strlen(shapes[i].begin);
		size_t end = len;
		if (n < len + shapes[i].least || memcmp(p, shapes[i].begin, len) != 0)
			continue;
		while (end < n && is_token(p[end]))
			end++;
		if (end - len >= shapes[i].least)
			return end;
	}
	return 0;
}

/* scheme://user:pass@ and scheme://token@ at the slashes: how much is before the @. */
static size_t user_info(const char *p, size_t n)
{
	if (n < 4 || memcmp(p, "://", 3) != 0)
		return 0;
	size_t at = 0;
	for (size_t i = 3; i < n && !isspace((unsigned char)p[i]) && !strchr("/?#\"'", p[i]); i++)
		if (p[i] == '@')
			at = i;
	return at;
}

/* A scheme of authentication: its length with the blanks behind it. */
static size_t scheme(const char *p, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		size_t len = strlen(schemes[i]);
		if (n < len + 9 || strncasecmp(p, schemes[i], len) != 0 || p[len] != ' ')
			continue;
		size_t end = len + 1;
		while (end < n && is_token(p[end]))
			end++;
		return end - len - 1 >= 8 ? len + 1 : 0;
	}
	return 0;
}

static bool is_assignment(const char *p, size_t name)
{
	if (!isupper((unsigned char)p[0]) && p[0] != '_')
		return false;
	for (size_t i = 0; i < name; i++)
		if (!isupper((unsigned char)p[i]) && !isdigit((unsigned char)p[i]) && p[i] != '_')
			return false;
	return true;
}

/*
 * NAME=VALUE, NAME: VALUE, NAME VALUE behind dashes: how much is before the value; 0 if
 * this is no name or its value is nobody's secret. `name` is the name's length.
 */
static size_t named(const char *p, size_t n, size_t name)
{
	size_t i = name;
	bool secret = redact_is_secret_name(p, name);

	if (i < n && p[i] == '=')
		return secret || is_assignment(p, name) ? i + 1 : 0;
	if (!secret)
		return 0;
	if (i < n && (p[i] == '"' || p[i] == '\'')) /* "name": "value" */
		i++;
	if (i < n && p[i] == ':' && !(i + 2 < n && p[i + 1] == '/' && p[i + 2] == '/')) {
		i++;
		while (i < n && p[i] == ' ')
			i++;
		return i;
	}
	return i < n && p[0] == '-' && p[i] == ' ' ? i + 1 : 0;
}

static size_t name_length(const char *p, size_t n)
{
	size_t i = 0;

	while (i < n && is_name(p[i]))
		i++;
	return i;
}

struct walk {
	const char *p;
	size_t n, at;
	struct buf *out;
};

static void keep(struct walk *w, size_t n)
{
	(void)buf_add(w->out, w->p + w->at, n);
	w->at += n;
}

static void drop(struct walk *w, size_t n)
{
	if (n)
		(void)buf_str(w->out, REDACTED);
	w->at += n;
}

/* The rest of a header's line: `Authorization: Basic x`, `Cookie: a=b; c=d`. */
static size_t line_length(const char *p, size_t n)
{
	size_t i = 0;

	while (i < n && p[i] != '\n' && p[i] != '\r' && p[i] != '"' && p[i] != '\'')
		i++;
	return i;
}

/* At the beginning of a word. True: something was written. */
static bool at_word(struct walk *w)
{
	const char *p = w->p + w->at;
	size_t n = w->n - w->at;
	size_t len = shape(p, n);

	if (len) {
		drop(w, len);
		return true;
	}
	len = scheme(p, n);
	if (len) {
		keep(w, len);
		drop(w, value_length(p + len, n - len));
		return true;
	}
	size_t name = name_length(p, n);
	len = name ? named(p, n, name) : 0;
	if (len) {
		bool quoted = len < n && (p[len] == '"' || p[len] == '\'');
		bool header = !quoted && p[len - 1] == ' ' && memchr(p, ':', len);
		keep(w, len);
		drop(w, header ? line_length(p + len, n - len) : value_length(p + len, n - len));
		return true;
	}
	return false;
}

void redact_text(const char *p, size_t n, const struct redact_secrets *s, struct buf *out)
{
	struct walk w = {.p = p, .n = n, .out = out};
	bool word = true; /* before is no character of a name */

	while (w.at < n) {
		size_t len = environment(p + w.at, n - w.at, s);
		if (len) {
			drop(&w, len);
			word = false;
			continue;
		}
		len = user_info(p + w.at, n - w.at);
		if (len) {
			keep(&w, 3);
			drop(&w, len - 3);
			word = false;
			continue;
		}
		if (word && at_word(&w)) {
			word = true;
			continue;
		}
		word = !is_name(p[w.at]);
		keep(&w, 1);
	}
}

/* Options of which the next argument is a secret, or the part behind its colon. */
static bool wants_secret(const char *before)
{
	size_t n = strlen(before);

	return before[0] == '-' && !strchr(before, '=') && !strchr(before, ' ') &&
	       redact_is_secret_name(before, n);
}

static bool wants_user(const char *before)
{
	return strcmp(before, "-u") == 0 || strcmp(before, "--user") == 0 ||
	       strcmp(before, "--proxy-user") == 0;
}

void redact_argument(const char *before, const char *arg, bool all, const struct redact_secrets *s,
		     struct buf *out)
{
	size_t n = strnlen(arg, SCAN_MOST);
	const char *eq = memchr(arg, '=', n);
	const char *colon = memchr(arg, ':', n);

	if (before && wants_secret(before) && n && arg[0] != '-') {
		(void)buf_str(out, REDACTED);
		return;
	}
	if (before && wants_user(before) && colon) {
		(void)buf_add(out, arg, (size_t)(colon - arg) + 1);
		(void)buf_str(out, REDACTED);
		return;
	}
	if (eq && eq[1] && arg[0] != '-' && name_length(arg, n) == (size_t)(eq - arg) &&
	    (all || redact_is_secret_name(arg, (size_t)(eq - arg)))) {
		(void)buf_add(out, arg, (size_t)(eq - arg) + 1);
		(void)buf_str(out, REDACTED);
		return;
	}
	if (eq && eq[1] && arg[0] == '-' && redact_is_secret_name(arg, (size_t)(eq - arg)) &&
	    name_length(arg, n) == (size_t)(eq - arg)) {
		(void)buf_add(out, arg, (size_t)(eq - arg) + 1);
		(void)buf_str(out, REDACTED);
		return;
	}
	redact_text(arg, n, s, out);
}

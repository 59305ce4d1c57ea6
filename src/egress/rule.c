/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads rules. Stricter than host.c is with foreign hosts: a rule is written by a
 * person and has one spelling, so an odd one is more likely a mistake.
 */
#include "egress/rule.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "egress/condition.h"
#include "egress/event.h"
#include "egress/limit.h"
#include "egress/mirror.h"

const char *const egress_list_names[EGRESS_LISTS] = {"deny", "allow",  "local", "inspect",
						     "push", "mirror", "limit"};

/* What is being read: [p, p + n) is what is left of the text. */
struct reading {
	enum egress_list list;
	const char *text;
	const char *p;
	size_t n;
	bool port_said;
	struct egress_rule rule;
	struct err *e;
};

static int refuse(struct reading *r, const char *at, const char *what)
{
	return err_set(r->e, ERR_CONFIG_INVALID, "`%.*s`: %s (at byte %zu)",
		       (int)MAX_EGRESS_HOST_TEXT, r->text, what, (size_t)(at - r->text) + 1);
}

struct scheme {
	const char *name;
	uint16_t port;
	bool known; /* may be written; of others the hint tells the port */
};

static const struct scheme schemes[] = {
	{"http", 80, true},     {"https", 443, true},      {"ws", 80, false},
	{"wss", 443, false},    {"ssh", 22, false},        {"git", 9418, false},
	{"ftp", 21, false},     {"postgres", 5432, false}, {"postgresql", 5432, false},
	{"mysql", 3306, false}, {"redis", 6379, false},    {"rediss", 6379, false},
	{"ldap", 389, false},   {"mongodb", 27017, false}, {"amqp", 5672, false},
	{"smtp", 25, false},    {"git+ssh", 22, false},
};

static int read_scheme(struct reading *r)
{
	const char *mark = strstr(r->p, "://");
	const char *rest = mark ? mark + 3 : NULL;

	if (!mark)
		return 0;
	size_t n = (size_t)(mark - r->p);
	int bare = (int)strcspn(rest, "/?#");
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		if (strlen(schemes[i].name) != n || strncmp(schemes[i].name, r->p, n) != 0)
			continue;
		if (!schemes[i].known) {
			const char *at = memchr(rest, '@', (size_t)bare);
			bare -= at ? (int)(at + 1 - rest) : 0;
			rest = at ? at + 1 : rest;
			(void)refuse(r, r->p, "only http:// and https:// may stand in front");
			return err_hint(r->e, "write %.*s:%u", bare, rest, schemes[i].port);
		}
		if (rest[bare]) {
			(void)refuse(r, rest + bare, "a path, query or fragment: a rule is a host");
			return err_hint(r->e, "write %.*s%.*s", (int)n + 3, r->p, bare, rest);
		}
		r->rule.port = schemes[i].port;
		r->port_said = true;
		r->n -= n + 3;
		r->p = rest;
		return 0;
	}
	(void)refuse(r, r->p, "an unknown scheme: only http:// and https:// may stand in front");
	return err_hint(r->e, "write HOST:PORT");
}

static int read_port_number(struct reading *r, const char *at, uint16_t *ret)
{
	unsigned int v = 0;
	size_t n = strlen(at);

	for (size_t i = 0; i < n; i++) {
		if (at[i] < '0' || at[i] > '9' || n > 5) {
			(void)refuse(r, at, "a port is one number from 1 to 65535");
			return r->list == EGRESS_LIST_LOCAL
				       ? -1
				       : err_hint(r->e, "or `*` for every port; no ranges");
		}
		v = v * 10 + (unsigned int)(at[i] - '0');
	}
	if (n == 0 || v == 0 || v > 65535 || at[0] == '0')
		return refuse(r, at, "a port is one number from 1 to 65535");
	*ret = (uint16_t)v;
	return 0;
}

/* Cuts `:PORT` off. */
static int read_port(struct reading *r)
{
	const char *close = r->p[0] == '[' ? strchr(r->p, ']') : NULL;
	const char *colon = strchr(close ? close : r->p, ':');
	struct host h;

	if (!colon)
		return 0;
	if (!close && strchr(colon + 1, ':')) {
		size_t slash = strcspn(r->p, "/");
		(void)refuse(r, r->p, "an IPv6 address stands in brackets");
		if (host_read(r->p, slash, &h) == HOST_GOOD)
			(void)err_hint(r->e, "write [%s]%s", h.text, r->p + slash);
		return -1;
	}
	if (strcmp(colon + 1, "*") == 0)
		r->rule.port = 0;
	else if (read_port_number(r, colon + 1, &r->rule.port) < 0)
		return -1;
	r->port_said = true;
	r->n = (size_t)(colon - r->p);
	return 0;
}

static void mask(struct address *a, unsigned int bits)
{
	for (unsigned int i = 0; i < 16; i++) {
		unsigned int keep = bits > 8 * i ? bits - 8 * i : 0;
		if (keep < 8)
			a->b[i] &= (unsigned char)(0xff00u >> keep);
	}
}

static int put_back(const struct reading *r, const struct host *h, const char *slash)
{
	bool v6 = h->kind == HOST_V6;
	char port[8] = "";

	if (r->port_said && r->rule.port)
		(void)snprintf(port, sizeof(port), ":%u", r->rule.port);
	return err_hint(r->e, "write %s%s%s%s%s", v6 ? "[" : "", h->text, v6 ? "]" : "", slash,
			port);
}

/* What may be opened at all. */
static int check_opens(struct reading *r, const struct host *h, unsigned int most)
{
	const struct egress_rule *rule = &r->rule;
	enum address_class class = address_class(&rule->addr);

	if (address_class_can_open(class) || !address_prefix_uniform(&rule->addr, rule->bits))
		return 0;
	if (class == ADDRESS_LOOPBACK) {
		(void)refuse(r, r->p, "of the host's loopback only single ports are opened");
		return err_hint(r->e, "write 127.0.0.1:PORT, or --allow-local PORT");
	}
	(void)err_set(r->e, ERR_CONFIG_INVALID, "`%s`: %s addresses are never reached", r->text,
		      address_class_name(class));
	if (class == ADDRESS_UNSPECIFIED && rule->bits == most && h->kind == HOST_V4)
		(void)err_hint(r->e, "the host's loopback is 127.0.0.1:PORT");
	return -1;
}

static int read_bits(struct reading *r, const char *at, unsigned int most, const struct host *h)
{
	unsigned int v = 0;
	size_t n = (size_t)(r->p + r->n - at);
	char slash[8];
	struct address masked = h->addr;
	struct host good;

	for (size_t i = 0; i < n; i++) {
		if (at[i] < '0' || at[i] > '9' || n > 3 || (n > 1 && at[0] == '0'))
			return refuse(r, at, "behind the slash stands the length of a prefix");
		v = v * 10 + (unsigned int)(at[i] - '0');
	}
	if (n == 0 || v > most)
		return refuse(r, at,
			      most == 32 ? "a prefix of IPv4 has 0 to 32 bits"
					 : "a prefix of IPv6 has 0 to 128 bits");
	mask(&masked, v);
	if (memcmp(masked.b, h->addr.b, sizeof(masked.b)) != 0) {
		(void)refuse(r, r->p, "the address has bits behind its prefix");
		host_of_address(&masked, &good);
		(void)snprintf(slash, sizeof(slash), "/%u", v);
		return put_back(r, &good, slash);
	}
	r->rule.bits = (uint8_t)v;
	return 0;
}

static bool is_one_loopback(const struct host *h, unsigned int bits, unsigned int most)
{
	return bits == most && address_class(&h->addr) == ADDRESS_LOOPBACK &&
	       (h->kind == HOST_V6 || memcmp(h->addr.b, "\x7f\0\0\1", 4) == 0);
}

static int loopback(struct reading *r)
{
	r->rule.kind = EGRESS_LOOPBACK;
	r->rule.bits = 0;
	r->rule.addr = (struct address){0};
	if (r->list != EGRESS_LIST_DENY && r->rule.port == 0) {
		(void)refuse(r, r->p, "of the host's loopback only single ports are opened");
		return err_hint(r->e, "write localhost:PORT, or --allow-local PORT");
	}
	return 0;
}

/* `used` bytes of the text were the address h. */
static int read_address(struct reading *r, const struct host *h, size_t used)
{
	unsigned int most = h->kind == HOST_V4 ? 32 : 128;
	char spelled[HOST_TEXT + 2];

	(void)snprintf(spelled, sizeof(spelled), "%.*s", (int)used, r->p);
	if ((h->kind == HOST_V4 && strcmp(spelled, h->text) != 0)) {
		(void)refuse(r, r->p, "an odd spelling of an IPv4 address");
		return put_back(r, h, used < r->n && r->p[0] != '[' ? "/BITS" : "");
	}
	r->rule.kind = EGRESS_PREFIX;
	r->rule.addr = h->addr;
	r->rule.bits = (uint8_t)most;
	if (used < r->n && read_bits(r, r->p + used + 1, most, h) < 0)
		return -1;
	if (is_one_loopback(h, r->rule.bits, most))
		return loopback(r);
	return r->list == EGRESS_LIST_DENY ? 0 : check_opens(r, h, most);
}

/* Where in the text a name is wrong. */
static const char *offence(const struct reading *r, enum host_bad bad)
{
	const char *end = r->p + r->n;

	if (bad == HOST_DOTS) {
		const char *two = strstr(r->p, "..");
		return two && two < end ? two + 1 : r->p;
	}
	for (const char *p = r->p; p < end; p++) {
		unsigned char c = (unsigned char)*p;
		if (bad == HOST_HYPHEN && c == '-' &&
		    (p == r->p || p[-1] == '.' || p + 1 == end || p[1] == '.'))
			return p;
		if (bad != HOST_HYPHEN && bad != HOST_LONG && bad != HOST_NUMBER &&
		    !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.*",
			    c))
			return p;
	}
	return r->p;
}

static int bad_name(struct reading *r, enum host_bad bad)
{
	const char *at = offence(r, bad);

	(void)refuse(r, at, host_bad_text(bad));
	if (bad == HOST_USERINFO)
		return err_hint(r->e, "write %s", strrchr(r->text, '@') + 1);
	if (bad == HOST_PATH && *at == '/' && at > r->p)
		return err_hint(r->e, "write %.*s", (int)(at - r->p), r->p);
	if (bad == HOST_NUMBER && strchr(r->text, '*'))
		return err_hint(r->e, "`*` matches no address; write a prefix: 10.0.0.0/8:PORT");
	return -1;
}

/* `*` and `**` in front of a dot. */
static void read_stars(struct reading *r)
{
	size_t stars = r->n > 2 && strncmp(r->p, "**.", 3) == 0  ? 2
		       : r->n > 1 && strncmp(r->p, "*.", 2) == 0 ? 1
								 : 0;

	r->rule.kind = stars == 2 ? EGRESS_BOTH : stars ? EGRESS_BELOW : EGRESS_NAME;
	if (stars) {
		r->p += stars + 1;
		r->n -= stars + 1;
	}
}

/* A name whose labels may hold `*`: checked as if each stood for a letter. */
static int read_pattern(struct reading *r)
{
	char plain[MAX_EGRESS_HOST_TEXT + 1];
	struct host h;

	read_stars(r);
	memcpy(plain, r->p, r->n);
	plain[r->n] = '\0';
	if (strstr(plain, "**"))
		return refuse(r, r->p + (strstr(plain, "**") - plain),
			      "`**` stands only in front: `**.example.com`");
	for (char *star = strchr(plain, '*'); star; star = strchr(star, '*'))
		*star = 'z';
	enum host_bad bad = host_read(plain, r->n, &h);
	if (bad != HOST_GOOD)
		return bad_name(r, bad);
	if (h.kind != HOST_NAME)
		return bad_name(r, HOST_NUMBER);
	size_t n = strlen(h.text);
	for (size_t i = 0; i < n; i++)
		if (r->p[i] == '*')
			h.text[i] = '*';
	const char *last = strrchr(h.text, '.');
	if (strchr(last ? last : h.text, '*')) {
		(void)refuse(r, strrchr(r->p, '*'), "the last part of a name is written out");
		return err_hint(r->e, "`*.example.com` is every name below example.com");
	}
	bool is_localhost = host_is_loopback(&h);
	if (is_localhost && (r->rule.kind != EGRESS_NAME || strcmp(h.text, "localhost") != 0)) {
		(void)refuse(r, r->p, "the host's loopback is called `localhost`");
		return err_hint(r->e, "write localhost:PORT");
	}
	if (is_localhost)
		return loopback(r);
	memcpy(r->rule.host, h.text, n + 1);
	return 0;
}

static int read_every(struct reading *r)
{
	r->rule.kind = EGRESS_EVERY;
	if (r->list == EGRESS_LIST_DENY || r->port_said)
		return 0;
	(void)refuse(r, r->p, "`*` alone would open every name");
	return err_hint(r->e, "name the hosts; every name at port 443 is `*:443`");
}

static int read_host(struct reading *r)
{
	struct host h;
	const char *slash = memchr(r->p, '/', r->n);
	size_t n = slash ? (size_t)(slash - r->p) : r->n;

	if (r->n == 0)
		return refuse(r, r->p, "no host");
	if (r->n == 1 && r->p[0] == '*')
		return read_every(r);
	enum host_bad bad = n && !memchr(r->p, '*', n) ? host_read(r->p, n, &h) : HOST_EMPTY;
	if (bad == HOST_GOOD && h.kind != HOST_NAME)
		return read_address(r, &h, n);
	if (bad == HOST_BRACKETS)
		return refuse(r, r->p, host_bad_text(bad));
	return slash ? bad_name(r, HOST_PATH) : read_pattern(r);
}

/* Inside, the same port of the loopback listens for it; one is taken there. */
static int check_local(struct reading *r)
{
	if (r->list == EGRESS_LIST_DENY || r->rule.kind != EGRESS_LOOPBACK ||
	    r->rule.port != EGRESS_PORT_REDIRECT)
		return 0;
	return refuse(r, r->text,
		      "port 15001 is where redirected connections arrive inside; use another one");
}

static int read_place(struct reading *r)
{
	if (r->list == EGRESS_LIST_LOCAL) {
		r->rule.kind = EGRESS_LOOPBACK;
		return read_port_number(r, r->text, &r->rule.port);
	}
	if (read_scheme(r) < 0 || read_port(r) < 0 || read_host(r) < 0)
		return -1;
	if (r->list != EGRESS_LIST_INSPECT)
		return 0;
	if (r->rule.kind == EGRESS_PREFIX || r->rule.kind == EGRESS_LOOPBACK)
		return refuse(r, r->text, "what is inspected is a name, no address");
	return 0;
}

/* Where the place ends: at a blank, of a push grant at the slash of its repository. */
static size_t find_end(enum egress_list list, const char *text)
{
	const char *from = text;

	if (list == EGRESS_LIST_LOCAL)
		return strlen(text);
	if (list != EGRESS_LIST_PUSH)
		return strcspn(text, " ");
	size_t scheme = strcspn(text, ":/");
	if (strncmp(text + scheme, "://", 3) == 0)
		from += scheme + 3;
	return (size_t)(from - text) + strcspn(from, "/ ");
}

int egress_rule_read(enum egress_list list, const char *text, struct egress_rule *ret,
		     struct err *e)
{
	char host[MAX_EGRESS_HOST_TEXT + 1];
	size_t n = list == EGRESS_LIST_MIRROR ? 0 : find_end(list, text);
	struct reading r = {.list = list, .text = host, .p = host, .n = n, .e = e};

	if (list == EGRESS_LIST_MIRROR)
		return egress_mirror_read(text, ret, e);
	r.rule = (struct egress_rule){.list = (uint8_t)list,
				      .port = list == EGRESS_LIST_DENY ? 0 : EGRESS_PORT_ALLOW};
	if (n > MAX_EGRESS_HOST_TEXT || strlen(text) > MAX_EGRESS_RULE_TEXT)
		return err_set(e, ERR_CONFIG_INVALID, "`%.40s…`: more than %u bytes", text,
			       n > MAX_EGRESS_HOST_TEXT ? MAX_EGRESS_HOST_TEXT
							: MAX_EGRESS_RULE_TEXT);
	if (list == EGRESS_LIST_LIMIT)
		return egress_limit_read(text, ret, e);
	memcpy(host, text, n);
	host[n] = '\0';
	int rc = read_place(&r);
	if (rc == 0)
		rc = check_local(&r);
	if (rc == 0 && list == EGRESS_LIST_PUSH)
		rc = egress_repository_read(&r.rule, text, text + n, e);
	else if (rc == 0 && text[n])
		rc = egress_condition_read(&r.rule, text, text + n + 1, e);
	if (rc == 0)
		*ret = r.rule;
	return rc;
}

/* `*` in the pattern matches any bytes but a dot; both are at most 253 bytes. */
static bool match_stars(const char *pattern, const char *s)
{
	const char *star = NULL;
	const char *from = NULL;

	while (*s) {
		if (*pattern == '*') {
			star = pattern++;
			from = s;
		} else if (*pattern == *s) {
			pattern++;
			s++;
		} else if (star && *from != '.') {
			pattern = star + 1;
			s = ++from;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

static size_t count_dots(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += *s == '.';
	return n;
}

bool egress_rule_has_name(const struct egress_rule *r, const struct host *h)
{
	const char *tail = h->text;

	if (h->kind != HOST_NAME)
		return false;
	switch ((enum egress_rule_kind)r->kind) {
	case EGRESS_EVERY:
		return !host_is_loopback(h);
	case EGRESS_NAME:
		return match_stars(r->host, h->text);
	case EGRESS_LOOPBACK:
		return host_is_loopback(h);
	case EGRESS_PREFIX:
	case EGRESS_AMOUNT:
		return false;
	case EGRESS_BELOW:
	case EGRESS_BOTH:
		break;
	}
	/* The one end of the name that has as many parts as the pattern. */
	size_t more = count_dots(h->text);
	size_t need = count_dots(r->host);
	if (more < need || (more == need && r->kind == EGRESS_BELOW))
		return false;
	for (; more > need; more--)
		tail = strchr(tail, '.') + 1;
	return match_stars(r->host, tail);
}

bool egress_rule_has_address(const struct egress_rule *r, const struct address *a)
{
	return r->kind == EGRESS_PREFIX && address_in(a, &r->addr, r->bits);
}

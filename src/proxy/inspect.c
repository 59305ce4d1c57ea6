/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections whose requests are looked into. The client's TLS ends here, with a leaf
 * of the sandbox's own authority for the name that was allowed; what it asks for is
 * read by the one reader of HTTP there is, judged request by request, and goes up over
 * a connection of its own (exchange.c), in TLS with a server that has shown who it is.
 *
 * There is no tunnel here for anything: what is neither TLS nor HTTP is refused, and
 * so is another protocol inside of it.
 */
#include <string.h>

#include "base/base.h"
#include "proxy/clienthello.h"
#include "proxy/proxy.h"

bool inspect_wanted(const struct conn *c)
{
	return !c->local && egress_inspects(&c->px->set, &c->host, c->port);
}

static void deny(struct conn *c, enum egress_reason reason)
{
	conn_say(c, EGRESS_DENY, reason, c->rule, NULL);
	conn_end(c, true);
}

static void end(struct conn *c, enum end from)
{
	(void)from;
	conn_end(c, true);
}

static void late(struct conn *c)
{
	deny(c, EGRESS_WHY_LIMIT);
}

/* Handshake: nothing can be read before it is over. */
static size_t want_none(struct conn *c, enum end from)
{
	(void)c;
	(void)from;
	return 0;
}

static void no_data(struct conn *c, enum end from, const char *p, size_t n)
{
	(void)from;
	(void)p;
	(void)n;
	conn_end(c, true);
}

static void secured(struct conn *c, enum end which)
{
	(void)which;
	http_begin(c);
}

/* It does not take our authority, or speaks no TLS of today; the alert is with it. */
static void unsecured(struct conn *c, enum end from)
{
	(void)from;
	conn_say(c, EGRESS_DENY, EGRESS_WHY_TLS, c->rule, NULL);
	conn_end(c, false);
}

static const struct ops shaking_hands = {
	.want = want_none,
	.data = no_data,
	.eof = end,
	.broken = unsecured,
	.late = late,
	.secured = secured,
};

static void begin_tls(struct conn *c, const struct hello *hello)
{
	struct host asked;
	struct tls *tls = NULL;

	/*
	 * A name that differs is another host's. An encrypted one (ECH) leads nowhere: it is
	 * answered as by a server that has none, and nothing of it goes up.
	 */
	if (hello->has_sni && (host_read(hello->sni, hello->sni_len, &asked) != HOST_GOOD ||
			       strcmp(asked.text, c->host.text) != 0)) {
		deny(c, hello->has_ech ? EGRESS_WHY_ECH : EGRESS_WHY_SNI);
		return;
	}
	if (c->px->secure >= MAX_INSPECTED) {
		deny(c, EGRESS_WHY_LIMIT);
		return;
	}
	if (c->px->ways)
		tls = tls_for_client(c->px->ways, c->host.text, c->host.kind != HOST_NAME);
	if (!tls) { /* rules that came later, to a proxy without an authority; or no memory */
		deny(c, EGRESS_WHY_TLS);
		return;
	}
	c->secure = true;
	c->px->secure++;
	c->ops = &shaking_hands;
	(void)conn_secure(c, CLIENT, tls);
}

static size_t want_first(struct conn *c, enum end from)
{
	return from == CLIENT ? MAX_HELLO_BYTES - c->in_len : 0;
}

static void first_data(struct conn *c, enum end from, const char *p, size_t n)
{
	struct hello hello;

	(void)from;
	if (!conn_keep(c, p, n, MAX_HELLO_BYTES)) {
		deny(c, EGRESS_WHY_LIMIT);
		return;
	}
	switch (hello_parse((const unsigned char *)c->in, c->in_len, &hello)) {
	case HELLO_MORE:
		break;
	case HELLO_NOT_TLS:
		http_begin(c);
		break;
	case HELLO_BAD:
		deny(c, EGRESS_WHY_MALFORMED);
		break;
	case HELLO_DONE:
		begin_tls(c, &hello);
		break;
	}
}

static const struct ops first_bytes = {
	.want = want_first,
	.data = first_data,
	.eof = end,
	.broken = end,
	.late = late,
};

void inspect_start(struct conn *c)
{
	c->inspected = true;
	c->ops = &first_bytes;
	conn_deadline(c, HEAD_MS, false);
	conn_update(c);
}

static bool refuse(struct conn *c, const struct http_head *h, enum egress_reason reason, int rule,
		   const char *what)
{
	conn_say_request(c, &(struct request_said){.kind = EGRESS_DENY,
						   .reason = reason,
						   .rule = rule,
						   .method = h->method,
						   .target = h->path});
	answer_refused(c, reason, rule, what);
	return false;
}

static const char *what_was_refused(enum egress_reason reason)
{
	switch ((unsigned int)reason) {
	case EGRESS_WHY_METHOD:
		return "no rule allows this method";
	case EGRESS_WHY_PATH:
		return "no rule allows this path";
	case EGRESS_WHY_PUSH:
		return "git may not write there";
	default:
		return "the request is not allowed";
	}
}

static bool has_rule_by_request(const struct conn *c)
{
	const struct egress_set *s = &c->px->set;

	for (size_t i = 0; i < s->n; i++) {
		const struct egress_rule *r = &s->v[i].rule;
		if (egress_rule_is_partial(r) && egress_rule_has_port(r, c->port) &&
		    egress_rule_has_name(r, &c->host))
			return true;
	}
	return false;
}

bool inspect_overrides(const struct http_head *h)
{
	static const char *const names[] = {"x-http-method-override", "x-http-method",
					    "x-method-override",      "x-original-url",
					    "x-rewrite-url",          "x-original-uri"};
	char plain[32];

	for (size_t i = 0; i < h->count; i++) {
		struct http_text name = h->fields[i].name;
		if (name.n >= sizeof(plain))
			continue;
		for (size_t k = 0; k < name.n; k++)
			plain[k] = name.p[k] == '_' ? '-' : name.p[k];
		for (size_t k = 0; k < ARRAY_LEN(names); k++)
			if (http_text_is((struct http_text){plain, name.n}, names[k]))
				return true;
	}
	return false;
}

/* By the rules of now. */
static struct egress_verdict judge(const struct conn *c, struct http_text method,
				   struct http_text target)
{
	/* What http_request_write() makes of an empty one, with or without a query. */
	bool whole = target.n == 0 && http_text_is(method, "OPTIONS");
	char slashed[MAX_TARGET_BYTES + 1];

	if (whole) {
		target = (struct http_text){"*", 1};
	} else if (target.n == 0 || (target.p[0] != '/' && target.p[0] != '*')) {
		slashed[0] = '/';
		memcpy(slashed + 1, target.p, target.n);
		target = (struct http_text){slashed, target.n + 1};
	}
	return egress_match_request(&c->px->set, &c->host, c->port, method.p, method.n, target.p,
				    target.n);
}

bool inspect_request(struct conn *c, const struct http_head *h)
{
	if (!c->inspected && !inspect_wanted(c))
		return true;
	if (h->websocket)
		return refuse(c, h, EGRESS_WHY_PROTOCOL, c->rule,
			      "WebSocket is not carried where requests are inspected");
	if (has_rule_by_request(c) && inspect_overrides(h))
		return refuse(c, h, EGRESS_WHY_AMBIGUOUS, c->rule,
			      "a field by which some servers take another method or path");
	struct egress_verdict v = judge(c, h->method, h->path);
	if (!v.allow)
		return refuse(c, h, v.reason, v.rule, what_was_refused(v.reason));
	if (v.rule >= 0)
		c->rule = v.rule;
	return true;
}

bool inspect_again(struct conn *c, struct http_text method, struct http_text target, bool overrides)
{
	struct egress_verdict v = judge(c, method, target);

	if (v.allow && overrides && has_rule_by_request(c))
		v = (struct egress_verdict){.reason = EGRESS_WHY_AMBIGUOUS, .rule = c->rule};
	if (v.allow)
		return true;
	conn_say_request(c, &(struct request_said){.kind = EGRESS_DENY,
						   .reason = v.reason,
						   .rule = v.rule,
						   .method = method,
						   .target = target});
	return false;
}

void inspect_say_used(struct conn *c, uint32_t used)
{
	_Static_assert(MAX_EGRESS_SECRETS <= 32, "a bit for each secret");

	for (size_t i = 0; i < c->px->secrets.n; i++) {
		const char *name = c->px->secrets.v[i].name;
		if (used >> i & 1u)
			conn_say_request(c, &(struct request_said){.kind = EGRESS_SECRET,
								   .reason = EGRESS_WHY_RULE,
								   .rule = c->rule,
								   .method = {"", 0},
								   .target = {name, strlen(name)}});
	}
}

bool inspect_secrets(struct conn *c, struct http_head *h, struct echo **ret, uint32_t *ret_used)
{
	const struct egress_leg to = {&c->host, c->port, c->secure};

	for (size_t i = 0; i < h->count; i++) {
		struct http_field *f = &h->fields[i];
		const struct egress_secret *s =
			egress_secret_replace(&c->px->secrets, &to, f->name.p, f->name.n,
					      f->value.p, f->value.n);
		if (!s)
			continue;
		f->value = (struct http_text){s->value, strlen(s->value)};
		*ret_used |= 1u << (s - c->px->secrets.v);
		if (!*ret)
			*ret = echo_new();
		if (!*ret || !echo_add(*ret, s->value) || (s->raw && !echo_add_value(*ret, s->raw)))
			return false;
	}
	/*
	 * The answer is looked through, which takes one that can be read, and whole: a unit that
	 * no server knows is as if no range had been asked for (RFC 9110 14.2).
	 */
	for (size_t i = 0; *ret && i < h->count; i++) {
		if (http_text_is(h->fields[i].name, "accept-encoding"))
			h->fields[i].value = (struct http_text){"identity", 8};
		else if (http_text_is(h->fields[i].name, "range"))
			h->fields[i].value = (struct http_text){"none=0-0", 8};
	}
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decision about one request. Deny rules are read as widely as a server might
 * read the path, allow rules only if every reading of it is allowed.
 */
#include <string.h>

#include "base/base.h"
#include "egress/path.h"
#include "egress/set.h"

struct asked {
	const struct egress_set *set;
	const struct host *host;
	uint16_t port;
	uint32_t method; /* its bit; 0: none that a rule can name */
	const char *bad; /* why the path cannot be compared; NULL: it can */
	bool star;       /* `*`: the server itself, no path */
	struct egress_path path;
};

static bool is_about(const struct egress_rule *r, enum egress_list list, const struct host *host,
		     uint16_t port)
{
	bool in = list == EGRESS_LIST_ALLOW ? egress_rule_opens(r) : r->list == list;

	return in && egress_rule_has_port(r, port) && egress_rule_has_name(r, host);
}

static bool inspects(const struct egress_rule *r)
{
	switch ((enum egress_list)r->list) {
	case EGRESS_LIST_INSPECT:
	case EGRESS_LIST_PUSH:
		return true;
	case EGRESS_LIST_ALLOW:
	case EGRESS_LIST_DENY:
		return egress_rule_is_partial(r);
	case EGRESS_LIST_LOCAL:
	case EGRESS_LIST_LIMIT:
	case EGRESS_LIST_MIRROR:
	case EGRESS_LISTS:
		break;
	}
	return false;
}

bool egress_inspects(const struct egress_set *s, const struct host *host, uint16_t port)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct egress_rule *r = &s->v[i].rule;
		if (inspects(r) && egress_rule_has_port(r, port) && egress_rule_has_name(r, host))
			return true;
	}
	return false;
}

bool egress_set_inspects(const struct egress_set *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (inspects(&s->v[i].rule))
			return true;
	return false;
}

/* By their place in egress_methods. */
enum { METHOD_GET = 1u << 0, METHOD_HEAD = 1u << 1 };

static uint32_t method_bit(const char *method, size_t n)
{
	for (unsigned int i = 0; i < EGRESS_METHODS; i++)
		if (strlen(egress_methods[i]) == n && memcmp(egress_methods[i], method, n) == 0)
			return 1u << i;
	return 0;
}

/*
 * A method that no rule can name is in none, so a deny rule of methods is about it too; one of GET
 * is about HEAD, which says the same of a thing but its content (RFC 9110 9.3.2).
 */
static bool has_method(const struct egress_rule *r, uint32_t method)
{
	if (r->methods == 0)
		return true;
	if (r->list == EGRESS_LIST_DENY && method == METHOD_HEAD && (r->methods & METHOD_GET))
		return true;
	return method ? (r->methods & method) != 0 : r->list == EGRESS_LIST_DENY;
}

static bool has_path(const struct egress_rule *r, const struct asked *q)
{
	bool deny = r->list == EGRESS_LIST_DENY;

	if (!r->paths[0])
		return true;
	if (q->star)
		return false;
	for (const char *p = r->paths; *p;) {
		size_t n = strcspn(p, " ");
		bool one = egress_path_match(p, n, q->path.text, deny);
		bool other = egress_path_match(p, n, q->path.slashes, deny);
		if (deny ? one || other : one && other)
			return true;
		p += n + (p[n] == ' ');
	}
	return false;
}

static struct egress_verdict no(enum egress_reason reason, int rule)
{
	return (struct egress_verdict){.reason = reason, .rule = rule};
}

/* reason EGRESS_WHY_RULE: none is against it. */
static struct egress_verdict match_denies(const struct asked *q)
{
	for (size_t i = 0; i < q->set->n; i++) {
		const struct egress_rule *r = &q->set->v[i].rule;
		if (!is_about(r, EGRESS_LIST_DENY, q->host, q->port) || !has_method(r, q->method))
			continue;
		if (r->paths[0] && q->bad)
			return no(EGRESS_WHY_AMBIGUOUS, (int)i);
		if (has_path(r, q))
			return no(EGRESS_WHY_DENIED, (int)i);
	}
	return no(EGRESS_WHY_RULE, -1);
}

static bool may_push(const struct asked *q)
{
	for (size_t i = 0; i < q->set->n && !q->bad; i++) {
		const struct egress_rule *r = &q->set->v[i].rule;
		if (is_about(r, EGRESS_LIST_PUSH, q->host, q->port) && has_path(r, q))
			return true;
	}
	return false;
}

static struct egress_verdict match_allows(const struct asked *q)
{
	struct egress_verdict v = no(EGRESS_WHY_DEFAULT, -1);

	for (size_t i = 0; i < q->set->n; i++) {
		const struct egress_rule *r = &q->set->v[i].rule;
		if (!is_about(r, EGRESS_LIST_ALLOW, q->host, q->port))
			continue;
		if (r->paths[0] && q->bad) {
			v = no(EGRESS_WHY_AMBIGUOUS, (int)i);
			continue;
		}
		bool method = has_method(r, q->method);
		bool path = has_path(r, q);
		if (method && path)
			return (struct egress_verdict){.allow = true,
						       .reason = EGRESS_WHY_RULE,
						       .rule = (int)i};
		if (v.reason != EGRESS_WHY_AMBIGUOUS)
			v = no(path ? EGRESS_WHY_METHOD : EGRESS_WHY_PATH, (int)i);
	}
	return v;
}

struct egress_verdict egress_match_request(const struct egress_set *s, const struct host *host,
					   uint16_t port, const char *method, size_t method_len,
					   const char *target, size_t target_len)
{
	struct asked q = {.set = s,
			  .host = host,
			  .port = port,
			  .method = method_bit(method, method_len),
			  .star = target_len == 1 && target[0] == '*'};

	if (target_len > MAX_EGRESS_TARGET)
		return no(EGRESS_WHY_AMBIGUOUS, -1);
	if (!q.star)
		q.bad = egress_path_read(target, target_len, &q.path);
	struct egress_verdict v = match_denies(&q);
	if (v.reason != EGRESS_WHY_RULE)
		return v;
	bool push = egress_path_pushes(method, method_len, target, target_len);
	if (push && !may_push(&q))
		v = no(EGRESS_WHY_PUSH, -1);
	else
		v = match_allows(&q);
	v.push = push;
	return v;
}

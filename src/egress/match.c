/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decision. Deny rules are looked at before anything allows; an address that
 * is not public is never reached because of a name; loopback only by its ports.
 */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "egress/limit.h"
#include "egress/mirror.h"
#include "egress/set.h"

static struct egress_verdict no(enum egress_reason reason, int rule)
{
	return (struct egress_verdict){.reason = reason, .rule = rule};
}

static struct egress_verdict yes(size_t rule, bool local)
{
	return (struct egress_verdict){.allow = true,
				       .local = local,
				       .reason = EGRESS_WHY_RULE,
				       .rule = (int)rule};
}

static struct egress_verdict no_class(const struct address *a)
{
	return (struct egress_verdict){.reason = EGRESS_WHY_CLASS,
				       .class = address_class(a),
				       .rule = -1};
}

/* A deny rule is about the address itself or one that it carries. */
static bool denies_address(const struct egress_rule *r, const struct address *a)
{
	struct address in[MAX_ADDRESS_CARRIED];

	if (egress_rule_is_partial(r))
		return false;
	if (r->kind == EGRESS_EVERY || egress_rule_has_address(r, a))
		return true;
	size_t n = address_carried(a, in);
	for (size_t i = 0; i < n; i++)
		if (egress_rule_has_address(r, &in[i]))
			return true;
	return false;
}

static int find_denied_address(const struct egress_set *s, const struct address *a, uint16_t port)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].rule.list == EGRESS_LIST_DENY &&
		    egress_rule_has_port(&s->v[i].rule, port) && denies_address(&s->v[i].rule, a))
			return (int)i;
	return -1;
}

/* port 0: only a rule for every port. */
static int find_denied_name(const struct egress_set *s, const struct host *h, uint16_t port)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].rule.list == EGRESS_LIST_DENY &&
		    !egress_rule_is_partial(&s->v[i].rule) &&
		    egress_rule_has_port(&s->v[i].rule, port) &&
		    egress_rule_has_name(&s->v[i].rule, h))
			return (int)i;
	for (size_t i = 0; i < s->n; i++)
		if (egress_mirror_closes(&s->v[i].rule, h))
			return (int)i;
	return -1;
}

/* The host's loopback, which has three spellings. */
static struct egress_verdict match_local(const struct egress_set *s, uint16_t port)
{
	static const struct address spelled[] = {{.family = 4, .b = {127, 0, 0, 1}},
						 {.family = 6, .b = {[15] = 1}}};

	for (size_t i = 0; i < s->n; i++) {
		const struct egress_rule *r = &s->v[i].rule;
		if (r->list == EGRESS_LIST_DENY && egress_rule_has_port(r, port) &&
		    (r->kind == EGRESS_LOOPBACK || denies_address(r, &spelled[0]) ||
		     denies_address(r, &spelled[1])))
			return no(EGRESS_WHY_DENIED, (int)i);
	}
	for (size_t i = 0; i < s->n; i++) {
		const struct egress_rule *r = &s->v[i].rule;
		if (r->list != EGRESS_LIST_DENY && r->kind == EGRESS_LOOPBACK && r->port == port)
			return yes(i, true);
	}
	return no(EGRESS_WHY_LOOPBACK, -1);
}

struct egress_verdict egress_match_name(const struct egress_set *s, const struct host *host,
					uint16_t port)
{
	int other = -1;

	if (port == 0)
		return no(EGRESS_WHY_HOST, -1);
	if (host->kind != HOST_NAME)
		return egress_match_address(s, &host->addr, port, NULL);
	if (host_is_loopback(host))
		return match_local(s, port);
	int denied = find_denied_name(s, host, port);
	if (denied >= 0)
		return no(EGRESS_WHY_DENIED, denied);
	for (size_t i = 0; i < s->n; i++) {
		const struct egress_rule *r = &s->v[i].rule;
		if (!egress_rule_opens(r) || !egress_rule_has_name(r, host))
			continue;
		if (egress_rule_has_port(r, port))
			return yes(i, false);
		other = (int)i;
	}
	return no(other < 0 ? EGRESS_WHY_DEFAULT : EGRESS_WHY_PORT, other);
}

static bool is_loopback(const struct address *a)
{
	static const unsigned char one4[16] = {127, 0, 0, 1};
	static const unsigned char one6[16] = {[15] = 1};

	return memcmp(a->b, a->family == 4 ? one4 : one6, sizeof(a->b)) == 0;
}

/* The rule's prefix opens addresses of this class, which `a` in it has. */
static bool opens(const struct egress_rule *r, enum address_class class)
{
	if (class == ADDRESS_PUBLIC)
		return true;
	return address_class_can_open(class) && address_class(&r->addr) == class &&
	       address_prefix_uniform(&r->addr, r->bits);
}

static struct egress_verdict match_prefixes(const struct egress_set *s, const struct address *a,
					    uint16_t port)
{
	enum address_class class = address_class(a);
	int other = -1;

	for (size_t i = 0; i < s->n; i++) {
		const struct egress_rule *r = &s->v[i].rule;
		if (!egress_rule_opens(r) || !egress_rule_has_address(r, a) || !opens(r, class))
			continue;
		if (egress_rule_has_port(r, port))
			return yes(i, false);
		other = (int)i;
	}
	if (other >= 0)
		return no(EGRESS_WHY_PORT, other);
	return class == ADDRESS_PUBLIC ? no(EGRESS_WHY_DEFAULT, -1) : no_class(a);
}

struct egress_verdict egress_match_address(const struct egress_set *s, const struct address *addr,
					   uint16_t port, const struct host *asked)
{
	struct address a = *addr;

	address_unmap(&a);
	if (port == 0)
		return no(EGRESS_WHY_HOST, -1);
	if (asked && asked->kind != HOST_NAME)
		asked = NULL;
	if (is_loopback(&a) && !asked)
		return match_local(s, port);
	int denied = find_denied_address(s, &a, port);
	if (denied >= 0)
		return no(EGRESS_WHY_DENIED, denied);
	if (!asked)
		return match_prefixes(s, &a, port);
	struct egress_verdict name = egress_match_name(s, asked, port);
	if (!name.allow || address_class(&a) == ADDRESS_PUBLIC)
		return name;
	struct egress_verdict v =
		is_loopback(&a) ? match_local(s, port) : match_prefixes(s, &a, port);
	/* Of a name that is allowed, what is wrong is the address. */
	return v.allow || v.reason == EGRESS_WHY_DENIED ? v : no_class(&a);
}

static struct egress_verdict match_dns_local(const struct egress_set *s)
{
	struct egress_verdict v = no(EGRESS_WHY_LOOPBACK, -1);

	for (size_t i = 0; i < s->n && !v.allow; i++) {
		const struct egress_rule *r = &s->v[i].rule;
		if (r->list != EGRESS_LIST_DENY && r->kind == EGRESS_LOOPBACK)
			v = match_local(s, r->port);
	}
	return v;
}

struct egress_verdict egress_match_dns(const struct egress_set *s, const struct host *host)
{
	struct egress_verdict v = no(EGRESS_WHY_DEFAULT, -1);

	if (host->kind != HOST_NAME)
		return no(EGRESS_WHY_HOST, -1);
	if (host_is_loopback(host))
		return match_dns_local(s);
	int denied = find_denied_name(s, host, 0);
	if (denied >= 0)
		return no(EGRESS_WHY_DENIED, denied);
	for (size_t i = 0; i < s->n; i++) {
		const struct egress_rule *r = &s->v[i].rule;
		if (!egress_rule_opens(r) || !egress_rule_has_name(r, host))
			continue;
		if (r->port == 0)
			return yes(i, false);
		v = egress_match_name(s, host, r->port);
		if (v.allow)
			return v;
	}
	return v;
}

/* A limit of the rules, not one of the proxy's own. */
static bool is_limit(const struct egress_set *s, enum egress_reason reason, int rule)
{
	return reason == EGRESS_WHY_LIMIT && rule >= 0 && (size_t)rule < s->n &&
	       s->v[rule].rule.list == EGRESS_LIST_LIMIT;
}

static void say_rule(const struct egress_set *s, enum egress_reason reason, int rule,
		     const char *address, char *ret)
{
	bool decided = reason == EGRESS_WHY_RULE || reason == EGRESS_WHY_DENIED ||
		       reason == EGRESS_WHY_METHOD || reason == EGRESS_WHY_PATH ||
		       reason == EGRESS_WHY_AMBIGUOUS;
	struct address a;

	if (is_limit(s, reason, rule)) {
		(void)snprintf(ret, EGRESS_RULE_SAID, "network.%s", s->v[rule].text);
	} else if (decided && rule >= 0 && (size_t)rule < s->n) {
		const struct egress_entry *entry = &s->v[rule];
		(void)snprintf(ret, EGRESS_RULE_SAID, "network.%s[%u] %s",
			       egress_list_names[entry->rule.list], entry->number, entry->text);
	} else if (reason == EGRESS_WHY_CLASS && address_parse(address, &a)) {
		(void)snprintf(ret, EGRESS_RULE_SAID, "network.address %s",
			       address_class_name(address_class(&a)));
	} else {
		(void)snprintf(ret, EGRESS_RULE_SAID, "network.%s",
			       reason == EGRESS_WHY_PORT ? "default" : egress_reason_name(reason));
	}
}

/* "--allow-host HOST[:PORT]" */
static void hint_allow(const char *host, uint32_t port, char *ret)
{
	bool v6 = strchr(host, ':') != NULL;
	char behind[8] = "";

	if (port && port != EGRESS_PORT_ALLOW)
		(void)snprintf(behind, sizeof(behind), ":%u", port & 0xffffu);
	(void)snprintf(ret, ERR_HINT_MAX, "--allow-host %s%.255s%s%s", v6 ? "[" : "", host,
		       v6 ? "]" : "", behind);
}

/* Nobody is told to open what holds a machine's credentials, or what cannot be. */
static void hint_address(const char *address, uint32_t port, char *ret)
{
	struct address a;

	if (!address_parse(address, &a))
		return;
	enum address_class class = address_class(&a);
	if (class == ADDRESS_LOOPBACK && port)
		(void)snprintf(ret, ERR_HINT_MAX, "--allow-local %u", port & 0xffffu);
	else if (class != ADDRESS_METADATA && address_class_can_open(class))
		hint_allow(address, port, ret);
}

static void hint_denied(const struct egress_set *s, int rule, char *ret)
{
	if (rule < 0 || (size_t)rule >= s->n)
		return;
	const struct egress_entry *by = &s->v[rule];
	if (by->rule.list == EGRESS_LIST_MIRROR)
		(void)snprintf(ret, ERR_HINT_MAX, "%s has its packages from %.400s here",
			       egress_managers[by->rule.manager % EGRESS_MANAGERS],
			       egress_mirror_url(by->text));
	else
		(void)snprintf(ret, ERR_HINT_MAX, "denied by %.400s", by->origin);
}

static void say_hint(const struct egress_set *s, enum egress_reason reason, int rule,
		     const char *host, uint32_t port, const char *address, char *ret)
{
	struct address a;

	switch (reason) {
	case EGRESS_WHY_DEFAULT:
	case EGRESS_WHY_PORT:
		if (address_parse(host, &a))
			hint_address(host, port, ret);
		else if (host[0])
			hint_allow(host, port, ret);
		return;
	case EGRESS_WHY_DENIED:
		hint_denied(s, rule, ret);
		return;
	case EGRESS_WHY_CLASS:
		hint_address(address[0] ? address : host, port, ret);
		return;
	case EGRESS_WHY_LOOPBACK:
		if (port)
			(void)snprintf(ret, ERR_HINT_MAX, "--allow-local %u", port & 0xffffu);
		return;
	case EGRESS_WHY_METHOD:
	case EGRESS_WHY_PATH:
		(void)snprintf(
			ret, ERR_HINT_MAX,
			"a rule with that method and path: --allow-host '%.253s METHOD /PATH'",
			host);
		return;
	case EGRESS_WHY_UNSEEN:
		(void)snprintf(ret, ERR_HINT_MAX,
			       "the rules of by now inspect this host: a new connection is");
		return;
	case EGRESS_WHY_AMBIGUOUS:
		(void)snprintf(ret, ERR_HINT_MAX,
			       "write the path without dot segments, `//` and needless encodings");
		return;
	case EGRESS_WHY_PUSH:
		(void)snprintf(ret, ERR_HINT_MAX,
			       "a push grant of your own policy file: network.push: "
			       "[%.253s/OWNER/REPOSITORY]; or `sandglass push` from outside",
			       host);
		return;
	case EGRESS_WHY_LIMIT:
		if (is_limit(s, reason, rule))
			(void)snprintf(ret, ERR_HINT_MAX, "%s by %.400s; a larger one goes there",
				       egress_limit_help((enum egress_limit)s->v[rule].rule.limit),
				       s->v[rule].origin);
		return;
	case EGRESS_WHY_RULE:
	case EGRESS_WHY_HOST:
	case EGRESS_WHY_SYNTHETIC:
	case EGRESS_WHY_SNI:
	case EGRESS_WHY_ECH:
	case EGRESS_WHY_AUTHORITY:
	case EGRESS_WHY_MALFORMED:
	case EGRESS_WHY_PROTOCOL:
	case EGRESS_WHY_UNRESOLVED:
	case EGRESS_WHY_UNREACHED:
	case EGRESS_WHYS:
		return;
	case EGRESS_WHY_SECRET:
		(void)snprintf(ret, ERR_HINT_MAX,
			       "a placeholder was where its secret may not go, or the answer "
			       "to a request that was made said the secret back");
		return;
	case EGRESS_WHY_CERTIFICATE:
		(void)snprintf(ret, ERR_HINT_MAX,
			       "the server's certificate is not valid here; an authority of your "
			       "own belongs into the host's store");
		return;
	case EGRESS_WHY_TLS:
		(void)snprintf(ret, ERR_HINT_MAX,
			       "requests to this host are inspected: the program has to take the "
			       "sandbox's certificate authority, TLS 1.2 and HTTP/1.1");
		return;
	}
}

void egress_say(const struct egress_set *s, enum egress_reason reason, int rule, const char *host,
		uint32_t port, const char *address, struct egress_said *ret)
{
	bool v6 = strchr(host, ':') != NULL;

	ret->hint[0] = '\0';
	if (port)
		(void)snprintf(ret->target, sizeof(ret->target), "%s%.253s%s:%u", v6 ? "[" : "",
			       host, v6 ? "]" : "", port & 0xffffu);
	else
		(void)snprintf(ret->target, sizeof(ret->target), "%.255s", host);
	say_rule(s, reason, rule, address[0] ? address : host, ret->rule);
	say_hint(s, reason, rule, host, port, address, ret->hint);
}

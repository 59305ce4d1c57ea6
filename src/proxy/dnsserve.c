/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resolver of the sandbox: names that are allowed at some port have an address
 * of the synthetic ranges, all others are refused. Nothing is asked of anybody, so
 * no byte of a question leaves the host.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/base.h"
#include "proxy/dns.h"
#include "proxy/proxy.h"

/* Datagrams before others have their turn. */
#define ROUNDS 64

static void say_denied(struct proxy *px, enum egress_reason reason, int rule, const char *host)
{
	struct egress_event ev = {.kind = EGRESS_DENY,
				  .how = EGRESS_BY_DNS,
				  .reason = reason,
				  .rule = rule};

	if (host)
		(void)snprintf(ev.host, sizeof(ev.host), "%s", host);
	control_send(&px->control, &ev);
}

/* Words for a person who runs dig; the text of an extended error. */
static void refuse(struct proxy *px, struct dns_answer *a, char text[ERR_HINT_MAX],
		   const struct egress_verdict *v, const char *host)
{
	struct egress_said said;

	egress_say(&px->set, v->reason, v->rule, host, 0, "", &said);
	if (v->reason == EGRESS_WHY_DENIED) /* which file says so is not for the sandbox */
		said.hint[0] = '\0';
	(void)snprintf(text, ERR_HINT_MAX, "sandglass: %.200s%s%.200s", said.rule,
		       said.hint[0] ? "; " : "", said.hint);
	a->rcode = DNS_REFUSED;
	a->extended = v->reason == EGRESS_WHY_DENIED ? DNS_BLOCKED : DNS_PROHIBITED;
	a->text = text;
	say_denied(px, v->reason, v->rule, host);
}

static void give_address(struct proxy *px, const struct host *host, bool local, uint16_t type,
			 struct dns_answer *a)
{
	static const struct address four = {4, {127, 0, 0, 1}};
	static const struct address six = {6, {[15] = 1}};
	struct address give = type == DNS_A ? four : six;

	if (type == DNS_AAAA && !px->redirects6)
		return; /* there is no IPv6 inside */
	if (!local && !px->redirects) {
		a->rcode = DNS_REFUSED;
		a->extended = DNS_FILTERED;
		a->text = "sandglass: no transparent path on this kernel, only the proxy";
		say_denied(px, EGRESS_WHY_PROTOCOL, -1, host->text);
		return;
	}
	if (!local) {
		const struct name *n = names_take(&px->names, host, proxy_now(px));
		if (!n) {
			a->rcode = DNS_SERVFAIL;
			a->extended = DNS_FILTERED;
			a->text = "sandglass: too many names";
			say_denied(px, EGRESS_WHY_LIMIT, -1, host->text);
			return;
		}
		if (type == DNS_A)
			names_address4(n, &give);
		else
			names_address6(n, &give);
	}
	a->address_len = type == DNS_A ? 4 : 16;
	memcpy(a->address, give.b, sizeof(a->address));
}

static void judge(struct proxy *px, const struct dns_query *q, struct dns_answer *a,
		  char text[ERR_HINT_MAX])
{
	struct host host;
	enum host_bad bad = host_read(q->name, strlen(q->name), &host);

	if (bad != HOST_GOOD || host.kind != HOST_NAME) {
		a->rcode = DNS_REFUSED;
		a->extended = DNS_PROHIBITED;
		a->text = bad != HOST_GOOD ? host_bad_text(bad) : "an address is no name";
		say_denied(px, EGRESS_WHY_HOST, -1, NULL);
		return;
	}
	struct egress_verdict v = egress_match_dns(&px->set, &host);
	if (!v.allow) {
		refuse(px, a, text, &v, host.text);
		return;
	}
	switch (q->type) {
	case DNS_A:
	case DNS_AAAA:
		give_address(px, &host, v.local, q->type, a);
		break;
	case DNS_SVCB:
	case DNS_HTTPS: /* no record of that kind: clients go on with A and AAAA */
		break;
	default:
		a->rcode = DNS_REFUSED;
		a->extended = DNS_FILTERED;
		a->text = "sandglass: only A and AAAA are answered";
		say_denied(px, EGRESS_WHY_PROTOCOL, v.rule, host.text);
	}
}

/* 0: nothing to answer. */
static size_t respond(struct proxy *px, const unsigned char *p, size_t n,
		      unsigned char ret[MAX_DNS_ANSWER])
{
	struct dns_query q;
	struct dns_answer a = {.extended = -1, .ttl = NAME_TTL_S};
	char text[ERR_HINT_MAX];

	if (!dns_query_parse(p, n, &q))
		return 0;
	if (q.rcode == DNS_NOERROR) {
		judge(px, &q, &a, text);
	} else {
		a.rcode = q.rcode;
		say_denied(px, EGRESS_WHY_MALFORMED, -1, NULL);
	}
	return dns_answer_write(&q, &a, ret);
}

void dns_datagrams(struct proxy *px, int fd)
{
	unsigned char query[MAX_DNS_QUERY + 1];
	unsigned char answer[MAX_DNS_ANSWER];

	for (int i = 0; i < ROUNDS; i++) {
		struct sockaddr_storage from;
		socklen_t len = sizeof(from);
		ssize_t n = RETRY_EINTR(recvfrom(fd, query, sizeof(query), MSG_DONTWAIT,
						 (struct sockaddr *)&from, &len));
		if (n < 0)
			return;
		size_t out = respond(px, query, (size_t)n, answer);
		if (out) /* what the client's socket does not take is lost, as datagrams are */
			(void)RETRY_EINTR(sendto(fd, answer, out, MSG_DONTWAIT | MSG_NOSIGNAL,
						 (struct sockaddr *)&from, len));
	}
}

static size_t want(struct conn *c, enum end from)
{
	const struct side *s = &c->side[CLIENT];

	return from == CLIENT && s->out_len == s->out_at ? 2 + MAX_DNS_QUERY - c->in_len : 0;
}

/* RFC 1035, 4.2.2: each message behind its length. */
static void data(struct conn *c, enum end from, const char *p, size_t n)
{
	unsigned char answer[2 + MAX_DNS_ANSWER];

	(void)from;
	if (!conn_keep(c, p, n, 2 + MAX_DNS_QUERY)) {
		conn_end(c, true);
		return;
	}
	while (c->in_len >= 2) {
		const unsigned char *in = (const unsigned char *)c->in;
		size_t len = (size_t)in[0] << 8 | in[1];
		if (len > MAX_DNS_QUERY || len == 0) {
			conn_say(c, EGRESS_DENY, EGRESS_WHY_MALFORMED, -1, NULL);
			conn_end(c, true);
			return;
		}
		if (c->in_len < 2 + len)
			return;
		size_t out = respond(c->px, in + 2, len, answer + 2);
		conn_drop_kept(c, 2 + len);
		if (out == 0) {
			conn_end(c, true);
			return;
		}
		answer[0] = (unsigned char)(out >> 8);
		answer[1] = (unsigned char)out;
		if (!conn_send(c, CLIENT, answer, 2 + out))
			return;
	}
}

static void eof(struct conn *c, enum end from)
{
	(void)from;
	conn_finish(c);
}

static void broken(struct conn *c, enum end from)
{
	(void)from;
	conn_end(c, true);
}

static void late(struct conn *c)
{
	conn_end(c, false);
}

static const struct ops ops = {
	.want = want,
	.data = data,
	.eof = eof,
	.broken = broken,
	.late = late,
};

void dns_accepted(struct proxy *px, int fd)
{
	struct conn *c = conn_new(px, fd, EGRESS_BY_DNS, &ops);

	if (!c)
		return;
	conn_deadline(c, DNS_IDLE_MS, true);
	conn_update(c);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an HTTP client is told when it does not get what it asked for: a status, a
 * machine's word in a header, and a body for programs and people alike.
 */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/json.h"
#include "proxy/proxy.h"

#define MAX_ANSWER_BYTES 8192

static const char *reason_phrase(unsigned int status)
{
	static const struct {
		unsigned int status;
		const char *text;
	} phrases[] = {
		{400, "Bad Request"},
		{403, "Forbidden"},
		{408, "Request Timeout"},
		{421, "Misdirected Request"},
		{414, "URI Too Long"},
		{417, "Expectation Failed"},
		{431, "Request Header Fields Too Large"},
		{501, "Not Implemented"},
		{502, "Bad Gateway"},
		{504, "Gateway Timeout"},
		{505, "HTTP Version Not Supported"},
	};

	for (size_t i = 0; i < ARRAY_LEN(phrases); i++)
		if (phrases[i].status == status)
			return phrases[i].text;
	return "Error";
}

struct answer {
	unsigned int status;
	const char *code, *message, *header, *header_value;
	const char *rule, *hint; /* NULL: none */
};

static void answer(struct conn *c, const struct answer *a)
{
	AUTO_BUF body = BUF_INIT(MAX_ANSWER_BYTES);
	AUTO_BUF out = BUF_INIT(2 * MAX_ANSWER_BYTES);
	struct json j = JSON_INIT(&body);
	struct err e;

	json_obj_begin(&j);
	json_key(&j, "error");
	json_obj_begin(&j);
	json_kv_str(&j, "code", a->code);
	json_kv_str(&j, "message", a->message);
	if (c->host.text[0]) {
		json_kv_str(&j, "host", c->host.text);
		json_kv_uint(&j, "port", c->port);
	}
	if (a->rule)
		json_kv_str(&j, "rule", a->rule);
	if (a->hint && a->hint[0])
		json_kv_str(&j, "hint", a->hint);
	json_obj_end(&j);
	json_obj_end(&j);
	if (json_finish(&j, ERR_INTERNAL, &e) < 0)
		buf_clear(&body);
	(void)buf_char(&body, '\n');
	(void)buf_printf(&out,
			 "HTTP/1.1 %u %s\r\nContent-Type: application/json\r\n"
			 "Content-Length: %zu\r\n%s: %s\r\nConnection: close\r\n\r\n",
			 a->status, reason_phrase(a->status), body.n, a->header, a->header_value);
	(void)buf_add(&out, body.p, body.n);
	if (conn_send(c, CLIENT, out.p, out.n))
		conn_finish(c);
}

void answer_bad(struct conn *c, unsigned int status, const char *why)
{
	answer(c, &(struct answer){.status = status,
				   .code = "BAD_REQUEST",
				   .message = why,
				   .header = "X-Sandglass-Refused",
				   .header_value = "malformed"});
}

static void deny(struct conn *c, enum egress_reason reason, const struct egress_said *said,
		 const char *text)
{
	answer(c, &(struct answer){.status = 403,
				   .code = "EGRESS_DENIED",
				   .message = text,
				   .header = "X-Sandglass-Denied",
				   .header_value = egress_reason_name(reason),
				   .rule = said->rule,
				   .hint = said->hint});
}

void answer_denied(struct conn *c, enum egress_reason reason, int rule)
{
	struct egress_said said;
	char text[ERR_MSG_MAX];
	char address[ADDRESS_TEXT] = "";

	if (c->address.family)
		(void)address_format(&c->address, address);
	egress_say(&c->px->set, reason, rule, c->host.text, c->port, address, &said);
	/* Which file says so is not for the sandbox. */
	if (reason == EGRESS_WHY_DENIED || reason == EGRESS_WHY_LIMIT)
		said.hint[0] = '\0';
	(void)snprintf(text, sizeof(text), "sandglass denied %s (%.300s)%s%.400s", said.target,
		       said.rule, said.hint[0] ? "; to allow it: " : "", said.hint);
	deny(c, reason, &said, text);
}

void answer_refused(struct conn *c, enum egress_reason reason, int rule, const char *what)
{
	struct egress_said said;
	char text[ERR_MSG_MAX];

	egress_say(&c->px->set, reason, rule, c->host.text, c->port, "", &said);
	(void)snprintf(text, sizeof(text), "sandglass denied a request to %s: %s (%.300s)",
		       said.target, what, said.rule);
	deny(c, reason, &said, text);
}

void answer_insecure(struct conn *c, bool denied, const char *why)
{
	char text[ERR_MSG_MAX];

	(void)snprintf(
		text, sizeof(text), "%s %s:%u: %.200s",
		denied ? "sandglass sent nothing to a server whose certificate is not valid for"
		       : "no TLS with",
		c->host.text, c->port, why);
	answer(c, &(struct answer){.status = 502,
				   .code = denied ? "EGRESS_DENIED" : "EGRESS_FAILED",
				   .message = text,
				   .header = denied ? "X-Sandglass-Denied" : "X-Sandglass-Failed",
				   .header_value = denied ? "certificate" : "tls",
				   .rule = denied ? "network.certificate" : NULL});
}

void answer_failed(struct conn *c, const struct dial_end *end)
{
	char text[ERR_MSG_MAX];
	bool slow = end->what == DIAL_UNREACHED && end->err == ETIMEDOUT;
	const char *why = end->what == DIAL_UNRESOLVED ? "the name was not resolved"
						       : strerrordesc_np(end->err);

	(void)snprintf(text, sizeof(text), "%s:%u could not be reached: %s", c->host.text, c->port,
		       why ? why : "no connection");
	answer(c, &(struct answer){.status = slow ? 504 : 502,
				   .code = "EGRESS_FAILED",
				   .message = text,
				   .header = "X-Sandglass-Failed",
				   .header_value = egress_reason_name(
					   end->what == DIAL_UNRESOLVED ? EGRESS_WHY_UNRESOLVED
									: EGRESS_WHY_UNREACHED)});
}

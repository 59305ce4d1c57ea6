/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: rules, sets and the matcher. The input is lines; `+`, `-` and `=`
 * begin a rule of allow, deny and local, `%` a limit, `?` a host with port that is asked for,
 * `!` bytes for the decoder of sets. A set comes out the same when it is written
 * and read again, and what a verdict says is bounded and safe to show.
 */
#include "egress/set.h"

#include "base/sha256.h"
#include "egress/broad.h"
#include "egress/limit.h"
#include "fuzz_base.h"

static void ask(const struct egress_set *s, const char *line)
{
	struct host h;
	uint16_t port = 0;
	struct egress_said said;

	if (host_port_read(line, strlen(line), 443, &h, &port) != HOST_GOOD)
		return;
	struct egress_verdict v = egress_match_name(s, &h, port);
	FUZZ_CHECK(v.allow == (v.reason == EGRESS_WHY_RULE) && v.rule < (int)s->n);
	FUZZ_CHECK(!v.allow || (v.rule >= 0 && s->v[v.rule].rule.list != EGRESS_LIST_DENY));
	FUZZ_CHECK(!v.local || (v.allow && host_is_loopback(&h)));
	egress_say(s, v.reason, v.rule, h.text, port, "", &said);
	fuzz_check_line(said.target, sizeof(said.target));
	for (unsigned int i = 0; i < EGRESS_LIMITS; i++) {
		int at = egress_limit_find(s, (enum egress_limit)i);
		FUZZ_CHECK(at < 0 || (s->v[at].rule.limit == i && s->v[at].rule.amount));
		egress_say(s, EGRESS_WHY_LIMIT, at, h.text, port, "", &said);
		fuzz_check_line(said.hint, sizeof(said.hint));
	}
	if (h.kind == HOST_NAME) {
		struct egress_verdict dns = egress_match_dns(s, &h);
		/* What may be connected to may be resolved. */
		FUZZ_CHECK(!v.allow || dns.allow);
		return;
	}
	/* An address that is not public is opened by its own rule only. */
	FUZZ_CHECK(!v.allow || v.local || egress_rule_has_address(&s->v[v.rule].rule, &h.addr));
	struct host name = {.kind = HOST_NAME, .text = "x.example"};
	struct egress_verdict by_name = egress_match_name(s, &name, port);
	struct egress_verdict r = egress_match_address(s, &h.addr, port, &name);
	FUZZ_CHECK(!r.allow || by_name.allow);
}

static void add(struct egress_set *s, const char *line)
{
	enum egress_list list = line[0] == '+'   ? EGRESS_LIST_ALLOW
				: line[0] == '-' ? EGRESS_LIST_DENY
				: line[0] == '%' ? EGRESS_LIST_LIMIT
						 : EGRESS_LIST_LOCAL;
	struct err e = {0};
	const char *what = NULL;

	if (egress_set_add(s, list, line + 1, "fuzz", &e) < 0) {
		FUZZ_CHECK(e.code == ERR_CONFIG_INVALID);
		fuzz_check_err(&e);
		return;
	}
	const struct egress_rule *r = &s->v[s->n - 1].rule;
	FUZZ_CHECK(r->list == list && strlen(r->host) <= MAX_HOST_NAME);
	(void)egress_rule_broad(r, &what);
	FUZZ_CHECK(what != NULL);
	(void)egress_rule_push(r);
}

static void decode(const uint8_t *data, size_t size)
{
	struct egress_set s;
	struct err e = {0};
	AUTO_BUF out = BUF_INIT(MAX_EGRESS_BYTES);

	if (egress_set_decode(data, size, &s, &e) < 0) {
		FUZZ_CHECK(e.code == ERR_INTERNAL);
		return;
	}
	FUZZ_CHECK(egress_set_encode(&s, &out, &e) == 0);
	FUZZ_CHECK(out.n == size && memcmp(out.p, data, size) == 0);
	egress_set_release(&s);
}

/* The input as what follows the header, so that no hash has to be found. */
static void decode_body(const uint8_t *data, size_t size)
{
	struct {
		uint32_t magic, version, total, count;
		unsigned char sha256[SHA256_BYTES];
	} h = {.magic = 0x45474c53u, .version = 1};

	if (size < 1)
		return;
	h.count = data[0];
	h.total = (uint32_t)(sizeof(h) + size - 1);
	sha256(data + 1, size - 1, h.sha256);
	uint8_t *bytes = malloc(h.total);
	FUZZ_CHECK(bytes != NULL);
	memcpy(bytes, &h, sizeof(h));
	memcpy(bytes + sizeof(h), data + 1, size - 1);
	decode(bytes, h.total);
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct egress_set s = {0};
	uint16_t ports[MAX_EGRESS_LOCALS];
	AUTO_BUF out = BUF_INIT(MAX_EGRESS_BYTES);
	struct err e = {0};
	char *text = fuzz_string(data, size);
	char *save = NULL;

	if (size && data[0] == '!') {
		decode_body(data + 1, size - 1);
		decode(data + 1, size - 1);
		free(text);
		return 0;
	}
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (strchr("+-=%", line[0]))
			add(&s, line);
		else if (line[0] == '?')
			ask(&s, line + 1);
	}
	FUZZ_CHECK(egress_set_locals(&s, ports) <= MAX_EGRESS_LOCALS);
	FUZZ_CHECK(egress_set_encode(&s, &out, &e) == 0);
	decode((const uint8_t *)out.p, out.n);
	egress_set_release(&s);
	free(text);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the decoder of compiled policies. The input is what follows the
 * header (its first four bytes are the count of records), so that the search
 * does not have to find hashes. What is accepted comes out the same when it is
 * written and read again.
 */
#include "policy/compiled.h"

#include "egress/rule.h"
#include "fuzz_base.h"
#include "policy/compiled_record.h"

static void check(const struct compiled *c)
{
	FUZZ_CHECK(c->key_bytes <= MAX_COMPILED_KEY);
	if (c->failed) {
		fuzz_check_err(&c->error);
		return;
	}
	for (size_t i = 0; i < c->rule_count; i++) {
		const struct path_rule *r = &c->rules[i];
		FUZZ_CHECK(strlen(r->path) < PATH_TEXT && r->access < PATH_ACCESSES);
		FUZZ_CHECK(r->pattern || r->path[0] == '/');
		FUZZ_CHECK(r->access != ACCESS_WRITE || (!r->narrow && !r->pattern));
		FUZZ_CHECK(strlen(r->origin) <= PATH_TEXT + 64);
	}
	for (size_t i = 0; i < c->host_count; i++) {
		struct egress_rule rule;
		struct err ignored = {0};
		FUZZ_CHECK(egress_rule_read((enum egress_list)c->hosts[i].list, c->hosts[i].text,
					    &rule, &ignored) == 0);
		FUZZ_CHECK(strlen(c->hosts[i].origin) <= PATH_TEXT + 64);
	}
	for (size_t i = 0; i < c->env_count; i++)
		FUZZ_CHECK(c->env[i].text[0] && c->env[i].text[0] != '=');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct compiled_header h = {.magic = COMPILED_MAGIC, .version = COMPILED_VERSION};
	struct compiled c;
	struct compiled again;
	struct buf out = BUF_INIT(MAX_COMPILED_BYTES);
	struct err e = {0};

	if (size < sizeof(h.records))
		return 0;
	memcpy(&h.records, data, sizeof(h.records));
	data += sizeof(h.records);
	size -= sizeof(h.records);
	h.total = (uint32_t)(sizeof(h) + size);
	sha256(data, size, h.sha256);
	unsigned char *bytes = malloc(h.total);
	FUZZ_CHECK(bytes != NULL);
	memcpy(bytes, &h, sizeof(h));
	if (size)
		memcpy(bytes + sizeof(h), data, size);
	if (compiled_decode(bytes, h.total, &c, &e) < 0) {
		FUZZ_CHECK(e.code == ERR_INTERNAL);
		fuzz_check_err(&e);
	} else {
		check(&c);
		FUZZ_CHECK(compiled_encode(&c, &out, &e) == 0);
		FUZZ_CHECK(compiled_decode(out.p, out.n, &again, &e) == 0);
		FUZZ_CHECK(c.failed || (out.n == h.total && memcmp(out.p, bytes, out.n) == 0));
		compiled_release(&again);
		compiled_release(&c);
	}
	buf_release(&out);
	free(bytes);
	return 0;
}

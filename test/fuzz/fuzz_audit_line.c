/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: a line of the audit log, jansson included. What is accepted has all its
 * keys, hashes only what is in the line, and can be shown.
 */
#include "chain/filter.h"
#include "chain/record.h"
#include "chain/show.h"
#include "fuzz_base.h"

static void use(const struct record *r, const char *p, size_t size)
{
	static const struct filter filter = {.host = "example.com",
					     .path = "/home",
					     .actor = "x",
					     .event = "call"};
	struct buf out = BUF_INIT(64u << 20);

	FUZZ_CHECK(r->seq > 0 && r->time && r->event && r->actor && r->data);
	FUZZ_CHECK(strlen(r->prev) == 64 && strlen(r->hash) == 64);
	FUZZ_CHECK(r->hashed > 0 && r->hashed < size);
	(void)record_hash_fits(r, p);
	(void)filter_fits(&filter, r);
	show_text(r, &out);
	show_csv(r, &out);
	FUZZ_CHECK(!out.failed);
	buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct record r;
	struct err e = {0};

	if (record_parse((const char *)data, size, &r, &e) < 0) {
		fuzz_check_err(&e);
		return 0;
	}
	use(&r, (const char *)data, size);
	record_release(&r);
	return 0;
}

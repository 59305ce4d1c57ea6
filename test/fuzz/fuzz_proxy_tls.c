/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client sends to a leg of ours that shows it a leaf, and a server to the other
 * kind: in pieces, whatever it is, no step goes on for ever, nothing is read before the
 * handshake is over, and a leg that has failed stays so.
 */
#include "fuzz_base.h"

#include "proxy/ca.h"
#include "proxy/tls.h"

#define MAX_STEPS 4096

static struct tls_ways *set_up(void)
{
	static struct tls_ways *ways;
	struct ca *ca = NULL;
	struct err e;

	if (!ways && (ca_new(&ca, &e) < 0 || tls_ways_new(ca, &ways, &e) < 0))
		return NULL; /* a host without authorities */
	return ways;
}

static void drain(struct tls *t)
{
	const char *p;

	(void)tls_out(t, &p);
	tls_out_clear(t);
}

/* The first byte says in which pieces the others come. */
static void lead(struct tls *t, const uint8_t *p, size_t n, size_t piece)
{
	char plain[256];
	size_t got;
	bool failed = false;

	FUZZ_CHECK(t != NULL);
	for (size_t at = 0; at < n; at += piece) {
		size_t some = n - at < piece ? n - at : piece;
		FUZZ_CHECK(tls_feed(t, (const char *)p + at, some));
		enum tls_step step = TLS_BYTES;
		for (int i = 0; i < MAX_STEPS && tls_has_more(t); i++) {
			step = tls_step(t, plain, sizeof(plain), &got);
			FUZZ_CHECK(step != TLS_BYTES ||
				   (tls_is_secured(t) && got <= sizeof(plain)));
			drain(t);
		}
		FUZZ_CHECK(!tls_has_more(t));
		failed |= step == TLS_FAILED;
		FUZZ_CHECK(!failed || tls_step(t, plain, sizeof(plain), &got) == TLS_FAILED);
		FUZZ_CHECK(tls_is_secured(t) || !tls_write(t, "x", 1));
	}
	tls_end(t);
	drain(t);
	tls_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tls_ways *ways = set_up();

	if (size == 0 || !ways)
		return 0;
	size_t piece = (size_t)data[0] * 8 + 1;
	lead(tls_for_client(ways, "a.test", false), data + 1, size - 1, piece);
	lead(tls_for_server(ways, "a.test", false), data + 1, size - 1, piece);
	return 0;
}

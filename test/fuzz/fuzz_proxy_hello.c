/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ClientHellos: a verdict about a beginning stands for all that begins so, and a
 * name has no NUL.
 */
#include "fuzz_base.h"
#include "proxy/clienthello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hello h;
	struct hello again;
	unsigned char *p = (unsigned char *)fuzz_string(data, size);
	enum hello_verdict v = hello_parse(p, size, &h);

	FUZZ_CHECK(v != HELLO_MORE || size < MAX_HELLO_BYTES);
	if (v == HELLO_DONE && h.has_sni)
		FUZZ_CHECK(h.sni_len > 0 && h.sni_len <= MAX_SNI_BYTES &&
			   !memchr(h.sni, 0, h.sni_len));
	FUZZ_CHECK(v != HELLO_DONE || strlen(h.alpn) <= MAX_ALPN_BYTES);
	size_t step = size / 64 + 1;
	for (size_t n = 0; n < size; n += step) {
		enum hello_verdict less = hello_parse(p, n, &again);
		FUZZ_CHECK(less == HELLO_MORE || less == v);
		if (less == HELLO_DONE)
			FUZZ_CHECK(again.sni_len == h.sni_len && again.has_ech == h.has_ech);
	}
	free(p);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SOCKS5 messages: a verdict about a beginning stands for all that begins so.
 */
#include "fuzz_base.h"
#include "proxy/socks5.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct socks_request r;
	enum socks_reply reply;
	unsigned char method = 1;
	size_t bytes = 0;
	unsigned char *p = (unsigned char *)fuzz_string(data, size);
	enum socks_verdict v = socks_request_parse(p, size, &r, &reply);

	if (v == SOCKS_DONE) {
		FUZZ_CHECK(r.bytes <= size && r.bytes <= MAX_SOCKS_MESSAGE && r.host_len > 0);
		FUZZ_CHECK(r.host >= p && r.host + r.host_len + 2 == p + r.bytes);
	}
	FUZZ_CHECK(v != SOCKS_MORE || size < MAX_SOCKS_MESSAGE);
	for (size_t n = 0; n < size && n < MAX_SOCKS_MESSAGE; n++) {
		enum socks_verdict less = socks_request_parse(p, n, &r, &reply);
		FUZZ_CHECK(less == SOCKS_MORE || less == v);
	}
	v = socks_greeting_parse(p, size, &bytes, &method);
	if (v == SOCKS_DONE)
		FUZZ_CHECK(bytes <= size && bytes >= 3 && (method == 0 || method == 0xff));
	free(p);
	return 0;
}

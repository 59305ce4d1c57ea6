/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the decoder of secrets. The first byte is their number, the rest what
 * follows the header, so that no hash has to be found. What it takes is written back
 * byte for byte, and all of it goes only where it says.
 */
#include "egress/secret.h"

#include "base/sha256.h"
#include "fuzz_base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct {
		uint32_t magic, version, total, count;
		unsigned char sha256[SHA256_BYTES];
	} h = {.magic = 0x53454c53u, .version = 1};
	struct egress_secrets s = {.n = 0};
	struct err e = {0};
	AUTO_BUF out = BUF_INIT(MAX_SECRETS_BYTES);
	const struct host host = {.kind = HOST_NAME, .text = "h.com"};

	if (size < 1)
		return 0;
	h.count = data[0];
	h.total = (uint32_t)(sizeof(h) + size - 1);
	sha256(data + 1, size - 1, h.sha256);
	uint8_t *bytes = malloc(h.total);
	FUZZ_CHECK(bytes != NULL);
	memcpy(bytes, &h, sizeof(h));
	memcpy(bytes + sizeof(h), data + 1, size - 1);
	if (egress_secrets_decode(bytes, h.total, &s, &e) == 0) {
		FUZZ_CHECK(egress_secrets_encode(&s, &out, &e) == 0);
		FUZZ_CHECK(out.n == h.total && memcmp(out.p, bytes, out.n) == 0);
		for (size_t i = 0; i < s.n; i++) {
			const struct egress_secret *one =
				egress_secret_replace(&s, &(struct egress_leg){&host, 443, false},
						      s.v[i].field, strlen(s.v[i].field),
						      s.v[i].placeholder,
						      strlen(s.v[i].placeholder));
			FUZZ_CHECK(!one || one->plain);
		}
		egress_secrets_release(&s);
	} else {
		FUZZ_CHECK(e.code == ERR_INTERNAL);
	}
	free(bytes);
	return 0;
}

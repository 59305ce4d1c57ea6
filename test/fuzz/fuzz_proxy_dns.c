/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries of any bytes: what is answered has the question of the query and fits.
 */
#include "fuzz_base.h"
#include "proxy/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dns_query q;
	unsigned char out[MAX_DNS_ANSWER + 16];
	unsigned char *p = (unsigned char *)fuzz_string(data, size);

	memset(out, 0x5a, sizeof(out));
	if (dns_query_parse(p, size, &q)) {
		struct dns_answer a = {.rcode = q.rcode, .extended = -1, .ttl = 30};
		FUZZ_CHECK(strlen(q.name) <= MAX_DNS_NAME);
		if (q.rcode == DNS_NOERROR) {
			FUZZ_CHECK(q.question_len > 4);
			a.address_len = q.type == DNS_A ? 4 : q.type == DNS_AAAA ? 16 : 0;
		}
		if (size % 2) {
			a.extended = DNS_BLOCKED;
			a.text =
				"a text that is as long as it can be, and then some more, so that it is cut "
				"where it has to be cut and nowhere else, whatever it says";
		}
		size_t n = dns_answer_write(&q, &a, out);
		FUZZ_CHECK(n >= 12 + q.question_len && n <= MAX_DNS_ANSWER);
		FUZZ_CHECK(out[n] == 0x5a && memcmp(out, p, 2) == 0 && (out[2] & 0x80));
		FUZZ_CHECK(q.question_len == 0 ||
			   memcmp(out + 12, q.question, q.question_len) == 0);
	}
	free(p);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes a set of rules, or secrets, as sandglass gives them to sandglass-proxy.
 * usage: egress_set (allow|deny|local|inspect|push RULE)… >SET
 *        egress_set secrets (NAME PLACEHOLDER FIELD VALUE plain|tls HOST)… >SECRETS
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "egress/secret.h"
#include "egress/set.h"

#define WORDS 6

static int encode_secrets(char **v, int n)
{
	AUTO_EGRESS_SECRETS secrets = {.n = 0};
	AUTO_BUF out = BUF_INIT(MAX_SECRETS_BYTES);
	struct err e;

	for (int i = 0; i + WORDS <= n; i += WORDS) {
		char **w = v + i;
		if (egress_secrets_add(&secrets, w[0], w[1], w[2], w[3], strcmp(w[4], "plain") == 0,
				       &e) < 0 ||
		    egress_secrets_host(&secrets, w[5], &e) < 0) {
			(void)fprintf(stderr, "%s: %s\n", w[0], e.msg);
			return 2;
		}
	}
	if (buf_reserve(&out, MAX_SECRETS_BYTES) < 0 ||
	    egress_secrets_encode(&secrets, &out, &e) < 0)
		return 1;
	return fwrite(out.p, 1, out.n, stdout) == out.n ? 0 : 1;
}

int main(int argc, char **argv)
{
	AUTO_EGRESS_SET set = {.n = 0};
	AUTO_BUF out = BUF_INIT(MAX_EGRESS_BYTES);
	struct err e;

	if (argc > 1 && strcmp(argv[1], "secrets") == 0)
		return encode_secrets(argv + 2, argc - 2);
	for (int i = 1; i + 1 < argc; i += 2) {
		int list = 0;
		while (list < EGRESS_LISTS && strcmp(argv[i], egress_list_names[list]) != 0)
			list++;
		if (list == EGRESS_LISTS ||
		    egress_set_add(&set, (enum egress_list)list, argv[i + 1], "test", &e) < 0) {
			(void)fprintf(stderr, "%s %s: %s\n", argv[i], argv[i + 1],
				      list == EGRESS_LISTS ? "no list" : e.msg);
			return 2;
		}
	}
	if (egress_set_encode(&set, &out, &e) < 0 || fwrite(out.p, 1, out.n, stdout) != out.n)
		return 1;
	return 0;
}

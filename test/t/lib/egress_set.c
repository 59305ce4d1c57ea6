/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes a set of rules as sandglass gives it to sandglass-proxy.
 * usage: egress_set (allow|deny|local RULE)… >SET
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "egress/set.h"

int main(int argc, char **argv)
{
	AUTO_EGRESS_SET set = {.n = 0};
	AUTO_BUF out = BUF_INIT(MAX_EGRESS_BYTES);
	struct err e;

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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an index, with both sizes of object names: ends, stays in
 * bounds, and tells only of entries as the header promises.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/gitindex.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	size_t entries;
	unsigned int oid_bytes, sum;
};

static bool look(void *self, const struct gitindex_entry *entry)
{
	struct seen *s = self;

	if (entry->path_len < 1 || entry->path_len > 4095 || entry->stage > 3 ||
	    memchr(entry->path, '\0', entry->path_len))
		abort();
	for (unsigned int i = 0; i < s->oid_bytes; i++)
		s->sum += entry->oid[i];
	s->entries++;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const unsigned int sizes[] = {20, 32};

	for (size_t i = 0; i < 2; i++) {
		struct seen s = {.oid_bytes = sizes[i]};
		struct err e;
		bool split = false;
		int rc = gitindex_each(data, size, sizes[i], look, &s, &split, &e);
		if (rc < 0 && e.code != ERR_CONFIG_INVALID)
			abort();
		if (s.entries > size)
			abort();
	}
	return 0;
}

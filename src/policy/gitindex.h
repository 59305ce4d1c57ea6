/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What git tracks, from the bytes of an index file, versions 2 to 4
 * (gitformat-index(5)). No program is started and nothing is opened.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define MAX_GIT_INDEX (256u << 20) /* bytes; a longer one is refused */

struct gitindex_entry {
	const char *path;         /* not ended by NUL; lives until `item` returns */
	size_t path_len;          /* 1 to 4095 */
	uint32_t mode;            /* 0100644, 0100755, 0120000, 0160000, 040000 (sparse) */
	unsigned int stage;       /* 0 merged, 1 to 3 in conflict */
	const unsigned char *oid; /* `oid_bytes` long */
};

/* False: stop reading. */
typedef bool gitindex_item(void *self, const struct gitindex_entry *entry);

/*
 * Calls `item` for each entry, in the file's order. `oid_bytes` is 20 (SHA-1) or
 * 32 (SHA-256), by the repository's object format. ret_split: it is a split
 * index (extension "link"), whose other entries are in a shared file; entries
 * without a name, which say what has changed in one of those, are not told.
 * Untouched if `item` stopped, which is no failure. CONFIG_INVALID with the
 * offset if the bytes are no index; what came before has been told. Paths are
 * as they stand there, also ones that git would not add. The checksum at the
 * end is not verified: git does not either unless asked.
 */
NODISCARD int gitindex_each(const void *bytes, size_t n, unsigned int oid_bytes,
			    gitindex_item *item, void *self, bool *ret_split, struct err *e);

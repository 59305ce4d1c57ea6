/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the decoder of an inventory.
 *
 * Of what it accepts every index has to be within its array, and every path has
 * to end; a scan would walk it. The input is tried as it is and with a header
 * that fits it, since few random bytes have one.
 */
#include "store/inventory.h"

#include "fuzz_base.h"
#include "store/stats.h"

#define MAX_PATH_BYTES (4u << 20)

/* The header's numbers; what comes behind are the arrays, in this order. */
enum {
	MAGIC,
	VERSION,
	DIR_SIZE,
	FIND_SIZE,
	NAMED_CLASSES,
	NAMED_PLACES,
	NAMED_ROLES,
	DIRS,
	FINDS,
	TIPS,
	INSIDE,
	TEXT,
	FULL,
	NUMBERS,
};

static void check_text(const struct inventory *inv, uint32_t at, bool root)
{
	FUZZ_CHECK(at < inv->text_count);
	size_t n = strnlen(inv->text + at, inv->text_count - at);
	FUZZ_CHECK(n < inv->text_count - at);
	if (!root)
		FUZZ_CHECK(n > 0 && n < 1024 && !strchr(inv->text + at, '/'));
}

static void check_dir(const struct inventory *inv, uint32_t i, struct buf *path)
{
	const struct inventory_dir *d = &inv->dirs[i];

	FUZZ_CHECK(i == 0 ? d->parent == INVENTORY_NONE : d->parent < i);
	FUZZ_CHECK(d->size > 0 && d->size <= inv->dir_count - i);
	if (i > 0)
		FUZZ_CHECK(i + d->size <= d->parent + inv->dirs[d->parent].size);
	FUZZ_CHECK(d->find <= inv->find_count && d->finds <= inv->find_count - d->find);
	FUZZ_CHECK(d->tip <= inv->tip_count && d->tips <= inv->tip_count - d->tip);
	for (uint32_t f = d->find; f < d->find + d->finds; f++)
		FUZZ_CHECK(inv->finds[f].dir == i);
	FUZZ_CHECK(d->place < PLACES && d->given < ROLES && d->role < ROLES);
	check_text(inv, d->name, i == 0);
	buf_clear(path);
	inventory_dir_path(inv, i, path);
	FUZZ_CHECK(path->failed || (i == 0) == (path->n == 0));
}

/* The children of a directory, each behind the last one's subtree, are all of it. */
static void check_children(const struct inventory *inv, uint32_t i)
{
	uint32_t child = i + 1;

	for (; child < i + inv->dirs[i].size; child += inv->dirs[child].size)
		FUZZ_CHECK(inv->dirs[child].parent == i);
	FUZZ_CHECK(child == i + inv->dirs[i].size);
}

static void check_oids(const struct inventory_oid *oids, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		FUZZ_CHECK(oids[i].bytes == 20 || oids[i].bytes == 32);
}

static void check_inventory(const struct inventory *inv)
{
	AUTO_BUF path = BUF_INIT(MAX_PATH_BYTES);

	FUZZ_CHECK(inv->dir_count > 0 && inv->dir_count <= MAX_INVENTORY_DIRS);
	FUZZ_CHECK(inv->find_count <= MAX_INVENTORY_FINDS && inv->tip_count <= MAX_INVENTORY_TIPS);
	FUZZ_CHECK(inv->inside_count <= MAX_INVENTORY_INSIDE);
	for (uint32_t i = 0; i < inv->dir_count; i++) {
		check_dir(inv, i, &path);
		check_children(inv, i);
	}
	for (uint32_t i = 0; i < inv->find_count; i++) {
		const struct inventory_find *f = &inv->finds[i];
		FUZZ_CHECK(f->dir < inv->dir_count);
		FUZZ_CHECK(f->class > PROTECT_NONE && f->class < PROTECT_CLASSES);
		check_text(inv, f->name, false);
		buf_clear(&path);
		inventory_path(inv, f, &path);
		FUZZ_CHECK(path.failed || (path.n > 0 && path.p[0] != '/'));
	}
	check_oids(inv->tips, inv->tip_count);
	check_oids(inv->inside, inv->inside_count);
}

static void try_bytes(const uint8_t *data, size_t size)
{
	struct inventory_oid oid = {.bytes = 20};
	struct inventory inv;

	if (!inventory_decode(data, size, &inv)) {
		FUZZ_CHECK(!inv.dirs && !inv.finds && !inv.text && inv.dir_count == 0);
		return;
	}
	check_inventory(&inv);
	/* Names its paths and asks nobody: there is no such descriptor. */
	struct stats *stats = stats_all(-1, &inv);
	FUZZ_CHECK(stats != NULL);
	for (uint32_t i = 0; i < inv.dir_count; i++)
		FUZZ_CHECK(stats[i].ino == 0);
	free(stats);
	FUZZ_CHECK(inventory_add_inside(&inv, &oid));
	FUZZ_CHECK(inv.inside_count > 0 && inv.inside_count <= MAX_INVENTORY_INSIDE);
	inventory_release(&inv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t h[NUMBERS];

	try_bytes(data, size);
	if (size < sizeof(h))
		return 0;
	memcpy(h, data, sizeof(h));
	h[MAGIC] = 0x49474c53u;
	h[VERSION] = 2;
	h[DIR_SIZE] = sizeof(struct inventory_dir);
	h[FIND_SIZE] = sizeof(struct inventory_find);
	h[NAMED_CLASSES] = PROTECT_CLASSES;
	h[NAMED_PLACES] = PLACES;
	h[NAMED_ROLES] = ROLES;
	/* Few of each, so that there is room for text, which takes the rest. */
	h[DIRS] = h[DIRS] % 16 + 1;
	h[FINDS] %= 16;
	h[TIPS] %= 16;
	h[INSIDE] %= 16;
	size_t used = sizeof(h) + h[DIRS] * sizeof(struct inventory_dir) +
		      h[FINDS] * sizeof(struct inventory_find) +
		      (h[TIPS] + h[INSIDE]) * sizeof(struct inventory_oid);
	if (used >= size)
		return 0;
	h[TEXT] = (uint32_t)(size - used);
	uint8_t *fixed = malloc(size);
	FUZZ_CHECK(fixed != NULL);
	memcpy(fixed, data, size);
	memcpy(fixed, h, sizeof(h));
	try_bytes(fixed, size);
	free(fixed);
	return 0;
}

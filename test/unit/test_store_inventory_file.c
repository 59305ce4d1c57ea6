/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of an inventory: the same again, or nothing. No byte of it is believed.
 */
#include "store/inventory.h"

#include "test_store_tree.h"

static struct inventory_oid numbered(uint32_t i)
{
	struct inventory_oid oid = {.bytes = 20};

	memcpy(oid.oid, &i, sizeof(i));
	return oid;
}

/* None is forgotten; that there were more is known from then on, through scans and the file. */
START_TEST(inside)
{
	struct inventory inv = {.read = 0}, next, loaded;
	uint32_t total = MAX_INVENTORY_INSIDE;

	put_dir("i");
	for (uint32_t i = 0; i < total; i++) {
		struct inventory_oid oid = numbered(i);
		ck_assert(inventory_add_inside(&inv, &oid));
		ck_assert_uint_eq(inv.inside_count, i + 1);
	}
	next = scan("i", &inv);
	ck_assert_uint_eq(next.inside_count, total);
	ck_assert_int_eq(memcmp(next.inside, inv.inside, total * sizeof(*inv.inside)), 0);
	ck_assert(!next.inside_full);
	for (uint32_t i = total; i < total + 3; i++) {
		struct inventory_oid oid = numbered(i);
		ck_assert(inventory_add_inside(&next, &oid));
		ck_assert(next.inside_full);
		ck_assert_uint_eq(next.inside_count, total);
	}
	ck_assert_int_eq(memcmp(next.inside, inv.inside, total * sizeof(*inv.inside)), 0);
	AUTO_FD int dir = open(place_top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	inventory_save(dir, "inv", &next);
	ck_assert(inventory_load(dir, "inv", &loaded));
	ck_assert_uint_eq(loaded.inside_count, next.inside_count);
	ck_assert(loaded.inside_full);
	ck_assert_int_eq(memcmp(loaded.inside, next.inside,
				next.inside_count * sizeof(*next.inside)),
			 0);
	inventory_release(&loaded);
	inventory_release(&next);
	inventory_release(&inv);
}
END_TEST

static void same_inventory(const struct inventory *a, const struct inventory *b)
{
	ck_assert_uint_eq(a->dir_count, b->dir_count);
	ck_assert_uint_eq(a->find_count, b->find_count);
	ck_assert_uint_eq(a->tip_count, b->tip_count);
	ck_assert_uint_eq(a->inside_count, b->inside_count);
	ck_assert_uint_eq(a->text_count, b->text_count);
	ck_assert(a->full == b->full);
	ck_assert_int_eq(memcmp(a->dirs, b->dirs, a->dir_count * sizeof(*a->dirs)), 0);
	ck_assert_int_eq(memcmp(a->finds, b->finds, a->find_count * sizeof(*a->finds)), 0);
	ck_assert_int_eq(memcmp(a->tips, b->tips, a->tip_count * sizeof(*a->tips)), 0);
	ck_assert_int_eq(memcmp(a->text, b->text, a->text_count), 0);
	if (a->inside_count)
		ck_assert_int_eq(memcmp(a->inside, b->inside, a->inside_count * sizeof(*a->inside)),
				 0);
}

static char *bytes_of(const char *name, size_t *ret_n)
{
	struct stat st = stat_of(name);
	char *bytes = malloc((size_t)st.st_size + 1);
	FILE *f = fopen(at("%s", name), "r");

	ck_assert_ptr_nonnull(bytes);
	ck_assert_ptr_nonnull(f);
	*ret_n = fread(bytes, 1, (size_t)st.st_size + 1, f);
	ck_assert_uint_eq(*ret_n, (size_t)st.st_size);
	ck_assert_int_eq(fclose(f), 0);
	return bytes;
}

START_TEST(save_and_load)
{
	struct inventory inv, got;
	struct inventory_oid oid = numbered(5);
	size_t n = 0;

	put_tree();
	put_dir("state");
	AUTO_FD int dir = open(at("state"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert(!inventory_load(dir, "inv", &got));
	ck_assert_ptr_null(got.dirs);
	inv = scan("t", NULL);
	ck_assert(inventory_add_inside(&inv, &oid));
	for (int round = 0; round < 2; round++) {
		inv.full = round == 1;
		inventory_save(dir, "inv", &inv);
		ck_assert(inventory_load(dir, "inv", &got));
		same_inventory(&inv, &got);
		ck_assert_uint_eq(got.read, 0);
		inventory_release(&got);
	}
	mode_is("state/inv", 0600);
	AUTO_FREE char *bytes = bytes_of("state/inv", &n);
	ck_assert(inventory_decode(bytes, n, &got));
	same_inventory(&inv, &got);
	is_sound(&got);
	inventory_release(&got);
	inventory_release(&inv);
	/* No second file is left behind. */
	ck_assert_int_eq(unlink(at("state/inv")), 0);
	ck_assert_int_eq(rmdir(at("state")), 0);
}
END_TEST

/* What is not our own file is no inventory. */
START_TEST(load_refuses)
{
	struct inventory inv, got;

	put_dir("state/dir");
	put_file("state/empty", "");
	put_file("state/text", "this is no inventory, and long enough to be looked into all the "
			       "same, or is it not\n");
	AUTO_FD int dir = open(at("state"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	inv = scan("state", NULL);
	inventory_save(dir, "inv", &inv);
	put_link("state/link", "inv");
	static const char *const bad[] = {"none", "dir", "empty", "text", "link"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		ck_assert_msg(!inventory_load(dir, bad[i], &got), "%s", bad[i]);
		ck_assert(!got.dirs && got.dir_count == 0);
	}
	ck_assert(inventory_load(dir, "inv", &got));
	inventory_release(&got);
	if (geteuid() == 0) {
		ck_assert_int_eq(chown(at("state/inv"), NOBODY, NOBODY), 0);
		ck_assert(!inventory_load(dir, "inv", &got));
	}
	/* A link is replaced, not written through. */
	put_file("target", "kept");
	put_link("state/other", "+target");
	inventory_save(dir, "other", &inv);
	ck_assert(S_ISREG(stat_of("state/other").st_mode));
	ck_assert_int_eq(stat_of("target").st_size, 4);
	inventory_release(&inv);
}
END_TEST

static size_t encoded(char **ret)
{
	static const char *const patterns[] = {"//**/a", "/x//*.pem"};
	struct inventory inv;
	struct inventory_oid oid = numbered(7);
	size_t n = 0;

	put_gitdir("e/.git");
	put_dir("e/a/b");
	put_file("e/a/b/.envrc", "");
	put_file("e/.npmrc", "");
	put_file("e/.env", "");
	put_file("e/a/b/x.key", "");
	AUTO_FD int dir = open(place_top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_FD int tree = open(at("e"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct inventory_ask ask = {.pattern = patterns, .patterns = ARRAY_LEN(patterns)};
	struct inventory_root root = {tree, TREE, "e", at("e"), &ask};
	struct err e;
	CK_WORKS(inventory_scan(&root, NULL, 0, &inv, NULL, &e), e);
	ck_assert_uint_eq(inv.hit_count, 3);
	ck_assert(inventory_add_inside(&inv, &oid));
	inventory_save(dir, "inv", &inv);
	inventory_release(&inv);
	*ret = bytes_of("inv", &n);
	return n;
}

static bool decodes(const char *bytes, size_t n)
{
	struct inventory inv;
	char *own = malloc(n + !n); /* exactly as long: what is read beyond is seen */

	ck_assert_ptr_nonnull(own);
	memcpy(own, bytes, n);
	bool good = inventory_decode(own, n, &inv);
	free(own);
	if (good)
		is_sound(&inv);
	else
		ck_assert(!inv.dirs && !inv.dir_count);
	inventory_release(&inv);
	return good;
}

START_TEST(decode_truncated)
{
	AUTO_FREE char *bytes = NULL;
	size_t n = encoded(&bytes);

	ck_assert(decodes(bytes, n));
	for (size_t i = 0; i < n; i++)
		ck_assert_msg(!decodes(bytes, i), "%zu of %zu bytes", i, n);
	bytes = realloc(bytes, n + 1);
	ck_assert_ptr_nonnull(bytes);
	bytes[n] = '\0';
	ck_assert(!decodes(bytes, n + 1));
}
END_TEST

static const uint32_t odd_values[] = {0,          1,          2,          3,         255,
				      0x7fffffff, 0x80000000, 0xfffffffe, UINT32_MAX};

/* The numbers of the header, in their order; the counts are of what comes behind it. */
enum { MAGIC, VERSION, DIR_SIZE, FIND_SIZE, HIT_SIZE, CLASSES, NAMED_PLACES, NAMED_ROLES, COUNTS };
enum { DIRS, FINDS, HITS, TIPS, INSIDE, TEXT, PATTERNS, PATTERN_BYTES, FULL, COUNTED };

/* Only the last one, a flag, is free. */
START_TEST(decode_header)
{
	AUTO_FREE char *bytes = NULL;
	size_t n = encoded(&bytes);
	uint32_t was, bad;

	for (size_t word = 0; word < COUNTS + FULL; word++) {
		memcpy(&was, bytes + 4 * word, sizeof(was));
		if (word == CLASSES)
			ck_assert_uint_eq(was, PROTECT_CLASSES);
		if (word == NAMED_PLACES)
			ck_assert_uint_eq(was, PLACES);
		if (word == NAMED_ROLES)
			ck_assert_uint_eq(was, ROLES);
		for (size_t i = 0; i < ARRAY_LEN(odd_values) + 34; i++) {
			bad = i < ARRAY_LEN(odd_values) ? odd_values[i]
			      : i < ARRAY_LEN(odd_values) + 32
				      ? was ^ 1u << (i - ARRAY_LEN(odd_values))
				      : was + (i % 2 ? 1u : UINT32_MAX);
			if (bad == was)
				continue;
			memcpy(bytes + 4 * word, &bad, sizeof(bad));
			ck_assert_msg(!decodes(bytes, n), "number %zu: %u for %u", word, bad, was);
		}
		memcpy(bytes + 4 * word, &was, sizeof(was));
	}
	ck_assert(decodes(bytes, n));
}
END_TEST

/* Each index of each directory and find, out of its bounds. */
START_TEST(decode_offsets)
{
	static const size_t in_dir[] = {offsetof(struct inventory_dir, parent),
					offsetof(struct inventory_dir, name),
					offsetof(struct inventory_dir, size),
					offsetof(struct inventory_dir, find),
					offsetof(struct inventory_dir, finds),
					offsetof(struct inventory_dir, hit),
					offsetof(struct inventory_dir, hits),
					offsetof(struct inventory_dir, tip),
					offsetof(struct inventory_dir, tips)};
	static const size_t in_find[] = {offsetof(struct inventory_find, dir),
					 offsetof(struct inventory_find, name)};
	static const size_t in_hit[] = {offsetof(struct inventory_hit, dir),
					offsetof(struct inventory_hit, name)};
	AUTO_FREE char *bytes = NULL;
	size_t n = encoded(&bytes);
	uint32_t counts[COUNTED], was;

	memcpy(counts, bytes + 4 * (size_t)COUNTS, sizeof(counts));
	size_t dirs = 4 * (COUNTS + COUNTED);
	size_t finds = dirs + counts[DIRS] * sizeof(struct inventory_dir);
	size_t hits = finds + counts[FINDS] * sizeof(struct inventory_find);
	ck_assert_uint_eq(n,
			  hits + counts[HITS] * sizeof(struct inventory_hit) +
				  (counts[TIPS] + counts[INSIDE]) * sizeof(struct inventory_oid) +
				  counts[TEXT] + counts[PATTERN_BYTES]);
	const struct {
		const size_t *in;
		size_t n, at, size;
	} arrays[] = {
		{in_dir, ARRAY_LEN(in_dir), dirs, sizeof(struct inventory_dir)},
		{in_find, ARRAY_LEN(in_find), finds, sizeof(struct inventory_find)},
		{in_hit, ARRAY_LEN(in_hit), hits, sizeof(struct inventory_hit)},
	};
	size_t ends[3] = {counts[DIRS] * ARRAY_LEN(in_dir)};
	ends[1] = ends[0] + counts[FINDS] * ARRAY_LEN(in_find);
	ends[2] = ends[1] + counts[HITS] * ARRAY_LEN(in_hit);
	for (size_t i = 0, a = 0; i < ends[2]; i++) {
		a += i == ends[a];
		size_t k = i - (a ? ends[a - 1] : 0);
		char *p = bytes + arrays[a].at + k / arrays[a].n * arrays[a].size +
			  arrays[a].in[k % arrays[a].n];
		memcpy(&was, p, sizeof(was));
		/* Beyond every array there is; the root's parent is the one that is nothing. */
		for (size_t v = 4; v < ARRAY_LEN(odd_values); v++) {
			uint32_t bad = v == 4 ? counts[TEXT] + counts[DIRS] : odd_values[v];
			if (bad == was)
				continue;
			memcpy(p, &bad, sizeof(bad));
			ck_assert_msg(!decodes(bytes, n), "index %zu: %u for %u", i, bad, was);
		}
		memcpy(p, &was, sizeof(was));
	}
	ck_assert(decodes(bytes, n));
}
END_TEST

/* Any bit: refused, or still a tree whose every index is in bounds. */
START_TEST(decode_flipped)
{
	AUTO_FREE char *bytes = NULL;
	size_t n = encoded(&bytes);

	for (size_t bit = 0; bit < 8 * n; bit++) {
		bytes[bit / 8] ^= (char)(1u << bit % 8);
		(void)decodes(bytes, n);
		bytes[bit / 8] ^= (char)(1u << bit % 8);
	}
	ck_assert(decodes(bytes, n));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("store inventory file");
	TCase *files = tcase_create("files");
	TCase *bytes = tcase_create("bytes");

	tcase_add_checked_fixture(files, place_setup, place_close);
	tcase_set_timeout(files, 240);
	tcase_add_test(files, inside);
	tcase_add_test(files, save_and_load);
	tcase_add_test(files, load_refuses);
	suite_add_tcase(s, files);
	tcase_add_checked_fixture(bytes, place_setup, place_close);
	tcase_set_timeout(bytes, 240);
	tcase_add_test(bytes, decode_truncated);
	tcase_add_test(bytes, decode_header);
	tcase_add_test(bytes, decode_offsets);
	tcase_add_test(bytes, decode_flipped);
	suite_add_tcase(s, bytes);
	return suite_run(s);
}

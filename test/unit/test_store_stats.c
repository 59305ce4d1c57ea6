/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many directories at once: each has what a stat(2) of it alone says.
 */
#include "store/stats.h"

#include "test_store_tree.h"

static void same_stats(const struct inventory *inv, const char *root)
{
	AUTO_BUF path = BUF_INIT(1u << 20);
	struct stats want;

	AUTO_FD int fd = open(at("%s", root), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	struct stats *all = stats_all(fd, inv);
	ck_assert_ptr_nonnull(all);
	for (uint32_t i = 0; i < inv->dir_count; i++) {
		buf_clear(&path);
		inventory_dir_path(inv, i, &path);
		want = (struct stats){.ino = 0};
		if (path.n + 1 < MAX_STATS_PATH)
			(void)stats_one(fd, i ? buf_cstr(&path) : ".", &want);
		ck_assert_msg(memcmp(&all[i], &want, sizeof(want)) == 0,
			      "directory %u of %u (%zu bytes): inode %llu, not %llu", i,
			      inv->dir_count, path.n, (unsigned long long)all[i].ino,
			      (unsigned long long)want.ino);
	}
	free(all);
}

START_TEST(stats_of_one)
{
	struct stats s = {.ino = 1};

	put_dir("s/d");
	put_file("s/f", "");
	put_link("s/l", "d");
	AUTO_FD int fd = open(at("s"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	static const char *const none[] = {"f", "l", "none", "", "f/x"};
	for (size_t i = 0; i < ARRAY_LEN(none); i++) {
		ck_assert_msg(!stats_one(fd, none[i], &s), "%s", none[i]);
		ck_assert_uint_eq(s.ino, 1);
	}
	struct stat st = stat_of("s/d");
	ck_assert(stats_one(fd, "d", &s));
	ck_assert(s.ino == st.st_ino && s.dev == st.st_dev);
	ck_assert_int_eq(s.mtime_ns, (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec);
	ck_assert_int_eq(s.ctime_ns, (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec);
}
END_TEST

/* Enough directories for helpers (base: 512), also where the parts meet inside a subtree. */
START_TEST(stats_of_many)
{
	struct inventory inv;
	char name[64];

	put_dir("s");
	for (int i = 0; i < 40; i++)
		for (int k = 0; k < 20; k++) {
			snprintf(name, sizeof(name), "s/d%d/e%d/f", i, k);
			put_dir(name);
		}
	inv = scan("s", NULL);
	ck_assert_uint_eq(inv.dir_count, 1 + 40 + 800 + 800);
	same_stats(&inv, "s");
	/* What has gone meanwhile is not known; the rest is. */
	ck_assert_int_eq(rmdir(at("s/d7/e7/f")), 0);
	ck_assert_int_eq(nftw(at("s/d9"), place_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
	put_file("s/d9", "");
	same_stats(&inv, "s");
	(void)check_scan("s", &inv, false, "after it");
	inventory_release(&inv);
}
END_TEST

static uint32_t put_row(struct inventory *inv, uint32_t parent, const char *name)
{
	size_t n = strlen(name) + 1;

	inv->dirs[inv->dir_count] =
		(struct inventory_dir){.parent = parent, .name = inv->text_count};
	memcpy(inv->text + inv->text_count, name, n);
	inv->text_count += (uint32_t)n;
	return inv->dir_count++;
}

/*
 * Paths too long for one call are left to the walk, and what comes after them is
 * known: here the parts of the helpers meet inside the long ones.
 */
START_TEST(stats_of_long_paths)
{
	enum { LEVELS = 11, EACH = 400 };
	struct inventory inv = {.text = calloc(1, 1 << 16),
				.dirs = calloc(1000, sizeof(*inv.dirs))};
	char level[201], name[32];
	uint32_t top, dir;

	memset(level, 'l', 200);
	level[200] = '\0';
	put_dir("s/a");
	AUTO_FD int fd = put_deep("s/a", level, LEVELS);
	(void)put_row(&inv, INVENTORY_NONE, "s");
	dir = top = put_row(&inv, 0, "a");
	for (int i = 0; i < LEVELS; i++)
		dir = put_row(&inv, dir, level);
	for (int i = 0; i < EACH; i++) {
		snprintf(name, sizeof(name), "k%d", i);
		ck_assert_int_eq(mkdirat(fd, name, 0755), 0);
		(void)put_row(&inv, dir, name);
	}
	for (int i = 0; i < EACH; i++) {
		snprintf(name, sizeof(name), "s/a/s%d", i);
		put_dir(name);
		(void)put_row(&inv, top, strrchr(name, '/') + 1);
	}
	same_stats(&inv, "s");
	inventory_release(&inv);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("store stats");
	TCase *all = tcase_create("all");

	tcase_add_checked_fixture(all, place_setup, place_close);
	tcase_set_timeout(all, 240);
	tcase_add_test(all, stats_of_one);
	tcase_add_test(all, stats_of_many);
	tcase_add_test(all, stats_of_long_paths);
	suite_add_tcase(s, all);
	return suite_run(s);
}

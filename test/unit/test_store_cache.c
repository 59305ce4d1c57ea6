/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of the cache: only what is the caller's own counts.
 */
#include "store/cache.h"

#include "test_policy_place.h"

static char *env[2];
static char state[PATH_TEXT + 32];

static struct caller somebody(const char *home)
{
	(void)snprintf(state, sizeof(state), "SANDGLASS_HOME=%s", at("%s", home));
	env[0] = state;
	return caller_of(place_top, env);
}

static int opened(void)
{
	struct caller who = somebody("state");
	int dir = cache_open(&who);

	ck_assert_int_ge(dir, 0);
	return dir;
}

static size_t find(int dir, const char *name)
{
	int fd = -1;
	size_t n = cache_find(dir, name, 100, &fd);

	ck_assert_int_eq(n > 0, fd >= 0);
	if (fd >= 0)
		ck_assert_int_eq(close(fd), 0);
	return n;
}

static size_t count(int dir, const char *prefix)
{
	size_t n = 0;

	for (unsigned int i = 0; i < 3 * MAX_CACHE_FILES; i++) {
		char name[64];
		(void)snprintf(name, sizeof(name), "%s-%u", prefix, i);
		n += faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	}
	return n;
}

START_TEST(made_where_there_is_none)
{
	struct caller who = somebody("deep/er/state");
	int dir = cache_open(&who);

	ck_assert_int_ge(dir, 0);
	ck_assert_uint_eq(stat_of("deep/er/state/cache").st_mode & 07777, 0700);
	ck_assert_uint_eq(stat_of("deep/er/state").st_mode & 07777, 0700);
	ck_assert_uint_eq(stat_of("deep").st_uid, geteuid());
	ck_assert_int_eq(close(dir), 0);
	dir = cache_open(&who);
	ck_assert_int_ge(dir, 0);
	ck_assert_int_eq(close(dir), 0);
}
END_TEST

START_TEST(directory_of_ours_alone)
{
	struct caller who = somebody("state");

	put_dir("elsewhere");
	put_dir("state/cache");
	int dir = cache_open(&who); /* control */
	ck_assert_int_ge(dir, 0);
	ck_assert_int_eq(close(dir), 0);
	ck_assert_int_eq(chmod(at("state/cache"), 0775), 0);
	ck_assert_int_eq(cache_open(&who), -1);
	ck_assert_int_eq(chmod(at("state/cache"), 0702), 0);
	ck_assert_int_eq(cache_open(&who), -1);
	if (geteuid() == 0) {
		ck_assert_int_eq(chmod(at("state/cache"), 0700), 0);
		ck_assert_int_eq(chown(at("state/cache"), 20001, 0), 0);
		ck_assert_int_eq(cache_open(&who), -1);
	}
	ck_assert_int_eq(rmdir(at("state/cache")), 0);
	put_link("state/cache", "+elsewhere");
	ck_assert_int_eq(cache_open(&who), -1);
	ck_assert_int_eq(unlink(at("state/cache")), 0);
	put_file("state/cache", "a file");
	ck_assert_int_eq(cache_open(&who), -1);
	ck_assert_int_eq(unlink(at("state/cache")), 0);
	ck_assert_int_eq(rmdir(at("state")), 0);
	put_file("state", "a file");
	ck_assert_int_eq(cache_open(&who), -1);
}
END_TEST

START_TEST(found_as_it_was_put)
{
	char text[8] = "";
	int dir = opened();
	int fd = -1;

	ck_assert_uint_eq(find(dir, "view-1"), 0);
	cache_put(dir, "view-1", "a\0b", 3);
	ck_assert_uint_eq(cache_find(dir, "view-1", 3, &fd), 3);
	ck_assert_int_eq(read(fd, text, sizeof(text)), 3);
	ck_assert_int_eq(memcmp(text, "a\0b", 3), 0);
	ck_assert_uint_eq(stat_of("state/cache/view-1").st_mode & 07777, 0600);
	cache_put(dir, "view-1", "other", 5);
	/* Who has it open still reads the old one. */
	ck_assert_int_eq(pread(fd, text, sizeof(text), 0), 3);
	ck_assert_int_eq(close(fd), 0);
	ck_assert_uint_eq(find(dir, "view-1"), 5);
	ck_assert_uint_eq(find(dir, "view-2"), 0);
	ck_assert_int_eq(close(dir), 0);
}
END_TEST

START_TEST(files_that_do_not_count)
{
	int dir = opened();

	cache_put(dir, "view-1", "one", 3);
	ck_assert_uint_eq(find(dir, "view-1"), 3);
	ck_assert_int_eq(chmod(at("state/cache/view-1"), 0620), 0);
	ck_assert_uint_eq(find(dir, "view-1"), 0);
	ck_assert_int_eq(chmod(at("state/cache/view-1"), 0602), 0);
	ck_assert_uint_eq(find(dir, "view-1"), 0);
	ck_assert_int_eq(chmod(at("state/cache/view-1"), 0644), 0);
	ck_assert_uint_eq(find(dir, "view-1"), 3);
	put_link("state/cache/link", "view-1");
	ck_assert_uint_eq(find(dir, "link"), 0);
	put_dir("state/cache/dir");
	ck_assert_uint_eq(find(dir, "dir"), 0);
	ck_assert_int_eq(mkfifo(at("state/cache/fifo"), 0600), 0);
	ck_assert_uint_eq(find(dir, "fifo"), 0);
	put_file("state/cache/empty", "");
	ck_assert_uint_eq(find(dir, "empty"), 0);
	ck_assert_int_eq(truncate(at("state/cache/empty"), 100), 0);
	ck_assert_uint_eq(find(dir, "empty"), 100);
	ck_assert_int_eq(truncate(at("state/cache/empty"), 101), 0);
	ck_assert_uint_eq(find(dir, "empty"), 0);
	ck_assert_int_eq(truncate(at("state/cache/empty"), (off_t)1 << 40), 0);
	ck_assert_uint_eq(find(dir, "empty"), 0);
	ck_assert_int_eq(close(dir), 0);
}
END_TEST

/* Of another user: as root what is not root's, as a user what cannot even be arranged. */
START_TEST(foreign_owner)
{
	int dir = opened();

	cache_put(dir, "view-1", "one", 3);
	ck_assert_uint_eq(find(dir, "view-1"), 3);
	if (geteuid() == 0) {
		ck_assert_int_eq(chown(at("state/cache/view-1"), 20001, 0), 0);
		ck_assert_uint_eq(find(dir, "view-1"), 0);
		/* And the other way round. */
		ck_assert_int_eq(chown(at("state/cache/view-1"), 0, 0), 0);
		ck_assert_int_eq(chmod(at("state/cache/view-1"), 0644), 0);
		ck_assert_uint_eq(find(dir, "view-1"), 3);
		ck_assert_int_eq(seteuid(20001), 0);
		int reads = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		ck_assert_int_eq(reads, -1); /* control of the next line: it is not allowed in */
		ck_assert_uint_eq(find(dir, "view-1"), 0);
		ck_assert_int_eq(seteuid(0), 0);
		ck_assert_int_eq(chmod(at("state/cache"), 0755), 0);
		ck_assert_int_eq(seteuid(20001), 0);
		ck_assert_uint_eq(find(dir, "view-1"), 0);
		ck_assert_int_eq(seteuid(0), 0);
	}
	ck_assert_int_eq(close(dir), 0);
}
END_TEST

/* Nothing is told, nothing is left. */
START_TEST(cannot_be_put)
{
	int dir = opened();
	char name[64];

	put_dir("state/cache/view-dir");
	cache_put(dir, "view-dir", "one", 3);
	(void)snprintf(name, sizeof(name), "state/cache/.view-dir.%d", (int)getpid());
	ck_assert_int_eq(access(at("%s", name), F_OK), -1);
	ck_assert_uint_eq(find(dir, "view-dir"), 0);
	/* A link in the way is replaced, not followed. */
	put_file("victim", "untouched");
	put_link("state/cache/view-link", "+victim");
	cache_put(dir, "view-link", "one", 3);
	ck_assert_int_eq(stat_of("victim").st_size, 9);
	ck_assert_uint_eq(find(dir, "view-link"), 3);
	/* Nor is what somebody with our pid left. */
	(void)snprintf(name, sizeof(name), "state/cache/.view-2.%d", (int)getpid());
	put_link(name, "+victim");
	cache_put(dir, "view-2", "one", 3);
	ck_assert_int_eq(stat_of("victim").st_size, 9);
	ck_assert_uint_eq(find(dir, "view-2"), 3);
	cache_put(-1, "view-3", "one", 3);
	ck_assert_int_eq(close(dir), 0);
}
END_TEST

START_TEST(limit_of_files)
{
	char name[64];
	int dir = opened();

	cache_put(dir, "other-0", "stays", 5);
	for (unsigned int i = 0; i < MAX_CACHE_FILES; i++) {
		struct timespec times[2] = {{.tv_sec = 1000 + i}, {.tv_sec = 1000 + i}};
		(void)snprintf(name, sizeof(name), "view-%u", i);
		cache_put(dir, name, "one", 3);
		ck_assert_int_eq(utimensat(dir, name, times, 0), 0);
	}
	ck_assert_uint_eq(count(dir, "view"), MAX_CACHE_FILES);
	/* One that is there already takes nobody's place. */
	cache_put(dir, "view-5", "two", 3);
	ck_assert_uint_eq(count(dir, "view"), MAX_CACHE_FILES);
	for (unsigned int i = 0; i < 6; i++) {
		(void)snprintf(name, sizeof(name), "view-%u", MAX_CACHE_FILES + i);
		cache_put(dir, name, "one", 3);
		ck_assert_uint_eq(count(dir, "view"), MAX_CACHE_FILES);
		ck_assert_uint_eq(find(dir, name), 3);
	}
	/* 5 is young again: 0 to 4 and 6 went. */
	ck_assert_uint_eq(find(dir, "view-5"), 3);
	ck_assert_uint_eq(find(dir, "view-6"), 0);
	ck_assert_uint_eq(find(dir, "view-7"), 3);
	ck_assert_uint_eq(find(dir, "other-0"), 5);
	ck_assert_int_eq(close(dir), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("store cache");
	TCase *c = tcase_create("all");

	tcase_add_checked_fixture(c, place_setup, place_close);
	tcase_set_timeout(c, 60);
	tcase_add_test(c, made_where_there_is_none);
	tcase_add_test(c, directory_of_ours_alone);
	tcase_add_test(c, found_as_it_was_put);
	tcase_add_test(c, files_that_do_not_count);
	tcase_add_test(c, foreign_owner);
	tcase_add_test(c, cannot_be_put);
	tcase_add_test(c, limit_of_files);
	suite_add_tcase(s, c);
	return suite_run(s);
}

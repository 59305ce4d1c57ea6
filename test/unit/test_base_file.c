/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small files: read cut to the buffer, never past it; written only where they are.
 */
#include "base/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "test_base_suite.h"

static char dir[] = "/tmp/sandglass-file-XXXXXX";
static char path[64];

static void setup(void)
{
	ck_assert_ptr_nonnull(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/f", dir);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(close(fd), 0);
}

static void teardown(void)
{
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(rmdir(dir), 0);
}

START_TEST(reads_what_was_written)
{
	char text[8] = "xxxxxxx";

	ck_assert_uint_eq(file_read_text(AT_FDCWD, path, text, sizeof(text)), 0);
	ck_assert_str_eq(text, "");
	ck_assert_int_eq(file_write_text(path, "max\n"), 0);
	ck_assert_uint_eq(file_read_text(AT_FDCWD, path, text, sizeof(text)), 4);
	ck_assert_str_eq(text, "max\n");
}
END_TEST

START_TEST(reads_no_more_than_fits)
{
	char text[8] = "xxxxxxx";

	ck_assert_int_eq(file_write_text(path, "123456789"), 0);
	ck_assert_uint_eq(file_read_text(AT_FDCWD, path, text, 5), 4);
	ck_assert_mem_eq(text, "1234\0xx", 8);
	ck_assert_uint_eq(file_read_text(AT_FDCWD, path, text, 1), 0);
	ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(reads_below_a_directory)
{
	char text[8];
	AUTO_FD int at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	ck_assert_int_eq(file_write_text(path, "12"), 0);
	ck_assert_uint_eq(file_read_text(at, "f", text, sizeof(text)), 2);
	ck_assert_str_eq(text, "12");
}
END_TEST

START_TEST(a_directory_that_holds_something)
{
	char name[80];

	AUTO_FD int at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)snprintf(name, sizeof(name), "%s/..holds", dir);
	ck_assert_int_eq(mkdir(name, 0700), 0);
	ck_assert_int_eq(symlinkat("..holds", at, "link"), 0);
	ck_assert(!file_has_entries(at, "..holds"));
	(void)snprintf(name, sizeof(name), "%s/..holds/...", dir);
	ck_assert_int_eq(mkdir(name, 0700), 0);
	ck_assert(file_has_entries(at, "..holds"));
	ck_assert(!file_has_entries(at, "link")); /* is followed nowhere */
	ck_assert(!file_has_entries(at, "f"));
	ck_assert(!file_has_entries(at, "absent"));
	ck_assert_int_eq(unlinkat(at, "..holds/...", AT_REMOVEDIR), 0);
	ck_assert_int_eq(unlinkat(at, "..holds", AT_REMOVEDIR), 0);
	ck_assert_int_eq(unlinkat(at, "link", 0), 0);
}
END_TEST

START_TEST(what_is_not_there)
{
	char text[8] = "xxxxxxx";
	char none[80];
	struct stat st;

	(void)snprintf(none, sizeof(none), "%s/none", dir);
	errno = 0;
	ck_assert_uint_eq(file_read_text(AT_FDCWD, none, text, sizeof(text)), 0);
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_str_eq(text, "");
	errno = 0;
	ck_assert_int_eq(file_write_text(none, "1"), -1);
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_int_eq(stat(none, &st), -1); /* nothing was made */
}
END_TEST

START_TEST(a_write_that_fails)
{
	errno = 0;
	ck_assert_int_eq(file_write_text("/dev/full", "1"), -1);
	ck_assert_int_eq(errno, ENOSPC);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base_file");
	TCase *tests = tcase_create("file");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, reads_what_was_written);
	tcase_add_test(tests, reads_no_more_than_fits);
	tcase_add_test(tests, reads_below_a_directory);
	tcase_add_test(tests, a_directory_that_holds_something);
	tcase_add_test(tests, what_is_not_there);
	tcase_add_test(tests, a_write_that_fails);
	suite_add_tcase(suite, tests);
	return suite_run(suite);
}

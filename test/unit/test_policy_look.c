/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a decision looked at: each kind of look, and which changes it notices.
 */
#include "policy/look.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "test_policy_place.h"

static struct looks in;
static struct stat st;

/* Two file times that have a tick of the kernel's clock between them differ. */
static void tick(void)
{
	static const struct timespec pause = {.tv_nsec = 30000000};

	(void)nanosleep(&pause, NULL);
}

static bool all_stand(void)
{
	for (uint32_t i = 0; i < in.n; i++)
		if (!look_stands(&in.v[i], in.text + in.v[i].path))
			return false;
	return true;
}

/* From here on things change. */
static void noted(uint32_t n)
{
	look_stop();
	ck_assert_uint_eq(in.n, n);
	ck_assert(!in.full);
	ck_assert(all_stand());
	tick();
	ck_assert(all_stand());
}

static void look_at_content(const char *name, int flags)
{
	look_begin(&in);
	int fd = look_open(at("%s", name), O_RDONLY | O_CLOEXEC | flags, &st);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(close(fd), 0);
	noted(1);
}

static void look_at_place(const char *name)
{
	look_begin(&in);
	ck_assert_int_eq(look_lstat(at("%s", name), &st), 0);
	noted(1);
}

static void set_times(const char *name, const struct stat *old)
{
	struct timespec times[2] = {old->st_atim, old->st_mtim};

	ck_assert_int_eq(utimensat(AT_FDCWD, at("%s", name), times, AT_SYMLINK_NOFOLLOW), 0);
}

static void change_mode(void)
{
	ck_assert_int_eq(chmod(at("f"), 0640), 0);
}

static void change_size(void)
{
	struct stat old = stat_of("f");

	put_file("f", "more than one");
	set_times("f", &old);
}

/* The same size and mtime: ctime tells. */
static void change_text(void)
{
	struct stat old = stat_of("f");

	put_file("f", "two");
	set_times("f", &old);
	ck_assert_int_eq(stat_of("f").st_mtim.tv_nsec, old.st_mtim.tv_nsec);
}

static void change_times(void)
{
	struct stat old = stat_of("f");

	old.st_mtim.tv_sec -= 1000;
	set_times("f", &old);
}

static void replace(void)
{
	struct stat old = stat_of("f");

	put_file("g", "one");
	set_times("g", &old);
	ck_assert_int_eq(rename(at("g"), at("f")), 0);
}

static void remove_it(void)
{
	ck_assert_int_eq(unlink(at("f")), 0);
}

static void make_directory(void)
{
	remove_it();
	put_dir("f");
}

static void make_link(void)
{
	ck_assert_int_eq(rename(at("f"), at("g")), 0);
	put_link("f", "h");
	put_file("h", "one");
}

static void change_owner(void)
{
	if (geteuid() != 0) /* nobody but root can */
		change_mode();
	else
		ck_assert_int_eq(chown(at("f"), 20001, (gid_t)-1), 0);
}

static void change_group(void)
{
	if (geteuid() != 0)
		change_mode();
	else
		ck_assert_int_eq(chown(at("f"), (uid_t)-1, 20001), 0);
}

static void (*const changes[])(void) = {change_mode,  change_size, change_text,    change_times,
					replace,      remove_it,   make_directory, make_link,
					change_owner, change_group};

START_TEST(content)
{
	put_file("f", "one");
	tick();
	look_at_content("f", _i % 2 ? O_NOFOLLOW : 0);
	ck_assert_uint_eq(in.v[0].kind, LOOK_CONTENT);
	ck_assert_uint_eq(in.v[0].follow, _i % 2 ? 0 : 1);
	changes[_i / 2]();
	ck_assert(!all_stand());
}
END_TEST

/* Of a directory's content: what comes and goes in it. */
START_TEST(content_of_directory)
{
	put_dir("d");
	put_file("d/a", "");
	tick();
	look_at_content("d", O_DIRECTORY);
	put_file("d/a", "changed, but it was not looked at");
	ck_assert(all_stand());
	put_file("d/b", "");
	ck_assert(!all_stand());
}
END_TEST

START_TEST(place_only)
{
	put_dir("d");
	look_at_place("d");
	ck_assert_uint_eq(in.v[0].kind, LOOK_PLACE);
	ck_assert(!in.young);
	put_file("d/new", "");
	ck_assert(all_stand());
	ck_assert_int_eq(unlink(at("d/new")), 0);
	struct stat old = stat_of("d");
	old.st_mtim.tv_sec -= 1000;
	set_times("d", &old);
	ck_assert(all_stand());
	ck_assert_int_eq(chmod(at("d"), 0700), 0);
	ck_assert(!all_stand());
	ck_assert_int_eq(chmod(at("d"), 0755), 0);
	ck_assert(all_stand());
	ck_assert_int_eq(rename(at("d"), at("old")), 0);
	ck_assert(!all_stand());
	put_dir("d");
	ck_assert(!all_stand());
	ck_assert_int_eq(rmdir(at("d")), 0);
	put_link("d", "old");
	ck_assert(!all_stand());
	ck_assert_int_eq(unlink(at("d")), 0);
	ck_assert_int_eq(rename(at("old"), at("d")), 0);
	ck_assert(all_stand());
	if (geteuid() != 0)
		return;
	ck_assert_int_eq(chown(at("d"), 20001, 0), 0);
	ck_assert(!all_stand());
	ck_assert_int_eq(chown(at("d"), 0, 20001), 0);
	ck_assert(!all_stand());
}
END_TEST

START_TEST(absent)
{
	put_dir("d");
	look_begin(&in);
	errno = 0;
	ck_assert_int_eq(look_lstat(at("d/none"), &st), -1);
	ck_assert_int_eq(errno, ENOENT);
	errno = 0;
	ck_assert_int_eq(look_open(at("d/no-file"), O_RDONLY | O_CLOEXEC, &st), -1);
	ck_assert_int_eq(errno, ENOENT);
	noted(2);
	ck_assert_int_eq(in.v[0].sys, ENOENT);
	put_file("d/other", "");
	ck_assert(all_stand());
	put_file("d/none", "");
	ck_assert(!all_stand());
	ck_assert_int_eq(unlink(at("d/none")), 0);
	ck_assert(all_stand());
	put_file("d/no-file", "");
	ck_assert(!all_stand());
	ck_assert_int_eq(unlink(at("d/no-file")), 0);
	put_link("d/none", "dangling");
	ck_assert(!all_stand());
	ck_assert_int_eq(unlink(at("d/none")), 0);
	ck_assert(all_stand());
	/* Absent in another way. */
	ck_assert_int_eq(rename(at("d"), at("was")), 0);
	put_file("d", "");
	ck_assert(!all_stand());
}
END_TEST

START_TEST(link_text)
{
	char text[PATH_TEXT];

	put_file("f", "one");
	put_link("link", "f");
	tick();
	look_begin(&in);
	ck_assert_int_eq(look_readlink(at("link"), text, sizeof(text)), 1);
	ck_assert_int_eq(text[0], 'f');
	noted(1);
	ck_assert(in.young);
	put_file("f", "what it leads to was not looked at");
	ck_assert(all_stand());
	put_link("new", "f");
	ck_assert_int_eq(rename(at("new"), at("link")), 0);
	ck_assert(!all_stand());
	ck_assert_int_eq(unlink(at("link")), 0);
	ck_assert(!all_stand());
}
END_TEST

START_TEST(open_follows)
{
	put_file("f", "one");
	put_file("g", "two");
	put_link("link", "f");
	tick();
	look_at_content("link", 0);
	put_link("new", "+f");
	ck_assert_int_eq(rename(at("new"), at("link")), 0);
	ck_assert_msg(all_stand(), "another link to the same file");
	put_link("new", "g");
	ck_assert_int_eq(rename(at("new"), at("link")), 0);
	ck_assert(!all_stand());
	put_link("new", "f");
	ck_assert_int_eq(rename(at("new"), at("link")), 0);
	ck_assert(all_stand());
	put_file("f", "changed");
	ck_assert(!all_stand());
}
END_TEST

START_TEST(open_dangling)
{
	put_link("link", "none");
	look_begin(&in);
	ck_assert_int_eq(look_open(at("link"), O_RDONLY | O_CLOEXEC, &st), -1);
	noted(1);
	put_file("none", "");
	ck_assert(!all_stand());
}
END_TEST

/* There, but not to be opened: it is noted as it is, so that a change shows. */
START_TEST(cannot_be_opened)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_uint_lt(strlen(at("s")), sizeof(name.sun_path));
	memcpy(name.sun_path, at("s"), strlen(at("s")) + 1);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	put_link("link", "s");
	look_begin(&in);
	errno = 0;
	ck_assert_int_eq(look_open(at("s"), O_RDONLY | O_CLOEXEC, &st), -1);
	ck_assert_int_eq(errno, ENXIO);
	errno = 0;
	ck_assert_int_eq(look_open(at("link"), O_RDONLY | O_CLOEXEC | O_NOFOLLOW, &st), -1);
	ck_assert_int_eq(errno, ELOOP);
	noted(2);
	ck_assert(in.young);
	ck_assert_int_eq(unlink(at("link")), 0);
	put_link("link", "f");
	ck_assert(!all_stand());
	ck_assert_int_eq(close(fd), 0);
}
END_TEST

START_TEST(may_not_be_read)
{
	put_file("f", "one");
	ck_assert_int_eq(chmod(at("f"), 0), 0);
	tick();
	if (geteuid() == 0) {
		ck_assert_int_eq(chown(at("f"), 20001, 20001), 0);
		ck_assert_int_eq(setegid(20001), 0);
		ck_assert_int_eq(seteuid(20001), 0);
	}
	look_begin(&in);
	errno = 0;
	ck_assert_int_eq(look_open(at("f"), O_RDONLY | O_CLOEXEC, &st), -1);
	ck_assert_int_eq(errno, EACCES);
	noted(1);
	ck_assert_int_eq(chmod(at("f"), 0644), 0);
	ck_assert(!all_stand());
	if (getuid() == 0)
		ck_assert_int_eq(seteuid(0), 0);
}
END_TEST

/* What changed less than two seconds ago may change once more within the same tick. */
START_TEST(two_seconds)
{
	static const struct timespec pause = {.tv_sec = 2, .tv_nsec = 50000000};

	put_file("f", "one");
	look_at_content("f", 0);
	ck_assert(in.young);
	/* ctime is young though mtime is not. */
	struct stat old = stat_of("f");
	old.st_mtim.tv_sec -= 1000;
	set_times("f", &old);
	look_at_content("f", 0);
	ck_assert(in.young);
	ck_assert_int_eq(nanosleep(&pause, NULL), 0);
	look_at_content("f", 0);
	ck_assert(!in.young);
	/* A time that is to come is never old enough. */
	old.st_mtim.tv_sec += 100000;
	set_times("f", &old);
	ck_assert_int_eq(nanosleep(&pause, NULL), 0);
	look_at_content("f", 0);
	ck_assert(in.young);
}
END_TEST

START_TEST(once_for_each_path)
{
	put_file("f", "one");
	tick();
	look_begin(&in);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(look_lstat(at("f"), &st), 0);
	ck_assert_uint_eq(in.n, 1);
	int fd = look_open(at("f"), O_RDONLY | O_CLOEXEC | O_NOFOLLOW, &st);
	ck_assert_int_eq(close(fd), 0);
	ck_assert_uint_eq(in.n, 1);
	ck_assert_uint_eq(in.v[0].kind, LOOK_CONTENT);
	/* Less does not take the place of more. */
	ck_assert_int_eq(look_lstat(at("f"), &st), 0);
	ck_assert_uint_eq(in.v[0].kind, LOOK_CONTENT);
	/* With a link followed it is another look. */
	fd = look_open(at("f"), O_RDONLY | O_CLOEXEC, &st);
	ck_assert_int_eq(close(fd), 0);
	noted(2);
	change_size();
	ck_assert(!all_stand());
}
END_TEST

/* Two looks that saw different things: no later look can be like both. */
START_TEST(seen_differently)
{
	put_file("f", "one");
	look_begin(&in);
	ck_assert_int_eq(look_lstat(at("f"), &st), 0);
	if (_i == 0)
		replace();
	else if (_i == 1)
		remove_it();
	else
		change_mode();
	ck_assert_int_eq(look_lstat(at("f"), &st), _i == 1 ? -1 : 0);
	look_stop();
	ck_assert(in.full);
}
END_TEST

START_TEST(too_many)
{
	look_begin(&in);
	for (int i = 0; i < MAX_LOOKS; i++)
		ck_assert_int_eq(look_lstat(at("none-%d", i), &st), -1);
	ck_assert(!in.full);
	ck_assert_uint_eq(in.n, MAX_LOOKS);
	ck_assert_int_eq(look_lstat(at("none-0"), &st), -1);
	ck_assert(!in.full);
	ck_assert_int_eq(look_lstat(at("one more"), &st), -1);
	ck_assert(in.full);
	ck_assert_uint_eq(in.n, MAX_LOOKS);
	/* The next time is a new one. */
	look_begin(&in);
	ck_assert(!in.full);
	ck_assert_uint_eq(in.n, 0);
	look_stop();
}
END_TEST

START_TEST(too_much_text)
{
	char path[1024];

	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	look_begin(&in);
	for (unsigned int i = 0; i < MAX_LOOK_TEXT / sizeof(path); i++) {
		(void)snprintf(path + 1, 8, "%06u", i);
		path[7] = '/';
		ck_assert_int_eq(look_lstat(path, &st), -1);
	}
	ck_assert(!in.full);
	ck_assert_uint_eq(in.text_n, MAX_LOOK_TEXT);
	ck_assert_int_eq(look_lstat("/", &st), 0);
	ck_assert(in.full);
	look_stop();
}
END_TEST

START_TEST(nothing_is_noted_outside)
{
	put_file("f", "one");
	look_begin(&in);
	look_stop();
	ck_assert_int_eq(look_lstat(at("f"), &st), 0);
	ck_assert_int_eq(st.st_size, 3);
	int fd = look_open(at("f"), O_RDONLY | O_CLOEXEC, &st);
	ck_assert_int_eq(close(fd), 0);
	ck_assert_int_eq(look_open(at("none"), O_RDONLY | O_CLOEXEC, &st), -1);
	ck_assert_uint_eq(in.n, 0);
	ck_assert(!in.young && !in.full);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("policy look");
	TCase *c = tcase_create("all");

	tcase_add_checked_fixture(c, place_setup, place_close);
	tcase_set_timeout(c, 60);
	tcase_add_loop_test(c, content, 0, 2 * ARRAY_LEN(changes));
	tcase_add_test(c, content_of_directory);
	tcase_add_test(c, place_only);
	tcase_add_test(c, absent);
	tcase_add_test(c, link_text);
	tcase_add_test(c, open_follows);
	tcase_add_test(c, open_dangling);
	tcase_add_test(c, cannot_be_opened);
	tcase_add_test(c, may_not_be_read);
	tcase_add_test(c, two_seconds);
	tcase_add_test(c, once_for_each_path);
	tcase_add_loop_test(c, seen_differently, 0, 3);
	tcase_add_test(c, too_many);
	tcase_add_test(c, too_much_text);
	tcase_add_test(c, nothing_is_noted_outside);
	suite_add_tcase(s, c);
	return suite_run(s);
}

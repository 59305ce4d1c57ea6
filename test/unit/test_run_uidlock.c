/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Session uids: one run, one uid; given back by the kernel; never somebody's.
 */
#include "run/uidlock.h"

#include <sys/wait.h>

#include "test_run_ns.h"

#define LAST (SESSION_UID_FIRST + SESSION_UID_COUNT - 1)
#define LOCK "/run/sandglass/uids"

static void put_accounts(const char *passwd, const char *subuid, const char *subgid)
{
	put_file("etc/passwd", passwd);
	put_file("etc/subuid", subuid);
	put_file("etc/subgid", subgid);
}

static void setup(void)
{
	place_setup();
	put_dir("etc");
	put_dir("run");
	put_accounts("root:x:0:0::/root:/bin/sh\n", "", "");
	put_file("etc/nsswitch.conf", "passwd: files\n");
	ns_enter();
	ns_cover("etc", "/etc");
	ns_cover("run", "/run");
}

static int take(uint32_t *ret_uid)
{
	struct err e = {0};
	int fd = uidlock_take(ret_uid, &e);

	ck_assert_msg(fd >= 0, "%s", e.msg);
	ck_assert_uint_ge(*ret_uid, SESSION_UID_FIRST);
	ck_assert_uint_le(*ret_uid, LAST);
	ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	return fd;
}

START_TEST(one_each)
{
	uint32_t uid[50];
	int fd[50];

	for (size_t i = 0; i < ARRAY_LEN(uid); i++) {
		fd[i] = take(&uid[i]);
		for (size_t k = 0; k < i; k++)
			ck_assert_uint_ne(uid[i], uid[k]);
	}
	/* Closed is given back. */
	uint32_t again = 0;
	(void)close(fd[7]);
	(void)close(take(&again));
	ck_assert_uint_eq(again, uid[7]);
}
END_TEST

/* Held as long as one copy is open, in whatever process. */
START_TEST(held_by_copies)
{
	uint32_t first = 0, second = 0, third = 0;
	int ends[2];
	int fd = take(&first);

	ck_assert_int_eq(pipe(ends), 0);
	pid_t child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		char c = 0;
		(void)close(ends[1]);
		_exit(read(ends[0], &c, 1) < 0);
	}
	(void)close(fd);
	(void)close(take(&second));
	ck_assert_uint_ne(second, first);
	(void)close(ends[1]);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	(void)close(take(&third));
	ck_assert_uint_eq(third, first);
}
END_TEST

START_TEST(all_taken)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = SESSION_UID_COUNT};
	uint32_t uid = 0;
	struct err e;

	(void)close(take(&uid));
	int fd = open(LOCK, O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fcntl(fd, F_OFD_SETLK, &lock), 0);
	CK_FAILS(uidlock_take(&uid, &e), e, ERR_BUSY, "all 65536");
	/* The only free one is found, wherever it is. */
	static const uint32_t slots[] = {0, 1, 40000, SESSION_UID_COUNT - 1};
	for (size_t i = 0; i < ARRAY_LEN(slots); i++) {
		lock.l_type = F_UNLCK;
		lock.l_start = slots[i];
		lock.l_len = 1;
		ck_assert_int_eq(fcntl(fd, F_OFD_SETLK, &lock), 0);
		(void)close(take(&uid));
		ck_assert_uint_eq(uid, SESSION_UID_FIRST + slots[i]);
		lock.l_type = F_WRLCK;
		ck_assert_int_eq(fcntl(fd, F_OFD_SETLK, &lock), 0);
	}
	(void)close(fd);
}
END_TEST

/* The account's uid, and a range from `first` of `count`, at and beside both ends. */
START_TEST(overlaps)
{
	static const struct {
		unsigned long long first, count;
		bool clash;
	} rows[] = {
		{SESSION_UID_FIRST - 1, 1, false},
		{SESSION_UID_FIRST, 1, true},
		{LAST, 1, true},
		{LAST + 1ull, 1, false},
		{100000, 65536, false},
		{100000, SESSION_UID_FIRST - 100000, false},
		{100000, SESSION_UID_FIRST - 100000 + 1, true},
		{LAST + 1ull, 65536, false},
		{0, 4294967295, true},
		{SESSION_UID_FIRST + 5, 10, true},
		{SESSION_UID_FIRST, 0, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char line[128];
		struct err e;
		if (rows[i].count == 1) {
			snprintf(line, sizeof(line),
				 "root:x:0:0::/:/bin/sh\nx:x:%llu:100::/:/bin/sh\n", rows[i].first);
			put_accounts(line, "", "");
			if (rows[i].clash)
				CK_FAILS(uidlock_check(&e), e, ERR_CONFIG_INVALID, "account x");
			else
				CK_WORKS(uidlock_check(&e), e);
		}
		snprintf(line, sizeof(line), "# text\n\nme:%llu:%llu\n", rows[i].first,
			 rows[i].count);
		for (int group = 0; group <= 1; group++) {
			put_accounts("root:x:0:0::/:/bin/sh\n", group ? "" : line,
				     group ? line : "");
			if (rows[i].clash)
				CK_FAILS(uidlock_check(&e), e, ERR_CONFIG_INVALID,
					 group ? "/etc/subgid:3 overlaps"
					       : "/etc/subuid:3 overlaps");
			else
				CK_WORKS(uidlock_check(&e), e);
		}
	}
}
END_TEST

START_TEST(no_lists)
{
	struct err e;

	ck_assert_int_eq(unlink(at("etc/subuid")), 0);
	ck_assert_int_eq(unlink(at("etc/subgid")), 0);
	CK_WORKS(uidlock_check(&e), e);
	put_accounts("root:x:0:0::/:/bin/sh\n", "broken\n:::\nx:y:z\nme:5\n", "\xff\xfe:1:2\n");
	CK_WORKS(uidlock_check(&e), e);
}
END_TEST

/* What lies in the place of the file is not used. */
START_TEST(not_our_file)
{
	uint32_t uid = 0;
	struct err e;

	put_dir("run/sandglass");
	put_file("target", "");
	put_link("run/sandglass/uids", "+target");
	CK_FAILS(uidlock_take(&uid, &e), e, ERR_SANDBOX_UNAVAILABLE, "open " LOCK);
	ck_assert_int_eq(unlink(at("run/sandglass/uids")), 0);
	put_dir("run/sandglass/uids");
	CK_FAILS(uidlock_take(&uid, &e), e, ERR_SANDBOX_UNAVAILABLE, LOCK);
	ck_assert_int_eq(rmdir(at("run/sandglass/uids")), 0);
	ck_assert_int_eq(mkfifo(at("run/sandglass/uids"), 0600), 0);
	CK_FAILS(uidlock_take(&uid, &e), e, ERR_SANDBOX_UNAVAILABLE, "not root's own file");
	ck_assert_int_eq(unlink(at("run/sandglass/uids")), 0);
	if (chown(at("run/sandglass"), 0, 0) == 0 && chown(at("target"), 1, 1) == 0) {
		/* The host's root can make another's file there; a mapped id cannot. */
		ck_assert_int_eq(link(at("target"), at("run/sandglass/uids")), 0);
		CK_FAILS(uidlock_take(&uid, &e), e, ERR_SANDBOX_UNAVAILABLE, "not root's own file");
		ck_assert_int_eq(unlink(at("run/sandglass/uids")), 0);
	}
	(void)close(take(&uid));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("run uidlock");
	TCase *c = tcase_create("all");

	tcase_add_checked_fixture(c, setup, ns_close);
	tcase_set_timeout(c, 60);
	tcase_add_test(c, one_each);
	tcase_add_test(c, held_by_copies);
	tcase_add_test(c, all_taken);
	tcase_add_test(c, overlaps);
	tcase_add_test(c, no_lists);
	tcase_add_test(c, not_our_file);
	suite_add_tcase(s, c);
	return suite_run(s);
}

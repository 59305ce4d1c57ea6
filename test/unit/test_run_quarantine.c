/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is taken away is gone from its place and kept, whatever it is and whatever
 * a command did to keep it there; and the way back that people are told works.
 */
#include "run/quarantine.h"

#include <dirent.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/utf8.h"
#include "test_policy_git.h"
#include "test_policy_somebody.h"

static char far_top[64]; /* on another file system, "" if there is none */

/* So many more calls give the same bytes, in place of the C library's. */
static int same_random;

ssize_t getrandom(void *p, size_t n, unsigned int flags)
{
	if (same_random <= 0)
		return syscall(SYS_getrandom, p, n, flags);
	same_random--;
	memset(p, 0xab, n);
	return (ssize_t)n;
}

static struct quarantine open_in(const char *home, const char *session)
{
	static char text[PATH_TEXT + 32];
	static char *env[] = {text, NULL};
	struct quarantine q;

	snprintf(text, sizeof(text), "SANDGLASS_HOME=%s", at("%s", home));
	struct caller who = caller_of(place_top, env);
	quarantine_init(&q, &who, session);
	ck_assert_int_eq(q.fd, -1);
	return q;
}

static bool take_from(struct quarantine *q, const char *dir, const char *name, char to[PATH_TEXT])
{
	AUTO_FD int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	ck_assert_msg(fd >= 0, "%s: %s", dir, strerror(errno));
	return quarantine_take(q, fd, dir, name, to);
}

static unsigned int entries_of(const char *path)
{
	unsigned int n = 0;
	DIR *d = opendir(path);

	ck_assert_msg(d != NULL, "%s: %s", path, strerror(errno));
	for (struct dirent *e = readdir(d); e; e = readdir(d))
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	(void)closedir(d);
	return n;
}

static void is_gone(const char *dir, const char *name)
{
	struct stat st;
	char path[2 * PATH_TEXT];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	ck_assert_msg(lstat(path, &st) < 0 && errno == ENOENT, "%s is still there", path);
}

/* In the session's directory, under a number of its own, by its own name. */
static void is_kept_as(const char *to, const char *session, const char *name)
{
	struct stat st;
	char start[PATH_TEXT + 64];

	snprintf(start, sizeof(start), "%s/", at("%s", session));
	ck_assert_msg(strncmp(to, start, strlen(start)) == 0, "%s is not in %s", to, start);
	const char *rest = to + strlen(start);
	rest += strspn(rest, "0123456789");
	ck_assert_int_eq(*rest, '/');
	ck_assert_str_eq(rest + 1, name);
	ck_assert_msg(lstat(to, &st) == 0, "%s: %s", to, strerror(errno));
}

static void is_text(const char *path, const char *want)
{
	char text[64] = "";
	FILE *f = fopen(path, "r");

	ck_assert_msg(f != NULL, "%s: %s", path, strerror(errno));
	(void)!fread(text, 1, sizeof(text) - 1, f);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_str_eq(text, want);
}

static void put_text(const char *dir, const char *name, const char *text)
{
	char path[2 * PATH_TEXT];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *f = fopen(path, "w");
	ck_assert_msg(f != NULL, "%s: %s", path, strerror(errno));
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

/* One of each kind, in any directory. */
static const char *const kinds[] = {".envrc", ".git", ".bashrc", ".npmrc", ".vscode"};

static void put_kinds(const char *dir)
{
	char path[PATH_TEXT];

	put_text(dir, ".envrc", "file");
	snprintf(path, sizeof(path), "%s/.git", dir);
	ck_assert_int_eq(mkdir(path, 0750), 0);
	put_text(path, "config", "in it");
	snprintf(path, sizeof(path), "%s/.git/hooks", dir);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	put_text(path, "post-checkout", "deeper");
	snprintf(path, sizeof(path), "%s/.git/link", dir);
	ck_assert_int_eq(symlink("/etc/passwd", path), 0);
	snprintf(path, sizeof(path), "%s/.bashrc", dir);
	ck_assert_int_eq(symlink("no/where\n", path), 0);
	snprintf(path, sizeof(path), "%s/.npmrc", dir);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	snprintf(path, sizeof(path), "%s/.vscode", dir);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	put_text(path, "tasks.json", "closed");
	ck_assert_int_eq(chmod(path, 0), 0);
}

static void has_mode(const char *path, mode_t want)
{
	struct stat st;

	ck_assert_msg(lstat(path, &st) == 0, "%s: %s", path, strerror(errno));
	ck_assert_msg((st.st_mode & 07777) == want, "%s: %o, not %o", path, st.st_mode & 07777,
		      want);
}

static void open_up(const char *path)
{
	ck_assert_msg(chmod(path, 0755) == 0, "%s: %s", path, strerror(errno));
}

START_TEST(renamed)
{
	struct quarantine q = open_in("state", "s1");
	char to[PATH_TEXT];

	put_dir("d");
	put_kinds(at("d"));
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct stat was = stat_of(at("d/%s", kinds[i]) + strlen(place_top) + 1), st;
		ck_assert_msg(take_from(&q, at("d"), kinds[i], to), "%s", strerror(errno));
		is_gone(at("d"), kinds[i]);
		is_kept_as(to, "state/quarantine/s1", kinds[i]);
		ck_assert_int_eq(lstat(to, &st), 0);
		ck_assert(st.st_ino == was.st_ino && S_ISFIFO(st.st_mode) == S_ISFIFO(was.st_mode));
	}
	ck_assert_uint_eq(entries_of(at("d")), 0);
	is_text(at("state/quarantine/s1/2/.git/hooks/post-checkout"), "deeper");
	mode_is("state/quarantine/s1", 0700);
	mode_is("state/quarantine/s1/1", 0700);
	open_up(at("state/quarantine/s1/5/.vscode"));
	quarantine_release(&q);
	ck_assert_int_eq(q.fd, -1);
	quarantine_release(&q);
}
END_TEST

/* The same name again and again, also by another run of the same session. */
START_TEST(collisions)
{
	struct quarantine q = open_in("state", "s1");
	char to[6][PATH_TEXT], text[16];

	put_dir("d");
	for (size_t i = 0; i < ARRAY_LEN(to); i++) {
		if (i == 3) {
			quarantine_release(&q);
			q = open_in("state", "s1");
		}
		snprintf(text, sizeof(text), "text %zu", i);
		put_file("d/.envrc", text);
		ck_assert(take_from(&q, at("d"), ".envrc", to[i]));
		is_kept_as(to[i], "state/quarantine/s1", ".envrc");
	}
	for (size_t i = 0; i < ARRAY_LEN(to); i++) {
		snprintf(text, sizeof(text), "text %zu", i);
		is_text(to[i], text);
	}
	ck_assert_uint_eq(entries_of(at("state/quarantine/s1")), ARRAY_LEN(to));
	quarantine_release(&q);
}
END_TEST

START_TEST(not_there)
{
	struct quarantine q = open_in("state", "s1");
	char to[PATH_TEXT] = "untouched";

	put_dir("d");
	errno = 0;
	ck_assert(!take_from(&q, at("d"), ".envrc", to));
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_str_eq(to, "untouched");
	ck_assert_uint_eq(entries_of(at("state/quarantine/s1")), 0);
	quarantine_release(&q);
}
END_TEST

/* Where there is no quarantine, it stays beside its place under another name. */
START_TEST(no_quarantine)
{
	char to[PATH_TEXT], session[PATH_TEXT];

	memset(session, 's', sizeof(session) - 1);
	session[sizeof(session) - 1] = '\0';
	put_dir("d");
	put_file("file", "in the way");
	for (int i = 0; i < 2; i++) {
		struct quarantine q = i ? open_in("file", "s1") : open_in("state", session);
		put_kinds(at("d"));
		for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
			struct stat was = stat_of(at("d/%s", kinds[k]) + strlen(place_top) + 1), st;
			ck_assert(take_from(&q, at("d"), kinds[k], to));
			is_gone(at("d"), kinds[k]);
			ck_assert_ptr_nonnull(strstr(to, "/d/sandglass-quarantine-"));
			ck_assert_int_eq(lstat(to, &st), 0);
			ck_assert(st.st_ino == was.st_ino);
			if (S_ISDIR(st.st_mode))
				open_up(to);
		}
		ck_assert(!take_from(&q, at("d"), "none", to) && errno == ENOENT);
		quarantine_release(&q);
	}
	ck_assert_uint_eq(entries_of(at("d")), 2 * ARRAY_LEN(kinds));
}
END_TEST

/* Beside its place under a name that nobody can know, and over nothing. */
START_TEST(aside_names)
{
	char to[3][PATH_TEXT], start[PATH_TEXT];

	put_dir("d");
	put_file("file", "in the way");
	snprintf(start, sizeof(start), "%s/sandglass-quarantine-", at("d"));
	struct quarantine q = open_in("file", "s1");
	for (int i = 0; i < 3; i++) {
		put_file("d/.envrc", i == 0 ? "0" : i == 1 ? "1" : "2");
		same_random = i; /* what was there with the first of them is met again */
		ck_assert(take_from(&q, at("d"), ".envrc", to[i]));
		ck_assert_int_eq(same_random, 0);
		ck_assert_int_eq(strncmp(to[i], start, strlen(start)), 0);
		ck_assert_uint_eq(strspn(to[i] + strlen(start), "0123456789abcdef"), 32);
		ck_assert_uint_eq(strlen(to[i]), strlen(start) + 32);
		for (int k = 0; k < i; k++)
			ck_assert_str_ne(to[i], to[k]);
	}
	is_text(to[0], "0");
	is_text(to[1], "1");
	is_text(to[2], "2");
	/* As often as that is no accident: it stays, and so does what is in the way. */
	put_file("d/.envrc", "3");
	same_random = 1000;
	bool taken = take_from(&q, at("d"), ".envrc", to[0]);
	int why = errno;
	same_random = 0;
	ck_assert(!taken);
	ck_assert_int_eq(why, EEXIST);
	is_text(at("d/.envrc"), "3");
	is_text(to[1], "1");
	ck_assert_uint_eq(entries_of(at("d")), 4);
	quarantine_release(&q);
}
END_TEST

/* Modes that the caller may change do not stop it; the directory's comes back, and its own. */
START_TEST(modes)
{
	static const mode_t parents[] = {0755, 0555, 0500, 0444};
	char to[PATH_TEXT];

	be_somebody("u");
	struct quarantine q = open_in("u/state", "s1");
	for (size_t i = 0; i < ARRAY_LEN(parents); i++) {
		put_dir("u/d");
		put_kinds(at("u/d"));
		ck_assert_int_eq(chmod(at("u/d/.git"), 0555), 0);
		AUTO_FD int fd = open(at("u/d"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		ck_assert_int_eq(chmod(at("u/d"), parents[i]), 0);
		for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
			ck_assert_msg(quarantine_take(&q, fd, at("u/d"), kinds[k], to),
				      "%s in %o: %s", kinds[k], parents[i], strerror(errno));
			is_kept_as(to, "u/state/quarantine/s1", kinds[k]);
			mode_is("u/d", parents[i]);
			if (strcmp(kinds[k], ".git") == 0)
				has_mode(to, 0555);
			if (strcmp(kinds[k], ".vscode") == 0)
				has_mode(to, 0);
		}
		open_up(to);
		open_up(at("u/d"));
		ck_assert_int_eq(rmdir(at("u/d")), 0);
		open_up(at("u/state/quarantine/s1/%zu/.git", 5 * i + 2));
	}
	be_back();
	quarantine_release(&q);
}
END_TEST

/* What is not ours to move stays, and the reason is told. Needs root to make it. */
START_TEST(not_ours)
{
	char to[PATH_TEXT] = "untouched";

	if (geteuid() != 0) {
		fprintf(stderr, "# not root: no directory of somebody else's\n");
		return;
	}
	put_dir("theirs");
	put_file("theirs/.envrc", "kept");
	be_somebody("u");
	struct quarantine q = open_in("u/state", "s1");
	errno = 0;
	bool taken = take_from(&q, at("theirs"), ".envrc", to);
	int why = errno;
	be_back();
	ck_assert(!taken);
	ck_assert_msg(why == EPERM || why == EACCES, "%s", strerror(why));
	ck_assert_str_eq(to, "untouched");
	is_text(at("theirs/.envrc"), "kept");
	mode_is("theirs", 0755);
	ck_assert_uint_eq(entries_of(at("u/state/quarantine/s1")), 0);
	quarantine_release(&q);
}
END_TEST

static void far_setup(void)
{
	struct stat here, there;

	place_setup();
	memcpy(far_top, "/dev/shm/sandglass-far.XXXXXX", 30);
	if (!mkdtemp(far_top)) {
		far_top[0] = '\0';
		return;
	}
	ck_assert(stat(far_top, &there) == 0 && stat(place_top, &here) == 0);
	if (there.st_dev == here.st_dev) {
		ck_assert_int_eq(rmdir(far_top), 0);
		far_top[0] = '\0';
	}
}

static void far_close(void)
{
	if (far_top[0])
		(void)nftw(far_top, place_remove_one, 16, FTW_DEPTH | FTW_PHYS);
	place_close();
}

static bool is_far(void)
{
	if (!far_top[0])
		fprintf(stderr, "# /dev/shm is no other file system: not copied\n");
	return far_top[0] != '\0';
}

START_TEST(copied)
{
	struct quarantine q = open_in("state", "s1");
	struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000001}};
	char to[PATH_TEXT], path[PATH_TEXT], text[64] = "";
	struct stat st;

	if (!is_far())
		return;
	put_kinds(far_top);
	snprintf(path, sizeof(path), "%s/.git/fifo", far_top);
	ck_assert_int_eq(mkfifo(path, 0640), 0);
	snprintf(path, sizeof(path), "%s/.envrc", far_top);
	ck_assert_int_eq(chmod(path, 0741), 0);
	ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
	ck_assert(take_from(&q, far_top, ".envrc", to));
	is_kept_as(to, "state/quarantine/s1", ".envrc");
	is_text(to, "file");
	ck_assert_int_eq(lstat(to, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0741);
	ck_assert_int_eq(st.st_mtim.tv_sec, 1000000001);
	ck_assert(take_from(&q, far_top, ".git", to));
	is_kept_as(to, "state/quarantine/s1", ".git");
	is_text(at("state/quarantine/s1/2/.git/config"), "in it");
	is_text(at("state/quarantine/s1/2/.git/hooks/post-checkout"), "deeper");
	ck_assert_int_eq(readlink(at("state/quarantine/s1/2/.git/link"), text, sizeof(text)), 11);
	ck_assert_str_eq(text, "/etc/passwd");
	mode_is("state/quarantine/s1/2/.git", 0750);
	mode_is("state/quarantine/s1/2/.git/fifo", 0640);
	ck_assert(S_ISFIFO(stat_of("state/quarantine/s1/2/.git/fifo").st_mode));
	ck_assert(take_from(&q, far_top, ".bashrc", to));
	is_kept_as(to, "state/quarantine/s1", ".bashrc");
	ck_assert_int_eq(readlink(to, text, sizeof(text)), 9);
	ck_assert_int_eq(memcmp(text, "no/where\n", 9), 0);
	ck_assert(take_from(&q, far_top, ".npmrc", to));
	is_kept_as(to, "state/quarantine/s1", ".npmrc");
	ck_assert(lstat(to, &st) == 0 && S_ISFIFO(st.st_mode));
	has_mode(to, 0600);
	is_gone(far_top, ".npmrc");
	snprintf(path, sizeof(path), "%s/.vscode", far_top);
	open_up(path);
	ck_assert(take_from(&q, far_top, ".vscode", to));
	is_kept_as(to, "state/quarantine/s1", ".vscode");
	/* Nor has anything stayed under another name. */
	ck_assert_uint_eq(entries_of(far_top), 0);
	ck_assert(!take_from(&q, far_top, ".envrc", to) && errno == ENOENT);
	quarantine_release(&q);
}
END_TEST

static void put_socket(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_uint_lt(strlen(path), sizeof(a.sun_path));
	memcpy(a.sun_path, path, strlen(path) + 1);
	ck_assert_int_eq(bind(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
}

/* Sockets and devices, and what holds one: out of the way, whole, and nothing half copied. */
START_TEST(not_copied)
{
	struct quarantine q = open_in("state", "s1");
	char to[PATH_TEXT], path[PATH_TEXT], beside[PATH_TEXT];
	struct stat st;

	if (!is_far())
		return;
	snprintf(beside, sizeof(beside), "%s/sandglass-quarantine-", far_top);
	for (int i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s/.git", far_top);
		if (i == 0) {
			put_socket(path);
		} else if (i == 1) {
			ck_assert_int_eq(mkdir(path, 0755), 0);
			put_text(path, "config", "in it");
			snprintf(path, sizeof(path), "%s/.git/a", far_top);
			put_socket(path);
			snprintf(path, sizeof(path), "%s/.git", far_top);
			ck_assert_int_eq(chmod(path, 0510), 0);
		} else if (mknod(path, (i == 2 ? S_IFCHR : S_IFBLK) | 0600, makedev(1, 3)) < 0) {
			fprintf(stderr, "# no device can be made: %s\n", strerror(errno));
			break;
		}
		mode_t was = lstat(path, &st) == 0 ? st.st_mode : 0;
		ck_assert_msg(take_from(&q, far_top, ".git", to), "%d: %s", i, strerror(errno));
		is_gone(far_top, ".git");
		ck_assert_msg(strncmp(to, beside, strlen(beside)) == 0, "%d: %s", i, to);
		ck_assert_int_eq(lstat(to, &st), 0);
		ck_assert_uint_eq(st.st_mode, was);
		ck_assert_uint_eq(entries_of(far_top), (unsigned int)i + 1);
		ck_assert_uint_eq(entries_of(at("state/quarantine/s1/%d", i + 1)), 0);
	}
	quarantine_release(&q);
}
END_TEST

/* A file or directory of that mode, in a directory of that mode; nothing may stay behind. */
static void copy_of_mode(const char *name, bool dir, mode_t mode, mode_t parent)
{
	struct quarantine q = open_in("u/state", "s1");
	char to[PATH_TEXT], path[PATH_TEXT];

	open_up(far_top);
	snprintf(path, sizeof(path), "%s/%s", far_top, name);
	if (!dir) {
		put_text(far_top, name, "file");
	} else {
		ck_assert_int_eq(mkdir(path, 0755), 0);
		put_text(path, "config", "in it");
	}
	ck_assert_int_eq(chmod(path, mode), 0);
	ck_assert_int_eq(chmod(far_top, parent), 0);
	bool taken = take_from(&q, far_top, name, to);
	struct stat st;
	ck_assert_int_eq(stat(far_top, &st), 0);
	open_up(far_top);
	ck_assert(taken);
	ck_assert_uint_eq(st.st_mode & 07777, parent);
	is_gone(far_top, name);
	ck_assert_msg(strncmp(to, place_top, strlen(place_top)) == 0,
		      "%s (%o, in %o) stays beside: %s", name, mode, parent, to);
	has_mode(to, mode);
	ck_assert_msg(entries_of(far_top) == 0, "%s (%o, in %o) is left behind as well", name, mode,
		      parent);
	quarantine_release(&q);
}

static void far_somebody(void)
{
	if (geteuid() == 0)
		ck_assert_int_eq(chown(far_top, NOBODY, NOBODY), 0);
	be_somebody("u");
}

/* As `modes`, where it has to be copied. */
START_TEST(copied_closed)
{
	if (!is_far())
		return;
	far_somebody();
	copy_of_mode(".git", true, 0555, 0755);
	copy_of_mode(".npmrc", false, 0444, 0755);
	copy_of_mode(".vscode", true, 0, 0755);
	copy_of_mode(".envrc", false, 0, 0755);
	be_back();
}
END_TEST

START_TEST(copied_from_read_only)
{
	if (!is_far())
		return;
	far_somebody();
	copy_of_mode(".envrc", false, 0644, 0555);
	copy_of_mode(".git", true, 0755, 0555);
	be_back();
}
END_TEST

/* At each limit it is copied, beyond it stays beside its place, whole. */
START_TEST(copied_limits)
{
	struct quarantine q;
	char to[PATH_TEXT], path[PATH_TEXT], beside[PATH_TEXT];

	if (!is_far())
		return;
	snprintf(path, sizeof(path), "%s/.git", far_top);
	snprintf(beside, sizeof(beside), "%s/sandglass-quarantine-", far_top);
	for (int i = 0; i < 4; i++) {
		bool over = i % 2;
		q = open_in("state", i < 2 ? "bytes" : "entries");
		ck_assert_int_eq(mkdir(path, 0755), 0);
		put_text(path, "a", "12345");
		put_text(path, "b", "12345");
		if (i < 2)
			q.bytes = MAX_QUARANTINE_BYTES - 10 + (unsigned int)over;
		else
			q.entries = MAX_QUARANTINE_ENTRIES - 3 + (unsigned int)over;
		ck_assert(take_from(&q, far_top, ".git", to));
		is_gone(far_top, ".git");
		ck_assert_int_eq(strncmp(to, beside, strlen(beside)) == 0, over);
		ck_assert_uint_eq(entries_of(to), 2);
		quarantine_release(&q);
	}
	/* Of what was begun nothing is left. */
	ck_assert_uint_eq(entries_of(at("state/quarantine/bytes/2")), 0);
	ck_assert_uint_eq(entries_of(at("state/quarantine/entries/2")), 0);
}
END_TEST

static void put_levels(const char *top, int levels)
{
	int fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < levels; i++) {
		ck_assert_int_eq(mkdirat(fd, "d", 0755), 0);
		int next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		ck_assert_int_ge(next, 0);
		(void)close(fd);
		fd = next;
	}
	(void)close(openat(fd, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	(void)close(fd);
}

START_TEST(copied_depth)
{
	struct quarantine q = open_in("state", "s1");
	char to[PATH_TEXT], path[PATH_TEXT], beside[PATH_TEXT];

	if (!is_far())
		return;
	snprintf(path, sizeof(path), "%s/.git", far_top);
	snprintf(beside, sizeof(beside), "%s/sandglass-quarantine-", far_top);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(mkdir(path, 0755), 0);
		put_levels(path, i ? 150 : 90);
		ck_assert(take_from(&q, far_top, ".git", to));
		is_gone(far_top, ".git");
		ck_assert_int_eq(strncmp(to, beside, strlen(beside)) == 0, i);
	}
	quarantine_release(&q);
}
END_TEST

/* A name on the way that is taken is not replaced, not even by accident. */
START_TEST(aside_names_taken)
{
	struct quarantine q = open_in("state", "s1");
	char to[PATH_TEXT];

	if (!is_far())
		return;
	put_text(far_top, ".envrc", "file");
	put_text(far_top, "sandglass-quarantine-abababababababababababababababab", "kept");
	same_random = 1;
	bool taken = take_from(&q, far_top, ".envrc", to);
	int why = errno;
	ck_assert_int_eq(same_random, 0);
	ck_assert_msg(taken, "%s", strerror(why));
	is_gone(far_top, ".envrc");
	is_kept_as(to, "state/quarantine/s1", ".envrc");
	is_text(to, "file");
	ck_assert_uint_eq(entries_of(far_top), 1);
	snprintf(to, sizeof(to), "%s/sandglass-quarantine-abababababababababababababababab",
		 far_top);
	is_text(to, "kept");
	quarantine_release(&q);
}
END_TEST

static void put_session(const char *name, time_t age)
{
	struct timespec times[2] = {{.tv_sec = time(NULL) - age}, {.tv_sec = time(NULL) - age}};
	char path[256];

	snprintf(path, sizeof(path), "state/quarantine/%s", name);
	put_dir(at("%s/1", path) + strlen(place_top) + 1);
	put_file(at("%s/1/.envrc", path) + strlen(place_top) + 1, "old");
	ck_assert_int_eq(utimensat(AT_FDCWD, at("%s", path), times, 0), 0);
}

static bool have_session(const char *name)
{
	struct stat st;

	return lstat(at("state/quarantine/%s", name), &st) == 0;
}

static void put_sessions(unsigned int n)
{
	char name[32];

	for (unsigned int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "old-%u", i);
		put_session(name, 60 * (time_t)(i + 1));
	}
}

static void take_one(const char *session)
{
	struct quarantine q = open_in("state", session);
	char to[PATH_TEXT], own[64];

	put_dir("d");
	put_file("d/.envrc", "new");
	ck_assert(take_from(&q, at("d"), ".envrc", to));
	snprintf(own, sizeof(own), "state/quarantine/%s", session);
	is_kept_as(to, own, ".envrc");
	is_text(to, "new");
	quarantine_release(&q);
}

/* The newest are kept, and this one. */
START_TEST(sweep)
{
	static const unsigned int counts[] = {0, 5, 199, 200, 201, 250};
	char name[32];

	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		put_sessions(counts[i]);
		put_session(".hidden", 1000000);
		take_one("new");
		unsigned int kept =
			counts[i] < MAX_QUARANTINE_SESSIONS ? counts[i] : MAX_QUARANTINE_SESSIONS;
		for (unsigned int k = 0; k < counts[i]; k++) {
			snprintf(name, sizeof(name), "old-%u", k);
			ck_assert_msg(have_session(name) == (k < kept), "%u of %u: %s", k,
				      counts[i], have_session(name) ? "kept" : "gone");
		}
		ck_assert(have_session(".hidden"));
		ck_assert_int_eq(nftw(at("state"), place_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
	}
}
END_TEST

/* A session that goes on keeps what it has, however long ago it began. */
START_TEST(sweep_spares_own)
{
	put_sessions(MAX_QUARANTINE_SESSIONS + 20);
	put_session("mine", 10000000);
	take_one("mine");
	is_text(at("state/quarantine/mine/1/.envrc"), "old");
}
END_TEST

/* What a command left in there does not keep an old session alive. */
START_TEST(sweep_of_anything)
{
	put_sessions(MAX_QUARANTINE_SESSIONS);
	put_session("deep", 1000000);
	put_session("file", 1000001);
	ck_assert_int_eq(nftw(at("state/quarantine/file"), place_remove_one, 16,
			      FTW_DEPTH | FTW_PHYS),
			 0);
	put_file("state/quarantine/file", "");
	put_link("state/quarantine/deep/1/.bashrc", "+d");
	struct stat was = stat_of("state/quarantine/deep");
	struct timespec times[2] = {was.st_mtim, {.tv_sec = time(NULL) - 1000000}};
	put_levels(at("state/quarantine/deep/1"), 3000);
	ck_assert_int_eq(utimensat(AT_FDCWD, at("state/quarantine/deep"), times, 0), 0);
	ck_assert_int_eq(utimensat(AT_FDCWD, at("state/quarantine/file"), times, 0), 0);
	put_dir("d");
	put_file("d/kept", "");
	take_one("new");
	ck_assert(!have_session("file"));
	ck_assert_msg(!have_session("deep"), "a deep tree keeps its session");
	/* Nothing of it lies about: those before, and the new one. */
	ck_assert_uint_eq(entries_of(at("state/quarantine")), MAX_QUARANTINE_SESSIONS + 1);
	is_text(at("d/kept"), "");
}
END_TEST

/* Directories in it that their owner may not enter go as well. */
START_TEST(sweep_of_closed)
{
	char name[64];

	be_somebody("state");
	put_sessions(MAX_QUARANTINE_SESSIONS + 3);
	for (unsigned int i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "state/quarantine/old-%u/1",
			 MAX_QUARANTINE_SESSIONS + i);
		ck_assert_int_eq(chmod(at("%s", name), i == 0 ? 0 : i == 1 ? 0500 : 0300), 0);
	}
	struct quarantine q = open_in("state", "new");
	char to[PATH_TEXT];
	AUTO_FD int fd = open(place_top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)quarantine_take(&q, fd, place_top, "none", to);
	quarantine_release(&q);
	be_back();
	for (unsigned int i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "old-%u", MAX_QUARANTINE_SESSIONS + i);
		ck_assert_msg(!have_session(name), "%s is still there", name);
	}
}
END_TEST

static const char *const odd_names[] = {
	"plain",
	"two words",
	"it's",
	"'",
	"''",
	"\"quoted\"",
	"end\n",
	"\n",
	"two\n\n",
	"mid\ndle",
	"back\\slash",
	"\\",
	"end\\",
	"\\n\\033\\0",
	"100%",
	"%s%n%d",
	"-rf",
	"--help",
	"$HOME",
	"`id`",
	"$(id)",
	"a;b&c|d>e<f",
	"*?[a]{b,c}~!#",
	"tab\there",
	"\x01\x1b[31m\x7f",
	"\xff\xfe",
	"caf\xc3\xa9",
	"cut\xc3",
	"e\xe2\x80\x8b",
	"\xe2\x80\xaegnp",
	"dot.",
	"dots...",
	" ",
	"x\n.",
	"9\x01"
	"9",
	"\xff"
	"7'\\%s\n",
};

/* One line that a terminal can show. */
static void is_shown(const char *command)
{
	uint32_t cp = 0;

	for (size_t left = strlen(command); left;) {
		size_t n = utf8_decode(command, left, &cp);
		ck_assert_msg(n && !utf8_is_unsafe(cp), "%s", command);
		command += n;
		left -= n;
	}
}

static void restore(const char *from, const char *to)
{
	AUTO_BUF command = BUF_INIT(1u << 20);

	quarantine_restore(&command, from, to);
	ck_assert(!command.failed);
	is_shown(buf_cstr(&command));
	(void)place_shell(buf_cstr(&command));
}

/* There and back, in a directory whose name is odd as well. */
START_TEST(restored)
{
	struct quarantine q = open_in("sta te", "s1");
	char to[PATH_TEXT], path[PATH_TEXT];

	for (size_t d = 0; d < ARRAY_LEN(odd_names); d += 5) {
		char dir[64];
		snprintf(dir, sizeof(dir), "%s", odd_names[d]);
		put_dir(dir);
		for (size_t i = 0; i < ARRAY_LEN(odd_names); i++) {
			snprintf(path, sizeof(path), "%s", at("%s/%s", dir, odd_names[i]));
			put_text(at("%s", dir), odd_names[i], odd_names[i]);
			ck_assert(take_from(&q, at("%s", dir), odd_names[i], to));
			is_kept_as(to, "sta te/quarantine/s1", odd_names[i]);
			is_gone(at("%s", dir), odd_names[i]);
			restore(to, path);
			is_text(path, odd_names[i]);
			ck_assert_int_eq(unlink(path), 0);
		}
		ck_assert_uint_eq(entries_of(at("%s", dir)), 0);
	}
	quarantine_release(&q);
}
END_TEST

/* Never over something, nor into a directory. */
START_TEST(restored_over_nothing)
{
	put_file("from", "from");
	put_file("to", "to");
	restore(at("from"), at("to"));
	is_text(at("from"), "from");
	is_text(at("to"), "to");
	put_dir("from-dir/x");
	put_dir("to-dir");
	restore(at("from-dir"), at("to-dir"));
	ck_assert_uint_eq(entries_of(at("from-dir")), 1);
	ck_assert_uint_eq(entries_of(at("to-dir")), 0);
	put_link("to-link", "+to-dir");
	restore(at("from"), at("to-link"));
	ck_assert_uint_eq(entries_of(at("to-dir")), 0);
	ck_assert(S_ISLNK(stat_of("to-link").st_mode));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("run quarantine");
	TCase *near = tcase_create("near");
	TCase *across = tcase_create("across");
	TCase *old = tcase_create("sweep");
	TCase *back = tcase_create("back");

	tcase_add_checked_fixture(near, place_setup, place_close);
	tcase_add_test(near, renamed);
	tcase_add_test(near, collisions);
	tcase_add_test(near, not_there);
	tcase_add_test(near, no_quarantine);
	tcase_add_test(near, aside_names);
	tcase_add_test(near, modes);
	tcase_add_test(near, not_ours);
	suite_add_tcase(s, near);
	tcase_add_checked_fixture(across, far_setup, far_close);
	tcase_set_timeout(across, 120);
	tcase_add_test(across, copied);
	tcase_add_test(across, not_copied);
	tcase_add_test(across, copied_closed);
	tcase_add_test(across, copied_from_read_only);
	tcase_add_test(across, copied_limits);
	tcase_add_test(across, copied_depth);
	tcase_add_test(across, aside_names_taken);
	suite_add_tcase(s, across);
	tcase_add_checked_fixture(old, place_setup, place_close);
	tcase_set_timeout(old, 120);
	tcase_add_test(old, sweep);
	tcase_add_test(old, sweep_spares_own);
	tcase_add_test(old, sweep_of_anything);
	tcase_add_test(old, sweep_of_closed);
	suite_add_tcase(s, old);
	tcase_add_checked_fixture(back, place_setup, place_close);
	tcase_set_timeout(back, 240);
	tcase_add_test(back, restored);
	tcase_add_test(back, restored_over_nothing);
	suite_add_tcase(s, back);
	return suite_run(s);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of the caller's 0, 1 and 2: decided by what they are.
 */
#include "run/stdio.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <pty.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "test_policy_place.h"

#define CLOSED_NONE 0u

/* Each test runs in a process of its own: its 0 to 2 are free to use. */
static void use(int fd, int number)
{
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(dup2(fd, number), number);
	if (fd > 2)
		(void)close(fd);
}

static void quiet(void)
{
	for (int fd = 0; fd <= 2; fd++)
		use(open("/dev/null", O_RDWR | O_CLOEXEC), fd);
}

static enum stdio_way way_of(int fd, bool json, struct stdio *io)
{
	struct err e;

	CK_WORKS(stdio_plan(CLOSED_NONE, json, false, false, io, &e), e);
	return io->way[fd];
}

static void passes(int fd, int number, enum stdio_way want)
{
	struct stdio io;

	quiet();
	use(fd, number);
	ck_assert_int_eq(way_of(number, false, &io), want);
	for (int other = 0; other <= 2; other++)
		if (other != number)
			ck_assert_int_eq(io.way[other], STDIO_PASS);
}

static void refuses(int fd, int number, const char *text)
{
	static const char *const names[] = {"stdin is ", "stdout is ", "stderr is "};
	struct stdio io;
	struct err e;

	quiet();
	use(fd, number);
	CK_FAILS(stdio_plan(CLOSED_NONE, false, false, false, &io, &e), e, ERR_POLICY_DENIED, text);
	ck_assert_ptr_nonnull(strstr(e.msg, names[number]));
	ck_assert(e.hint[0]);
}

START_TEST(harmless_devices)
{
	static const char *const nodes[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random",
					    "/dev/urandom"};

	for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
		for (int n = 0; n <= 2; n++)
			passes(open(nodes[i], O_RDWR), n, STDIO_PASS);
}
END_TEST

START_TEST(pipes)
{
	for (int n = 0; n <= 2; n++) {
		int ends[2];
		ck_assert_int_eq(pipe(ends), 0);
		passes(ends[n > 0], n, STDIO_PASS);
		ck_assert_int_eq(mkfifo(at("fifo%d", n), 0600), 0);
		/* A fifo with a name is a file of the host. */
		passes(open(at("fifo%d", n), O_RDWR), n, STDIO_RELAY);
	}
}
END_TEST

/* A socket is the host's network: bytes come through us, never the socket itself. */
START_TEST(local_sockets)
{
	static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET};

	for (size_t t = 0; t < ARRAY_LEN(types); t++)
		for (int n = 0; n <= 2; n++) {
			int ends[2];
			ck_assert_int_eq(socketpair(AF_UNIX, types[t], 0, ends), 0);
			passes(ends[0], n, STDIO_RELAY);
			(void)close(ends[1]);
		}
	for (int n = 0; n <= 2; n++) {
		int ends[2];
		/* A datagram socket can be sent elsewhere from inside. */
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
		refuses(ends[0], n, "not a connected stream");
		(void)close(ends[1]);
		refuses(socket(AF_UNIX, SOCK_STREAM, 0), n, "not a connected stream");
	}
}
END_TEST

START_TEST(internet_sockets)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(server, 0);
	ck_assert_int_eq(bind(server, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(listen(server, 3), 0);
	ck_assert_int_eq(getsockname(server, (struct sockaddr *)&a, &len), 0);
	for (int n = 0; n <= 2; n++) {
		int client = socket(AF_INET, SOCK_STREAM, 0);
		ck_assert_int_eq(connect(client, (struct sockaddr *)&a, sizeof(a)), 0);
		passes(client, n, STDIO_RELAY);
		refuses(socket(AF_INET, SOCK_DGRAM, 0), n, "not a connected stream");
		refuses(socket(AF_INET, SOCK_STREAM, 0), n, "not a connected stream");
		refuses(fcntl(server, F_DUPFD_CLOEXEC, 10), n, "not a connected stream");
	}
	(void)close(server);
}
END_TEST

START_TEST(files)
{
	struct stdio io;
	char path[PATH_TEXT];

	put_file("in", "text");
	snprintf(path, sizeof(path), "%s", at("in"));
	struct stat st = stat_of("in");
	static const int ways[] = {O_RDONLY, O_RDWR};
	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		quiet();
		use(open(path, ways[i]), 0);
		ck_assert_int_eq(way_of(0, false, &io), STDIO_FILE);
		ck_assert_str_eq(io.file_path, path);
		ck_assert(io.file.st_ino == st.st_ino && io.file.st_dev == st.st_dev);
	}
	for (int n = 1; n <= 2; n++)
		passes(open(path, O_WRONLY | O_APPEND), n, STDIO_RELAY);
	/* The name that it has now counts. */
	quiet();
	use(open(path, O_RDONLY), 0);
	ck_assert_int_eq(rename(path, at("moved")), 0);
	ck_assert_int_eq(way_of(0, false, &io), STDIO_FILE);
	ck_assert_str_eq(io.file_path, at("moved"));
}
END_TEST

/* Without a name, or with another file at it, there is nothing to open again: copied. */
START_TEST(files_without_name)
{
	put_file("gone", "text");
	int fd = open(at("gone"), O_RDONLY);
	ck_assert_int_eq(unlink(at("gone")), 0);
	passes(fcntl(fd, F_DUPFD, 10), 0, STDIO_RELAY);
	put_file("gone (deleted)", "a trap");
	passes(fcntl(fd, F_DUPFD, 10), 0, STDIO_RELAY);
	passes(memfd_create("text", 0), 0, STDIO_RELAY);
	put_file("write", "text");
	passes(open(at("write"), O_WRONLY), 0, STDIO_RELAY);
	(void)close(fd);
}
END_TEST

START_TEST(terminals)
{
	int master = -1, slave = -1;

	ck_assert_int_eq(openpty(&master, &slave, NULL, NULL, NULL), 0);
	for (int n = 0; n <= 2; n++)
		passes(fcntl(slave, F_DUPFD, 10), n, STDIO_RELAY);
}
END_TEST

START_TEST(refused)
{
	for (int n = 0; n <= 2; n++) {
		refuses(open(place_top, O_RDONLY | O_DIRECTORY), n, "a directory");
		refuses(open("/", O_PATH), n, "a directory");
		put_file("f", "x");
		refuses(open(at("f"), O_PATH), n, "O_PATH");
		refuses(eventfd(0, 0), n, "not a kind of file");
		refuses(epoll_create1(0), n, "not a kind of file");
		refuses(timerfd_create(CLOCK_MONOTONIC, 0), n, "not a kind of file");
	}
}
END_TEST

START_TEST(captured)
{
	struct stdio io;
	struct err e;

	quiet();
	ck_assert_int_eq(way_of(1, true, &io), STDIO_CAPTURE);
	ck_assert_int_eq(io.way[2], STDIO_CAPTURE);
	ck_assert_int_eq(io.way[0], STDIO_PASS);
	/* Also then a directory is none of the command's. */
	use(open(place_top, O_RDONLY | O_DIRECTORY), 2);
	CK_FAILS(stdio_plan(CLOSED_NONE, true, false, false, &io, &e), e, ERR_POLICY_DENIED,
		 "a directory");
}
END_TEST

START_TEST(closed)
{
	struct stdio io;
	struct err e;

	quiet();
	CK_WORKS(stdio_plan(7, false, false, false, &io, &e), e);
	for (int n = 0; n <= 2; n++)
		ck_assert_int_eq(io.way[n], STDIO_NULL);
	CK_WORKS(stdio_plan(5, true, false, false, &io, &e), e);
	ck_assert_int_eq(io.way[0], STDIO_NULL);
	ck_assert_int_eq(io.way[1], STDIO_CAPTURE);
	ck_assert_int_eq(io.way[2], STDIO_CAPTURE);
}
END_TEST

START_TEST(filled)
{
	for (unsigned int set = 0; set < 8; set++) {
		struct stat st, null;
		quiet();
		for (int n = 0; n <= 2; n++)
			if (set & (1u << n))
				(void)close(n);
		ck_assert_uint_eq(stdio_fill(), set);
		ck_assert_int_eq(stat("/dev/null", &null), 0);
		for (int n = 0; n <= 2; n++) {
			ck_assert_int_eq(fstat(n, &st), 0);
			ck_assert(st.st_rdev == null.st_rdev);
		}
	}
}
END_TEST

START_TEST(at_a_pty)
{
	struct stdio io;
	struct err e;
	int ends[2];

	quiet();
	ck_assert_int_eq(pipe(ends), 0);
	use(ends[0], 0);
	CK_WORKS(stdio_plan(CLOSED_NONE, false, true, false, &io, &e), e);
	for (int n = 0; n <= 2; n++)
		ck_assert_int_eq(io.way[n], STDIO_PTY);
	(void)close(ends[1]);
}
END_TEST

/* Without a boundary there is nothing to protect, but a directory is still no stream. */
START_TEST(bare)
{
	struct stdio io;
	struct err e;

	quiet();
	put_file("f", "x");
	use(open(at("f"), O_RDWR), 0);
	use(open(at("f"), O_RDWR), 1);
	CK_WORKS(stdio_plan(4, false, false, true, &io, &e), e);
	ck_assert_int_eq(io.way[0], STDIO_PASS);
	ck_assert_int_eq(io.way[1], STDIO_PASS);
	ck_assert_int_eq(io.way[2], STDIO_NULL);
	CK_WORKS(stdio_plan(CLOSED_NONE, true, false, true, &io, &e), e);
	ck_assert_int_eq(io.way[1], STDIO_CAPTURE);
}
END_TEST

START_TEST(one_output)
{
	struct stdio io;

	put_file("a", "");
	put_file("b", "");
	quiet();
	use(open(at("a"), O_WRONLY), 1);
	use(open(at("a"), O_WRONLY | O_APPEND), 2);
	ck_assert_int_eq(way_of(1, false, &io), STDIO_RELAY);
	ck_assert(io.one_output);
	use(open(at("b"), O_WRONLY), 2);
	(void)way_of(1, false, &io);
	ck_assert(!io.one_output);
	quiet(); /* the same device, but nothing is relayed */
	(void)way_of(1, false, &io);
	ck_assert(!io.one_output);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("run stdio");
	TCase *c = tcase_create("all");

	tcase_add_checked_fixture(c, place_setup, place_close);
	tcase_add_test(c, harmless_devices);
	tcase_add_test(c, pipes);
	tcase_add_test(c, local_sockets);
	tcase_add_test(c, internet_sockets);
	tcase_add_test(c, files);
	tcase_add_test(c, files_without_name);
	tcase_add_test(c, terminals);
	tcase_add_test(c, refused);
	tcase_add_test(c, captured);
	tcase_add_test(c, closed);
	tcase_add_test(c, filled);
	tcase_add_test(c, at_a_pty);
	tcase_add_test(c, bare);
	tcase_add_test(c, one_output);
	suite_add_tcase(s, c);
	return suite_run(s);
}

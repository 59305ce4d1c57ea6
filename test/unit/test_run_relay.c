/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes from one descriptor to another: all of them, in order, never waiting
 * where it could not get out.
 */
#include "run/relay.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/base.h"
#include "test_base_suite.h"

static void setup(void)
{
	struct sigaction ign = {.sa_handler = SIG_IGN};

	ck_assert_int_eq(sigaction(SIGPIPE, &ign, NULL), 0);
	(void)alarm(20); /* whatever waits for ever */
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* One turn of a loop; false: nothing to wait for, or nothing came within `ms`. */
static bool turn(struct relay *r, int ms)
{
	struct pollfd fds[2];
	size_t n = relay_poll(r, fds);

	if (!n || poll(fds, n, ms) <= 0)
		return false;
	relay_step(r, fds, n);
	return true;
}

START_TEST(copies_all)
{
	static char sent[300000], got[sizeof(sent) + 1];
	int in[2], out[2];
	size_t at = 0, put = 0;
	struct relay r;

	suite_seed();
	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = (char)random();
	ck_assert_int_eq(pipe2(in, O_NONBLOCK), 0);
	ck_assert_int_eq(pipe2(out, O_NONBLOCK), 0);
	ck_assert(relay_init(&r, in[0], out[1], NULL));
	r.close_to = true;
	while (put < sizeof(sent) || r.from >= 0 || r.to >= 0) {
		size_t piece = 1 + (size_t)random() % 50000;
		if (piece > sizeof(sent) - put)
			piece = sizeof(sent) - put;
		ssize_t n = piece ? write(in[1], sent + put, piece) : 0;
		put += n > 0 ? (size_t)n : 0;
		if (put == sizeof(sent) && in[1] >= 0) {
			(void)close(in[1]);
			in[1] = -1;
		}
		for (int i = 0; i < 3; i++)
			(void)turn(&r, 0);
		n = read(out[0], got + at, (size_t)random() % 30000);
		at += n > 0 ? (size_t)n : 0;
	}
	ssize_t n = 0;
	while ((n = read(out[0], got + at, sizeof(got) - at)) > 0)
		at += (size_t)n;
	ck_assert_int_eq(n, 0); /* the other side was closed */
	ck_assert_uint_eq(at, sizeof(sent));
	ck_assert_mem_eq(got, sent, sizeof(sent));
	ck_assert(!is_open(in[0]));
	ck_assert(!is_open(out[1]));
	relay_release(&r);
	(void)close(out[0]);
}
END_TEST

START_TEST(into_a_capture)
{
	struct capture c;
	struct relay r;
	int in[2];

	capture_init(&c, 4);
	ck_assert_int_eq(pipe(in), 0);
	ck_assert(relay_init(&r, in[0], -1, &c));
	ck_assert_int_eq(write(in[1], "abcdefgh", 8), 8);
	ck_assert(turn(&r, 1000));
	ck_assert_uint_eq(c.bytes, 8);
	ck_assert_mem_eq(c.head, "ab", 2);
	(void)close(in[1]);
	ck_assert(turn(&r, 1000));
	ck_assert_int_eq(r.from, -1);
	ck_assert(!turn(&r, 0));
	capture_release(&c);
	relay_release(&r);
}
END_TEST

/* A pipe that nobody empties: what poll promises is written and no more, so we never hang. */
START_TEST(never_blocks)
{
	static char block[1 << 20];
	struct relay r;
	int in[2], out[2];

	ck_assert_int_eq(pipe(in), 0);
	ck_assert_int_eq(pipe(out), 0); /* blocking, as the caller's is */
	int room = fcntl(out[1], F_GETPIPE_SZ);
	ck_assert_int_eq(fcntl(in[1], F_SETPIPE_SZ, sizeof(block)) > 0, 1);
	ck_assert(relay_init(&r, in[0], out[1], NULL));
	ck_assert_uint_eq(r.chunk, PIPE_BUF);
	ck_assert_int_eq(write(in[1], block, (size_t)room + 100000), room + 100000);
	while (turn(&r, 50))
		;
	/* Full now; still some to write, and only that is waited for. */
	struct pollfd fds[2];
	ck_assert_uint_eq(relay_poll(&r, fds), 1);
	ck_assert_int_eq(fds[0].fd, out[1]);
	ck_assert_int_eq(fds[0].events, POLLOUT);
	ck_assert_int_eq(read(out[0], block, PIPE_BUF), PIPE_BUF);
	ck_assert(turn(&r, 1000));
	relay_release(&r);
	(void)close(out[0]);
	(void)close(in[1]);
}
END_TEST

START_TEST(files_take_more_at_once)
{
	char name[] = "/tmp/sandglass-relay.XXXXXX";
	int fd = mkstemp(name);
	struct relay r;
	int in[2];

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(unlink(name), 0);
	ck_assert_int_eq(pipe(in), 0);
	ck_assert(relay_init(&r, in[0], fd, NULL));
	ck_assert_uint_eq(r.chunk, RELAY_BYTES);
	relay_release(&r);
	(void)close(in[1]);
}
END_TEST

/* The reader goes away: the writer learns it as it would from a pipe of its own. */
START_TEST(reader_gone)
{
	struct relay r;
	int in[2], out[2];

	ck_assert_int_eq(pipe(in), 0);
	ck_assert_int_eq(pipe(out), 0);
	ck_assert(relay_init(&r, in[0], out[1], NULL));
	ck_assert_int_eq(write(in[1], "x", 1), 1);
	ck_assert(turn(&r, 1000));
	(void)close(out[0]);
	ck_assert(turn(&r, 1000));
	ck_assert_int_eq(r.from, -1);
	ck_assert(!turn(&r, 0));
	errno = 0;
	ck_assert_int_eq(write(in[1], "x", 1), -1);
	ck_assert_int_eq(errno, EPIPE);
	ck_assert(is_open(out[1])); /* not ours to close without close_to */
	relay_release(&r);
	(void)close(in[1]);
}
END_TEST

/* Without close_to the end of the input leaves the output as it is. */
START_TEST(end_of_input)
{
	for (int close_to = 0; close_to <= 1; close_to++) {
		struct relay r;
		int in[2], out[2];
		ck_assert_int_eq(pipe(in), 0);
		ck_assert_int_eq(pipe(out), 0);
		ck_assert(relay_init(&r, in[0], out[1], NULL));
		r.close_to = close_to;
		(void)close(in[1]);
		ck_assert(turn(&r, 1000));
		ck_assert_int_eq(r.from, -1);
		ck_assert(is_open(out[1]) == !close_to);
		relay_release(&r);
		ck_assert(!is_open(out[1]));
		(void)close(out[0]);
	}
}
END_TEST

/* A pty learns of the end by its character; an open line needs it twice. */
START_TEST(end_of_input_at_a_pty)
{
	static const struct {
		const char *text;
		size_t ends;
	} rows[] = {{"", 1}, {"line\n", 1}, {"open", 2}, {"line\nopen", 2}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char got[64];
		struct relay r;
		int in[2], out[2];
		size_t n = strlen(rows[i].text);
		ck_assert_int_eq(pipe(in), 0);
		ck_assert_int_eq(pipe(out), 0);
		ck_assert(relay_init(&r, in[0], out[1], NULL));
		r.to_pty = true;
		ck_assert_int_eq(write(in[1], rows[i].text, n), (ssize_t)n);
		(void)close(in[1]);
		while (turn(&r, 100))
			;
		ck_assert_int_eq(read(out[0], got, sizeof(got)), (ssize_t)(n + rows[i].ends));
		ck_assert_mem_eq(got, rows[i].text, n);
		ck_assert_mem_eq(got + n, "\4\4", rows[i].ends);
		relay_release(&r);
		(void)close(out[0]);
	}
}
END_TEST

/* 0 to 2 are the caller's: they stay open whatever ends. */
START_TEST(leaves_stdio_open)
{
	struct relay r;
	int in[2];

	ck_assert_int_eq(pipe(in), 0);
	ck_assert_int_eq(dup2(in[0], 0), 0);
	(void)close(in[0]);
	(void)close(in[1]);
	ck_assert_int_eq(dup2(open("/dev/null", O_WRONLY), 1), 1);
	ck_assert(relay_init(&r, 0, 1, NULL));
	r.close_to = true;
	ck_assert(turn(&r, 1000));
	ck_assert_int_eq(r.from, -1);
	relay_release(&r);
	ck_assert(is_open(0));
	ck_assert(is_open(1));
}
END_TEST

/* Nothing is done with a descriptor that was not ready. */
START_TEST(not_ready)
{
	struct relay r;
	int in[2], out[2];
	struct pollfd fds[2];

	ck_assert_int_eq(pipe(in), 0);
	ck_assert_int_eq(pipe(out), 0);
	ck_assert(relay_init(&r, in[0], out[1], NULL));
	size_t n = relay_poll(&r, fds);
	ck_assert_uint_eq(n, 1);
	ck_assert_int_eq(fds[0].fd, in[0]);
	ck_assert_int_eq(fds[0].events, POLLIN);
	fds[0].revents = 0;
	relay_step(&r, fds, n); /* a read here would wait until the alarm */
	relay_step(&r, fds, 0);
	ck_assert_int_eq(r.from, in[0]);
	relay_release(&r);
	(void)close(in[1]);
	(void)close(out[0]);
}
END_TEST

static int open_pty(int *ret_master)
{
	int unlock = 0;

	*ret_master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK);
	ck_assert_int_ge(*ret_master, 0);
	ck_assert_int_eq(ioctl(*ret_master, TIOCSPTLCK, &unlock), 0);
	int slave = ioctl(*ret_master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
	ck_assert_int_ge(slave, 0);
	return slave;
}

static void set_keyed(int fd, bool keyed)
{
	struct termios t;

	ck_assert_int_eq(tcgetattr(fd, &t), 0);
	t.c_lflag = keyed ? t.c_lflag & ~(tcflag_t)ICANON : t.c_lflag | ICANON;
	ck_assert_int_eq(tcsetattr(fd, TCSANOW, &t), 0);
}

/* A pager reads the terminal key by key: its keys are not ours, before poll(2) and after. */
START_TEST(keys_of_another)
{
	struct relay r;
	struct pollfd fds[2];
	int master = -1;
	int out[2];
	char got[8];

	int slave = open_pty(&master);
	ck_assert_int_eq(pipe2(out, O_NONBLOCK), 0);
	ck_assert(relay_init(&r, slave, out[1], NULL));
	r.from_terminal = r.by_line = true;
	ck_assert_int_eq(write(master, "a\n", 2), 2);
	ck_assert_uint_eq(relay_poll(&r, fds), 1);
	ck_assert_int_eq(poll(fds, 1, 1000), 1);
	set_keyed(slave, true);
	relay_step(&r, fds, 1);
	ck_assert_uint_eq(r.n, 0);
	ck_assert_uint_eq(relay_poll(&r, fds), 0);
	ck_assert(r.away);
	ck_assert_int_eq(read(slave, got, sizeof(got)), 2); /* still there, for the pager */
	set_keyed(slave, false);
	ck_assert_int_eq(write(master, "b\n", 2), 2);
	ck_assert(turn(&r, 1000));
	ck_assert(!r.away);
	ck_assert(turn(&r, 1000));
	ck_assert_int_eq(read(out[0], got, sizeof(got)), 2);
	ck_assert_int_eq(got[0], 'b');
	/* Where nobody else is meant to read, keys are as good as lines. */
	r.by_line = false;
	set_keyed(slave, true);
	ck_assert_uint_eq(relay_poll(&r, fds), 1);
	relay_release(&r);
	(void)close(master);
	(void)close(out[0]);
	(void)close(out[1]);
}
END_TEST

/* A terminal that is gone is told from one at whose keyboard somebody ended the input. */
START_TEST(terminal_gone)
{
	struct relay r;
	int master = -1;
	int out[2];

	for (int gone = 0; gone <= 1; gone++) {
		int slave = open_pty(&master);
		ck_assert_int_eq(pipe(out), 0);
		ck_assert(relay_init(&r, slave, out[1], NULL));
		r.from_terminal = r.is_input = true;
		if (gone)
			(void)close(master);
		else
			ck_assert_int_eq(write(master, "\4", 1), 1);
		ck_assert(turn(&r, 1000));
		ck_assert_int_eq(r.from, -1);
		ck_assert_int_eq(r.gone, gone);
		relay_release(&r);
		if (!gone)
			(void)close(master);
		(void)close(out[0]);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("run relay");
	TCase *c = tcase_create("all");

	tcase_add_checked_fixture(c, setup, NULL);
	tcase_set_timeout(c, 30);
	tcase_add_test(c, copies_all);
	tcase_add_test(c, into_a_capture);
	tcase_add_test(c, never_blocks);
	tcase_add_test(c, files_take_more_at_once);
	tcase_add_test(c, reader_gone);
	tcase_add_test(c, end_of_input);
	tcase_add_test(c, end_of_input_at_a_pty);
	tcase_add_test(c, leaves_stdio_open);
	tcase_add_test(c, not_ready);
	tcase_add_test(c, keys_of_another);
	tcase_add_test(c, terminal_gone);
	suite_add_tcase(s, c);
	return suite_run(s);
}

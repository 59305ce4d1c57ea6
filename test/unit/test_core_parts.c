/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of core that can be looked at one by one: reports, cgroups over a
 * directory that the test made, samples, Landlock's numbers. Core speaks on a
 * fixed descriptor and ends its process, so each call runs in a child; what it
 * reported is what is judged.
 */
#include "core/core.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/landlock_abi.h"
#include "launch/launch.h"
#include "test_base_suite.h"

struct said {
	struct report r;
	bool any;
	int fd;     /* that came with it */
	int status; /* of wait */
};

static void receive(int sock, struct said *ret)
{
	struct iovec iov = {.iov_base = &ret->r, .iov_len = sizeof(ret->r)};
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(sock, &m, 0);

	ret->any = n == (ssize_t)sizeof(ret->r);
	ck_assert_msg(ret->any || n == 0, "a message of %zd bytes", n);
	const struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	if (ret->any && c)
		memcpy(&ret->fd, CMSG_DATA(c), sizeof(int));
}

/* Runs it where core's control socket is, and returns the first report. */
static struct said in_child(void (*function)(void *arg), void *arg)
{
	struct said said = {.fd = -1};
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		if (dup2(pair[1], CORE_FD_CTL) < 0)
			_exit(99);
		for (int fd = CORE_FD_CTL + 1; fd < 64; fd++)
			(void)close(fd);
		function(arg);
		_exit(0);
	}
	(void)close(pair[1]);
	receive(pair[0], &said);
	ck_assert_int_eq(waitpid(pid, &said.status, 0), pid);
	(void)close(pair[0]);
	return said;
}

static void die_with(void *arg)
{
	core_die(STAGE_MASK, ENOSPC, arg);
}

START_TEST(death)
{
	char text[3 * REPORT_TEXT_MAX];
	struct said s = in_child(die_with, (void *)(uintptr_t) "/some/path");

	ck_assert(s.any);
	ck_assert_uint_eq(s.r.kind, REPORT_FAIL);
	ck_assert_uint_eq(s.r.stage, STAGE_MASK);
	ck_assert_int_eq(s.r.sys, ENOSPC);
	ck_assert_str_eq(s.r.text, "/some/path");
	ck_assert(WIFEXITED(s.status) && WEXITSTATUS(s.status) == 125);
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	s = in_child(die_with, text);
	ck_assert_uint_eq(strnlen(s.r.text, sizeof(s.r.text)), REPORT_TEXT_MAX - 1);
}
END_TEST

/* Nobody listens any more: it ends all the same, and by no signal. */
START_TEST(death_unheard)
{
	int status = 0;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		int pair[2];
		if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0 ||
		    dup2(pair[0], CORE_FD_CTL) < 0)
			_exit(99);
		for (int fd = CORE_FD_CTL + 1; fd < 64; fd++)
			(void)close(fd);
		(void)close(CORE_FD_CTL - 1);
		core_die(STAGE_MASK, EIO, "x");
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 125);
}
END_TEST

static void hand_over(void *arg)
{
	int fd = open(arg, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	report_fds(&(const struct report){.kind = REPORT_PTY}, &fd, 1);
}

START_TEST(descriptor)
{
	struct stat st, root;
	struct said s = in_child(hand_over, (void *)(uintptr_t) "/");

	ck_assert(s.any);
	ck_assert_uint_eq(s.r.kind, REPORT_PTY);
	ck_assert_int_eq(fstat(s.fd, &st), 0);
	ck_assert_int_eq(stat("/", &root), 0);
	ck_assert(st.st_ino == root.st_ino && st.st_dev == root.st_dev);
	(void)close(s.fd);
}
END_TEST

static char top[] = "/tmp/sandglass-core.XXXXXX";

static void place_setup(void)
{
	ck_assert_ptr_nonnull(mkdtemp(top));
}

static void put(const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	FILE *f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

static void take(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	ck_assert_msg(unlink(path) == 0, "%s", path);
}

static void place_close(void)
{
	ck_assert_int_eq(rmdir(top), 0);
	memcpy(top + sizeof(top) - 7, "XXXXXX", 6);
}

/* The leaf of a hierarchy that lacks what is to be limited: refused, and not left behind. */
START_TEST(cgroup_without_controller)
{
	static const struct {
		uint32_t role;
		const char *knob;
	} rows[] = {{CGROUP_V1_MEMORY, "memory.limit_in_bytes"},
		    {CGROUP_V1_PIDS, "pids.max"},
		    {CGROUP_V1_CPU, "cpu.cfs_period_us"},
		    {CGROUP_V2, "memory.max"}};
	char dir[256];

	snprintf(dir, sizeof(dir), "%s/leaf", top);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct plan_cgroup g = {.role = rows[i].role, .dir = dir};
		struct plan p = {.cgroups = &g, .cgroup_count = 1};
		struct launch l = {.p = &p};
		p.n.memory_bytes = 1 << 20;
		p.n.pids = 10;
		p.n.cpus_milli = 500;
		ck_assert_int_eq(leaf_make(&l), -1);
		ck_assert_uint_eq(l.failure.stage, STAGE_CGROUP);
		ck_assert_int_eq(l.failure.sys, ENOENT);
		ck_assert_str_eq(l.failure.text, rows[i].knob);
		ck_assert_int_eq(access(dir, F_OK), -1);
	}
}
END_TEST

/* Counted by the cgroup only if it could be told: else the process limit holds it. */
START_TEST(cgroup_without_pids)
{
	char dir[256];
	struct plan_cgroup g = {.role = CGROUP_V2, .dir = dir};
	struct plan p = {.cgroups = &g, .cgroup_count = 1};
	struct launch l = {.p = &p};

	snprintf(dir, sizeof(dir), "%s/leaf", top);
	p.n.memory_bytes = p.n.cpus_milli = UINT64_MAX;
	p.n.pids = 10;
	ck_assert_int_eq(leaf_make(&l), 0);
	ck_assert(!l.pids_counted);
	ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

START_TEST(cgroup_that_exists)
{
	struct plan_cgroup g = {.role = CGROUP_V2, .dir = top};
	struct plan p = {.cgroups = &g, .cgroup_count = 1};
	struct launch l = {.p = &p};

	put("keep", "");
	ck_assert_int_eq(leaf_make(&l), -1);
	ck_assert_uint_eq(l.failure.stage, STAGE_CGROUP);
	ck_assert_int_eq(l.failure.sys, EEXIST);
	take("keep");
}
END_TEST

static struct report finish(uint32_t role)
{
	struct plan_cgroup g = {.role = role, .dir = top};
	struct plan p = {.cgroups = &g, .cgroup_count = 1};
	struct launch l = {.p = &p};
	struct report r = {.flags = REPORT_WALL, .peak_memory_bytes = 5};

	leaf_finish(&l, &r);
	return r;
}

START_TEST(cgroup_counters)
{
	static const struct {
		uint32_t role;
		const char *file, *text;
		uint32_t flags;
		uint64_t peak;
	} rows[] = {
		{CGROUP_V1_MEMORY, "memory.max_usage_in_bytes", "123456789012\n", 0, 123456789012},
		{CGROUP_V1_MEMORY, "memory.oom_control",
		 "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", REPORT_MEMORY, 5},
		{CGROUP_V1_MEMORY, "memory.oom_control",
		 "oom_kill_disable 1\nunder_oom 1\noom_kill 0\n", 0, 5},
		{CGROUP_V1_PIDS, "pids.events", "max 0\n", 0, 5},
		{CGROUP_V1_PIDS, "pids.events", "max 17\n", REPORT_PIDS, 5},
		{CGROUP_V2, "memory.peak", "4096\n", 0, 4096},
		{CGROUP_V2, "memory.events", "low 0\nhigh 1\nmax 9\noom 3\noom_kill 0\n", 0, 5},
		{CGROUP_V2, "memory.events", "low 0\nmax 9\noom 3\noom_kill 1\noom_group_kill 0\n",
		 REPORT_MEMORY, 5},
		{CGROUP_V2, "pids.events", "max 1", REPORT_PIDS, 5},
		{CGROUP_V2, "memory.peak", "", 0, 5},
		{CGROUP_V2, "memory.peak", "max\n", 0, 5},
		{CGROUP_V1_CPU, "memory.peak", "9\n", 0, 5},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		put(rows[i].file, rows[i].text);
		struct report r = finish(rows[i].role);
		ck_assert_msg(r.flags == (rows[i].flags | REPORT_WALL), "row %zu: flags %x", i,
			      r.flags);
		ck_assert_uint_eq(r.peak_memory_bytes, rows[i].peak);
		take(rows[i].file);
	}
}
END_TEST

START_TEST(samples)
{
	struct plan p = {
		.n = {.cpu_ms = UINT64_MAX, .memory_bytes = UINT64_MAX, .pids = UINT64_MAX}};
	struct core c = {.p = &p, .sand_fd = -1, .shm_fd = -1};
	struct watch w = {.next_ms = 0};
	size_t bytes = 64 << 20;

	ck_assert(!watch_needed(&c));
	p.n.memory_bytes = UINT64_C(1) << 40;
	ck_assert(watch_needed(&c));
	watch_sample(&c, &w, 1000);
	ck_assert_uint_gt(w.tasks, 0);
	ck_assert_uint_le(w.next_ms, 1000 + 100); /* the first come soon */
	uint64_t before = w.peak_bytes;
	ck_assert_uint_gt(before, 0);
	char *memory = malloc(bytes);
	ck_assert_ptr_nonnull(memory);
	for (size_t i = 0; i < bytes; i += 4096)
		((volatile char *)memory)[i] = 1;
	w.peak_bytes = 0;
	watch_sample(&c, &w, 2000);
	ck_assert_uint_gt(w.peak_bytes, bytes);
	for (uint64_t now = 3000; now < 10000; now = w.next_ms) {
		uint64_t last = now;
		watch_sample(&c, &w, now);
		ck_assert_uint_gt(w.next_ms, last);
		ck_assert_uint_le(w.next_ms, last + 1000);
	}
	/* At its limit it is looked at as often as ever. */
	p.n.memory_bytes = 1;
	watch_sample(&c, &w, 20000);
	ck_assert_uint_le(w.next_ms, 20100);
	free(memory);
}
END_TEST

/* Rights that an ABI does not know make the kernel refuse the whole ruleset. */
START_TEST(landlock_rights)
{
	static const struct {
		int abi;
		unsigned int rights;
	} rows[] = {{1, 13}, {2, 14}, {3, 15}, {4, 15}, {5, 16}, {6, 16}, {7, 16}, {99, 16}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		ck_assert_uint_eq(landlock_fs_rights(rows[i].abi), (1ull << rows[i].rights) - 1);
	ck_assert_uint_eq(LANDLOCK_READ & LANDLOCK_WRITE_NODE, 0);
	ck_assert_uint_eq(LANDLOCK_READ & LANDLOCK_NEVER, 0);
	ck_assert_uint_eq(LANDLOCK_FILE_RIGHTS & LANDLOCK_NEVER, 0);
	ck_assert_uint_eq(sizeof(struct landlock_path), 12);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("core parts");
	TCase *reports = tcase_create("reports");
	TCase *cgroups = tcase_create("cgroups");

	tcase_add_test(reports, death);
	tcase_add_test(reports, death_unheard);
	tcase_add_test(reports, descriptor);
	tcase_add_test(reports, samples);
	tcase_add_test(reports, landlock_rights);
	suite_add_tcase(s, reports);
	tcase_add_checked_fixture(cgroups, place_setup, place_close);
	tcase_add_test(cgroups, cgroup_without_controller);
	tcase_add_test(cgroups, cgroup_without_pids);
	tcase_add_test(cgroups, cgroup_that_exists);
	tcase_add_test(cgroups, cgroup_counters);
	suite_add_tcase(s, cgroups);
	return suite_run(s);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes into the encoder comes out of the decoder, and in words out of dump.
 */
#include "base/buf.h"
#include "test_plan_raw.h"

static void same_string(const char *a, const char *b)
{
	ck_assert_str_eq(a ? a : "", b);
}

static void same_mount(const struct plan_mount *a, const struct plan_mount *b)
{
	ck_assert_uint_eq(a->kind, b->kind);
	ck_assert_uint_eq(a->flags, b->flags);
	ck_assert_uint_eq(a->dev, b->dev);
	ck_assert_uint_eq(a->ino, b->ino);
	ck_assert_uint_eq(a->owner_uid, b->owner_uid);
	ck_assert_uint_eq(a->owner_gid, b->owner_gid);
	ck_assert_str_eq(a->dst, b->dst);
	ck_assert_uint_eq(a->src_len, b->src_len);
	if (a->src_len)
		ck_assert_mem_eq(a->src, b->src, a->src_len);
	ck_assert_int_eq(b->src[b->src_len], 0);
}

static void same_list(char *const *a, size_t an, char *const *b, size_t bn)
{
	ck_assert_uint_eq(an, bn);
	for (size_t i = 0; i < an; i++)
		ck_assert_str_eq(a[i], b[i]);
	ck_assert_ptr_null(b[bn]);
}

static void same_plan(const struct plan *a, const struct plan *b)
{
	ck_assert_mem_eq(&a->n, &b->n, sizeof(a->n));
	same_string(a->cwd, b->cwd);
	same_string(a->hostname, b->hostname);
	same_string(a->stdin_path, b->stdin_path);
	ck_assert_uint_eq(a->mount_count, b->mount_count);
	for (size_t i = 0; i < a->mount_count; i++)
		same_mount(&a->mounts[i], &b->mounts[i]);
	ck_assert_uint_eq(a->cgroup_count, b->cgroup_count);
	for (size_t i = 0; i < a->cgroup_count; i++) {
		ck_assert_uint_eq(a->cgroups[i].role, b->cgroups[i].role);
		ck_assert_str_eq(a->cgroups[i].dir, b->cgroups[i].dir);
	}
	ck_assert_uint_eq(a->egress.port_count, b->egress.port_count);
	ck_assert_mem_eq(a->egress.ports, b->egress.ports,
			 a->egress.port_count * sizeof(*a->egress.ports));
	ck_assert_uint_eq(a->egress.prefix_count, b->egress.prefix_count);
	if (a->egress.prefix_count)
		ck_assert_mem_eq(a->egress.prefixes, b->egress.prefixes,
				 a->egress.prefix_count * sizeof(*a->egress.prefixes));
	same_list(a->argv, a->argc, b->argv, b->argc);
	same_list(a->envp, a->envc, b->envp, b->envc);
}

static void round_trip(const struct plan *p)
{
	AUTO_BUF bytes = BUF_INIT(MAX_PLAN_BYTES);
	AUTO_BUF again = BUF_INIT(MAX_PLAN_BYTES);
	struct plan got;
	struct err e;

	CK_WORKS(plan_encode(p, &bytes, &e), e);
	CK_WORKS(plan_decode(bytes.p, bytes.n, &got, &e), e);
	same_plan(p, &got);
	CK_WORKS(plan_encode(&got, &again, &e), e);
	ck_assert_uint_eq(again.n, bytes.n);
	ck_assert_mem_eq(again.p, bytes.p, bytes.n);
	plan_release(&got);
	ck_assert_ptr_null(got.argv);
	ck_assert_ptr_null(got.mounts);
}

static char *word(const char *s)
{
	return (char *)(uintptr_t)s;
}

static struct plan_mount mounts[] = {
	{.kind = MOUNT_BIND,
	 .flags = MOUNT_SYSTEM | MOUNT_DIRECTORY,
	 .dst = "/usr",
	 .src = "/usr",
	 .src_len = 4},
	{.kind = MOUNT_SYMLINK,
	 .flags = MOUNT_SYSTEM,
	 .dst = "/bin",
	 .src = "usr/bin",
	 .src_len = 7},
	{.kind = MOUNT_FILE, .dst = "/etc/a\nb", .src = "x\0y", .src_len = 3},
	{.kind = MOUNT_FILE, .dst = "/etc/empty"},
	{.kind = MOUNT_DIR, .flags = MOUNT_SYSTEM, .dst = "/run"},
	{.kind = MOUNT_MASK, .flags = MOUNT_OPTIONAL, .dst = "/src/s.sock"},
	{.kind = MOUNT_BIND,
	 .flags = MOUNT_WRITE | MOUNT_IDMAP | MOUNT_IDENT | MOUNT_DIRECTORY | MOUNT_OPTIONAL,
	 .dev = 0xfd01,
	 .ino = UINT64_MAX,
	 .owner_uid = 1000,
	 .owner_gid = 1001,
	 .dst = "/src",
	 .src = "/home/\xff/src",
	 .src_len = 11},
};
static struct plan_cgroup cgroups[] = {
	{.role = CGROUP_V1_MEMORY, .dir = "/sys/fs/cgroup/memory/sandglass-1-x"},
	{.role = CGROUP_V2, .dir = "/sys/fs/cgroup/sandglass-1-x"},
};
static const struct plan_prefix prefixes[] = {
	{4, 24, {10, 1, 2}},
	{6, 32, {0x20, 0x01, 0x0d, 0xb8}},
	{4, 0, {0}},
};
static char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)"", (char *)"echo\n\x1b[1m", NULL};
static char *envp[] = {(char *)"PATH=/usr/bin", (char *)"KEY=a=secret", (char *)"EMPTY=", NULL};

static struct plan full(void)
{
	return (struct plan){
		.n = {.flags = PLAN_ROOT | PLAN_TTY | PLAN_STDIN_FILE | PLAN_EGRESS,
		      .parent_pid = 4711,
		      .uid = 1879100001,
		      .gid = 1879100002,
		      .outer_uid = 1879100001,
		      .outer_gid = 1879100003,
		      .rows = 24,
		      .cols = 80,
		      .inotify_instances = 96,
		      .inotify_watches = 40000,
		      .wall_ms = 90000,
		      .grace_ms = 5000,
		      .drain_ms = 250,
		      .cpu_ms = UINT64_MAX,
		      .memory_bytes = UINT64_C(3) << 30,
		      .pids = 8192,
		      .cpus_milli = 1500,
		      .disk_bytes = 1 << 20,
		      .inodes = UINT64_MAX,
		      .shm_bytes = 64 << 20,
		      .stdin_dev = 0x801,
		      .stdin_ino = 99},
		.cwd = "/src/sub",
		.hostname = "sandglass",
		.stdin_path = "/src/in put",
		.mounts = mounts,
		.mount_count = ARRAY_LEN(mounts),
		.cgroups = cgroups,
		.cgroup_count = ARRAY_LEN(cgroups),
		.egress = {.ports = {80, 5432},
			   .port_count = 2,
			   .prefixes = prefixes,
			   .prefix_count = ARRAY_LEN(prefixes)},
		.argv = argv,
		.argc = ARRAY_LEN(argv) - 1,
		.envp = envp,
		.envc = ARRAY_LEN(envp) - 1,
	};
}

START_TEST(all_of_it)
{
	struct plan p = full();

	round_trip(&p);
}
END_TEST

START_TEST(least_of_it)
{
	char *one[] = {word("x"), NULL};
	char *none[] = {NULL};
	struct plan p = {.n = raw_numbers(),
			 .cwd = "/",
			 .hostname = "",
			 .stdin_path = NULL,
			 .argv = one,
			 .argc = 1,
			 .envp = none};

	round_trip(&p);
	p.n.flags = PLAN_BARE;
	p.n.uid = p.n.gid = p.n.outer_uid = p.n.outer_gid = 0;
	round_trip(&p);
}
END_TEST

/* Every number has a place of its own. */
START_TEST(each_number)
{
	struct plan p = full();
	unsigned char *bytes = (unsigned char *)&p.n;

	for (size_t at = offsetof(struct plan_numbers, inotify_instances); at < sizeof(p.n);
	     at += 4) {
		p = full();
		bytes[at] ^= 0x55;
		round_trip(&p);
	}
}
END_TEST

static char *random_text(size_t most, int nul_ok)
{
	size_t n = (size_t)random() % (most + 1);
	char *s = malloc(n + 1);

	ck_assert_ptr_nonnull(s);
	for (size_t i = 0; i < n; i++)
		s[i] = (char)(nul_ok ? random() % 256 : 1 + random() % 255);
	s[n] = '\0';
	return s;
}

static char *random_path(size_t most)
{
	char *s = random_text(most - 1, 0);
	size_t n = strlen(s);
	char *path = malloc(n + 2);

	ck_assert_ptr_nonnull(path);
	path[0] = '/';
	memcpy(path + 1, s, n + 1);
	free(s);
	return path;
}

static struct plan_mount random_mount(void)
{
	struct plan_mount m = {
		.kind = (uint32_t)random() % MOUNT_KINDS,
		.flags = (uint32_t)random() & MOUNT_FLAGS_ALL,
		.dev = (uint64_t)random(),
		.ino = (uint64_t)random() << 33,
		.owner_uid = (uint32_t)random(),
		.owner_gid = (uint32_t)random(),
		.dst = random_path(random() % 8 ? 40 : MAX_PLAN_PATH - 1),
	};

	if (m.kind == MOUNT_BIND || m.kind == MOUNT_SYMLINK) {
		m.src = random_path(random() % 8 ? 40 : MAX_PLAN_PATH - 1);
		m.src_len = strlen(m.src);
	} else if (m.kind == MOUNT_FILE) {
		m.src_len = (size_t)random() % 1000;
		char *content = malloc(m.src_len + 1);
		ck_assert_ptr_nonnull(content);
		for (size_t i = 0; i < m.src_len; i++)
			content[i] = (char)random();
		m.src = content;
	}
	return m;
}

static char **random_list(size_t n, const char *prefix)
{
	char **list = calloc(n + 1, sizeof(*list));

	ck_assert_ptr_nonnull(list);
	for (size_t i = 0; i < n; i++) {
		char *tail = random_text(random() % 16 ? 60 : 9000, 0);
		size_t len = strlen(prefix) + strlen(tail) + 1;
		list[i] = malloc(len);
		ck_assert_ptr_nonnull(list[i]);
		snprintf(list[i], len, "%s%s", prefix, tail);
		free(tail);
	}
	return list;
}

static void free_list(char **list)
{
	for (size_t i = 0; list[i]; i++)
		free(list[i]);
	free(list);
}

START_TEST(random_plans)
{
	suite_seed();
	for (int turn = 0; turn < 150; turn++) {
		struct plan_mount some[MAX_PLAN_MOUNTS];
		struct plan_cgroup groups[MAX_PLAN_CGROUPS];
		struct plan p = full();
		p.mounts = some;
		p.mount_count = (size_t)random() % (turn % 16 ? 20 : MAX_PLAN_MOUNTS + 1);
		for (size_t i = 0; i < p.mount_count; i++)
			some[i] = random_mount();
		p.cgroups = groups;
		p.cgroup_count = (size_t)random() % (MAX_PLAN_CGROUPS + 1);
		for (size_t i = 0; i < p.cgroup_count; i++)
			groups[i] = (struct plan_cgroup){(uint32_t)random() % CGROUP_ROLES,
							 random_path(60)};
		p.argc = 1 + (size_t)random() % 30;
		p.argv = random_list(p.argc, "");
		p.envc = (size_t)random() % 30;
		p.envp = random_list(p.envc, "N=");
		round_trip(&p);
		for (size_t i = 0; i < p.mount_count; i++) {
			free((void *)(uintptr_t)some[i].dst);
			free((void *)(uintptr_t)some[i].src);
		}
		for (size_t i = 0; i < p.cgroup_count; i++)
			free((void *)(uintptr_t)groups[i].dir);
		free_list(p.argv);
		free_list(p.envp);
	}
}
END_TEST

START_TEST(too_much)
{
	struct plan p = full();
	struct err e;
	size_t n = 0;
	char *big = malloc(MAX_PLAN_BYTES);
	char *args[] = {big, NULL};

	ck_assert_ptr_nonnull(big);
	memset(big, 'x', MAX_PLAN_BYTES);
	p.argv = args;
	p.argc = 1;
	big[8] = '\0';
	{
		AUTO_BUF small = BUF_INIT(MAX_PLAN_BYTES);
		CK_WORKS(plan_encode(&p, &small, &e), e);
		n = MAX_PLAN_BYTES - small.n;
	}
	big[8] = 'x';
	big[8 + n] = '\0';
	{
		AUTO_BUF exact = BUF_INIT(MAX_PLAN_BYTES);
		CK_WORKS(plan_encode(&p, &exact, &e), e);
		ck_assert_uint_eq(exact.n, MAX_PLAN_BYTES);
		round_trip(&p);
	}
	big[8 + n] = 'x';
	big[8 + n + 8] = '\0';
	{
		AUTO_BUF over = BUF_INIT(MAX_PLAN_BYTES);
		CK_FAILS(plan_encode(&p, &over, &e), e, ERR_ARG_LIMIT, "8388608 bytes");
	}
	free(big);
}
END_TEST

static const char words[] =
	"plan version 4\n"
	"flags root tty stdin-file egress\n"
	"parent 4711\n"
	"ids 1879100001:1879100002 outside 1879100001:1879100003\n"
	"terminal 24 rows 80 columns\n"
	"limit wall 1m30s\n"
	"limit grace 5s\n"
	"limit drain 250ms\n"
	"limit cpu_time none\n"
	"limit memory 3GiB\n"
	"limit cpus 1.5\n"
	"limit disk 1MiB\n"
	"limit shm 64MiB\n"
	"limit pids 8192\n"
	"limit inodes none\n"
	"limit inotify_instances 96\n"
	"limit inotify_watches 40000\n"
	"cwd /src/sub\n"
	"hostname sandglass\n"
	"stdin /src/in put ident 801:99\n"
	"cgroup v1-memory /sys/fs/cgroup/memory/sandglass-1-x\n"
	"cgroup v2 /sys/fs/cgroup/sandglass-1-x\n"
	"bind /usr from /usr directory system\n"
	"symlink /bin to usr/bin system\n"
	"file /etc/a\\x0ab 3 bytes\n"
	"file /etc/empty 0 bytes\n"
	"dir /run system\n"
	"mask /src/s.sock optional\n"
	"bind /src from /home/\\xff/src writable optional idmap ident directory "
	"fd01:18446744073709551615 owner 1000:1001\n"
	"arg /bin/sh\n"
	"arg -c\n"
	"arg \n"
	"arg echo\\x0a\\x1b[1m\n"
	"env PATH 8 bytes\n"
	"env KEY 8 bytes\n"
	"env EMPTY 0 bytes\n"
	"local 80\n"
	"local 5432\n"
	"prefix 10.1.2.0/24\n"
	"prefix 2001:db8::/32\n"
	"prefix 0.0.0.0/0\n";

START_TEST(dump_says_all)
{
	AUTO_BUF out = BUF_INIT(1 << 16);
	struct plan p = full();
	struct err e;

	CK_WORKS(plan_dump(&p, &out, &e), e);
	ck_assert_str_eq(buf_cstr(&out), words);
	ck_assert_ptr_null(strstr(buf_cstr(&out), "secret"));
}
END_TEST

START_TEST(dump_of_bare)
{
	AUTO_BUF out = BUF_INIT(1 << 16);
	struct plan p = full();
	struct err e;

	p.n.flags = PLAN_BARE | PLAN_READ_ONLY;
	CK_WORKS(plan_dump(&p, &out, &e), e);
	ck_assert_ptr_nonnull(strstr(buf_cstr(&out), "flags read-only bare\n"));
	ck_assert_ptr_null(strstr(buf_cstr(&out), "terminal"));
	ck_assert_ptr_null(strstr(buf_cstr(&out), "stdin"));
}
END_TEST

/* At every size that is too small it fails as a whole. */
START_TEST(dump_needs_room)
{
	struct plan p = full();
	struct err e;

	for (size_t max = 0; max < sizeof(words) - 1; max += 13) {
		AUTO_BUF out = BUF_INIT(max);
		CK_FAILS(plan_dump(&p, &out, &e), e, ERR_INTERNAL, "the plan in words");
	}
	AUTO_BUF exact = BUF_INIT(sizeof(words) - 1);
	CK_WORKS(plan_dump(&p, &exact, &e), e);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("plan codec");
	TCase *c = tcase_create("all");

	tcase_set_timeout(c, 60);
	tcase_add_test(c, all_of_it);
	tcase_add_test(c, least_of_it);
	tcase_add_test(c, each_number);
	tcase_add_test(c, random_plans);
	tcase_add_test(c, too_much);
	tcase_add_test(c, dump_says_all);
	tcase_add_test(c, dump_of_bare);
	tcase_add_test(c, dump_needs_room);
	suite_add_tcase(s, c);
	return suite_run(s);
}

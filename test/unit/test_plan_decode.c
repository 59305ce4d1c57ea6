/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoder refuses all that it does not know. Each test shows first that
 * what it bends is accepted straight.
 */
#include "base/buf.h"
#include "test_plan_raw.h"

#define INVALID "invalid record"

/* One of each record. */
static struct raw whole(void)
{
	struct raw r = raw_new();

	raw_head(&r);
	raw_cgroup(&r, CGROUP_V2, 0, "/sys/fs/cgroup/x", 17);
	raw_true_mount(&r, MOUNT_BIND, "/usr", "/usr", 4);
	raw_true_mount(&r, MOUNT_SYMLINK, "/bin", "usr/bin", 7);
	raw_true_mount(&r, MOUNT_FILE, "/etc/hosts", "a\0b", 3);
	raw_true_mount(&r, MOUNT_DIR, "/run", NULL, 0);
	raw_true_mount(&r, MOUNT_MASK, "/x", NULL, 0);
	raw_string(&r, REC_ARG, "/bin/true");
	raw_string(&r, REC_ARG, "");
	raw_string(&r, REC_ENV, "A=b");
	raw_string(&r, REC_ENV, "=");
	raw_close(&r);
	return r;
}

static void raw_egress(struct raw *r, uint32_t port_count, uint32_t prefix_count,
		       const uint16_t *ports, size_t ports_n, const struct plan_prefix *prefixes,
		       size_t prefixes_n)
{
	static unsigned char payload[MAX_PLAN_PREFIXES * sizeof(*prefixes) + 4096];
	struct record_egress head = {port_count, prefix_count};
	size_t n = sizeof(head);

	memcpy(payload, &head, sizeof(head));
	if (ports_n)
		memcpy(payload + n, ports, ports_n * sizeof(*ports));
	n += ports_n * sizeof(*ports);
	if (prefixes_n)
		memcpy(payload + n, prefixes, prefixes_n * sizeof(*prefixes));
	raw_record(r, REC_EGRESS, payload, n + prefixes_n * sizeof(*prefixes));
}

/* All that comes before the record, with these flags. */
static struct raw before_egress(uint32_t flags)
{
	struct plan_numbers n = raw_numbers();
	struct raw r = raw_new();

	n.flags = flags;
	raw_record(&r, REC_NUMBERS, &n, sizeof(n));
	raw_string(&r, REC_CWD, "/");
	raw_string(&r, REC_HOSTNAME, "h");
	raw_string(&r, REC_STDIN, "");
	raw_string(&r, REC_ARG, "x");
	return r;
}

START_TEST(header)
{
	static const struct {
		size_t offset;
		uint32_t add;
		const char *text;
	} rows[] = {
		{offsetof(struct plan_header, magic), 1, "magic"},
		{offsetof(struct plan_header, version), 1, "version 5"},
		{offsetof(struct plan_header, version), UINT32_MAX, "version 3"},
		{offsetof(struct plan_header, total), 1, "says"},
		{offsetof(struct plan_header, total), UINT32_MAX, "says"},
		{offsetof(struct plan_header, records), 1, "cut off"},
		{offsetof(struct plan_header, records), UINT32_MAX, "bytes after"},
	};
	struct plan p;
	struct err e;
	struct raw r = whole();

	CK_WORKS(raw_decode(&r, &p, &e), e);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint32_t was = 0, bent = 0;
		memcpy(&was, r.p + rows[i].offset, 4);
		bent = was + rows[i].add;
		memcpy(r.p + rows[i].offset, &bent, 4);
		CK_FAILS(raw_decode(&r, &p, &e), e, ERR_INTERNAL, rows[i].text);
		memcpy(r.p + rows[i].offset, &was, 4);
	}
	free(r.p);
}
END_TEST

START_TEST(cut_anywhere)
{
	struct plan p;
	struct err e;
	struct raw r = whole();
	size_t all = r.n;

	for (r.n = 0; r.n < all; r.n++) {
		uint32_t total = (uint32_t)r.n;

		CK_FAILS(raw_decode(&r, &p, &e), e, ERR_INTERNAL, "plan: ");
		/* The header agrees with the cut: the records still do not. */
		memcpy(r.p + offsetof(struct plan_header, total), &total, 4);
		CK_FAILS(raw_decode(&r, &p, &e), e, ERR_INTERNAL, "plan: ");
	}
	r.n = all;
	raw_close(&r);
	CK_WORKS(raw_decode(&r, &p, &e), e);
	free(r.p);
}
END_TEST

START_TEST(tail_anywhere)
{
	struct plan p;
	struct err e;

	for (size_t more = 1; more <= 24; more++) {
		struct raw r = whole();
		r.n += more;
		raw_close(&r);
		CK_FAILS(raw_decode(&r, &p, &e), e, ERR_INTERNAL, "bytes after");
		free(r.p);
	}
}
END_TEST

/* Whatever one byte becomes, it is refused or it says something else that can be said again. */
START_TEST(bytes_bent)
{
	struct raw r = whole();
	unsigned int refused = 0;
	unsigned int accepted = 0;

	for (size_t i = 0; i < r.n; i++) {
		for (unsigned int x = 1; x < 256; x = x * 2 + 1) {
			AUTO_BUF again = BUF_INIT(MAX_PLAN_BYTES);
			struct plan p;
			struct err e = {0};
			r.p[i] ^= (unsigned char)x;
			if (plan_decode(r.p, r.n, &p, &e) < 0) {
				ck_assert_int_eq(e.code, ERR_INTERNAL);
				refused++;
			} else {
				CK_WORKS(plan_encode(&p, &again, &e), e);
				ck_assert_uint_eq(again.n, r.n);
				ck_assert_int_eq(memcmp(again.p, r.p, r.n), 0);
				plan_release(&p);
				accepted++;
			}
			r.p[i] ^= (unsigned char)x;
		}
	}
	ck_assert_uint_gt(refused, 1000);
	ck_assert_uint_gt(accepted, 1000);
	free(r.p);
}
END_TEST

START_TEST(record_types)
{
	static const uint32_t unknown[] = {REC_TYPES, REC_TYPES + 1, 0x01000000u, UINT32_MAX};

	for (size_t i = 0; i < ARRAY_LEN(unknown); i++) {
		struct raw r = whole();
		raw_record(&r, unknown[i], "x", 2);
		RAW_FAILS(r, "unknown record type");
	}
}
END_TEST

START_TEST(record_order)
{
	struct raw r = whole();

	raw_string(&r, REC_ENV, "C=d");
	RAW_WORKS(r);
	for (uint32_t t = REC_NUMBERS; t < REC_ENV; t++) {
		r = whole();
		raw_string(&r, t, "/x");
		RAW_FAILS(r, "out of order");
	}
	r = before_egress(PLAN_EGRESS);
	raw_egress(&r, 0, 0, NULL, 0, NULL, 0);
	raw_string(&r, REC_ENV, "C=d");
	RAW_FAILS(r, "out of order");
}
END_TEST

/* A record of `skip` is left out, one of `twice` comes twice (REC_TYPES: none). */
static struct raw singles(uint32_t skip, uint32_t twice)
{
	static const char *const texts[] =
		{[REC_CWD] = "/", [REC_HOSTNAME] = "h", [REC_STDIN] = ""};
	struct plan_numbers n = raw_numbers();
	struct raw r = raw_new();

	for (uint32_t t = REC_NUMBERS; t <= REC_STDIN; t++)
		for (int times = t == skip ? 0 : t == twice ? 2 : 1; times; times--) {
			if (t == REC_NUMBERS)
				raw_record(&r, t, &n, sizeof(n));
			else
				raw_string(&r, t, texts[t]);
		}
	if (skip != REC_ARG)
		raw_string(&r, REC_ARG, "x");
	return r;
}

START_TEST(record_counts)
{
	struct raw r = singles(REC_TYPES, REC_TYPES);

	RAW_WORKS(r);
	for (uint32_t t = REC_NUMBERS; t <= REC_STDIN; t++) {
		r = singles(t, REC_TYPES);
		RAW_FAILS(r, "required record is missing");
		r = singles(REC_TYPES, t);
		RAW_FAILS(r, "too many records");
	}
	r = singles(REC_ARG, REC_TYPES);
	RAW_FAILS(r, "no command");
}
END_TEST

static struct raw many(uint32_t type, size_t count)
{
	struct raw r = raw_new();

	raw_head(&r);
	for (size_t i = 0; i < count && type == REC_CGROUP; i++)
		raw_cgroup(&r, CGROUP_V2, 0, "/c", 3);
	for (size_t i = 0; i < count && type == REC_MOUNT; i++)
		raw_true_mount(&r, MOUNT_DIR, "/d", NULL, 0);
	raw_string(&r, REC_ARG, "x");
	return r;
}

START_TEST(limits_of_counts)
{
	struct raw r = many(REC_CGROUP, MAX_PLAN_CGROUPS);

	RAW_WORKS(r);
	r = many(REC_CGROUP, MAX_PLAN_CGROUPS + 1);
	RAW_FAILS(r, "too many records");
	r = many(REC_MOUNT, MAX_PLAN_MOUNTS);
	RAW_WORKS(r);
	r = many(REC_MOUNT, MAX_PLAN_MOUNTS + 1);
	RAW_FAILS(r, "too many records");
}
END_TEST

START_TEST(limit_of_size)
{
	struct raw r = raw_new();
	char text[65536];

	memset(text, 'x', sizeof(text));
	text[1] = '=';
	text[sizeof(text) - 1] = '\0';
	raw_head(&r);
	raw_string(&r, REC_ARG, "x");
	while (MAX_PLAN_BYTES - r.n > sizeof(text) + 64)
		raw_record(&r, REC_ENV, text, sizeof(text));
	size_t left = MAX_PLAN_BYTES - r.n - sizeof(struct plan_record);
	text[left - 1] = '\0';
	struct raw over = r;
	over.p = malloc(RAW_BYTES);
	ck_assert_ptr_nonnull(over.p);
	memcpy(over.p, r.p, RAW_BYTES);
	raw_record(&r, REC_ENV, text, left);
	ck_assert_uint_eq(r.n, MAX_PLAN_BYTES);
	RAW_WORKS(r);
	text[left - 1] = 'x';
	text[left] = '\0';
	raw_record(&over, REC_ENV, text, left + 1);
	ck_assert_uint_eq(over.n, MAX_PLAN_BYTES + 8);
	RAW_FAILS(over, "is not a plan's size");
}
END_TEST

/* Lengths that lie about the room, or that overflow if added carelessly. */
START_TEST(record_lengths)
{
	static const uint32_t bent[] = {11, 16, 1000, 0x7fffffff, 0xfffffff8, UINT32_MAX};

	for (size_t i = 0; i < ARRAY_LEN(bent); i++) {
		struct raw r = raw_new();
		raw_head(&r);
		raw_record(&r, REC_ARG, "x", 2);
		size_t at = r.n - 16 + offsetof(struct plan_record, bytes);
		memcpy(r.p + at, &bent[i], 4);
		RAW_FAILS(r, "plan: ");
	}
}
END_TEST

START_TEST(padding)
{
	struct raw r = whole();
	size_t at = sizeof(struct plan_header);
	unsigned int tried = 0;

	for (uint32_t i = 0; i < r.records; i++) {
		struct plan_record head;
		memcpy(&head, r.p + at, sizeof(head));
		size_t end = at + sizeof(head) + RECORD_PAD((size_t)head.bytes);
		for (size_t k = at + sizeof(head) + head.bytes; k < end; k++) {
			struct plan p;
			struct err e;
			r.p[k] = 1;
			CK_FAILS(raw_decode(&r, &p, &e), e, ERR_INTERNAL, "padding is not zero");
			r.p[k] = 0;
			tried++;
		}
		at = end;
	}
	ck_assert_uint_gt(tried, 20);
	RAW_WORKS(r);
}
END_TEST

static struct raw with_numbers(const struct plan_numbers *n, size_t bytes)
{
	struct raw r = raw_new();
	unsigned char room[sizeof(*n) + 16] = {0};

	memcpy(room, n, sizeof(*n));
	raw_record(&r, REC_NUMBERS, room, bytes);
	raw_string(&r, REC_CWD, "/");
	raw_string(&r, REC_HOSTNAME, "h");
	raw_string(&r, REC_STDIN, "");
	raw_string(&r, REC_ARG, "x");
	return r;
}

START_TEST(numbers)
{
	static const size_t sizes[] = {0, 8, sizeof(struct plan_numbers) - 8,
				       sizeof(struct plan_numbers) - 1,
				       sizeof(struct plan_numbers) + 8};
	struct plan_numbers n = raw_numbers();
	struct raw r = with_numbers(&n, sizeof(n));

	RAW_WORKS(r);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		r = with_numbers(&n, sizes[i]);
		RAW_FAILS(r, INVALID);
	}
	for (uint32_t bit = 0; bit < 32; bit++) {
		n = raw_numbers();
		n.flags = 1u << bit;
		r = with_numbers(&n, sizeof(n));
		if (n.flags == PLAN_EGRESS)
			RAW_FAILS(r, "without its record");
		else if (n.flags & PLAN_FLAGS_ALL)
			RAW_WORKS(r);
		else
			RAW_FAILS(r, INVALID);
	}
}
END_TEST

START_TEST(numbers_ids)
{
	static const struct {
		uint32_t flags, uid, gid, outer_uid, outer_gid;
		int good;
	} rows[] = {
		{0, 1, 1, 1, 1, 1},
		/* Root of a nested namespace, as an ordinary id inside. */
		{0, 1000, 1000, 0, 0, 1},
		{0, 0, 1000, 1000, 1000, 0},
		{0, 1000, 0, 1000, 1000, 0},
		{0, 0, 0, 0, 0, 0},
		{0, UINT32_MAX, 1000, 1000, 1000, 0},
		{0, 1000, UINT32_MAX, 1000, 1000, 0},
		{PLAN_ROOT, 1879100000, 1879100000, 1879100000, 1879100000, 1},
		/* Inside always the same, outside what the session has. */
		{PLAN_ROOT, 1879048192, 1879048192, 1879100000, 1879100000, 1},
		{PLAN_ROOT, 1879100000, 1879100000, 1000, 1000, 1},
		{PLAN_ROOT, 1879100000, 1879100000, 1, UINT32_MAX - 1, 1},
		{PLAN_ROOT, 1879100000, 1879100000, 0, 1879100000, 0},
		{PLAN_ROOT, 1879100000, 1879100000, UINT32_MAX, 1879100000, 0},
		{PLAN_ROOT, 1879100000, 1879100000, 1879100000, UINT32_MAX, 0},
		{PLAN_ROOT, 0, 1879100000, 0, 1879100000, 0},
		{PLAN_ROOT, 0, 1879100000, 1879100000, 1879100000, 0},
		{PLAN_ROOT, 1879100000, 0, 1879100000, 1879100000, 0},
		{PLAN_ROOT, UINT32_MAX, 1879100000, 1879100000, 1879100000, 0},
		{PLAN_BARE, 0, 0, 0, 0, 1},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct plan_numbers n = raw_numbers();
		n.flags = rows[i].flags;
		n.uid = rows[i].uid;
		n.gid = rows[i].gid;
		n.outer_uid = rows[i].outer_uid;
		n.outer_gid = rows[i].outer_gid;
		struct raw r = with_numbers(&n, sizeof(n));
		if (rows[i].good)
			RAW_WORKS(r);
		else
			RAW_FAILS(r, INVALID);
	}
}
END_TEST

START_TEST(numbers_terminal)
{
	for (int cols = 0; cols <= 1; cols++) {
		struct plan_numbers n = raw_numbers();
		uint32_t *side = cols ? &n.cols : &n.rows;
		*side = 65535;
		struct raw r = with_numbers(&n, sizeof(n));
		RAW_WORKS(r);
		*side = 65536;
		r = with_numbers(&n, sizeof(n));
		RAW_FAILS(r, INVALID);
	}
}
END_TEST

/* The record of `type` holds these bytes. */
static struct raw with_string(uint32_t type, const char *p, size_t bytes)
{
	struct plan_numbers n = raw_numbers();
	struct raw r = raw_new();

	raw_record(&r, REC_NUMBERS, &n, sizeof(n));
	for (uint32_t t = REC_CWD; t <= REC_STDIN; t++)
		if (t == type)
			raw_record(&r, t, p, bytes);
		else
			raw_string(&r, t, t == REC_CWD ? "/" : "h");
	if (type != REC_ARG)
		raw_string(&r, REC_ARG, "x");
	if (type >= REC_ARG)
		raw_record(&r, type, p, bytes);
	return r;
}

START_TEST(strings)
{
	static const uint32_t types[] = {REC_CWD, REC_HOSTNAME, REC_STDIN, REC_ARG, REC_ENV};

	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		struct raw r = with_string(types[i], "/a=b", 5);
		RAW_WORKS(r);
		r = with_string(types[i], "", 0);
		RAW_FAILS(r, INVALID);
		r = with_string(types[i], "/a=b", 4); /* no NUL, and the padding is one */
		RAW_FAILS(r, INVALID);
		r = with_string(types[i], "/a=bcdef", 8);
		RAW_FAILS(r, INVALID);
		r = with_string(types[i], "/a\0=b", 6);
		RAW_FAILS(r, INVALID);
		r = with_string(types[i], "/a=b\0", 6);
		RAW_FAILS(r, INVALID);
	}
}
END_TEST

START_TEST(strings_limits)
{
	static const uint32_t types[] = {REC_CWD, REC_HOSTNAME, REC_STDIN};
	char text[MAX_PLAN_PATH + 2];

	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		memset(text, '/', sizeof(text));
		text[MAX_PLAN_PATH - 1] = '\0';
		struct raw r = with_string(types[i], text, MAX_PLAN_PATH);
		RAW_WORKS(r);
		text[MAX_PLAN_PATH - 1] = '/';
		text[MAX_PLAN_PATH] = '\0';
		r = with_string(types[i], text, MAX_PLAN_PATH + 1);
		RAW_FAILS(r, INVALID);
	}
	struct raw r = with_string(REC_CWD, "relative", 9);
	RAW_FAILS(r, INVALID);
	r = with_string(REC_CWD, "", 1);
	RAW_FAILS(r, INVALID);
	r = with_string(REC_ENV, "NOVALUE", 8);
	RAW_FAILS(r, INVALID);
}
END_TEST

static struct raw with_mount(struct record_mount m, const char *dst, size_t dst_n, const char *src,
			     size_t src_n)
{
	struct raw r = raw_new();

	raw_head(&r);
	raw_mount(&r, m, dst, dst_n, src, src_n);
	raw_string(&r, REC_ARG, "x");
	return r;
}

static struct raw with_true_mount(uint32_t kind, const char *dst, const char *src, size_t src_n)
{
	struct raw r = raw_new();

	raw_head(&r);
	raw_true_mount(&r, kind, dst, src, src_n);
	raw_string(&r, REC_ARG, "x");
	return r;
}

START_TEST(mounts)
{
	static const struct {
		uint32_t kind;
		const char *dst, *src;
		size_t src_n;
		int good;
	} rows[] = {
		{MOUNT_BIND, "/d", "/s", 2, 1},      {MOUNT_BIND, "/d", "s", 1, 0},
		{MOUNT_BIND, "/d", "", 0, 0},        {MOUNT_BIND, "/d", "/s\0x", 4, 0},
		{MOUNT_BIND, "d", "/s", 2, 0},       {MOUNT_BIND, "", "/s", 2, 0},
		{MOUNT_SYMLINK, "/d", "s", 1, 1},    {MOUNT_SYMLINK, "/d", "", 0, 0},
		{MOUNT_SYMLINK, "/d", "s\0x", 3, 0}, {MOUNT_SYMLINK, "d", "s", 1, 0},
		{MOUNT_FILE, "/d", "a\0b", 3, 1},    {MOUNT_FILE, "/d", "", 0, 1},
		{MOUNT_FILE, "d", "", 0, 0},         {MOUNT_DIR, "/d", "", 0, 1},
		{MOUNT_DIR, "/d", "x", 1, 0},        {MOUNT_MASK, "/d", "", 0, 1},
		{MOUNT_MASK, "/d", "x", 1, 0},       {MOUNT_KINDS, "/d", "", 0, 0},
		{UINT32_MAX, "/d", "", 0, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct raw r =
			with_true_mount(rows[i].kind, rows[i].dst, rows[i].src, rows[i].src_n);
		if (rows[i].good)
			RAW_WORKS(r);
		else
			RAW_FAILS(r, INVALID);
	}
}
END_TEST

START_TEST(mounts_limits)
{
	static char text[MAX_PLAN_FILE + 2];

	memset(text, '/', sizeof(text));
	static const struct {
		uint32_t kind;
		size_t most;
	} rows[] = {
		{MOUNT_BIND, MAX_PLAN_PATH - 1},
		{MOUNT_SYMLINK, MAX_PLAN_PATH - 1},
		{MOUNT_FILE, MAX_PLAN_FILE},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct raw r = with_true_mount(rows[i].kind, "/d", text, rows[i].most);
		RAW_WORKS(r);
		r = with_true_mount(rows[i].kind, "/d", text, rows[i].most + 1);
		RAW_FAILS(r, INVALID);
	}
	char dst[MAX_PLAN_PATH + 1];
	memset(dst, '/', sizeof(dst));
	dst[MAX_PLAN_PATH - 1] = '\0';
	struct raw r = with_true_mount(MOUNT_DIR, dst, NULL, 0);
	RAW_WORKS(r);
	dst[MAX_PLAN_PATH - 1] = '/';
	dst[MAX_PLAN_PATH] = '\0';
	r = with_true_mount(MOUNT_DIR, dst, NULL, 0);
	RAW_FAILS(r, INVALID);
}
END_TEST

START_TEST(mounts_bits)
{
	for (uint32_t bit = 0; bit < 32; bit++) {
		struct record_mount m = {.kind = MOUNT_BIND,
					 .flags = 1u << bit,
					 .dst_len = 2,
					 .src_len = 2};
		struct raw r = with_mount(m, "/d", 3, "/s", 3);
		if (m.flags & MOUNT_FLAGS_ALL)
			RAW_WORKS(r);
		else
			RAW_FAILS(r, INVALID);
	}
}
END_TEST

/* Lengths inside the record that do not fit together, or strings without their NUL. */
START_TEST(mounts_lengths)
{
	static const struct {
		uint32_t dst_len, src_len;
		const char *dst;
		size_t dst_n;
		const char *src;
		size_t src_n;
		int good;
	} rows[] = {
		{2, 2, "/d", 3, "/s", 3, 1},
		{1, 2, "/d", 3, "/s", 3, 0},
		{3, 2, "/d", 3, "/s", 3, 0},
		{2, 1, "/d", 3, "/s", 3, 0},
		{2, 3, "/d", 3, "/s", 3, 0},
		{3, 1, "/d", 3, "/s", 3, 0},
		{1, 3, "/d", 3, "/s", 3, 0},
		{UINT32_MAX, 2, "/d", 3, "/s", 3, 0},
		{2, UINT32_MAX, "/d", 3, "/s", 3, 0},
		{UINT32_MAX, 6, "/d", 3, "/s", 3, 0},
		{0, 0, "", 0, "", 0, 0},
		{2, 2, "/dx", 3, "/s", 3, 0},
		{2, 2, "/d", 3, "/sx", 3, 0},
		{3, 2, "/\0d", 4, "/s", 3, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct record_mount m = {.kind = MOUNT_BIND,
					 .dst_len = rows[i].dst_len,
					 .src_len = rows[i].src_len};
		struct raw r =
			with_mount(m, rows[i].dst, rows[i].dst_n, rows[i].src, rows[i].src_n);
		if (rows[i].good)
			RAW_WORKS(r);
		else
			RAW_FAILS(r, INVALID);
	}
	for (size_t bytes = 0; bytes < sizeof(struct record_mount); bytes++) {
		static const struct record_mount zero;
		struct raw r = raw_new();
		raw_head(&r);
		raw_record(&r, REC_MOUNT, &zero, bytes);
		raw_string(&r, REC_ARG, "x");
		RAW_FAILS(r, INVALID);
	}
}
END_TEST

START_TEST(cgroups)
{
	static const struct {
		uint32_t role, zero;
		const char *dir;
		size_t dir_n;
		int good;
	} rows[] = {
		{CGROUP_V1_MEMORY, 0, "/c", 3, 1}, {CGROUP_V2, 0, "/c", 3, 1},
		{CGROUP_ROLES, 0, "/c", 3, 0},     {UINT32_MAX, 0, "/c", 3, 0},
		{CGROUP_V2, 1, "/c", 3, 0},        {CGROUP_V2, 0, "c", 2, 0},
		{CGROUP_V2, 0, "/c", 2, 0},        {CGROUP_V2, 0, "", 0, 0},
		{CGROUP_V2, 0, "", 1, 0},          {CGROUP_V2, 0, "/c\0d", 5, 0},
	};
	char text[MAX_PLAN_PATH + 1];
	struct raw r;

	for (size_t i = 0; i < ARRAY_LEN(rows) + 2; i++) {
		int good = 0;
		r = raw_new();
		raw_head(&r);
		if (i < ARRAY_LEN(rows)) {
			good = rows[i].good;
			raw_cgroup(&r, rows[i].role, rows[i].zero, rows[i].dir, rows[i].dir_n);
		} else { /* the longest path, and one byte more */
			size_t n = MAX_PLAN_PATH + (i - ARRAY_LEN(rows));
			good = n == MAX_PLAN_PATH;
			memset(text, '/', n);
			text[n - 1] = '\0';
			raw_cgroup(&r, CGROUP_V2, 0, text, n);
		}
		raw_string(&r, REC_ARG, "x");
		if (good)
			RAW_WORKS(r);
		else
			RAW_FAILS(r, INVALID);
	}
	for (size_t bytes = 0; bytes < 8; bytes++) {
		r = raw_new();
		raw_head(&r);
		raw_record(&r, REC_CGROUP, "\0\0\0\0\0\0\0", bytes);
		raw_string(&r, REC_ARG, "x");
		RAW_FAILS(r, INVALID);
	}
}
END_TEST

START_TEST(egress)
{
	static const uint16_t ports[] = {1, 80, 65535};
	static const struct plan_prefix prefixes[] = {
		{4, 24, {10, 1, 2}},
		{4, 0, {0}},
		{4, 32, {10, 1, 2, 255}},
		{4, 9, {10, 0x80}},
		{6, 32, {0x20, 0x01, 0x0d, 0xb8}},
		{6, 128, {0xff, [15] = 1}},
		{6, 0, {0}},
	};
	struct raw r = before_egress(PLAN_EGRESS);

	raw_egress(&r, 3, ARRAY_LEN(prefixes), ports, 3, prefixes, ARRAY_LEN(prefixes));
	RAW_WORKS(r);
	r = before_egress(PLAN_EGRESS);
	raw_egress(&r, 0, 0, NULL, 0, NULL, 0);
	RAW_WORKS(r);
	r = before_egress(PLAN_EGRESS | PLAN_ROOT | PLAN_TTY);
	raw_egress(&r, 0, 0, NULL, 0, NULL, 0);
	RAW_WORKS(r);
	/* Without the flag, with flags it cannot go with, twice, and not at all. */
	r = before_egress(0);
	raw_egress(&r, 0, 0, NULL, 0, NULL, 0);
	RAW_FAILS(r, INVALID);
	static const uint32_t others[] = {PLAN_BARE, PLAN_LANDLOCK, PLAN_SESSION};
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		r = before_egress(others[i]);
		RAW_WORKS(r);
		r = before_egress(PLAN_EGRESS | others[i]);
		raw_egress(&r, 0, 0, NULL, 0, NULL, 0);
		RAW_FAILS(r, INVALID);
	}
	r = before_egress(PLAN_EGRESS);
	raw_egress(&r, 0, 0, NULL, 0, NULL, 0);
	raw_egress(&r, 0, 0, NULL, 0, NULL, 0);
	RAW_FAILS(r, "too many records");
	r = before_egress(PLAN_EGRESS);
	RAW_FAILS(r, "without its record");
}
END_TEST

START_TEST(egress_bent)
{
	static const struct {
		uint16_t ports[2];
		size_t n;
	} ports[] = {{{0}, 1}, {{80, 80}, 2}, {{81, 80}, 2}, {{0, 80}, 2}};
	static const struct plan_prefix prefixes[] = {
		{0, 0, {0}},
		{5, 0, {0}},
		{4, 33, {10, 1, 2}},
		{6, 129, {0xff}},
		{4, 24, {10, 1, 2, 1}},
		{4, 8, {10, [4] = 1}},
		{4, 32, {10, [15] = 1}},
		{6, 127, {[15] = 1}},
		{6, 0, {0x80}},
		{4, 9, {10, 0x40}},
	};
	struct raw r;

	for (size_t i = 0; i < ARRAY_LEN(ports); i++) {
		r = before_egress(PLAN_EGRESS);
		raw_egress(&r, (uint32_t)ports[i].n, 0, ports[i].ports, ports[i].n, NULL, 0);
		RAW_FAILS(r, INVALID);
	}
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		r = before_egress(PLAN_EGRESS);
		raw_egress(&r, 0, 1, NULL, 0, &prefixes[i], 1);
		RAW_FAILS(r, INVALID);
	}
	/* Counts that lie. */
	static const uint16_t two[] = {80, 81};
	static const uint32_t lies[][2] = {{1, 0},
					   {3, 0},
					   {2, 1},
					   {UINT32_MAX, 0},
					   {2, UINT32_MAX}};
	for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
		r = before_egress(PLAN_EGRESS);
		raw_egress(&r, lies[i][0], lies[i][1], two, 2, NULL, 0);
		RAW_FAILS(r, INVALID);
	}
	for (size_t n = 0; n < sizeof(struct record_egress); n++) {
		r = before_egress(PLAN_EGRESS);
		raw_record(&r, REC_EGRESS, "\0\0\0\0\0\0\0", n);
		RAW_FAILS(r, INVALID);
	}
}
END_TEST

START_TEST(egress_limits)
{
	static struct plan_prefix prefixes[MAX_PLAN_PREFIXES + 1];
	uint16_t ports[MAX_PLAN_PORTS + 1];

	for (size_t i = 0; i < ARRAY_LEN(ports); i++)
		ports[i] = (uint16_t)(i + 1);
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		prefixes[i] = (struct plan_prefix){4, 32, {10, 0, (uint8_t)(i / 256), (uint8_t)i}};
	for (uint32_t over = 0; over < 2; over++) {
		struct raw r = before_egress(PLAN_EGRESS);
		raw_egress(&r, MAX_PLAN_PORTS + over, 0, ports, MAX_PLAN_PORTS + over, NULL, 0);
		if (over)
			RAW_FAILS(r, INVALID);
		else
			RAW_WORKS(r);
		r = before_egress(PLAN_EGRESS);
		raw_egress(&r, 0, MAX_PLAN_PREFIXES + over, NULL, 0, prefixes,
			   MAX_PLAN_PREFIXES + over);
		if (over)
			RAW_FAILS(r, INVALID);
		else
			RAW_WORKS(r);
	}
}
END_TEST

/* On failure nothing is handed out. */
START_TEST(failure_leaves_result)
{
	struct plan p;
	struct err e = {0};
	struct raw r = whole();

	memset(&p, 0x5a, sizeof(p));
	struct plan was = p;
	raw_string(&r, REC_CWD, "/");
	raw_close(&r);
	ck_assert_int_eq(plan_decode(r.p, r.n, &p, &e), -1);
	ck_assert_int_eq(memcmp(&p, &was, sizeof(p)), 0);
	free(r.p);
}
END_TEST

/* The second part: decodes a copy of exactly that many bytes. */
static int more_decode(struct raw *r, uint32_t magic, size_t *ret_mounts, struct err *e)
{
	struct plan p = {.mount_count = 0};
	unsigned char *copy = malloc(r->n);

	raw_close(r);
	memcpy(r->p, &magic, sizeof(magic));
	ck_assert_ptr_nonnull(copy);
	memcpy(copy, r->p, r->n);
	int rc = plan_decode_more(copy, r->n, &p, e);
	*ret_mounts = p.mount_count;
	if (rc == 0)
		plan_release(&p);
	free(copy);
	free(r->p);
	return rc;
}

START_TEST(more_is_mounts)
{
	for (size_t n = 0; n <= 3; n++) {
		struct raw r = raw_new();
		struct err e;
		size_t count = 99;
		for (size_t i = 0; i < n; i++)
			raw_true_mount(&r, i == 1 ? MOUNT_MASK : MOUNT_PIN, "/a", "", 0);
		CK_WORKS(more_decode(&r, PLAN_MORE_MAGIC, &count, &e), e);
		ck_assert_uint_eq(count, n);
	}
}
END_TEST

START_TEST(more_of_anything_else)
{
	struct plan_numbers n = raw_numbers();
	struct raw r = raw_new();
	struct err e;
	size_t count = 0;

	raw_true_mount(&r, MOUNT_PIN, "/a", "", 0);
	switch ((enum record_type)_i) {
	case REC_NUMBERS:
		raw_record(&r, REC_NUMBERS, &n, sizeof(n));
		break;
	case REC_CGROUP:
		raw_cgroup(&r, CGROUP_V2, 0, "/sys/fs/cgroup/x", 17);
		break;
	case REC_MOUNT:
		raw_true_mount(&r, MOUNT_KINDS, "/a", "", 0);
		break;
	case REC_CWD:
	case REC_HOSTNAME:
	case REC_STDIN:
	case REC_ARG:
	case REC_ENV:
	case REC_EGRESS:
	case REC_TYPES:
		raw_string(&r, (uint32_t)_i, "/A=b");
		break;
	}
	CK_FAILS(more_decode(&r, PLAN_MORE_MAGIC, &count, &e), e, ERR_INTERNAL,
		 _i == REC_MOUNT   ? "invalid record"
		 : _i == REC_TYPES ? "unknown record type"
				   : "does not belong into the second part");
}
END_TEST

/* Neither part is taken for the other. */
START_TEST(more_and_plan)
{
	struct raw r = raw_new();
	struct plan p;
	struct err e;
	size_t count = 0;

	raw_true_mount(&r, MOUNT_PIN, "/a", "", 0);
	CK_FAILS(more_decode(&r, PLAN_MAGIC, &count, &e), e, ERR_INTERNAL, "wrong magic");
	r = raw_new();
	raw_head(&r);
	raw_string(&r, REC_ARG, "true");
	raw_close(&r);
	CK_WORKS(raw_decode(&r, &p, &e), e);
	CK_FAILS(plan_decode_more(r.p, r.n, &p, &e), e, ERR_INTERNAL, "wrong magic");
	uint32_t magic = PLAN_MORE_MAGIC;
	memcpy(r.p, &magic, sizeof(magic));
	CK_FAILS(plan_decode(r.p, r.n, &p, &e), e, ERR_INTERNAL, "wrong magic");
	CK_FAILS(plan_decode_more(r.p, r.n, &p, &e), e, ERR_INTERNAL, "does not belong");
	free(r.p);
}
END_TEST

START_TEST(more_than_fits)
{
	for (size_t over = 0; over < 2; over++) {
		struct raw r = raw_new();
		struct err e;
		size_t count = 0;
		for (size_t i = 0; i < MAX_PLAN_MOUNTS + over; i++)
			raw_true_mount(&r, MOUNT_PIN, "/a", "", 0);
		if (over)
			CK_FAILS(more_decode(&r, PLAN_MORE_MAGIC, &count, &e), e, ERR_INTERNAL,
				 "too many records");
		else
			CK_WORKS(more_decode(&r, PLAN_MORE_MAGIC, &count, &e), e);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("plan decode");
	TCase *c = tcase_create("all");

	tcase_set_timeout(c, 60);
	tcase_add_test(c, header);
	tcase_add_test(c, cut_anywhere);
	tcase_add_test(c, tail_anywhere);
	tcase_add_test(c, bytes_bent);
	tcase_add_test(c, record_types);
	tcase_add_test(c, record_order);
	tcase_add_test(c, record_counts);
	tcase_add_test(c, record_lengths);
	tcase_add_test(c, limits_of_counts);
	tcase_add_test(c, limit_of_size);
	tcase_add_test(c, padding);
	tcase_add_test(c, numbers);
	tcase_add_test(c, numbers_ids);
	tcase_add_test(c, numbers_terminal);
	tcase_add_test(c, strings);
	tcase_add_test(c, strings_limits);
	tcase_add_test(c, mounts);
	tcase_add_test(c, mounts_limits);
	tcase_add_test(c, mounts_bits);
	tcase_add_test(c, mounts_lengths);
	tcase_add_test(c, cgroups);
	tcase_add_test(c, egress);
	tcase_add_test(c, egress_bent);
	tcase_add_test(c, egress_limits);
	tcase_add_test(c, failure_leaves_result);
	tcase_add_test(c, more_is_mounts);
	tcase_add_loop_test(c, more_of_anything_else, 0, REC_TYPES + 1);
	tcase_add_test(c, more_and_plan);
	tcase_add_test(c, more_than_fits);
	suite_add_tcase(s, c);
	return suite_run(s);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compiled form of policies: what goes in comes out, everything else is
 * refused; and how it is merged with options.
 */
#include "policy/compiled.h"

#include "base/base.h"
#include "egress/set.h"
#include "policy/apply.h"
#include "policy/compiled_record.h"
#include "policy/limits.h"
#include "test_base_suite.h"

static struct compiled sample(void)
{
	static struct path_rule rules[] = {
		{.path = "/data",
		 .origin = "user /p:1",
		 .access = ACCESS_WRITE,
		 .layer = LAYER_USER},
		{.path = "**/*.pem",
		 .origin = "project /q:2",
		 .access = ACCESS_HIDE,
		 .layer = LAYER_PROJECT,
		 .pattern = true,
		 .narrow = true},
	};
	static struct file_env env[] = {{.text = "CI"},
					{.text = "CARGO_HOME=/x", .if_there = true},
					{.text = "EMPTY="}};
	static struct host_rule hosts[] =
		{{.text = "*.a.com", .origin = "user /p:2", .list = EGRESS_LIST_ALLOW},
		 {.text = "*", .origin = "", .list = EGRESS_LIST_DENY},
		 {.text = "80", .origin = "user /p:3", .list = EGRESS_LIST_LOCAL}};
	static const char *notes[] = {"not taken"};
	static struct compiled_file files[] = {
		{.path = "/p", .layer = LAYER_USER, .trusted = true, .sha256 = {1, 2, 3}},
		{.path = "/q", .layer = LAYER_PROJECT},
	};
	struct compiled c = {
		.key = "the key",
		.key_bytes = 7,
		.mode = MODE_READ_ONLY,
		.writes = WRITES_OVERLAY,
		.narrowed = 1u << LIMIT_WALL,
		.pseudonyms = true,
		.audit_kept_ms = 86400000,
		.rules = rules,
		.rule_count = ARRAY_LEN(rules),
		.env = env,
		.env_count = ARRAY_LEN(env),
		.hosts = hosts,
		.host_count = ARRAY_LEN(hosts),
		.files = files,
		.file_count = ARRAY_LEN(files),
		.notes = notes,
		.note_count = ARRAY_LEN(notes),
	};

	for (size_t i = 0; i < LIMIT_SETTINGS; i++)
		c.limit[i] = LIMIT_UNSET;
	c.limit[LIMIT_WALL] = 60000;
	c.limit[LIMIT_GRACE] = 1;
	c.limit[LIMIT_PIDS] = LIMIT_NONE;
	return c;
}

static struct buf encode(const struct compiled *c)
{
	struct buf out = BUF_INIT(MAX_COMPILED_BYTES);
	struct err e;

	CK_WORKS(compiled_encode(c, &out, &e), e);
	return out;
}

static void rehash(struct buf *b)
{
	struct compiled_header h;

	memcpy(&h, b->p, sizeof(h));
	h.total = (uint32_t)b->n;
	sha256(b->p + sizeof(h), b->n - sizeof(h), h.sha256);
	memcpy(b->p, &h, sizeof(h));
}

START_TEST(round_trip)
{
	struct compiled c = sample(), d;
	AUTO_BUF bytes = encode(&c);
	struct err e;

	CK_WORKS(compiled_decode(bytes.p, bytes.n, &d, &e), e);
	ck_assert(!d.failed);
	ck_assert_uint_eq(d.key_bytes, 7);
	ck_assert_mem_eq(d.key, "the key", 7);
	ck_assert_int_eq(d.mode, MODE_READ_ONLY);
	ck_assert_int_eq(d.writes, WRITES_OVERLAY);
	ck_assert(d.pseudonyms);
	ck_assert_uint_eq(d.audit_kept_ms, 86400000);
	ck_assert_uint_eq(d.narrowed, 1u << LIMIT_WALL);
	ck_assert_mem_eq(d.limit, c.limit, sizeof(c.limit));
	ck_assert_uint_eq(d.rule_count, 2);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_str_eq(d.rules[i].path, c.rules[i].path);
		ck_assert_str_eq(d.rules[i].origin, c.rules[i].origin);
		ck_assert_uint_eq(d.rules[i].access, c.rules[i].access);
		ck_assert_uint_eq(d.rules[i].layer, c.rules[i].layer);
		ck_assert(d.rules[i].pattern == c.rules[i].pattern);
		ck_assert(d.rules[i].narrow == c.rules[i].narrow);
		ck_assert_str_eq(d.files[i].path, c.files[i].path);
		ck_assert_uint_eq(d.files[i].layer, c.files[i].layer);
		ck_assert(d.files[i].trusted == c.files[i].trusted);
		ck_assert_mem_eq(d.files[i].sha256, c.files[i].sha256, SHA256_BYTES);
	}
	ck_assert_uint_eq(d.host_count, 3);
	ck_assert_str_eq(d.hosts[0].text, "*.a.com");
	ck_assert_str_eq(d.hosts[0].origin, "user /p:2");
	ck_assert_uint_eq(d.hosts[1].list, EGRESS_LIST_DENY);
	ck_assert_uint_eq(d.env_count, 3);
	ck_assert_str_eq(d.env[1].text, "CARGO_HOME=/x");
	ck_assert(d.env[1].if_there && !d.env[0].if_there);
	ck_assert_uint_eq(d.note_count, 1);
	ck_assert_str_eq(d.notes[0], "not taken");
	compiled_release(&d);
}
END_TEST

START_TEST(errors_travel)
{
	struct compiled c = sample(), d;
	struct err e;

	c.failed = true;
	(void)err_set(&c.error, ERR_CONFIG_INVALID, "/p:3:1: bad");
	(void)err_hint(&c.error, "mend it");
	AUTO_BUF bytes = encode(&c);
	CK_WORKS(compiled_decode(bytes.p, bytes.n, &d, &e), e);
	ck_assert(d.failed);
	ck_assert_int_eq(d.error.code, ERR_CONFIG_INVALID);
	ck_assert_str_eq(d.error.msg, "/p:3:1: bad");
	ck_assert_str_eq(d.error.hint, "mend it");
	ck_assert_uint_eq(d.rule_count, 0);
	compiled_release(&d);
}
END_TEST

/* Each byte cut off, each byte altered. */
START_TEST(damage)
{
	struct compiled c = sample(), d;
	AUTO_BUF bytes = encode(&c);
	struct err e;

	for (size_t n = 0; n < bytes.n; n++)
		CK_FAILS(compiled_decode(bytes.p, n, &d, &e), e, ERR_INTERNAL, "compiled policy");
	for (size_t i = 0; i < bytes.n; i++) {
		if (i >= 12 && i < 16)
			continue; /* the count of records is checked against what is there */
		bytes.p[i] ^= 0x20;
		CK_FAILS(compiled_decode(bytes.p, bytes.n, &d, &e), e, ERR_INTERNAL,
			 "compiled policy");
		bytes.p[i] ^= 0x20;
	}
}
END_TEST

/* With a hash that fits: each byte set to each of some values is refused or harmless. */
START_TEST(forged)
{
	static const unsigned char values[] = {0, 1, 2, 7, 0x41, 0x7f, 0x80, 0xff};
	struct compiled c = sample(), d;
	AUTO_BUF bytes = encode(&c);
	size_t refused = 0;
	struct err e;

	for (size_t i = sizeof(struct compiled_header) - SHA256_BYTES - 4; i < bytes.n; i++) {
		if (i == 16)
			i = sizeof(struct compiled_header);
		for (size_t k = 0; k < ARRAY_LEN(values); k++) {
			char was = bytes.p[i];
			bytes.p[i] = (char)values[k];
			rehash(&bytes);
			if (compiled_decode(bytes.p, bytes.n, &d, &e) < 0) {
				refused++;
			} else {
				for (size_t r = 0; r < d.rule_count; r++)
					ck_assert(d.rules[r].pattern || d.rules[r].path[0] == '/');
				compiled_release(&d);
			}
			bytes.p[i] = was;
		}
	}
	ck_assert_uint_gt(refused, 500);
}
END_TEST

static void refuses(const struct compiled *c)
{
	AUTO_BUF bytes = encode(c);
	struct compiled d;
	struct err e;

	CK_FAILS(compiled_decode(bytes.p, bytes.n, &d, &e), e, ERR_INTERNAL, "not valid");
}

START_TEST(values)
{
	struct compiled c = sample();

	c.rules[0].narrow = true; /* a write of a file that can only narrow */
	refuses(&c);
	c = sample();
	c.rules[0].narrow = false;
	c.rules[0].path = "data";
	refuses(&c);
	c.rules[0].path = "/data";
	c.rules[1].path = "*.pem";
	refuses(&c);
	c.rules[1].path = "**/*.pem";
	c.rules[1].narrow = false;
	c.rules[1].access = ACCESS_WRITE; /* a pattern to write */
	refuses(&c);
	c.rules[1].access = ACCESS_HIDE;
	c.mode = MODE_FULL_ACCESS + 1;
	refuses(&c);
	c.mode = MODE_UNSET;
	c.narrowed = 1u << LIMIT_SETTINGS;
	refuses(&c);
	c.narrowed = 1u << LIMIT_CPUS; /* narrowed without a value */
	refuses(&c);
	c.narrowed = 0;
	c.env[0].text = "=x";
	refuses(&c);
	c.env[0] = (struct file_env){.text = "CI", .if_there = true};
	refuses(&c);
	c.env[0].if_there = false;
	c.hosts[1].list = EGRESS_LIST_ALLOW; /* all of it at once */
	refuses(&c);
	c.hosts[1].list = EGRESS_LISTS;
	refuses(&c);
	c.hosts[1].list = EGRESS_LIST_DENY;
	c.hosts[0].text = "a..com";
	refuses(&c);
	c.hosts[0].text = "*.a.com";
	c.files[0].path = "p";
	refuses(&c);
	c.files[0].path = "/p";
}
END_TEST

/* At the limit, and one over it. */
START_TEST(limits)
{
	static struct path_rule many[MAX_COMPILED_RULES];
	struct compiled c = sample(), d;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		many[i] = (struct path_rule){.path = "/p", .origin = ""};
	c.rules = many;
	c.rule_count = ARRAY_LEN(many);
	c.env_count = c.host_count = c.note_count = 0;
	AUTO_BUF bytes = encode(&c);
	CK_WORKS(compiled_decode(bytes.p, bytes.n, &d, &e), e);
	ck_assert_uint_eq(d.rule_count, MAX_COMPILED_RULES);
	compiled_release(&d);
	/* One record more of the last kind. */
	size_t one = sizeof(struct compiled_record) + sizeof(struct record_rule) + 4;
	AUTO_BUF more = BUF_INIT(MAX_COMPILED_BYTES);
	(void)buf_add(&more, bytes.p, bytes.n);
	(void)buf_add(&more, bytes.p + bytes.n - one, one);
	struct compiled_header h;
	memcpy(&h, more.p, sizeof(h));
	h.records++;
	memcpy(more.p, &h, sizeof(h));
	rehash(&more);
	CK_FAILS(compiled_decode(more.p, more.n, &d, &e), e, ERR_INTERNAL, "too many");
}
END_TEST

START_TEST(apply)
{
	struct compiled c = sample();
	struct request req = request_of_nothing();

	policy_apply(&req, NULL);
	ck_assert_int_eq(req.mode, MODE_WORKSPACE_WRITE);
	req.mode = MODE_UNSET;
	policy_apply(&req, NULL);
	ck_assert_int_eq(req.mode, MODE_WORKSPACE_WRITE);
	ck_assert_uint_eq(req.rule_count, 0);
	req.mode = MODE_UNSET;
	policy_apply(&req, &c);
	ck_assert_int_eq(req.mode, MODE_READ_ONLY);
	ck_assert_uint_eq(req.wall_ms, 60000);
	ck_assert_uint_eq(req.grace_ms, 1);
	ck_assert_uint_eq(req.pids, LIMIT_NONE);
	ck_assert_uint_eq(req.memory_bytes, LIMIT_UNSET);
	ck_assert_uint_eq(req.narrowed, 1u << LIMIT_WALL);
	ck_assert_uint_eq(req.rule_count, 2);
	ck_assert_uint_eq(req.file_env_count, 3);
	/* Options win, and what they say is no narrowing. */
	req = request_of_nothing();
	req.wall_ms = 120000;
	policy_apply(&req, &c);
	ck_assert_int_eq(req.mode, MODE_WORKSPACE_WRITE);
	ck_assert_uint_eq(req.wall_ms, 120000);
	ck_assert_uint_eq(req.narrowed, 0);
}
END_TEST

/* What can only narrow holds below the default, and never above it. */
START_TEST(narrowed)
{
	char *env[] = {NULL};
	struct caller who = {.home = "/home/me", .cwd = "/", .env = env, .ram_bytes = 1ull << 33};
	struct host_limits host = {.memory = true,
				   .pids = true,
				   .cpu = true,
				   .max_memory = LIMIT_NONE,
				   .max_pids = LIMIT_NONE,
				   .max_cpus_milli = LIMIT_NONE};
	struct request req = request_of_nothing();
	struct limits l;
	struct err e;

	req.wall_ms = 60000;
	req.pids = 9000;
	req.memory_bytes = LIMIT_NONE;
	req.cpus_milli = 500;
	req.grace_ms = 60000;
	CK_WORKS(limits_decide(&req, &who, &host, &l, &e), e);
	ck_assert_uint_eq(l.value[LIMIT_PIDS], 9000);
	ck_assert_uint_eq(l.grace_ms, 60000);
	req.narrowed = (1u << LIMIT_SETTINGS) - 1;
	CK_WORKS(limits_decide(&req, &who, &host, &l, &e), e);
	ck_assert_uint_eq(l.value[LIMIT_WALL], 60000);
	ck_assert(l.asked[LIMIT_WALL]);
	ck_assert_uint_eq(l.value[LIMIT_PIDS], 8192);
	ck_assert(!l.asked[LIMIT_PIDS]);
	ck_assert_uint_eq(l.value[LIMIT_MEMORY], (1ull << 33) / 4 * 3);
	ck_assert_uint_eq(l.value[LIMIT_CPUS], 500);
	ck_assert_uint_eq(l.value[LIMIT_DISK], 1ull << 34);
	ck_assert_uint_eq(l.grace_ms, 5000);
	req.grace_ms = 10;
	CK_WORKS(limits_decide(&req, &who, &host, &l, &e), e);
	ck_assert_uint_eq(l.grace_ms, 10);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("compiled");
	TCase *c = tcase_create("compiled");

	tcase_add_test(c, round_trip);
	tcase_add_test(c, errors_travel);
	tcase_add_test(c, damage);
	tcase_add_test(c, forged);
	tcase_add_test(c, values);
	tcase_add_test(c, limits);
	tcase_add_test(c, apply);
	tcase_add_test(c, narrowed);
	suite_add_tcase(s, c);
	return suite_run(s);
}

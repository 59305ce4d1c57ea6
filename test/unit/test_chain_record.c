/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines read back, and what is not read: libsodium and the writer's own SHA-256 agree.
 */
#include "chain/record.h"

#include <sodium.h>

#include "audit/line.h"
#include "chain/filter.h"
#include "test_base_suite.h"

static char text[8192];
static size_t text_n;

/* A line that audit_line() makes. */
static void make(const char *argument)
{
	struct audit_chain c = {.seq = 6, .now_ms = 1800000000000, .actor = "somebody"};
	struct buf out = BUF_INIT(sizeof(text) - 1);
	char *argv[] = {(char *)(uintptr_t) "echo", (char *)(uintptr_t)argument, NULL};
	const struct audit_field f[] = {{.key = "argv", .kind = AUDIT_ARGV, .argv = argv},
					{.key = "source", .kind = AUDIT_PATH, .text = "/src/a"},
					{.key = "host",
					 .kind = AUDIT_HOST,
					 .text = "a.example:443"}};
	const struct audit_event v = {.event = "call.start", .data = f, .data_count = 3};
	struct err e = {0};

	memcpy(c.hash, audit_no_hash, sizeof(c.hash));
	ck_assert_int_eq(audit_line(&c, &v, &out, &e), 0);
	text_n = out.n - 1;
	memcpy(text, out.p, text_n);
	text[text_n] = '\0';
	buf_release(&out);
}

static struct record parsed(void)
{
	struct record r;
	struct err e = {0};

	CK_WORKS(record_parse(text, text_n, &r, &e), e);
	return r;
}

START_TEST(read_back)
{
	make("\x1b[31m \xff \"quoted\"");
	struct record r = parsed();
	ck_assert_uint_eq(r.seq, 7);
	ck_assert_str_eq(r.event, "call.start");
	ck_assert_str_eq(r.actor, "somebody");
	ck_assert_ptr_null(r.session);
	ck_assert_str_eq(r.prev, audit_no_hash);
	ck_assert(record_hash_fits(&r, text));
	text[60] ^= 1;
	ck_assert(!record_hash_fits(&r, text));
	record_release(&r);
}
END_TEST

START_TEST(two_implementations)
{
	unsigned char bytes[1024];
	unsigned char ours[SHA256_BYTES];
	unsigned char theirs[crypto_hash_sha256_BYTES];

	(void)suite_seed();
	for (size_t n = 0; n <= sizeof(bytes); n++) {
		for (size_t i = 0; i < n; i++)
			bytes[i] = (unsigned char)random();
		sha256(bytes, n, ours);
		ck_assert_int_eq(crypto_hash_sha256(theirs, bytes, n), 0);
		ck_assert(memcmp(ours, theirs, sizeof(ours)) == 0);
	}
}
END_TEST

START_TEST(not_read)
{
	static const struct {
		const char *from, *to, *why;
	} rows[] = {
		{"\"rule\":null", "\"rule\":7", "`rule` is missing or of another type"},
		{"\"rule\":null", "\"role\":null", "`rule` is missing or of another type"},
		{"\"rule\":null,", "", "has not the keys"},
		{"\"rule\":null", "\"rule\":null,\"more\":1", "has not the keys"},
		{"\"rule\":null", "\"rule\":null,\"rule\":null", "no JSON"},
		{"\"event\":\"call", "\"event\":\"\x1b", "no text that sandglass writes"},
		{"\"event\":\"call", "\"event\":\"\xff", "no text that sandglass writes"},
		{"\"event\":\"call", "\"event\":\"\xe2\x80\xae", "no text that sandglass writes"},
		{"{\"argv\"", "{\"x\":[[[[[[[[[[]]]]]]]]]],\"argv\"", "nested too deeply"},
		{"\"seq\":7", "\"seq\":07", "no JSON"},
		{"\"seq\":7", "\"seq\":-7", "does not begin with `seq`"},
		{"\"seq\":7", " \"seq\":7", "does not begin with `seq`"},
		{"\"data\":{", "\"data\":[{", "no JSON"},
		{"\"prev\":\"0", "\"prev\":\"g", "`prev` is missing or of another type"},
		{"\"prev\":\"0", "\"prev\":\"", "`prev` is missing or of another type"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char changed[sizeof(text) + 64];
		struct record r;
		struct err e = {0};

		make("x");
		char *at = strstr(text, rows[i].from);
		ck_assert_ptr_nonnull(at);
		int n = snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(at - text), text,
				 rows[i].to, at + strlen(rows[i].from));
		CK_FAILS(record_parse(changed, (size_t)n, &r, &e), e, ERR_CONFIG_INVALID,
			 rows[i].why);
	}
}
END_TEST

START_TEST(limit_of_a_line)
{
	char *line = malloc(MAX_AUDIT_LINE + 1);
	struct record r;
	struct err e = {0};

	ck_assert_ptr_nonnull(line);
	memset(line, ' ', MAX_AUDIT_LINE);
	CK_FAILS(record_parse(line, MAX_AUDIT_LINE, &r, &e), e, ERR_CONFIG_INVALID, "longer than");
	CK_FAILS(record_parse(line, MAX_AUDIT_LINE - 1, &r, &e), e, ERR_CONFIG_INVALID, "no JSON");
	free(line);
}
END_TEST

START_TEST(filters)
{
	make("x");
	struct record r = parsed();
	static const struct {
		struct filter f;
		bool fits;
	} rows[] = {
		{{.event = NULL}, true},
		{{.event = "call"}, true},
		{{.event = "call."}, true},
		{{.event = "call.start"}, true},
		{{.event = "call.sta"}, false},
		{{.actor = "somebody"}, true},
		{{.actor = "some"}, false},
		{{.host = "a.example"}, true},
		{{.host = "a.example:443"}, true},
		{{.host = "example"}, false},
		{{.path = "/src"}, true},
		{{.path = "/src/"}, true},
		{{.path = "/"}, true},
		{{.path = "/sr"}, false},
		{{.path = "/src/a/b"}, false},
		{{.session = "x"}, false},
		{{.decision = "deny"}, false},
		{{.since = "2027-01-15"}, true},
		{{.since = "2027-01-16"}, false},
		{{.until = "2027-01-15"}, true},
		{{.until = "2027-01-14"}, false},
		{{.until = "2027-01-15T08"}, true},
		{{.until = "2027-01-15T07"}, false},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ck_assert_msg(filter_fits(&rows[i].f, &r) == rows[i].fits, "row %zu", i);
	record_release(&r);
}
END_TEST

START_TEST(times)
{
	static const char *const good[][2] = {
		{"2026-01-31", "2026-01-31"},
		{"2026-01-31T12:30Z", "2026-01-31T12:30"},
		{"2026-01-31T12:30:15.123", "2026-01-31T12:30:15.123"},
		{"1h", "2027-01-15T07:00:00.000Z"},
	};
	static const char *const bad[] =
		{"",      "Z", "2026", "yesterday", "2026-01-31T12:3", "1", "2026-01-31 12:30",
		 "40000d"};
	char when[WHEN_TEXT];
	struct err e = {0};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		CK_WORKS(filter_when(good[i][0], 1800000000000, when, &e), e);
		ck_assert_str_eq(when, good[i][1]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CK_FAILS(filter_when(bad[i], 1800000000000, when, &e), e, ERR_CONFIG_INVALID,
			 "is no time");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("chain-record");
	TCase *tc = tcase_create("record");

	tcase_add_test(tc, read_back);
	tcase_add_test(tc, two_implementations);
	tcase_add_test(tc, not_read);
	tcase_add_test(tc, limit_of_a_line);
	tcase_add_test(tc, filters);
	tcase_add_test(tc, times);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

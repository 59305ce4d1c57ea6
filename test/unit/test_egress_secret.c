/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests of egress/secret.
 */
#include "egress/secret.h"

#include "base/base.h"
#include "base/base64.h"
#include "base/sha256.h"
#include "test_base_suite.h"

#define PLACEHOLDER "sandglass-secret-one-0123456789abcdef"

static void fill(struct egress_secrets *s)
{
	struct err e = {0};

	CK_WORKS(egress_secrets_add(s, "one", PLACEHOLDER, "Authorization", "Bearer hidden", false,
				    &e),
		 e);
	CK_WORKS(egress_secrets_raw(s, "hidden", &e), e);
	CK_WORKS(egress_secrets_host(s, "api.example.com", &e), e);
	CK_WORKS(egress_secrets_host(s, "*.below.example.com:8443", &e), e);
	CK_WORKS(egress_secrets_add(s, "two", "sandglass-secret-two-fedcba", "X-Key", "k", true,
				    &e),
		 e);
	CK_WORKS(egress_secrets_host(s, "http://plain.example.com", &e), e);
}

START_TEST(where_it_goes)
{
	static const struct {
		const char *host;
		uint16_t port;
		bool tls;
		const char *field, *value;
		const char *name; /* NULL: nowhere */
	} rows[] = {
		{"api.example.com", 443, true, "Authorization", "Bearer " PLACEHOLDER, "one"},
		{"api.example.com", 443, true, "authorization", "token " PLACEHOLDER, "one"},
		{"api.example.com", 443, true, "AUTHORIZATION", PLACEHOLDER, "one"},
		{"x.below.example.com", 8443, true, "Authorization", PLACEHOLDER, "one"},
		{"api.example.com", 443, false, "Authorization", PLACEHOLDER, NULL},
		{"api.example.com", 8443, true, "Authorization", PLACEHOLDER, NULL},
		{"evil.example.com", 443, true, "Authorization", PLACEHOLDER, NULL},
		{"api.example.com.evil.com", 443, true, "Authorization", PLACEHOLDER, NULL},
		{"api.example.com", 443, true, "X-Other", PLACEHOLDER, NULL},
		{"api.example.com", 443, true, "Authorizatio", PLACEHOLDER, NULL},
		{"api.example.com", 443, true, "Authorization", "Bearer x", NULL},
		{"api.example.com", 443, true, "Authorization", "", NULL},
		{"plain.example.com", 80, false, "X-Key", "sandglass-secret-two-fedcba", "two"},
		{"plain.example.com", 80, true, "X-Key", "sandglass-secret-two-fedcba", "two"},
		{"plain.example.com", 443, true, "X-Key", "sandglass-secret-two-fedcba", NULL},
		{"api.example.com", 443, true, "X-Key", "sandglass-secret-two-fedcba", NULL},
	};
	AUTO_EGRESS_SECRETS s = {.n = 0};

	fill(&s);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct host h;
		ck_assert(host_read(rows[i].host, strlen(rows[i].host), &h) == HOST_GOOD);
		const struct egress_secret *r =
			egress_secret_replace(&s,
					      &(struct egress_leg){&h, rows[i].port, rows[i].tls},
					      rows[i].field, strlen(rows[i].field), rows[i].value,
					      strlen(rows[i].value));
		ck_assert_msg(!r == !rows[i].name, "row %zu", i);
		if (r)
			ck_assert_str_eq(r->name, rows[i].name);
	}
}
END_TEST

START_TEST(inside_basic)
{
	static const char *const users[] = {"", "u:", "us:", "use:", "user:"};
	AUTO_EGRESS_SECRETS s = {.n = 0};
	const struct host h = {.kind = HOST_NAME, .text = "api.example.com"};
	const struct egress_leg to = {&h, 443, true};

	fill(&s);
	for (size_t i = 0; i < ARRAY_LEN(users); i++) {
		AUTO_BUF text = BUF_INIT(256);
		AUTO_BUF header = BUF_INIT(512);
		ck_assert(buf_printf(&text, "%s%s%s", users[i], PLACEHOLDER, users[i]) == 0);
		ck_assert(buf_str(&header, "Basic ") == 0);
		ck_assert(base64_encode(&header, text.p, text.n) == 0);
		ck_assert_ptr_nonnull(
			egress_secret_replace(&s, &to, "Authorization", 13, header.p, header.n));
		/* Only where it says so. */
		header.p[0] = 'X';
		ck_assert_ptr_null(
			egress_secret_replace(&s, &to, "Authorization", 13, header.p, header.n));
	}
}
END_TEST

START_TEST(wrong_ones)
{
	static const struct {
		const char *name, *placeholder, *field, *value, *msg;
	} wrongs[] = {
		{"", PLACEHOLDER, "X", "v", "a name has 1"},
		{"n", "short", "X", "v", "16 to 128"},
		{"n", "with a blank in the middle", "X", "v", "visible"},
		{"n", PLACEHOLDER, "", "v", "1 to 64"},
		{"n", PLACEHOLDER, "X Y", "v", "letters, digits"},
		{"n", PLACEHOLDER, "X:", "v", "letters, digits"},
		{"n", PLACEHOLDER, "hOST", "v", "what a request is"},
		{"n", PLACEHOLDER, "Transfer-Encoding", "v", "what a request is"},
		{"n", PLACEHOLDER, "X", "", "cannot stand in a header"},
		{"n", PLACEHOLDER, "X", "hidden\r\nX: y", "cannot stand in a header"},
		{"n", PLACEHOLDER, "X", "hidden\n", "cannot stand in a header"},
		{"n", PLACEHOLDER, "X", " hidden", "cannot stand in a header"},
	};
	AUTO_EGRESS_SECRETS s = {.n = 0};
	struct err e = {0};

	for (size_t i = 0; i < ARRAY_LEN(wrongs); i++) {
		CK_FAILS(egress_secrets_add(&s, wrongs[i].name, wrongs[i].placeholder,
					    wrongs[i].field, wrongs[i].value, false, &e),
			 e, ERR_CONFIG_INVALID, wrongs[i].msg);
		ck_assert_ptr_null(strstr(e.msg, "hidden"));
	}
	fill(&s);
	CK_FAILS(egress_secrets_add(&s, "one", "another-placeholder", "X", "v", false, &e), e,
		 ERR_CONFIG_INVALID, "a second secret");
	CK_FAILS(egress_secrets_add(&s, "new", PLACEHOLDER, "X", "v", false, &e), e,
		 ERR_CONFIG_INVALID, "a second secret");
	CK_FAILS(egress_secrets_host(&s, "10.0.0.1", &e), e, ERR_CONFIG_INVALID, "no address");
	ck_assert_uint_eq(s.n, 2);
}
END_TEST

START_TEST(limits)
{
	AUTO_EGRESS_SECRETS s = {.n = 0};
	struct err e = {0};
	char text[MAX_SECRET_VALUE + 2];
	char name[32];

	memset(text, 'v', sizeof(text));
	text[MAX_SECRET_VALUE + 1] = '\0';
	CK_FAILS(egress_secrets_add(&s, "n", PLACEHOLDER, "X", text, false, &e), e,
		 ERR_CONFIG_INVALID, "cannot stand");
	text[MAX_SECRET_VALUE] = '\0';
	for (unsigned int i = 0; i < MAX_EGRESS_SECRETS; i++) {
		(void)snprintf(name, sizeof(name), "a-name-with-16-bytes-%u", i);
		CK_WORKS(egress_secrets_add(&s, name, name, "X", text, false, &e), e);
	}
	CK_FAILS(egress_secrets_add(&s, "n", PLACEHOLDER, "X", "v", false, &e), e,
		 ERR_CONFIG_INVALID, "more than 32");
	for (unsigned int i = 0; i < MAX_SECRET_HOSTS; i++)
		CK_WORKS(egress_secrets_host(&s, "a.com", &e), e);
	CK_FAILS(egress_secrets_host(&s, "a.com", &e), e, ERR_CONFIG_INVALID, "more than 32");
	AUTO_BUF out = BUF_INIT(MAX_SECRETS_BYTES);
	AUTO_EGRESS_SECRETS back = {.n = 0};
	CK_WORKS(egress_secrets_encode(&s, &out, &e), e);
	CK_WORKS(egress_secrets_decode(out.p, out.n, &back, &e), e);
	ck_assert_uint_eq(back.n, MAX_EGRESS_SECRETS);
}
END_TEST

START_TEST(coded)
{
	AUTO_EGRESS_SECRETS s = {.n = 0};
	AUTO_EGRESS_SECRETS back = {.n = 0};
	AUTO_BUF out = BUF_INIT(MAX_SECRETS_BYTES);
	struct err e = {0};

	fill(&s);
	CK_WORKS(egress_secrets_encode(&s, &out, &e), e);
	CK_WORKS(egress_secrets_decode(out.p, out.n, &back, &e), e);
	ck_assert_uint_eq(back.n, 2);
	ck_assert_str_eq(back.v[0].value, "Bearer hidden");
	ck_assert_str_eq(back.v[0].raw, "hidden");
	ck_assert_ptr_null(back.v[1].raw);
	ck_assert_uint_eq(back.v[0].hosts.n, 2);
	ck_assert(back.v[1].plain && !back.v[0].plain);
	egress_secrets_release(&back);
	for (size_t n = 0; n < out.n; n++)
		CK_FAILS(egress_secrets_decode(out.p, n, &back, &e), e, ERR_INTERNAL, "secrets: ");
	for (size_t i = 0; i < out.n; i++) {
		out.p[i] ^= 1;
		CK_FAILS(egress_secrets_decode(out.p, out.n, &back, &e), e, ERR_INTERNAL,
			 "secrets: ");
		/* Also where the sum is right: nothing is believed, and nothing is left over. */
		if (i >= 48) {
			unsigned char sum[SHA256_BYTES];
			sha256(out.p + 48, out.n - 48, sum);
			memcpy(out.p + 16, sum, sizeof(sum));
			if (egress_secrets_decode(out.p, out.n, &back, &e) == 0)
				egress_secrets_release(&back);
		}
		out.p[i] ^= 1;
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("egress_secret");
	TCase *tests = tcase_create("secret");

	tcase_add_test(tests, where_it_goes);
	tcase_add_test(tests, inside_basic);
	tcase_add_test(tests, wrong_ones);
	tcase_add_test(tests, limits);
	tcase_add_test(tests, coded);
	suite_add_tcase(suite, tests);
	return suite_run(suite);
}

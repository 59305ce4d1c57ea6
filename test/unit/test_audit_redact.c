/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the sieve takes out and what it leaves, and where pseudonyms go. The canary S is
 * in no output; secrets are put together here, so that no scanner finds them in this file.
 */
#include "audit/redact.h"

#include "audit/pseudonym.h"
#include "base/base.h"
#include "test_base_suite.h"

#define S "Zq81fKx0LpW93vNbT7yHc2RmDe5uGjAa4Ss6"

static struct redact_secrets secrets;

static const char *sieved(const char *text)
{
	static struct buf out = BUF_INIT(1 << 20);

	buf_clear(&out);
	redact_text(text, strlen(text), &secrets, &out);
	return buf_cstr(&out);
}

static const char *argument(const char *before, const char *arg, bool all)
{
	static struct buf out = BUF_INIT(1 << 20);

	buf_clear(&out);
	redact_argument(before, arg, all, &secrets, &out);
	return buf_cstr(&out);
}

START_TEST(taken_out)
{
	static const char *const rows[][2] = {
		{"curl --token=" S " x", "curl --token=[redacted] x"},
		{"--password=" S, "--password=[redacted]"},
		{"password=" S "&user=a", "password=[redacted]&user=a"},
		{"tool --api-key " S " go", "tool --api-key [redacted] go"},
		{"DB_PASSWORD='" S " x' run", "DB_PASSWORD=[redacted] run"},
		{"NAME=" S " run", "NAME=[redacted] run"},
		{"export X_1=" S "; y", "export X_1=[redacted]; y"},
		{"-H \"Authorization: Basic " S "\" u", "-H \"Authorization: [redacted]\" u"},
		{"Authorization: token " S, "Authorization: [redacted]"},
		{"X-Auth-Token: " S, "X-Auth-Token: [redacted]"},
		{"Cookie: a=" S "; b=" S, "Cookie: [redacted]"},
		{"bearer " S, "bearer [redacted]"},
		{"https://me:" S "@host/x", "https://[redacted]@host/x"},
		{"git clone https://" S "@host/o/r.git",
		 "git clone https://[redacted]@host/o/r.git"},
		{"postgres://a:" S "@db:5432/x", "postgres://[redacted]@db:5432/x"},
		{"{\"client_secret\": \"" S "\", \"a\": 1}",
		 "{\"client_secret\": [redacted], \"a\": 1}"},
		{"echo ghp"
		 "_" S,
		 "echo [redacted]"},
		{"x=gh"
		 "o_" S,
		 "x=[redacted]"},
		{"'glpat"
		 "-" S "'",
		 "'[redacted]'"},
		{"AK"
		 "IAABCDEFGHIJKLMNOP",
		 "[redacted]"},
		{"sk"
		 "-ant-" S,
		 "[redacted]"},
		{"(xox"
		 "b-" S ")",
		 "([redacted])"},
		{"ey"
		 "JhbGciOi" S "." S "." S,
		 "[redacted]"},
		{"-----BEGIN "
		 "RSA PRIVATE KEY-----\n" S,
		 "[redacted]"},
		{"-----BEGIN "
		 "PRIVATE KEY-----\n" S,
		 "[redacted]"},
		{"np"
		 "m_" S,
		 "[redacted]"},
		{"?access_token=" S "&x=1", "?access_token=[redacted]&x=1"},
		{"a environment-value b", "a [redacted] b"},
		{"aenvironment-valueb", "a[redacted]b"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		ck_assert_str_eq(sieved(rows[i][0]), rows[i][1]);
		ck_assert_ptr_null(strstr(sieved(rows[i][0]), S));
	}
}
END_TEST

START_TEST(left_as_it_is)
{
	static const char *const rows[] = {
		"",
		"git commit -m 'tokens are counted'",
		"npm run build -- --mode=production",
		"echo a=b c==d x:y",
		"/usr/bin/env -i PATH",
		"https://host/path?x=1&y=2",
		"git@github.com:owner/repo.git",
		"key=value",
		"cat /home/me/.config/app/config.yaml",
		"0123456789abcdef0123456789abcdef01234567",
		"sk-short ghp_short AKIA12 basic x",
		"PWD",
		"for i in 1 2 3; do echo $i; done",
		"a bassoon-value b",
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		ck_assert_str_eq(sieved(rows[i]), rows[i]);
}
END_TEST

START_TEST(arguments)
{
	static const struct {
		const char *before, *arg, *want;
		bool all;
	} rows[] = {
		{"--token", S, "[redacted]", false},
		{"--api_key", S, "[redacted]", false},
		{"-u", "me:" S, "me:[redacted]", false},
		{"--password", "--next", "--next", false},
		{"--tokens-file=x", "plain", "plain", false},
		{NULL, "FOO=" S, "FOO=[redacted]", false},
		{NULL, "foo=bar", "foo=bar", false},
		{"env", "foo=" S, "foo=[redacted]", true},
		{NULL, "--secret=a b c", "--secret=[redacted]", false},
		{NULL, "password=a b c", "password=[redacted]", false},
		{"--name", "value", "value", false},
		{NULL, "--", "--", false},
		{"-p", "80", "80", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		ck_assert_str_eq(argument(rows[i].before, rows[i].arg, rows[i].all), rows[i].want);
}
END_TEST

START_TEST(names)
{
	static const char *const secret[] = {"token",      "GITHUB_TOKEN", "--api-key",
					     "x_pass",     "DB_PWD",       "aws.secret.access.key",
					     "_authToken", "otp"};
	static const char *const plain[] = {"",        "-",       "PWD",    "OLDPWD",
					    "passage", "author",  "bypass", "keyboard",
					    "PATH",    "compass", "signal"};

	for (size_t i = 0; i < ARRAY_LEN(secret); i++)
		ck_assert_msg(redact_is_secret_name(secret[i], strlen(secret[i])), "%s", secret[i]);
	for (size_t i = 0; i < ARRAY_LEN(plain); i++)
		ck_assert_msg(!redact_is_secret_name(plain[i], strlen(plain[i])), "%s", plain[i]);
}
END_TEST

static struct pseudonyms hidden = {.key = "0123456789abcdef0123456789abcde",
				   .home = "/srv/people/alice",
				   .actor = "alice"};

static const char *replaced(const char *text)
{
	static struct buf out = BUF_INIT(1 << 20);

	buf_clear(&out);
	pseudonym_text(&hidden, text, strlen(text), &out);
	return buf_cstr(&out);
}

/* `want` with {name} for the pseudonym of that name. */
static const char *wanted(const char *want)
{
	static struct buf out = BUF_INIT(1 << 20);
	char name[PSEUDONYM_TEXT];

	buf_clear(&out);
	for (; *want; want++) {
		const char *end = *want == '{' ? strchr(want, '}') : NULL;
		if (end) {
			ck_assert_int_eq(buf_str(&out, pseudonym(&hidden, want + 1,
								 (size_t)(end - want - 1), name)),
					 0);
			want = end;
		} else {
			ck_assert_int_eq(buf_char(&out, *want), 0);
		}
	}
	return buf_cstr(&out);
}

START_TEST(pseudonyms_in_text)
{
	static const char *const rows[][2] = {
		{"/srv/people/alice/p/x.c", "{/srv/people/alice}/p/x.c"},
		{"/srv/people/alicea/x", "/srv/people/alicea/x"},
		{"/home/bob/x", "/home/{bob}/x"},
		{"ls /Users/bob /home/bob", "ls /Users/{bob} /home/{bob}"},
		{"https://git.example.com/acme/app.git",
		 "https://{git.example.com}/{acme}/app.git"},
		{"https://git.example.com:8443/acme/app",
		 "https://{git.example.com}:8443/{acme}/app"},
		{"git@github.com:acme/app.git", "{git}@{github.com}:{acme}/app.git"},
		{"ssh://git@host/acme/app", "ssh://{git}@{host}/{acme}/app"},
		{"mail bob@example.com.", "mail {bob}@{example.com.}"},
		{"ping 10.1.2.3", "ping {10.1.2.3}"},
		{"curl [fe80::1]:80", "curl [{fe80::1}]:80"},
		{"ping 2001:db8::7", "ping {2001:db8::7}"},
		{"ssh build.internal.corp ls", "ssh {build.internal.corp} ls"},
		{"cat main.py a.txt v1.2.3", "cat main.py a.txt v1.2.3"},
		{"su alice -c malice", "su {alice} -c malice"},
		{"at 12:30:59", "at 12:30:59"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		ck_assert_str_eq(replaced(rows[i][0]), wanted(rows[i][1]));
}
END_TEST

START_TEST(pseudonyms_of_hosts)
{
	static const char *const rows[][2] = {
		{"example.com", "{example.com}"},     {"example.com:443", "{example.com}:443"},
		{"[::1]:80", "{[::1]}:80"},           {"2001:db8::7", "{2001:db8::7}"},
		{"10.0.0.1:5432", "{10.0.0.1}:5432"}, {"localhost", "{localhost}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_BUF out = BUF_INIT(4096);
		pseudonym_host(&hidden, rows[i][0], strlen(rows[i][0]), &out);
		ck_assert_str_eq(buf_cstr(&out), wanted(rows[i][1]));
	}
}
END_TEST

/* RFC 4231, cases 1 and 2 have shorter keys, which HMAC fills with zeros. */
START_TEST(hmac)
{
	unsigned char key[SHA256_BYTES] = "Jefe";
	unsigned char digest[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];

	hmac_sha256(key, "what do ya want for nothing?", 28, digest);
	for (size_t i = 0; i < SHA256_BYTES; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	ck_assert_str_eq(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}
END_TEST

static void secrets_setup(void)
{
	static char *env[] = {(char *)(uintptr_t) "API_TOKEN=environment-value",
			      (char *)(uintptr_t) "PLAIN=bassoon-value",
			      (char *)(uintptr_t) "SHORT_TOKEN=for",
			      (char *)(uintptr_t) "SSH_AUTH_SOCK=/home/me/.config", NULL};

	redact_secrets_find(env, &secrets);
}

int main(void)
{
	Suite *suite = suite_create("audit-redact");
	TCase *tc = tcase_create("redact");

	tcase_add_checked_fixture(tc, secrets_setup, NULL);
	tcase_add_test(tc, taken_out);
	tcase_add_test(tc, left_as_it_is);
	tcase_add_test(tc, arguments);
	tcase_add_test(tc, names);
	tcase_add_test(tc, pseudonyms_in_text);
	tcase_add_test(tc, pseudonyms_of_hosts);
	tcase_add_test(tc, hmac);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

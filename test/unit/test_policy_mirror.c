/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/mirror.h"

#include "base/base.h"
#include "test_base_suite.h"

static struct egress_set set_of(const char *text)
{
	struct egress_set s = {0};
	struct err e = {0};

	CK_WORKS(egress_set_add(&s, EGRESS_LIST_MIRROR, text, "test", &e), e);
	return s;
}

START_TEST(variables)
{
	static const struct {
		const char *text, *name, *value; /* value NULL: it has none of that name */
	} rows[] = {
		{"npm http://a.test/x", "npm_config_registry", "http://a.test/x"},
		{"npm http://a.test/x", "PIP_INDEX_URL", NULL},
		{"pip https://a.test/s", "PIP_INDEX_URL", "https://a.test/s"},
		/* Certificates are verified where there are any. */
		{"pip https://a.test/s", "PIP_TRUSTED_HOST", NULL},
		{"pip https://a.test/s", "UV_INSECURE_HOST", NULL},
		{"pip http://a.test:81/s", "PIP_TRUSTED_HOST", "a.test:81"},
		{"go https://a.test", "GOPROXY", "https://a.test"},
		{"go https://a.test", "GOSUMDB", "off"},
		{"maven https://a.test", "MAVEN_ARGS", "-s /etc/sandglass-mirror/settings.xml"},
		{"apt https://a.test", "APT_CONFIG", MIRROR_APT_FILE},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct egress_set s = set_of(rows[i].text);
		char value[MIRROR_VALUE];
		const char *name = NULL;
		bool found = false;
		for (size_t k = 0; (name = mirror_variable(&s.v[0], k, value)); k++)
			if (strcmp(name, rows[i].name) == 0) {
				ck_assert(rows[i].value && !found);
				ck_assert_str_eq(value, rows[i].value);
				found = true;
			}
		ck_assert_msg(found == (rows[i].value != NULL), "%s %s", rows[i].text,
			      rows[i].name);
		egress_set_release(&s);
	}
}
END_TEST

START_TEST(files)
{
	static const char *const cargo =
		"[source.crates-io]\nreplace-with = \"sandglass-mirror\"\n\n"
		"[source.sandglass-mirror]\nregistry = "
		"\"sparse+https://a.test/i/\"\n";
	static const struct {
		const char *release, *line;
	} rows[] = {
		{"ID=debian\nVERSION_CODENAME=trixie\n",
		 "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://a.test "
		 "trixie main\n"},
		{"VERSION_CODENAME=\"noble\"\nID=\"ubuntu\"\n",
		 "deb [signed-by=/usr/share/keyrings/ubuntu-archive-keyring.gpg] http://a.test noble "
		 "main universe\n"},
		{"", "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://a.test "
		     "stable main\n"},
		{"XID=ubuntu\nVERSION_CODENAME=a b\nVERSION_CODENAME=c\n",
		 "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://a.test "
		 "stable main\n"},
	};

	for (size_t i = 0; i < 2; i++) {
		struct egress_set s =
			set_of(i ? "cargo https://a.test/i/" : "cargo https://a.test/i");
		AUTO_BUF text = BUF_INIT(4096);
		ck_assert_str_eq(mirror_file(&s.v[0], 0, "", &text), MIRROR_CARGO_FILE);
		ck_assert_str_eq(buf_cstr(&text), cargo);
		ck_assert_ptr_null(mirror_file(&s.v[0], 1, "", &text));
		egress_set_release(&s);
	}
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct egress_set s = set_of("apt http://a.test");
		AUTO_BUF text = BUF_INIT(4096);
		ck_assert_str_eq(mirror_file(&s.v[0], 1, rows[i].release, &text),
				 MIRROR_APT_SOURCES);
		ck_assert_str_eq(buf_cstr(&text), rows[i].line);
		egress_set_release(&s);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("policy_mirror");
	TCase *tests = tcase_create("mirror");

	tcase_add_test(tests, variables);
	tcase_add_test(tests, files);
	suite_add_tcase(suite, tests);
	return suite_run(suite);
}

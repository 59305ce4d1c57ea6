/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns: what they match, against rows written by hand and against an oracle
 * that tries every way; and names that are masked by default.
 */
#include "policy/pattern.h"

#include "base/base.h"
#include "policy/maskname.h"
#include "test_base_suite.h"

static bool matches(const char *pattern, const char *dir, const char *name, bool fold)
{
	static struct pattern p;
	struct err e;

	CK_WORKS(pattern_init(&p, "", pattern, &e), e);
	return pattern_match(&p, dir, name, fold);
}

static const struct {
	const char *pattern, *dir, *name;
	bool match;
} rows[] = {
	{"**/*.pem", "", "a.pem", true},
	{"**/*.pem", "a/b/c", "x.pem", true},
	{"**/*.pem", "a.pem", "x", false},
	{"*.pem", "", "a.pem", true},
	{"*.pem", "a", "a.pem", false},
	{"**/.env", "a", ".env", true},
	{"**/.env", "a", ".envx", false},
	{"**/.env*", "a", ".env.local", true},
	{"**/build/**", "a/b", "build", true},
	{"**/build/**", "build", "x", false}, /* the directory is the match */
	{"build/*", "", "build", true},
	{"a/**/z", "a", "z", true},
	{"a/**/z", "a/b/c", "z", true},
	{"a/**/z", "b", "z", false},
	{"a/*/z", "a/b", "z", true},
	{"a/*/z", "a/b/c", "z", false},
	{"**/a/**/b/**/c", "x/a/y/b/z", "c", true},
	{"**/a/**/b/**/c", "x/b/y/a/z", "c", false},
	{"**/a/b", "a/a", "b", true},
	{"**/a/b", "a/b/a", "b", true},
	{"**/a/b", "a/b", "b", false},
	{"a?c", "", "abc", true},
	{"a?c", "", "ac", false},
	{"a?c", "",
	 "a\xc3\xa9"
	 "c",
	 true}, /* one character of two bytes */
	{"a??c", "",
	 "a\xc3\xa9"
	 "c",
	 false},
	{"[abc]x", "", "bx", true},
	{"[!abc]x", "", "bx", false},
	{"[^abc]x", "", "dx", true},
	{"[a-c]x", "", "bx", true},
	{"[a-c]x", "", "dx", false},
	{"[]a]x", "", "]x", true},
	{"[a-]x", "", "-x", true},
	{"[\\]]x", "", "]x", true},
	{"[ab", "", "[ab", true}, /* no set: it does not end */
	{"a\\*b", "", "a*b", true},
	{"a\\*b", "", "axb", false},
	{"\\[a]", "", "[a]", true},
	{"**a", "", "xxa", true}, /* within a name, two stars are one */
	{"*a*b*c*", "", "xxaxxbxxcxx", true},
	{"*a*b*c*", "", "xxaxxcxxbxx", false},
	{"*", "", "", false},
};

START_TEST(by_hand)
{
	for (size_t i = 0; i + 1 < ARRAY_LEN(rows); i++)
		ck_assert_msg(matches(rows[i].pattern, rows[i].dir, rows[i].name, false) ==
				      rows[i].match,
			      "%s and %s/%s", rows[i].pattern, rows[i].dir, rows[i].name);
	ck_assert(matches("**/ID_*", "", "id_rsa", true));
	ck_assert(matches("**/[A-C]x", "", "bX", true));
	ck_assert(!matches("**/ID_*", "", "id_rsa", false));
}
END_TEST

START_TEST(refused)
{
	static struct pattern p;
	static char text[2 * PATH_TEXT];
	struct err e;

	CK_FAILS(pattern_init(&p, "", "**", &e), e, ERR_CONFIG_INVALID, "everything");
	CK_FAILS(pattern_init(&p, "", "**/*", &e), e, ERR_CONFIG_INVALID, "everything");
	CK_FAILS(pattern_init(&p, "", "*/**/*", &e), e, ERR_CONFIG_INVALID, "everything");
	CK_FAILS(pattern_init(&p, "", "", &e), e, ERR_CONFIG_INVALID, "everything");
	CK_FAILS(pattern_init(&p, "", "a/../*", &e), e, ERR_CONFIG_INVALID, "..");
	memset(text, 'a', PATH_TEXT);
	CK_FAILS(pattern_init(&p, "", text, &e), e, ERR_CONFIG_INVALID, "long");
	text[PATH_TEXT - 1] = '\0';
	CK_WORKS(pattern_init(&p, "", text, &e), e);
	for (size_t i = 0; i < MAX_PATTERN_PARTS; i++)
		memcpy(text + 2 * i, "a/", 3);
	CK_WORKS(pattern_init(&p, "", text, &e), e);
	strcat(text, "a");
	CK_FAILS(pattern_init(&p, "", text, &e), e, ERR_CONFIG_INVALID, "slashes");
}
END_TEST

START_TEST(parts)
{
	static struct pattern p;
	struct err e;

	CK_WORKS(pattern_init(&p, "", "**/node_modules/*.js", &e), e);
	ck_assert(p.quiet && pattern_names(&p, "node_modules") && !pattern_names(&p, "modules"));
	CK_WORKS(pattern_init(&p, "/x", "a/**", &e), e);
	ck_assert(!p.quiet && p.tree && p.parts == 1);
	ck_assert_str_eq(p.anchor, "/x");
	ck_assert_uint_eq(pattern_split("/a/b/c*/d"), 5);
	ck_assert_uint_eq(pattern_split("**/x"), 0);
	ck_assert_uint_eq(pattern_split("a[b"), 0);
	ck_assert(!pattern_is("/a/b") && pattern_is("a?") && pattern_is("[a]"));
}
END_TEST

/* Every way to match a name, without sets. */
static bool oracle_name(const char *p, const char *n)
{
	if (!*p)
		return !*n;
	if (*p == '*')
		return oracle_name(p + 1, n) || (*n && oracle_name(p, n + 1));
	return *n && (*p == '?' || *p == *n) && oracle_name(p + 1, n + 1);
}

/* Every way to match a path, both as lists of names. */
static bool oracle(char *const *p, char *const *n)
{
	if (!*p)
		return !*n;
	if (strcmp(*p, "**") == 0)
		return oracle(p + 1, n) || (*n && oracle(p, n + 1));
	return *n && oracle_name(*p, *n) && oracle(p + 1, n + 1);
}

static void split(char *text, char **ret)
{
	for (char *at = strtok(text, "/"); at; at = strtok(NULL, "/"))
		*ret++ = at;
	*ret = NULL;
}

START_TEST(by_oracle)
{
	static const char *const of[] = {"a", "b", "ab", "*", "?", "a*", "*b", "**", "*a*"};
	char pattern[128], path[64], copy[128];
	char *p[16], *n[16];
	unsigned int yes = 0;
	unsigned int total = 0;

	srandom(suite_seed());
	while (total < 200000) {
		pattern[0] = path[0] = '\0';
		for (long i = random() % 5; i >= 0; i--) {
			strcat(pattern, of[(size_t)random() % ARRAY_LEN(of)]);
			strcat(pattern, i ? "/" : "");
		}
		for (long i = random() % 4; i >= 0; i--) {
			strcat(path, of[random() % 3]);
			strcat(path, i ? "/" : "");
		}
		static struct pattern compiled;
		struct err e;
		if (pattern_init(&compiled, "", pattern, &e) < 0 || compiled.tree)
			continue;
		memcpy(copy, pattern, sizeof(copy));
		split(copy, p);
		char whole[64];
		memcpy(whole, path, sizeof(whole));
		split(whole, n);
		bool want = oracle(p, n);
		char *slash = strrchr(path, '/');
		if (slash)
			*slash = '\0';
		bool got = slash ? pattern_match(&compiled, path, slash + 1, false)
				 : pattern_match(&compiled, "", path, false);
		ck_assert_msg(got == want, "%s and %s", pattern, path);
		yes += want;
		total++;
	}
	ck_assert_uint_gt(yes, total / 20);
}
END_TEST

START_TEST(default_names)
{
	static const struct {
		const char *parent, *name;
		enum mask_name want;
	} names[] = {
		{"x", ".env", MASK_NAME_DOTENV},
		{"x", ".ENV", MASK_NAME_DOTENV},
		{"x", ".env.local", MASK_NAME_DOTENV},
		{"x", ".env.production.local", MASK_NAME_DOTENV},
		{"x", ".env.example", MASK_NAME_NONE},
		{"x", ".env.sample", MASK_NAME_NONE},
		{"x", ".env.template", MASK_NAME_NONE},
		{"x", ".env.local.example", MASK_NAME_NONE},
		{"x", ".env.", MASK_NAME_NONE},
		{"x", ".envrc", MASK_NAME_NONE},
		{"x", "env", MASK_NAME_NONE},
		{"x", ".environment", MASK_NAME_NONE},
		{"x", "id_rsa", MASK_NAME_SECRET},
		{"x", "id_rsa.pub", MASK_NAME_NONE},
		{"x", "a.p12", MASK_NAME_SECRET},
		{"x", "A.PFX", MASK_NAME_SECRET},
		{"x", "a.pem", MASK_NAME_SNIFF},
		{"x", "a.key", MASK_NAME_SNIFF},
		{"x", "key", MASK_NAME_NONE},
		{"x", "monkey", MASK_NAME_NONE},
		{"x", ".npmrc", MASK_NAME_NONE},
		{"x", ".netrc", MASK_NAME_SECRET},
		{".aws", "credentials", MASK_NAME_SECRET},
		{"x", "credentials", MASK_NAME_NONE},
		{".docker", "config.json", MASK_NAME_SECRET},
		{"x", "config.json", MASK_NAME_NONE},
		{".kube", "config", MASK_NAME_SECRET},
		{".git", "config", MASK_NAME_NONE},
		{"x", "credentials.json", MASK_NAME_SNIFF},
		{"x", "service-account-x.json", MASK_NAME_SNIFF},
		{"x", "package.json", MASK_NAME_NONE},
		{"x", "", MASK_NAME_NONE},
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		ck_assert_msg(mask_name(names[i].parent, names[i].name) == names[i].want, "%s/%s",
			      names[i].parent, names[i].name);
	ck_assert(mask_sniff("-----BEGIN EC PRIVATE KEY-----\n", 31));
	ck_assert(!mask_sniff("-----BEGIN CERTIFICATE-----\n", 28));
	ck_assert(mask_sniff("{\"private_key\": 1}", 18));
	ck_assert(!mask_sniff("", 0));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("policy pattern");
	TCase *t = tcase_create("patterns");

	tcase_add_test(t, by_hand);
	tcase_add_test(t, refused);
	tcase_add_test(t, parts);
	tcase_add_test(t, by_oracle);
	tcase_add_test(t, default_names);
	suite_add_tcase(s, t);
	return suite_run(s);
}

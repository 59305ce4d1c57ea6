/* SPDX-License-Identifier: Apache-2.0 */
/*
 * git's configuration syntax: single cases, and many made-up texts against what
 * git says of them.
 */
#include "policy/gitconfig.h"

#include "base/buf.h"
#include "test_policy_git.h"

/* "section|sub|key=value" lines; "-" for what is not there. */
static bool list(void *self, const struct gitconfig_entry *entry)
{
	struct buf *out = self;

	ck_assert_int_eq(buf_printf(out, "%s|%s|%s=%s\n", entry->section,
				    entry->sub ? entry->sub : "-", entry->key,
				    entry->value ? entry->value : "-"),
			 0);
	return true;
}

static void reads_n(const char *text, size_t n, const char *want)
{
	AUTO_BUF out = BUF_INIT(1 << 20);

	ck_assert_msg(gitconfig_parse(text, n, list, &out), "refused: %s", text);
	ck_assert_str_eq(buf_cstr(&out), want);
}

static void reads(const char *text, const char *want)
{
	reads_n(text, strlen(text), want);
}

static void refuses_n(const char *text, size_t n)
{
	AUTO_BUF out = BUF_INIT(1 << 20);

	ck_assert_msg(!gitconfig_parse(text, n, list, &out), "taken: %s", text);
}

static void refuses(const char *text)
{
	refuses_n(text, strlen(text));
}

START_TEST(sections)
{
	reads("", "");
	reads("\n \t\r\n# c\n; c", "");
	reads("\xef\xbb\xbf[a]\nk=v\n", "a|-|k=v\n");
	reads("[Core]\n\tBare = false\n", "core|-|bare=false\n");
	reads("[a] k = v", "a|-|k=v\n");
	reads("[a][b] k", "b|-|k=-\n");
	reads("[a]# c\nk=v", "a|-|k=v\n");
	reads("[A \"B c\"]k=v", "a|B c|k=v\n");
	reads("[a\t \"\\\"\\\\\\x\"]k=v", "a|\"\\x|k=v\n");
	reads("[a \"\"]k=v", "a||k=v\n");
	reads("[a.B]k=v", "a|b|k=v\n");
	reads("[a.B.c]k=v", "a|b.c|k=v\n");
	reads("[a.B \"C.d\"]k=v", "a|b.C.d|k=v\n");
	reads("[a.]k=v", "a||k=v\n");
	reads("[a \"x]y\"]k=v", "a|x]y|k=v\n");
	reads("[1-a]k=v", "1-a|-|k=v\n");
}
END_TEST

START_TEST(bad_sections)
{
	static const char *const texts[] = {
		"[",
		"[a",
		"[a\n]",
		"[]k=v",
		"[ \"a\"]k=v",
		"[.a]k=v",
		"[a b]k=v",
		"[a \"b]\nk=v\n",
		"[a \"b\" ]k=v",
		"[a \"b\"c]k=v",
		"[a \"b\\",
		"[a \"b\\\n\"]",
		"[a_b]k=v",
		"[a ]k=v",
		"[a \"b\r\n\"]k=v",
		"k=v",
		"\xef\xbb[a]k=v",
		"\xef",
		"\xef\xbb\xbf\xef\xbb\xbf[a]k=v",
		" \xef\xbb\xbf[a]k=v",
		"]",
		"[a]\n]",
		"[a]\n\v",
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		refuses(texts[i]);
}
END_TEST

START_TEST(keys)
{
	reads("[a]k", "a|-|k=-\n");
	reads("[a]k \t\n", "a|-|k=-\n");
	reads("[a]k\r\n", "a|-|k=-\n");
	reads("[a]K-9=v", "a|-|k-9=v\n");
	reads("[a]k=", "a|-|k=\n");
	reads("[a]k = \n", "a|-|k=\n");
	refuses("[a]1k=v");
	refuses("[a]-k=v");
	refuses("[a]k_=v");
	refuses("[a]k.l=v");
	refuses("[a]k # c\n");
	refuses("[a]k l=v");
	refuses("[a]k\r=v");
	refuses("[a]k\\\n=v");
	refuses("[a]=v");
}
END_TEST

START_TEST(values)
{
	reads("[a]k = x  y \t# c", "a|-|k=x  y\n");
	reads("[a]k = x;c", "a|-|k=x\n");
	reads("[a]k = \"x # y\" ; c", "a|-|k=x # y\n");
	reads("[a]k = \" x \" ", "a|-|k= x \n");
	reads("[a]k = x \"y  \"z", "a|-|k=x y  z\n");
	reads("[a]k = \\t\\b\\\"\\\\", "a|-|k=\t\b\"\\\n");
	reads("[a]k = one \\\n two", "a|-|k=one  two\n");
	reads("[a]k = one\\\r\ntwo", "a|-|k=onetwo\n");
	reads("[a]k = one \\\n", "a|-|k=one \n");
	reads("[a]k = \\\n one", "a|-|k=one\n");
	reads("[a]k = \"one\\\n two\"", "a|-|k=one two\n");
	reads("[a]k = x # c \\\nl=v", "a|-|k=x\na|-|l=v\n");
	reads("[a]k = x\r", "a|-|k=x\n");
	reads("[a]k = [b]", "a|-|k=[b]\n");
	reads("[a]k = x = y", "a|-|k=x = y\n");
	reads("[a]k = x\\", "a|-|k=x\n");
	refuses("[a]k = \\q");
	refuses("[a]k = \\r");
	refuses("[a]k = \\#");
	refuses("[a]k = \"x");
	refuses("[a]k = \"x\ny\"");
	refuses("[a]k = \"x\\");
	refuses("[a]k : v");
}
END_TEST

static bool note_odd(void *self, const struct gitconfig_entry *entry)
{
	*(bool *)self = entry->odd_blanks;
	return true;
}

START_TEST(odd_blanks)
{
	static const struct {
		const char *text;
		bool odd;
	} rows[] = {
		{"[a]k = x y", false},      {"[a]k = x\ty", true},
		{"[a]k = x \t", false},     {"[a]k = \tx", false},
		{"[a]k = \"x\ty\"", false}, {"[a]k = x\\ty", false},
		{"[a]k = x\ry", true},      {"[a]k = x\r\n", false},
		{"[a]k = x\t\"\"", true},   {"[a]k = x\t\\\n", true},
		{"[a]k = x\t# y", false},   {"[a]k = x \ty", true},
		{"[a]k = \"\"\tx", false},  {"[a]k = x\ty\n\tl = y z", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool odd = false;
		ck_assert(gitconfig_parse(rows[i].text, strlen(rows[i].text), note_odd, &odd));
		ck_assert_msg(odd == rows[i].odd, "%s", rows[i].text);
	}
}
END_TEST

START_TEST(nul)
{
	static const char *const texts[] = {"#?",       "[a?]k=v",    "[a \"?\"]k=v",   "[a]k?=v",
					    "[a]k=?",   "[a]k=\"?\"", "[a]k=v #?",      "?",
					    "[a]k=\\?", "[a]k?",      "[a \"\\?\"]k=v", "[?a]k=v"};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		char text[32];
		size_t n = strlen(texts[i]);
		memcpy(text, texts[i], n + 1);
		*strchr(text, '?') = '\0';
		refuses_n(text, n);
	}
}
END_TEST

/* Three parts around a run of `x` of that length. */
static bool takes(const char *before, size_t n, const char *after)
{
	AUTO_BUF text = BUF_INIT(1 << 20);
	AUTO_BUF out = BUF_INIT(1 << 20);

	ck_assert_int_eq(buf_str(&text, before), 0);
	for (size_t i = 0; i < n; i++)
		ck_assert_int_eq(buf_char(&text, 'x'), 0);
	ck_assert_int_eq(buf_str(&text, after), 0);
	return gitconfig_parse(text.p, text.n, list, &out);
}

START_TEST(limits)
{
	static const struct {
		const char *before, *after;
		size_t max;
	} rows[] = {
		{"[", "]k=v", MAX_GIT_KEY - 1},       {"[a \"", "\"]k=v", MAX_GIT_KEY - 1},
		{"[a.", "]k=v", MAX_GIT_KEY - 1},     {"[a.b \"", "\"]k=v", MAX_GIT_KEY - 3},
		{"[a]", "=v", MAX_GIT_KEY - 1},       {"[a]k=", "", MAX_GIT_VALUE - 1},
		{"[a]k=\"", "\"", MAX_GIT_VALUE - 1},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		ck_assert(takes(rows[i].before, rows[i].max, rows[i].after));
		ck_assert(!takes(rows[i].before, rows[i].max + 1, rows[i].after));
	}
}
END_TEST

static bool stop(void *self, const struct gitconfig_entry *entry)
{
	(void)entry;
	return ++*(int *)self < 2;
}

START_TEST(stops)
{
	int n = 0;

	ck_assert(!gitconfig_parse("[a]k\nl\nm\n", 9, stop, &n));
	ck_assert_int_eq(n, 2);
}
END_TEST

static void add_one(struct buf *text, const char *const *pieces, size_t n)
{
	ck_assert_int_eq(buf_str(text, pieces[(size_t)random() % n]), 0);
}

#define ADD_ONE(text, pieces) add_one(text, pieces, ARRAY_LEN(pieces))

/* A line that is mostly good. */
static void make_line(struct buf *text)
{
	static const char *const heads[] = {"[a]",         "[Ab \"C.d\"]",
					    "[a.B]",       "[a\t\"\\\"\\\\\\x\"]",
					    "[b.c \"D\"]", "[a]\r\n",
					    "[a] # c\n",   "[a \"]\"]\n"};
	static const char *const names[] = {"key", "Key-1", "k", "\tk", "\n\tname", "k\t"};
	static const char *const equals[] = {" = ", "=", "=\t", " =", "\t= \t", "=\\\n", ""};
	static const char *const parts[] = {"x",    "x y",    " ",   "\t",       "\"a ; b\"",
					    "\"\"", "\\\n",   "\\n", "\\\\",     "\\\"",
					    "\\b",  "\\\r\n", "=",   "\xc3\xa9", "\v",
					    "\r",   "[c]",    " # ", ";",        "\" \\\n \""};
	static const char *const ends[] = {"\n", "\r\n", "\n\n", " \n", "\t; c\n", ""};

	if (random() % 4 == 0)
		ADD_ONE(text, heads);
	ADD_ONE(text, names);
	ADD_ONE(text, equals);
	if (text->p[text->n - 1] != 'k' && text->p[text->n - 1] != 'y')
		for (long n = random() % 6; n > 0; n--)
			ADD_ONE(text, parts);
	ADD_ONE(text, ends);
}

/* Any mixture of what a line is made of, seldom good. */
static void make_mixture(struct buf *text)
{
	static const char *const pieces[] = {
		"[a]\n", "[a]", "[Ab \"C\"]", "[a.B]",   "[a \"",  "\"]",      "[",
		"]",     "\n",  "\r\n",       "\r",      " ",      "\t",       "=",
		" = ",   "key", "Key-1",      "1",       "-",      ".",        "#",
		";",     "\"",  "\\",         "\\\n",    "\\n",    "\\q",      "x",
		"\v",    "\f",  "\n\tk",      "include", "\n[c]k", "\xc3\xa9", "\xef\xbb\xbf",
	};

	for (long n = random() % 10; n > 0; n--)
		ADD_ONE(text, pieces);
}

static void make_text(struct buf *text)
{
	static const char *const starts[] = {"\xef\xbb\xbf[a]", "[a \"b\"]\n", "\xef\xbb\xbf",
					     "\xef", ""};

	buf_clear(text);
	if (random() % 4)
		ck_assert_int_eq(buf_str(text, "[a]\n"), 0);
	else
		ADD_ONE(text, starts);
	if (random() % 4 == 0)
		make_mixture(text);
	else
		for (long n = random() % 4; n >= 0; n--)
			make_line(text);
}

struct listed {
	struct buf text;
	bool odd; /* a value that versions of git read differently */
};

/* As `git config --list -z`. */
static bool list_as_git(void *self, const struct gitconfig_entry *entry)
{
	struct listed *l = self;

	(void)buf_printf(&l->text, "%s%s%s.%s", entry->section, entry->sub ? "." : "",
			 entry->sub ? entry->sub : "", entry->key);
	if (entry->value)
		(void)buf_printf(&l->text, "\n%s", entry->value);
	l->odd |= entry->odd_blanks;
	return buf_char(&l->text, '\0') == 0;
}

static void only_spaces(char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] == '\t' || p[i] == '\r')
			p[i] = ' ';
}

/* Keys that git lists but no part of it can ask for: outside a section, or in one without a name.
 */
static bool has_no_section(const char *p, size_t n)
{
	for (size_t at_ = 0; at_ < n; at_ += strlen(p + at_) + 1) {
		size_t len = strcspn(p + at_, "\n");
		if (p[at_] == '.' || !memchr(p + at_, '.', len))
			return true;
	}
	return false;
}

/* Whether the text was good and held a key. */
static bool compare(const struct buf *text)
{
	struct listed l = {.text = BUF_INIT(1 << 20)};
	FILE *f = fopen(at("f"), "w");
	size_t n = 0;

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(buf_cstr(text), 1, text->n, f), text->n);
	ck_assert_int_eq(fclose(f), 0);
	bool git = place_shell("exec git config --file f --list -z") == 0;
	bool ours = gitconfig_parse(buf_cstr(text), text->n, list_as_git, &l);
	AUTO_FREE char *listed = place_read("out", &n);
	if (!ours) {
		ck_assert_msg(!git || has_no_section(listed, n), "git takes:\n%s", buf_cstr(text));
		buf_release(&l.text);
		return false;
	}
	ck_assert_msg(git, "git refuses:\n%s", buf_cstr(text));
	if (l.odd) {
		only_spaces(l.text.p, l.text.n);
		only_spaces(listed, n);
	}
	ck_assert_msg(n == l.text.n && memcmp(listed, buf_cstr(&l.text), n) == 0,
		      "git reads otherwise:\n%s", buf_cstr(text));
	buf_release(&l.text);
	return n > 0;
}

START_TEST(as_git)
{
	AUTO_BUF text = BUF_INIT(1 << 16);
	const char *given = getenv("CASES");
	long cases = given ? atol(given) : 800;
	long good = 0;

	suite_seed();
	if (!place_has_git())
		return;
	for (long i = 0; i < cases; i++) {
		make_text(&text);
		good += compare(&text);
	}
	/* A generator that makes only bad texts would compare nothing. */
	ck_assert_int_gt(good * 4, cases);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("policy/gitconfig");
	TCase *tests = tcase_create("gitconfig");
	TCase *with_git = tcase_create("git");

	tcase_add_test(tests, sections);
	tcase_add_test(tests, bad_sections);
	tcase_add_test(tests, keys);
	tcase_add_test(tests, values);
	tcase_add_test(tests, odd_blanks);
	tcase_add_test(tests, nul);
	tcase_add_test(tests, limits);
	tcase_add_test(tests, stops);
	suite_add_tcase(suite, tests);
	tcase_add_checked_fixture(with_git, place_setup, place_close);
	tcase_add_test(with_git, as_git);
	suite_add_tcase(suite, with_git);
	return suite_run(suite);
}

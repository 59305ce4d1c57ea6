/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests of what the verbs say about themselves.
 */
#include "cli/usage.h"

#include "base/base.h"
#include "cli/verbs.h"
#include "test_base_suite.h"

/* What is missing in an option that is offered; NULL if nothing. */
static const char *missing(const struct opt *o)
{
	if (o->later)
		return NULL;
	if (!o->help || !o->help[0])
		return "help";
	if (o->kind != OPT_FLAG && !o->arg)
		return "the name of its value";
	if (o->kind == OPT_CHOICE && !o->choices)
		return "choices";
	return NULL;
}

static void check_lines(const char *name, const char *text, size_t n)
{
	size_t columns = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		ck_assert_msg(c == '\n' || c >= ' ', "%s: byte %u", name, c);
		if (c == '\n')
			columns = 0;
		else if ((c & 0xc0) != 0x80)
			columns++;
		ck_assert_msg(columns <= HELP_LINE_MAX, "%s: a line over %d columns: …%.*s", name,
			      HELP_LINE_MAX, 40, text + i - 39);
	}
	ck_assert_msg(n && text[n - 1] == '\n', "%s: the last line has no end", name);
}

static void check_usage(const char *name, const struct usage *u)
{
	AUTO_BUF out = BUF_INIT(65536);
	bool helped = false;

	ck_assert_str_eq(name, u->name);
	ck_assert_msg(u->summary && strlen(u->summary) <= 80, "%s has no short summary", name);
	ck_assert_msg(u->synopsis && u->synopsis[0], "%s has no synopsis", name);
	ck_assert_msg((u->operand == OPERAND_WORD) == (u->words != NULL), "%s: words", name);
	for (size_t i = 0; i < u->option_count; i++) {
		const struct opt *o = &u->options[i];
		const char *what = missing(o);

		ck_assert_msg(!what, "%s: option --%s has no %s", name, o->name ? o->name : "?",
			      what);
		helped |= o->name && strcmp(o->name, "help") == 0;
	}
	ck_assert_msg(helped, "%s has no --help", name);
	ck_assert_int_eq(usage_help(u, &out), 0);
	check_lines(name, buf_cstr(&out), out.n);
	for (size_t i = 0; u->subs && u->subs[i]; i++) {
		ck_assert_ptr_eq(usage_sub(u, u->subs[i]->name), u->subs[i]);
		if (!u->subs[i]->later)
			check_usage(u->subs[i]->name, u->subs[i]);
	}
}

START_TEST(each_verb_is_described)
{
	size_t there = 0;

	for (size_t i = 0; i < verb_count; i++) {
		const struct verb *v = &verbs[i];

		ck_assert_msg(!v->run == !v->usage && !v->run == !!v->later,
			      "%s is both there and later", v->name);
		ck_assert_ptr_eq(verb_find(v->name), v);
		if (v->usage)
			check_usage(v->name, v->usage);
		there += v->usage != NULL;
	}
	ck_assert_uint_ge(there, 5);
	ck_assert_ptr_null(verb_find("rum"));
}
END_TEST

/* The checks above see what they are there for. */
START_TEST(control_an_option_without_help)
{
	ck_assert_str_eq(missing(&(struct opt){.name = "x", .kind = OPT_FLAG}), "help");
	ck_assert_str_eq(missing(&(struct opt){.name = "x", .kind = OPT_STRING, .help = "x"}),
			 "the name of its value");
	ck_assert_str_eq(missing(&(struct opt){.name = "x",
					       .kind = OPT_CHOICE,
					       .arg = "X",
					       .help = "x"}),
			 "choices");
	ck_assert_ptr_null(missing(&(struct opt){.name = "x", .kind = OPT_FLAG, .later = "x"}));
	ck_assert_ptr_null(missing(&(struct opt){.name = "x", .kind = OPT_FLAG, .help = "x"}));
}
END_TEST

static const struct usage check_sub = {
	.name = "check",
	.summary = "check a file",
	.synopsis = (const char *const[]){"demo check [FILE]", NULL},
	.options = help_options,
	.option_count = 1,
	.operand = OPERAND_FILE,
};
static const struct usage later_sub = {.name = "explain", .later = "rules"};
static const struct usage demo = {
	.name = "demo",
	.summary = "a demonstration",
	.synopsis = (const char *const[]){"demo VERB …", "demo check [FILE]", NULL},
	.options = help_options,
	.option_count = 1,
	.operand = OPERAND_VERB,
	.subs = (const struct usage *[]){&check_sub, &later_sub, NULL},
};

START_TEST(sub_verbs)
{
	AUTO_BUF out = BUF_INIT(4096);

	ck_assert_ptr_eq(usage_sub(&demo, "check"), &check_sub);
	ck_assert_ptr_eq(usage_sub(&demo, "explain"), &later_sub);
	ck_assert_ptr_null(usage_sub(&demo, "che"));
	ck_assert_ptr_null(usage_sub(&check_sub, "check"));
	ck_assert_int_eq(usage_help(&demo, &out), 0);
	ck_assert_str_eq(buf_cstr(&out), "usage: sandglass demo VERB …\n"
					 "       sandglass demo check [FILE]\n"
					 "\n"
					 "  check      check a file\n"
					 "\n"
					 "not in this version:\n  explain\n"
					 "\n"
					 "  -h, --help  this text\n");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("usage");
	TCase *tc = tcase_create("usage");

	tcase_add_test(tc, each_verb_is_described);
	tcase_add_test(tc, control_an_option_without_help);
	tcase_add_test(tc, sub_verbs);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Option parser and its help, both from one table. Knows nothing of what the
 * options mean.
 */
#include "base/opt.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/base.h"
#include "base/nearest.h"
#include "base/num.h"

#define HELP_COLUMN_MAX 32
#define HELP_WIDTH 80
#define SPELLING_MAX 64

/* One option as it was found in argv. */
struct found {
	const struct opt *opt;
	char spelling[SPELLING_MAX]; /* as the caller wrote it, for messages */
	const char *value;           /* behind `=`, else NULL */
};

static void spell(const struct opt *o, char ret[SPELLING_MAX])
{
	if (!o->name) {
		memcpy(ret, (char[]){'-', o->short_name, '\0'}, 3);
		return;
	}
	size_t n = strlen(o->name);
	assert(n + 3 <= SPELLING_MAX);
	memcpy(ret, "--", 2);
	memcpy(ret + 2, o->name, n + 1);
}

static const struct opt *find_long(const struct opt *table, size_t n, const char *name, size_t len)
{
	for (size_t i = 0; i < n; i++) {
		if (table[i].name && strlen(table[i].name) == len &&
		    memcmp(table[i].name, name, len) == 0)
			return &table[i];
	}
	return NULL;
}

static const struct opt *find_short(const struct opt *table, size_t n, char c)
{
	for (size_t i = 0; i < n; i++) {
		if (c != '\0' && table[i].short_name == c)
			return &table[i];
	}
	return NULL;
}

/* Quotes the name only: a value may be long, or secret. */
static int unknown(const struct opt *table, size_t n, const char *arg, struct err *e)
{
	const char *names[OPT_TABLE_MAX];
	char word[NEAREST_WORD_MAX + 1];
	const char *name = arg + strspn(arg, "-");
	size_t len = strcspn(name, "=");

	(void)err_set(e, ERR_CONFIG_INVALID, "unknown option %.*s", (int)(name + len - arg), arg);
	if (len == 0 || len > NEAREST_WORD_MAX)
		return err_hint(e, "--help lists the options");
	memcpy(word, name, len);
	word[len] = '\0';
	for (size_t i = 0; i < n; i++)
		names[i] = table[i].name;
	const char *near = nearest(word, names, n);
	if (near)
		return err_hint(e, "did you mean --%s?", near);
	const struct opt *one = arg[1] != '-' ? find_short(table, n, arg[1]) : NULL;
	if (one && one->kind == OPT_FLAG)
		return err_hint(e, "short options are written one by one");
	if (one)
		return err_hint(e, "write -%c and its value as two arguments", arg[1]);
	return err_hint(e, "--help lists the options");
}

/* False if the table does not have it. */
static bool find(const struct opt *table, size_t n, const char *arg, struct found *ret)
{
	struct found f = {0};

	if (arg[1] != '-') {
		if (arg[2] == '\0')
			f.opt = find_short(table, n, arg[1]);
		if (f.opt)
			memcpy(f.spelling, arg, 3);
	} else {
		size_t len = strcspn(arg + 2, "=");

		f.opt = find_long(table, n, arg + 2, len);
		if (arg[2 + len] == '=')
			f.value = arg + 2 + len + 1;
		if (f.opt)
			spell(f.opt, f.spelling);
	}
	*ret = f;
	return f.opt != NULL;
}

/* Would this argument be read as one of the table's options? */
static bool looks_like_option(const struct opt *table, size_t n, const char *arg)
{
	return arg[0] == '-' && arg[1] == '-' &&
	       find_long(table, n, arg + 2, strcspn(arg + 2, "=")) != NULL;
}

/* What there is in this version: "a, b or c". */
static void choices_list(const struct opt *o, struct buf *ret)
{
	size_t n = 0;

	for (size_t i = 0; o->choices[i]; i++)
		n += !o->choices_later || !o->choices_later[i];
	for (size_t i = 0, k = 0; o->choices[i]; i++) {
		if (o->choices_later && o->choices_later[i])
			continue;
		k++;
		(void)buf_printf(ret, "%s%s", k == 1 ? "" : k < n ? ", " : " or ", o->choices[i]);
	}
}

static int choice_parse(const struct opt *o, const char *value, int *ret, struct err *e)
{
	size_t n = 0;

	for (; o->choices[n]; n++) {
		if (strcmp(o->choices[n], value) != 0)
			continue;
		if (o->choices_later && o->choices_later[n])
			return err_set(e, ERR_UNSUPPORTED,
				       "`%s` is not in this version (it comes with %s)", value,
				       o->choices_later[n]);
		*ret = (int)n;
		return 0;
	}
	AUTO_BUF all = BUF_INIT(ERR_MSG_MAX / 2);
	choices_list(o, &all); /* short, ours; cut only in a message */
	(void)err_set(e, ERR_CONFIG_INVALID, "%.64s: must be %s", value[0] ? value : "\"\"",
		      buf_cstr(&all));
	const char *near = nearest(value, o->choices, n);
	return near ? err_hint(e, "did you mean %s?", near) : -1;
}

static const char *number_format(const struct opt *o, uint64_t v, char ret[NUM_TEXT])
{
	if (o->kind == OPT_SIZE)
		return size_format(v, ret);
	if (o->kind == OPT_DURATION)
		return duration_format(v, ret);
	return cpus_format(v, ret);
}

static int number_parse(const struct opt *o, const char *value, uint64_t *ret, struct err *e)
{
	uint64_t max = o->max ? o->max : LIMIT_UNSET - 1;
	bool none = strcmp(value, "none") == 0;
	uint64_t v;
	int rc;

	if (none && o->none_ok) {
		*ret = LIMIT_NONE;
		return 0;
	}
	if (o->kind == OPT_NUM) {
		if (num_parse(value, o->min, max, &v, e) < 0)
			return -1;
		*ret = v;
		return 0;
	}
	if (none)
		return err_set(e, ERR_CONFIG_INVALID, "none: a limit is needed here");
	if (o->kind == OPT_SIZE)
		rc = size_parse(value, &v, e);
	else if (o->kind == OPT_DURATION)
		rc = duration_parse(value, &v, e);
	else
		rc = cpus_parse(value, &v, e);
	if (rc < 0)
		return -1;
	if (v < o->min || v > max) {
		char bound[NUM_TEXT];

		return err_set(e, ERR_CONFIG_INVALID, "%.64s: must be at %s %s", value,
			       v < o->min ? "least" : "most",
			       number_format(o, v < o->min ? o->min : max, bound));
	}
	*ret = v;
	return 0;
}

static int list_add(struct strlist *l, const char *value, struct err *e)
{
	if (l->n >= STRLIST_MAX)
		return err_set(e, ERR_ARG_LIMIT, "given more than %d times", STRLIST_MAX);
	l->v[l->n++] = value;
	return 0;
}

static int store(const struct opt *o, const char *value, void *target, struct err *e)
{
	void *at = (char *)target + o->off;

	switch (o->kind) {
	case OPT_FLAG:
		*(bool *)at = true;
		return 0;
	case OPT_STRING:
		*(const char **)at = value;
		return 0;
	case OPT_LIST:
		return list_add(at, value, e);
	case OPT_CHOICE:
		return choice_parse(o, value, at, e);
	case OPT_NUM:
	case OPT_SIZE:
	case OPT_DURATION:
	case OPT_CPUS:
		return number_parse(o, value, at, e);
	}
	assert(!"no such kind of option");
	return -1;
}

/* The value of an option that needs one: behind `=` or the next argument. */
static int take_value(const struct opt *table, size_t n, struct found *f, const char *next,
		      struct err *e)
{
	const char *what = f->opt->arg ? f->opt->arg : "VALUE";

	if (f->value)
		return 0;
	if (!next)
		return err_set(e, ERR_CONFIG_INVALID, "%s needs a value: %s %s", f->spelling,
			       f->spelling, what);
	if (looks_like_option(table, n, next)) {
		(void)err_set(e, ERR_CONFIG_INVALID, "%s needs a value, but %.64s follows",
			      f->spelling, next);
		return f->spelling[1] == '-' ? err_hint(e, "if that is the value, write %s=%.64s",
							f->spelling, next)
					     : -1;
	}
	f->value = next;
	return 1;
}

/* One option at argv[0]; returns how many more arguments it took, or -1. */
static int parse_one(const struct opt *table, size_t n, char **argv, const char *next, bool seen[],
		     void *target, struct err *e)
{
	struct found f;
	int took = 0;

	if (!find(table, n, argv[0], &f))
		return unknown(table, n, argv[0], e);
	if (f.opt->later)
		return err_set(e, ERR_UNSUPPORTED, "%s%s: %s", f.spelling,
			       f.opt->elsewhere ? "" : " is not in this version", f.opt->later);
	if (f.opt->kind == OPT_FLAG) {
		if (f.value)
			return err_set(e, ERR_CONFIG_INVALID, "%s takes no value", f.spelling);
	} else {
		took = take_value(table, n, &f, next, e);
		if (took < 0)
			return -1;
	}
	if (seen[f.opt - table] && f.opt->kind != OPT_LIST)
		return err_set(e, ERR_CONFIG_INVALID, "%s given twice", f.spelling);
	seen[f.opt - table] = true;
	if (store(f.opt, f.value, target, e) < 0)
		return err_wrap(e, "%s", f.spelling);
	return took;
}

int opt_parse(const struct opt *table, size_t n, int argc, char **argv, void *target,
	      int *ret_first_operand, struct err *e)
{
	bool seen[OPT_TABLE_MAX] = {false};
	int i = 0;

	assert(n <= OPT_TABLE_MAX);
	for (; i < argc && argv[i][0] == '-' && argv[i][1] != '\0'; i++) {
		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		int took = parse_one(table, n, argv + i, i + 1 < argc ? argv[i + 1] : NULL, seen,
				     target, e);
		if (took < 0)
			return -1;
		i += took;
	}
	*ret_first_operand = i;
	return 0;
}

static bool in_help(const struct opt *o)
{
	return o->help && !o->later;
}

/* `-c, --command SCRIPT`. */
static void help_left(const struct opt *o, struct buf *ret)
{
	buf_clear(ret);
	if (o->short_name)
		(void)buf_printf(ret, "-%c%s", o->short_name, o->name ? ", " : "");
	else
		(void)buf_str(ret, "    ");
	if (o->name)
		(void)buf_printf(ret, "--%s", o->name);
	if (o->kind != OPT_FLAG)
		(void)buf_printf(ret, " %s", o->arg ? o->arg : "VALUE");
}

/* Words of text from the column on, broken before HELP_WIDTH. */
static void help_right(struct buf *out, const char *text, size_t column)
{
	size_t at = column;

	for (const char *p = text; *p;) {
		size_t n = strcspn(p, " ");

		if (at > column && at + 1 + n > HELP_WIDTH) {
			(void)buf_printf(out, "\n%*s", (int)column, "");
			at = column;
		} else if (at > column) {
			(void)buf_char(out, ' ');
			at++;
		}
		(void)buf_add(out, p, n);
		at += n;
		p += n;
		p += strspn(p, " ");
	}
	(void)buf_char(out, '\n');
}

int opt_help(struct buf *out, const struct opt *table, size_t n)
{
	AUTO_BUF left = BUF_INIT(2 * HELP_WIDTH);
	size_t column = 0;

	for (size_t i = 0; i < n; i++) {
		help_left(&table[i], &left);
		if (in_help(&table[i]) && left.n + 4 > column && left.n + 4 <= HELP_COLUMN_MAX)
			column = left.n + 4; /* two before it, two behind it */
	}
	for (size_t i = 0; i < n; i++) {
		if (!in_help(&table[i]))
			continue;
		if (table[i].section)
			(void)buf_printf(out, "%s%s:\n", i ? "\n" : "", table[i].section);
		help_left(&table[i], &left);
		(void)buf_printf(out, "  %s", buf_cstr(&left));
		if (left.n + 4 > column)
			(void)buf_char(out, '\n');
		size_t pad = left.n + 4 > column ? column : column - left.n - 2;
		(void)buf_printf(out, "%*s", (int)pad, "");
		help_right(out, table[i].help, column);
	}
	return out->failed || left.failed ? -1 : 0;
}

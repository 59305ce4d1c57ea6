/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of the questions below is git's own (config.c: git_parse_source()
 * and what it calls), since the order decides what odd text means. Only ASCII
 * counts as letter, digit or blank, as there.
 */
#include "policy/gitconfig.h"

#include <stdio.h>
#include <string.h>

#include "base/path.h"

struct text {
	char *p;
	size_t n, cap; /* with room for a NUL */
};

struct reader {
	const char *p, *end;
	bool eof;     /* the '\n' that next() gave was the end */
	bool has_sub; /* the section that is being read has a subsection */
	char section[MAX_GIT_KEY], sub[MAX_GIT_KEY], key[MAX_GIT_KEY], value[MAX_GIT_VALUE];
};

/* The end of the text reads as one more line end. A NUL is for the callers to refuse. */
static int next(struct reader *r)
{
	if (r->p >= r->end) {
		r->eof = true;
		return '\n';
	}
	int c = (unsigned char)*r->p++;
	if (c == '\r' && r->p < r->end && *r->p == '\n') {
		r->p++;
		c = '\n';
	}
	return c;
}

static bool is_blank(int c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static int lower(int c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static bool is_letter(int c)
{
	return lower(c) >= 'a' && lower(c) <= 'z';
}

static bool is_key_char(int c)
{
	return is_letter(c) || (c >= '0' && c <= '9') || c == '-';
}

static bool put(struct text *t, int c)
{
	if (t->n + 1 >= t->cap || c == 0)
		return false;
	t->p[t->n++] = (char)c;
	t->p[t->n] = '\0';
	return true;
}

static bool skip_comment(struct reader *r)
{
	for (;;) {
		int c = next(r);
		if (c == '\n')
			return true;
		if (c == 0)
			return false;
	}
}

/* `"…"]` behind blanks; what it holds goes to `sub`. */
static bool read_quoted_sub(struct reader *r, struct text *sub, int c)
{
	while (c != '\n' && is_blank(c))
		c = next(r);
	if (c != '"' || (r->has_sub && !put(sub, '.')))
		return false;
	r->has_sub = true;
	while ((c = next(r)) != '"') {
		if (c == '\\')
			c = next(r);
		if (c == '\n' || !put(sub, c))
			return false;
	}
	return next(r) == ']';
}

/*
 * Behind a `[`. Of a name with dots everything behind the first one is the
 * subsection, also what follows in quotes. One that starts with a dot has no
 * section; git has no such key.
 */
static bool read_section(struct reader *r)
{
	struct text section = {r->section, 0, sizeof(r->section)};
	struct text sub = {r->sub, 0, sizeof(r->sub)};

	r->section[0] = r->sub[0] = '\0';
	r->has_sub = false;
	for (;;) {
		int c = next(r);
		if (c == ']')
			return section.n > 0;
		if (is_blank(c))
			return !r->eof && section.n > 0 && read_quoted_sub(r, &sub, c);
		if (c == '.' && !r->has_sub)
			r->has_sub = true;
		else if ((c != '.' && !is_key_char(c)) ||
			 !put(r->has_sub ? &sub : &section, lower(c)))
			return false;
	}
}

/* What a backslash and `c` stand for; 0: nothing that git knows. */
static int escaped(int c)
{
	switch (c) {
	case 't':
		return '\t';
	case 'b':
		return '\b';
	case 'n':
		return '\n';
	case '\\':
	case '"':
		return c;
	default:
		return 0;
	}
}

/* A value that has been read so far. */
struct value {
	struct text text;
	size_t trim;   /* blanks at the end, not quoted, begin there; 0: none */
	bool odd_trim; /* not all of those are spaces */
	bool odd;      /* such a one is inside the value */
};

static bool put_blank(struct value *v, int c)
{
	if (!v->text.n)
		return true;
	if (!v->trim) {
		v->trim = v->text.n;
		v->odd_trim = false;
	}
	v->odd_trim |= c != ' ';
	return put(&v->text, c);
}

/* The next byte of a value; a comment is as the line's end. */
static int next_in_value(struct reader *r, bool quoted)
{
	int c = next(r);

	if (quoted || (c != ';' && c != '#'))
		return c;
	return skip_comment(r) ? '\n' : 0;
}

/* Behind a backslash; a line end there is as if both were not written. */
static bool read_escape(struct reader *r, struct text *t)
{
	int c = next(r);

	return c == '\n' || put(t, escaped(c));
}

/* Behind a `=`, up to the end of the line. */
static bool read_value(struct reader *r, bool *ret_odd)
{
	struct value v = {.text = {r->value, 0, sizeof(r->value)}};
	bool quoted = false;
	bool good = true;
	int c;

	r->value[0] = '\0';
	while (good && (c = next_in_value(r, quoted)) != '\n') {
		if (!quoted && is_blank(c)) {
			good = put_blank(&v, c);
			continue;
		}
		v.odd |= v.trim && v.odd_trim;
		v.trim = 0;
		if (c == '"')
			quoted = !quoted;
		else if (c == '\\')
			good = read_escape(r, &v.text);
		else
			good = put(&v.text, c);
	}
	if (v.trim)
		r->value[v.trim] = '\0';
	*ret_odd = v.odd;
	return good && !quoted;
}

/* A key that starts with `c`, and its value. */
static bool read_entry(struct reader *r, int c, gitconfig_item *item, void *self)
{
	struct text key = {r->key, 0, sizeof(r->key)};
	struct gitconfig_entry entry = {.section = r->section,
					.sub = r->has_sub ? r->sub : NULL,
					.key = r->key};

	if (!r->section[0])
		return false;
	do {
		if (!put(&key, lower(c)))
			return false;
		c = next(r);
	} while (is_key_char(c));
	while (c == ' ' || c == '\t')
		c = next(r);
	if (c != '\n') {
		if (c != '=' || !read_value(r, &entry.odd_blanks))
			return false;
		entry.value = r->value;
	}
	return item(self, &entry);
}

bool gitconfig_parse(const char *text, size_t n, gitconfig_item *item, void *self)
{
	static const char bom[] = "\xef\xbb\xbf";
	struct reader r = {.p = text, .end = text + n};

	if (n >= 3 && memcmp(text, bom, 3) == 0)
		r.p += 3;
	for (;;) {
		bool good = true;
		int c = next(&r);
		if (r.eof)
			return true;
		if (is_blank(c))
			continue;
		if (c == '#' || c == ';')
			good = skip_comment(&r);
		else if (c == '[')
			good = read_section(&r);
		else
			good = is_letter(c) && read_entry(&r, c, item, self);
		if (!good)
			return false;
	}
}

bool gitconfig_take_worktree(void *self, const struct gitconfig_entry *entry)
{
	if (strcmp(entry->section, "core") == 0 && !entry->sub &&
	    strcmp(entry->key, "worktree") == 0 && entry->value)
		(void)snprintf(self, PATH_TEXT, "%s", entry->value);
	return true;
}

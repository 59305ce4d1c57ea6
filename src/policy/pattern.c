/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The matcher goes back to the last star only, in names and in directories: its
 * time is at most length times length, whatever the pattern.
 */
#include "policy/pattern.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/term.h"
#include "policy/protect.h"

#define SHOWN 512

bool pattern_is(const char *text)
{
	return strpbrk(text, "*?[") != NULL;
}

size_t pattern_split(const char *text)
{
	size_t first = strcspn(text, "*?[\\");

	while (first && text[first - 1] != '/')
		first--;
	return first;
}

static bool is_stars(const char *part)
{
	return part[0] == '*' && (part[1] == '\0' || (part[1] == '*' && part[2] == '\0'));
}

static bool is_double(const char *part)
{
	return strcmp(part, "**") == 0;
}

static int refuse(const char *text, const char *why, struct err *e)
{
	char shown[SHOWN];

	return err_set(e, ERR_CONFIG_INVALID, "pattern %s: %s",
		       term_escape_cut(shown, sizeof(shown), text, strlen(text)), why);
}

int pattern_init(struct pattern *p, const char *anchor, const char *text, struct err *e)
{
	p->parts = 0;
	p->tree = p->quiet = false;
	if (strlen(text) >= sizeof(p->text) || strlen(anchor) >= sizeof(p->anchor))
		return refuse(text, "too long", e);
	(void)snprintf(p->anchor, sizeof(p->anchor), "%s", anchor);
	(void)snprintf(p->text, sizeof(p->text), "%s", text);
	for (char *at = p->text; *at;) {
		size_t n = strcspn(at, "/");
		bool last = !at[n];
		at[n] = '\0';
		if (strcmp(at, "..") == 0)
			return refuse(text, "`..` in a pattern", e);
		bool again = p->parts && is_double(at) && is_double(p->part[p->parts - 1]);
		if (n && strcmp(at, ".") != 0 && !again) {
			if (p->parts == MAX_PATTERN_PARTS)
				return refuse(text, "too many slashes", e);
			p->part[p->parts++] = at;
		}
		at += n + !last;
	}
	/* All that is in a directory is the directory: one mask, also for what comes later. */
	while (p->parts && is_stars(p->part[p->parts - 1])) {
		p->tree = true;
		p->parts--;
	}
	if (!p->parts)
		return refuse(text, "it would be everything; name a directory, or part of a name",
			      e);
	for (size_t i = 0; i < p->parts; i++)
		p->quiet |= protect_is_quiet(p->part[i]);
	return 0;
}

bool pattern_names(const struct pattern *p, const char *name)
{
	for (size_t i = 0; i < p->parts; i++)
		if (strcmp(p->part[i], name) == 0)
			return true;
	return false;
}

static unsigned char lower(char c, bool fold)
{
	return (unsigned char)(fold && c >= 'A' && c <= 'Z' ? c + 32 : c);
}

/* `[…]` at *at; goes behind it. One that does not end is a bracket. */
static bool match_set(const char **at, char c, bool fold)
{
	const char *p = *at + 1;
	bool no = *p == '!' || *p == '^';
	bool hit = false;
	unsigned char is = lower(c, fold);

	p += no;
	for (bool first = true; *p && (first || *p != ']'); first = false) {
		p += *p == '\\' && p[1];
		unsigned char from = lower(*p, fold);
		unsigned char to = from;
		if (p[1] == '-' && p[2] && p[2] != ']') {
			p += 2;
			p += *p == '\\' && p[1];
			to = lower(*p, fold);
		}
		hit |= is >= from && is <= to;
		p++;
	}
	if (!*p) {
		(*at)++;
		return c == '[';
	}
	*at = p + 1;
	return hit != no;
}

/* One element of the part against what is left of the name; how much it takes, 0: no match. */
static size_t match_one(const char **at, const char *name, size_t left, bool fold)
{
	size_t n = 1;

	if (**at == '?') {
		(*at)++;
		while (n < left && ((unsigned char)name[n] & 0xc0u) == 0x80u)
			n++;
		return n;
	}
	if (**at == '[')
		return match_set(at, name[0], fold);
	*at += **at == '\\' && (*at)[1];
	return lower(*(*at)++, fold) == lower(name[0], fold);
}

bool pattern_match_name(const char *part, const char *name, size_t len, bool fold)
{
	const char *at = part;
	const char *star = NULL; /* behind the last one */
	size_t i = 0;
	size_t back = 0;

	while (i < len || *at) {
		if (*at == '*') {
			star = ++at;
			back = i;
			continue;
		}
		size_t n = i < len && *at ? match_one(&at, name + i, len - i, fold) : 0;
		if (!n && (!star || back >= len))
			return false;
		if (n) {
			i += n;
		} else {
			at = star;
			i = ++back;
		}
	}
	return true;
}

/* The next name of dir/name; false at its end. */
struct names {
	const char *dir, *name;
};

static bool next(struct names *n, const char **ret, size_t *ret_len)
{
	if (n->dir && *n->dir) {
		*ret = n->dir;
		*ret_len = strcspn(n->dir, "/");
		n->dir += *ret_len;
		n->dir += *n->dir == '/';
		return true;
	}
	n->dir = NULL;
	if (!n->name)
		return false;
	*ret = n->name;
	*ret_len = strlen(n->name);
	n->name = NULL;
	return true;
}

bool pattern_match(const struct pattern *p, const char *dir, const char *name, bool fold)
{
	struct names at = {dir, name};
	struct names back = at;
	size_t i = 0;
	size_t star = SIZE_MAX; /* behind the last `**` */
	const char *is = NULL;
	size_t len = 0;

	/* The last part decides for almost all. */
	if (!is_double(p->part[p->parts - 1]) &&
	    !pattern_match_name(p->part[p->parts - 1], name, strlen(name), fold))
		return false;
	for (;;) {
		if (i < p->parts && is_double(p->part[i])) {
			star = ++i;
			back = at;
			continue;
		}
		bool more = next(&at, &is, &len);
		if (!more && i == p->parts)
			return true;
		if (more && i < p->parts && pattern_match_name(p->part[i], is, len, fold)) {
			i++;
			continue;
		}
		if (!more || star == SIZE_MAX)
			return false;
		/* The star takes one name more. */
		i = star;
		at = back;
		if (!next(&at, &is, &len))
			return false;
		back = at;
	}
}

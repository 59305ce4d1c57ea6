/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where servers differ in what a path means, it is refused or read in every way.
 */
#include "egress/path.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"

#define ENCODED_SLASH "%2F"

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte that `%XX` at p stands for; -1: it is none. */
static int undo(const char *p, const char *end)
{
	if (end - p < 3 || p[0] != '%' || hex(p[1]) < 0 || hex(p[2]) < 0)
		return -1;
	return 16 * hex(p[1]) + hex(p[2]);
}

/* Written with a percent sign or without, it is the same to everybody. */
static bool is_same(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c > 0 && strchr("-._~!$&'()*+,=:@", c) != NULL);
}

static const char *check_byte(int c)
{
	if (c < 0x20 || c == 0x7f)
		return "a control byte in the path";
	if (c == '\\')
		return "a backslash in the path";
	return c == 0xc0 || c == 0xc1 ? "an overlong encoding in the path" : NULL;
}

/* The `%XX` at p, which stands for c, and what follows it. */
static const char *check_encoded(int c, const char *p, const char *end)
{
	int next = undo(p + 3, end);

	if (c == '%' && end - p >= 5 && hex(p[3]) >= 0 && hex(p[4]) >= 0)
		return "a percent sign that is encoded twice";
	if (c == '?' || c == '#')
		return "an encoded `?` or `#` in the path";
	if ((c == 0xe0 && next >= 0x80 && next < 0xa0) ||
	    (c == 0xf0 && next >= 0x80 && next < 0x90))
		return "an overlong encoding in the path";
	return check_byte(c);
}

/* One byte of the target, or one `%XX`. */
static const char *take_byte(const char **p, const char *end, char **ret)
{
	static const char digits[] = "0123456789ABCDEF";
	unsigned char raw = (unsigned char)**p;

	if (raw != '%') {
		const char *bad = check_byte(raw);
		if (!bad && (raw == ' ' || raw > 126 || raw == '#'))
			bad = "a byte in the path that has to be encoded";
		*(*ret)++ = (char)raw;
		(*p)++;
		return bad;
	}
	int c = undo(*p, end);
	if (c < 0)
		return "a percent sign that stands for nothing";
	const char *bad = check_encoded(c, *p, end);
	if (bad)
		return bad;
	*p += 3;
	if (is_same(c)) {
		*(*ret)++ = (char)c;
		return NULL;
	}
	*(*ret)++ = '%';
	*(*ret)++ = digits[c / 16];
	*(*ret)++ = digits[c % 16];
	return NULL;
}

/* Where what some servers cut off as a parameter begins; n: nowhere. */
static size_t parameters(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s[i] == ';' || (n - i >= 3 && strncasecmp(s + i, "%3B", 3) == 0))
			return i;
	return n;
}

/* "." and "..", also with encoded bytes of ASCII around them, which some servers cut off. */
static bool is_dots(const char *s, size_t n)
{
	size_t dots = 0;

	for (size_t i = 0; i < n;) {
		int c = undo(s + i, s + n);
		if (c < 0 ? s[i] != '.' : c > 0x7f)
			return false;
		dots += c < 0;
		i += c < 0 ? 1 : 3;
	}
	return dots == 1 || dots == 2;
}

static const char *check_segments(const char *path)
{
	for (const char *p = path; *p;) {
		size_t n = strcspn(++p, "/");
		if (n == 0 && p[0])
			return "an empty segment in the path";
		size_t kept = parameters(p, n);
		if (n && kept == 0)
			return "an empty segment with parameters in the path";
		if (is_dots(p, kept))
			return "a dot segment in the path";
		p += n;
	}
	return NULL;
}

static void put_slashes(const char *text, const char *end, char *ret)
{
	while (text < end) {
		bool slash = strncmp(text, ENCODED_SLASH, 3) == 0;
		*ret++ = slash ? '/' : *text;
		text += slash ? 3 : 1;
	}
	*ret = '\0';
}

const char *egress_path_read(const char *target, size_t n, struct egress_path *ret)
{
	const char *query = memchr(target, '?', n);
	const char *end = query ? query : target + n;
	const char *p = target;
	char *at = ret->text;

	if (p == end || *p != '/')
		return "no path";
	if ((size_t)(end - p) > MAX_EGRESS_PATH)
		return "a path that is too long";
	while (p < end) {
		const char *bad = take_byte(&p, end, &at);
		if (bad)
			return bad;
	}
	*at = '\0';
	put_slashes(ret->text, at, ret->slashes);
	const char *bad = check_segments(ret->text);
	return bad ? bad : check_segments(ret->slashes);
}

const char *egress_pattern_check(const char *pattern, size_t n)
{
	struct egress_path unused; /* but for its canonical form */

	if (n == 0 || pattern[0] != '/')
		return "a path begins with `/`";
	if (memchr(pattern, '?', n))
		return "a path without its query";
	const char *bad = egress_path_read(pattern, n, &unused);
	if (bad)
		return bad;
	if (parameters(pattern, n) < n)
		return "a path without parameters (`;`), which servers cut off";
	if (strlen(unused.text) != n || memcmp(unused.text, pattern, n) != 0)
		return "in a path percent signs stand only for what needs them, in upper case";
	for (const char *p = pattern; p < pattern + n;) {
		const char *next = memchr(p + 1, '/', (size_t)(pattern + n - p) - 1);
		size_t len = (size_t)((next ? next : pattern + n) - p) - 1;
		if (len != 2 && memmem(p + 1, len, "**", 2))
			return "`**` stands alone between two `/`";
		p += len + 1;
	}
	return NULL;
}

/* What is being compared; the end of a segment is a slash or the end. */
struct piece {
	const char *p;
	size_t n;
};

static struct piece first_piece(const char *s, const char *end)
{
	const char *slash = memchr(s, '/', (size_t)(end - s));

	return (struct piece){s, (size_t)((slash ? slash : end) - s)};
}

static bool same_byte(char a, char b, bool loosely)
{
	return a == b || (loosely && strncasecmp(&a, &b, 1) == 0);
}

/* `*` is any bytes. */
static bool match_bytes(struct piece pattern, struct piece s, bool loosely)
{
	size_t star = SIZE_MAX;
	size_t from = 0;
	size_t p = 0;
	size_t i = 0;

	while (i < s.n) {
		if (p < pattern.n && pattern.p[p] == '*') {
			star = p++;
			from = i;
		} else if (p < pattern.n && same_byte(pattern.p[p], s.p[i], loosely)) {
			p++;
			i++;
		} else if (star != SIZE_MAX) {
			p = star + 1;
			i = ++from;
		} else {
			return false;
		}
	}
	while (p < pattern.n && pattern.p[p] == '*')
		p++;
	return p == pattern.n;
}

/* Loosely: with its parameters or without; else with and without. */
static bool match_piece(struct piece pattern, struct piece s, bool loosely)
{
	struct piece cut = {s.p, parameters(s.p, s.n)};
	bool whole = match_bytes(pattern, s, loosely);

	if (cut.n == s.n)
		return whole;
	return loosely ? whole || match_bytes(pattern, cut, loosely)
		       : whole && match_bytes(pattern, cut, loosely);
}

static const char *cut_slashes(const char *s, const char *end)
{
	while (end > s + 1 && end[-1] == '/')
		end--;
	return end;
}

/* Behind the segment at s; NULL: it was the last one. */
static const char *behind(struct piece s, const char *end)
{
	return s.p + s.n < end ? s.p + s.n + 1 : NULL;
}

static bool is_any(struct piece s)
{
	return s.n == 2 && memcmp(s.p, "**", 2) == 0;
}

/* Only `**` are left. */
static bool is_rest_empty(const char *p, const char *end)
{
	while (p) {
		struct piece one = first_piece(p, end);
		if (!is_any(one))
			return false;
		p = behind(one, end);
	}
	return true;
}

bool egress_path_match(const char *pattern, size_t n, const char *path, bool loosely)
{
	const char *pattern_end = pattern + n;
	const char *end = path + strlen(path);
	const char *star = NULL; /* behind the last `**` */
	bool starred = false;
	const char *from = NULL; /* where what it stands for ends */

	if (loosely) {
		pattern_end = cut_slashes(pattern, pattern_end);
		end = cut_slashes(path, end);
	}
	const char *p = pattern + 1;
	const char *s = path + 1;
	while (s) {
		struct piece one = first_piece(s, end);
		struct piece want = p ? first_piece(p, pattern_end) : (struct piece){NULL, 0};
		if (p && is_any(want)) {
			star = p = behind(want, pattern_end);
			starred = true;
			from = s;
		} else if (p && match_piece(want, one, loosely)) {
			p = behind(want, pattern_end);
			s = behind(one, end);
		} else if (starred) {
			p = star;
			from = s = behind(first_piece(from, end), end);
		} else {
			return false;
		}
	}
	return is_rest_empty(p, pattern_end);
}

/* Undoes percent signs once, in place. */
static size_t undo_all(char *s, size_t n)
{
	size_t to = 0;

	for (size_t i = 0; i < n; to++) {
		int c = undo(s + i, s + n);
		s[to] = c < 0 ? s[i] : (char)c;
		i += c < 0 ? 1 : 3;
	}
	return to;
}

/* As the laxest of servers would; n bytes at most. Slashes around each segment. */
static void read_laxly(char *s, size_t n, char *ret)
{
	char *to = ret;

	*to++ = '/';
	for (size_t i = 0; i < n;) {
		size_t len = 0;
		while (i + len < n && s[i + len] != '/')
			len++;
		size_t kept = parameters(s + i, len);
		if (kept == 2 && memcmp(s + i, "..", 2) == 0) {
			for (to -= to > ret + 1; to > ret && to[-1] != '/';)
				to--;
		} else if (kept && !(kept == 1 && s[i] == '.')) {
			memcpy(to, s + i, kept);
			to += kept;
			*to++ = '/';
		}
		i += len + 1;
	}
	*to = '\0';
}

static bool is_one_of(const char *method, size_t n, const char *const *names)
{
	for (; *names; names++)
		if (strlen(*names) == n && strncasecmp(*names, method, n) == 0)
			return true;
	return false;
}

static bool pushes(const char *method, size_t method_len, const char *path, const char *query)
{
	static const char *const reads[] = {"GET", "HEAD", "OPTIONS", NULL};

	if (strstr(path, "/git-receive-pack/"))
		return true;
	if (strstr(path, "/info/refs/") &&
	    (strstr(query, "git-receive-pack") || strstr(path, "git-receive-pack")))
		return true;
	if (is_one_of(method, method_len, reads))
		return false;
	const char *lfs = strstr(path, "/info/lfs/");
	if (lfs)
		return strcmp(lfs, "/info/lfs/objects/batch/") != 0;
	return strstr(path, "/gitlab-lfs/") ||
	       (strstr(path, ".git/") && !strstr(path, "/git-upload-pack/"));
}

bool egress_path_pushes(const char *method, size_t method_len, const char *target, size_t n)
{
	char copy[MAX_EGRESS_TARGET + 1];
	char path[sizeof(copy) + 2];

	assert(n <= MAX_EGRESS_TARGET);
	const char *mark = memchr(target, '?', n);
	size_t path_len = mark ? (size_t)(mark - target) : n;
	memcpy(copy, target, n);
	size_t query = path_len;
	size_t path_end = undo_all(copy, undo_all(copy, path_len));
	size_t query_len = undo_all(copy + query, undo_all(copy + query, n - query));
	for (size_t i = 0; i < n; i++) {
		if (copy[i] >= 'A' && copy[i] <= 'Z')
			copy[i] = (char)(copy[i] | 0x20);
		unsigned char c = (unsigned char)copy[i];
		/* Where some reader ends a path or begins its next part. */
		if (c == '\\' || (i < path_end && (c <= ' ' || c == 0x7f || c == '?' || c == '#')))
			copy[i] = '/';
		else if (c == '\0')
			copy[i] = ' ';
	}
	copy[query + query_len] = '\0';
	read_laxly(copy, path_end, path);
	return pushes(method, method_len, path, copy + query);
}

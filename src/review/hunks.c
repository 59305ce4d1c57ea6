/* SPDX-License-Identifier: Apache-2.0 */
#include "review/hunks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/buf.h"
#include "review/boxed.h"

/* $1: bytes of the first of two files. */
static const char script[] =
	"head -c \"$1\" >a && cat >b || exit 1\n"
	"export HOME=\"$PWD\" GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null LC_ALL=C\n"
	"git diff --no-index --no-color --no-ext-diff --no-textconv -U3 a b || [ $? = 1 ]\n";

static int add(struct hunks *h, const struct hunk *x, struct err *e)
{
	if (h->n == MAX_HUNKS)
		return err_set(e, ERR_ARG_LIMIT, "a file has more than %u hunks", MAX_HUNKS);
	if (h->n == h->cap) {
		size_t cap = h->cap ? 2 * h->cap : 16;
		struct hunk *v = reallocarray(h->v, cap, sizeof(*v));
		if (!v)
			return err_set(e, ERR_INTERNAL, "out of memory");
		h->v = v;
		h->cap = cap;
	}
	h->v[h->n++] = *x;
	return 0;
}

/* "@@ -AT,N +AT,N @@"; ",N" is left out for one line. */
static bool take_head(const char *line, struct hunk *ret)
{
	unsigned long long at = 0;
	unsigned long long n = 1;

	if (sscanf(line, "@@ -%llu,%llu +", &at, &n) != 2 && sscanf(line, "@@ -%llu +", &at) != 1)
		return false;
	*ret = (struct hunk){.text = line, .old_at = at, .old_n = strchr(line, ',') ? n : 1};
	return true;
}

int hunks_parse(char *text, size_t n, struct hunks *ret, struct err *e)
{
	*ret = (struct hunks){.text = text};
	for (size_t at = 0; at < n;) {
		const char *end = memchr(text + at, '\n', n - at);
		size_t len = end ? (size_t)(end - text) + 1 - at : n - at;
		struct hunk x;
		/* A line of a hunk begins with a blank, '+', '-' or '\\'. */
		if (strncmp(text + at, "@@ -", 4) == 0 && take_head(text + at, &x) &&
		    add(ret, &x, e) < 0) {
			hunks_release(ret);
			return -1;
		}
		at += len;
		if (ret->n)
			ret->v[ret->n - 1].n = (size_t)(text + at - ret->v[ret->n - 1].text);
	}
	return 0;
}

void hunks_release(struct hunks *h)
{
	free(h->v);
	free(h->text);
	*h = (struct hunks){.v = NULL};
}

int hunks_make(int before, int after, struct hunks *ret, struct err *e)
{
	char size[32];
	const char *args[] = {size, NULL};
	const struct boxed_part in[] = {{.fd = before}, {.fd = after}};
	struct boxed b = {.script = script,
			  .args = args,
			  .in = in,
			  .in_n = 2,
			  .max_out = MAX_HUNK_TEXT};
	struct stat old;
	struct stat new;
	AUTO_FD int out = -1;

	*ret = (struct hunks){.v = NULL};
	if (fstat(before, &old) < 0 || fstat(after, &new) < 0)
		return err_sys(e, "a file with hunks");
	if ((uint64_t)old.st_size > MAX_HUNK_FILE || (uint64_t) new.st_size > MAX_HUNK_FILE)
		return 0;
	(void)snprintf(size, sizeof(size), "%lld", (long long)old.st_size);
	if (boxed_run(&b, &out, e) < 0 || fstat(out, &new) < 0)
		return -1;
	size_t n = (size_t) new.st_size;
	char *text = malloc(n + 1);
	if (!text || pread(out, text, n, 0) != (ssize_t)n) {
		free(text);
		return err_set(e, ERR_INTERNAL, "git's hunks cannot be read");
	}
	text[n] = '\0';
	return hunks_parse(text, n, ret, e);
}

/* Where the next `lines` lines end; NULL: there are not so many. */
static const char *skip(const char *p, const char *end, uint64_t lines)
{
	while (lines-- && p) {
		const char *nl = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
		p = nl ? nl + 1 : p < end ? end : NULL;
	}
	return p;
}

/* What it leaves and what it adds. */
static void put_new(const struct hunk *x, struct buf *out)
{
	const char *end = x->text + x->n;
	const char *p = skip(x->text, end, 1); /* behind the @@ line */

	while (p && p < end) {
		const char *next = skip(p, end, 1);
		bool bare = next < end && *next == '\\'; /* "\ No newline at end of file" */
		if (*p == ' ' || *p == '+')
			(void)buf_add(out, p + 1, (size_t)(next - p) - 1 - bare);
		p = next;
	}
}

int hunks_apply(const struct hunks *h, const char *old, size_t n, struct buf *out, struct err *e)
{
	const char *end = old + n;
	const char *at = old;
	uint64_t line = 1;

	for (size_t i = 0; i < h->n; i++) {
		const struct hunk *x = &h->v[i];
		/* One without old lines comes behind the line that it names. */
		uint64_t first = x->old_n ? x->old_at : x->old_at + 1;
		if (!x->take)
			continue;
		const char *from = first < line ? NULL : skip(at, end, first - line);
		const char *to = from ? skip(from, end, x->old_n) : NULL;
		if (!to)
			return err_set(e, ERR_INTERNAL, "a hunk is not of this file");
		(void)buf_add(out, at, (size_t)(from - at));
		put_new(x, out);
		at = to;
		line = first + x->old_n;
	}
	(void)buf_add(out, at, (size_t)(end - at));
	return buf_check(out, "a file with hunks", ERR_ARG_LIMIT, e);
}

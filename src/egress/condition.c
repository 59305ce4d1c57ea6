/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Methods and paths of rules, written by a person: one spelling each.
 */
#include "egress/condition.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/nearest.h"
#include "egress/path.h"

/* RFC 9110 9, RFC 5789, RFC 4918, RFC 3253, RFC 5323; CONNECT and TRACE are never sent on. */
const char *const egress_methods[EGRESS_METHODS + 1] = {"GET",     "HEAD",     "POST",
							"PUT",     "PATCH",    "DELETE",
							"OPTIONS", "PROPFIND", "MKCOL",
							"COPY",    "MOVE",     "LOCK",
							"UNLOCK",  "REPORT",   "PROPPATCH",
							"MERGE",   "CHECKOUT", "MKACTIVITY",
							"SEARCH",  NULL};

static int refuse(struct err *e, const char *text, const char *at, const char *what)
{
	return err_set(e, ERR_CONFIG_INVALID, "`%.*s`: %s (at byte %zu)", 300, text, what,
		       (size_t)(at - text) + 1);
}

static int read_method(struct egress_rule *r, const char *text, const char *at, size_t n,
		       struct err *e)
{
	char word[32];

	(void)snprintf(word, sizeof(word), "%.*s", n < sizeof(word) ? (int)n : 31, at);
	for (unsigned int i = 0; i < EGRESS_METHODS; i++)
		if (strcmp(egress_methods[i], word) == 0) {
			if (r->methods & 1u << i)
				return refuse(e, text, at, "a method that is named twice");
			r->methods |= 1u << i;
			return 0;
		}
	(void)refuse(e, text, at, n ? "an unknown method" : "an empty method");
	for (char *p = word; *p; p++)
		if (*p >= 'a' && *p <= 'z')
			*p = (char)(*p & ~0x20);
	const char *near = nearest(word, egress_methods, EGRESS_METHODS);
	if (near)
		return err_hint(e, "did you mean `%s`?", near);
	return err_hint(e,
			"methods are GET, HEAD, POST, PUT, PATCH, DELETE, …; paths begin with `/`");
}

static int read_methods(struct egress_rule *r, const char *text, const char *at, size_t n,
			struct err *e)
{
	for (size_t i = 0; i <= n;) {
		size_t len = 0;
		while (i + len < n && at[i + len] != ',')
			len++;
		if (read_method(r, text, at + i, len, e) < 0)
			return -1;
		i += len + 1;
	}
	return 0;
}

static int add_path(struct egress_rule *r, const char *text, const char *at, size_t n,
		    struct err *e)
{
	size_t used = strlen(r->paths);
	const char *bad = egress_pattern_check(at, n);

	if (bad)
		return refuse(e, text, at, bad);
	if (used + n + 2 > sizeof(r->paths))
		return refuse(e, text, at, "more paths than fit into one rule");
	(void)snprintf(r->paths + used, sizeof(r->paths) - used, "%s%.*s", used ? " " : "", (int)n,
		       at);
	return 0;
}

int egress_condition_read(struct egress_rule *r, const char *text, const char *at, struct err *e)
{
	const char *p = at;

	if (r->list != EGRESS_LIST_ALLOW && r->list != EGRESS_LIST_DENY)
		return refuse(e, text, at, "methods and paths are of allow and deny rules");
	if (r->kind == EGRESS_PREFIX || r->kind == EGRESS_LOOPBACK)
		return refuse(e, text, at,
			      "methods and paths need a name: addresses are not inspected");
	if (r->list == EGRESS_LIST_DENY && r->kind == EGRESS_EVERY)
		return refuse(e, text, at,
			      "methods and paths are denied by name: addresses are not inspected");
	for (;;) {
		size_t n = strcspn(p, " ");
		if (n == 0)
			return refuse(e, text, p, "one blank between host, methods and paths");
		if (*p != '/' && p != at)
			return refuse(
				e, text, p,
				"a path begins with `/`; methods stand in front, with commas");
		if ((*p == '/' ? add_path(r, text, p, n, e) : read_methods(r, text, p, n, e)) < 0)
			return -1;
		if (!p[n])
			return 0;
		p += n + 1;
	}
}

int egress_repository_read(struct egress_rule *r, const char *text, const char *at, struct err *e)
{
	char path[MAX_EGRESS_PATHS];
	size_t n = strlen(at);

	if (r->kind == EGRESS_PREFIX || r->kind == EGRESS_LOOPBACK || r->kind == EGRESS_EVERY)
		return refuse(e, text, text, "a push grant needs a name");
	if (n < 2 || at[0] != '/') {
		(void)refuse(e, text, at, "a push grant names a repository");
		return err_hint(e, "write HOST/OWNER/REPOSITORY");
	}
	if (n > 4 && strcmp(at + n - 4, ".git") == 0)
		n -= 4;
	if (at[n - 1] == '/' || memmem(at, n, "**", 2))
		return refuse(e, text, at,
			      "a push grant names repositories: `*` within a part at most");
	int len = snprintf(path, sizeof(path), "%.*s/**", (int)n, at);
	if (len < 0 || 2 * (size_t)len + 8 > sizeof(path))
		return refuse(e, text, at, "a path that is too long");
	if (add_path(r, text, path, (size_t)len, e) < 0)
		return -1;
	len = snprintf(path, sizeof(path), "%.*s.git/**", (int)n, at);
	return add_path(r, text, path, (size_t)len, e);
}

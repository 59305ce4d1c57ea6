/* SPDX-License-Identifier: Apache-2.0 */
#include "review/branch.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "base/utf8.h"

/* Of one component, between slashes. */
static bool component_is_good(const char *p, size_t n)
{
	return n > 0 && p[0] != '.' && p[n - 1] != '.' && !memmem(p, n, "..", 2) &&
	       !(n >= 5 && memcmp(p + n - 5, ".lock", 5) == 0);
}

/* Neither control nor invisible characters: two names that look alike are alike. */
static bool can_be_read(const char *name)
{
	size_t left = strlen(name);

	for (const char *p = name; left;) {
		uint32_t cp = 0;
		size_t n = utf8_decode(p, left, &cp);
		if (!n || utf8_is_unsafe(cp) || cp == 0x200c || cp == 0x200d)
			return false;
		p += n;
		left -= n;
	}
	return true;
}

static bool name_is_good(const char *name)
{
	if (name[0] == '-' || strcasecmp(name, "HEAD") == 0 || strcmp(name, "@") == 0 ||
	    strncmp(name, "refs/", 5) == 0 || strstr(name, "@{"))
		return false;
	for (const unsigned char *p = (const unsigned char *)name; *p; p++)
		if (*p <= ' ' || *p == 0x7f || strchr("~^:?*[\\", *p))
			return false;
	if (!can_be_read(name))
		return false;
	for (const char *p = name;; p += strcspn(p, "/") + 1) {
		size_t n = strcspn(p, "/");
		if (!component_is_good(p, n))
			return false;
		if (!p[n])
			return true;
	}
}

int branch_check(const char *name, struct err *e)
{
	if (strlen(name) > MAX_BRANCH)
		return err_set(e, ERR_CONFIG_INVALID, "a branch of more than %d bytes", MAX_BRANCH);
	if (name[0] && name_is_good(name))
		return 0;
	(void)err_set(e, ERR_CONFIG_INVALID, "`%s` is no name of a branch", name);
	return err_hint(e, "a name such as fix/parser, without refs/heads/");
}

static bool same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

bool branch_matches(const char *pattern, const char *name)
{
	const char *star = NULL; /* behind the last `*` seen, and what it stands for so far */
	const char *resume = NULL;

	while (*name) {
		if (*pattern == '*') {
			star = ++pattern;
			resume = name;
		} else if (*pattern == '?' || same(*pattern, *name)) {
			pattern++;
			name++;
		} else if (star) {
			pattern = star;
			name = ++resume;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

/* HOST:PATH, where the host has no slash before the colon. */
static bool is_scp(const char *url)
{
	size_t host = strcspn(url, ":/");

	return host > 0 && url[host] == ':' && url[host + 1] != ':';
}

int remote_check(const char *url, const char **ret_local, struct err *e)
{
	char shown[2048];
	static const char *const schemes[] = {"ssh://", "https://", "git+ssh://", "ssh+git://"};
	const char *local = NULL;
	bool good = false;

	if (!url[0] || url[0] == '-')
		return err_set(e, ERR_CONFIG_INVALID, "the remote `%s` is no address",
			       remote_shown(url, shown, sizeof(shown)));
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
		if (strncasecmp(url, schemes[i], strlen(schemes[i])) == 0)
			good = url[strlen(schemes[i])] != '-';
	if (strncmp(url, "file://", 7) == 0)
		local = url + 7;
	else if (!strstr(url, "://") && !strstr(url, "::") && !is_scp(url))
		local = url;
	else if (!strstr(url, "://") && !strstr(url, "::"))
		good = true;
	if (!good && !local) {
		(void)err_set(e, ERR_POLICY_DENIED, "a push does not speak to `%s`",
			      remote_shown(url, shown, sizeof(shown)));
		return err_hint(
			e, "https://, ssh://, HOST:PATH, file:// and a path are what there is");
	}
	*ret_local = local;
	return 0;
}

char *remote_cut(char *text)
{
	for (char *at = strstr(text, "://"); at; at = strstr(at, "://")) {
		at += 3;
		char *end = at + strcspn(at, "/?# \t\n\"'`<>");
		char *cut = NULL;
		/* The last one: a password may have another. */
		for (char *p = at; p < end; p++)
			if (*p == '@')
				cut = p + 1;
		if (cut)
			memmove(at, cut, strlen(cut) + 1);
	}
	return text;
}

const char *remote_shown(const char *url, char *ret, size_t size)
{
	(void)snprintf(ret, size, "%s", url);
	return remote_cut(ret);
}

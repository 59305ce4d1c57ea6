/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands in a URL goes into files of other programs as it is: so only characters that
 * mean nothing in any of them are taken.
 */
#include "egress/mirror.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/nearest.h"

const char *const egress_managers[EGRESS_MANAGERS + 1] = {"apt",   "cargo", "go",
							  "maven", "npm",   "pip"};

/*
 * Where each goes when nobody says otherwise: what its documentation and its own
 * configuration name, with what lies below.
 */
static const struct {
	enum egress_manager manager;
	const char *name;
} registries[] = {
	{MANAGER_APT, "deb.debian.org"},
	{MANAGER_APT, "ftp.debian.org"},
	{MANAGER_APT, "http.debian.net"},
	{MANAGER_APT, "httpredir.debian.org"},
	{MANAGER_APT, "security.debian.org"},
	{MANAGER_APT, "archive.ubuntu.com"},
	{MANAGER_APT, "ports.ubuntu.com"},
	{MANAGER_APT, "security.ubuntu.com"},
	{MANAGER_CARGO, "crates.io"},
	{MANAGER_GO, "proxy.golang.org"},
	{MANAGER_GO, "sum.golang.org"},
	{MANAGER_MAVEN, "repo.maven.apache.org"},
	{MANAGER_MAVEN, "repo1.maven.org"},
	{MANAGER_NPM, "registry.npmjs.org"},
	{MANAGER_NPM, "registry.npmjs.com"},
	{MANAGER_NPM, "registry.yarnpkg.com"},
	{MANAGER_PIP, "pypi.org"},
	{MANAGER_PIP, "pypi.python.org"},
	{MANAGER_PIP, "pythonhosted.org"},
};

static int refuse(const char *text, const char *what, struct err *e)
{
	(void)err_set(e, ERR_CONFIG_INVALID, "`%.300s`: %s", egress_mirror_url(text), what);
	return err_hint(e, "a mirror is http://HOST[:PORT][/PATH] or https://…");
}

static int read_manager(const char *text, enum egress_manager *ret, struct err *e)
{
	char name[16];
	size_t n = strcspn(text, " ");

	for (unsigned int i = 0; i < EGRESS_MANAGERS; i++)
		if (strlen(egress_managers[i]) == n && strncmp(egress_managers[i], text, n) == 0 &&
		    text[n] == ' ') {
			*ret = (enum egress_manager)i;
			return 0;
		}
	(void)snprintf(name, sizeof(name), "%.15s", text);
	name[strcspn(name, " ")] = '\0';
	(void)err_set(e, ERR_CONFIG_INVALID, "no package manager `%s`", name);
	const char *near = nearest(name, egress_managers, EGRESS_MANAGERS);
	return near ? err_hint(e, "did you mean `%s`?", near) : -1;
}

/* One host, and nothing that a rule may have besides. */
static bool is_one_place(const struct egress_rule *r)
{
	switch ((enum egress_rule_kind)r->kind) {
	case EGRESS_NAME:
		return !strchr(r->host, '*') && r->port;
	case EGRESS_PREFIX:
		return r->bits == (r->addr.family == 4 ? 32 : 128) && r->port;
	case EGRESS_LOOPBACK:
		return true;
	case EGRESS_BELOW:
	case EGRESS_BOTH:
	case EGRESS_EVERY:
	case EGRESS_AMOUNT:
		break;
	}
	return false;
}

int egress_mirror_read(const char *text, struct egress_rule *ret, struct err *e)
{
	static const char path_chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					 "0123456789-._~/%+@,=";
	enum egress_manager manager = MANAGER_APT;
	char place[MAX_EGRESS_HOST_TEXT + 1];
	struct host h = {.kind = HOST_NAME};
	struct egress_rule rule;

	if (read_manager(text, &manager, e) < 0)
		return -1;
	const char *url = egress_mirror_url(text);
	size_t scheme = strncmp(url, "http://", 7) == 0    ? 7
			: strncmp(url, "https://", 8) == 0 ? 8
							   : 0;
	size_t n = scheme + strcspn(url + scheme, "/?#");
	if (!scheme)
		return refuse(text, "no address of a mirror", e);
	if (n >= sizeof(place) || strlen(text) > MAX_EGRESS_RULE_TEXT)
		return refuse(text, "too long", e);
	if (memchr(url, '@', n))
		return refuse(text, "no password stands in it; a secret gets there by `secrets`",
			      e);
	if (strspn(url + n, path_chars) != strlen(url + n))
		return refuse(text, "a path of letters, digits and -._~/%+@,= only", e);
	(void)snprintf(place, sizeof(place), "%.*s", (int)n, url);
	if (egress_rule_read(EGRESS_LIST_ALLOW, place, &rule, e) < 0)
		return -1;
	if (!is_one_place(&rule))
		return refuse(text, "a mirror is one host at one port", e);
	rule.list = EGRESS_LIST_MIRROR;
	rule.manager = (uint8_t)manager;
	memcpy(h.text, rule.host, sizeof(h.text));
	if (rule.kind == EGRESS_NAME && egress_mirror_closes(&rule, &h)) {
		(void)refuse(text, "this is no mirror, but what it would stand for", e);
		return err_hint(e, "`network.allow: [%.253s]` opens it", rule.host);
	}
	*ret = rule;
	return 0;
}

bool egress_mirror_closes(const struct egress_rule *r, const struct host *h)
{
	if (r->list != EGRESS_LIST_MIRROR || h->kind != HOST_NAME)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(registries); i++) {
		size_t len = strlen(h->text);
		size_t n = strlen(registries[i].name);
		if (registries[i].manager == r->manager && len >= n &&
		    strcmp(h->text + len - n, registries[i].name) == 0 &&
		    (len == n || h->text[len - n - 1] == '.'))
			return true;
	}
	return false;
}

const char *egress_mirror_url(const char *text)
{
	size_t n = strcspn(text, " ");

	return text + n + (text[n] == ' ');
}

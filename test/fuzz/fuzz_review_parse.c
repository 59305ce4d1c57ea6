/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as what the review reads of a session: a redirect, an origin, refs,
 * package.json, text with secrets. The first byte says which.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "review/flags.h"
#include "review/gitname.h"
#include "review/layer.h"
#include "review/refs.h"
#include "review/secrets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

/* Clean and relative: nothing that leads up or starts at the root. */
static void redirect(const char *p, size_t n)
{
	static const char *const parents[] = {NULL, "", "a/b"};
	char ret[PATH_TEXT];

	for (size_t i = 0; i < 3; i++) {
		if (!layer_redirect_parse(p, n, parents[i], ret))
			continue;
		check(ret[0] && ret[0] != '/' && strlen(ret) < PATH_TEXT);
		for (char *at = ret; at; at = strchr(at, '/')) {
			at += *at == '/';
			size_t len = strcspn(at, "/");
			check(len > 0 && len <= PATH_NAME_MAX && strncmp(at, "./", 2) != 0 &&
			      strncmp(at, "../", 3) != 0 && strcmp(at, "..") != 0 &&
			      strcmp(at, ".") != 0);
		}
	}
}

static bool one(void *self, const char *name, const char *oid)
{
	(void)self;
	check(strlen(name) < MAX_REF_NAME && strncmp(name, "refs/", 5) == 0 &&
	      (strlen(oid) == 40 || strlen(oid) == 64));
	return true;
}

static void refs(const char *p, size_t n)
{
	char ret[MAX_REF_TEXT];

	check(refs_parse_packed(p, n, one, NULL));
	refs_parse_loose(p, n, ret);
	check(ret[0] && !strpbrk(ret, "\n\r\x1b"));
}

static void secrets(const char *p, size_t n)
{
	static struct secrets *s;
	struct secret_found found[MAX_SECRETS];
	struct err e = {0};
	bool given_up = false;

	if (!s)
		check(secrets_new(&s, &e) == 0);
	size_t count = secrets_find(s, p, n, NULL, 0, found, &given_up);
	check(count <= MAX_SECRETS);
	for (size_t i = 0; i < count; i++)
		check(strlen(found[i].shown) < SECRET_SHOWN && found[i].line > 0);
	check(secrets_find(s, p, n, p, n, found, &given_up) == 0);
}

static void names(const char *p, size_t n)
{
	AUTO_BUF out = BUF_INIT((size_t)1 << 20);
	AUTO_BUF member = BUF_INIT((size_t)1 << 20);
	char *text = malloc(n + 1);

	check(text != NULL);
	memcpy(text, p, n);
	text[n] = '\0';
	check(gitname_quote(&out, text) == 0);
	for (size_t i = 0; i < out.n; i++)
		check(out.p[i] >= ' ' && out.p[i] <= '~');
	(void)gitname_refused(text, true);
	(void)flags_link_leaves(text, text);
	free(text);
	if (flags_json_member(p, n, "scripts", &member))
		check(member.n <= n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *p = (const char *)data + 1;

	if (size < 2 || size > 100000)
		return 0;
	size--;
	switch (data[0]) {
	case 'r':
		redirect(p, size);
		break;
	case 'o':
		(void)layer_origin_parse((const unsigned char *)p, size);
		break;
	case 'p':
		refs(p, size);
		break;
	case 's':
		secrets(p, size);
		break;
	default:
		names(p, size);
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pure. A URL has been read by egress_mirror_read(): it holds nothing that would mean
 * something in TOML, XML or apt's own format.
 */
#include "policy/mirror.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "egress/mirror.h"

enum form {
	AS_URL,
	AS_HOST_PLAIN, /* HOST:PORT, if it is http: else nothing, so that certificates are verified */
	AS_TEXT,
};

static const struct variable {
	enum egress_manager manager;
	const char *name;
	enum form form;
	const char *text;
} variables[] = {
	/* npm reads all spellings, pnpm and yarn 1 the first, bun the second, yarn 2 the third. */
	{MANAGER_NPM, "npm_config_registry", AS_URL, NULL},
	{MANAGER_NPM, "NPM_CONFIG_REGISTRY", AS_URL, NULL},
	{MANAGER_NPM, "YARN_NPM_REGISTRY_SERVER", AS_URL, NULL},
	{MANAGER_PIP, "PIP_INDEX_URL", AS_URL, NULL},
	{MANAGER_PIP, "PIP_TRUSTED_HOST", AS_HOST_PLAIN, NULL},
	{MANAGER_PIP, "UV_DEFAULT_INDEX", AS_URL, NULL},
	{MANAGER_PIP, "UV_INSECURE_HOST", AS_HOST_PLAIN, NULL},
	/* No `direct` behind it. The checksum database is one of the registries that are closed. */
	{MANAGER_GO, "GOPROXY", AS_URL, NULL},
	{MANAGER_GO, "GOSUMDB", AS_TEXT, "off"},
	/* From 3.9 on; the wrapper fetches Maven itself by the other. */
	{MANAGER_MAVEN, "MAVEN_ARGS", AS_TEXT, "-s " MIRROR_MAVEN_FILE},
	{MANAGER_MAVEN, "MVNW_REPOURL", AS_URL, NULL},
	{MANAGER_APT, "APT_CONFIG", AS_TEXT, MIRROR_APT_FILE},
};

static bool put_value(const struct variable *v, const char *url, char ret[MIRROR_VALUE])
{
	bool plain = strncmp(url, "http://", 7) == 0;
	size_t n = plain ? strcspn(url + 7, "/") : 0;

	switch (v->form) {
	case AS_URL:
		(void)snprintf(ret, MIRROR_VALUE, "%s", url);
		return true;
	case AS_HOST_PLAIN:
		(void)snprintf(ret, MIRROR_VALUE, "%.*s", (int)n, url + 7);
		return plain;
	case AS_TEXT:
		(void)snprintf(ret, MIRROR_VALUE, "%s", v->text);
		return true;
	}
	return false;
}

const char *mirror_variable(const struct egress_entry *m, size_t i, char ret[MIRROR_VALUE])
{
	const char *url = egress_mirror_url(m->text);

	for (size_t k = 0; k < ARRAY_LEN(variables); k++)
		if (variables[k].manager == m->rule.manager && put_value(&variables[k], url, ret) &&
		    i-- == 0)
			return variables[k].name;
	return NULL;
}

static const char *slash(const char *url)
{
	return url[strlen(url) - 1] == '/' ? "" : "/";
}

/* `KEY=word` or `KEY="word"`; what is no plain word counts as none. */
static void put_word(struct buf *out, const char *release, const char *key, const char *none)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
	size_t n = strlen(key);

	for (const char *p = release; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		if (strncmp(p, key, n) != 0 || p[n] != '=')
			continue;
		p += n + 1;
		p += *p == '"';
		size_t word = strspn(p, plain);
		if (word && strchr("\"\n", p[word]))
			(void)buf_printf(out, "%.*s", (int)word, p);
		else
			(void)buf_str(out, none);
		return;
	}
	(void)buf_str(out, none);
}

static void put_sources(struct buf *out, const char *url, const char *release)
{
	AUTO_BUF id = BUF_INIT(256);

	put_word(&id, release, "ID", "debian");
	bool ubuntu = strcmp(buf_cstr(&id), "ubuntu") == 0;
	(void)buf_printf(out, "deb [signed-by=/usr/share/keyrings/%s-archive-keyring.gpg] %s ",
			 ubuntu ? "ubuntu" : "debian", url);
	put_word(out, release, "VERSION_CODENAME", "stable");
	(void)buf_printf(out, " main%s\n", ubuntu ? " universe" : "");
}

static const char *apt_file(size_t i, const char *url, const char *release, struct buf *ret)
{
	if (i == 1) {
		put_sources(ret, url, release);
		return MIRROR_APT_SOURCES;
	}
	/* The host's own lists and packages are not in the view: apt makes what it needs of them. */
	(void)buf_str(ret, "Dir::Etc::SourceList \"" MIRROR_APT_SOURCES "\";\n"
			   "Dir::Etc::SourceParts \"/dev/null\";\n"
			   "Dir::Etc::Parts \"/dev/null\";\n"
			   "Dir::Etc::PreferencesParts \"/dev/null\";\n"
			   "Dir::State \"/sand/cache/apt\";\n"
			   "Dir::State::Status \"/dev/null\";\n"
			   "Dir::Cache \"/sand/cache/apt\";\n"
			   "Dir::Log \"/sand/cache/apt\";\n");
	return i ? NULL : MIRROR_APT_FILE;
}

static const char *maven_file(size_t i, const char *url, struct buf *ret)
{
	if (i == 1) {
		/* Read by the `mvn` of every version, of those before 3.9 that alone. */
		(void)buf_str(ret, "set -- -s " MIRROR_MAVEN_FILE " \"$@\"\n");
		return MIRROR_MAVEN_RC;
	}
	(void)buf_printf(ret,
			 "<settings>\n  <mirrors>\n    <mirror>\n"
			 "      <id>sandglass-mirror</id>\n"
			 "      <mirrorOf>*</mirrorOf>\n      <url>%s</url>\n"
			 "    </mirror>\n  </mirrors>\n</settings>\n",
			 url);
	return i ? NULL : MIRROR_MAVEN_FILE;
}

const char *mirror_file(const struct egress_entry *m, size_t i, const char *release,
			struct buf *ret)
{
	const char *url = egress_mirror_url(m->text);

	switch ((enum egress_manager)m->rule.manager) {
	case MANAGER_APT:
		return apt_file(i, url, release, ret);
	case MANAGER_CARGO:
		(void)buf_printf(ret,
				 "[source.crates-io]\nreplace-with = \"sandglass-mirror\"\n\n"
				 "[source.sandglass-mirror]\nregistry = \"sparse+%s%s\"\n",
				 url, slash(url));
		return i ? NULL : MIRROR_CARGO_FILE;
	case MANAGER_MAVEN:
		return maven_file(i, url, ret);
	case MANAGER_GO:
	case MANAGER_NPM:
	case MANAGER_PIP:
	case EGRESS_MANAGERS:
		break;
	}
	return NULL;
}

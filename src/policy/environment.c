/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the environment from tables. Pure but for memory, and a look whether a path is there.
 */
#include "policy/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/term.h"
#include "policy/mirror.h"
#include "policy/secret.h"

#define NAME_TEXT 256
#define PROXY_URL "http://" EGRESS_ADDRESS4 ":3128"
/* The sandbox's own; programs differ in which forms they know. */
#define NO_PROXY_FOR "localhost,.localhost,127.0.0.1,127.0.0.0/8,::1,[::1],0.0.0.0,sandglass"

static const char *const passed[] = {"PATH", "LANG", "TERM", "TZ", "COLORTERM", "NO_COLOR"};

/* What sandglass sets, and nobody else can: first the places, then what says where the command is. */
enum { OUR_HOME, OUR_TMP, OUR_CACHE, OUR_ROOT, OUR_MARK, OUR_SESSION, OUR_CALL, OUR_DEPTH };
static const char *const ours[] = {
	[OUR_HOME] = "HOME",
	[OUR_TMP] = "TMPDIR",
	[OUR_CACHE] = "XDG_CACHE_HOME",
	[OUR_ROOT] = "AGENT_ROOT",
	[OUR_MARK] = "SANDGLASS",
	[OUR_SESSION] = "SESSION_ID",
	[OUR_CALL] = "SANDGLASS_CALL",
	[OUR_DEPTH] = "SANDGLASS_DEPTH_LEFT",
};

/* Toolchains that look for their root below HOME, which is another one inside. */
static const struct {
	const char *variable, *below_home, *needs;
} roots[] = {
	{"RUSTUP_HOME", ".rustup", ".cargo/bin"},
	{"PYENV_ROOT", ".pyenv", ".pyenv"},
	{"VOLTA_HOME", ".volta", ".volta"},
};

static int add(struct environment *env, const char *name, size_t name_len, const char *value,
	       struct err *e)
{
	size_t len = name_len + 1 + strlen(value) + 1;
	char *text = NULL;

	for (size_t i = 0; i < env->n; i++)
		if (strncmp(env->v[i], name, name_len) == 0 && env->v[i][name_len] == '=') {
			free(env->v[i]);
			env->v[i] = env->v[--env->n];
			env->v[env->n] = NULL;
		}
	if (env->n == MAX_ENV)
		return err_set(e, ERR_ARG_LIMIT, "more than %u environment variables", MAX_ENV);
	text = malloc(len);
	if (!text)
		return err_set(e, ERR_INTERNAL, "out of memory");
	(void)snprintf(text, len, "%.*s=%s", (int)name_len, name, value);
	env->v[env->n++] = text;
	return 0;
}

static int set(struct environment *env, const char *name, const char *value, struct err *e)
{
	return add(env, name, strlen(name), value, e);
}

static int add_passed(struct environment *env, const struct caller *who, struct err *e)
{
	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++) {
		const char *value = caller_env(who, passed[i]);
		if (value && set(env, passed[i], value, e) < 0)
			return -1;
	}
	for (char **v = who->env; *v; v++) {
		const char *eq = strchr(*v, '=');
		if (eq && strncmp(*v, "LC_", 3) == 0 &&
		    add(env, *v, (size_t)(eq - *v), eq + 1, e) < 0)
			return -1;
	}
	if (!caller_env(who, "PATH"))
		return set(env, "PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", e);
	return 0;
}

/* Whether PATH has an entry at or below HOME/part. */
static bool path_uses(const struct caller *who, const char *part)
{
	char prefix[PATH_TEXT];
	const char *path = caller_env(who, "PATH");

	if (!path || !who->home)
		return false;
	size_t n = (size_t)snprintf(prefix, sizeof(prefix), "%s/%s", who->home, part);
	for (; *path; path += strcspn(path, ":"), path += *path == ':')
		if (strncmp(path, prefix, n) == 0 && (!path[n] || path[n] == '/' || path[n] == ':'))
			return true;
	return false;
}

static int add_roots(struct environment *env, const struct caller *who, struct err *e)
{
	char value[PATH_TEXT];

	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		if (!path_uses(who, roots[i].needs))
			continue;
		(void)snprintf(value, sizeof(value), "%s/%s", who->home, roots[i].below_home);
		if (set(env, roots[i].variable, value, e) < 0)
			return -1;
	}
	return 0;
}

/*
 * Programs that ask for a proxy get clear answers, with a reason, where others see a
 * failed look-up. ALL_PROXY is none of them: what libraries read it start with its
 * SOCKS address, and some fail at once where they have no support for that.
 */
static int add_proxies(struct environment *env, const struct request *req, struct err *e)
{
	static const char *const names[] = {"http_proxy", "https_proxy", "HTTP_PROXY",
					    "HTTPS_PROXY"};
	static const char *const direct[] = {"no_proxy", "NO_PROXY"};
	bool opens = false;

	for (size_t i = 0; i < req->egress.n; i++)
		opens |= egress_rule_opens(&req->egress.v[i].rule) &&
			 req->egress.v[i].rule.kind != EGRESS_LOOPBACK;
	for (size_t i = 0; opens && i < ARRAY_LEN(names); i++)
		if (set(env, names[i], PROXY_URL, e) < 0)
			return -1;
	for (size_t i = 0; opens && i < ARRAY_LEN(direct); i++)
		if (set(env, direct[i], NO_PROXY_FOR, e) < 0)
			return -1;
	return 0;
}

/*
 * The certificates that programs are to believe under inspection: each library has a
 * variable of its own. That of node adds to its own roots, and reading it takes time.
 */
static int add_authorities(struct environment *env, const struct request *req, struct err *e)
{
	static const char *const names[] = {"SSL_CERT_FILE",      "CURL_CA_BUNDLE",
					    "REQUESTS_CA_BUNDLE", "PIP_CERT",
					    "GIT_SSL_CAINFO",     "CARGO_HTTP_CAINFO",
					    "AWS_CA_BUNDLE",      "NIX_SSL_CERT_FILE",
					    "HTTPLIB2_CA_CERTS"};
	static const char *const alone[] = {"NODE_EXTRA_CA_CERTS", "DENO_CERT"};

	if (!egress_set_opens(&req->egress) || !egress_set_inspects(&req->egress))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (set(env, names[i], AUTHORITIES_FILE, e) < 0)
			return -1;
	for (size_t i = 0; i < ARRAY_LEN(alone); i++)
		if (set(env, alone[i], AUTHORITY_FILE, e) < 0)
			return -1;
	return 0;
}

/* What package managers read about their mirrors. */
static int add_mirrors(struct environment *env, const struct request *req, struct err *e)
{
	char value[MIRROR_VALUE];

	for (size_t i = 0; i < req->egress.n; i++) {
		const char *name = NULL;
		if (req->egress.v[i].rule.list != EGRESS_LIST_MIRROR)
			continue;
		for (size_t k = 0; (name = mirror_variable(&req->egress.v[i], k, value)); k++)
			if (set(env, name, value, e) < 0)
				return -1;
	}
	return 0;
}

/* Placeholders, above whatever else goes by that name. */
static int add_secrets(struct environment *env, const struct request *req, const char *session,
		       struct err *e)
{
	const struct secret_rule *v[MAX_EGRESS_SECRETS];
	char placeholder[SECRET_PLACEHOLDER_TEXT];
	size_t n = 0;

	if (secrets_chosen(req, v, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		AUTO_BUF name = BUF_INIT(NAME_TEXT);
		secret_variable(v[i], &name);
		secret_placeholder(session, v[i]->name, placeholder);
		if (set(env, buf_cstr(&name), placeholder, e) < 0)
			return -1;
	}
	return 0;
}

static bool is_name(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!(s[i] == '_' || (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') ||
		      (i && s[i] >= '0' && s[i] <= '9')))
			return false;
	return n > 0;
}

static bool is_ours(const char *name, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		if (strlen(ours[i]) == n && memcmp(name, ours[i], n) == 0)
			return true;
	return false;
}

int environment_check_name(const char *text, size_t n, struct err *e)
{
	char shown[128];

	(void)term_escape_cut(shown, sizeof(shown), text, n);
	if (!is_name(text, n) || n >= NAME_TEXT)
		return err_set(e, ERR_CONFIG_INVALID, "%s: not a variable's name",
			       n ? shown : "\"\"");
	if (is_ours(text, n)) {
		(void)err_set(e, ERR_CONFIG_INVALID, "%s: sandglass sets this one itself", shown);
		return err_hint(e, "set it in the command: -c 'NAME=VALUE command'");
	}
	return 0;
}

/* NAME takes the caller's value (or nothing), NAME=VALUE sets it. */
static int add_named(struct environment *env, const char *text, const struct caller *who,
		     struct err *e)
{
	char name[NAME_TEXT];
	size_t n = strcspn(text, "=");

	if (environment_check_name(text, n, e) < 0)
		return err_wrap(e, "--env");
	memcpy(name, text, n);
	name[n] = '\0';
	const char *value = text[n] ? text + n + 1 : caller_env(who, name);
	return value ? set(env, name, value, e) : 0;
}

/* What files name, then the options above them. */
static int add_all_named(struct environment *env, const struct request *req,
			 const struct caller *who, struct err *e)
{
	for (size_t i = 0; i < req->file_env_count; i++) {
		const struct file_env *f = &req->file_env[i];
		if (f->if_there && access(f->text + strcspn(f->text, "=") + 1, F_OK) < 0)
			continue;
		if (add_named(env, f->text, who, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < req->env.n; i++)
		if (add_named(env, req->env.v[i], who, e) < 0)
			return -1;
	return 0;
}

int environment_build(struct environment *env, const struct request *req, const struct caller *who,
		      const char *root, const char *session, const char *call, struct err *e)
{
	char depth[16];
	char home[PATH_TEXT + 8];
	char tmp[PATH_TEXT + 8];
	char cache[PATH_TEXT + 8];
	const char *const values[ARRAY_LEN(ours)] = {
		[OUR_HOME] = home, [OUR_TMP] = tmp,     [OUR_CACHE] = cache,
		[OUR_ROOT] = root, [OUR_MARK] = "1",    [OUR_SESSION] = session,
		[OUR_CALL] = call, [OUR_DEPTH] = depth,
	};

	(void)snprintf(home, sizeof(home), "%s/home", root);
	(void)snprintf(tmp, sizeof(tmp), "%s/tmp", root);
	(void)snprintf(cache, sizeof(cache), "%s/cache", root);
	(void)snprintf(depth, sizeof(depth), "%u", DEPTH_LEFT);
	env->n = 0;
	memset(env->v, 0, sizeof(env->v));
	if (add_passed(env, who, e) < 0)
		return -1;
	if (req->mode != MODE_FULL_ACCESS && add_roots(env, who, e) < 0)
		return -1;
	if (req->mode != MODE_FULL_ACCESS &&
	    (add_proxies(env, req, e) < 0 || add_authorities(env, req, e) < 0 ||
	     add_mirrors(env, req, e) < 0))
		return -1;
	if (add_all_named(env, req, who, e) < 0)
		return -1;
	if (req->mode != MODE_FULL_ACCESS && add_secrets(env, req, session, e) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
		const char *value = values[i];
		/* Without a boundary there is no /sand: places stay the caller's own. */
		if (req->mode == MODE_FULL_ACCESS && i <= OUR_ROOT)
			value = i == OUR_HOME ? who->home : NULL;
		if (value && set(env, ours[i], value, e) < 0)
			return -1;
	}
	return 0;
}

void environment_release(struct environment *env)
{
	for (size_t i = 0; i < env->n; i++)
		free(env->v[i]);
	env->n = 0;
}

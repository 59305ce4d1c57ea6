/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the tree of a file to typed values, by a table of keys. Every mistake is
 * a finding with its position; reading goes on behind it.
 */
#include "config/layer.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/nearest.h"
#include "base/num.h"
#include "config/layer_parts.h"
#include "config/yaml.h"
#include "policy/environment.h"

const char *const limit_keys[LIMIT_SETTINGS] = {
	[LIMIT_WALL] = "wall",     [LIMIT_CPU_TIME] = "cpu_time", [LIMIT_CPUS] = "cpus",
	[LIMIT_MEMORY] = "memory", [LIMIT_PIDS] = "pids",         [LIMIT_DISK] = "disk",
	[LIMIT_INODES] = "inodes", [LIMIT_OUTPUT] = "output",     [LIMIT_GRACE] = "grace",
};

const char *const kept_keys[KEPTS] = {"audit", "logs", "artifacts"};
const char *const identity_names[] = {"plain", "pseudonym", NULL};

static const char *const writes_names[] = {"direct", "overlay", NULL};

#define KEPT_LEAST_MS (UINT64_C(24) * 3600 * 1000)

void reader_report(struct reader *r, bool warning, struct position at, const struct err *why)
{
	findings_add(r->findings, warning, r->layer->file, at, r->key, why);
}

void reader_wrong(struct reader *r, const struct node *n, const char *what, const char *hint)
{
	struct err e = {0};

	(void)err_set(&e, ERR_CONFIG_INVALID, "%s", what);
	if (hint)
		(void)err_hint(&e, "%s", hint);
	reader_report(r, false, n->at, &e);
}

/* A value of one word; NULL if it is something else (which is reported). */
const char *reader_word(struct reader *r, const struct node *n)
{
	if (n->kind == NODE_SCALAR && (n->len || !n->plain))
		return n->text;
	reader_wrong(r, n,
		     n->kind == NODE_SCALAR ? "has no value"
		     : n->kind == NODE_LIST ? "one value, not a list"
					    : "one value, not a map",
		     NULL);
	return NULL;
}

static void read_choice(struct reader *r, const struct node *n, const char *const *names, int *ret)
{
	const char *text = reader_word(r, n);
	struct err e = {0};
	size_t count = 0;

	if (!text)
		return;
	for (; names[count]; count++)
		if (strcmp(names[count], text) == 0) {
			*ret = (int)count;
			return;
		}
	AUTO_BUF list = BUF_INIT(512);
	for (size_t i = 0; i < count; i++)
		(void)buf_printf(&list, "%s%s", i ? ", " : "", names[i]);
	(void)err_set(&e, ERR_CONFIG_INVALID, "unknown value `%.200s`", text);
	const char *near = nearest(text, names, count);
	if (near)
		(void)err_hint(&e, "did you mean `%s`?", near);
	else
		(void)err_hint(&e, "one of: %s", buf_cstr(&list));
	reader_report(r, false, n->at, &e);
}

static void read_version(struct reader *r, const struct node *n, unsigned int arg)
{
	const char *text = reader_word(r, n);
	struct err e = {0};

	(void)arg;
	if (!text || (n->plain && strcmp(text, "1") == 0))
		return;
	if (n->plain && num_parse(text, 2, UINT32_MAX, &(uint64_t){0}, &e) == 0)
		(void)err_set(&e, ERR_UNSUPPORTED, "version %s; this program reads version 1",
			      text);
	else
		(void)err_set(&e, ERR_CONFIG_INVALID, "must be the number 1");
	reader_report(r, false, n->at, &e);
}

static void read_mode(struct reader *r, const struct node *n, unsigned int arg)
{
	(void)arg;
	read_choice(r, n, mode_names, &r->layer->mode);
	r->layer->mode_at = n->at;
}

static void read_writes(struct reader *r, const struct node *n, unsigned int arg)
{
	(void)arg;
	read_choice(r, n, writes_names, &r->layer->writes);
	r->layer->writes_at = n->at;
}

static void read_limit(struct reader *r, const struct node *n, unsigned int id)
{
	const char *text = reader_word(r, n);
	uint64_t *value = &r->layer->limit[id];
	struct err e = {0};
	int rc = 0;

	if (!text)
		return;
	switch (id) {
	case LIMIT_WALL:
	case LIMIT_CPU_TIME:
	case LIMIT_GRACE:
		rc = duration_parse(text, value, &e);
		break;
	case LIMIT_MEMORY:
	case LIMIT_DISK:
	case LIMIT_OUTPUT:
		rc = size_parse(text, value, &e);
		break;
	case LIMIT_CPUS:
		rc = cpus_parse(text, value, &e);
		break;
	default:
		if (strcmp(text, "none") == 0)
			*value = LIMIT_NONE;
		else if (!n->plain)
			rc = err_set(&e, ERR_CONFIG_INVALID, "a number, not a text in quotes");
		else
			rc = num_parse(text, 1, id == LIMIT_PIDS ? 4194304 : UINT32_MAX, value, &e);
		break;
	}
	if (rc == 0 && *value == 0 && id != LIMIT_GRACE && id != LIMIT_OUTPUT)
		rc = err_set(&e, ERR_CONFIG_INVALID, "0 would let nothing run; `none` is no limit");
	if (rc == 0 && id == LIMIT_GRACE && *value == LIMIT_NONE)
		rc = err_set(&e, ERR_CONFIG_INVALID,
			     "a grace without end would be none of the time");
	r->layer->limit_at[id] = n->at;
	if (rc < 0) {
		*value = LIMIT_UNSET;
		reader_report(r, false, n->at, &e);
	}
}

/* Calls `each` for the entries of a list, with the index in the key. */
void reader_each(struct reader *r, const struct node *n, unsigned int arg,
		 void (*read)(struct reader *r, const struct node *n, unsigned int arg))
{
	size_t base = strlen(r->key);
	size_t i = 0;

	if (n->kind != NODE_LIST) {
		reader_wrong(r, n,
			     n->kind == NODE_SCALAR && !n->len ? "has no value" : "must be a list",
			     "write [ONE, TWO], or one below the other with `- ` before each");
		return;
	}
	for (const struct node *one = n->first; one; one = one->next) {
		(void)snprintf(r->key + base, sizeof(r->key) - base, "[%zu]", i++);
		read(r, one, arg);
		r->key[base] = '\0';
	}
}

static const char *join(struct reader *r, const char *dir, const char *rest)
{
	struct err e = {0};
	char path[2 * PATH_TEXT];

	int n = snprintf(path, sizeof(path), "%s/%s", dir, rest);
	return n < 0 || n >= PATH_TEXT ? NULL : arena_text(r->arena, path, (size_t)n, &e);
}

/* `**\/…`: what is behind may hold `*`, `?` and `[…]`, and is matched name by name. */
static const char *check_pattern(const char *text, unsigned int access)
{
	if (access == ACCESS_WRITE)
		return "a pattern cannot be written to: name the paths";
	if (strncmp(text, "**/", 3) != 0)
		return "a pattern begins with `**/`";
	if (!text[3] || strstr(text, "//") || text[strlen(text) - 1] == '/')
		return "a pattern needs a name behind each `/`";
	if (strstr(text + 3, "**"))
		return "`**` only at the beginning";
	for (const char *p = text; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL)
		if (strncmp(p, "../", 3) == 0 || strcmp(p, "..") == 0 || strncmp(p, "./", 2) == 0 ||
		    strcmp(p, ".") == 0)
			return "`.` and `..` match nothing in a pattern";
	return NULL;
}

static void warn_broad(struct reader *r, const struct node *n, const char *text)
{
	static const char *const broad[] = {"**/*", "**/*.*", "**/.*", "**/?*", "**/[!.]*"};
	struct err e = {0};

	for (size_t i = 0; i < ARRAY_LEN(broad); i++)
		if (strcmp(text, broad[i]) == 0) {
			(void)err_set(&e, ERR_CONFIG_INVALID, "`%s` matches nearly everything",
				      text);
			(void)err_hint(&e, "more than 1,000 matches are an error when it runs");
			reader_report(r, true, n->at, &e);
		}
}

static void read_path(struct reader *r, const struct node *n, unsigned int access)
{
	const char *text = reader_word(r, n);
	struct layer *l = r->layer;

	if (!text)
		return;
	struct layer_path p = {.written = text, .access = (uint8_t)access, .at = n->at};
	const char *bad = NULL;
	if (!text[0])
		bad = "an empty path";
	else if (n->len >= PATH_TEXT)
		bad = "a path of more than 4095 bytes";
	else if (l->path_count == MAX_LAYER_PATHS)
		bad = "more than 512 paths in one file";
	else if (text[0] == '~' && text[1] && text[1] != '/')
		bad = "`~` is your own home; another user's is written out";
	else if (text[0] == '~' && !r->places->home)
		bad = "no home is known";
	else if (strpbrk(text, "*?[") && text[0] != '/' && text[0] != '~')
		p.pattern = true;
	else if (strpbrk(text, "*?["))
		bad = "patterns are relative to the source: `**/NAME`";
	if (p.pattern)
		bad = check_pattern(text, access);
	if (bad) {
		reader_wrong(r, n, bad, NULL);
		return;
	}
	if (p.pattern)
		warn_broad(r, n, text);
	if (p.pattern || text[0] == '/')
		p.path = text;
	else if (text[0] == '~')
		p.path = join(r, r->places->home, text[1] ? text + 2 : "");
	else if (r->places->source)
		p.path = join(r, r->places->source, text);
	if (!p.path && (text[0] == '~' || r->places->source)) {
		reader_wrong(r, n, "a path of more than 4095 bytes", NULL);
		return;
	}
	l->paths[l->path_count++] = p;
}

static void add_env(struct reader *r, const struct node *at, const char *text, size_t n)
{
	struct layer *l = r->layer;
	struct err e = {0};

	if (l->env_count == MAX_LAYER_ENV) {
		reader_wrong(r, at, "more than 128 variables in one file", NULL);
		return;
	}
	const char *copy = arena_text(r->arena, text, n, &e);
	if (!copy) {
		reader_report(r, false, at->at, &e);
		return;
	}
	l->env[l->env_count++] = (struct layer_env){.text = copy, .at = at->at};
}

static void read_pass(struct reader *r, const struct node *n, unsigned int arg)
{
	const char *text = reader_word(r, n);
	struct err e = {0};

	(void)arg;
	if (!text)
		return;
	if (environment_check_name(text, n->len, &e) < 0)
		reader_report(r, false, n->at, &e);
	else
		add_env(r, n, text, n->len);
}

static void read_passes(struct reader *r, const struct node *n, unsigned int arg)
{
	reader_each(r, n, arg, read_pass);
}

static void read_sets(struct reader *r, const struct node *n, unsigned int arg)
{
	size_t base = strlen(r->key);
	struct err e = {0};

	(void)arg;
	if (n->kind != NODE_MAP) {
		reader_wrong(r, n, "must be a map", "write {NAME: VALUE}");
		return;
	}
	for (const struct node *one = n->first; one; one = one->next) {
		AUTO_BUF text = BUF_INIT(MAX_COMPILED_TEXT);
		(void)snprintf(r->key + base, sizeof(r->key) - base, ".%s", one->key->text);
		if (environment_check_name(one->key->text, one->key->len, &e) < 0) {
			reader_report(r, false, one->key->at, &e);
		} else if (reader_word(r, one)) {
			(void)buf_printf(&text, "%s=", one->key->text);
			(void)buf_add(&text, one->text, one->len);
			if (text.failed)
				reader_wrong(r, one, "longer than a variable can be (128KiB)",
					     NULL);
			else
				add_env(r, one, buf_cstr(&text), text.n);
		}
		r->key[base] = '\0';
	}
}

static void read_extend(struct reader *r, const struct node *n, unsigned int arg)
{
	const char *text = reader_word(r, n);

	(void)arg;
	if (!text)
		return;
	if (r->layer->extends_count == MAX_LAYER_EXTENDS)
		reader_wrong(r, n, "more than 16 profiles", NULL);
	else
		r->layer->extends[r->layer->extends_count++] =
			(struct layer_name){.name = text, .at = n->at};
}

static void read_extends(struct reader *r, const struct node *n, unsigned int arg)
{
	if (r->layer->profile)
		reader_wrong(r, n, "a profile extends nothing", NULL);
	else
		reader_each(r, n, arg, read_extend);
}

static void read_paths(struct reader *r, const struct node *n, unsigned int access)
{
	reader_each(r, n, access, read_path);
}

/* Room in a list that is made when its first entry comes; NULL is reported. */
void *reader_more(struct reader *r, const struct node *n, void **list, size_t *count, size_t most,
		  size_t size)
{
	char what[64];
	struct err e = {0};

	if (!*list)
		*list = arena_take(r->arena, most * size, &e);
	if (!*list) {
		reader_report(r, false, n->at, &e);
		return NULL;
	}
	if (*count < most)
		return (char *)*list + (*count)++ * size;
	(void)snprintf(what, sizeof(what), "more than %zu in one file", most);
	reader_wrong(r, n, what, NULL);
	return NULL;
}

static void read_protected_one(struct reader *r, const struct node *n, unsigned int arg)
{
	const char *text = reader_word(r, n);
	void *list = r->layer->protected;

	(void)arg;
	if (!text)
		return;
	if (!text[0] || n->len > PATH_NAME_MAX) {
		reader_wrong(r, n, "a branch, or a pattern of branches, of 1 to 255 bytes", NULL);
		return;
	}
	struct layer_name *one = reader_more(r, n, &list, &r->layer->protected_count,
					     MAX_LAYER_BRANCHES, sizeof(*one));
	r->layer->protected = list;
	if (one)
		*one = (struct layer_name){.name = text, .at = n->at};
}

static void read_protected(struct reader *r, const struct node *n, unsigned int arg)
{
	reader_each(r, n, arg, read_protected_one);
}

static void read_check_name(struct reader *r, const struct node *n, unsigned int arg)
{
	const char *text = reader_word(r, n);

	(void)arg;
	if (!text)
		return;
	if (!text[0] || n->len > MAX_CHECK_NAME ||
	    strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") !=
		    n->len)
		reader_wrong(r, n, "a name of letters, digits, `.`, `_` and `-`, at most 64", NULL);
	else
		r->check->name = text;
}

static void read_argument(struct reader *r, const struct node *n, unsigned int arg)
{
	const char *text = reader_word(r, n);
	void *list = (void *)r->check->run;

	(void)arg;
	if (!text)
		return;
	const char **one =
		reader_more(r, n, &list, &r->check->run_count, MAX_CHECK_ARGS, sizeof(*one));
	r->check->run = list;
	if (one)
		*one = text;
}

static void read_run(struct reader *r, const struct node *n, unsigned int arg)
{
	struct err e = {0};

	/* One more than may be there, for the NULL at the end. */
	r->check->run = arena_take(r->arena, (MAX_CHECK_ARGS + 1) * sizeof(*r->check->run), &e);
	if (!r->check->run) {
		reader_report(r, false, n->at, &e);
		return;
	}
	reader_each(r, n, arg, read_argument);
	if (n->kind == NODE_LIST && (!r->check->run_count || !r->check->run[0][0]))
		reader_wrong(r, n, "needs a command: [PROGRAM, ARGUMENT, …]", NULL);
}

static void read_timeout(struct reader *r, const struct node *n, unsigned int arg)
{
	const char *text = reader_word(r, n);
	uint64_t *ms = &r->check->timeout_ms;
	struct err e = {0};

	(void)arg;
	if (!text)
		return;
	int rc = duration_parse(text, ms, &e);
	if (rc == 0 && (*ms == 0 || *ms == LIMIT_NONE))
		rc = err_set(&e, ERR_CONFIG_INVALID, "a check has to end: more than 0, not none");
	if (rc < 0)
		reader_report(r, false, n->at, &e);
}

static const struct key check_keys[] = {
	{.name = "name", .read = read_check_name},
	{.name = "run", .read = read_run},
	{.name = "timeout", .read = read_timeout},
	{.name = NULL},
};

static void read_check(struct reader *r, const struct node *n, unsigned int arg)
{
	void *list = r->layer->checks;

	(void)arg;
	r->check = reader_more(r, n, &list, &r->layer->check_count, MAX_LAYER_CHECKS,
			       sizeof(*r->check));
	r->layer->checks = list;
	if (!r->check)
		return;
	*r->check = (struct layer_check){.timeout_ms = CHECK_TIMEOUT_MS, .at = n->at};
	size_t before = r->findings->errors;
	reader_map(r, n, check_keys);
	if (r->findings->errors == before && (!r->check->name || !r->check->run))
		reader_wrong(r, n, r->check->name ? "`run` is missing" : "`name` is missing",
			     "write {name: NAME, run: [PROGRAM, ARGUMENT, …], timeout: 10m}");
	for (struct layer_check *c = r->layer->checks; r->check->name && c < r->check; c++)
		if (c->name && strcmp(c->name, r->check->name) == 0)
			reader_wrong(r, n, "another check of this file has that name", NULL);
}

static void read_checks(struct reader *r, const struct node *n, unsigned int arg)
{
	reader_each(r, n, arg, read_check);
}

/* Relative to the source; `**` is any number of directories, and stands alone in its place. */
static const char *check_artifact(const struct node *n)
{
	const char *next = n->text;

	if (!n->len || n->len >= PATH_TEXT)
		return "a path or pattern of 1 to 4095 bytes";
	if (n->text[0] == '/' || n->text[0] == '~')
		return "relative to the source: artifacts lie in it";
	for (const char *p = n->text; p; p = next) {
		size_t len = strcspn(p, "/");
		next = p[len] ? p + len + 1 : NULL;
		if (len == 0)
			return "needs a name before and behind each `/`";
		if ((len == 1 && p[0] == '.') || (len == 2 && strncmp(p, "..", 2) == 0))
			return "`.` and `..` match nothing in a pattern";
		if (len != 2 && memmem(p, len, "**", 2))
			return "`**` stands alone between two `/`";
	}
	return NULL;
}

static void read_artifact(struct reader *r, const struct node *n, unsigned int arg)
{
	const char *text = reader_word(r, n);
	void *list = r->layer->artifacts;

	(void)arg;
	if (!text)
		return;
	const char *bad = check_artifact(n);
	if (bad) {
		reader_wrong(r, n, bad, NULL);
		return;
	}
	struct layer_name *one = reader_more(r, n, &list, &r->layer->artifact_count,
					     MAX_LAYER_ARTIFACTS, sizeof(*one));
	r->layer->artifacts = list;
	if (one)
		*one = (struct layer_name){.name = text, .at = n->at};
}

static void read_artifacts(struct reader *r, const struct node *n, unsigned int arg)
{
	r->layer->artifacts_named = true;
	reader_each(r, n, arg, read_artifact);
}

static void read_identity(struct reader *r, const struct node *n, unsigned int arg)
{
	(void)arg;
	read_choice(r, n, identity_names, &r->layer->identity);
	r->layer->identity_at = n->at;
}

static void read_kept(struct reader *r, const struct node *n, unsigned int what)
{
	const char *text = reader_word(r, n);
	uint64_t *value = &r->layer->kept_ms[what];
	struct err e = {0};

	if (!text)
		return;
	r->layer->kept_at[what] = n->at;
	int rc = duration_parse(text, value, &e);
	if (rc == 0 && *value < KEPT_LEAST_MS)
		rc = err_set(&e, ERR_CONFIG_INVALID, "at least 1d is kept");
	if (rc < 0) {
		*value = LIMIT_UNSET;
		reader_report(r, false, n->at, &e);
	}
}

static const struct key promotion_keys[] = {
	{.name = "protected", .read = read_protected},
	{.name = "checks", .read = read_checks},
	{.name = NULL},
};

#define LATER_RULES "rules and approvals"
#define LATER_REVIEW "sessions and review"
#define LATER_TIERS "other kernels and tiers"
#define LATER_ADMIN "the administrator's policies"
#define LATER_SHIP "the gateway"

static const struct key filesystem_keys[] = {
	{.name = "read", .read = read_paths, .arg = ACCESS_READ},
	{.name = "write", .read = read_paths, .arg = ACCESS_WRITE},
	{.name = "hide", .read = read_paths, .arg = ACCESS_HIDE},
	{.name = NULL},
};

static const struct key environment_keys[] = {
	{.name = "pass", .read = read_passes},
	{.name = "set", .read = read_sets},
	{.name = NULL},
};

static const struct key limit_key_table[] = {
	{.name = "wall", .read = read_limit, .arg = LIMIT_WALL},
	{.name = "grace", .read = read_limit, .arg = LIMIT_GRACE},
	{.name = "cpu_time", .read = read_limit, .arg = LIMIT_CPU_TIME},
	{.name = "cpus", .read = read_limit, .arg = LIMIT_CPUS},
	{.name = "memory", .read = read_limit, .arg = LIMIT_MEMORY},
	{.name = "pids", .read = read_limit, .arg = LIMIT_PIDS},
	{.name = "disk", .read = read_limit, .arg = LIMIT_DISK},
	{.name = "inodes", .read = read_limit, .arg = LIMIT_INODES},
	{.name = "output", .read = read_limit, .arg = LIMIT_OUTPUT},
	{.name = "idle", .later = LATER_REVIEW},
	{.name = NULL},
};

static const struct key audit_keys[] = {
	{.name = "identity", .read = read_identity},
	{.name = "ship", .later = LATER_SHIP},
	{.name = NULL},
};

static const struct key retention_keys[] = {
	{.name = "audit", .read = read_kept, .arg = KEPT_AUDIT},
	{.name = "logs", .read = read_kept, .arg = KEPT_LOGS},
	{.name = "artifacts", .read = read_kept, .arg = KEPT_ARTIFACTS},
	{.name = NULL},
};

static const struct key top_keys[] = {
	{.name = "version", .read = read_version},
	{.name = "extends", .read = read_extends},
	{.name = "mode", .read = read_mode},
	{.name = "writes", .read = read_writes},
	{.name = "filesystem", .sub = filesystem_keys},
	{.name = "environment", .sub = environment_keys},
	{.name = "limits", .sub = limit_key_table},
	{.name = "approval", .later = LATER_RULES},
	{.name = "rules", .later = LATER_RULES},
	{.name = "exceptions", .later = LATER_RULES},
	{.name = "exec", .later = LATER_RULES},
	{.name = "network", .sub = network_keys},
	{.name = "secrets", .read = read_secrets},
	{.name = "promotion", .sub = promotion_keys},
	{.name = "artifacts", .read = read_artifacts},
	{.name = "retention", .sub = retention_keys},
	{.name = "audit", .sub = audit_keys},
	{.name = "home", .later = LATER_REVIEW},
	{.name = "profiles", .later = LATER_ADMIN},
	{.name = "require", .later = LATER_ADMIN},
	{.name = "run_as", .later = LATER_ADMIN},
	{.name = "allowed_signers", .later = LATER_ADMIN},
	{.name = "isolation", .later = LATER_TIERS},
	{.name = NULL},
};

#define MAX_KEYS 32

static void unknown_key(struct reader *r, const struct node *n, const struct key *keys)
{
	const char *names[MAX_KEYS];
	struct err e = {0};
	size_t count = 0;

	for (; keys[count].name && count < MAX_KEYS; count++)
		names[count] = keys[count].name;
	(void)err_set(&e, ERR_CONFIG_INVALID, "unknown key");
	const char *near = nearest(n->key->text, names, count);
	if (near) {
		(void)err_hint(&e, "did you mean `%s`?", near);
	} else {
		AUTO_BUF list = BUF_INIT(512);
		for (size_t i = 0; i < count; i++)
			if (!keys[i].later)
				(void)buf_printf(&list, "%s%s", i ? " " : "", names[i]);
		(void)err_hint(&e, "known here: %s", buf_cstr(&list));
	}
	reader_report(r, false, n->key->at, &e);
}

static void read_key(struct reader *r, const struct node *n, const struct key *keys)
{
	const struct key *k = keys;
	struct err e = {0};

	while (k->name && strcmp(k->name, n->key->text) != 0)
		k++;
	if (!k->name) {
		unknown_key(r, n, keys);
	} else if (k->later) {
		(void)err_set(&e, ERR_UNSUPPORTED, "not in this version (it comes with %s)",
			      k->later);
		reader_report(r, false, n->key->at, &e);
	} else if (k->sub) {
		reader_map(r, n, k->sub);
	} else {
		k->read(r, n, k->arg);
	}
}

void reader_map(struct reader *r, const struct node *map, const struct key *keys)
{
	size_t base = strlen(r->key);

	if (map->kind != NODE_MAP) {
		reader_wrong(r, map,
			     map->kind == NODE_SCALAR && !map->len ? "has no value"
								   : "must be a map",
			     "write KEY: VALUE below it, indented");
		return;
	}
	for (const struct node *n = map->first; n; n = n->next) {
		(void)snprintf(r->key + base, sizeof(r->key) - base, "%s%s", base ? "." : "",
			       n->key->text);
		read_key(r, n, keys);
		r->key[base] = '\0';
	}
}

static void require_version(struct reader *r, const struct node *root)
{
	struct err e = {0};

	for (const struct node *n = root->first; n; n = n->next)
		if (strcmp(n->key->text, "version") == 0)
			return;
	(void)snprintf(r->key, sizeof(r->key), "version");
	(void)err_set(&e, ERR_CONFIG_INVALID, "is missing");
	(void)err_hint(&e, "begin with `version: 1`");
	reader_report(r, false, root->at, &e);
	r->key[0] = '\0';
}

int layer_read(struct arena *a, const struct layer_places *places, const char *text, size_t n,
	       struct layer *ret, struct findings *f)
{
	struct reader r = {.arena = a, .places = places, .layer = ret, .findings = f};
	size_t before = f->errors;
	struct err e = {0};

	ret->mode = ret->writes = -1;
	ret->identity = IDENTITY_UNSET;
	for (size_t i = 0; i < KEPTS; i++)
		ret->kept_ms[i] = LIMIT_UNSET;
	for (size_t i = 0; i < LIMIT_SETTINGS; i++)
		ret->limit[i] = LIMIT_UNSET;
	ret->path_count = ret->env_count = ret->extends_count = 0;
	ret->protected_count = ret->check_count = ret->artifact_count = 0;
	ret->hosts = NULL;
	ret->host_count = 0;
	ret->secrets = NULL;
	ret->secret_count = 0;
	ret->paths = arena_take(a, MAX_LAYER_PATHS * sizeof(*ret->paths), &e);
	ret->env = arena_take(a, MAX_LAYER_ENV * sizeof(*ret->env), &e);
	if (!ret->paths || !ret->env) {
		reader_report(&r, false, (struct position){0, 0}, &e);
		return -1;
	}
	const struct node *root = yaml_read(a, ret->file, text, n, f);
	if (!root)
		return -1;
	if (root->kind != NODE_MAP) {
		reader_wrong(&r, root, "a policy is a map of keys", "begin with `version: 1`");
		return -1;
	}
	require_version(&r, root);
	reader_map(&r, root, top_keys);
	return f->errors == before ? 0 : -1;
}

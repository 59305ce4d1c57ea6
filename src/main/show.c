/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sandglass policy show`: what the layers come to, as a policy file with
 * comments, or as JSON.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/json.h"
#include "cli/verbs.h"
#include "egress/mirror.h"
#include "main/verbs.h"
#include "policy/limits.h"
#include "policy/resolve.h"
#include "policy/secret.h"

#define COMMENT_COLUMN 40

struct show {
	const struct policy_options *o;
	const struct main_caller *c;
	struct set *set;
	struct limits defaults;
	struct buf *out;
};

/* What becomes of a rule: the front decides the same from the same rules. */
enum fate { FATE_USED, FATE_ABSENT, FATE_NO_SOURCE, FATE_OVERRIDDEN };
static const char *const fates[] = {"used", "does not exist", "no source to be relative to",
				    "another rule for the same path counts"};

static bool is_weaker(const struct set_path *a, const struct set_path *b)
{
	static const int rank[PATH_ACCESSES] =
		{[ACCESS_WRITE] = 0, [ACCESS_READ] = 1, [ACCESS_HIDE] = 2};

	if (a->from->layer != b->from->layer)
		return a->from->layer < b->from->layer;
	return rank[a->p->access] < rank[b->p->access];
}

static enum fate fate_of(const struct show *s, size_t i)
{
	static const struct places nowhere;
	const struct set_path *one = &s->set->paths[i];
	struct resolved a, b;
	struct err why = {0};

	if (!one->p->path)
		return FATE_NO_SOURCE;
	if (!one->p->pattern && resolve_path(one->p->path, NULL, &nowhere, &a, &why) < 0)
		return FATE_ABSENT;
	for (size_t k = 0; k < s->set->path_count; k++) {
		const struct set_path *other = &s->set->paths[k];
		if (k == i || !other->p->path || other->p->pattern != one->p->pattern ||
		    !is_weaker(one, other))
			continue;
		if (one->p->pattern
			    ? strcmp(one->p->path, other->p->path) == 0
			    : (resolve_path(other->p->path, NULL, &nowhere, &b, &why) == 0 &&
			       strcmp(a.path, b.path) == 0))
			return FATE_OVERRIDDEN;
	}
	return FATE_USED;
}

static const char *value_text(unsigned int id, uint64_t value, char ret[NUM_TEXT])
{
	if (value == LIMIT_NONE) {
		(void)snprintf(ret, NUM_TEXT, "none");
		return ret;
	}
	switch (id) {
	case LIMIT_WALL:
	case LIMIT_CPU_TIME:
	case LIMIT_GRACE:
		return duration_format(value, ret);
	case LIMIT_MEMORY:
	case LIMIT_DISK:
	case LIMIT_OUTPUT:
		return size_format(value, ret);
	case LIMIT_CPUS:
		return cpus_format(value, ret);
	default:
		(void)snprintf(ret, NUM_TEXT, "%llu", (unsigned long long)value);
		return ret;
	}
}

static uint64_t default_of(const struct show *s, unsigned int id)
{
	return id == LIMIT_GRACE ? s->defaults.grace_ms : s->defaults.value[id];
}

/* The value that holds, and whether it is the built-in one after all. */
static uint64_t limit_of(const struct show *s, unsigned int id, bool *ret_built_in)
{
	uint64_t value = s->set->limit[id];
	uint64_t fallback = default_of(s, id);

	*ret_built_in =
		value == LIMIT_UNSET || ((s->set->narrowed >> id & 1u) && value >= fallback);
	return *ret_built_in ? fallback : value;
}

static const char *const limit_notes[LIMIT_SETTINGS] = {
	[LIMIT_WALL] = "12h at a terminal",
	[LIMIT_MEMORY] = "three quarters of the RAM",
	[LIMIT_OUTPUT] = "1MiB with --json",
};

/* A JSON string is a YAML one. */
static void put_quoted(struct buf *out, const char *text)
{
	AUTO_BUF quoted = BUF_INIT((size_t)1 << 20);
	struct json j = JSON_INIT(&quoted);
	struct err ignored = {0};

	json_text(&j, text, strlen(text));
	if (json_finish(&j, ERR_INTERNAL, &ignored) == 0)
		(void)buf_str(out, buf_cstr(&quoted));
}

/* Ends a line; with --origin, or where `why` is given, a comment is behind it. */
static void end_line(struct show *s, size_t begin, const struct origin *o, const char *why)
{
	AUTO_BUF origin = BUF_INIT(PATH_TEXT + 64);

	if (s->o->origin || why) {
		while (s->out->n - begin < COMMENT_COLUMN && !s->out->failed)
			(void)buf_char(s->out, ' ');
		(void)buf_str(s->out, " # ");
	}
	if (s->o->origin) {
		set_origin(o, &origin);
		(void)buf_str(s->out, buf_cstr(&origin));
	}
	if (why)
		(void)buf_printf(s->out, "%s%s", s->o->origin ? ": " : "", why);
	(void)buf_char(s->out, '\n');
}

static void show_layers(struct show *s)
{
	(void)buf_str(s->out, "# layers, the weakest first: built-in");
	for (size_t i = 0; i < s->set->layer_count; i++) {
		const struct layer *l = s->set->layers[i];
		(void)buf_str(s->out, "\n#   ");
		if (!l->profile)
			(void)buf_printf(s->out, "%s ", layer_names[l->layer]);
		AUTO_BUF shown = BUF_INIT((size_t)1 << 16);
		put_quoted(&shown, l->file);
		(void)buf_str(s->out, l->profile ? l->file : buf_cstr(&shown));
		if (!l->trusted)
			(void)buf_str(s->out, " (not trusted: it only narrows)");
	}
	(void)buf_str(s->out, "\nversion: 1\n");
}

static void show_limits(struct show *s)
{
	char text[NUM_TEXT];

	(void)buf_str(s->out, "limits:\n");
	for (unsigned int id = 0; id < LIMIT_SETTINGS; id++) {
		bool built_in = false;
		struct origin none = {.layer = NULL};
		size_t begin = s->out->n;
		uint64_t value = limit_of(s, id, &built_in);
		(void)buf_printf(s->out, "  %s: %s", limit_keys[id], value_text(id, value, text));
		end_line(s, begin, built_in ? &none : &s->set->limit_from[id],
			 built_in ? limit_notes[id] : NULL);
	}
}

static bool has_used(const struct show *s, unsigned int access)
{
	for (size_t i = 0; i < s->set->path_count; i++)
		if (s->set->paths[i].p->access == access && fate_of(s, i) == FATE_USED)
			return true;
	return false;
}

static void show_paths(struct show *s, unsigned int access, const char *key)
{
	bool any = false;

	for (size_t i = 0; i < s->set->path_count; i++) {
		const struct set_path *p = &s->set->paths[i];
		struct origin o = {.layer = p->from, .at = p->p->at};
		if (p->p->access != access)
			continue;
		if (!any)
			(void)buf_printf(s->out, "  %s:%s\n", key,
					 has_used(s, access) ? "" : " []");
		any = true;
		enum fate fate = fate_of(s, i);
		size_t begin = s->out->n;
		(void)buf_str(s->out, fate == FATE_USED ? "    - " : "    # - ");
		put_quoted(s->out, p->p->path ? p->p->path : p->p->written);
		end_line(s, begin, &o, fate == FATE_USED ? NULL : fates[fate]);
	}
}

static void show_env(struct show *s, bool sets)
{
	bool any = false;

	for (size_t i = 0; i < s->set->env_count; i++) {
		const char *text = s->set->env[i].v->text;
		const char *eq = strchr(text, '=');
		struct origin o = {.layer = s->set->env[i].from, .at = s->set->env[i].v->at};
		if ((eq != NULL) != sets)
			continue;
		if (!any)
			(void)buf_str(s->out, sets ? "  set:\n" : "  pass:\n");
		any = true;
		size_t begin = s->out->n;
		if (eq) {
			(void)buf_printf(s->out, "    %.*s: ", (int)(eq - text), text);
			put_quoted(s->out, eq + 1);
		} else {
			(void)buf_printf(s->out, "    - %s", text);
		}
		end_line(s, begin, &o, NULL);
	}
}

/* `npm: "http://…"`: the manager's name, then its URL. */
static void show_mirror(struct show *s, const char *text)
{
	const char *url = egress_mirror_url(text);

	(void)buf_printf(s->out, "%.*s: ", (int)(url - text) - 1, text);
	put_quoted(s->out, url);
}

static void show_hosts(struct show *s)
{
	const struct set *set = s->set;

	(void)buf_str(s->out, set->host_count ? "network:\n" : "network: {}\n");
	for (unsigned int i = 0; i < EGRESS_LISTS; i++) {
		enum egress_list list = (enum egress_list)((i + 1) % EGRESS_LISTS);
		bool any = false;
		for (size_t k = 0; k < set->host_count; k++) {
			const struct set_host *h = &set->hosts[k];
			struct origin o = {.layer = h->from, .at = h->v->at};
			if (h->v->list != list || list == EGRESS_LIST_LIMIT)
				continue;
			if (!any)
				(void)buf_printf(s->out, "  %s:\n", egress_list_names[list]);
			any = true;
			size_t begin = s->out->n;
			(void)buf_str(s->out, list == EGRESS_LIST_MIRROR ? "    " : "    - ");
			if (list == EGRESS_LIST_MIRROR)
				show_mirror(s, h->v->text);
			else if (list == EGRESS_LIST_LOCAL)
				(void)buf_str(s->out, h->v->text);
			else
				put_quoted(s->out, h->v->text);
			end_line(s, begin, &o, NULL);
		}
	}
}

/* Of all that name this limit it is the smallest, and the first of equal ones. */
static bool holds_amount(const struct set *set, size_t at)
{
	struct egress_rule mine;
	struct egress_rule other;
	struct err ignored = {0};

	if (egress_rule_read(EGRESS_LIST_LIMIT, set->hosts[at].v->text, &mine, &ignored) < 0)
		return false;
	for (size_t k = 0; k < set->host_count; k++) {
		const char *text = set->hosts[k].v->text;
		if (set->hosts[k].v->list != EGRESS_LIST_LIMIT || k == at ||
		    egress_rule_read(EGRESS_LIST_LIMIT, text, &other, &ignored) < 0 ||
		    other.limit != mine.limit)
			continue;
		if (other.amount < mine.amount || (other.amount == mine.amount && k < at))
			return false;
	}
	return true;
}

/* The limits of the network: what holds, and what a smaller one of another layer has outdone. */
static void show_amounts(struct show *s)
{
	const struct set *set = s->set;

	for (size_t k = 0; k < set->host_count; k++) {
		const struct set_host *h = &set->hosts[k];
		struct origin o = {.layer = h->from, .at = h->v->at};
		int words = (int)strcspn(h->v->text, " ");
		size_t begin = s->out->n;
		if (h->v->list != EGRESS_LIST_LIMIT)
			continue;
		bool holds = holds_amount(set, k);
		(void)buf_printf(s->out, "  %s%.*s:%s", holds ? "" : "# ", words, h->v->text,
				 h->v->text + words);
		end_line(s, begin, &o, holds ? NULL : "a smaller one holds");
	}
}

/* Where values come from and go to; the values themselves are nowhere here. */
static void show_secrets(struct show *s)
{
	const struct set *set = s->set;

	(void)buf_str(s->out, set->secret_count ? "secrets:\n" : "secrets: []\n");
	for (size_t i = 0; i < set->secret_count; i++) {
		const struct secret_rule *r = &set->secrets[i].v->rule;
		struct origin o = {.layer = set->secrets[i].from, .at = set->secrets[i].v->at};
		size_t begin = s->out->n;
		(void)buf_printf(s->out, "  - name: %s", r->name);
		end_line(s, begin, &o, NULL);
		(void)buf_str(s->out, "    from: ");
		put_quoted(s->out, r->from);
		(void)buf_str(s->out, "\n    header: ");
		put_quoted(s->out, r->header);
		(void)buf_str(s->out, "\n    hosts: [");
		for (const char *p = r->hosts; *p;) {
			char host[MAX_EGRESS_HOST_TEXT + 1];
			size_t n = strcspn(p, " ");
			(void)snprintf(host, sizeof(host), "%.*s", (int)n, p);
			put_quoted(s->out, host);
			p += n + (p[n] == ' ');
			(void)buf_str(s->out, *p ? ", " : "");
		}
		(void)buf_str(s->out, "]\n");
		if (r->variable)
			(void)buf_printf(s->out, "    variable: %s\n", r->variable);
		if (r->plain)
			(void)buf_str(s->out, "    plain: true\n");
	}
}

static void show_name(struct show *s, const char *indent, const char *text, const struct origin *o)
{
	size_t begin = s->out->n;

	(void)buf_printf(s->out, "%s- ", indent);
	put_quoted(s->out, text);
	end_line(s, begin, o, NULL);
}

static void show_names(struct show *s, const char *indent, const struct set_name *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		show_name(s, indent, v[i].v->name,
			  &(struct origin){.layer = v[i].from, .at = v[i].v->at});
}

static void show_defaults(struct show *s, const char *indent, const char *const *names)
{
	for (; *names; names++)
		show_name(s, indent, *names, &(struct origin){.layer = NULL});
}

static void show_checks(struct show *s)
{
	char text[NUM_TEXT];

	(void)buf_str(s->out, s->set->check_count ? "  checks:\n" : "  checks: []\n");
	for (size_t i = 0; i < s->set->check_count; i++) {
		const struct set_check *c = &s->set->checks[i];
		struct origin o = {.layer = c->from, .at = c->v->at};
		size_t begin = s->out->n;
		(void)buf_str(s->out, "    - {name: ");
		put_quoted(s->out, c->v->name);
		(void)buf_str(s->out, ", run: [");
		for (size_t k = 0; k < c->v->run_count; k++) {
			(void)buf_str(s->out, k ? ", " : "");
			put_quoted(s->out, c->v->run[k]);
		}
		(void)buf_printf(s->out, "], timeout: %s}",
				 duration_format(c->v->timeout_ms, text));
		end_line(s, begin, &o, NULL);
	}
}

static void show_review(struct show *s)
{
	const struct set *set = s->set;

	(void)buf_str(s->out, "promotion:\n  protected: # and the remote's own HEAD\n");
	show_defaults(s, "    ", default_protected);
	show_names(s, "    ", set->protected, set->protected_count);
	show_checks(s);
	(void)buf_str(s->out, set->artifacts_named && !set->artifact_count ? "artifacts: []\n"
									   : "artifacts:\n");
	if (!set->artifacts_named)
		show_defaults(s, "  ", default_artifacts);
	show_names(s, "  ", set->artifacts, set->artifact_count);
}

static void show_kept(struct show *s)
{
	const struct set *set = s->set;
	char text[NUM_TEXT];
	size_t begin = 0;

	(void)buf_str(s->out, "audit:\n");
	begin = s->out->n;
	(void)buf_printf(s->out, "  identity: %s",
			 identity_names[set->identity < 0 ? IDENTITY_PLAIN : set->identity]);
	end_line(s, begin, &set->identity_from, NULL);
	(void)buf_str(s->out, "retention:\n");
	for (size_t i = 0; i < KEPTS; i++) {
		begin = s->out->n;
		(void)buf_printf(s->out, "  %s: %s", kept_keys[i],
				 value_text(LIMIT_WALL, set_kept_ms(set, i), text));
		end_line(s, begin, &set->kept_from[i], NULL);
	}
}

static void show_ignored(struct show *s)
{
	for (size_t i = 0; i < s->set->ignored_count; i++) {
		const struct set_ignored *g = &s->set->ignored[i];
		AUTO_BUF origin = BUF_INIT(PATH_TEXT + 64);
		set_origin(&g->at, &origin);
		(void)buf_printf(s->out, "# not taken: %s (", g->key);
		(void)buf_str(s->out, buf_cstr(&origin));
		(void)buf_printf(s->out, "): %s\n",
				 g->why == IGNORED_UNTRUSTED ? "the file is not trusted"
							     : ignored_whys[g->why]);
	}
}

static const char *writes_of(const struct show *s)
{
	return s->set->writes == WRITES_OVERLAY ? "overlay" : "direct";
}

static void show_text(struct show *s)
{
	size_t begin = 0;

	show_layers(s);
	begin = s->out->n;
	(void)buf_printf(s->out, "mode: %s", mode_name(s->set->mode));
	end_line(s, begin, &s->set->mode_from, NULL);
	begin = s->out->n;
	(void)buf_printf(s->out, "writes: %s", writes_of(s));
	end_line(s, begin, &s->set->writes_from, NULL);
	show_limits(s);
	(void)buf_str(s->out, s->set->path_count ? "filesystem:\n" : "filesystem: {}\n");
	show_paths(s, ACCESS_READ, "read");
	show_paths(s, ACCESS_WRITE, "write");
	show_paths(s, ACCESS_HIDE, "hide");
	(void)buf_str(s->out, s->set->env_count ? "environment:\n" : "environment: {}\n");
	show_env(s, false);
	show_env(s, true);
	show_hosts(s);
	show_amounts(s);
	show_secrets(s);
	show_review(s);
	show_kept(s);
	show_ignored(s);
}

static void kv_origin(struct json *j, const struct origin *o)
{
	AUTO_BUF origin = BUF_INIT(PATH_TEXT + 64);

	set_origin(o, &origin);
	json_key(j, "origin");
	json_text(j, buf_cstr(&origin), origin.n);
}

static void kv_value(struct json *j, const char *key, const char *value, const struct origin *o)
{
	json_key(j, key);
	json_obj_begin(j);
	json_kv_str(j, "value", value);
	kv_origin(j, o);
	json_obj_end(j);
}

static void json_layers(const struct show *s, struct json *j)
{
	char hex[2 * SHA256_BYTES + 1];

	json_key(j, "layers");
	json_arr_begin(j);
	for (size_t i = 0; i < s->set->layer_count; i++) {
		const struct layer *l = s->set->layers[i];
		for (size_t k = 0; k < SHA256_BYTES; k++)
			(void)snprintf(hex + 2 * k, 3, "%02x", l->sha256[k]);
		json_obj_begin(j);
		json_kv_str(j, "layer", layer_names[l->layer]);
		json_key(j, "path");
		json_text(j, l->file, strlen(l->file));
		json_kv_str(j, "sha256", l->profile ? NULL : hex);
		json_kv_bool(j, "trusted", l->trusted);
		json_obj_end(j);
	}
	json_arr_end(j);
}

static void json_paths(const struct show *s, struct json *j)
{
	static const char *const names[PATH_ACCESSES] = {"read", "write", "hide"};

	json_key(j, "filesystem");
	json_arr_begin(j);
	for (size_t i = 0; i < s->set->path_count; i++) {
		const struct set_path *p = &s->set->paths[i];
		struct origin o = {.layer = p->from, .at = p->p->at};
		json_obj_begin(j);
		json_kv_str(j, "access", names[p->p->access]);
		json_key(j, "path");
		if (p->p->path)
			json_text(j, p->p->path, strlen(p->p->path));
		else
			json_nil(j);
		json_key(j, "written");
		json_text(j, p->p->written, strlen(p->p->written));
		json_kv_bool(j, "pattern", p->p->pattern);
		json_kv_bool(j, "narrow", p->narrow);
		json_kv_str(j, "state", fates[fate_of(s, i)]);
		kv_origin(j, &o);
		json_obj_end(j);
	}
	json_arr_end(j);
}

static void json_env(const struct show *s, struct json *j)
{
	json_key(j, "environment");
	json_arr_begin(j);
	for (size_t i = 0; i < s->set->env_count; i++) {
		const char *text = s->set->env[i].v->text;
		size_t n = strcspn(text, "=");
		struct origin o = {.layer = s->set->env[i].from, .at = s->set->env[i].v->at};
		json_obj_begin(j);
		json_key(j, "name");
		json_text(j, text, n);
		json_key(j, "value");
		if (text[n])
			json_text(j, text + n + 1, strlen(text + n + 1));
		else
			json_nil(j);
		kv_origin(j, &o);
		json_obj_end(j);
	}
	json_arr_end(j);
}

static void json_hosts(const struct show *s, struct json *j)
{
	json_key(j, "network");
	json_obj_begin(j);
	for (unsigned int i = 0; i < EGRESS_LISTS; i++) {
		unsigned int list = (i + 1) % EGRESS_LISTS;
		json_key(j, egress_list_names[list]);
		json_arr_begin(j);
		for (size_t k = 0; k < s->set->host_count; k++) {
			const struct set_host *h = &s->set->hosts[k];
			if (h->v->list != list)
				continue;
			json_obj_begin(j);
			json_kv_str(j, "value", h->v->text);
			kv_origin(j, &(struct origin){.layer = h->from, .at = h->v->at});
			json_obj_end(j);
		}
		json_arr_end(j);
	}
	json_obj_end(j);
}

static void json_secrets(const struct show *s, struct json *j)
{
	json_key(j, "secrets");
	json_arr_begin(j);
	for (size_t i = 0; i < s->set->secret_count; i++) {
		const struct set_secret *one = &s->set->secrets[i];
		const struct secret_rule *r = &one->v->rule;
		AUTO_BUF variable = BUF_INIT(256);
		secret_variable(r, &variable);
		json_obj_begin(j);
		json_kv_str(j, "name", r->name);
		json_kv_str(j, "variable", buf_cstr(&variable));
		json_key(j, "from");
		json_text(j, r->from, strlen(r->from));
		json_kv_str(j, "header", r->header);
		json_key(j, "hosts");
		json_arr_begin(j);
		for (const char *p = r->hosts; *p;) {
			size_t n = strcspn(p, " ");
			json_text(j, p, n);
			p += n + (p[n] == ' ');
		}
		json_arr_end(j);
		json_kv_bool(j, "plain", r->plain);
		kv_origin(j, &(struct origin){.layer = one->from, .at = one->v->at});
		json_obj_end(j);
	}
	json_arr_end(j);
}

static void json_names(struct json *j, const struct set_name *v, size_t n,
		       const char *const *defaults)
{
	json_arr_begin(j);
	for (; defaults && *defaults; defaults++) {
		json_obj_begin(j);
		json_kv_str(j, "value", *defaults);
		kv_origin(j, &(struct origin){.layer = NULL});
		json_obj_end(j);
	}
	for (size_t i = 0; i < n; i++) {
		json_obj_begin(j);
		json_kv_str(j, "value", v[i].v->name);
		kv_origin(j, &(struct origin){.layer = v[i].from, .at = v[i].v->at});
		json_obj_end(j);
	}
	json_arr_end(j);
}

static void json_review(const struct show *s, struct json *j)
{
	const struct set *set = s->set;

	json_key(j, "promotion");
	json_obj_begin(j);
	json_key(j, "protected");
	json_names(j, set->protected, set->protected_count, default_protected);
	json_key(j, "checks");
	json_arr_begin(j);
	for (size_t i = 0; i < set->check_count; i++) {
		const struct layer_check *c = set->checks[i].v;
		json_obj_begin(j);
		json_kv_str(j, "name", c->name);
		json_key(j, "run");
		json_arr_begin(j);
		for (size_t k = 0; k < c->run_count; k++)
			json_text(j, c->run[k], strlen(c->run[k]));
		json_arr_end(j);
		json_kv_uint(j, "timeout_ms", c->timeout_ms);
		kv_origin(j, &(struct origin){.layer = set->checks[i].from, .at = c->at});
		json_obj_end(j);
	}
	json_arr_end(j);
	json_obj_end(j);
	json_key(j, "artifacts");
	json_names(j, set->artifacts, set->artifact_count,
		   set->artifacts_named ? NULL : default_artifacts);
}

static void json_kept(const struct show *s, struct json *j)
{
	const struct set *set = s->set;
	char text[NUM_TEXT];

	json_key(j, "audit");
	json_obj_begin(j);
	kv_value(j, "identity", identity_names[set->identity < 0 ? IDENTITY_PLAIN : set->identity],
		 &set->identity_from);
	json_obj_end(j);
	json_key(j, "retention");
	json_obj_begin(j);
	for (unsigned int i = 0; i < KEPTS; i++)
		kv_value(j, kept_keys[i], value_text(LIMIT_WALL, set_kept_ms(set, i), text),
			 &set->kept_from[i]);
	json_obj_end(j);
}

static int show_json(struct show *s, struct err *e)
{
	struct json j = JSON_INIT(s->out);
	struct origin none = {.layer = NULL};
	char text[NUM_TEXT];

	json_obj_begin(&j);
	json_kv_uint(&j, "version", 1);
	json_layers(s, &j);
	kv_value(&j, "mode", mode_name(s->set->mode), &s->set->mode_from);
	kv_value(&j, "writes", writes_of(s), &s->set->writes_from);
	json_key(&j, "limits");
	json_obj_begin(&j);
	for (unsigned int id = 0; id < LIMIT_SETTINGS; id++) {
		bool built_in = false;
		uint64_t value = limit_of(s, id, &built_in);
		kv_value(&j, limit_keys[id], value_text(id, value, text),
			 built_in ? &none : &s->set->limit_from[id]);
	}
	json_obj_end(&j);
	json_paths(s, &j);
	json_env(s, &j);
	json_hosts(s, &j);
	json_secrets(s, &j);
	json_review(s, &j);
	json_kept(s, &j);
	json_key(&j, "ignored");
	json_arr_begin(&j);
	for (size_t i = 0; i < s->set->ignored_count; i++) {
		json_obj_begin(&j);
		json_kv_str(&j, "key", s->set->ignored[i].key);
		json_kv_bool(&j, "never", s->set->ignored[i].why != IGNORED_UNTRUSTED);
		kv_origin(&j, &s->set->ignored[i].at);
		json_obj_end(&j);
	}
	json_arr_end(&j);
	json_obj_end(&j);
	if (json_finish(&j, ERR_INTERNAL, e) < 0)
		return -1;
	return buf_char(s->out, '\n');
}

static int find_defaults(struct show *s, struct err *e)
{
	struct host_limits host = {.max_memory = LIMIT_NONE,
				   .max_pids = LIMIT_NONE,
				   .max_cpus_milli = LIMIT_NONE};
	struct request req = request_of_nothing();
	struct caller who = s->c->who;

	who.terminal = false;
	return limits_decide(&req, &who, &host, &s->defaults, e);
}

static int show(struct show *s, const struct policy_options *o, struct main_caller *c, char **env,
		struct err *e)
{
	static struct policy_inputs in;
	char program[PATH_TEXT];

	if (main_program(program, e) < 0 || main_caller_init(c, o, env, e) < 0 ||
	    policy_inputs_find(&c->where, &c->src, o->policy, &o->profile, &in, e) < 0)
		return -1;
	policy_inputs_more(&in, program);
	if (set_load(s->set, &in, c->who.uid, 0) < 0)
		return findings_first(&s->set->findings, e);
	if (find_defaults(s, e) < 0)
		return -1;
	if (o->json)
		return show_json(s, e);
	show_text(s);
	return buf_check(s->out, "the policy", ERR_INTERNAL, e);
}

int main_show(const struct policy_options *o, char **env)
{
	static struct main_caller c;
	static struct set set;
	AUTO_BUF out = BUF_INIT((size_t)64 << 20);
	struct show s = {.o = o, .c = &c, .set = &set, .out = &out};
	struct err e = {0};

	int rc = show(&s, o, &c, env, &e);
	if (rc == 0)
		rc = cli_write(STDOUT_FILENO, buf_cstr(&out), out.n, &e);
	set_release(&set);
	return rc == 0 ? 0 : cli_fail(&e, 2);
}

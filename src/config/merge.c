/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merging, and the one rule that makes a project's file harmless: where a layer
 * is not trusted, only what takes rights away is taken from it.
 */
#include "config/merge.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/path.h"
#include "egress/secret.h"

struct merge {
	struct set *set;
	const struct layer *layer;
	size_t max_paths, max_env, max_hosts, max_secrets, max_protected, max_checks, max_artifacts;
};

const char *const default_protected[] = {"main", "master", "release/*", NULL};

const char *const default_artifacts[] = {"**/junit*.xml", "**/TEST-*.xml", "**/test-results/**",
					 "**/*.sarif",    "coverage/**",   NULL};

static void complain(const struct merge *m, const struct err *why)
{
	findings_add(&m->set->findings, false, m->layer->file, (struct position){0, 0}, "", why);
}

static void ignore(const struct merge *m, const char *key, struct position at, enum ignored_why why)
{
	struct set *s = m->set;

	if (s->ignored_count < MAX_IGNORED)
		s->ignored[s->ignored_count++] =
			(struct set_ignored){.at = {.layer = m->layer, .at = at},
					     .key = key,
					     .why = why};
}

static void ignore_limit(const struct merge *m, unsigned int id)
{
	static const char *const keys[LIMIT_SETTINGS] = {
		[LIMIT_WALL] = "limits.wall",     [LIMIT_CPU_TIME] = "limits.cpu_time",
		[LIMIT_CPUS] = "limits.cpus",     [LIMIT_MEMORY] = "limits.memory",
		[LIMIT_PIDS] = "limits.pids",     [LIMIT_DISK] = "limits.disk",
		[LIMIT_INODES] = "limits.inodes", [LIMIT_OUTPUT] = "limits.output",
		[LIMIT_GRACE] = "limits.grace",
	};

	ignore(m, keys[id], m->layer->limit_at[id], IGNORED_UNTRUSTED);
}

uint64_t set_kept_ms(const struct set *s, enum kept what)
{
	static const uint64_t days[KEPTS] =
		{[KEPT_AUDIT] = 400, [KEPT_LOGS] = 30, [KEPT_ARTIFACTS] = 90};

	return s->kept_ms[what] == LIMIT_UNSET ? days[what] * 24 * 3600 * 1000 : s->kept_ms[what];
}

const char *const ignored_whys[IGNORED_WHYS] = {
	[IGNORED_UNTRUSTED] = "not trusted, so it only narrows",
	[IGNORED_FULL_ACCESS] = "full access never comes from a project's file",
	[IGNORED_NOT_OWN] = "only your own policy file says what is kept",
	[IGNORED_TAKEN] = "your own policy file has a secret of that name, which counts",
};

static struct origin here(const struct merge *m, struct position at)
{
	return (struct origin){.layer = m->layer, .at = at};
}

static void merge_mode(const struct merge *m)
{
	const struct layer *l = m->layer;
	struct set *s = m->set;
	int now = s->mode == MODE_UNSET ? MODE_WORKSPACE_WRITE : s->mode;

	if (l->mode < 0)
		return;
	/* A person confirms full access at each run, but no project may even ask for it. */
	if (l->mode == MODE_FULL_ACCESS && l->inside) {
		ignore(m, "mode", l->mode_at, IGNORED_FULL_ACCESS);
		return;
	}
	if (!l->trusted && l->mode >= now) {
		if (l->mode > now)
			ignore(m, "mode", l->mode_at, IGNORED_UNTRUSTED);
		return;
	}
	s->mode = l->mode;
	s->mode_from = here(m, l->mode_at);
}

static void merge_limit(const struct merge *m, unsigned int id)
{
	const struct layer *l = m->layer;
	struct set *s = m->set;
	uint64_t value = l->limit[id];

	if (value == LIMIT_UNSET)
		return;
	if (!l->trusted && s->limit[id] != LIMIT_UNSET && value >= s->limit[id]) {
		if (value > s->limit[id])
			ignore_limit(m, id);
		return;
	}
	if (!l->trusted && value == LIMIT_NONE) {
		ignore_limit(m, id);
		return;
	}
	/* Against a default that depends on the run, the front compares. */
	if (!l->trusted && s->limit[id] == LIMIT_UNSET)
		s->narrowed |= 1u << id;
	else if (l->trusted)
		s->narrowed &= ~(1u << id);
	s->limit[id] = value;
	s->limit_from[id] = here(m, l->limit_at[id]);
}

static bool is_inside(const struct set *s, const char *path)
{
	char clean[PATH_TEXT];

	return s->places.source && path_lexical(path, clean) &&
	       path_is_below(s->places.source, clean);
}

static void merge_paths(const struct merge *m)
{
	static const char *const keys[PATH_ACCESSES] = {"filesystem.read", "filesystem.write",
							"filesystem.hide"};
	const struct layer *l = m->layer;
	struct set *s = m->set;

	for (size_t i = 0; i < l->path_count; i++) {
		const struct layer_path *p = &l->paths[i];
		bool narrows = p->access == ACCESS_HIDE ||
			       (p->access == ACCESS_READ &&
				(p->pattern || !p->path || is_inside(s, p->path)));
		if (!l->trusted && !narrows)
			ignore(m, keys[p->access], p->at, IGNORED_UNTRUSTED);
		else if (s->path_count < m->max_paths)
			s->paths[s->path_count++] =
				(struct set_path){.p = p, .from = l, .narrow = !l->trusted};
	}
}

static void merge_env(const struct merge *m)
{
	const struct layer *l = m->layer;
	struct set *s = m->set;

	for (size_t i = 0; i < l->env_count; i++) {
		bool sets = strchr(l->env[i].text, '=') != NULL;
		if (!l->trusted)
			ignore(m, sets ? "environment.set" : "environment.pass", l->env[i].at,
			       false);
		else if (s->env_count < m->max_env)
			s->env[s->env_count++] = (struct set_env){.v = &l->env[i], .from = l};
	}
}

/* A manager has one mirror: the highest layer's. */
static void merge_mirror(const struct merge *m, const struct layer_host *one)
{
	struct set *s = m->set;
	size_t name = strcspn(one->text, " ") + 1;
	size_t k = 0;

	while (k < s->host_count && (s->hosts[k].v->list != EGRESS_LIST_MIRROR ||
				     strncmp(s->hosts[k].v->text, one->text, name) != 0))
		k++;
	if (k < m->max_hosts)
		s->hosts[k] = (struct set_host){.v = one, .from = m->layer};
	if (k == s->host_count && k < m->max_hosts)
		s->host_count++;
}

/*
 * A deny, an inspection and a limit count whoever says it (of limits the smallest); what opens
 * something, only from who is believed.
 */
static void merge_hosts(const struct merge *m)
{
	static const char *const keys[EGRESS_LISTS] = {"network.deny",  "network.allow",
						       "network.local", "network.inspect",
						       "network.push",  "network.mirror",
						       "network"};
	const struct layer *l = m->layer;
	struct set *s = m->set;

	for (size_t i = 0; i < l->host_count; i++) {
		const struct layer_host *one = &l->hosts[i];
		if (!l->trusted && one->list != EGRESS_LIST_DENY &&
		    one->list != EGRESS_LIST_INSPECT && one->list != EGRESS_LIST_LIMIT)
			ignore(m, keys[one->list], one->at, IGNORED_UNTRUSTED);
		else if (one->list == EGRESS_LIST_MIRROR)
			merge_mirror(m, one);
		else if (s->host_count < m->max_hosts)
			s->hosts[s->host_count++] = (struct set_host){.v = one, .from = l};
	}
}

/*
 * Where a value comes from and goes to, only a layer says that is believed; the highest one
 * counts. But no project's file, trusted or not, takes the place of what its user means by a name.
 */
static void merge_secrets(const struct merge *m)
{
	const struct layer *l = m->layer;
	struct set *s = m->set;

	for (size_t i = 0; i < l->secret_count; i++) {
		struct set_secret one = {.v = &l->secrets[i], .from = l};
		size_t k = 0;
		if (!l->trusted) {
			ignore(m, "secrets", one.v->at, IGNORED_UNTRUSTED);
			continue;
		}
		while (k < s->secret_count &&
		       strcmp(s->secrets[k].v->rule.name, one.v->rule.name) != 0)
			k++;
		if (k < s->secret_count && l->inside && !s->secrets[k].from->inside) {
			ignore(m, "secrets", one.v->at, IGNORED_TAKEN);
			continue;
		}
		if (k < m->max_secrets)
			s->secrets[k] = one;
		if (k == s->secret_count && k < m->max_secrets)
			s->secret_count++;
	}
}

/* What is protected only grows, so it counts whoever says it. */
static void merge_protected(const struct merge *m)
{
	const struct layer *l = m->layer;
	struct set *s = m->set;

	for (size_t i = 0; i < l->protected_count && s->protected_count < m->max_protected; i++)
		s->protected[s->protected_count++] =
			(struct set_name){.v = &l->protected[i], .from = l};
}

/*
 * A check can only stop a push, and runs in a sandbox: one of an untrusted file counts. But it
 * does not take the place of another layer's.
 */
static void merge_checks(const struct merge *m)
{
	const struct layer *l = m->layer;
	struct set *s = m->set;

	for (size_t i = 0; i < l->check_count; i++) {
		struct set_check one = {.v = &l->checks[i], .from = l};
		size_t k = 0;
		while (k < s->check_count && strcmp(s->checks[k].v->name, one.v->name) != 0)
			k++;
		if (k < s->check_count && !l->trusted)
			ignore(m, "promotion.checks", one.v->at, IGNORED_UNTRUSTED);
		else if (k < m->max_checks)
			s->checks[k] = one;
		if (k == s->check_count && k < m->max_checks)
			s->check_count++;
	}
}

/* What is copied out of a session is a person's choice: a glob can name a file of secrets. */
static void merge_artifacts(const struct merge *m)
{
	const struct layer *l = m->layer;
	struct set *s = m->set;

	for (size_t i = 0; i < l->artifact_count; i++) {
		if (!l->trusted)
			ignore(m, "artifacts", l->artifacts[i].at, IGNORED_UNTRUSTED);
		else if (s->artifact_count < m->max_artifacts)
			s->artifacts[s->artifact_count++] =
				(struct set_name){.v = &l->artifacts[i], .from = l};
	}
	if (l->trusted && l->artifacts_named)
		s->artifacts_named = true;
}

static void check_counts(const struct merge *m)
{
	struct err e = {0};

	if (m->set->path_count > MAX_COMPILED_RULES)
		(void)err_set(&e, ERR_CONFIG_INVALID, "more than %u paths in all policies",
			      MAX_COMPILED_RULES);
	else if (m->set->env_count > MAX_COMPILED_ENV)
		(void)err_set(&e, ERR_CONFIG_INVALID, "more than %u variables in all policies",
			      MAX_COMPILED_ENV);
	else if (m->set->host_count > MAX_EGRESS_RULES)
		(void)err_set(&e, ERR_CONFIG_INVALID, "more than %u hosts in all policies",
			      MAX_EGRESS_RULES);
	else if (m->set->secret_count > MAX_EGRESS_SECRETS)
		(void)err_set(&e, ERR_CONFIG_INVALID, "more than %u secrets in all policies",
			      MAX_EGRESS_SECRETS);
	else
		return;
	complain(m, &e);
}

static bool make_room(struct merge *m, struct err *e)
{
	struct set *s = m->set;

	for (size_t i = 0; i < s->layer_count; i++) {
		m->max_paths += s->layers[i]->path_count;
		m->max_env += s->layers[i]->env_count;
		m->max_hosts += s->layers[i]->host_count;
		m->max_secrets += s->layers[i]->secret_count;
		m->max_protected += s->layers[i]->protected_count;
		m->max_checks += s->layers[i]->check_count;
		m->max_artifacts += s->layers[i]->artifact_count;
	}
	s->paths = arena_take(&s->arena, (m->max_paths + 1) * sizeof(*s->paths), e);
	s->env = arena_take(&s->arena, (m->max_env + 1) * sizeof(*s->env), e);
	s->hosts = arena_take(&s->arena, (m->max_hosts + 1) * sizeof(*s->hosts), e);
	s->secrets = arena_take(&s->arena, (m->max_secrets + 1) * sizeof(*s->secrets), e);
	s->protected = arena_take(&s->arena, (m->max_protected + 1) * sizeof(*s->protected), e);
	s->checks = arena_take(&s->arena, (m->max_checks + 1) * sizeof(*s->checks), e);
	s->artifacts = arena_take(&s->arena, (m->max_artifacts + 1) * sizeof(*s->artifacts), e);
	return s->paths && s->env && s->hosts && s->secrets && s->protected && s->checks &&
	       s->artifacts;
}

/* To hold changes for review takes a right away; to let them land at once gives it back. */
static void merge_writes(const struct merge *m)
{
	struct set *s = m->set;
	const struct layer *l = m->layer;

	if (l->writes < 0)
		return;
	if (!l->trusted && l->writes == WRITES_DIRECT) {
		if (s->writes == WRITES_OVERLAY)
			ignore(m, "writes", l->writes_at, IGNORED_UNTRUSTED);
		return;
	}
	s->writes = l->writes;
	s->writes_from = here(m, l->writes_at);
}

/*
 * The log and what is kept are those of all projects: a project's file, trusted or not,
 * cannot shorten what the user keeps, nor can --policy for one call.
 */
static void merge_kept(const struct merge *m)
{
	static const char *const keys[KEPTS] = {"retention.audit", "retention.logs",
						"retention.artifacts"};
	const struct layer *l = m->layer;
	struct set *s = m->set;
	bool own = l->layer == LAYER_USER;

	if (l->identity >= 0 && !own)
		ignore(m, "audit.identity", l->identity_at, IGNORED_NOT_OWN);
	if (l->identity >= 0 && own) {
		s->identity = l->identity;
		s->identity_from = here(m, l->identity_at);
	}
	for (size_t i = 0; i < KEPTS; i++) {
		if (l->kept_ms[i] == LIMIT_UNSET)
			continue;
		if (!own) {
			ignore(m, keys[i], l->kept_at[i], IGNORED_NOT_OWN);
			continue;
		}
		s->kept_ms[i] = l->kept_ms[i];
		s->kept_from[i] = here(m, l->kept_at[i]);
	}
}

void set_merge(struct set *s)
{
	struct merge m = {.set = s};
	struct err e = {0};

	s->mode = MODE_UNSET;
	s->writes = WRITES_UNSET;
	s->identity = IDENTITY_UNSET;
	for (size_t i = 0; i < KEPTS; i++)
		s->kept_ms[i] = LIMIT_UNSET;
	for (size_t i = 0; i < LIMIT_SETTINGS; i++)
		s->limit[i] = LIMIT_UNSET;
	bool room = make_room(&m, &e);
	for (size_t i = 0; i < s->layer_count; i++) {
		m.layer = s->layers[i];
		if (!room) {
			complain(&m, &e);
			return;
		}
		for (size_t k = 0; k < m.layer->extends_count && !m.layer->trusted; k++)
			ignore(&m, "extends", m.layer->extends[k].at, IGNORED_UNTRUSTED);
		merge_mode(&m);
		merge_writes(&m);
		for (unsigned int id = 0; id < LIMIT_SETTINGS; id++)
			merge_limit(&m, id);
		merge_paths(&m);
		merge_env(&m);
		merge_hosts(&m);
		merge_secrets(&m);
		merge_protected(&m);
		merge_checks(&m);
		merge_artifacts(&m);
		merge_kept(&m);
		check_counts(&m);
	}
}

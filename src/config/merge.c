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

struct merge {
	struct set *set;
	const struct layer *layer;
	size_t max_paths, max_env;
};

static void complain(const struct merge *m, const struct err *why)
{
	findings_add(&m->set->findings, false, m->layer->file, (struct position){0, 0}, "", why);
}

static void ignore(const struct merge *m, const char *key, struct position at, bool never)
{
	struct set *s = m->set;

	if (s->ignored_count < MAX_IGNORED)
		s->ignored[s->ignored_count++] =
			(struct set_ignored){.at = {.layer = m->layer, .at = at},
					     .key = key,
					     .never = never};
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

	ignore(m, keys[id], m->layer->limit_at[id], false);
}

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
		ignore(m, "mode", l->mode_at, true);
		return;
	}
	if (!l->trusted && l->mode >= now) {
		if (l->mode > now)
			ignore(m, "mode", l->mode_at, false);
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
			ignore(m, keys[p->access], p->at, false);
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

static void check_counts(const struct merge *m)
{
	struct err e = {0};

	if (m->set->path_count > MAX_COMPILED_RULES)
		(void)err_set(&e, ERR_CONFIG_INVALID, "more than %u paths in all policies",
			      MAX_COMPILED_RULES);
	else if (m->set->env_count > MAX_COMPILED_ENV)
		(void)err_set(&e, ERR_CONFIG_INVALID, "more than %u variables in all policies",
			      MAX_COMPILED_ENV);
	else
		return;
	complain(m, &e);
}

void set_merge(struct set *s)
{
	struct merge m = {.set = s};
	struct err e = {0};

	s->mode = MODE_UNSET;
	for (size_t i = 0; i < LIMIT_SETTINGS; i++)
		s->limit[i] = LIMIT_UNSET;
	for (size_t i = 0; i < s->layer_count; i++) {
		m.max_paths += s->layers[i]->path_count;
		m.max_env += s->layers[i]->env_count;
	}
	s->paths = arena_take(&s->arena, (m.max_paths + 1) * sizeof(*s->paths), &e);
	s->env = arena_take(&s->arena, (m.max_env + 1) * sizeof(*s->env), &e);
	for (size_t i = 0; i < s->layer_count; i++) {
		m.layer = s->layers[i];
		if (!s->paths || !s->env) {
			complain(&m, &e);
			return;
		}
		for (size_t k = 0; k < m.layer->extends_count && !m.layer->trusted; k++)
			ignore(&m, "extends", m.layer->extends[k].at, false);
		merge_mode(&m);
		if (m.layer->writes >= 0)
			s->writes_from = here(&m, m.layer->writes_at);
		for (unsigned int id = 0; id < LIMIT_SETTINGS; id++)
			merge_limit(&m, id);
		merge_paths(&m);
		merge_env(&m);
		check_counts(&m);
	}
}

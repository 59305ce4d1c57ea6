/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds, reads and orders the layers: built-in, user, project, --profile,
 * --policy. What a file extends stands right below it.
 */
#include "config/set.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/nearest.h"
#include "config/embedded.h"
#include "config/file.h"
#include "config/merge.h"
#include "config/trust.h"
#include "policy/resolve.h"

const char *const layer_names[POLICY_LAYERS] = {"built-in", "user", "project",
						"profile",  "file", "option"};

struct loader {
	struct set *set;
	struct policy_inputs *in;
	uid_t uid;
	unsigned int flags;
};

static void complain(struct set *s, const char *file, struct position at, const char *key,
		     const struct err *why)
{
	findings_add(&s->findings, false, file, at, key, why);
}

static struct layer *new_layer(struct set *s, uint8_t layer, const char *file)
{
	struct err e = {0};
	struct layer *l = arena_take(&s->arena, sizeof(*l), &e);
	char *copy = arena_text(&s->arena, file, strlen(file), &e);

	if (!l || !copy) {
		complain(s, file, (struct position){0, 0}, "", &e);
		return NULL;
	}
	l->layer = layer;
	l->file = copy;
	return l;
}

static void put_layer(struct set *s, struct layer *l)
{
	struct err e = {0};

	if (s->layer_count < MAX_SET_LAYERS) {
		s->layers[s->layer_count++] = l;
		return;
	}
	(void)err_set(&e, ERR_CONFIG_INVALID, "more than %u layers", MAX_SET_LAYERS);
	complain(s, l->file, (struct position){0, 0}, "", &e);
}

static void unknown_profile(struct set *s, const char *name, const char *file, struct position at,
			    const char *key)
{
	const char *names[32];
	struct err e = {0};
	size_t n = 0;
	AUTO_BUF list = BUF_INIT(400);

	for (; embedded_profiles[n].name && n < ARRAY_LEN(names); n++) {
		names[n] = embedded_profiles[n].name;
		(void)buf_printf(&list, "%s%s", n ? " " : "", names[n]);
	}
	(void)err_set(&e, ERR_CONFIG_INVALID, "unknown profile `%.100s`", name);
	const char *near = nearest(name, names, n);
	if (near)
		(void)err_hint(&e, "did you mean `%s`?", near);
	else
		(void)err_hint(&e, "there are: %s", buf_cstr(&list));
	complain(s, file, at, key, &e);
}

/* `file`, `at` and `key` say who names it. */
static void load_profile(struct loader *l, const char *name, uint8_t layer, const char *file,
			 struct position at, const char *key)
{
	const struct embedded *p = embedded_find(embedded_profiles, name);
	char title[64];

	if (!p) {
		unknown_profile(l->set, name, file, at, key);
		return;
	}
	(void)snprintf(title, sizeof(title), "profile %s", p->name);
	struct layer *made = new_layer(l->set, layer, title);
	if (!made)
		return;
	made->profile = made->trusted = true;
	if (layer_read(&l->set->arena, &l->set->places, p->text, p->n, made, &l->set->findings) ==
	    0)
		put_layer(l->set, made);
}

static void load_extends(struct loader *l, const struct layer *by)
{
	for (size_t i = 0; i < by->extends_count; i++) {
		char key[KEY_TEXT];
		(void)snprintf(key, sizeof(key), "extends[%zu]", i);
		/* Untrusted: what a profile adds only widens; merging says so. */
		if (by->trusted)
			load_profile(l, by->extends[i].name, by->layer, by->file, by->extends[i].at,
				     key);
		else if (!embedded_find(embedded_profiles, by->extends[i].name))
			unknown_profile(l->set, by->extends[i].name, by->file, by->extends[i].at,
					key);
	}
}

/* Where --policy leads, and whether a sandbox may write there. */
static int locate_named(const struct loader *l, struct resolved *ret, struct err *e)
{
	struct places writable = {.n = 0};
	struct stat st;

	if (l->in->source && stat(l->in->source, &st) == 0)
		(void)places_add(&writable, &st);
	return resolve_path(l->in->in[INPUT_FILE].path, NULL, &writable, ret, e);
}

struct target {
	enum policy_input_id id;
	uint8_t layer;
	const char *path;
	unsigned int rules;
	bool inside; /* of the source: whoever works there may write it */
};

static void load_file(struct loader *l, const struct target *t)
{
	struct set *s = l->set;
	struct layer *made = new_layer(s, t->layer, t->path);
	struct policy_file f;
	struct err e = {0};

	if (!made)
		return;
	int rc = policy_file_read(&s->arena, l->in->source ? l->in->source : "", t->path, t->rules,
				  l->uid, &f, &e);
	if (f.st.st_ino)
		policy_input_set(&l->in->in[t->id], &f.st);
	if (rc < 0) {
		complain(s, made->file, (struct position){0, 0}, "", &e);
		return;
	}
	memcpy(made->sha256, f.sha256, sizeof(made->sha256));
	made->inside = t->inside;
	made->trusted = !t->inside || trust_has(l->in->state, l->uid, t->path, f.sha256);
	if (layer_read(&s->arena, &s->places, f.text, f.n, made, &s->findings) < 0)
		return;
	load_extends(l, made);
	put_layer(s, made);
}

static void load_named(struct loader *l)
{
	struct resolved where;
	struct err e = {0};

	if (!l->in->in[INPUT_FILE].path[0])
		return;
	if (locate_named(l, &where, &e) < 0) {
		complain(l->set, l->in->in[INPUT_FILE].path, (struct position){0, 0}, "", &e);
		return;
	}
	load_file(l, &(struct target){.id = INPUT_FILE,
				      .layer = LAYER_FILE,
				      .path = where.path,
				      .rules = where.inside ? FILE_ANY : FILE_OWN,
				      .inside = where.inside});
}

int set_load(struct set *s, struct policy_inputs *in, uid_t uid, unsigned int flags)
{
	struct loader l = {.set = s, .in = in, .uid = uid, .flags = flags};

	*s = (struct set){.places = {.home = in->home, .source = in->source}};
	if (in->in[INPUT_USER].there && !(flags & SET_ONLY_FILE))
		load_file(&l, &(struct target){.id = INPUT_USER,
					       .layer = LAYER_USER,
					       .path = in->in[INPUT_USER].path,
					       .rules = FILE_OWN});
	if (in->in[INPUT_PROJECT].there && !(flags & SET_ONLY_FILE))
		load_file(&l, &(struct target){.id = INPUT_PROJECT,
					       .layer = LAYER_PROJECT,
					       .path = in->in[INPUT_PROJECT].path,
					       .rules = FILE_INSIDE,
					       .inside = true});
	for (size_t i = 0; i < in->profiles->n; i++)
		load_profile(&l, in->profiles->v[i], LAYER_PROFILE, "--profile",
			     (struct position){0, 0}, "");
	load_named(&l);
	if (!s->findings.errors)
		set_merge(s);
	return s->findings.errors ? -1 : 0;
}

void set_release(struct set *s)
{
	arena_release(&s->arena);
}

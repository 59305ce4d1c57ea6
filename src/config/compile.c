/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the layers come to, in the form that the front reads.
 */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "config/set.h"

#define NOTE_BYTES 2000 /* of what one file said in vain; the rest is counted */

void set_origin(const struct origin *o, struct buf *ret)
{
	if (!o->layer) {
		(void)buf_str(ret, "built-in");
		return;
	}
	if (!o->layer->profile)
		(void)buf_printf(ret, "%s ", layer_names[o->layer->layer]);
	(void)buf_str(ret, o->layer->file);
	if (o->at.line)
		(void)buf_printf(ret, ":%u", o->at.line);
}

static const char *keep(struct set *s, const struct buf *b, struct err *e)
{
	return buf_check(b, "a policy's text", ERR_CONFIG_INVALID, e) < 0
		       ? NULL
		       : arena_text(&s->arena, buf_cstr(b), b->n, e);
}

static int put_rules(struct set *s, struct compiled *c, struct err *e)
{
	c->rules = arena_take(&s->arena, (s->path_count + 1) * sizeof(*c->rules), e);
	if (!c->rules)
		return -1;
	for (size_t i = 0; i < s->path_count; i++) {
		const struct set_path *p = &s->paths[i];
		struct origin o = {.layer = p->from, .at = p->p->at};
		AUTO_BUF origin = BUF_INIT(PATH_TEXT + 64);
		if (!p->p->path)
			continue; /* relative, and there is no source */
		set_origin(&o, &origin);
		struct path_rule r = {.path = p->p->path,
				      .origin = keep(s, &origin, e),
				      .access = p->p->access,
				      .layer = p->from->layer,
				      .pattern = p->p->pattern,
				      .narrow = p->narrow};
		if (!r.origin)
			return -1;
		c->rules[c->rule_count++] = r;
	}
	return 0;
}

/* In a built-in profile `~/` at the start of a value is the home, and only counts if it is there. */
static int put_env(struct set *s, struct compiled *c, struct err *e)
{
	c->env = arena_take(&s->arena, (s->env_count + 1) * sizeof(*c->env), e);
	if (!c->env)
		return -1;
	for (size_t i = 0; i < s->env_count; i++) {
		const char *text = s->env[i].v->text;
		const char *home = s->env[i].from->profile ? strstr(text, "=~/") : NULL;
		AUTO_BUF made = BUF_INIT(MAX_COMPILED_TEXT);
		if (home && !s->places.home)
			continue;
		if (home) {
			(void)buf_add(&made, text, (size_t)(home - text) + 1);
			(void)buf_str(&made, s->places.home);
			(void)buf_str(&made, home + 2);
			text = keep(s, &made, e);
			if (!text)
				return -1;
		}
		c->env[c->env_count++] = (struct file_env){.text = text, .if_there = home != NULL};
	}
	return 0;
}

static int put_hosts(struct set *s, struct compiled *c, struct err *e)
{
	c->hosts = arena_take(&s->arena, (s->host_count + 1) * sizeof(*c->hosts), e);
	if (!c->hosts)
		return -1;
	for (size_t i = 0; i < s->host_count; i++) {
		const struct set_host *h = &s->hosts[i];
		struct origin o = {.layer = h->from, .at = h->v->at};
		AUTO_BUF origin = BUF_INIT(PATH_TEXT + 64);
		set_origin(&o, &origin);
		struct host_rule r = {.text = h->v->text,
				      .origin = keep(s, &origin, e),
				      .list = h->v->list};
		if (!r.origin)
			return -1;
		c->hosts[c->host_count++] = r;
	}
	return 0;
}

static int put_secrets(struct set *s, struct compiled *c, struct err *e)
{
	c->secrets = arena_take(&s->arena, (s->secret_count + 1) * sizeof(*c->secrets), e);
	if (!c->secrets)
		return -1;
	for (size_t i = 0; i < s->secret_count; i++) {
		const struct set_secret *from = &s->secrets[i];
		struct origin o = {.layer = from->from, .at = from->v->at};
		AUTO_BUF origin = BUF_INIT(PATH_TEXT + 64);
		set_origin(&o, &origin);
		struct secret_rule r = from->v->rule;
		r.origin = keep(s, &origin, e);
		if (!r.origin)
			return -1;
		c->secrets[c->secret_count++] = r;
	}
	return 0;
}

static int put_files(struct set *s, struct compiled *c, struct err *e)
{
	c->files = arena_take(&s->arena, MAX_COMPILED_FILES * sizeof(*c->files), e);
	if (!c->files)
		return -1;
	for (size_t i = 0; i < s->layer_count; i++) {
		const struct layer *l = s->layers[i];
		if (l->profile)
			continue;
		if (c->file_count == MAX_COMPILED_FILES)
			return err_set(e, ERR_CONFIG_INVALID, "more than %u policy files",
				       MAX_COMPILED_FILES);
		struct compiled_file *f = &c->files[c->file_count++];
		*f = (struct compiled_file){.path = l->file,
					    .layer = l->layer,
					    .trusted = l->trusted};
		memcpy(f->sha256, l->sha256, sizeof(f->sha256));
	}
	return 0;
}

/* One line for each file of which something did not count. */
static int put_note(struct set *s, const struct layer *l, enum ignored_why why, struct compiled *c,
		    struct err *e)
{
	AUTO_BUF note = BUF_INIT(MAX_COMPILED_TEXT);
	size_t found = 0;
	size_t left = 0;

	(void)buf_str(&note, l->file);
	(void)buf_printf(&note, ": %s; not taken: ", ignored_whys[why]);
	for (size_t i = 0; i < s->ignored_count; i++) {
		const struct set_ignored *o = &s->ignored[i];
		if (o->at.layer != l || o->why != why)
			continue;
		if (note.n > NOTE_BYTES + strlen(l->file)) {
			left++;
			continue;
		}
		(void)buf_printf(&note, "%s%s (line %u)", found++ ? ", " : "", o->key,
				 o->at.at.line);
	}
	if (!found)
		return 0;
	if (left)
		(void)buf_printf(&note, " and %zu more", left);
	if (why == IGNORED_UNTRUSTED) {
		(void)buf_str(&note, "; after reading it: sandglass policy trust ");
		(void)buf_str(&note, l->file);
	}
	const char *text = keep(s, &note, e);
	if (!text)
		return -1;
	if (c->note_count < MAX_COMPILED_NOTES)
		c->notes[c->note_count++] = text;
	return 0;
}

static int put_notes(struct set *s, struct compiled *c, struct err *e)
{
	c->notes = arena_take(&s->arena, MAX_COMPILED_NOTES * sizeof(*c->notes), e);
	if (!c->notes)
		return -1;
	for (size_t i = 0; i < s->layer_count; i++)
		for (unsigned int why = 0; why < IGNORED_WHYS; why++)
			if (put_note(s, s->layers[i], why, c, e) < 0)
				return -1;
	return 0;
}

int set_compile(struct set *s, const void *key, size_t key_bytes, struct compiled *ret,
		struct err *e)
{
	struct compiled c = {.key = key,
			     .key_bytes = key_bytes,
			     .mode = s->mode,
			     .writes = s->writes,
			     .narrowed = s->narrowed,
			     .pseudonyms = s->identity == IDENTITY_PSEUDONYM,
			     .audit_kept_ms = s->kept_ms[KEPT_AUDIT]};

	memcpy(c.limit, s->limit, sizeof(c.limit));
	if (put_rules(s, &c, e) < 0 || put_env(s, &c, e) < 0 || put_hosts(s, &c, e) < 0 ||
	    put_secrets(s, &c, e) < 0 || put_files(s, &c, e) < 0 || put_notes(s, &c, e) < 0)
		return -1;
	*ret = c;
	return 0;
}

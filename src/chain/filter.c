/* SPDX-License-Identifier: Apache-2.0 */
#include "chain/filter.h"

#include <jansson.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/nearest.h"
#include "base/num.h"

static const char *const host_keys[] = {"host", "target", "remote", "url", NULL};
static const char *const path_keys[] = {"path",     "paths", "source", "cwd", "target",
					"moved_to", "file",  "to",     NULL};

int filter_when(const char *text, int64_t now_ms, char ret[WHEN_TEXT], struct err *e)
{
	static const char form[] = "0000-00-00T00:00:00.000";
	struct err ignored = {0};
	uint64_t ago = 0;
	size_t n = strlen(text);

	if (duration_parse(text, &ago, &ignored) == 0 && ago <= (uint64_t)now_ms) {
		(void)clock_rfc3339(now_ms - (int64_t)ago, ret);
		return 0;
	}
	n -= n && text[n - 1] == 'Z';
	bool good = n == 10 || n == 13 || n == 16 || n == 19 || n == 23;
	for (size_t i = 0; i < n && good; i++)
		good = form[i] == '0' ? text[i] >= '0' && text[i] <= '9' : text[i] == form[i];
	if (!good)
		return err_set(e, ERR_CONFIG_INVALID,
			       "`%.40s` is no time: 2026-01-31, 2026-01-31T12:30, or how long ago, "
			       "2h",
			       text);
	memcpy(ret, text, n);
	ret[n] = '\0';
	return 0;
}

static bool begins(const char *text, const char *with)
{
	return text && strncmp(text, with, strlen(with)) == 0;
}

/* `call` is all of call.start and call.end. */
static bool is_event(const char *event, const char *asked)
{
	size_t n = strlen(asked);

	return begins(event, asked) && (!event[n] || event[n] == '.' || (n && asked[n - 1] == '.'));
}

int filter_event(const char *asked, struct err *e)
{
	static const char *const events[] =
		{"call.start",     "call.end",       "egress.allow",    "egress.deny",
		 "session.create", "session.renew",  "session.pause",   "session.resume",
		 "session.reset",  "session.expire", "session.destroy", "apply",
		 "discard",        "push",           "policy.load",     "policy.change",
		 "policy.trust",   "policy.untrust", "audit.torn",      "retention.sweep",
		 "call",           "egress",         "session",         "policy",
		 "audit",          "retention"};

	for (size_t i = 0; i < ARRAY_LEN(events); i++)
		if (is_event(events[i], asked))
			return 0;
	const char *near = nearest(asked, events, ARRAY_LEN(events));
	(void)err_set(e, ERR_CONFIG_INVALID, "--event: `%.64s` is no event of the log", asked);
	return near ? err_hint(e, "did you mean `%s`?", near)
		    : err_hint(e, "sandglass-audit(1) lists them");
}

bool filter_begins_session(const struct record *r, const char *name)
{
	const char *its = json_string_value(json_object_get(r->data, "name"));

	return r->event && r->session && strcmp(r->event, "session.create") == 0 && its &&
	       strcmp(its, name) == 0;
}

static bool is_name(const struct filter *f, const char *text, const char *asked)
{
	char name[PSEUDONYM_TEXT];

	return text &&
	       (strcmp(text, asked) == 0 ||
		(f->hidden && strcmp(text, pseudonym(f->hidden, asked, strlen(asked), name)) == 0));
}

static bool is_host(const struct filter *f, const char *text, const char *asked)
{
	AUTO_BUF hidden = BUF_INIT(65536);
	size_t n = strlen(asked);

	if (f->hidden)
		pseudonym_host(f->hidden, asked, n, &hidden);
	return (begins(text, asked) && (!text[n] || text[n] == ':')) ||
	       (hidden.n && begins(text, hidden.p) && (!text[hidden.n] || text[hidden.n] == ':'));
}

static bool is_below(const char *text, const char *top, size_t n)
{
	while (n > 1 && top[n - 1] == '/')
		n--;
	return strncmp(text, top, n) == 0 &&
	       (!text[n] || text[n] == '/' || (n == 1 && *top == '/'));
}

static bool is_path(const struct filter *f, const char *text, const char *asked)
{
	AUTO_BUF hidden = BUF_INIT(65536);

	if (f->hidden)
		pseudonym_text(f->hidden, asked, strlen(asked), &hidden);
	return is_below(text, asked, strlen(asked)) ||
	       (hidden.n && is_below(text, hidden.p, hidden.n));
}

struct search {
	const struct filter *f;
	const char *const *keys;
	bool (*fits)(const struct filter *f, const char *text, const char *asked);
	const char *asked;
};

static bool is_key(const struct search *s, const char *key)
{
	for (size_t i = 0; s->keys[i]; i++)
		if (strcmp(s->keys[i], key) == 0)
			return true;
	return false;
}

/* A text, or any text of a list. */
static bool value_fits(const struct search *s, const json_t *v)
{
	if (json_is_string(v))
		return s->fits(s->f, json_string_value(v), s->asked);
	for (size_t i = 0; i < json_array_size(v); i++) {
		const char *text = json_string_value(json_array_get(v, i));
		if (text && s->fits(s->f, text, s->asked))
			return true;
	}
	return false;
}

static bool object_fits(const struct search *s, const json_t *object)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)(uintptr_t)object, key,
			    v) if (is_key(s, key) && value_fits(s, v)) return true;
	return false;
}

/* In the data itself, and in the objects of its lists. */
static bool data_fits(const struct search *s, const json_t *data)
{
	const char *key;
	json_t *v;

	if (object_fits(s, data))
		return true;
	json_object_foreach((json_t *)(uintptr_t)data, key, v)
	{
		for (size_t i = 0; i < json_array_size(v); i++)
			if (object_fits(s, json_array_get(v, i)))
				return true;
	}
	return false;
}

static bool when_fits(const struct filter *f, const char *time)
{
	return (!f->since[0] || strcmp(time, f->since) >= 0) &&
	       (!f->until[0] || strncmp(time, f->until, strlen(f->until)) <= 0);
}

bool filter_fits(const struct filter *f, const struct record *r)
{
	const struct search host = {f, host_keys, is_host, f->host};
	const struct search path = {f, path_keys, is_path, f->path};

	return when_fits(f, r->time) && (!f->session || begins(r->session, f->session)) &&
	       (!f->event || is_event(r->event, f->event)) &&
	       (!f->decision || (r->decision && strcmp(r->decision, f->decision) == 0)) &&
	       (!f->tool || (r->tool && strcmp(r->tool, f->tool) == 0)) &&
	       (!f->actor || is_name(f, r->actor, f->actor)) &&
	       (!f->host || data_fits(&host, r->data)) && (!f->path || data_fits(&path, r->data));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is looked for is made once, and wiped.
 */
#include "run/censor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "run/secrets.h"

#define FORMS 9 /* raw, base64 in 3 shifts and 2 alphabets, percent-encoded in 2 */

struct needle {
	char *p;
	size_t n;
};

struct censor {
	struct needle v[FORMS * MAX_EGRESS_SECRETS];
	size_t n;
};

static void add(struct censor *c, const char *p, size_t n)
{
	struct needle *one = &c->v[c->n];

	if (n < MIN_CENSORED)
		return;
	one->p = malloc(n);
	if (one->p)
		memcpy(one->p, p, n);
	one->n = one->p ? n : 0;
	c->n++;
}

/* The characters that only the value decides, whatever stands before and behind it. */
static void add_base64(struct censor *c, const char *value, size_t len, bool url, char *room)
{
	static const char standard[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t shift = 0; shift < 3; shift++) {
		size_t first = (8 * shift + 5) / 6;
		size_t last = 8 * (shift + len) / 6;
		for (size_t k = first; k < last; k++) {
			size_t bit = 6 * k - 8 * shift;
			unsigned int pair = (unsigned int)(unsigned char)value[bit / 8] << 8;
			if (bit / 8 + 1 < len)
				pair |= (unsigned char)value[bit / 8 + 1];
			char d = standard[pair >> (10 - bit % 8) & 0x3f];
			room[k - first] = url && d == '+' ? '-' : url && d == '/' ? '_' : d;
		}
		add(c, room, last - first);
	}
}

static void add_percent(struct censor *c, const char *value, size_t len, const char *digits,
			char *room)
{
	size_t to = 0;

	for (size_t i = 0; i < len; i++) {
		unsigned char b = (unsigned char)value[i];
		if ((b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') || (b >= '0' && b <= '9') ||
		    strchr("-._~", b)) {
			room[to++] = (char)b;
		} else {
			room[to++] = '%';
			room[to++] = digits[b / 16];
			room[to++] = digits[b % 16];
		}
	}
	if (to > len)
		add(c, room, to);
}

static bool add_value(struct censor *c, const char *value)
{
	size_t len = strlen(value);
	size_t room = 3 * len + 8;

	if (len < MIN_CENSORED)
		return true;
	char *text = malloc(room);
	if (!text)
		return false;
	add(c, value, len);
	add_base64(c, value, len, false, text);
	add_base64(c, value, len, true, text);
	add_percent(c, value, len, "0123456789ABCDEF", text);
	add_percent(c, value, len, "0123456789abcdef", text);
	explicit_bzero(text, room);
	free(text);
	return true;
}

/* So that of a value which begins with another one nothing is left. */
static int longer_first(const void *a, const void *b)
{
	const struct needle *x = a;
	const struct needle *y = b;

	return (x->n < y->n) - (x->n > y->n);
}

int censor_new(const struct secret_values *v, struct censor **ret, struct err *e)
{
	struct censor *c = calloc(1, sizeof(*c));
	bool good = c != NULL;

	for (size_t i = 0; i < v->n && good; i++)
		good = add_value(c, v->raw[i]);
	for (size_t i = 0; good && i < c->n; i++)
		good = c->v[i].p != NULL;
	if (!good || c->n == 0) {
		censor_free(c);
		c = NULL;
	} else {
		qsort(c->v, c->n, sizeof(*c->v), longer_first);
	}
	if (!good)
		return err_set(e, ERR_INTERNAL, "out of memory");
	*ret = c;
	return 0;
}

void censor_free(struct censor *c)
{
	for (size_t i = 0; c && i < c->n; i++) {
		if (c->v[i].p)
			explicit_bzero(c->v[i].p, c->v[i].n);
		free(c->v[i].p);
	}
	free(c);
}

size_t censor_blot(const struct censor *c, char *p, size_t n)
{
	size_t found = 0;

	for (size_t i = 0; c && i < c->n; i++) {
		const struct needle *one = &c->v[i];
		for (char *at = memmem(p, n, one->p, one->n); at;
		     at = memmem(at + one->n, n - (size_t)(at + one->n - p), one->p, one->n)) {
			memset(at, '*', one->n);
			found++;
		}
	}
	return found;
}

/* How many of the last bytes are the beginning of something that is looked for. */
static size_t open_end(const struct censor *c, const char *p, size_t n)
{
	size_t most = 0;

	for (size_t i = 0; i < c->n; i++) {
		const struct needle *one = &c->v[i];
		size_t from = n < one->n ? 0 : n - one->n + 1;
		while (from < n - most) {
			const char *at = memchr(p + from, one->p[0], n - most - from);
			if (!at)
				break;
			from = (size_t)(at - p);
			if (memcmp(at, one->p, n - from) == 0)
				most = n - from;
			from++;
		}
	}
	return most;
}

/*
 * At least `keep` of the last bytes, more where something that is looked for begins before;
 * but not without end, where one byte is repeated.
 */
static size_t uncut(const struct censor *c, const char *p, size_t n, size_t keep)
{
	for (size_t i = 0; i < c->n && keep <= 4 * c->v[0].n; i++) {
		const struct needle *one = &c->v[i];
		size_t from = n - keep < one->n ? 0 : n - keep - one->n + 1;
		const char *at = memmem(p + from, n - from, one->p, one->n);
		if (at && at < p + n - keep && at + one->n > p + n - keep) {
			keep = n - (size_t)(at - p);
			i = (size_t)-1; /* anew: one before it may reach in */
		}
	}
	return keep;
}

static void wipe_held(struct censor_stream *s)
{
	if (s->held)
		explicit_bzero(s->held, s->n);
	free(s->held);
}

void censor_feed(struct censor_stream *s, const char *p, size_t n, censor_sink *sink, void *self)
{
	if (!s->c) {
		sink(self, p, n);
		return;
	}
	char *all = malloc(s->n + n);
	if (!all)
		return;
	if (s->held)
		memcpy(all, s->held, s->n);
	memcpy(all + s->n, p, n);
	n += s->n;
	/* Of what was found nothing is cut: a longer value may begin with a shorter one. */
	size_t keep = uncut(s->c, all, n, open_end(s->c, all, n));
	char *held = keep ? malloc(keep) : NULL;
	if (held)
		memcpy(held, all + n - keep, keep);
	(void)censor_blot(s->c, all, n - keep);
	if (n > keep)
		sink(self, all, n - keep);
	wipe_held(s);
	s->held = held;
	s->n = held ? keep : 0;
	explicit_bzero(all, n);
	free(all);
}

void censor_end(struct censor_stream *s, censor_sink *sink, void *self)
{
	if (s->n >= MIN_CENSORED)
		memset(s->held, '*', s->n);
	if (s->n)
		sink(self, s->held, s->n);
	wipe_held(s);
	s->held = NULL;
	s->n = 0;
}

char **censor_argv(const struct censor *c, char **argv)
{
	size_t n = 0;

	if (!c || !argv)
		return argv;
	while (argv[n])
		n++;
	char **ret = calloc(n + 1, sizeof(*ret));
	for (size_t i = 0; ret && i < n; i++) {
		ret[i] = strdup(argv[i]);
		if (!ret[i]) {
			censor_release_argv(ret, argv);
			return NULL;
		}
		(void)censor_blot(c, ret[i], strlen(ret[i]));
	}
	return ret;
}

void censor_release_argv(char **hidden, char *const *argv)
{
	if (hidden == argv)
		return;
	for (size_t i = 0; hidden && hidden[i]; i++)
		free(hidden[i]);
	free(hidden);
}

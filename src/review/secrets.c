/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text is hostile: every match has a limit of steps and of depth, and one
 * that comes to it is said, not waited for.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "review/secrets.h"

#include <pcre2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/term.h"

#define MATCH_STEPS 2000000u
#define MATCH_DEPTH 2000u
#define MATCH_HEAP_KIB 20000u
#define SHOWN_BYTES 4u
#define MAX_TRIES 10000u /* matches of one kind that are looked at */

struct secrets {
	struct secret_code {
		pcre2_code *re;
	} * code; /* by kind */
	pcre2_match_data *data;
	pcre2_match_context *limits;
};

int secrets_new(struct secrets **ret, struct err *e)
{
	struct secrets *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(e, ERR_INTERNAL, "out of memory");
	s->code = calloc(secret_kind_count, sizeof(*s->code));
	s->data = pcre2_match_data_create(4, NULL);
	s->limits = pcre2_match_context_create(NULL);
	for (size_t i = 0; s->code && s->data && s->limits && i < secret_kind_count; i++) {
		int error = 0;
		PCRE2_SIZE at = 0;
		s->code[i].re =
			pcre2_compile((PCRE2_SPTR)secret_kinds[i].pattern, PCRE2_ZERO_TERMINATED,
				      PCRE2_NEVER_UTF, &error, &at, NULL);
		if (!s->code[i].re) {
			secrets_free(s);
			return err_set(e, ERR_INTERNAL, "the pattern of %s is wrong at %zu",
				       secret_kinds[i].name, (size_t)at);
		}
		/* Without it the interpreter does the same, slower. */
		(void)pcre2_jit_compile(s->code[i].re, PCRE2_JIT_COMPLETE);
	}
	if (!s->code || !s->data || !s->limits) {
		secrets_free(s);
		return err_set(e, ERR_INTERNAL, "out of memory");
	}
	(void)pcre2_set_match_limit(s->limits, MATCH_STEPS);
	(void)pcre2_set_depth_limit(s->limits, MATCH_DEPTH);
	(void)pcre2_set_heap_limit(s->limits, MATCH_HEAP_KIB);
	*ret = s;
	return 0;
}

void secrets_free(struct secrets *s)
{
	if (!s)
		return;
	for (size_t i = 0; s->code && i < secret_kind_count; i++)
		pcre2_code_free(s->code[i].re);
	free(s->code);
	pcre2_match_data_free(s->data);
	pcre2_match_context_free(s->limits);
	free(s);
}

static void show(const char *p, size_t n, char ret[SECRET_SHOWN])
{
	size_t at = 0;

	/* Of a short value less is shown. */
	size_t most = n / 4 < SHOWN_BYTES ? n / 4 : SHOWN_BYTES;
	while (at < most && (unsigned char)p[at] > 0x20 && (unsigned char)p[at] < 0x7f) {
		ret[at] = p[at];
		at++;
	}
	memcpy(ret + at, "…", sizeof("…"));
}

static bool told(const struct secret_found *v, size_t n, const size_t *begins, size_t at)
{
	(void)v;
	for (size_t i = 0; i < n; i++) {
		if (begins[i] == at)
			return true;
	}
	return false;
}

static size_t line_of(const char *text, size_t at)
{
	size_t line = 1;

	for (const char *p = text; (p = memchr(p, '\n', (size_t)(text + at - p))); p++)
		line++;
	return line;
}

struct search {
	struct secrets *s;
	const char *text, *before;
	size_t n, before_n;
	struct secret_found *ret;
	size_t count;
	size_t begins[MAX_SECRETS];
	bool given_up;
};

static void take(struct search *f, size_t kind, const PCRE2_SIZE *at, int groups)
{
	size_t begin = groups > 1 ? at[2] : at[0];
	size_t end = groups > 1 ? at[3] : at[1];

	if (end <= begin || f->count == MAX_SECRETS || told(f->ret, f->count, f->begins, begin))
		return;
	/* What was there before is nothing that the session brought. */
	if (f->before_n && memmem(f->before, f->before_n, f->text + at[0], at[1] - at[0]))
		return;
	f->begins[f->count] = begin;
	struct secret_found *r = &f->ret[f->count++];
	r->kind = &secret_kinds[kind];
	r->line = line_of(f->text, begin);
	show(f->text + begin, end - begin, r->shown);
}

static void find_kind(struct search *f, size_t kind)
{
	PCRE2_SIZE from = 0;

	for (unsigned int i = 0; i < MAX_TRIES && from < f->n && f->count < MAX_SECRETS; i++) {
		int rc = pcre2_match(f->s->code[kind].re, (PCRE2_SPTR)f->text, f->n, from, 0,
				     f->s->data, f->s->limits);
		if (rc == PCRE2_ERROR_NOMATCH)
			return;
		if (rc < 0) {
			f->given_up = true;
			return;
		}
		const PCRE2_SIZE *at = pcre2_get_ovector_pointer(f->s->data);
		take(f, kind, at, rc);
		from = at[1] > from ? at[1] : from + 1;
	}
}

size_t secrets_find(struct secrets *s, const char *text, size_t n, const char *before,
		    size_t before_n, struct secret_found ret[MAX_SECRETS], bool *ret_given_up)
{
	struct search f =
		{.s = s, .text = text, .n = n, .before = before, .before_n = before_n, .ret = ret};

	for (size_t i = 0; i < secret_kind_count; i++)
		find_kind(&f, i);
	if (f.given_up)
		*ret_given_up = true;
	return f.count;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "chain/verify.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/line.h"
#include "audit/sweep.h"
#include "base/base.h"
#include "chain/record.h"

/* What the walk knows besides what it will tell. */
struct walk {
	struct verify *v;
	struct chain_heads *heads;
	size_t next_head;
	char begins_at[AUDIT_HASH_TEXT]; /* prev of the first line */
	const char *last_file;
};

static int PRINTF(5, 6)
	bad(struct verify *v, const char *file, uint64_t number, uint64_t seq, const char *fmt, ...)
{
	va_list ap;

	v->intact = false;
	(void)snprintf(v->file, sizeof(v->file), "%s", file);
	v->number = number;
	v->seq = seq;
	va_start(ap, fmt);
	(void)vsnprintf(v->why, sizeof(v->why), fmt, ap);
	va_end(ap);
	return 0;
}

/* The order of numbers tells what happened; the hashes alone only that something did. */
static bool follows(struct verify *v, const struct log_line *l, const struct record *r)
{
	uint64_t want = v->last_seq + 1;

	if (r->seq > want + 1)
		(void)bad(v, l->file, l->number, r->seq,
			  "seq %" PRIu64 " to %" PRIu64 " are missing before it", want, r->seq - 1);
	else if (r->seq > want)
		(void)bad(v, l->file, l->number, r->seq, "seq %" PRIu64 " is missing before it",
			  want);
	else if (r->seq == v->last_seq && strcmp(r->hash, v->hash) == 0)
		(void)bad(v, l->file, l->number, r->seq, "it is there twice");
	else if (r->seq < want)
		(void)bad(v, l->file, l->number, r->seq,
			  "it comes after seq %" PRIu64 ": inserted, or in another order",
			  v->last_seq);
	else if (strcmp(r->prev, v->hash) != 0)
		(void)bad(v, l->file, l->number, r->seq,
			  "its `prev` is not the hash of the line before: that one, or this one, "
			  "is not what was written");
	return v->intact;
}

/* A sweep that tells of what was just before the log's beginning. */
static bool is_anchor(const struct walk *w, const struct record *r)
{
	const json_t *files = json_object_get(r->data, SWEEP_FILES);

	if (strcmp(r->event, SWEEP_EVENT) != 0)
		return false;
	for (size_t i = 0; i < json_array_size(files); i++) {
		const json_t *row = json_array_get(files, i);
		const json_t *seq = json_object_get(row, SWEEP_SEQ);
		const char *hash = json_string_value(json_object_get(row, SWEEP_HASH));
		if (hash && json_is_integer(seq) &&
		    (uint64_t)json_integer_value(seq) == w->v->first_seq - 1 &&
		    strcmp(hash, w->begins_at) == 0)
			return true;
	}
	return false;
}

/* Heads of this line; those before it were not met. */
static bool heads_fit(struct walk *w, const struct log_line *l, const struct record *r)
{
	while (w->heads && w->next_head < w->heads->n) {
		const struct chain_head *h = &w->heads->v[w->next_head];
		if (h->seq > r->seq)
			return true;
		if (h->seq == r->seq && strcmp(h->hash, r->hash) != 0) {
			(void)bad(w->v, l->file, l->number, r->seq,
				  "%s:%" PRIu32
				  " was kept with another hash: the chain was made anew",
				  w->heads->from[h->from], h->number);
			return false;
		}
		if (h->seq == r->seq)
			w->v->heads++;
		else
			w->v->older++;
		w->next_head++;
	}
	return true;
}

static bool one(struct walk *w, const struct log_line *l, const struct record *r)
{
	struct verify *v = w->v;

	if (!record_hash_fits(r, l->p)) {
		(void)bad(v, l->file, l->number, r->seq,
			  "its hash is not that of its content: it was changed");
		return false;
	}
	if (v->lines == 0) {
		v->first_seq = r->seq;
		memcpy(w->begins_at, r->prev, sizeof(w->begins_at));
	} else if (!follows(v, l, r)) {
		return false;
	}
	v->lines++;
	v->last_seq = r->seq;
	memcpy(v->hash, r->hash, sizeof(v->hash));
	v->swept = v->swept || is_anchor(w, r);
	return heads_fit(w, l, r);
}

static bool line(struct walk *w, const struct log_line *l)
{
	struct record r;
	struct err why = {0};

	if (w->last_file != l->file)
		w->v->files++;
	w->last_file = l->file;
	if (l->torn && l->last_file && !l->too_long) {
		w->v->torn = l->n;
		return true;
	}
	if (l->torn && !l->too_long) {
		(void)bad(w->v, l->file, l->number, 0, "the file ends before this line does");
		return false;
	}
	if (record_parse(l->p, l->n, &r, &why) < 0) {
		(void)bad(w->v, l->file, l->number, w->v->lines ? w->v->last_seq + 1 : 0,
			  "it is no line of the log: %.300s", why.msg);
		return false;
	}
	bool good = one(w, l, &r);
	record_release(&r);
	return good;
}

/* A log begins at its first line, or where a sweep says that it begins. */
static void check_begin(const struct walk *w, const char *first_file)
{
	struct verify *v = w->v;

	if (!v->lines)
		return;
	if (v->first_seq == 1 && strcmp(w->begins_at, audit_no_hash) == 0)
		v->swept = false;
	else if (v->first_seq == 1)
		(void)bad(v, first_file, 1, 1, "it is the first line, but names one before it");
	else if (!v->swept)
		(void)bad(v, first_file, 1, v->first_seq,
			  "what was before it is missing, and no %s tells of it", SWEEP_EVENT);
}

static void check_rest(struct walk *w)
{
	struct verify *v = w->v;

	if (!w->heads || w->next_head >= w->heads->n)
		return;
	const struct chain_head *h = &w->heads->v[w->next_head];
	(void)bad(v, "", 0, h->seq,
		  "the log ends with seq %" PRIu64 ", but %s:%" PRIu32 " was kept of seq %" PRIu64
		  ": its end was cut off",
		  v->last_seq, w->heads->from[h->from], h->number, h->seq);
}

static int by_seq(const void *a, const void *b)
{
	const struct chain_head *x = a;
	const struct chain_head *y = b;

	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

int chain_verify(struct chain_log *log, struct chain_heads *heads, struct verify *ret,
		 struct err *e)
{
	struct verify v = {.intact = true};
	struct walk w = {.v = &v, .heads = heads};
	struct log_line l;
	int rc = 0;

	memcpy(v.hash, audit_no_hash, sizeof(v.hash));
	if (heads && heads->n)
		qsort(heads->v, heads->n, sizeof(*heads->v), by_seq);
	while ((rc = chain_log_next(log, &l, e)) > 0)
		if (!line(&w, &l))
			break;
	if (rc < 0)
		return -1;
	if (v.intact)
		check_begin(&w, log->count ? log->files[0].name : "");
	if (v.intact)
		check_rest(&w);
	*ret = v;
	return 0;
}

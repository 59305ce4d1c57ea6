/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules together, and their encoded form. That holds the rules' texts, so that
 * the decoder can be no laxer than the parser of rules is.
 */
#include "egress/set.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/sha256.h"

#define SET_MAGIC 0x45474c53u /* "SLGE" */
#define SET_VERSION 1u

struct set_header {
	uint32_t magic, version, total, count;
	unsigned char sha256[SHA256_BYTES]; /* of all that follows */
};

/* Behind it `text` and `origin` bytes, without NUL. */
struct set_record {
	uint32_t list, text, origin;
};

size_t egress_set_locals(const struct egress_set *s, uint16_t ret[MAX_EGRESS_LOCALS])
{
	static const struct host name = {.kind = HOST_NAME, .text = "localhost"};
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct egress_rule *r = &s->v[i].rule;
		size_t k = 0;
		if (r->list == EGRESS_LIST_DENY || r->kind != EGRESS_LOOPBACK ||
		    !egress_match_name(s, &name, r->port).allow)
			continue;
		while (k < n && ret[k] < r->port)
			k++;
		if ((k < n && ret[k] == r->port) || n == MAX_EGRESS_LOCALS)
			continue;
		memmove(ret + k + 1, ret + k, (n - k) * sizeof(*ret));
		ret[k] = r->port;
		n++;
	}
	return n;
}

bool egress_set_opens(const struct egress_set *s)
{
	return s->counts[EGRESS_LIST_ALLOW] || s->counts[EGRESS_LIST_LOCAL] ||
	       s->counts[EGRESS_LIST_MIRROR];
}

/* Different ports of the host's loopback, that of `more` among them. */
static size_t count_locals(const struct egress_set *s, const struct egress_rule *more)
{
	size_t n = 1;

	for (size_t i = 0; i < s->n; i++) {
		const struct egress_rule *r = &s->v[i].rule;
		bool seen = r->port == more->port;
		for (size_t k = 0; k < i && !seen; k++)
			seen = s->v[k].rule.list != EGRESS_LIST_DENY &&
			       s->v[k].rule.kind == EGRESS_LOOPBACK && s->v[k].rule.port == r->port;
		if (r->list != EGRESS_LIST_DENY && r->kind == EGRESS_LOOPBACK && !seen)
			n++;
	}
	return n;
}

static int make_room(struct egress_set *s, struct err *e)
{
	if (s->n < s->room)
		return 0;
	size_t room = s->room ? 2 * s->room : 8;
	struct egress_entry *v = reallocarray(s->v, room, sizeof(*v));
	if (!v)
		return err_set(e, ERR_INTERNAL, "out of memory");
	s->v = v;
	s->room = room;
	return 0;
}

int egress_set_add(struct egress_set *s, enum egress_list list, const char *text,
		   const char *origin, struct err *e)
{
	struct egress_rule rule;

	if (s->n == MAX_EGRESS_RULES)
		return err_set(e, ERR_CONFIG_INVALID, "more than %u rules about the network",
			       MAX_EGRESS_RULES);
	if (strlen(origin) > MAX_EGRESS_ORIGIN)
		return err_set(e, ERR_CONFIG_INVALID, "the rule's origin is too long");
	if (egress_rule_read(list, text, &rule, e) < 0)
		return -1;
	if (list != EGRESS_LIST_DENY && rule.kind == EGRESS_LOOPBACK &&
	    count_locals(s, &rule) > MAX_EGRESS_LOCALS)
		return err_set(e, ERR_CONFIG_INVALID, "more than %u ports of the host's loopback",
			       MAX_EGRESS_LOCALS);
	if (make_room(s, e) < 0)
		return -1;
	AUTO_FREE char *kept = strdup(text);
	AUTO_FREE char *from = strdup(origin);
	if (!kept || !from)
		return err_set(e, ERR_INTERNAL, "out of memory");
	s->v[s->n++] = (struct egress_entry){.rule = rule,
					     .number = s->counts[list]++,
					     .text = TAKE(kept),
					     .origin = TAKE(from)};
	return 0;
}

void egress_set_release(struct egress_set *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->v[i].text);
		free(s->v[i].origin);
	}
	free(s->v);
	*s = (struct egress_set){0};
}

int egress_set_encode(const struct egress_set *s, struct buf *out, struct err *e)
{
	AUTO_BUF body = BUF_INIT(MAX_EGRESS_BYTES - sizeof(struct set_header));
	struct set_header h = {.magic = SET_MAGIC, .version = SET_VERSION, .count = (uint32_t)s->n};

	for (size_t i = 0; i < s->n; i++) {
		const struct egress_entry *entry = &s->v[i];
		struct set_record r = {.list = entry->rule.list,
				       .text = (uint32_t)strlen(entry->text),
				       .origin = (uint32_t)strlen(entry->origin)};
		(void)buf_add(&body, &r, sizeof(r));
		(void)buf_add(&body, entry->text, r.text);
		(void)buf_add(&body, entry->origin, r.origin);
	}
	if (buf_check(&body, "the rules about the network", ERR_CONFIG_INVALID, e) < 0)
		return -1;
	h.total = (uint32_t)(sizeof(h) + body.n);
	sha256(body.n ? body.p : "", body.n, h.sha256);
	(void)buf_add(out, &h, sizeof(h));
	if (body.n)
		(void)buf_add(out, body.p, body.n);
	return buf_check(out, "the rules about the network", ERR_CONFIG_INVALID, e);
}

static int bad(struct err *e, const char *what)
{
	return err_set(e, ERR_INTERNAL, "rules about the network: %s", what);
}

/* n bytes as a string of their own; NULL if there is a NUL among them. */
static const char *take_text(const unsigned char *p, size_t n, char *room)
{
	if (memchr(p, 0, n))
		return NULL;
	memcpy(room, p, n);
	room[n] = '\0';
	return room;
}

/* Reads one record. Returns its bytes, 0: it is wrong. */
static size_t read_record(struct egress_set *s, const unsigned char *p, size_t left)
{
	char text[MAX_EGRESS_RULE_TEXT + 1];
	char origin[MAX_EGRESS_ORIGIN + 1];
	struct set_record r;
	struct err ignored = {0};

	if (left < sizeof(r))
		return 0;
	memcpy(&r, p, sizeof(r));
	if (r.list >= EGRESS_LISTS || r.text > MAX_EGRESS_RULE_TEXT ||
	    r.origin > MAX_EGRESS_ORIGIN || left - sizeof(r) < (size_t)r.text + r.origin)
		return 0;
	p += sizeof(r);
	if (!take_text(p, r.text, text) || !take_text(p + r.text, r.origin, origin) ||
	    egress_set_add(s, (enum egress_list)r.list, text, origin, &ignored) < 0)
		return 0;
	return sizeof(r) + r.text + r.origin;
}

int egress_set_decode(const void *bytes, size_t len, struct egress_set *ret, struct err *e)
{
	AUTO_EGRESS_SET s = {0};
	unsigned char digest[SHA256_BYTES];
	struct set_header h;

	if (len < sizeof(h) || len > MAX_EGRESS_BYTES)
		return bad(e, "no size of them");
	memcpy(&h, bytes, sizeof(h));
	if (h.magic != SET_MAGIC || h.version != SET_VERSION)
		return bad(e, "of another version");
	if (h.total != len || h.count > MAX_EGRESS_RULES)
		return bad(e, "cut off, or too many");
	const unsigned char *p = (const unsigned char *)bytes + sizeof(h);
	size_t left = len - sizeof(h);
	sha256(p, left, digest);
	if (memcmp(digest, h.sha256, sizeof(digest)) != 0)
		return bad(e, "altered");
	for (uint32_t i = 0; i < h.count; i++) {
		size_t used = read_record(&s, p, left);
		if (used == 0)
			return bad(e, "a rule is not valid");
		p += used;
		left -= used;
	}
	if (left)
		return bad(e, "bytes after the last rule");
	*ret = s;
	s = (struct egress_set){0};
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict decoder of the compiled form. Its bytes come from another program or a
 * file: every length is checked before it is used, types ascend, single records
 * occur once, every string ends with its only NUL, unknown values are refused.
 * It reads only inside [bytes, bytes + len), and allocates only arrays whose
 * sizes it has counted first.
 */
#include <stdlib.h>
#include <string.h>

#include "egress/set.h"
#include "policy/compiled.h"
#include "policy/compiled_record.h"
#include "policy/secret.h"

struct cursor {
	const unsigned char *p;
	size_t left;
	uint32_t type;
	const unsigned char *payload; /* what is left of the record */
	size_t bytes;
};

static int bad(struct err *e, const char *what)
{
	return err_set(e, ERR_INTERNAL, "compiled policy: %s", what);
}

static int record_next(struct cursor *c)
{
	struct compiled_record r;

	if (c->left < sizeof(r))
		return -1;
	memcpy(&r, c->p, sizeof(r));
	if (r.bytes > c->left - sizeof(r) || r.type >= CREC_TYPES)
		return -1;
	c->type = r.type;
	c->payload = c->p + sizeof(r);
	c->bytes = r.bytes;
	c->p += sizeof(r) + r.bytes;
	c->left -= sizeof(r) + r.bytes;
	return 0;
}

static int take(struct cursor *c, void *ret, size_t n)
{
	if (c->bytes < n)
		return -1;
	memcpy(ret, c->payload, n);
	c->payload += n;
	c->bytes -= n;
	return 0;
}

/* The next string of the record; NULL if there is none or it is too long. */
static const char *take_text(struct cursor *c, size_t max)
{
	const unsigned char *end = c->bytes ? memchr(c->payload, 0, c->bytes) : NULL;
	const char *s = (const char *)c->payload;

	if (!end || (size_t)(end - c->payload) > max)
		return NULL;
	c->bytes -= (size_t)(end - c->payload) + 1;
	c->payload = end + 1;
	return s;
}

static int read_error(struct cursor *c, struct err *ret)
{
	uint32_t code = 0;

	if (take(c, &code, sizeof(code)) < 0 || code == ERR_NONE || code >= ERR_CODES)
		return -1;
	const char *msg = take_text(c, ERR_MSG_MAX - 1);
	const char *hint = take_text(c, ERR_HINT_MAX - 1);
	if (!msg || !hint || !msg[0])
		return -1;
	/* Through the usual way, which makes it safe to show whatever it is. */
	(void)err_set(ret, (enum err_code)code, "%s", msg);
	(void)err_hint(ret, "%s", hint);
	return 0;
}

static int read_numbers(struct cursor *c, struct compiled *p)
{
	struct record_numbers n;

	if (take(c, &n, sizeof(n)) < 0 || n.mode < MODE_UNSET || n.mode > MODE_FULL_ACCESS ||
	    n.writes < WRITES_UNSET || n.writes > WRITES_OVERLAY || n.pseudonyms > 1 ||
	    n.narrowed >> LIMIT_SETTINGS)
		return -1;
	p->mode = n.mode;
	p->writes = n.writes;
	p->narrowed = n.narrowed;
	p->pseudonyms = n.pseudonyms != 0;
	p->audit_kept_ms = n.audit_kept_ms;
	memcpy(p->limit, n.limit, sizeof(p->limit));
	for (unsigned int i = 0; i < LIMIT_SETTINGS; i++)
		if ((n.narrowed >> i & 1u) && n.limit[i] == LIMIT_UNSET)
			return -1;
	return 0;
}

static int read_file(struct cursor *c, struct compiled_file *ret)
{
	struct record_file r;

	if (take(c, &r, sizeof(r)) < 0 || r.layer >= POLICY_LAYERS || r.trusted > 1)
		return -1;
	*ret = (struct compiled_file){.layer = (uint8_t)r.layer, .trusted = r.trusted != 0};
	memcpy(ret->sha256, r.sha256, sizeof(ret->sha256));
	ret->path = take_text(c, PATH_TEXT - 1);
	return ret->path && ret->path[0] == '/' ? 0 : -1;
}

static int read_rule(struct cursor *c, struct path_rule *ret)
{
	struct record_rule r;

	if (take(c, &r, sizeof(r)) < 0 || r.access >= PATH_ACCESSES || r.layer >= POLICY_LAYERS ||
	    (r.flags & ~RULE_FLAGS_ALL))
		return -1;
	*ret = (struct path_rule){.access = (uint8_t)r.access,
				  .layer = (uint8_t)r.layer,
				  .pattern = r.flags & RULE_PATTERN,
				  .narrow = r.flags & RULE_NARROW};
	ret->path = take_text(c, PATH_TEXT - 1);
	ret->origin = take_text(c, PATH_TEXT + 64);
	if (!ret->path || !ret->origin)
		return -1;
	/* What a file that can only narrow may never do. */
	if (ret->narrow && ret->access == ACCESS_WRITE)
		return -1;
	if (ret->pattern)
		return strncmp(ret->path, "**/", 3) == 0 && ret->access != ACCESS_WRITE ? 0 : -1;
	return ret->path[0] == '/' ? 0 : -1;
}

static int read_env(struct cursor *c, struct file_env *ret)
{
	uint32_t if_there = 0;

	if (take(c, &if_there, sizeof(if_there)) < 0 || if_there > 1)
		return -1;
	ret->if_there = if_there != 0;
	ret->text = take_text(c, MAX_COMPILED_TEXT);
	if (!ret->text || !ret->text[0] || ret->text[0] == '=')
		return -1;
	return !ret->if_there || strstr(ret->text, "=/") ? 0 : -1;
}

static int read_host(struct cursor *c, struct host_rule *ret)
{
	uint32_t list = 0;
	struct egress_rule rule;
	struct err ignored = {0};

	if (take(c, &list, sizeof(list)) < 0 || list >= EGRESS_LISTS)
		return -1;
	*ret = (struct host_rule){.list = (uint8_t)list};
	ret->text = take_text(c, MAX_EGRESS_RULE_TEXT);
	ret->origin = take_text(c, PATH_TEXT + 64);
	if (!ret->text || !ret->origin)
		return -1;
	return egress_rule_read((enum egress_list)list, ret->text, &rule, &ignored);
}

static int read_secret(struct cursor *c, struct secret_rule *ret)
{
	uint32_t plain = 0;
	struct err ignored = {0};

	if (take(c, &plain, sizeof(plain)) < 0 || plain > 1)
		return -1;
	*ret = (struct secret_rule){.plain = plain != 0};
	ret->name = take_text(c, MAX_SECRET_NAME);
	ret->variable = take_text(c, MAX_COMPILED_TEXT);
	ret->from = take_text(c, MAX_SECRET_FROM);
	ret->header = take_text(c, MAX_SECRET_TEMPLATE);
	ret->hosts = take_text(c, MAX_SECRET_HOSTS_TEXT);
	ret->origin = take_text(c, PATH_TEXT + 64);
	if (!ret->name || !ret->variable || !ret->from || !ret->header || !ret->hosts ||
	    !ret->origin)
		return -1;
	if (!ret->variable[0])
		ret->variable = NULL;
	return secret_check(ret, &ignored);
}

static int read_record(struct cursor *c, struct compiled *p)
{
	const char *s = NULL;

	switch ((enum compiled_type)c->type) {
	case CREC_KEY:
		p->key = c->payload;
		p->key_bytes = c->bytes;
		return 0;
	case CREC_ERROR:
		p->failed = true;
		return read_error(c, &p->error) < 0 || c->bytes ? -1 : 0;
	case CREC_NUMBERS:
		return read_numbers(c, p) < 0 || c->bytes ? -1 : 0;
	case CREC_FILE:
		return read_file(c, &p->files[p->file_count++]) < 0 || c->bytes ? -1 : 0;
	case CREC_RULE:
		return read_rule(c, &p->rules[p->rule_count++]) < 0 || c->bytes ? -1 : 0;
	case CREC_ENV:
		return read_env(c, &p->env[p->env_count++]) < 0 || c->bytes ? -1 : 0;
	case CREC_HOST:
		return read_host(c, &p->hosts[p->host_count++]) < 0 || c->bytes ? -1 : 0;
	case CREC_SECRET:
		return read_secret(c, &p->secrets[p->secret_count++]) < 0 || c->bytes ? -1 : 0;
	case CREC_NOTE:
		s = take_text(c, MAX_COMPILED_TEXT);
		p->notes[p->note_count++] = s;
		return !s || c->bytes ? -1 : 0;
	case CREC_TYPES:
		break;
	}
	return -1;
}

/* First pass: counts, order, and that all of it is there. */
static int count(struct cursor c, uint32_t records, size_t counts[CREC_TYPES], struct err *e)
{
	static const size_t most[CREC_TYPES] = {
		[CREC_KEY] = 1,
		[CREC_ERROR] = 1,
		[CREC_NUMBERS] = 1,
		[CREC_FILE] = MAX_COMPILED_FILES,
		[CREC_RULE] = MAX_COMPILED_RULES,
		[CREC_ENV] = MAX_COMPILED_ENV,
		[CREC_HOST] = MAX_EGRESS_RULES,
		[CREC_SECRET] = MAX_EGRESS_SECRETS,
		[CREC_NOTE] = MAX_COMPILED_NOTES,
	};
	uint32_t last = 0;

	for (uint32_t i = 0; i < records; i++) {
		if (record_next(&c) < 0)
			return bad(e, "a record is cut off or unknown");
		if (c.type < last)
			return bad(e, "records are out of order");
		if (++counts[c.type] > most[c.type])
			return bad(e, "too many records of one type");
		if (c.type == CREC_KEY && c.bytes > MAX_COMPILED_KEY)
			return bad(e, "the key is too long");
		last = c.type;
	}
	if (c.left)
		return bad(e, "bytes after the last record");
	if (!counts[CREC_KEY])
		return bad(e, "no key");
	if (counts[CREC_ERROR] ? records != 2 : !counts[CREC_NUMBERS])
		return bad(e, "records are missing or too many");
	return 0;
}

static int check_header(const void *bytes, size_t len, struct compiled_header *ret, struct err *e)
{
	unsigned char digest[SHA256_BYTES];

	if (len < sizeof(*ret) || len > MAX_COMPILED_BYTES)
		return bad(e, "no size of one");
	memcpy(ret, bytes, sizeof(*ret));
	if (ret->magic != COMPILED_MAGIC || ret->version != COMPILED_VERSION)
		return bad(e, "of another version");
	if (ret->total != len)
		return bad(e, "cut off");
	sha256((const unsigned char *)bytes + sizeof(*ret), len - sizeof(*ret), digest);
	if (memcmp(digest, ret->sha256, sizeof(digest)) != 0)
		return bad(e, "altered");
	return 0;
}

int compiled_decode(const void *bytes, size_t len, struct compiled *ret, struct err *e)
{
	struct compiled_header h;
	size_t counts[CREC_TYPES] = {0};

	if (check_header(bytes, len, &h, e) < 0)
		return -1;
	struct cursor c = {.p = (const unsigned char *)bytes + sizeof(h), .left = len - sizeof(h)};
	if (count(c, h.records, counts, e) < 0)
		return -1;
	struct compiled p = {
		.mode = MODE_UNSET,
		.writes = WRITES_UNSET,
		.rules = calloc(counts[CREC_RULE] + 1, sizeof(*p.rules)),
		.env = calloc(counts[CREC_ENV] + 1, sizeof(*p.env)),
		.hosts = calloc(counts[CREC_HOST] + 1, sizeof(*p.hosts)),
		.secrets = calloc(counts[CREC_SECRET] + 1, sizeof(*p.secrets)),
		.files = calloc(counts[CREC_FILE] + 1, sizeof(*p.files)),
		.notes = calloc(counts[CREC_NOTE] + 1, sizeof(*p.notes)),
	};
	int rc = p.rules && p.env && p.hosts && p.secrets && p.files && p.notes
			 ? 0
			 : bad(e, "out of memory");
	for (uint32_t i = 0; i < h.records && rc == 0; i++)
		if (record_next(&c) < 0 || read_record(&c, &p) < 0)
			rc = bad(e, "a record is not valid");
	if (rc < 0) {
		compiled_release(&p);
		return -1;
	}
	*ret = p;
	return 0;
}

void compiled_release(struct compiled *c)
{
	free(c->rules);
	free(c->env);
	free(c->hosts);
	free(c->secrets);
	free(c->files);
	free(c->notes);
	*c = (struct compiled){.mode = MODE_UNSET, .writes = WRITES_UNSET};
}
